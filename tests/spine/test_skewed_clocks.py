"""Machines whose clocks differ: a runner that beats is alive, whatever another's clock says."""

from dataclasses import replace

import pytest

from core.jobs import Lease, State
from core.settings import Settings
from infra.clocks import HandClock
from runner.assembly import Runner, assemble
from tests.contract.jobs import a_job
from tests.support.world import World


class Skewed(HandClock):
    """Goes as another clock does, ahead of it or behind."""

    def __init__(self, of: HandClock, seconds: float) -> None:
        super().__init__()
        self._of, self._seconds = of, seconds

    def now(self) -> float:
        return self._of.now() + self._seconds

    def steady(self) -> float:
        return self._of.steady()


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path / "data", table_url="dynamodb://elsewhere")
    yield made
    made.close()


def machine(world: World, seconds: float) -> Runner:
    """A runner on a machine with a clock of its own."""
    made = assemble(replace(world.fragile, clock=Skewed(world.clock, seconds)), world.boxes, world.log)
    world.runners.append(made)
    return made


@pytest.mark.parametrize(("runner", "janitor"), [(0, 60), (-60, 0), (30, -3600), (-3600, 3600), (0, 0)])
def test_a_healthy_job_is_never_taken_from_its_runner(world, runner, janitor):
    world.intake.changed(world.drop())
    working, leader = machine(world, runner), machine(world, janitor)
    checked = []

    def during():
        for second in range(300):
            world.clock.move(1)
            if second % 10 == 9:
                working.beats.round()
            leader.janitor.urgent()
            checked.extend(job.state for job in world.jobs())

    world.sandbox.during = during
    world.handle_one(working)
    assert set(checked) == {State.RUNNING}
    (job,) = world.jobs()
    assert (job.state, job.attempts_total) == (State.SUCCEEDED, 1)


@pytest.mark.parametrize("janitor", [0, 60, 3600])
def test_a_silent_runner_loses_its_job_in_bounded_time(world, janitor):
    world.intake.changed(world.drop())
    working, leader = machine(world, 0), machine(world, janitor)
    waited = []

    def during():
        for second in range(120):
            world.clock.move(1)
            leader.janitor.urgent()
            if world.jobs()[0].state is not State.RUNNING:
                waited.append(second)
                return

    world.sandbox.during = during
    world.handle_one(working)
    assert waited
    assert waited[0] <= 60


def test_a_message_that_comes_twice_does_not_take_a_job_from_a_healthy_runner(world):
    world.intake.changed(world.drop())
    working, other = machine(world, 0), machine(world, 60)

    def during():
        for _ in range(6):
            world.clock.move(5)
            working.beats.round()
            for job in world.jobs():
                assert other.worker.rescue(job) == job

    world.sandbox.during = during
    world.handle_one(working)
    assert [job.state for job in world.jobs()] == [State.SUCCEEDED]


def test_healthy_jobs_that_seem_lost_do_not_hide_what_is_due(world):
    now = world.clock.now()
    for n in range(450):
        world.table.add(a_job(f"r{n}", state=State.RUNNING, fence=1, lease=Lease(owner="elsewhere", expires=now + 30)))
    due, _ = world.table.add(a_job("s", state=State.SCHEDULED, due_at=now + 55))
    machine(world, 60).janitor.urgent()
    assert world.table.get(due.job_id).state is State.QUEUED
    assert world.table.counts()[State.RUNNING] == 450


def test_one_machine_has_one_clock_and_need_not_watch():
    assert Settings().timings.watch_seconds == 0
    assert Settings(table_url="dynamodb://t").timings.watch_seconds == 20
