from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.chores import Chore, Timings, chore, stays_until, wake_at
from core.errors import IllegalTransition
from core.jobs import (
    ENDED,
    MAX_HISTORY,
    TRANSITIONS,
    End,
    InputRef,
    Job,
    JobError,
    Lease,
    ObjectRef,
    OutputFile,
    Retry,
    RetryPolicy,
    State,
    again,
    beat,
    decide,
    dump_job,
    first,
    identity,
    job_id,
    load_job,
    move,
    put_back,
    start,
)
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


def test_a_new_round_starts_from_nothing_and_says_why():
    error = JobError(verdict=Verdict.STORE_FAILED, message="the store did not answer")
    failed = replace(
        JOB, state=State.FAILED, attempt=3, attempts_total=3, fence=3, error=error, cancel_requested_at=5.0,
        summary={"rows": 1}, ended_at=6.0, unpublished=True, enqueued_at=4.0, due_at=3.0,
    )  # fmt: skip
    fresh = again(failed, now=9.0, reason="dropped again")
    assert fresh == replace(
        JOB, state=State.QUEUED, reason="dropped again", attempts_total=3, fence=3, updated_at=9.0,
        history=(("QUEUED", 9.0),),
    )  # fmt: skip


@pytest.mark.parametrize("state", sorted(ENDED))
def test_an_end_gives_the_lease_up_and_has_to_be_published_but_for_a_success(state):
    origin = next(s for s in State if state in TRANSITIONS[s])
    lease = Lease(owner="r", expires=130.0)
    over = move(replace(JOB, state=origin, lease=lease, waiting_for=("x",), reason="why"), state, now=9.0)
    assert (over.lease, over.ended_at, over.updated_at, over.waiting_for, over.reason) == (None, 9.0, 9.0, (), "")
    assert over.unpublished is (state is not State.SUCCEEDED)


def test_the_history_keeps_the_newest_states():
    old = tuple((f"{n}", float(n)) for n in range(MAX_HISTORY))
    history = move(replace(JOB, history=old), State.CANCELLED, now=99.0).history
    assert history == (*old[1:], ("CANCELLED", 99.0))


def test_a_row_made_anew_has_a_greater_fence_and_rev_than_every_one_that_was_removed():
    assert (first(JOB, 0).fence, first(JOB, 0).rev) == (0, 1)
    assert first(JOB, 7).fence == 7
    assert first(replace(JOB, fence=9), 7).fence == 9
    assert first(JOB, 7).rev > first(JOB, 6).rev + 1_000_000


@pytest.mark.parametrize("state", sorted(State))
def test_what_is_put_back_is_the_newest_of_its_line(state):
    job = replace(JOB, state=state, stamp=1.0, ended_at=2.0)
    after = put_back(job, now=9.0, stamp=5.0)
    match state:
        case State.PUBLISHING:
            assert after is job
        case State.SUCCEEDED:
            assert after == replace(job, stamp=5.0, unpublished=True, updated_at=9.0, ended_at=9.0)
        case _:
            assert after == replace(job, stamp=5.0)


def test_jobs_of_one_generation_have_the_same_config_and_primary_inputs_in_any_order():
    def ref(digest, role="primary"):
        return InputRef(role=role, name=digest, ref=ObjectRef(key=digest, version="", digest=digest, size=1))

    one = replace(JOB, config_digest="c", inputs=(ref("a"), ref("b"), ref("x", "auxiliary")))
    assert one.generation == replace(one, inputs=(ref("b"), ref("a"))).generation
    assert one.generation != replace(one, inputs=(ref("a"),)).generation
    assert one.generation != replace(one, config_digest="d").generation


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


@pytest.mark.parametrize("to", [State.SKIPPED, State.CANCELLED, State.FAILED])
def test_a_review_that_ends_names_none_of_its_questions(to):
    """Its end removes them, also those that a dead runner left staged."""
    question = OutputFile(name="review.json", size=2, sha256="0" * 64)
    asked = replace(JOB, state=State.REVIEW, files=(question,))
    assert move(asked, to, now=9.0).files == ()


@pytest.mark.parametrize("verdict", [v for v in Verdict if FAULTS[v] in (Fault.INPUT, Fault.CONFIG, Fault.LIMIT)])
def test_faults_that_are_not_ours_end_the_job_at_once(verdict):
    assert isinstance(decide(verdict, attempt=1, policy=POLICY, jitter=0.5), End)


@pytest.mark.parametrize(
    ("verdict", "state"),
    [
        (Verdict.CANCELLED, State.CANCELLED),
        (Verdict.WALL_CLOCK, State.TIMED_OUT),
        (Verdict.INPUT_GONE, State.SKIPPED),
        (Verdict.INPUT_UNREADABLE, State.FAILED),
        (Verdict.RULE_ERROR, State.FAILED),
        (Verdict.MEMORY, State.FAILED),
    ],
)
def test_the_verdict_names_the_end(verdict, state):
    assert decide(verdict, attempt=1, policy=POLICY, jitter=0.5) == End(state)


def test_a_released_job_is_tried_again_at_once_however_often():
    assert decide(Verdict.RELEASED, attempt=99, policy=POLICY, jitter=0.5) == Retry(0.0, counts=False)


@pytest.mark.parametrize(
    ("attempt", "jitter", "delay"), [(1, 0.0, 1.0), (1, 0.5, 1.5), (2, 0.0, 2.0), (5, 0.0, 16.0), (9, 0.0, 30.0)]
)
def test_the_delay_doubles_up_to_its_cap(attempt, jitter, delay):
    policy = RetryPolicy(max_attempts=10, backoff_seconds=2, backoff_cap_seconds=60)
    assert decide(Verdict.BOX_FAILED, attempt=attempt, policy=policy, jitter=jitter) == Retry(delay)


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
    awaiting = replace(JOB, state=State.AWAITING)
    assert wake_at(awaiting, Timings()) is None
    assert chore(awaiting, 1e12, Timings()) is None


def test_an_id_is_readable_and_the_same_for_the_same_facts():
    facts = {"tenant": "Acme Inc.", "workflow": "members", "subject": "m.xlsx", "config_digest": "c", "inputs": ["i"]}
    whole = identity(**facts, params={"b": 1, "a": 2})
    assert whole == identity(**facts, params={"a": 2, "b": 1})
    assert job_id("Acme Inc.", "members", whole).startswith("acme-inc-members-")
    assert len(job_id("a", "b", whole).rpartition("-")[2]) == 8
    assert identity(**facts, params={}) != whole


KEEPS = Timings(retention_seconds=100, latest_retention_seconds=1000)
OLD = replace(JOB, job_id="old", state=State.SUCCEEDED, ended_at=0.0)
NEW = replace(JOB, job_id="new", state=State.SUCCEEDED, ended_at=200.0)
A_DAY = 86_400.0


def test_the_newest_success_stays_for_as_long_as_the_newest_may():
    assert stays_until(OLD, OLD, 100.0, KEEPS) == 1000.0
    assert stays_until(OLD, OLD, 1000.0, KEEPS) is None
    long = replace(KEEPS, latest_retention_seconds=30 * A_DAY)
    assert stays_until(OLD, OLD, 100.0, long) == 100.0 + A_DAY, "whether a newer one has come is asked once a day"


def test_an_older_success_goes_when_the_newer_one_is_as_old_as_the_retention():
    assert stays_until(OLD, NEW, 250.0, KEEPS) == 300.0
    assert stays_until(OLD, NEW, 300.0, KEEPS) is None
    assert stays_until(OLD, replace(NEW, ended_at=5000.0), 999.0, KEEPS) == 1000.0


@pytest.mark.parametrize(
    ("row", "after"),
    [
        ({}, 100.0),  # recorded before results were promised anything
        ({"keep_days": 0.0005}, 43.2),
        ({"keep_days": 1.0}, A_DAY),
        ({"keep_days": 9.0}, 2 * A_DAY),  # capped
        ({"retention_seconds": 70.0}, 100.0),  # the settings were raised since
        ({"retention_seconds": 170.0}, 170.0),  # or lowered: what was promised holds
        ({"keep_days": 9.0, "retention_seconds": 9 * A_DAY}, 9 * A_DAY),
    ],
)
def test_a_result_expires_by_its_row(row, after):
    timings = replace(KEEPS, longest_retention_seconds=2 * A_DAY)
    assert wake_at(replace(OLD, **row), timings) == pytest.approx(after)


def test_a_start_never_shortens_what_was_promised():
    first = start(JOB, owner="a", now=0.0, lease_seconds=30.0, retention_seconds=100.0)
    again = start(replace(first, state=State.QUEUED), owner="a", now=5.0, lease_seconds=30.0, retention_seconds=10.0)
    assert (first.retention_seconds, again.retention_seconds) == (100.0, 100.0)


def test_without_that_setting_a_success_expires_like_every_end():
    assert stays_until(OLD, OLD, 100.0, Timings(retention_seconds=100)) is None
