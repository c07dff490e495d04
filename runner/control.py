"""What an operator may do to a job: cancel, retry, reset, remove. Each is one conditional write, then its follow-up."""

from collections.abc import Callable
from dataclasses import replace

from core.errors import IllegalTransition, UsageError
from core.jobs import ENDED, RETRIABLE, UNSTARTED, Job, State, again, is_taken_back, move
from core.keys import staging_folder
from core.ports import Clock, JobTable, ObjectStore, WorkQueue
from infra.lanes import Lanes
from infra.queueing import enqueue, mutate
from runner.publish import Publisher

_TRIES = 3


class Control:
    def __init__(self, store: ObjectStore, table: JobTable, queue: WorkQueue, clock: Clock) -> None:
        self._store = store
        self._table = table
        self._queue = queue
        self._clock = clock
        self._publisher = Publisher(store, table, clock, Lanes(1))

    def find(self, job_id: str) -> Job:
        job = self._table.get(job_id)
        if job is None:
            raise UsageError(f"there is no job {job_id}; `ade jobs` lists them")
        return job

    def cancel(self, job_id: str) -> Job:
        """At once where the job has not started; else requested, and confirmed when its box is dead."""

        def change(job: Job) -> Job | None:
            now = self._clock.now()
            if job.state in UNSTARTED:
                return move(job, State.CANCELLED, now=now, reason="cancelled by an operator", cancel_requested_at=now)
            if job.state is State.RUNNING:
                return replace(job, cancel_requested_at=job.cancel_requested_at or now, updated_at=now)
            raise IllegalTransition(f"job {job_id} is {job.state}; only a job that has not ended can be cancelled")

        self.find(job_id)
        job = mutate(self._table, job_id, change) or self.find(job_id)
        if job.ended:
            job = self._publisher.finish(job) or job
        return job

    def retry(self, job_id: str) -> Job:
        """A new round for a job that ended without success."""
        return self._again(job_id, RETRIABLE | {State.SKIPPED}, "retried by an operator")

    def reset(self, job_id: str) -> Job:
        """Forget the outputs of an ended job and run it again."""
        # Nothing is deleted unless the row can be written: what its state says may not be what the table holds.
        job = self._changed(job_id, lambda j: replace(_ended(j, ENDED), reason="being reset by an operator"))
        self._publisher.retract_latest(job)
        self._publisher.erase(job)  # unless another reset was faster, and the job runs already
        return self._again(job_id, ENDED, "reset by an operator")

    def remove(self, job_id: str, *, keep_input: bool = False) -> Job:
        """Delete outputs, staged files, the row, and the input itself: left in the inbox it would make the job anew."""
        for _ in range(_TRIES):
            job = self._changed(job_id, self._being_removed)
            if not keep_input:
                for item in job.inputs:
                    there = self._store.head(item.ref.key)
                    if item.role == "primary" and there is not None and there.version == item.ref.version:
                        self._store.delete(item.ref.key)
            self._publisher.retract_latest(job, fall_back=True)
            self._publisher.erase(job)
            self._store.delete_prefix(staging_folder(job_id))
            if self._publisher.statuses.remove(job):
                return job
            # Somebody published that it was cancelled, or ran it again: what it is now is removed, or refused.
        raise IllegalTransition(f"job {job_id} changed meanwhile; look at it again and repeat")

    def _being_removed(self, job: Job) -> Job:
        """The row first, so that no runner starts a job whose files are being deleted."""
        if job.state in (State.RUNNING, State.PUBLISHING):
            raise IllegalTransition(
                f"job {job.job_id} is {job.state}; wait for its end or run `ade cancel {job.job_id}` first"
            )
        now, reason = self._clock.now(), "being removed by an operator"
        if job.state in UNSTARTED:
            return move(job, State.CANCELLED, now=now, reason=reason, cancel_requested_at=now)
        return replace(job, reason=reason)

    def _again(self, job_id: str, states: frozenset[State], reason: str) -> Job:
        def change(job: Job) -> Job:
            now = self._clock.now()
            if not is_taken_back(job, now):
                raise IllegalTransition(
                    f"job {job_id} has just expired and its outputs are being removed; wait a minute"
                )
            return again(_ended(job, states), now=now, reason=reason)

        job = self._changed(job_id, change)
        self._queue.redrive(job_id)
        if job.state is State.QUEUED:
            job = enqueue(self._table, self._queue, self._clock, job)
        return job

    def _changed(self, job_id: str, change: Callable[[Job], Job | None]) -> Job:
        """The row after a change; IllegalTransition where it could not be written."""
        self.find(job_id)
        job = mutate(self._table, job_id, change)
        if job is None:
            raise IllegalTransition(
                f"job {job_id} could not be changed: others write it all the time, or its row was edited by hand; "
                "look at it again (`ade status`, `ade doctor`) and repeat"
            )
        return job


def _ended(job: Job, states: frozenset[State]) -> Job:
    """The job where it is in one of these states, else IllegalTransition."""
    if job.state not in states:
        wanted = ", ".join(sorted(states))
        raise IllegalTransition(f"job {job.job_id} is {job.state}; this works for jobs that are {wanted}")
    return job
