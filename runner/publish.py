"""Publication: what makes `outputs/` complete, once, whoever does it and however often.

Theory of operation. An attempt uploads its files to work/<job>/<attempt>/, private to it. The commit is one
conditional write of the row, RUNNING → PUBLISHING, that only the holder of the newest fence can make; it records
each file's size and SHA-256. From then on the row alone says what has to be done, and anybody may do it: copy the
staged files, write latest.json, write result.json last, delete the staged files, set the terminal state. Each step
gives the same end when it is done twice or by two at once:
- a copy replaces a file by the same file; staged files are gone only after result.json is there, and a job can be
  run again only after they are gone, so a late copy finds nothing to copy;
- result.json is made from the row alone and written under a condition on what was there before the row was last
  read, so a finisher that slept cannot overwrite a later publication;
- the terminal state is conditional on the row's rev.
Every other end (failed, cancelled, skipped, expired) is written to the row first, marked `unpublished`; the same
code then writes its result.json and clears the mark. What dies half-way is found by the janitor through wake_at.
A success whose input was put back after another version stood is marked `unpublished` too: latest.json has to follow.
"""

import json
import math
from collections.abc import Callable
from dataclasses import replace

from core.errors import KeyRefused, ObjectMissing, ObjectTooLarge, PreconditionFailed, RecordNewer
from core.jobs import ENDED, HISTORY_KEPT, Job, JobError, State, move
from core.keys import staging_folder
from core.ports import Clock, JobTable, ObjectInfo, ObjectStore
from core.verdicts import Verdict
from infra.lanes import Lanes
from infra.statuses import Statuses
from runner.results import AUDIT, LATEST_VERSION, job_folder, latest_body, latest_key, outcome, result_body, result_key

_SMALL = 1024 * 1024
_SLOW_SECONDS = 10.0  # a finisher that took so long may have been stopped, and others have moved the job on since


class Publisher:
    def __init__(self, store: ObjectStore, table: JobTable, clock: Clock, lanes: Lanes) -> None:
        self._store = store
        self._table = table
        self._clock = clock
        self._lanes = lanes
        self.statuses = Statuses(store, table)

    def finish(self, job: Job, *, tell: Callable[[], None] | None = None) -> Job | None:
        """Complete the publication of a job; its row afterwards, or None where somebody else has moved it on.

        `tell` is called once all is written and before the row says so: a finisher that dies right after it is
        followed by one that calls it again, one that fails before it has told nobody.
        """
        if job.state is not State.PUBLISHING and not (job.ended and job.unpublished):
            return None
        try:
            return self._finish(job, tell)
        except KeyRefused as error:
            return self._unpublishable(job, str(error), tell)

    def _finish(self, job: Job, tell: Callable[[], None] | None) -> Job | None:
        if job.state is State.SUCCEEDED:
            self._point_latest(job)
            return self._close(job)
        body, there = result_body(job), self._store.head(result_key(job))
        if there is None or not self._said(job, body):
            began = self._clock.steady()
            try:
                self._copy(job)
            except ObjectMissing:
                # Staged files go after result.json is there: another finisher may be further than we are.
                if not self._said(job, body):
                    return self._staging_lost(job, tell)
            else:
                if outcome(job) is State.SUCCEEDED:
                    self._point_latest(job, began)
                if not self._say(job, body, there):
                    self._take_back_latest(job)
                    return None
        if outcome(job) is State.EXPIRED:
            self._forget(job)
        elif outcome(job) is not State.SUCCEEDED and job.attempts_total > 1:
            self._drop_stale(job)
        self._unstage(job)
        self.statuses.clear(job)
        return self._close(job, tell)

    def _said(self, job: Job, body: bytes) -> bool:
        """Whether this very publication has its result.json already, and so all that comes before it."""
        return self._read(result_key(job), limit=len(body)) == body

    def _copy(self, job: Job) -> None:
        folder, staged = job_folder(job), staging_folder(job.job_id, job.fence)
        names = [file.name for file in job.files]
        self._lanes.each(lambda name: self._store.copy(staged + name, folder + name), names)

    def _unstage(self, job: Job) -> None:
        """Remove what was staged. A first attempt that was committed staged what the row names and nothing else."""
        if job.state is State.EXPIRED:
            return  # nothing expires before it was published, and so nothing is staged any more
        if job.state is State.PUBLISHING and job.attempts_total == 1:
            staged = staging_folder(job.job_id, job.fence)
            self._store.delete_all([staged + file.name for file in job.files])
        else:
            self._store.delete_prefix(staging_folder(job.job_id))

    def _forget(self, job: Job) -> None:
        """Remove what an expired job published, after result.json has stopped naming it.

        One by one, and only while the row stays: a finisher that slept must not remove what the next run published.
        """
        self.retract_latest(job)
        for key in self._store.keys(job_folder(job)):
            if key != result_key(job) and self._unchanged(job):
                self._store.delete(key)

    def erase(self, job: Job) -> None:
        """Remove everything in a job's folder, result.json too; as above, only while the row stays."""
        for key in self._store.keys(job_folder(job)):
            if self._unchanged(job):
                self._store.delete(key)

    def _drop_stale(self, job: Job) -> None:
        """Remove the audit of an earlier attempt that ended otherwise: result.json no longer names it."""
        names = {file.name for file in job.files}
        self._store.delete_all([job_folder(job) + name for name in AUDIT if name not in names])

    def _say(self, job: Job, body: bytes, there: ObjectInfo | None) -> bool:
        """Write result.json over `there`, which was looked at before the row is read once more."""
        key = result_key(job)
        if not self._unchanged(job):
            return False
        if there is not None and self._said(job, body):
            return True  # another finisher wrote it meanwhile; a second write would trigger those who wait for it again
        try:
            self._store.put(key, body, if_version=there.version if there else None, if_absent=there is None)
        except PreconditionFailed:
            return self._said(job, body)
        return True

    def _unchanged(self, job: Job) -> bool:
        now = self._table.get(job.job_id)
        return now is not None and now.rev == job.rev

    def _close(self, job: Job, tell: Callable[[], None] | None = None) -> Job | None:
        if tell is not None and self._unchanged(job):
            tell()
        if job.state is State.PUBLISHING:
            return self._table.replace(job, move(job, State.SUCCEEDED, now=self._clock.now(), announced=False))
        closed = replace(job, unpublished=False, announced=False)
        if job.state is State.EXPIRED:
            closed = replace(closed, updated_at=self._clock.now())  # from when on it may run again
        return self._table.replace(job, closed)

    def _staging_lost(self, job: Job, tell: Callable[[], None] | None) -> Job | None:
        """Staged files vanished before they were copied: run again, or tell an end without success without them."""
        if job.state is State.PUBLISHING:
            reason = "its staged files were lost before they were published"
            return self._table.replace(job, move(job, State.QUEUED, now=self._clock.now(), reason=reason, files=()))
        bare = self._table.replace(job, replace(job, files=()))
        return self.finish(bare, tell=tell) if bare is not None else None

    def _unpublishable(self, job: Job, why: str, tell: Callable[[], None] | None) -> Job | None:
        """Outputs whose keys the store refuses will not be there however often it is tried."""
        if job.state is not State.PUBLISHING:
            return self._close(job, tell)  # not even a result.json: the row alone tells
        error = JobError(verdict=Verdict.INPUT_UNREADABLE, message=f"its outputs cannot be written: {why}")
        failed = self._table.replace(job, move(job, State.FAILED, now=self._clock.now(), error=error, files=()))
        return self.finish(failed) if failed is not None else None

    def _point_latest(self, job: Job, began: float | None = None) -> None:
        """Let latest.json name this job unless it names a newer one. `began`: when its files were surely staged."""
        key, mine = latest_key(job), (job.stamp, job.created_at, job.job_id)
        for tries in range(5):
            there = self._store.head(key)
            order = _order(self._read(key)) if there else None
            if order is not None and order > mine:
                return
            slow = began is not None and self._clock.steady() - began > _SLOW_SECONDS
            if (tries or slow or job.state is State.SUCCEEDED) and not self._unchanged(job):
                return
            try:
                self._store.put(
                    key, latest_body(job), if_version=there.version if there else None, if_absent=there is None
                )
            except PreconditionFailed:
                continue
            return

    def _take_back_latest(self, job: Job) -> None:
        """Somebody moved the job on while we slept: latest.json, if we had it name the job, may have come too late."""
        now = self._table.get(job.job_id)
        if now is None or now.state in ENDED - {State.SUCCEEDED}:
            self.retract_latest(job, fall_back=now is None)

    def retract_latest(self, job: Job, *, fall_back: bool = False) -> None:
        """Take back a latest.json that names this job. Again, and by two at once: no harm.

        `fall_back`: let it name the newest of the other versions that succeeded, for this one will leave no row by
        which an older file that is put back could be told from one that was always there.

        A delete knows no condition, so it may hit what a newer job wrote a moment ago. Such a job was committed in the
        table before it wrote; what the line says afterwards is pointed to again.
        """
        order = _order(self._read(latest_key(job)))
        if order is not None and order[-1] != job.job_id:
            return
        if order is None and not _was_published(job):
            return  # nor did it ever name this job, so nobody can have died after taking it back
        if order is not None:
            self._store.delete(latest_key(job))
        mine = (job.stamp, job.created_at, job.job_id)
        others = [
            j
            for j in self._table.line(job.line, whole=True)
            if j.state in (State.PUBLISHING, State.SUCCEEDED) and j.job_id != job.job_id
        ]
        if not fall_back:
            others = [j for j in others if (j.stamp, j.created_at, j.job_id) > mine or j.generation == job.generation]
        if others:
            self._point_latest(max(others, key=lambda j: (j.stamp, j.created_at, j.job_id)))

    def _read(self, key: str, limit: int = _SMALL) -> bytes | None:
        try:
            return self._store.read(key, limit=limit)
        except (ObjectMissing, ObjectTooLarge):
            return None


def _was_published(job: Job) -> bool:
    """Whether a job was ever committed, as far as its history goes back."""
    return len(job.history) >= HISTORY_KEPT or any(state == State.PUBLISHING for state, _ in job.history)


def _order(body: bytes | None) -> tuple[float, float, str] | None:
    """What latest.json says of its own age; None where it says nothing that can be read."""
    try:
        told = json.loads(body or b"")
        version = told["latest"]
        if type(version) is int and version > LATEST_VERSION:
            raise RecordNewer(f"latest.json of {told.get('job_id')}", version, LATEST_VERSION)
        stamp, created, job_id = told["order"]
        order = float(stamp), float(created), str(job_id)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None
    return order if math.isfinite(order[0]) and math.isfinite(order[1]) else None
