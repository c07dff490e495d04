from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.chores import Chore, Timings, chore, wake_at
from core.errors import IllegalTransition
from core.ids import identity, job_id
from core.jobs import ENDED, TRANSITIONS, Job, Lease, State, again, beat, move, start
from core.records import dump_job, load_job
from core.retries import End, Retry, RetryPolicy, decide
from core.verdicts import FAULTS, Fault, Verdict

JOB = Job(job_id="a-b-1", identity="1", tenant="a", workflow="b", subject="x.csv", state=State.QUEUED, updated_at=100.0)
POLICY = RetryPolicy(max_attempts=3, backoff_seconds=2)


def test_every_state_has_its_transitions():
    assert set(TRANSITIONS) == set(State)


@pytest.mark.parametrize("state", list(State))
def test_an_arrow_that_is_not_in_the_table_is_refused(state):
    for to in set(State) - TRANSITIONS[state]:
        with pytest.raises(IllegalTransition, match=f"is {state} and cannot become {to}"):
            move(replace(JOB, state=state), to, now=1.0)


def test_every_ended_state_can_be_run_again():
    for state in ENDED:
        assert again(replace(JOB, state=state), now=1.0, reason="").state is State.QUEUED


def test_a_start_takes_a_new_fence_and_counts_an_attempt():
    running = start(JOB, owner="r", now=5.0, lease_seconds=30)
    assert (running.fence, running.attempt, running.lease) == (1, 1, Lease(owner="r", expires=35.0))
    assert beat(running, now=20.0, lease_seconds=30).lease == Lease(owner="r", expires=50.0)


def test_only_a_running_job_has_a_heartbeat():
    with pytest.raises(IllegalTransition):
        beat(JOB, now=1.0, lease_seconds=1)


def test_a_record_survives_its_codec():
    job = start(JOB, owner="r", now=5.0, lease_seconds=30)
    assert load_job(dump_job(job)) == job


def test_every_verdict_has_a_fault():
    assert set(FAULTS) == set(Verdict)


@pytest.mark.parametrize("verdict", [v for v in Verdict if FAULTS[v] in (Fault.INPUT, Fault.CONFIG, Fault.LIMIT)])
def test_faults_that_are_not_ours_end_the_job_at_once(verdict):
    assert isinstance(decide(verdict, attempt=1, policy=POLICY, jitter=0.5), End)


@given(attempt=st.integers(1, 2), jitter=st.floats(0, 1, exclude_max=True))
def test_our_faults_back_off_with_jitter(attempt, jitter):
    decision = decide(Verdict.BOX_FAILED, attempt=attempt, policy=POLICY, jitter=jitter)
    assert isinstance(decision, Retry)
    assert 2 ** (attempt - 1) <= decision.delay <= 2**attempt


def test_our_faults_end_the_job_when_its_tries_are_used_up():
    assert decide(Verdict.STORE_FAILED, attempt=3, policy=POLICY, jitter=0) == End(State.FAILED)


@pytest.mark.parametrize(
    ("changes", "due", "what"),
    [
        ({"state": State.QUEUED}, 102.0, Chore.RESEND),
        ({"state": State.QUEUED, "enqueued_at": 100.0}, 1000.0, Chore.RESEND),
        ({"state": State.SCHEDULED, "due_at": 500.0}, 500.0, Chore.ENQUEUE),
        ({"state": State.RUNNING, "lease": Lease(owner="r", expires=130.0)}, 130.0, Chore.RESCUE),
        ({"state": State.PUBLISHING}, 130.0, Chore.PUBLISH),
        ({"state": State.FAILED, "unpublished": True}, 102.0, Chore.PUBLISH),
        ({"state": State.SKIPPED, "unpublished": True}, 100.0, Chore.PUBLISH),
        ({"state": State.SUCCEEDED, "ended_at": 100.0}, 100.0 + 48 * 3600, Chore.EXPIRE),
        ({"state": State.EXPIRED, "unpublished": True}, 102.0, Chore.PUBLISH),
        ({"state": State.EXPIRED}, 100.0 + 48 * 3600, Chore.FORGET),
    ],
)
def test_each_state_has_its_chore_at_its_time(changes, due, what):
    job = replace(JOB, **changes)
    assert wake_at(job, Timings()) == due
    assert chore(job, due - 0.001, Timings()) is None
    assert chore(job, due, Timings()) is what


def test_an_expired_row_rests_for_an_hour_however_short_the_retention():
    assert wake_at(replace(JOB, state=State.EXPIRED), Timings(retention_seconds=0)) == JOB.updated_at + 3600


def test_nothing_wakes_a_job_that_waits_for_an_upload():
    assert wake_at(replace(JOB, state=State.AWAITING), Timings()) is None


def test_an_id_is_readable_and_the_same_for_the_same_facts():
    facts = {"tenant": "Acme Inc.", "workflow": "members", "subject": "m.xlsx", "config_digest": "c", "inputs": ["i"]}
    whole = identity(**facts, params={"b": 1, "a": 2})
    assert whole == identity(**facts, params={"a": 2, "b": 1})
    assert job_id("Acme Inc.", "members", whole).startswith("acme-inc-members-")
    assert len(job_id("a", "b", whole).rpartition("-")[2]) == 8
    assert identity(**facts, params={}) != whole
