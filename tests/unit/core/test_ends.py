"""What the end of a job counts."""

from dataclasses import replace

import pytest

from core.ends import DELAYS, EndCounts, end_counts
from core.jobs import Job, State
from tests.contract.jobs import NOW, a_job


def ended(job: Job, state: State = State.SUCCEEDED, *, at: float = NOW + 2, before: State = State.PUBLISHING):
    return end_counts(replace(job, state=before), replace(job, state=state, ended_at=at))


def delay_of(history, at: float) -> float | None:
    counts = ended(a_job("a", history=tuple(history)), at=at)
    assert counts is not None
    n = counts[0].delays.index(1)
    return DELAYS[n] if n < len(DELAYS) else None


def test_a_delay_is_counted_from_the_queue_on_not_from_a_review_or_an_earlier_round():
    assert delay_of([("QUEUED", NOW), ("RUNNING", NOW + 1)], NOW + 2) == 3.0
    assert delay_of([("QUEUED", NOW), ("RUNNING", NOW), ("QUEUED", NOW + 20)], NOW + 25) == 30.0  # tried again
    assert delay_of([("QUEUED", NOW), ("REVIEW", NOW + 9), ("QUEUED", NOW + 9000)], NOW + 9001) == 1.0
    assert delay_of([("QUEUED", NOW), ("FAILED", NOW + 9), ("QUEUED", NOW + 9000)], NOW + 9001) == 1.0
    assert delay_of([("QUEUED", NOW)], NOW + 9000) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (State.RUNNING, State.SUCCEEDED),  # a job that was reset: its earlier result stays
        (State.SUCCEEDED, State.SUCCEEDED),
        (State.FAILED, State.EXPIRED),
        (State.RUNNING, State.CANCELLED),
        (State.QUEUED, State.SKIPPED),
        (State.RUNNING, State.REVIEW),
    ],
)
def test_a_write_that_ends_no_work_counts_nothing(before: State, after: State):
    assert ended(a_job("a"), after, before=before) is None


@pytest.mark.parametrize(
    "summary", [{}, {"rows_out": "x", "rows_with_errors": None, "left_out": 3}, {"rows_out": True}]
)
def test_a_summary_of_any_shape_counts(summary: dict):
    counts = ended(a_job("a", summary=summary))
    assert counts is not None
    assert (counts[0]["files"], counts[0]["rows"]) == (1, 0)
    assert counts[0].error_rate is None


def test_a_failure_counts_no_rows():
    counts = ended(a_job("a", summary={"rows_out": 9}), State.FAILED, before=State.RUNNING)
    assert counts is not None
    assert (counts[0]["files"], counts[0]["failed"], counts[0]["rows"]) == (1, 1, 0)


def test_sums_keep_the_newest():
    first = ended(a_job("a"), at=NOW + 9)
    second = ended(a_job("b"), at=NOW + 3)
    assert first is not None
    assert second is not None
    both: EndCounts = first[1] + second[1]
    assert (both["files"], both.last_job) == (2, first[1].last_job)
