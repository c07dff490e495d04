"""Words and numbers that others rely on: they are in rows, results and documents, so none may change unnoticed."""

from dataclasses import replace

import pytest

from core.chores import Chore, Timings, chore, defer, resting, sent_anyway, wake_at
from core.jobs import (
    ENDED,
    RETRIABLE,
    TRANSITIONS,
    UNSTARTED,
    End,
    Job,
    Lease,
    Retry,
    RetryPolicy,
    State,
    decide,
    move,
    start,
)
from core.verdicts import FAULTS, Verdict

S = State
BACK = {S.EXPIRED, S.QUEUED, S.AWAITING, S.SCHEDULED}
JOB = Job(job_id="a-b-1", identity="1", tenant="a", workflow="b", subject="x.csv", state=S.QUEUED, updated_at=100.0)

WHOSE = {
    "ok": "nobody", "input_unreadable": "input", "nothing_mapped": "input", "empty_input": "input", "rows_rejected": "input", "drifted": "input",
    "mends": "input", "needs_review": "nobody", "review_expired": "input", "input_gone": "input",
    "rule_error": "config", "config_refused": "config", "bad_output": "config", "cpu": "limit", "memory": "limit",
    "wall_clock": "limit", "file_size": "limit", "processes": "limit", "signal": "config", "cancelled": "nobody",
    "lease_lost": "ours", "released": "ours", "box_failed": "ours", "engine_failed": "ours", "store_failed": "ours", "runner_lost": "ours",
}  # fmt: skip


def test_every_verdict_has_its_word_its_fault_and_its_end():
    assert {str(verdict): str(fault) for verdict, fault in FAULTS.items()} == WHOSE
    assert [str(verdict) for verdict in Verdict] == list(WHOSE)
    ends = {str(v): decide(v, attempt=3, policy=RetryPolicy(), jitter=0.0) for v in Verdict if v is not Verdict.OK}
    told = {"cancelled": S.CANCELLED, "wall_clock": S.TIMED_OUT, "input_gone": S.SKIPPED}
    assert ends == {
        word: Retry(0.0, counts=False) if word == "released" else End(told.get(word, S.FAILED)) for word in ends
    }


def test_every_state_has_its_word_and_its_arrows():
    assert [str(state) for state in State] == [state.name for state in State]
    assert {*UNSTARTED} == {S.AWAITING, S.SCHEDULED, S.QUEUED}
    assert {*ENDED} == {S.SUCCEEDED, S.FAILED, S.TIMED_OUT, S.CANCELLED, S.SKIPPED, S.EXPIRED}
    assert {*RETRIABLE} == {S.FAILED, S.TIMED_OUT, S.CANCELLED, S.EXPIRED}
    assert {state: {*to} for state, to in TRANSITIONS.items()} == {
        S.AWAITING: {S.SCHEDULED, S.QUEUED, S.SKIPPED, S.CANCELLED},
        S.SCHEDULED: {S.QUEUED, S.SKIPPED, S.CANCELLED},
        S.QUEUED: {S.RUNNING, S.SKIPPED, S.CANCELLED, S.SUCCEEDED},
        S.RUNNING: {S.PUBLISHING, S.REVIEW, S.QUEUED, S.FAILED, S.TIMED_OUT, S.CANCELLED, S.SKIPPED, S.SUCCEEDED},
        S.REVIEW: {S.QUEUED, S.CANCELLED, S.SKIPPED, S.FAILED, S.SUCCEEDED},
        S.PUBLISHING: {S.SUCCEEDED, S.QUEUED, S.FAILED},
        S.SUCCEEDED: {S.EXPIRED, S.QUEUED},
        S.FAILED: BACK, S.TIMED_OUT: BACK, S.CANCELLED: BACK, S.SKIPPED: BACK, S.EXPIRED: BACK - {S.EXPIRED},
    }  # fmt: skip
    assert move(replace(JOB, deferred_until=5.0), S.CANCELLED, now=1.0).deferred_until is None


def test_the_defaults_are_those_that_are_documented():
    assert RetryPolicy() == RetryPolicy(max_attempts=3, backoff_seconds=2.0, backoff_cap_seconds=300.0)
    assert Timings() == Timings(
        lease_seconds=30.0, retention_seconds=172800.0, resend_seconds=900.0, watch_seconds=0.0, grace_seconds=2.0
    )
    assert decide(Verdict.BOX_FAILED, attempt=1, policy=RetryPolicy(), jitter=0.0) == Retry(1.0, counts=True)
    assert decide(Verdict.BOX_FAILED, attempt=2, policy=RetryPolicy(), jitter=0.0) == Retry(2.0, counts=True)
    spared = [decide(Verdict.BOX_FAILED, attempt=1, policy=RetryPolicy(), jitter=0.0, spared=n) for n in (0, 1, 5, 999)]
    assert spared == [Retry(1.0), Retry(2.0), Retry(32.0), Retry(32.0)]
    late = RetryPolicy(max_attempts=99)
    assert decide(Verdict.BOX_FAILED, attempt=30, policy=late, jitter=0.0) == Retry(150.0)
    fresh = Job(job_id="j", identity="i", tenant="t", workflow="w", subject="s")
    assert (fresh.state, fresh.params, fresh.summary, fresh.sandbox, fresh.unknown) == (S.AWAITING, {}, {}, {}, {})


@pytest.mark.parametrize("attempt", [1, 3, 99])
def test_what_the_surroundings_did_is_tried_again_however_often(attempt):
    again = decide(Verdict.STORE_FAILED, attempt=attempt, policy=RetryPolicy(), jitter=0.5, blameless=True)
    assert isinstance(again, Retry)
    assert not again.counts
    assert not isinstance(decide(Verdict.RULE_ERROR, attempt=1, policy=RetryPolicy(), jitter=0, blameless=True), Retry)


@pytest.mark.parametrize(("late", "seconds"), [(0, 10), (9, 10), (11, 11), (299, 299), (301, 300)])
def test_a_chore_steps_back_for_as_long_as_it_is_overdue_within_bounds(late, seconds):
    job = replace(JOB, state=S.SCHEDULED, due_at=1000.0)
    back = defer(job, 1000.0 + late, Timings())
    assert back.deferred_until == 1000.0 + late + seconds
    assert wake_at(back, Timings()) == back.deferred_until
    assert chore(back, back.deferred_until - 0.1, Timings()) is None
    assert chore(back, back.deferred_until, Timings()) is Chore.ENQUEUE
    assert defer(replace(JOB, state=S.AWAITING), 50.0, Timings()).deferred_until == 60.0


def test_a_message_is_sent_anyway_after_six_hours_twelve_and_so_on():
    hour, job = 3600.0, replace(JOB, history=(("QUEUED", 0.0),))
    looks = [(0, 5.99, False), (0, 6, True), (5, 6, True), (6, 6.5, False), (6, 12, True), (7, 11.9, False),
             (12, 23.9, False), (12, 24, True), (24, 47, False), (24, 48, True)]  # fmt: skip
    for looked, now, sent in looks:
        at = replace(job, enqueued_at=looked * hour or 1.0)
        assert sent_anyway(at, now * hour) is sent, f"looked at after {looked} hours, now {now}"
    assert not sent_anyway(replace(job, enqueued_at=None), 7 * hour)


def test_every_chore_has_its_word():
    words = ["enqueue", "resend", "rescue", "publish", "expire", "forget", "close_review", "notify"]
    assert [str(one) for one in Chore] == words
    assert str(chore(replace(JOB, state=S.PUBLISHING), 200.0, Timings())) == "publish"


def test_only_what_has_ended_and_is_published_rests():
    for state in State:
        for unpublished in (False, True):
            job = replace(JOB, state=state, unpublished=unpublished)
            assert resting(job) is (state is S.EXPIRED or (state in ENDED and not unpublished))


def test_a_row_that_lacks_a_time_is_scanned_by_its_last_write():
    assert wake_at(replace(JOB, state=S.SCHEDULED, due_at=None), Timings()) == 100.0
    assert wake_at(replace(JOB, state=S.RUNNING, lease=None), Timings()) == 100.0
    assert wake_at(replace(JOB, state=S.FAILED, ended_at=None), Timings()) == 100.0 + 172800.0


def test_a_move_changes_what_its_state_asks_for_and_nothing_else():
    running = start(replace(JOB, enqueued_at=5.0, due_at=6.0, reason="waiting", deferred_until=7.0), owner="r",
                    now=200.0, lease_seconds=30.0)  # fmt: skip
    assert running == replace(
        JOB, state=S.RUNNING, enqueued_at=5.0, due_at=6.0, lease=Lease(owner="r", expires=230.0), fence=1, attempt=1,
        attempts_total=1, started_at=200.0, updated_at=200.0, history=(("RUNNING", 200.0),),
    )  # fmt: skip
    history = (("RUNNING", 200.0), ("PUBLISHING", 300.0))
    committed = move(running, S.PUBLISHING, now=300.0)
    assert committed == replace(running, state=S.PUBLISHING, updated_at=300.0, history=history)
    assert move(committed, S.SUCCEEDED, now=400.0) == replace(
        committed, state=S.SUCCEEDED, lease=None, ended_at=400.0, updated_at=400.0,
        history=(*history, ("SUCCEEDED", 400.0)),
    )  # fmt: skip
    assert move(running, S.FAILED, now=400.0).unpublished
    queued = move(replace(running, unpublished=True, ended_at=3.0), S.QUEUED, now=400.0)
    assert queued == replace(
        running, state=S.QUEUED, lease=None, enqueued_at=None, due_at=None, ended_at=None, unpublished=False,
        updated_at=400.0, history=(("RUNNING", 200.0), ("QUEUED", 400.0)),
    )  # fmt: skip
