"""What needs a person: which matters there are, in which order, and when they come back."""

from dataclasses import replace

import pytest

from console import attention
from console.senders import SenderHistory, histories_of_jobs
from core.ends import DAY, NUMBERS, EndCounts
from core.jobs import Job, JobError, State
from core.ports import DeadLetter, Message, QueueStats, Resolution
from core.verdicts import Verdict
from tests.contract.jobs import NOW, a_job


def failed(name: str, verdict: Verdict = Verdict.RULE_ERROR, *, at: float = NOW, **more) -> Job:
    return a_job(name, state=State.FAILED, error=JobError(verdict=verdict, message="it broke"), ended_at=at, **more)


def day(n: int, *, rows: int = 100, wrong: int = 0, **more: int) -> EndCounts:
    given = {"files": 1, "rows": rows, "wrong": wrong, **more}
    numbers = tuple(given.get(name, 0) for name in NUMBERS)
    at = NOW - NOW % DAY + n * DAY
    return EndCounts(at=at, numbers=numbers, tenant="acme", workflow="members", last_at=at + 3600, last_job="j")


def sender(*days: EndCounts) -> SenderHistory:
    return SenderHistory(tenant="acme", workflow="members", days=days)


class TestResolving:
    MATTERS = attention.failures([failed("a")])

    def resolution(self, until: float) -> Resolution:
        return Resolution(what=self.MATTERS[0].what, until=until, tenant="acme", at=NOW, by="ann", note="")

    def test_what_was_taken_care_of_is_gone(self):
        assert attention.unresolved(self.MATTERS, [self.resolution(NOW)]) == []

    def test_it_comes_back_when_it_happens_again(self):
        again = attention.failures([failed("a"), failed("b", at=NOW + 1)])
        assert attention.unresolved(again, [self.resolution(NOW)]) == again

    def test_a_resolution_of_something_else_hides_nothing(self):
        other = replace(self.resolution(NOW), what="failures/acme/members/timed_out")
        assert attention.unresolved(self.MATTERS, [other]) == self.MATTERS


def test_failures_are_one_matter_for_each_sender_and_cause():
    jobs = [failed("a"), failed("b", at=NOW + 5), failed("c", Verdict.INPUT_UNREADABLE), failed("d", tenant="north")]
    found = {one.what: one for one in attention.failures(jobs)}
    assert set(found) == {
        "failures/acme/members/rule_error", "failures/acme/members/input_unreadable", "failures/north/members/rule_error",
    }  # fmt: skip
    both = found["failures/acme/members/rule_error"]
    assert (both.count, both.happened, both.link.startswith("/jobs?")) == (2, NOW + 5, True)
    assert found["failures/north/members/rule_error"].link == "/jobs/north-members-d"


def test_what_is_ours_comes_first_and_what_can_wait_last():
    ours, theirs = failed("a", Verdict.STORE_FAILED), failed("b", Verdict.INPUT_UNREADABLE)
    waiting = a_job("c", state=State.AWAITING, created_at=NOW - 7200)
    review = a_job("d", state=State.REVIEW, due_at=NOW + 7 * DAY)
    letters = [DeadLetter(message=Message(job_id="x", tenant="t"), reason="store", at=NOW)]
    matters = [
        *attention.incomplete([waiting], NOW), *attention.reviews([review], NOW), *attention.failures([theirs, ours]),
        *attention.buried(letters),
    ]  # fmt: skip
    kinds = [(one.kind, one.urgency) for one in attention.unresolved(matters, [])]
    assert kinds == [("dead", 0), ("failures", 0), ("failures", 1), ("review", 1), ("waiting", 2)]


def test_a_review_that_soon_runs_out_is_urgent():
    (soon,) = attention.reviews([a_job("a", state=State.REVIEW, due_at=NOW + 60)], NOW)
    assert soon.urgency == attention.NOW


def test_a_missed_deadline_is_said_once_and_beats_the_rhythm():
    missing = a_job("a", state=State.AWAITING, params={"expected": "2026-01-01 09:00 UTC"}, created_at=NOW)
    late = sender(*(day(n) for n in (-20, -19, -18, -17)))
    assert [one.kind for one in attention.incomplete([missing], NOW)] == ["missing"]
    assert attention.of_senders([late], NOW, [missing]) == []
    assert [one.what for one in attention.of_senders([late], NOW, [])] == ["late/acme/members"]


def test_a_paused_queue_is_not_stuck():
    old = QueueStats(ready=1, in_flight=0, delayed=0, dead=0, oldest_seconds=5000.0)
    assert [one.what for one in attention.stuck([], old, NOW, paused=False)] == ["queue"]
    assert attention.stuck([], old, NOW, paused=True) == []


class TestSenders:
    def test_the_last_day_is_compared_with_those_before(self):
        one = sender(day(-3, wrong=1), day(-2, wrong=1), day(-1, wrong=4))
        assert (one.rate, one.rate_before, one.is_rising, one.is_bad) == (0.04, 0.01, True, True)
        assert not sender(day(-2, wrong=4), day(-1, wrong=5)).is_bad

    def test_many_errors_are_bad_from_the_first_day_on(self):
        assert sender(day(-1, wrong=35)).is_bad
        assert not sender(day(-1, wrong=3)).is_bad

    @pytest.mark.parametrize(
        ("days", "late"),
        [
            ((-4, -3, -2, -1), False),
            ((-7, -6, -5, -4), True),
            ((-28, -21, -14, -7), False),
            ((-27, -26, -25), False),  # too few to tell
            ((-13, -12, -11, -10, -9, -6, -5, -4, -3, -2), False),  # a weekend
            ((-14, -13, -12, -11, -8, -7, -6, -5), True),
        ],
    )
    def test_late_is_by_the_senders_own_rhythm(self, days: tuple[int, ...], late: bool):
        assert sender(*(day(n) for n in days)).is_late(NOW) is late

    def test_jobs_that_were_never_counted_count_as_if_they_were(self):
        ended = [a_job(f"j{n}", state=State.SUCCEEDED, ended_at=NOW + n, summary={"rows_out": 5}) for n in range(3)]
        (one,) = histories_of_jobs([*ended, a_job("q")])
        assert (one.sum("files"), one.sum("rows"), one.last_at) == (3, 15, NOW + 2)
        (new,) = histories_of_jobs([a_job("q")])
        assert (new.days, new.rate, new.is_late(NOW)) == ((), None, False)
