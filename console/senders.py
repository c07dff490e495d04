"""Senders as their counters show them: how their drops went by day, whether that gets worse, when the next is due.

A sender here is a tenant's workflow. Pure functions over `core/ends.py`; the facade reads the counters.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from statistics import median

from core.ends import DAY, NUMBERS, EndCounts, counts_of_end
from core.jobs import Job

HIGH_RATE = 0.10  # of rows with errors: from here on somebody should know, rising or not
_RISING_RATE, _RISING_TIMES = 0.02, 2.0
_RHYTHM_DAYS = 4  # with drops, before a rhythm is believed
_LEAST_LATE = DAY  # a rhythm is by the day: who is a few hours late is not late


@dataclass(frozen=True, kw_only=True)
class SenderHistory:
    """What is known of a sender without reading its jobs."""

    tenant: str
    workflow: str
    days: tuple[EndCounts, ...]  # those with ends, oldest first; empty: nothing has ended yet
    earlier: "SenderHistory | None" = field(default=None, compare=False, repr=False)  # has the first of these days

    def with_days(self, later: tuple[EndCounts, ...]) -> "SenderHistory":
        """This sender with days after those that are known; what was computed of these is not computed again."""
        return replace(self, days=(*self.days, *later), earlier=self)

    @property
    def last(self) -> EndCounts | None:
        return self.days[-1] if self.days else None

    @property
    def last_at(self) -> float:
        return self.days[-1].last_at if self.days else 0.0

    @cached_property
    def rate(self) -> float | None:
        """The share of rows with errors on the last day that had rows."""
        return next((one.error_rate for one in reversed(self.days) if one.error_rate is not None), None)

    @cached_property
    def rate_before(self) -> float | None:
        """The same of all days before that one."""
        last = next((one for one in reversed(self.days) if one["rows"]), None)
        rows = self.sum("rows") - last["rows"] if last is not None else 0
        return min(1.0, (self.sum("wrong") - last["wrong"]) / rows) if last is not None and rows else None

    @property
    def is_rising(self) -> bool:
        """Whether the last day is much worse than those before."""
        if self.rate is None or self.rate < _RISING_RATE or self.rate_before is None:
            return False
        return self.rate >= _RISING_TIMES * self.rate_before

    @property
    def is_bad(self) -> bool:
        return (self.rate or 0.0) >= HIGH_RATE or self.is_rising

    @property
    def has_drifted(self) -> bool:
        return self.last is not None and self.last["drifted"] > 0

    @property
    def has_failed(self) -> bool:
        """Whether a drop of the last day failed."""
        return self.last is not None and self.last["failed"] > 0

    @cached_property
    def gaps(self) -> list[float]:
        """Seconds from each day with ends to the next one."""
        if self.earlier is None or not self.earlier.days:
            return [later.at - earlier.at for earlier, later in pairwise(self.days)]
        newer = self.days[len(self.earlier.days) - 1 :]
        return [*self.earlier.gaps, *(later.at - earlier.at for earlier, later in pairwise(newer))]

    @cached_property
    def rhythm(self) -> float | None:
        """Seconds between days with drops, as a rule; None: too few to tell."""
        return median(self.gaps) if len(self.days) >= _RHYTHM_DAYS else None

    @property
    def next_at(self) -> float | None:
        """When the next drop is due by the sender's own rhythm."""
        return None if self.rhythm is None else self.last_at + self.rhythm

    def is_late(self, now: float) -> bool:
        """Whether it is silent for longer than it ever was, weekends included, and then some."""
        if now <= self.last_at + _LEAST_LATE or self.rhythm is None:
            return False
        return now > self.last_at + max(self.gaps) + max(_LEAST_LATE, self.rhythm / 2)

    @cached_property
    def sums(self) -> tuple[int, ...]:
        """Of all numbers that counters have, over all days."""
        known = () if self.earlier is None else (self.earlier.sums,)
        newer = self.days if self.earlier is None else self.days[len(self.earlier.days) :]
        return tuple(map(sum, zip(*known, *(one.numbers for one in newer), strict=True))) or (0,) * len(NUMBERS)

    def sum(self, name: str) -> int:
        return self.sums[NUMBERS.index(name)]

    def worry(self, now: float) -> tuple[float, ...]:
        """Sorts senders: the greater, the worse."""
        return (
            float(self.has_failed) + float(self.is_late(now)) + 2 * float(self.is_bad),
            self.rate or 0.0,
            float(self.has_drifted),
            self.last_at,
        )


def sender_histories(counts: Iterable[EndCounts]) -> list[SenderHistory]:
    """Counters of days by sender."""
    days_by_sender: dict[tuple[str, str], list[EndCounts]] = {}
    for one in counts:
        days_by_sender.setdefault((one.tenant, one.workflow), []).append(one)
    return [
        SenderHistory(tenant=tenant, workflow=workflow, days=tuple(sorted(days, key=lambda day: day.at)))
        for (tenant, workflow), days in days_by_sender.items()
    ]


def histories_of_jobs(jobs: Iterable[Job]) -> list[SenderHistory]:
    """The same from jobs, for senders that have no counters: of an earlier version, or still on their way."""
    days: dict[tuple[str, str], dict[float, EndCounts]] = {}
    for job in jobs:
        of = days.setdefault((job.tenant, job.workflow), {})
        one = counts_of(job)
        if one is not None:
            of[one.at] = of[one.at] + one if one.at in of else one
    return [
        SenderHistory(tenant=tenant, workflow=workflow, days=tuple(one for _, one in sorted(by_day.items())))
        for (tenant, workflow), by_day in days.items()
    ]


def counts_of(job: Job) -> EndCounts | None:
    """What the end of a job counts for its sender; None: it has not ended, or ended without work on a file."""
    counts = counts_of_end(job)
    return None if counts is None else counts[1]
