"""Marks of a process beside a table that keeps none: which lines a sweep need not plan again.

Instead of a query for each line, the rows of all marked lines are read together and compared with what they were.
"""

import math
import random
import threading
from collections.abc import Collection, Mapping

from core.ports import Clock, JobTable, LineMark

_MARKED_SECONDS = 86400.0
_READ_SECONDS = 5.0  # for which rows that were read count as current: a change is found by the next sweep
_MOST = 200_000


class ProcessMarks:
    """Safe to share between threads."""

    def __init__(self, table: JobTable, clock: Clock) -> None:
        self._table = table
        self._clock = clock
        self._lock = threading.Lock()
        self._marks: dict[str, dict[str, tuple[LineMark, float]]] = {}  # by tenant and line
        self._revs: dict[str, tuple[float, dict[str, int]]] = {}  # of a tenant's marked rows, and when they were read

    def marked(self, lines: Collection[str]) -> dict[str, bytes]:
        now, found = self._clock.now(), dict[str, bytes]()
        for tenant in {_tenant(line) for line in lines}:
            with self._lock:
                marks = self._marks.get(tenant, {})
                known = {line: marks[line] for line in lines if line in marks}
            valid = {line: mark for line, (mark, until) in known.items() if until > now}
            revs = self._read(tenant) if valid else {}
            found |= {
                line: mark.planned_from
                for line, mark in valid.items()
                if all(revs.get(job_id) == rev for job_id, rev in mark.rows)
            }
        return found

    def mark(self, marks: Mapping[str, LineMark]) -> None:
        now = self._clock.now()
        with self._lock:
            if sum(map(len, self._marks.values())) > _MOST:
                self._marks.clear()
            for line, mark in marks.items():
                # Not all on the same day, so that no sweep plans everything again.
                until = now + _MARKED_SECONDS * (1 + random.random()) / 2  # noqa: S311 - no secret
                self._marks.setdefault(_tenant(line), {})[line] = mark, until

    def _read(self, tenant: str) -> dict[str, int]:
        """The revs of all marked rows of a tenant: a sweep asks for its lines workflow by workflow."""
        steady = self._clock.steady()
        with self._lock:
            at, revs = self._revs.get(tenant, (-math.inf, {}))
            ids = {job_id for mark, _ in self._marks.get(tenant, {}).values() for job_id, _ in mark.rows}
        if steady - at < _READ_SECONDS:
            return revs
        revs = {job.job_id: job.rev for job in self._table.get_all(sorted(ids)).values()}
        with self._lock:
            self._revs[tenant] = steady, revs
        return revs


def _tenant(line: str) -> str:
    return line.partition("/")[0]
