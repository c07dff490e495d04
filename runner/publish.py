"""Publication: makes `outputs/` complete, once, whoever does it and however often.

Theory of operation. An attempt uploads its files to its own folder work/<job>/<attempt>/. The commit is one conditional
write of the row, RUNNING → PUBLISHING, that only the holder of the newest fence can make; it records each file's size
and SHA-256. From then on the row alone says what to do, and any process may do it: copy the staged files, write
latest.json, write result.json last, delete the staged files, set the terminal state. Each step has the same result when
it is done twice or by two at once:
- a copy replaces a file by the same file; staged files are deleted only after result.json exists, and a job can run
  again only after they are deleted, so a late copy finds nothing to copy;
- files of a bundle (runner/bundles.py) are written where there are none, or over what was there before the row was
  last read, so a late write finds the files of a later publication and changes nothing;
- result.json is made from the row alone and written under a condition on what was there before the row was last
  read, so a finisher that slept cannot overwrite a later publication; it is read back before anything is deleted;
- the terminal state is conditional on the row's rev.
Every other end (failed, cancelled, skipped, expired) is written to the row first, marked `unpublished`; the same code
then writes its result.json and clears the mark. The janitor finds unfinished publications by wake_at. A success whose
input was restored after another version is marked `unpublished` too: latest.json has to be updated.
"""

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace

from core.errors import AnswerDoubted, KeyRefused, ObjectMissing, PreconditionFailed, StoreUnavailable
from core.jobs import Job, JobError, State, move
from core.keys import (
    corrected_name,
    job_folder,
    latest_key,
    profile_key,
    result_key,
    staging_folder,
)
from core.ports import Clock, JobTable, ObjectInfo, ObjectStore, PutsTogether
from core.verdicts import Verdict
from infra.logs import Log
from infra.queueing import Lanes, is_current
from infra.statuses import Statuses
from infra.telemetry import Telemetry
from runner.bundles import BUNDLE, MOST_BYTES, InHand, is_bundled, unpack
from runner.documents import final_state, latest_body, read_document, result_body, withdrawn_body
from runner.engine.contract import AUDIT_FILES, REVIEW_FILES, ContractBroken, OutputName, check_published
from runner.latest import LatestPointers, is_latest_failure
from runner.profiles import first_profile, store_profile
from runner.remembering import remember

_TRIES = 5
_BUNDLES = 20  # to delete at once
BUNDLE_SECONDS = 10.0
_FRESH_SECONDS = 2.0  # a row that was committed so recently need not be read again
_SLOW_SECONDS = 10.0  # a finisher that took longer may have been suspended while others moved the job on


class _MovedOn(Exception):
    """Another process has moved the job on, so nothing is left to do for it here."""


@dataclass(eq=False, repr=False)
class Publisher:
    store: ObjectStore
    table: JobTable
    clock: Clock
    lanes: Lanes
    log: Log | None = None
    _: KW_ONLY
    telemetry: Telemetry = field(default_factory=Telemetry)

    def __post_init__(self) -> None:
        self.statuses = Statuses(self.store, self.table)
        self.latest = LatestPointers(self.store, self.table, self.clock)
        self._published: list[str] = []  # bundles that nobody needs any more
        self._published_at = 0.0  # when the first of them was
        self._lock = threading.Lock()

    def finish(
        self, job: Job, *, on_written: Callable[[], None] | None = None, in_hand: InHand | None = None
    ) -> Job | None:
        """Complete the publication of a job; its row afterwards, or None if another process moved it on.

        `on_written` is called when everything is written, before the row says so: at least once, and never for a
        publication that failed. `in_hand`: what the caller has that has just committed its first attempt, for which
        nothing is expected in `outputs/`; if there is something after all, it is checked then.
        """
        if job.state is not State.PUBLISHING and not (job.unpublished and (job.ended or job.state is State.REVIEW)):
            return None
        began = self.telemetry.now()
        try:
            done = self._publish_review(job) if job.state is State.REVIEW else self._finish(job, on_written, in_hand)
        except (KeyRefused, ContractBroken) as error:
            return self._unpublishable(job, str(error), on_written)
        except _MovedOn:
            return None
        if done is not None and done.state is not State.QUEUED:
            _record_published(self.telemetry, done, began=began)
        return done

    def _finish(self, job: Job, on_written: Callable[[], None] | None, in_hand: InHand | None) -> Job | None:
        if job.state is State.SUCCEEDED:
            return self._finish_again(job)
        body, again = result_body(job), job.earlier is not None
        current = self.store.head(result_key(job)) if in_hand is None or again else None
        if current is None or not self._is_written(job, body):
            began = self.clock.steady()
            try:
                current = self._withdraw(job, current) if again else current
                contents, pointed = self._bring(job, in_hand, began)
            except ObjectMissing:
                # Staged files are deleted after result.json is written: another finisher may be ahead.
                if not self._is_written(job, body):
                    return self._staging_lost(job, on_written)
            else:
                self._point_to(job, contents.get(OutputName.PROFILE), in_hand, began, pointed)
                committed = in_hand is not None and self.clock.steady() - began < _FRESH_SECONDS
                if not self._write_result(job, body, current, sure=in_hand is None or again, committed=committed):
                    self.latest.retract_if_lost(job)
                    return None
        self._clean_up(job, in_hand)
        return self._close(job, on_written)

    def _point_to(
        self, job: Job, profile: bytes | None, in_hand: InHand | None, began: float, pointed: Collection[str]
    ) -> None:
        """Let what follows drops point to this one: memories, `latest` and the profile of the sender's last drop.

        `pointed`: keys of those that do so already.
        """
        if final_state(job) is State.SUCCEEDED:
            self._remember(job)
            if latest_key(job) not in pointed:
                self.latest.point(job, began, fresh=in_hand is not None)
            if profile_key(job) not in pointed:
                store_profile(self.store, job, profile, in_hand.previous if in_hand is not None else None)
        elif is_latest_failure(job):
            self.latest.point(job, began)

    def _clean_up(self, job: Job, in_hand: InHand | None) -> None:
        """Delete what only the way to the result needed: stale outputs, the review, staged files, the status."""
        if final_state(job) is State.EXPIRED:
            self._forget(job)
        elif job.attempts_total > 1 and (final_state(job) is not State.SUCCEEDED or job.earlier is not None):
            self._drop_stale(job)
        if job.review is not None:
            self._drop_review(job)
        self._unstage(job, bundled=in_hand is not None and in_hand.contents is not None)
        if job.announced:
            self.statuses.clear(job)

    def _finish_again(self, job: Job) -> Job | None:
        """Complete a success that counts again: an older version was restored, or a reset did not succeed."""
        if job.review is not None:
            self._drop_review(job)
        if job.announced:
            self.statuses.clear(job)
        self.store.delete_prefix(staging_folder(job.job_id, job.fence))
        self.latest.point(job)
        return self._close(job)

    def _withdraw(self, job: Job, current: ObjectInfo | None) -> ObjectInfo | None:
        """Let result.json say that the next result is being published, before a file that it names is replaced.

        Only over `current`, which was read before the row is read once more: a finisher that slept withdraws nothing.
        """
        if current is None:
            return None
        if not is_current(self.table, job):
            raise _MovedOn
        try:
            return self.store.put(result_key(job), withdrawn_body(job), if_version=current.version)
        except PreconditionFailed:
            if read_document(self.store, result_key(job)) != withdrawn_body(job):
                raise _MovedOn from None  # another process is ahead, and finishes it
            return self.store.head(result_key(job))

    def _publish_review(self, job: Job) -> Job | None:
        """Copy the questions of a job that waits for a person, and announce that it waits.

        The staged files are deleted after the row says that they were copied, so missing ones are lost only if the row
        is unchanged. A copy may come too late for a job that has moved on; then its end deletes the files.
        """
        if not is_current(self.table, job):
            return None
        try:
            self._copy(job)
        except ObjectMissing:
            if not is_current(self.table, job):
                return None
            reason = "its staged questions were lost before they were published"
            return self.table.replace(job, move(job, State.QUEUED, now=self.clock.now(), reason=reason, files=()))
        self.statuses.announce(job)
        closed = self.table.replace(job, replace(job, unpublished=False))
        if closed is not None:
            self.store.delete_prefix(staging_folder(job.job_id, job.fence))
            return closed
        now = self.table.get(job.job_id)
        if now is None or (now.ended and not now.unpublished):
            self._drop_review(now or job)
        return None

    def _remember(self, job: Job) -> None:
        """Put what a person decided into the workflow's memory, before anybody can see the result."""
        if job.decision is None or job.replay:
            return
        why = remember(self.store, job)
        self.table.advance(job.tenant)  # others cache which memories there are
        if why and self.log is not None:
            self.log.warning("decision_not_remembered", job_id=job.job_id, error=why)

    def _drop_review(self, job: Job) -> None:
        """Remove the questions of a job that has ended, unless it ended because nobody answered them."""
        if job.error is None or job.error.verdict is not Verdict.REVIEW_EXPIRED:
            self.store.delete_all([job_folder(job) + name for name in REVIEW_FILES])

    def _is_written(self, job: Job, body: bytes) -> bool:
        """Whether the result.json of this publication exists already, and so everything before it."""
        return read_document(self.store, result_key(job), limit=len(body)) == body

    def _copy(self, job: Job) -> None:
        folder, staged = job_folder(job), staging_folder(job.job_id, job.fence)
        names = [file.name for file in job.files]
        check_published(names, succeeded=final_state(job) is not State.FAILED)
        self.lanes.each(lambda name: self.store.copy(staged + name, folder + name), names)

    def _bring(self, job: Job, in_hand: InHand | None, began: float) -> tuple[Mapping[str, bytes], Collection[str]]:
        """Make the files of a job complete.

        Returns what else was staged with them, if that is known already, and the keys of the pointers that were
        written with them.
        """
        pointed: Collection[str] = ()
        if in_hand is not None and in_hand.contents is not None:
            pointed = self._place(job, in_hand.contents, began, _first_pointers(job, in_hand))
        else:
            try:
                self._copy(job)
            except ObjectMissing:
                contents = self._bundle(job)
                if contents is None:
                    raise
                self._place(job, contents, began, {})
                return contents, ()
        if in_hand is None or in_hand.profile is None:
            return {}, pointed
        return {OutputName.PROFILE: in_hand.profile}, pointed

    def _bundle(self, job: Job) -> Mapping[str, bytes] | None:
        """The files of a job that were staged together; None if they were not, or are deleted."""
        key = staging_folder(job.job_id, job.fence) + BUNDLE
        body = read_document(self.store, key, limit=2 * MOST_BYTES) if is_bundled(job, job.files) else None
        return unpack(key, body, job.files, [OutputName.PROFILE]) if body is not None else None

    def _place(
        self, job: Job, contents: Mapping[str, bytes], began: float, pointers: Mapping[str, bytes]
    ) -> Collection[str]:
        """Write the files of a job, and `pointers` with them if that costs less than later; the keys of those."""
        folder = job_folder(job)
        check_published([file.name for file in job.files], succeeded=final_state(job) is not State.FAILED)
        bodies = {folder + file.name: contents[file.name] for file in job.files}

        def check() -> None:
            if self.clock.steady() - began > _SLOW_SECONDS and not is_current(self.table, job):
                raise _MovedOn

        def write(key: str) -> None:
            check()
            try:
                self.store.put(key, bodies[key], if_absent=True)
            except PreconditionFailed:
                self._write_over(job, key, bodies[key])

        if not isinstance(self.store, PutsTogether):
            self.lanes.each(write, list(bodies))
            return ()
        check()
        there = self.store.put_new({**bodies, **pointers})
        for key in there & bodies.keys():
            self._write_over(job, key, bodies[key])
        return pointers.keys() - there

    def _write_over(self, job: Job, key: str, body: bytes) -> None:
        """Replace what is there unless it is the same, or another process has moved the job on."""
        for _ in range(_TRIES):
            current = self.store.head(key)
            if current is not None and read_document(self.store, key, limit=len(body)) == body:
                return
            if not is_current(self.table, job):
                raise _MovedOn
            try:
                self.store.put(key, body, if_version=current.version if current else None, if_absent=current is None)
            except PreconditionFailed:
                continue
            return
        raise StoreUnavailable(f"{key} is written by others again and again")

    def _unstage(self, job: Job, *, bundled: bool) -> None:
        """Delete the staged files. A first attempt that was committed staged exactly what the row names.

        Over a network a bundle may stay for a while: several are deleted at once, and those that are left by the
        janitor.
        """
        if job.state is State.EXPIRED:
            return  # it was published before it expired, so nothing is staged
        staged = staging_folder(job.job_id, job.fence)
        if bundled and isinstance(self.store, PutsTogether):
            self.store.delete(staged + BUNDLE)
        elif bundled:
            with self._lock:
                self._published_at = self._published_at if self._published else self.clock.steady()
                self._published.append(staged + BUNDLE)
            self.tidy(BUNDLE_SECONDS)
        elif job.state is State.PUBLISHING and job.attempts_total == 1:
            self.store.delete_all(
                [staged + name for name in (*(file.name for file in job.files), OutputName.PROFILE, BUNDLE)]
            )
        else:
            self.store.delete_prefix(staging_folder(job.job_id))

    def tidy(self, seconds: float = 0.0) -> None:
        """Delete published bundles, if there are many or the first is so old. The janitor deletes the rest."""
        with self._lock:
            keys = self._published
            if not keys or (len(keys) < _BUNDLES and self.clock.steady() - self._published_at < seconds):
                return
            self._published = []
        self.store.delete_all(keys)

    def _forget(self, job: Job) -> None:
        """Delete what an expired job published, after result.json no longer names it.

        One by one, and only while the row is unchanged: a finisher that slept must not delete the next run's outputs.
        """
        self.latest.retract(job, fall_back=is_latest_failure(job))
        for key in self.store.keys(job_folder(job)):
            if key != result_key(job) and is_current(self.table, job):
                self.store.delete(key)

    def erase(self, job: Job) -> None:
        """Delete everything in a job's folder, also result.json; as above, only while the row is unchanged."""
        for key in self.store.keys(job_folder(job)):
            if is_current(self.table, job):
                self.store.delete(key)

    def _drop_stale(self, job: Job) -> None:
        """Delete the audit of an earlier attempt that ended differently: result.json no longer names it."""
        names = {file.name for file in job.files}
        before = [file.name for file in job.earlier.files] if job.earlier is not None else []
        copies = [corrected_name(n, item) for n, item in enumerate(job.inputs)] if job.mends is not None else []
        self.store.delete_all(
            [job_folder(job) + name for name in (*AUDIT_FILES, *copies, *before) if name not in names]
        )

    def _write_result(
        self, job: Job, body: bytes, current: ObjectInfo | None, *, sure: bool = True, committed: bool = False
    ) -> bool:
        """Write result.json over `current`, which was read before the row is read once more.

        `sure`: unless it is assumed. `committed`: this process has written the row a moment ago.
        """
        key = result_key(job)
        if not committed and not is_current(self.table, job):
            return False
        if current is not None and self._is_written(job, body):
            return True  # written by another finisher; a second write would notify consumers again
        try:
            self.store.put(key, body, if_version=current.version if current else None, if_absent=current is None)
        except PreconditionFailed:
            if self._is_written(job, body):
                return True
            return not sure and self._write_result(job, body, self.store.head(key))
        return self._read_back(job, body)

    def _read_back(self, job: Job, body: bytes) -> bool:
        """Whether the result.json that was just written is there; False if another process moved the job on."""
        if self._is_written(job, body):
            return True
        if is_current(self.table, job):
            raise AnswerDoubted(f"{result_key(job)} was answered as written and is not there")
        return False

    def _close(self, job: Job, on_written: Callable[[], None] | None = None) -> Job | None:
        if on_written is not None and is_current(self.table, job):
            on_written()
        if job.state is State.PUBLISHING:
            done = move(job, State.SUCCEEDED, now=self.clock.now(), announced=False, earlier=None)
            ended = self.table.replace(job, done)
            if ended is not None:
                count_moved(self.telemetry, ended)
            return ended
        closed = replace(job, unpublished=False, announced=False)
        if job.state is State.EXPIRED:
            closed = replace(closed, updated_at=self.clock.now())  # it may run again from then on
        return self.table.replace(job, closed)

    def _staging_lost(self, job: Job, on_written: Callable[[], None] | None) -> Job | None:
        """Staged files vanished before they were copied: run again, or publish a failure without them."""
        if job.state is State.PUBLISHING:
            reason = "its staged files were lost before they were published"
            # What it had published before may be replaced in part.
            queued = move(job, State.QUEUED, now=self.clock.now(), reason=reason, files=(), earlier=None)
            return self.table.replace(job, queued)
        bare = self.table.replace(job, replace(job, files=()))
        return self.finish(bare, on_written=on_written) if bare is not None else None

    def _unpublishable(self, job: Job, why: str, on_written: Callable[[], None] | None) -> Job | None:
        """Fail a job whose output keys the store refuses: trying again would not help."""
        if job.state not in (State.PUBLISHING, State.REVIEW):
            return self._close(job, on_written)  # not even a result.json can be written; only the row has the result
        error = JobError(verdict=Verdict.INPUT_UNREADABLE, message=f"its outputs cannot be written: {why}")
        failed = self.table.replace(job, move(job, State.FAILED, now=self.clock.now(), error=error, files=()))
        if failed is None:
            return None
        count_moved(self.telemetry, failed)
        return self.finish(failed)


def _first_pointers(job: Job, in_hand: InHand) -> dict[str, bytes]:
    """latest.json and the sender's profile as they are where there are none yet, for a job that was just committed."""
    if job.state is not State.PUBLISHING:
        return {}
    return {latest_key(job): latest_body(job), **first_profile(job, in_hand.profile, in_hand.previous)}


def count_moved(telemetry: Telemetry, job: Job) -> None:
    """Count a job that this process has just ended, or made wait for a person."""
    if job.state is State.REVIEW:
        telemetry.meters.add("ade.reviews")
    elif job.ended and job.state is not State.EXPIRED:
        verdict = str(job.error.verdict) if job.error else "ok"
        fault = str(job.error.fault) if job.error else "nobody"
        telemetry.meters.add("ade.jobs.ended", state=str(job.state), verdict=verdict, fault=fault)
        if job.outcome is not None:
            telemetry.meters.add("ade.results", outcome=str(job.outcome))


def _record_published(telemetry: Telemetry, job: Job, *, began: float) -> None:
    """The outputs of a job, its questions or its end are in the bucket."""
    now = telemetry.now()
    telemetry.meters.observe("ade.publish", now - began)
    telemetry.span("publish", job.trace, start=began, end=now, job_id=job.job_id, state=str(job.state))
