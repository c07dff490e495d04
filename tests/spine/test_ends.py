"""Every job comes to an end that people can see, and nothing points to what is gone."""

import json
import random
from dataclasses import replace

import pytest

from core.drops import MAX_INPUTS
from core.errors import IllegalTransition
from core.jobs import State, move
from core.keys import result_key
from core.ports import JobQuery
from core.verdicts import Verdict
from runner.documents import result_body
from tests.support.world import MANIFEST, World

LATEST = "outputs/acme/d/a.csv/members/latest.json"


@pytest.fixture
def world(world_in_each_place):
    return world_in_each_place


def ended(world, body=b"id\n1\n", **manifest):
    world.intake.changed(world.drop(body=body, **manifest))
    world.work_off(world.runner())
    return max(world.jobs(), key=lambda j: j.stamp)


# Keys that are too long


@pytest.mark.parametrize("how", ["event", "sweep"])
def test_a_file_whose_outputs_would_have_too_long_keys_is_refused_before_it_runs(world, how):
    folder = "/".join(["inbox/acme", *["x" * 200] * 4, "x" * 170])
    key = f"{folder}/a.csv"
    assert len(key) < 1013
    world.put(f"{folder}/manifest.json", MANIFEST)
    world.put(key, b"id\n1\n")
    report = world.intake.sweep() if how == "sweep" else world.intake.changed([key, f"{folder}/manifest.json"])
    assert any("outputs would be longer" in line for line in report.refused)
    assert [j.state for j in world.jobs() if j.state is not State.AWAITING] == []
    told = json.loads(world.store.read(f"outputs/{folder.removeprefix('inbox/')}/rejected.json", limit=1 << 20))
    assert [p["file"] for p in told["problems"]] == [key]
    world.work_off(world.runner())


def test_a_commit_that_cannot_be_published_fails_instead_of_staying_for_ever(tmp_path):
    """In a folder bucket a file can stand where a folder has to be."""
    world = World(tmp_path)
    world.intake.changed(world.drop())
    (world.store.root / "outputs/acme/d").mkdir(parents=True)
    (world.store.root / "outputs/acme/d/a.csv").write_text("in the way")
    world.work_off(world.runner())
    (job,) = world.jobs()
    assert (job.state, job.error.fault) == (State.FAILED, "input")
    assert "cannot be written" in job.error.message
    assert not job.unpublished
    world.close()


# Many inputs


def test_a_drop_of_too_many_files_says_so_and_is_taken_once_it_is_smaller(world, monkeypatch):
    monkeypatch.setattr("handlers.planning.MAX_INPUTS", 3)
    keys = [world.put(f"inbox/acme/d/{n}.csv", b"id\n1\n") for n in range(4)]
    world.put("inbox/acme/d/manifest.json", MANIFEST | {"inputs": {"primary": ["*.csv"], "per": "drop"}})
    world.intake.sweep()
    waiting = [j for j in world.jobs() if j.workflow == "members"]
    assert [j.state for j in waiting] == [State.AWAITING]
    assert "4 files are too many" in waiting[0].reason
    assert world.store.head("outputs/acme/d/members/status.json") is not None
    world.store.delete(keys[0])
    world.intake.sweep()
    world.work_off(world.runner())
    assert [j.state for j in world.jobs() if j.workflow == "members"] == [State.SUCCEEDED]


@pytest.mark.slow
def test_a_drop_whose_keys_do_not_fit_into_a_row_says_so(tmp_path):
    world = World(tmp_path)
    drawn = random.Random(1)
    folder = "inbox/acme/d"
    world.put(f"{folder}/manifest.json", MANIFEST | {"inputs": {"primary": ["**/*.csv"], "per": "drop"}})
    for _ in range(1500):
        deep = "/".join(drawn.randbytes(100).hex() for _ in range(3))
        (world.store.root / folder / deep).mkdir(parents=True)
        (world.store.root / folder / deep / "a.csv").write_bytes(b"id\n")
    world.intake.sweep()
    waiting = [j for j in world.jobs() if j.workflow == "members"]
    assert [str(j.state) for j in waiting] == ["AWAITING"]
    assert "too many for one job" in waiting[0].reason
    world.close()


def test_a_job_of_as_many_inputs_as_there_may_be_fits_and_expires(world):
    """Its row is one item of the table; its result.json is larger than a mebibyte."""
    job = ended(world)
    one, drawn = job.inputs[0], random.Random(1)
    many = tuple(
        replace(
            one,
            name=f"{n}.csv",
            ref=replace(
                one.ref,
                key=f"inbox/acme/d/{n:05d}-members-of-the-northern-branch-in-the-month-of-may-2026.csv",
                version=drawn.randbytes(16).hex(),  # nothing that compresses
                digest=f"md5:{drawn.randbytes(16).hex()}:{n}",
            ),
        )
        for n in range(MAX_INPUTS)
    )
    assert world.table.replace(job, replace(job, inputs=many)) is not None
    job = world.table.get(job.job_id)
    world.store.put(result_key(job), result_body(job))
    assert world.store.head(result_key(job)).size > 1 << 20
    world.clock.move(49 * 3600)
    world.work_off(world.runner())
    assert world.table.get(job.job_id).state is State.EXPIRED
    assert json.loads(world.store.read(result_key(job), limit=1 << 24))["status"] == "EXPIRED"


# latest.json


def test_a_removed_job_leaves_no_latest(world):
    job = ended(world)
    world.control.remove(job.job_id)
    assert list(world.store.keys("outputs/")) == []


def test_a_removed_job_leaves_the_latest_of_another(world):
    ended(world)
    newer = ended(world, b"id\n2\n")
    older = next(j for j in world.jobs() if j.job_id != newer.job_id)
    world.control.remove(older.job_id, keep_input=True)
    assert json.loads(world.store.read(LATEST, limit=1 << 20))["job_id"] == newer.job_id


def test_expiry_does_not_take_the_latest_of_a_job_that_ends_at_that_moment(world):
    """Between the look at latest.json and its removal a newer job may have written it."""
    older = ended(world)
    runner = world.runner()
    read = world.store.read

    def meanwhile(key, **more):
        body = read(key, **more)
        if key == LATEST and b'"EXPIRED"' in read(
            f"{LATEST.rpartition('/')[0]}/{older.job_id}/result.json", limit=1 << 20
        ):
            world.store.read = read
            ended(world, b"id\n2\n")
        return body

    world.clock.move(49 * 3600)
    world.store.read = meanwhile
    runner.janitor.chores()
    world.store.read = read
    newer = next(j for j in world.jobs() if j.job_id != older.job_id)
    assert (world.table.get(older.job_id).state, newer.state) == (State.EXPIRED, State.SUCCEEDED)
    assert json.loads(world.store.read(LATEST, limit=1 << 20))["job_id"] == newer.job_id


# Reset


def test_a_reset_of_a_row_that_cannot_be_written_deletes_nothing(world):
    job = ended(world)
    before = list(world.store.keys("outputs/"))
    world.table.replace = lambda old, new: None  # somebody edited the row's state: no condition on it holds any more
    with pytest.raises(IllegalTransition, match="could not be changed"):
        world.control.reset(job.job_id)
    assert list(world.store.keys("outputs/")) == before


def test_a_reset_job_runs_again(world):
    job = ended(world)
    before = list(world.store.keys("outputs/"))
    assert world.control.reset(job.job_id).state is State.QUEUED
    assert list(world.store.keys("outputs/")) == before
    world.work_off(world.runner())
    assert json.loads(world.store.read(LATEST, limit=1 << 20))["job_id"] == job.job_id
    assert [j.state for j in world.table.page(JobQuery()).jobs] == [State.SUCCEEDED]


# Which end latest.json names


@pytest.mark.parametrize("latest", ["succeeded", "any"])
def test_latest_json_stays_on_the_last_success_unless_the_manifest_asks_for_any_end(tmp_path, latest):
    world = World(tmp_path)

    def named():
        return json.loads(world.store.read(LATEST, limit=1 << 20))["job_id"]

    good = ended(world, latest=latest)
    assert (good.state, named()) == (State.SUCCEEDED, good.job_id)
    world.clock.move(10)
    world.sandbox.verdict = Verdict.EMPTY_INPUT
    bad = ended(world, body=b"id\n", latest=latest)
    assert bad.state is State.FAILED
    assert named() == (bad.job_id if latest == "any" else good.job_id)
    world.clock.move(10)
    better = ended(world, body=b"id\n2\n", latest=latest)
    assert named() == better.job_id
    world.close()


def test_a_failed_end_that_expires_leaves_latest_json_to_the_success_before_it(tmp_path):
    world = World(tmp_path)
    good = ended(world, latest="any")
    world.clock.move(10)
    world.sandbox.verdict = Verdict.EMPTY_INPUT
    bad = ended(world, body=b"id\n", latest="any")
    runner = world.runner()
    expired = world.table.replace(bad, move(bad, State.EXPIRED, now=world.clock.now()))
    runner.publisher.finish(expired)
    assert json.loads(world.store.read(LATEST, limit=1 << 20))["job_id"] == good.job_id
    world.close()
