"""Planned jobs meet the table: created, completed, retried or superseded, each by one conditional write.

Every step can be repeated: a planner that dies anywhere leaves what the next event or sweep continues, and two
planners that race meet in the same rows.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from core.drops import is_placeholder
from core.errors import IllegalTransition
from core.ids import LENGTHS, job_id
from core.jobs import RETRIABLE, UNSTARTED, Job, State, again, move
from core.ports import Clock, JobTable, Message, WorkQueue

_TRIES = 8
# A standing workflow that changes does not run again over what an earlier version of it has worked on.
_HANDLED = frozenset(State) - UNSTARTED - {State.SKIPPED}


@dataclass
class Recorded:
    """What a look at the bucket changed in the table."""

    created: list[Job] = field(default_factory=list)
    queued: list[Job] = field(default_factory=list)
    superseded: list[Job] = field(default_factory=list)
    met: list[Job] = field(default_factory=list)  # were there already


class Recorder:
    def __init__(self, table: JobTable, queue: WorkQueue, clock: Clock) -> None:
        self._table = table
        self._queue = queue
        self._clock = clock

    def record(self, planned: Job, *, standing: bool, delay: float, done: Recorded) -> None:
        """Bring the table to what was planned."""
        line = _of_same_manifest(planned, self._table.line(planned.line))
        if _stale(planned, line) or (standing and _worked_on(planned, line)):
            return
        job, created = self._add(planned)
        (done.created if created else done.met).append(job)
        if not created:
            job = self._meet(job, planned)
        self._supersede(planned, line, done)
        if job.state is State.QUEUED and job.enqueued_at is None:
            self.dispatch(job, delay=delay)
            done.queued.append(job)

    def place(self, placeholder: Job, done: Recorded) -> None:
        """Record a row that says what is missing; say it anew where it changed."""
        job, created = self._add(placeholder)
        if created:
            done.created.append(job)
        elif is_placeholder(job) and (job.reason, job.inputs) != (placeholder.reason, placeholder.inputs):
            self._table.replace(job, replace(placeholder, rev=job.rev, created_at=job.created_at, history=job.history))

    def give_way(self, placeholder: Job) -> None:
        """Remove a placeholder row, if it is there, for the real job that has come."""
        job = self._table.get(placeholder.job_id)
        if job is not None and job.identity == placeholder.identity and is_placeholder(job):
            self._table.remove(job)

    def dispatch(self, job: Job, *, delay: float = 0.0) -> None:
        """Send the job's message, then note that it was sent; a crash in between sends it twice, which is harmless."""
        message = Message(job_id=job.job_id, tenant=job.tenant, priority=job.priority)
        self._queue.send(message, delay=delay)
        self._table.replace(job, replace(job, enqueued_at=self._clock.now()))

    def _add(self, job: Job) -> tuple[Job, bool]:
        """Insert, under a longer id where another job happens to have the short one."""
        for length in LENGTHS:
            job = replace(job, job_id=job_id(job.tenant, job.workflow, job.identity, length))
            there, created = self._table.add(job)
            if there.identity == job.identity:
                return there, created
        raise IllegalTransition(f"job id {job.job_id} is taken by another job at every length")

    def _meet(self, job: Job, planned: Job) -> Job:
        """A plan for a job that is there: completes it if it waits, retries it if it failed and was dropped anew."""
        for _ in range(_TRIES):
            after = self._after(job, planned)
            if after is None:
                return job
            written = self._table.replace(job, after)
            if written is not None:
                return written
            found = self._table.get(job.job_id)
            if found is None:
                return job
            job = found
        return job

    def _after(self, job: Job, planned: Job) -> Job | None:
        now = self._clock.now()
        fresh: dict[str, Any] = {
            "manifest": planned.manifest,
            "config": planned.config,
            "config_place": planned.config_place,
            "inputs": planned.inputs,
            "stamp": planned.stamp,
            "priority": planned.priority,
        }
        if job.state is State.AWAITING:
            if planned.state is State.AWAITING:
                same = planned.waiting_for == job.waiting_for
                return None if same else replace(job, waiting_for=planned.waiting_for, reason=planned.reason)
            return move(job, planned.state, now=now, reason=planned.reason, due_at=planned.due_at, **fresh)
        if job.state in RETRIABLE | {State.SKIPPED} and planned.stamp > job.stamp and planned.state is State.QUEUED:
            return again(replace(job, **fresh), now=now, reason="dropped again")
        return None

    def _supersede(self, planned: Job, line: tuple[Job, ...], done: Recorded) -> None:
        """A newer version of the same key takes the place of what has not started."""
        for older in line:
            if older.generation == planned.generation or older.stamp > planned.stamp:
                continue
            if is_placeholder(older):
                self._table.remove(older)
            elif older.state in UNSTARTED:
                ended = self._try(older, lambda j: _superseded(j, planned, self._clock.now()))
                if ended is not None:
                    done.superseded.append(ended)

    def _try(self, job: Job, change: Callable[[Job], Job | None]) -> Job | None:
        for _ in range(_TRIES):
            after = change(job)
            if after is None:
                return None
            if (written := self._table.replace(job, after)) is not None:
                return written
            found = self._table.get(job.job_id)
            if found is None:
                return None
            job = found
        return None


def _superseded(job: Job, by: Job, now: float) -> Job | None:
    if job.state not in UNSTARTED:
        return None
    return move(job, State.SKIPPED, now=now, reason=f"superseded by {by.job_id}")


def _of_same_manifest(planned: Job, line: tuple[Job, ...]) -> tuple[Job, ...]:
    """Two manifests of one name that select one file each get their own job; neither replaces the other's."""
    key = planned.manifest.key if planned.manifest else ""
    return tuple(j for j in line if (j.manifest.key if j.manifest else "") == key)


def _stale(planned: Job, line: tuple[Job, ...]) -> bool:
    """Whether a newer version is on record already: this plan comes from a listing that is out of date."""
    return any(j.stamp > planned.stamp and j.generation != planned.generation and not is_placeholder(j) for j in line)


def _worked_on(planned: Job, line: tuple[Job, ...]) -> bool:
    mine = _primaries(planned)
    return any(j.state in _HANDLED and j.config_digest != planned.config_digest and _primaries(j) == mine for j in line)


def _primaries(job: Job) -> set[str]:
    return {i.ref.digest for i in job.inputs if i.role == "primary"}
