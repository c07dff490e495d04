"""Files in the inbox of a folder bucket that are larger than any job may read, or take long to read."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from core.errors import ObjectTooLarge, StoreUnavailable
from core.jobs import State
from core.verdicts import Fault, Verdict
from infra.local.folder import FolderStore
from tests.support.world import World

HUGE = 300 * 1024**3


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FolderStore]:
    with closing(FolderStore(tmp_path / "data", largest=1000)) as store:
        (store.root / "inbox/acme").mkdir()
        yield store


@pytest.fixture
def huge(store: FolderStore) -> Path:
    """A sparse file: it costs its sender nothing."""
    path = store.root / "inbox/acme/huge.csv"
    with path.open("wb") as file:
        file.truncate(HUGE)
    return path


def test_a_file_that_no_job_could_read_is_listed_without_being_read(
    store: FolderStore, huge: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(os, "pread", lambda *_: pytest.fail("its content was read"))
    (info,) = store.objects("inbox/")
    assert info == store.head("inbox/acme/huge.csv")
    assert info.size == HUGE


def test_its_version_changes_with_it(store: FolderStore, huge: Path):
    before = store.head("inbox/acme/huge.csv")
    os.truncate(huge, HUGE + 1)
    after = store.head("inbox/acme/huge.csv")
    assert before is not None
    assert after is not None
    assert before.version != after.version
    os.truncate(huge, 10)
    small = store.head("inbox/acme/huge.csv")
    assert small is not None
    assert len(small.version) == 64, "now it is the hash of its content"


def test_it_is_refused_before_anything_is_copied(store: FolderStore, huge: Path, tmp_path: Path):
    info = store.head("inbox/acme/huge.csv")
    assert info is not None
    with pytest.raises(ObjectTooLarge, match=str(HUGE)):
        store.fetch("inbox/acme/huge.csv", tmp_path / "copy", version=info.version, limit=1000)
    assert not (tmp_path / "copy").exists()


def test_a_put_tells_the_version_that_is_found_later(store: FolderStore):
    for size in (10, 5000):
        assert store.put("inbox/acme/a.csv", bytes(size)) == store.head("inbox/acme/a.csv")


def test_results_of_any_size_are_known_by_their_content(store: FolderStore):
    assert len(store.put("outputs/acme/x", bytes(5000)).version) == 64


def test_a_process_that_stops_reads_no_senders_file_to_its_end(store: FolderStore):
    (store.root / "inbox/acme/a.csv").write_bytes(b"id\n1\n")
    store.put("outputs/acme/x", b"ours")
    store.interrupt()
    with pytest.raises(StoreUnavailable, match="stopping"):
        store.head("inbox/acme/a.csv")
    assert store.head("outputs/acme/x") is not None, "running jobs may still publish"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "data", worker_fsize_mb=1)
    yield made
    made.close()


def test_its_job_says_that_it_is_too_large(world: World, tmp_path: Path):
    world.store._largest = 1024 * 1024
    world.drop()
    with (world.store.root / "inbox/acme/d/huge.csv").open("wb") as file:
        file.truncate(HUGE)
    world.sweep()
    world.work_off(world.runner())
    ended = {job.subject: job for job in world.jobs()}
    assert ended["d/a.csv"].state is State.SUCCEEDED
    failed = ended["d/huge.csv"]
    assert failed.state is State.FAILED
    assert failed.error is not None
    assert (failed.error.verdict, failed.error.fault) == (Verdict.INPUT_UNREADABLE, Fault.INPUT)
    assert "ADE_WORKER_FSIZE_MB" in failed.error.message


class TestTurns:
    """One tenant's files take long to list and to read; the others' are recorded meanwhile."""

    @pytest.fixture
    def slow(self, world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The order in which tenants are listed, where each object of the first takes a second."""
        order: list[str] = []
        objects = world.store.objects

        def listed(prefix: str, **more: Any) -> Iterator[Any]:
            for info in objects(prefix, **more):
                world.clock.move(1.0 if prefix == "inbox/a/" else 0.0)
                order.append(info.key)
                yield info

        monkeypatch.setattr(world.store, "objects", listed)
        return order

    def test_a_slow_tenant_is_not_swept_before_all_others(self, world: World, slow: list[str]):
        for n in range(5):
            world.drop("a", f"{n}.csv")
        world.drop("b")
        world.drop("c")
        report = world.intake.sweep()
        assert {job.tenant for job in report.recorded.created} == {"a", "b", "c"}
        assert slow.index("inbox/c/d/manifest.json") < slow.index("inbox/a/d/4.csv")
        assert len(world.jobs()) == 7

    def test_a_stop_ends_a_sweep_and_the_next_one_finds_the_rest(self, world: World, slow: list[str]):
        for n in range(5):
            world.drop("a", f"{n}.csv")
        world.drop("b")
        move = world.clock.move
        world.clock.move = lambda seconds: (world.intake.stop() if seconds else None, move(seconds))[1]
        world.intake.sweep()
        assert world.jobs() == []
        world.clock.move = move
        world.new_intake().sweep()
        assert len(world.jobs()) == 6
