"""Jobs that may not start yet: they wait in the queue, however long it takes, and are nobody's dead letter."""

import pytest

from core.fairness import Offer
from core.jobs import State
from core.ports import Pause

ROUNDS = 60  # more receives than the queues of a deployment allow before they call a message dead


@pytest.fixture
def world(world_in_each_place):
    return world_in_each_place


OFFER = Offer(most=5, avoid=frozenset(), last=frozenset())


def test_a_job_that_is_put_back_again_and_again_is_no_dead_letter(world):
    world.table.pause(Pause(tenant="acme", workflow=None, since=0.0, by="test"))
    world.intake.changed(world.drop())
    runner = world.runner()
    for _ in range(ROUNDS):
        world.clock.move(2)
        world.handle_one(runner)
    assert world.queue.dead() == ()
    world.table.resume("acme", None)
    world.clock.move(2)
    assert world.handle_one(runner), "its message is gone"
    assert [job.state for job in world.jobs()] == [State.SUCCEEDED]


def test_a_tenant_that_was_just_refused_costs_no_second_look_at_the_table(world):
    world.table.pause(Pause(tenant="acme", workflow=None, since=0.0, by="test"))
    for tenant in ("acme", "globex"):
        world.intake.changed(world.drop(tenant=tenant))
    fleet = world.runner().fleet
    fleet._avoid["acme"] = float("inf")
    got = [delivery.message.tenant for _ in range(2) for delivery in fleet._receive(OFFER, 0.0)]
    assert got == ["globex"]
    world.clock.move(2)
    fleet._avoid.clear()
    assert [delivery.message.tenant for delivery in fleet._receive(OFFER, 0.0)] == ["acme"], "its message is gone"
