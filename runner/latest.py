"""latest.json of each line: names the newest result; after corrections of its rejects, the last of them."""

from dataclasses import dataclass, replace

from core.errors import PreconditionFailed
from core.jobs import ENDED, MAX_HISTORY, Job, State
from core.keys import corrected_latest_key, latest_key
from core.ports import Clock, JobTable, ObjectStore
from infra.queueing import is_current
from runner.documents import LineOrder, latest_body, order_of, read_document, read_order

_FAILED = frozenset({State.FAILED, State.TIMED_OUT, State.EXPIRED})  # with an error
_TRIES = 5  # of a write that another process was ahead of
_SLOW_SECONDS = 10.0  # a finisher that took longer may have been suspended while others moved the job on


@dataclass(eq=False, repr=False)
class LatestPointers:
    store: ObjectStore
    table: JobTable
    clock: Clock

    def point(self, job: Job, began: float | None = None, *, fresh: bool = False) -> None:
        """Point latest.json to this job unless it names a newer one. `began`: when its files were surely staged.

        `fresh`: there is probably none yet.
        """
        self._write(job, latest_key(job), order_of(job), began, fresh=fresh)
        if (key := corrected_latest_key(job)) is not None:
            self._write(job, key, correction_order(job), began)

    def _write(self, job: Job, key: str, mine: LineOrder, began: float | None = None, *, fresh: bool = False) -> None:
        for tries in range(_TRIES):
            current = self.store.head(key) if tries or not fresh else None
            order = read_order(read_document(self.store, key)) if current else None
            if order is not None and order > mine:
                return
            slow = began is not None and self.clock.steady() - began > _SLOW_SECONDS
            if (tries or slow or job.state is not State.PUBLISHING) and not is_current(self.table, job):
                return
            try:
                version = current.version if current else None
                self.store.put(key, latest_body(job, mine), if_version=version, if_absent=current is None)
            except PreconditionFailed:
                continue
            return

    def retract_if_lost(self, job: Job) -> None:
        """Another process moved the job on: retract latest.json if this one wrote it too late."""
        now = self.table.get(job.job_id)
        if now is None or (now.state in ENDED - {State.SUCCEEDED} and not is_latest_failure(now)):
            self.retract(job, fall_back=now is None)

    def retract(self, job: Job, *, fall_back: bool = False) -> None:
        """Delete a latest.json that names this job. Safe to repeat, and for two at once.

        `fall_back`: point it to the newest other version that succeeded, since this job will leave no row that shows
        whether an older file was restored or always there.

        A delete is not conditional, so it may hit what a newer job wrote a moment ago. Such a job was committed in the
        table before it wrote, so latest.json is pointed to the newest job of the line again.
        """
        self._retract_correction(job)
        order = read_order(read_document(self.store, latest_key(job)))
        if order is not None and order[-1] != job.job_id:
            return
        if order is None and not _was_published(job):
            return  # it never named this job, so there is nothing to retract
        if order is not None:
            self.store.delete(latest_key(job))
        mine = order_of(job)
        others = [
            j
            for j in self.table.line(job.line, whole=True)
            if j.state in (State.PUBLISHING, State.SUCCEEDED) and j.job_id != job.job_id
        ]
        if not fall_back:
            others = [j for j in others if order_of(j) > mine or j.generation == job.generation]
        if others:
            self.point(max(others, key=order_of))

    def _retract_correction(self, job: Job) -> None:
        """Take back the first drop's latest.json where it names this job, and let it name the newest of its line, or
        the last of the other corrections."""
        key = corrected_latest_key(job)
        if key is None or job.mends is None or read_order(read_document(self.store, key)) != correction_order(job):
            return
        self.store.delete(key)
        line = self.table.line(replace(job, subject=job.mends.subject).line, whole=True)
        others = [j for j in line if j.state in (State.PUBLISHING, State.SUCCEEDED)]
        if others:
            self.point(max(others, key=order_of))
        listed = {c.job_id for j in line for c in j.corrections} - {job.job_id}
        for other in self.table.get_all(listed).values() if listed else ():
            if other.state in (State.PUBLISHING, State.SUCCEEDED) and corrected_latest_key(other) == key:
                self._write(other, key, correction_order(other))


def is_latest_failure(job: Job) -> bool:
    """Whether latest.json names a job though it failed, as its manifest asks."""
    return job.latest == "any" and job.error is not None and job.state in _FAILED


def _was_published(job: Job) -> bool:
    """Whether a job was ever committed, as far as its history goes back."""
    return len(job.history) >= MAX_HISTORY or any(state == State.PUBLISHING for state, _ in job.history)


def correction_order(job: Job) -> LineOrder:
    """The place of a job that corrects another drop in that drop's line: right behind its first result.

    A newer version of the drop comes later, whenever the corrected rows arrived; so does the correction that was listed
    later, which has the rows of those before it.
    """
    if job.mends is None:
        return order_of(job)
    place = f"p{job.mends.place:06}~{job.stamp:020.6f}"
    return (job.mends.stamp, job.mends.created_at, f"{job.mends.job_id}~{place}~{job.job_id}")
