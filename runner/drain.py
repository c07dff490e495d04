"""Decides when a drain is done: no message and no chore is left that this runner could process now."""

from collections.abc import Callable

from core.chores import LONGEST_DEFERRAL, Timings, resting, wake_at
from core.jobs import Job, State
from core.ports import JobQuery, JobTable, Pause
from infra.wiring import Stack
from runner.worker import Worker

_BUSY = frozenset({State.RUNNING, State.PUBLISHING})
_SOON_SECONDS = 10.0
_BATCH = 200


class Drain:
    """Called by `ade run --drain` between jobs.

    Does not wait for jobs that are SCHEDULED for later, paused, or written by a newer program. A chore that failed gets
    one more try; if it fails again, its job is `undone`.
    """

    def __init__(self, stack: Stack, worker: Worker, chores: Callable[[], object]) -> None:
        """`chores` does what is due; it is called before every check of what is left."""
        self._stack = stack
        self._worker = worker
        self._chores = chores
        self._put_off: dict[str, float] = {}  # jobs whose chore failed, and the time of the next try
        self.undone: set[str] = set()

    def done(self) -> bool:
        self._chores()
        if self._chores_left():
            return False
        table, left_alone = self._stack.table, self._worker.left_alone | self.undone
        pauses = table.pauses()
        if pauses or left_alone:
            # The messages of such jobs keep coming back, so the queue does not show whether the drain is done.
            return not _workable(table, pauses, left_alone)
        stats = self._stack.queue.stats()
        return not (stats.ready or stats.in_flight or stats.delayed)

    def _chores_left(self) -> bool:
        """Whether a chore is due soon, deferred, or completes a publication; collects those that failed twice."""
        now, timings = self._stack.clock.now(), self._stack.settings.timings
        before = now + max(LONGEST_DEFERRAL, timings.lease_seconds)
        limit, found = _BATCH, self._stack.table.attention(before, limit=_BATCH)
        while len(found) == limit:
            limit *= 2
            found = self._stack.table.attention(before, limit=limit)
        left = [job for job in found if _awaited(job, now, timings)]
        again = {job.job_id: job.deferred_until for job in left if job.deferred_until is not None}
        self.undone = {job_id for job_id, until in again.items() if until > self._put_off.setdefault(job_id, until)}
        return any(job.job_id not in self.undone for job in left)


def _awaited(job: Job, now: float, timings: Timings) -> bool:
    if resting(job) or (job.ended and not job.unpublished):
        return False  # what has ended may wait for a janitor, which delivers notices and loads results
    if job.state is State.PUBLISHING or job.unpublished or (job.deferred_until or 0.0) > now:
        return True
    return job.state is not State.SCHEDULED and (wake_at(job, timings) or now) <= now + _SOON_SECONDS


def _workable(table: JobTable, pauses: tuple[Pause, ...], left_alone: set[str]) -> bool:
    """Whether a job is left that is neither paused nor left alone."""
    held = {(p.tenant, p.workflow) for p in pauses}
    states = _BUSY if any(p.tenant is None for p in pauses) else _BUSY | {State.QUEUED}
    cursor: str | None = None
    while True:
        page = table.page(JobQuery(states=states), limit=200, cursor=cursor)
        for job in page.jobs:
            if job.job_id in left_alone:
                continue
            if job.state in _BUSY or not {(job.tenant, None), (job.tenant, job.workflow)} & held:
                return True
        cursor = page.cursor
        if cursor is None:
            return False
