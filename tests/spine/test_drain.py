"""A drain ends when nothing is left, not when what is left was put off."""

from dataclasses import replace

import pytest

from core.jobs import Job, State
from core.ports import Pause
from runner.drain import Drain
from tests.contract.jobs import a_job
from tests.support.world import World


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path / "data")
    yield made
    made.close()


def a_drain(world: World) -> Drain:
    runner = world.runner()
    return Drain(world.fragile, runner.worker, runner.janitor.urgent)


def add(world: World, name: str, **more) -> Job:
    job, _ = world.table.add(a_job(name, created_at=world.clock.now(), updated_at=world.clock.now(), **more))
    return job


def refusing(world: World):
    """The store refuses all that is asked of it, until the call; the count of refusals."""
    head = world.store.head

    def refuse(key):
        raise PermissionError(key)

    world.store.head = refuse

    def mend() -> None:
        world.store.head = head

    return mend


UNFINISHED = {
    "a publication": {"state": State.PUBLISHING},
    "an end that is not told yet": {"state": State.CANCELLED, "unpublished": True},
}


@pytest.mark.parametrize("paused", [None, "acme", "all"])
@pytest.mark.parametrize("what", UNFINISHED)
def test_a_drain_waits_for_a_publication_that_was_put_off(world, what, paused):
    if paused:
        world.table.pause(Pause(tenant=None if paused == "all" else paused, workflow=None, since=0.0, by="test"))
    job = add(world, "a", **UNFINISHED[what])
    world.clock.move(60)
    mend, drain = refusing(world), a_drain(world)
    assert not drain.done()
    mend()
    world.clock.move(15)
    assert not drain.done(), "it was put off for longer than that, and the drain has ended"
    world.clock.move(60)
    assert drain.done()
    assert not drain.undone
    found = world.table.get(job.job_id)
    assert found.ended
    assert not found.unpublished


def test_a_drain_waits_for_a_start_that_was_put_off(world):
    job = add(world, "a", state=State.SCHEDULED, due_at=world.clock.now())
    world.table.replace(job, replace(job, deferred_until=world.clock.now() + 100))
    drain = a_drain(world)
    assert not drain.done()


def test_a_drain_does_not_wait_for_what_is_due_later(world):
    for n in range(250):
        add(world, f"later{n}", state=State.SCHEDULED, due_at=world.clock.now() + 100)
    assert a_drain(world).done()


def test_a_crowd_that_is_due_later_hides_no_publication(world):
    for n in range(250):
        add(world, f"later{n}", state=State.SCHEDULED, due_at=world.clock.now() + 5)
    job = add(world, "a", state=State.PUBLISHING)
    world.table.replace(job, replace(job, deferred_until=world.clock.now() + 100))
    assert not a_drain(world).done()


@pytest.mark.parametrize("what", UNFINISHED)
def test_a_chore_that_fails_again_is_named_and_waited_for_no_longer(world, what):
    job = add(world, "a", **UNFINISHED[what])
    world.clock.move(60)
    refusing(world)
    drain = a_drain(world)
    assert not drain.done()
    world.clock.move(301)
    assert drain.done()
    assert drain.undone == {job.job_id}
