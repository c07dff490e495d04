"""What an operator does to a job: each command works where it may, says why where it may not, and can be repeated."""

import json
from dataclasses import replace

import pytest

from core.errors import IllegalTransition, UsageError
from core.jobs import State
from core.ports import Message
from core.verdicts import Verdict

LATEST = "outputs/acme/d/a.csv/members/latest.json"
INPUT = "inbox/acme/d/a.csv"


def dropped(world, **manifest):
    world.intake.changed(world.drop(**manifest))
    (job,) = world.jobs()
    return job


def ended(world, verdict=Verdict.OK):
    world.sandbox.verdict = verdict
    dropped(world)
    world.work_off(world.runner())
    (job,) = world.jobs()
    return job


def sent(world):
    """The job of the message that is in the queue."""
    return [d.message.job_id for d in world.queue.receive(most=5, wait=0, visibility=30)]


def test_a_job_that_has_not_started_is_cancelled_at_once(world):
    job = dropped(world)
    cancelled = world.control.cancel(job.job_id)
    assert (cancelled.state, cancelled.reason) == (State.CANCELLED, "cancelled by an operator")
    assert cancelled.cancel_requested_at == world.clock.now()
    assert not cancelled.unpublished
    assert world.result(job)["status"] == "CANCELLED"
    world.work_off(world.runner())
    assert world.table.get(job.job_id).state is State.CANCELLED


def test_a_second_cancel_of_a_running_job_keeps_the_time_of_the_first(world):
    job = dropped(world)
    times = []

    def cancel_twice():
        for _ in range(2):
            asked = world.control.cancel(job.job_id)
            times.append((asked.state, asked.cancel_requested_at, asked.updated_at))
            world.clock.move(1)

    world.sandbox.during = cancel_twice
    began = world.clock.now()
    world.handle_one(world.runner())
    assert times == [(State.RUNNING, began, began), (State.RUNNING, began, began + 1)]
    assert world.table.get(job.job_id).state is State.CANCELLED


def test_an_ended_job_cannot_be_cancelled(world):
    with pytest.raises(IllegalTransition, match="is SUCCEEDED; only a job that has not ended can be cancelled"):
        world.control.cancel(ended(world).job_id)


@pytest.mark.parametrize("command", ["cancel", "retry", "reset", "remove"])
def test_a_job_that_does_not_exist_is_named(world, command):
    with pytest.raises(UsageError, match="there is no job acme-x-1"):
        getattr(world.control, command)("acme-x-1")


@pytest.mark.parametrize("verdict", [Verdict.RULE_ERROR, Verdict.WALL_CLOCK, Verdict.INPUT_GONE])
def test_a_job_that_ended_without_success_is_retried(world, verdict):
    job = ended(world, verdict)
    assert job.state in (State.FAILED, State.TIMED_OUT, State.SKIPPED)
    again = world.control.retry(job.job_id)
    assert (again.state, again.reason, again.attempt) == (State.QUEUED, "retried by an operator", 0)
    assert again.enqueued_at == world.clock.now()
    assert sent(world) == [job.job_id]


def test_a_retry_takes_the_dead_letter_back(world):
    job = ended(world, Verdict.RULE_ERROR)
    world.queue.bury(Message(job_id=job.job_id, tenant="acme"), "it could not be published")
    world.control.retry(job.job_id)
    assert world.queue.dead() == ()


def check_refused(world, act, job, why):
    with pytest.raises(IllegalTransition, match=why):
        act(job.job_id)
    assert world.table.get(job.job_id) == job


def test_a_success_is_not_retried(world):
    job = ended(world)
    check_refused(
        world, world.control.retry, job, "this needs a job that is CANCELLED, EXPIRED, FAILED, REVIEW, SKIPPED"
    )


def test_a_reset_runs_again_and_forgets_what_was_no_result(world):
    job = ended(world, Verdict.RULE_ERROR)
    again = world.control.reset(job.job_id)
    assert (again.state, again.reason) == (State.QUEUED, "reset by an operator")
    assert list(world.store.keys("outputs/")) == []
    assert sent(world) == [job.job_id]


def test_a_job_that_has_not_ended_is_not_reset(world):
    job = dropped(world)
    check_refused(world, world.control.reset, job, "is QUEUED")


def test_a_removed_job_is_gone_with_all_that_it_left(world):
    job = ended(world)
    world.put(f"work/{job.job_id}/1/left.txt", b"x")
    assert world.control.remove(job.job_id).job_id == job.job_id
    assert world.jobs() == []
    assert list(world.store.keys("")) == ["inbox/acme/d/manifest.json"]


def test_a_removed_job_may_leave_its_input(world):
    world.control.remove(ended(world).job_id, keep_input=True)
    assert world.store.head(INPUT) is not None


def test_a_removed_job_leaves_a_newer_version_and_look_up_tables(world):
    table = world.put("inbox/acme/d/lookups/plans.csv", b"code\nA\n")
    aux = {"primary": ["*.csv"], "auxiliary": [{"name": "plans", "path": "lookups/plans.csv"}]}
    job = dropped(world, inputs=aux)
    world.put(INPUT, b"id\n2\n")
    world.control.remove(job.job_id)
    assert world.store.head(INPUT) is not None
    assert world.store.head(table) is not None


def test_a_waiting_job_that_a_runner_reaches_while_it_is_removed_loses_no_result(world):
    job = dropped(world)
    retract = world.control._publisher.latest.retract

    def meanwhile(*words, **options):
        world.work_off(world.runner())
        return retract(*words, **options)

    world.control._publisher.latest.retract = meanwhile
    world.control.remove(job.job_id, keep_input=True)
    assert world.table.get(job.job_id) is None, "it was cancelled before anything of it was deleted"
    assert not list(world.store.keys("outputs/"))


def test_a_running_job_is_not_removed(world):
    job = dropped(world)

    def remove():
        with pytest.raises(IllegalTransition, match="is RUNNING; wait until it ends or run `ade cancel"):
            world.control.remove(job.job_id)

    world.sandbox.during = remove
    world.handle_one(world.runner())
    assert world.table.get(job.job_id).state is State.SUCCEEDED
    assert world.store.head(INPUT) is not None
    assert json.loads(world.store.read(LATEST, limit=9999))["job_id"] == job.job_id


def test_a_job_that_changes_while_it_is_removed_says_so(world):
    job = ended(world)
    remove = world.table.remove
    world.table.remove = lambda row: remove(replace(row, rev=row.rev - 1))
    with pytest.raises(IllegalTransition, match="changed in the meantime"):
        world.control.remove(job.job_id)
    assert world.table.get(job.job_id) is not None
