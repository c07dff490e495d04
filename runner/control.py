"""Operator commands on a job: cancel, retry, reset, remove. Each is one conditional write and its follow-up."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from core.errors import IllegalTransition, UsageError
from core.jobs import ENDED, RETRIABLE, WAITING, Job, State, again, ended_incomplete, is_retracted, move, published
from core.keys import staging_folder
from core.notices import without_loads
from core.ports import Clock, JobTable, ObjectStore, WorkQueue
from infra.queueing import Lanes, enqueue, mutate
from runner.publish import Publisher
from runner.staging import repinned

_TRIES = 3
# In which states a job can be run again.
AGAIN = {
    "retry": RETRIABLE | {State.SKIPPED, State.REVIEW},
    "reset": ENDED | {State.REVIEW},
}


@dataclass(eq=False, repr=False)
class Control:
    store: ObjectStore
    table: JobTable
    queue: WorkQueue
    clock: Clock

    def __post_init__(self) -> None:
        self._publisher = Publisher(self.store, self.table, self.clock, Lanes(1))

    def find(self, job_id: str) -> Job:
        job = self.table.get(job_id)
        if job is None:
            raise UsageError(f"there is no job {job_id}; `ade jobs` lists them")
        return job

    def check(self, job_id: str, states: frozenset[State]) -> Job:
        """A job that is in one of these states; raises IllegalTransition otherwise."""
        return _ended(self.find(job_id), states)

    def note_successor(self, job_id: str, successor: str) -> None:
        """Say in a job's row which one was run in its place."""
        reason = f"run again as {successor}, with the workflow as it is now"
        mutate(self.table, job_id, lambda job: replace(job, reason=reason) if job.ended else None)

    def withdraw_loads(self, job_id: str) -> bool:
        """Give up the loads of a job that are still to be tried; whether there were any."""
        return mutate(self.table, job_id, without_loads) is not None

    def cancel(self, job_id: str) -> Job:
        """Immediate if the job has not started; otherwise a request, confirmed when its box is dead."""

        def change(job: Job) -> Job | None:
            now = self.clock.now()
            if job.state in WAITING:
                return move(job, State.CANCELLED, now=now, reason="cancelled by an operator", cancel_requested_at=now)
            if job.state is State.RUNNING:
                return replace(job, cancel_requested_at=job.cancel_requested_at or now, updated_at=now)
            raise IllegalTransition(f"job {job_id} is {job.state}; only a job that has not ended can be cancelled")

        self.find(job_id)
        job = mutate(self.table, job_id, change) or self.find(job_id)
        if job.ended:
            job = self._publisher.finish(job) or job
        return job

    def retry(self, job_id: str) -> Job:
        """Run a job again that ended without success; one that never had all its parts waits for them again."""
        return self._again(job_id, AGAIN["retry"], "retried by an operator")

    def reset(self, job_id: str) -> Job:
        """Run an ended job again from scratch. A good result stays until the next one is published over it."""
        # Write the row before deleting anything: this fails if the row is not what it says.
        job = self._changed(job_id, lambda j: replace(_ended(j, AGAIN["reset"]), reason="being reset by an operator"))
        if job.state is not State.SUCCEEDED:
            self._publisher.latest.retract(job)
            self._publisher.erase(job)  # a no-op if another reset was faster and the job is already running
        return self._again(job_id, AGAIN["reset"], "reset by an operator")

    def remove(self, job_id: str, *, keep_input: bool = False) -> Job:
        """Delete outputs, staged files, the row and the input: if left, it would create the job again.

        The input of a replay stays: it is that of the job which is replayed.
        """
        for _ in range(_TRIES):
            job = self._changed(job_id, self._being_removed)
            if not (keep_input or job.replay):
                for item in job.inputs:
                    current = self.store.head(item.ref.key)
                    if item.role == "primary" and current is not None and current.version == item.ref.version:
                        self.store.delete(item.ref.key)
            self._publisher.latest.retract(job, fall_back=True)
            self._publisher.erase(job)
            self.store.delete_prefix(staging_folder(job_id))
            if self._publisher.statuses.remove(job):
                return job
            # The row changed: its cancellation was published, or it was run again. Try again with the new row.
        raise IllegalTransition(f"job {job_id} changed in the meantime; check it with `ade status` and repeat")

    def _being_removed(self, job: Job) -> Job:
        """Write the row first, so that no runner starts a job whose files are being deleted."""
        if job.state in (State.RUNNING, State.PUBLISHING):
            raise IllegalTransition(
                f"job {job.job_id} is {job.state}; wait until it ends or run `ade cancel {job.job_id}` first"
            )
        now, reason = self.clock.now(), "being removed by an operator"
        if job.state in WAITING:
            return move(job, State.CANCELLED, now=now, reason=reason, cancel_requested_at=now)
        return replace(job, reason=reason)

    def _again(self, job_id: str, states: frozenset[State], reason: str) -> Job:
        def change(job: Job) -> Job:
            now = self.clock.now()
            if not is_retracted(job, now):
                raise IllegalTransition(
                    f"job {job_id} has just expired and its outputs are being removed; wait a minute"
                )
            earlier = published(job) if job.state is State.SUCCEEDED else None
            to = State.AWAITING if ended_incomplete(job) else State.QUEUED
            pins = repinned(self.store, job)
            return again(_ended(job, states), now=now, to=to, reason=reason, earlier=earlier, **pins)

        job = self._changed(job_id, change)
        self.queue.redrive(job_id)
        if job.state is State.QUEUED:
            job = enqueue(self.table, self.queue, self.clock, job)
        return job

    def _changed(self, job_id: str, change: Callable[[Job], Job | None]) -> Job:
        """The row after a change; raises IllegalTransition if it could not be written."""
        self.find(job_id)
        job = mutate(self.table, job_id, change)
        if job is None:
            raise IllegalTransition(
                f"job {job_id} could not be changed: it changes too often, or its row was edited by hand; "
                "check it (`ade status`, `ade doctor`) and repeat"
            )
        return job


def _ended(job: Job, states: frozenset[State]) -> Job:
    """The job, if it is in one of these states; otherwise raises IllegalTransition."""
    if job.state not in states:
        wanted = ", ".join(sorted(states))
        raise IllegalTransition(f"job {job.job_id} is {job.state}; this needs a job that is {wanted}")
    return job
