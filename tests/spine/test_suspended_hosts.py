"""A host that stands still for a while (a laptop that sleeps, a machine that is paused) costs no job an attempt."""

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from core.jobs import State
from core.verdicts import Verdict
from runner.boxes import BoxLimits
from runner.sandbox import session
from runner.sandbox.session import Excess, Watch
from tests.support.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "data", max_attempts=2)
    yield made
    made.close()


def test_a_host_suspended_again_and_again_loses_no_job(world: World):
    world.drop()
    world.sweep()
    runner = world.runner()
    for _ in range(5):
        world.sandbox.during = lambda: world.clock.move(3600)  # nothing of this process runs meanwhile, no beat either
        assert world.handle_one(runner)
        (job,) = world.jobs()
        assert (job.state, job.attempt) == (State.QUEUED, 0)
        world.clock.move(10)
    world.work_off(runner)
    (job,) = world.jobs()
    assert (job.state, job.attempt) == (State.SUCCEEDED, 1)
    assert world.queue.dead() == ()


def test_a_job_that_stops_its_runner_every_time_ends_after_all(world: World):
    world.drop()
    world.sweep()
    runner = world.runner()
    for _ in range(30):
        world.sandbox.during = lambda: world.clock.move(3600)
        world.handle_one(runner)
        world.clock.move(10)
    (job,) = world.jobs()
    assert job.state is State.FAILED
    assert job.error is not None
    assert job.error.verdict is Verdict.LEASE_LOST


def test_a_runner_that_wakes_up_does_not_touch_a_row_that_another_host_works_on(world: World):
    world.drop()
    world.sweep()
    sleeper, other = world.runner(), world.runner()
    worker = sleeper.worker
    seen: list[int] = []

    def rescued() -> None:
        world.clock.move(3600)
        for _ in range(3):
            other.janitor.chores()
            world.clock.move(60)

    world.sandbox.during = rescued
    write = worker._write_result

    def written_late(unwritten):
        """The sleeper writes its result while the other is at work."""
        world.sandbox.during = lambda: (write(unwritten), seen.extend(job.attempt for job in world.jobs()))
        assert world.handle_one(other)

    worker._write_result = written_late  # type: ignore[method-assign]
    assert world.handle_one(sleeper)
    (job,) = world.jobs()
    assert seen == [2]
    assert (job.state, job.attempt, job.attempts_total) == (State.SUCCEEDED, 2, 2)


def test_time_that_a_host_stood_still_is_no_time_of_the_box(monkeypatch: pytest.MonkeyPatch):
    assert watched(monkeypatch, [0.0, 3600.0, 3600.1]) is None


def test_time_that_passes_as_usual_is(monkeypatch: pytest.MonkeyPatch):
    assert watched(monkeypatch, [0.0, 4.0, 8.0, 12.0]) is Verdict.WALL_CLOCK


def watched(monkeypatch: pytest.MonkeyPatch, times: list[float]) -> Verdict | None:
    """What ends a box that may take 10 s, if it is looked at at these times and then ends by itself."""
    ours, theirs = socket.socketpair()
    channel, far = os.pipe()
    os.close(far)
    left = list(times)

    def looked() -> None:
        if not left:
            theirs.sendall(json.dumps({"code": 0}).encode() + b"\n")

    monkeypatch.setattr(session, "time", SimpleNamespace(monotonic=lambda: left.pop(0) if left else times[-1]))
    limits = BoxLimits(wall_seconds=10, cpu_seconds=10, memory_mb=64, file_mb=1)
    with ours, theirs:
        watch = Watch(control=ours, channel_fd=channel, excess=Excess(None, (), limits))
        left[:] = [times[0], *times]
        return watch.until_over(deadline=10.0, killed=looked, kill=lambda: theirs.sendall(b'{"code": -9}\n')).killed_as
