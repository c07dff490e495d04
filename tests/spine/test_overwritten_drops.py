"""Files that their sender overwrites while a job is under way: it reads what it was made for, or a newer job replaces it."""

import hashlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from core.jobs import State
from tests.support.places import PLACES
from tests.support.world import MANIFEST, World

FOLDER = "inbox/acme/d"
INPUTS = {"primary": ["*.csv"], "auxiliary": [{"name": "plans", "path": "lookups/plans.csv"}]}
OLD = {"a.csv": b"id\n1\n", "lookups/plans.csv": b"plan\nold\n"}
NEW = {"a.csv": b"id\n2222\n", "lookups/plans.csv": b"plan\nnewer\n"}


@pytest.fixture(params=["embedded", "cloud", "versioned cloud"])
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    with closing(World(tmp_path, PLACES[request.param])) as made:
        yield made


def send(world: World, name: str, body: bytes) -> str:
    """As a sender does: by a link of the store where it makes them, with words of their own beside the content."""
    key = f"{FOLDER}/{name}"
    link = world.store.link(key, seconds=60, write=True)
    if link is None:
        return world.put(key, body)
    httpx.put(
        link, content=body, headers={"Content-Type": "text/html", "Cache-Control": "max-age=9"}
    ).raise_for_status()
    return key


def dropped(world: World) -> None:
    keys = [send(world, name, body) for name, body in OLD.items()]
    manifest = world.put(f"{FOLDER}/manifest.json", MANIFEST | {"inputs": INPUTS})
    world.intake.changed([*keys, manifest])


def overwrite(world: World, names: tuple[str, ...]) -> None:
    for name in names:
        if name == "manifest.json":
            world.put(f"{FOLDER}/{name}", MANIFEST | {"inputs": INPUTS, "fields": [{"name": "id"}, {"name": "more"}]})
        else:
            send(world, name, NEW[name])


def check_all(world: World, names: tuple[str, ...], *, rows: int) -> None:
    """Each box read what its row names, and the newest files have one result."""
    digests = {hashlib.sha256(body).hexdigest(): body for body in (*OLD.values(), *NEW.values())}
    jobs = {job.job_id: job for job in world.jobs()}
    for order in world.sandbox.orders:
        for read, pinned in zip(order.inputs, jobs[order.job.job_id].inputs, strict=True):
            body = digests[read.sha256]
            assert pinned.ref.size == len(body)
            assert any(found in pinned.ref.digest for found in (read.sha256, hashlib.md5(body).hexdigest()))
    assert {job.state for job in jobs.values()} <= {State.SUCCEEDED, State.SKIPPED}
    fields = 2 if "manifest.json" in names else 1
    newest = [
        order.job.job_id
        for order in world.sandbox.orders
        if digests[order.inputs[0].sha256] == (NEW if "a.csv" in names else OLD)["a.csv"]
        and len(order.manifest["fields"]) == fields
        # A look-up table alone triggers nothing: the job may have read the older one.
        and (len(names) == 1 or digests[order.inputs[1].sha256] == NEW["lookups/plans.csv"])
    ]
    succeeded = {job_id for job_id in newest if jobs[job_id].state is State.SUCCEEDED}
    assert len(succeeded) == 1
    assert len(jobs) <= rows


@pytest.mark.parametrize("names", [("a.csv",), ("lookups/plans.csv",), ("manifest.json",), (*NEW, "manifest.json")])
@pytest.mark.parametrize("step", [0, 2, 4, 6, 8, 10, 12])
def test_a_job_never_mixes_what_it_was_made_for_with_what_came_later(world: World, names: tuple[str, ...], step: int):
    """The files are overwritten at some step of the attempt, and the event of that comes after it."""
    dropped(world)
    runner = world.runner()
    world.crasher.arm(step, meanwhile=lambda: overwrite(world, names))
    world.handle_one(runner)
    assert world.crasher.left is None, "the step was reached"
    world.crasher.arm(None)
    world.intake.changed([f"{FOLDER}/{name}" for name in names])
    world.work_off(runner)
    check_all(world, names, rows=2)


def test_a_file_that_is_deleted_and_restored_before_its_job_runs_is_not_lost(world: World):
    dropped(world)
    world.store.delete(f"{FOLDER}/a.csv")
    world.intake.changed([f"{FOLDER}/a.csv"])
    world.intake.changed([send(world, "a.csv", OLD["a.csv"])])
    world.sweep()
    world.work_off(world.runner())
    states = [job.state for job in world.jobs()]
    assert states.count(State.SUCCEEDED) == 1
    assert set(states) <= {State.SUCCEEDED, State.SKIPPED}
