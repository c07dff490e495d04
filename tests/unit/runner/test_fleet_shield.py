"""The fleet and its shield: told of every change in what runs, and heeded when it wants a rest."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.jobs import State
from infra.logs import Log
from runner.fleet import Fleet
from tests.support.world import World


class Recorder:
    """A shield that wants a rest before the first job, and writes down what it hears."""

    def __init__(self, rests: int = 0) -> None:
        self.heard: list[object] = []
        self._rests = rests

    def start(self) -> None:
        self.heard.append("start")

    def stop(self) -> None:
        self.heard.append("stop")

    def busy(self, jobs: int) -> None:
        self.heard.append(jobs)

    def ready(self) -> bool:
        self._rests -= 1
        if self._rests >= 0:
            self.heard.append("rest")
        return self._rests < 0


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.drop()
    made.sweep()
    yield made
    made.close()


def worked(world: World, shield: Recorder) -> None:
    runner = world.runner()
    fleet = Fleet(runner.worker, world.queue, runner.beats, Log(stream=world.log._stream), slots=2, shield=shield)
    fleet.run(drain=lambda: not world.queue.stats().ready)


def test_it_learns_of_a_job_that_starts_and_of_its_end(world: World):
    shield = Recorder()
    worked(world, shield)
    assert shield.heard == ["start", 1, 0, "stop"]


def test_nothing_is_taken_while_it_rests(world: World):
    shield = Recorder(rests=2)
    worked(world, shield)
    assert shield.heard == ["start", "rest", "rest", 1, 0, "stop"]
    assert [job.state for job in world.jobs()] == [State.SUCCEEDED]
