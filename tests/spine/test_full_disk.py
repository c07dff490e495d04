"""A disk without room for a job: the job waits, loses no attempt and ends well once there is room again."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.jobs import State
from core.verdicts import Verdict
from infra.local.folder import FolderStore
from runner import surroundings
from runner.boxes import BoxReport
from runner.surroundings import DiskRoom
from tests.support.world import World

MB = 1024 * 1024
BODY = b"id\n" + b"1\n" * 1000


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "data")
    yield made
    made.close()


class SmallDisk:
    """Has only so many bytes left for scratch files, staged ones and probes; nothing else is counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.free = 100 * MB
        self.number = errno.ENOSPC
        fetch, fallocate = FolderStore.fetch, os.posix_fallocate

        def fetched(store: FolderStore, key: str, to: Path, **more: Any) -> Any:
            got = fetch(store, key, to, **more)
            if got.size > self.free:
                to.unlink()
                raise self.full()
            return got

        def allocated(fd: int, offset: int, size: int) -> None:
            if size > self.free:
                raise self.full()
            fallocate(fd, offset, size)

        monkeypatch.setattr(FolderStore, "fetch", fetched)
        monkeypatch.setattr(os, "posix_fallocate", allocated)

    def full(self) -> OSError:
        return OSError(self.number, os.strerror(self.number))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SmallDisk:
    monkeypatch.setattr(surroundings, "_SCRATCH_BYTES", 100)  # a probe that asks for no more would find room
    return SmallDisk(monkeypatch)


def waits_and_ends_well(world: World, disk: SmallDisk) -> None:
    runner = world.runner()
    for _ in range(10):
        world.handle_one(runner)
        world.clock.move(400)
    (job,) = world.jobs()
    assert (job.state, job.attempt) == (State.QUEUED, 0)
    assert world.queue.dead() == ()
    assert runner.worker.surroundings.failed == "disk", "no other job is started meanwhile"
    assert not runner.worker.surroundings.probe()
    disk.free = 100 * MB
    assert runner.worker.surroundings.probe()
    world.work_off(runner)
    (job,) = world.jobs()
    assert (job.state, job.attempt) == (State.SUCCEEDED, 1)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_an_input_that_does_not_fit(world: World, disk: SmallDisk, number: int):
    world.drop(body=BODY)
    world.sweep()
    disk.free, disk.number = len(BODY) - 1, number
    waits_and_ends_well(world, disk)


@pytest.mark.parametrize(
    ("verdict", "message"),
    [
        (Verdict.ENGINE_FAILED, "the engine failed: OSError"),
        (Verdict.INPUT_UNREADABLE, "the engine failed: OSError"),
        (Verdict.RULE_ERROR, "columns/id.py: OSError"),
    ],
)
def test_an_output_that_does_not_fit(world: World, disk: SmallDisk, verdict: Verdict, message: str):
    """The box says what it was refused; that there is no room is measured."""
    world.drop(body=BODY)
    world.sweep()
    disk.free = len(BODY)
    run = world.sandbox.run

    def refused(order: Any, **more: Any) -> BoxReport:
        if disk.free > 50 * MB:
            return run(order, **more)
        return BoxReport(verdict=verdict, message=message)

    world.sandbox.run = refused
    waits_and_ends_well(world, disk)


def test_a_rule_that_claims_to_have_no_room_where_there_is_some_fails(world: World, disk: SmallDisk):
    world.drop()
    world.sweep()
    world.sandbox.run = lambda *_, **__: BoxReport(verdict=Verdict.RULE_ERROR, message="columns/id.py: OSError")
    world.work_off(world.runner())
    (job,) = world.jobs()
    assert job.state is State.FAILED
    assert job.error is not None
    assert job.error.verdict is Verdict.RULE_ERROR


def test_a_rule_that_fills_the_disk_is_not_taken_for_one_that_needs_so_much(world: World, disk: SmallDisk):
    world.drop()
    world.sweep()
    disk.free = 90 * MB  # after its box was removed

    def filling(order: Any, **_: Any) -> BoxReport:
        with (order.scratch / "full").open("wb") as file:
            file.truncate(80 * MB)
        return BoxReport(verdict=Verdict.RULE_ERROR, message="columns/id.py: OSError")

    world.sandbox.run = filling
    world.work_off(world.runner())
    (job,) = world.jobs()
    assert job.state is State.FAILED


def test_a_probe_asks_for_what_the_last_jobs_used():
    room = DiskRoom()
    assert room.needed == MB
    room.note(8 * MB)
    assert room.needed == 11 * MB
    for _ in range(20):
        room.note(0)
    assert room.needed == MB, "long ago"
