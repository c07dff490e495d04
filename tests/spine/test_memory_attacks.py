"""What happens to a memory between the pin and the run, and what happens to those that learn at the same time."""

import json

import pytest

from core.jobs import State
from core.memories import own_key, parse_memory
from infra.memories import read_memory
from tests.spine.test_reviews import ANSWER, DECISION, REVIEWED, answer, asking
from tests.support.world import World

OWN = own_key("acme", "members")
SHARED = "configs/_shared/names.memory.json"


@pytest.fixture
def local(tmp_path):
    made = World(tmp_path)
    yield made
    made.close()


def used(world):
    """The memories that the only job was given, as its order says."""
    (job,) = world.jobs()
    assert job.state is State.SUCCEEDED, job.error
    return job, {ref.key for ref in job.memories}


def memory(header="a"):
    at = "2026-01-31T00:00:00Z"
    return json.dumps({"memory": 1, "headers": [{"header": header, "field": "id", "at": at}]}).encode()


@pytest.mark.parametrize(
    ("becomes", "kept", "said"),
    [
        (memory("b"), {OWN}, None),
        (None, set(), None),
        (b"{", set(), "does not validate at $"),
        (b'{"memory": 1, "headers": [{"header": "' + b"x" * (9 << 20) + b'"}]}', set(), "more than 8388608 bytes"),
        (b'{"memory": 2}', set(), "does not validate at $.memory"),
        (b'{"memory": 1, "shapes": [{"sender": 1}]}', set(), "does not validate at $.shapes[0].at"),
    ],
    ids=["replaced", "deleted", "corrupt", "oversized", "newer", "wrong shape"],
)
def test_whatever_becomes_of_a_pinned_memory_the_job_runs_and_is_told(local, becomes, kept, said):
    local.put(OWN, memory())
    local.intake.changed(local.drop())
    if becomes is None:
        local.store.delete(OWN)
    else:
        local.put(OWN, becomes)
    local.work_off(local.runner())
    assert used(local)[1] == kept
    refused = local.sandbox.orders[0].refused
    assert [key for key, why in refused.items() if said in why] == ([OWN] if said else [])
    assert len(refused) == (said is not None)


def test_a_memory_that_was_broken_when_the_job_asked_is_used_after_the_answer(local):
    local.put(OWN, b"{")
    job, runner = asking(local)
    assert {ref.key for ref in job.memories} == {OWN}
    local.put(OWN, memory())
    answer(local, remember=False)
    local.work_off(runner)
    assert used(local)[1] == {OWN}


def test_a_shared_memory_that_is_not_there_is_named(local):
    local.intake.changed(local.drop(mapping={"memory": [SHARED]}))
    local.work_off(local.runner())
    assert local.sandbox.orders[0].refused == {SHARED: "there is none"}


def test_a_shared_memory_that_was_broken_for_a_while_is_used_by_the_next_round(local):
    local.put(SHARED, memory())
    local.intake.changed(local.drop(mapping={"memory": [SHARED]}))
    local.put(SHARED, b"{")
    local.work_off(local.runner())
    job, keys = used(local)
    assert keys == set()
    local.put(SHARED, memory("b"))
    local.control.reset(job.job_id)
    local.work_off(local.runner())
    job, keys = used(local)
    assert keys == {SHARED}
    (ref,) = job.memories
    assert ref.digest == local.store.head(SHARED).ref.digest


def test_jobs_of_one_decision_teach_it_once(local):
    """One file, several workflows of one memory each, and several sets of parameters: one word of one person."""
    local.sandbox.asks = True
    local.put(DECISION, ANSWER | {"workflow": None})
    local.intake.changed([*local.drop(sweep={"year": [2025, 2026, 2027]}, **REVIEWED), DECISION])
    local.work_off(local.runner())
    assert {j.state for j in local.jobs()} == {State.SUCCEEDED}
    assert len(local.jobs()) == 3
    found = read_memory(local.store, OWN).memory
    assert [e.count for e in (*found.headers, *found.shapes)] == [1, 1]


def test_the_memory_that_is_written_is_one_that_can_be_read(local):
    _, runner = asking(local)
    answer(local, answers=[{"header": "ID No " * 80, "field": "id"}])
    local.work_off(runner)
    assert parse_memory(local.store.read(OWN, limit=1 << 20)).headers
