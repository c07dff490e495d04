"""How many files and rows came to an end, by time: what pages draw rates from without reading jobs.

A table adds to the counters in the write that ends a job. That write is conditional, so each end counts once, however
often it is tried; a job that runs again counts again. Counters only grow, and what is too old is deleted.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from core.jobs import Job, State

STEP: Final = 300.0  # seconds of one counter of all jobs
DAY: Final = 86400.0  # of one counter of a sender: a tenant's workflow
COUNTER_SECONDS: Final = 8 * DAY  # that counters of all jobs stay
SENDER_SECONDS: Final = 28 * DAY  # that counters of a sender stay
DELAYS: Final = (1.0, 3.0, 10.0, 30.0, 120.0, 600.0)  # seconds that a delay is counted by; the last counter is of more
NUMBERS: Final = ("files", "failed", "rows", "wrong", "drifted", *(f"delay{n}" for n in range(len(DELAYS) + 1)))
_PLACES: Final = {name: n for n, name in enumerate(NUMBERS)}
_COUNTED = frozenset({State.SUCCEEDED, State.FAILED, State.TIMED_OUT})
_WAITED = frozenset({State.AWAITING, State.SCHEDULED, State.REVIEW, *_COUNTED, State.CANCELLED, State.SKIPPED})


@dataclass(frozen=True, kw_only=True, slots=True)
class EndCounts:
    """The jobs that ended within one stretch of time: of all senders, or of one."""

    at: float  # when the stretch begins
    numbers: tuple[int, ...]  # as NUMBERS says
    tenant: str = ""  # empty: of all
    workflow: str = ""
    last_at: float = 0.0  # the newest end, and whose it was
    last_job: str = ""

    def __getitem__(self, name: str) -> int:
        return self.numbers[_PLACES[name]]

    def __add__(self, other: "EndCounts") -> "EndCounts":
        """Both together; begins where this one does."""
        numbers = tuple(a + b for a, b in zip(self.numbers, other.numbers, strict=True))
        newer = other if other.last_at >= self.last_at else self
        return replace(self, numbers=numbers, last_at=newer.last_at, last_job=newer.last_job)

    @property
    def delays(self) -> tuple[int, ...]:
        """How many files took up to each of DELAYS, and how many longer."""
        return self.numbers[-len(DELAYS) - 1 :]

    @property
    def error_rate(self) -> float | None:
        """The share of rows with errors; None: there were no rows."""
        return min(1.0, self["wrong"] / self["rows"]) if self["rows"] else None


def added_up(counts: Sequence[EndCounts]) -> EndCounts:
    """All together; begins where the first one does."""
    newest = max(counts, key=lambda one: one.last_at)
    numbers = tuple(map(sum, zip(*(one.numbers for one in counts), strict=True)))
    return replace(counts[0], numbers=numbers, last_at=newest.last_at, last_job=newest.last_job)


def end_counts(old: Job, new: Job) -> tuple[EndCounts, EndCounts] | None:
    """What a write adds, to the counter of all and to the sender's; None: it ends no work on a file.

    A job that was reset and did not succeed again keeps its earlier result, and ends nothing.
    """
    if old.state in _COUNTED or (new.state is State.SUCCEEDED and old.state is not State.PUBLISHING):
        return None
    return counts_of_end(new)


def counts_of_end(new: Job) -> tuple[EndCounts, EndCounts] | None:
    """What the end of a job counts, as `end_counts`; None: it has not ended, or ended without work on a file."""
    if new.state not in _COUNTED or new.replay:
        return None
    at = new.ended_at if new.ended_at is not None else new.updated_at
    numbers = _numbers(new, max(0.0, at - _began(new)))
    of_all = EndCounts(at=at - at % STEP, numbers=numbers, last_at=at, last_job=new.job_id)
    return of_all, replace(of_all, at=at - at % DAY, tenant=new.tenant, workflow=new.workflow)


def _numbers(job: Job, delay: float) -> tuple[int, ...]:
    good = job.state is State.SUCCEEDED
    used = job.summary.get("rows_used", job.summary.get("rows_out"))
    rows, wrong, drift = (_number(one) for one in (used, job.summary.get("rows_with_errors"), job.summary.get("drift")))
    left_out = job.summary.get("left_out")
    rows += _number(left_out.get("rejected")) if isinstance(left_out, dict) else 0
    delays = [0] * (len(DELAYS) + 1)
    delays[bisect_left(DELAYS, delay)] = 1
    return (1, int(not good), rows if good else 0, wrong if good else 0, int(good and drift > 0), *delays)


def _number(value: object) -> int:
    return max(0, value) if isinstance(value, int) and not isinstance(value, bool) else 0


def _began(job: Job) -> float:
    """When the work that ended now could begin: the first QUEUED since the job last waited for something else."""
    began = job.created_at
    waits = True
    for state, at in job.history:
        if state in _WAITED:
            waits = True
        elif state == State.QUEUED and waits:
            began, waits = at, False
    return began
