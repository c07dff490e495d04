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

import json
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from core.errors import (
    AnswerDoubted,
    KeyRefused,
    ObjectMissing,
    ObjectTooLarge,
    PreconditionFailed,
    RecordNewer,
    StoreUnavailable,
)
from core.jobs import ENDED, HISTORY_KEPT, Job, JobError, State, move, stamp_text
from core.keys import (
    corrected_name,
    job_folder,
    latest_key,
    mended_latest_key,
    profile_key,
    result_key,
    staging_folder,
)
from core.ports import Clock, JobTable, ObjectInfo, ObjectStore
from core.verdicts import Verdict
from infra.logs import Log
from infra.queueing import Lanes
from infra.reviews import REVIEW_FILES
from infra.statuses import Statuses
from infra.telemetry import Telemetry
from runner.bundles import BUNDLE, MOST_BYTES, InHand, KeptProfile, is_bundled, unpack
from runner.remembering import PROFILE, remember

LATEST_VERSION = 1
AUDIT = ("artifact.json", "report.html", "rejects.xlsx")  # published without a workbook if they explain a failure
_HEAD = 4000  # bytes of the line above a profile
_HEAD_TEXT = 200
_KINDS = 8  # profiles of one sender that are kept
_WAS = 12
_PROFILE_TRIES = 20
_SMALL = 1024 * 1024
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
        self._published: list[str] = []  # bundles that nobody needs any more
        self._published_at = 0.0  # when the first of them was
        self._lock = threading.Lock()

    def finish(
        self, job: Job, *, on_written: Callable[[], None] | None = None, in_hand: InHand | None = None
    ) -> Job | None:
        """Complete the publication of a job; its row afterwards, or None if another process moved it on.

        `on_written` is called when everything is written, before the row says so: at least once, and never for a
        publication that failed. `in_hand`: what the caller has that has just committed its first attempt, for which
        nothing is expected in `outputs/`; if there is something after all, it is looked at then.
        """
        if job.state is not State.PUBLISHING and not (job.unpublished and (job.ended or job.state is State.REVIEW)):
            return None
        began = self.telemetry.now()
        try:
            done = self._publish_review(job) if job.state is State.REVIEW else self._finish(job, on_written, in_hand)
        except KeyRefused as error:
            return self._unpublishable(job, str(error), on_written)
        except _MovedOn:
            return None
        if done is not None and done.state is not State.QUEUED:
            _record_published(self.telemetry, done, began=began)
        return done

    def _finish(self, job: Job, on_written: Callable[[], None] | None, in_hand: InHand | None) -> Job | None:
        if job.state is State.SUCCEEDED:
            self._point_latest(job)
            return self._close(job)
        body, current = result_body(job), self.store.head(result_key(job)) if in_hand is None else None
        if current is None or not self._is_written(job, body):
            began = self.clock.steady()
            try:
                contents = self._bring(job, in_hand, began)
            except ObjectMissing:
                # Staged files are deleted after result.json is written: another finisher may be ahead.
                if not self._is_written(job, body):
                    return self._staging_lost(job, on_written)
            else:
                if outcome(job) is State.SUCCEEDED:
                    self._remember(job)
                    self._point_latest(job, began, fresh=in_hand is not None)
                    self._keep_profile(job, contents.get(PROFILE), in_hand.previous if in_hand is not None else None)
                committed = in_hand is not None and self.clock.steady() - began < _FRESH_SECONDS
                if not self._write_result(job, body, current, sure=in_hand is None, committed=committed):
                    self._take_back_latest(job)
                    return None
        if outcome(job) is State.EXPIRED:
            self._forget(job)
        elif outcome(job) is not State.SUCCEEDED and job.attempts_total > 1:
            self._drop_stale(job)
        if job.review is not None:
            self._drop_review(job)
        self._unstage(job, bundled=in_hand is not None and in_hand.contents is not None)
        if job.announced:
            self.statuses.clear(job)
        return self._close(job, on_written)

    def _publish_review(self, job: Job) -> Job | None:
        """Copy the questions of a job that waits for a person, and announce that it waits.

        The staged files are deleted after the row says that they were copied, so missing ones are lost only if the row
        is unchanged. A copy may come too late for a job that has moved on; then its end deletes the files.
        """
        if not self._unchanged(job):
            return None
        try:
            self._copy(job)
        except ObjectMissing:
            if not self._unchanged(job):
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
        if job.decision is None:
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
        return self._read(result_key(job), limit=len(body)) == body

    def _copy(self, job: Job) -> None:
        folder, staged = job_folder(job), staging_folder(job.job_id, job.fence)
        names = [file.name for file in job.files]
        self.lanes.each(lambda name: self.store.copy(staged + name, folder + name), names)

    def _bring(self, job: Job, in_hand: InHand | None, began: float) -> Mapping[str, bytes]:
        """Make the files of a job complete; returns what else was staged with them, if that is known already."""
        if in_hand is not None and in_hand.contents is not None:
            self._place(job, in_hand.contents, began)
        else:
            try:
                self._copy(job)
            except ObjectMissing:
                contents = self._bundle(job)
                if contents is None:
                    raise
                self._place(job, contents, began)
                return contents
        return {} if in_hand is None or in_hand.profile is None else {PROFILE: in_hand.profile}

    def _bundle(self, job: Job) -> Mapping[str, bytes] | None:
        """The files of a job that were staged together; None if they were not, or are deleted."""
        key = staging_folder(job.job_id, job.fence) + BUNDLE
        body = self._read(key, limit=2 * MOST_BYTES) if is_bundled(job, job.files) else None
        return unpack(key, body, job.files, [PROFILE]) if body is not None else None

    def _place(self, job: Job, contents: Mapping[str, bytes], began: float) -> None:
        folder = job_folder(job)

        def write(name: str) -> None:
            if self.clock.steady() - began > _SLOW_SECONDS and not self._unchanged(job):
                raise _MovedOn
            try:
                self.store.put(folder + name, contents[name], if_absent=True)
            except PreconditionFailed:
                self._write_over(job, folder + name, contents[name])

        self.lanes.each(write, [file.name for file in job.files])

    def _write_over(self, job: Job, key: str, body: bytes) -> None:
        """Replace what is there unless it is the same, or another process has moved the job on."""
        for _ in range(_TRIES):
            current = self.store.head(key)
            if current is not None and self._read(key, limit=len(body)) == body:
                return
            if not self._unchanged(job):
                raise _MovedOn
            try:
                self.store.put(key, body, if_version=current.version if current else None, if_absent=current is None)
            except PreconditionFailed:
                continue
            return
        raise StoreUnavailable(f"{key} is written by others again and again")

    def _unstage(self, job: Job, *, bundled: bool) -> None:
        """Delete the staged files. A first attempt that was committed staged exactly what the row names.

        A bundle may stay for a while: several are deleted at once, and those that are left by the janitor.
        """
        if job.state is State.EXPIRED:
            return  # it was published before it expired, so nothing is staged
        staged = staging_folder(job.job_id, job.fence)
        if bundled:
            with self._lock:
                self._published_at = self._published_at if self._published else self.clock.steady()
                self._published.append(staged + BUNDLE)
            self.tidy(BUNDLE_SECONDS)
        elif job.state is State.PUBLISHING and job.attempts_total == 1:
            self.store.delete_all([staged + name for name in (*(file.name for file in job.files), PROFILE, BUNDLE)])
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
        self.retract_latest(job)
        for key in self.store.keys(job_folder(job)):
            if key != result_key(job) and self._unchanged(job):
                self.store.delete(key)

    def erase(self, job: Job) -> None:
        """Delete everything in a job's folder, also result.json; as above, only while the row is unchanged."""
        for key in self.store.keys(job_folder(job)):
            if self._unchanged(job):
                self.store.delete(key)

    def _drop_stale(self, job: Job) -> None:
        """Delete the audit of an earlier attempt that ended differently: result.json no longer names it."""
        names = {file.name for file in job.files}
        copies = [corrected_name(n, item) for n, item in enumerate(job.inputs)] if job.mends is not None else []
        self.store.delete_all([job_folder(job) + name for name in (*AUDIT, *copies) if name not in names])

    def _write_result(
        self, job: Job, body: bytes, current: ObjectInfo | None, *, sure: bool = True, committed: bool = False
    ) -> bool:
        """Write result.json over `current`, which was read before the row is read once more.

        `sure`: unless it is assumed. `committed`: this process has written the row a moment ago.
        """
        key = result_key(job)
        if not committed and not self._unchanged(job):
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
        if self._unchanged(job):
            raise AnswerDoubted(f"{result_key(job)} was answered as written and is not there")
        return False

    def _unchanged(self, job: Job) -> bool:
        now = self.table.get(job.job_id)
        return now is not None and now.rev == job.rev

    def _close(self, job: Job, on_written: Callable[[], None] | None = None) -> Job | None:
        if on_written is not None and self._unchanged(job):
            on_written()
        if job.state is State.PUBLISHING:
            ended = self.table.replace(job, move(job, State.SUCCEEDED, now=self.clock.now(), announced=False))
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
            return self.table.replace(job, move(job, State.QUEUED, now=self.clock.now(), reason=reason, files=()))
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

    def _point_latest(self, job: Job, began: float | None = None, *, fresh: bool = False) -> None:
        """Point latest.json to this job unless it names a newer one. `began`: when its files were surely staged.

        `fresh`: there is probably none yet.
        """
        self._point(job, latest_key(job), (job.stamp, job.created_at, job.job_id), began, fresh=fresh)
        if (key := mended_latest_key(job)) is not None:
            self._point(job, key, mended_order(job), began)

    def _point(
        self, job: Job, key: str, mine: tuple[float, float, str], began: float | None = None, *, fresh: bool = False
    ) -> None:
        for tries in range(_TRIES):
            current = self.store.head(key) if tries or not fresh else None
            order = read_order(self._read(key)) if current else None
            if order is not None and order > mine:
                return
            slow = began is not None and self.clock.steady() - began > _SLOW_SECONDS
            if (tries or slow or job.state is State.SUCCEEDED) and not self._unchanged(job):
                return
            try:
                version = current.version if current else None
                self.store.put(key, latest_body(job, mine), if_version=version, if_absent=current is None)
            except PreconditionFailed:
                continue
            return

    def _keep_profile(self, job: Job, staged: bytes | None, previous: KeptProfile | None) -> None:
        """Keep what this drop looked like for the sender's next one, unless a newer drop's profile is kept already.

        The profile is copied unread; the line above it, by which profiles are ordered, is ours. Of each kind of file
        the newest is kept. `staged`: the profile, if it is known; `previous`: what was kept a moment ago, likewise.
        """
        key = profile_key(job)
        if staged is None:
            staged = self._read(staging_folder(job.job_id, job.fence) + PROFILE)
        if key is None or staged is None or len(staged) > _SMALL // 2:
            return
        for _ in range(_PROFILE_TRIES):
            if previous is None:
                current = self.store.head(key)
                previous = KeptProfile(current.version if current else None, self._read(key) if current else None)
            kept = with_profile(previous.body, job, staged)
            if kept is None:
                return
            try:
                self.store.put(key, kept, if_version=previous.version, if_absent=previous.version is None)
            except PreconditionFailed:
                previous = None
                continue
            return

    def _take_back_latest(self, job: Job) -> None:
        """Another process moved the job on: retract latest.json if this one wrote it too late."""
        now = self.table.get(job.job_id)
        if now is None or now.state in ENDED - {State.SUCCEEDED}:
            self.retract_latest(job, fall_back=now is None)

    def retract_latest(self, job: Job, *, fall_back: bool = False) -> None:
        """Delete a latest.json that names this job. Safe to repeat, and for two at once.

        `fall_back`: point it to the newest other version that succeeded, since this job will leave no row that shows
        whether an older file was restored or always there.

        A delete is not conditional, so it may hit what a newer job wrote a moment ago. Such a job was committed in the
        table before it wrote, so latest.json is pointed to the newest job of the line again.
        """
        self._retract_mended(job)
        order = read_order(self._read(latest_key(job)))
        if order is not None and order[-1] != job.job_id:
            return
        if order is None and not _was_published(job):
            return  # it never named this job, so there is nothing to retract
        if order is not None:
            self.store.delete(latest_key(job))
        mine = (job.stamp, job.created_at, job.job_id)
        others = [
            j
            for j in self.table.line(job.line, whole=True)
            if j.state in (State.PUBLISHING, State.SUCCEEDED) and j.job_id != job.job_id
        ]
        if not fall_back:
            others = [j for j in others if (j.stamp, j.created_at, j.job_id) > mine or j.generation == job.generation]
        if others:
            self._point_latest(max(others, key=lambda j: (j.stamp, j.created_at, j.job_id)))

    def _retract_mended(self, job: Job) -> None:
        """Take back the first drop's latest.json where it names this job, and let it name the newest of its line, or
        the last of the other corrections."""
        key = mended_latest_key(job)
        if key is None or job.mends is None or read_order(self._read(key)) != mended_order(job):
            return
        self.store.delete(key)
        line = self.table.line(replace(job, subject=job.mends.subject).line, whole=True)
        others = [j for j in line if j.state in (State.PUBLISHING, State.SUCCEEDED)]
        if others:
            self._point_latest(max(others, key=lambda j: (j.stamp, j.created_at, j.job_id)))
        listed = {c.job_id for j in line for c in j.corrections} - {job.job_id}
        for other in self.table.get_all(listed).values() if listed else ():
            if other.state in (State.PUBLISHING, State.SUCCEEDED) and mended_latest_key(other) == key:
                self._point(other, key, mended_order(other))

    def _read(self, key: str, limit: int = _SMALL) -> bytes | None:
        try:
            return self.store.read(key, limit=limit)
        except (ObjectMissing, ObjectTooLarge):
            return None


def _was_published(job: Job) -> bool:
    """Whether a job was ever committed, as far as its history goes back."""
    return len(job.history) >= HISTORY_KEPT or any(state == State.PUBLISHING for state, _ in job.history)


def read_order(body: bytes | None) -> tuple[float, float, str] | None:
    """The sort key in a latest.json; None if it cannot be read."""
    try:
        latest = json.loads(body or b"")
        version = latest["latest"]
        if type(version) is int and version > LATEST_VERSION:
            raise RecordNewer(f"latest.json of {latest.get('job_id')}", version, LATEST_VERSION)
        stamp, created, job_id = latest["order"]
        order = float(stamp), float(created), str(job_id)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None
    return order if math.isfinite(order[0]) and math.isfinite(order[1]) else None


def outcome(job: Job) -> State:
    """The terminal state of a job, or the one it will have when its publication is finished."""
    return State.SUCCEEDED if job.state is State.PUBLISHING else job.state


def result_body(job: Job) -> bytes:
    status = outcome(job)
    committed = next(
        (at for name, at in reversed(job.history) if name in (State.PUBLISHING, job.state)), job.updated_at
    )
    body: dict[str, Any] = {
        "result": 1,
        "job_id": job.job_id,
        "status": str(status),
        "reason": job.reason or None,
        "error": None
        if job.error is None
        else {
            "verdict": str(job.error.verdict),
            "fault": str(job.error.fault),
            "message": job.error.message,
            "where": job.error.where,
        },
        "tenant": job.tenant,
        "workflow": job.workflow,
        "subject": job.subject,
        "params": job.params,
        "attempts": job.attempts_total,
        "inputs": [
            {"role": i.role, "name": i.name, "key": i.ref.key, "version": i.ref.version, "size": i.ref.size}
            for i in job.inputs
        ],
        **({} if job.mends is None else {"mends": {"job_id": job.mends.job_id, "subject": job.mends.subject}}),
        "config_digest": job.config_digest,
        "files": [{"name": f.name, "size": f.size, "sha256": f.sha256} for f in job.files],
        "summary": {k: v for k, v in job.summary.items() if k != "progress"},
        "sandbox": job.sandbox,
        "timings": {
            "uploaded_at": stamp_text(job.stamp),
            "created_at": stamp_text(job.created_at),
            "started_at": stamp_text(job.started_at),
            "ended_at": stamp_text(committed),
            "run_seconds": None if job.started_at is None else round(max(0.0, committed - job.started_at), 3),
        },
    }
    return json.dumps(body, indent=2, ensure_ascii=False).encode()


def latest_body(job: Job, order: tuple[float, float, str] | None = None) -> bytes:
    """`order`: among the results of its line, where that is not the job's own."""
    body = {
        "latest": LATEST_VERSION,
        "job_id": job.job_id,
        "result": result_key(job),
        "params": job.params,
        "uploaded_at": stamp_text(job.stamp),
        "order": list(order or (job.stamp, job.created_at, job.job_id)),
    }
    return json.dumps(body, indent=2, ensure_ascii=False).encode()


def mended_order(job: Job) -> tuple[float, float, str]:
    """The place of a job that corrects another drop in that drop's line: right behind its first result.

    A newer version of the drop comes later, whenever the corrected rows arrived; so does the correction that was listed
    later, which has the rows of those before it.
    """
    if job.mends is None:
        return (job.stamp, job.created_at, job.job_id)
    place = f"p{job.mends.place:06}~{job.stamp:020.6f}"
    return (job.mends.stamp, job.mends.created_at, f"{job.mends.job_id}~{place}~{job.job_id}")


def with_profile(kept: bytes | None, job: Job, staged: bytes) -> bytes | None:
    """The kept profiles of a sender with that of a job; None if a newer one of the same kind of file is there.

    Each is a line under a head of its own: whose it is, its order, a digest of its columns, and whose profiles of the
    same kind it replaced. A result that comes late is recognized by them.
    """
    line, _, profile = staged.rpartition(b"\n")
    claim = _json(line)
    after, layout = (str(claim.get(name) or "")[:_HEAD_TEXT] for name in ("after", "layout"))
    mine = (job.stamp, job.created_at, job.job_id)
    others: list[tuple[tuple[float, float, str], bytes, bytes]] = []
    was = [after] if after else []
    for head, body in _kept(kept):
        order = _profile_order(head)
        same_job = str(head.get("job_id") or "")
        before = head.get("was")
        known = [same_job, *map(str, before[:_WAS] if isinstance(before, list) else ())]
        if order is None:
            continue
        if job.job_id in known or (after and after in known) or (layout and layout == head.get("layout")):
            if order > mine:
                return None
            was += [one for one in known if one and one not in (*was, job.job_id)]
        else:
            others.append((order, json.dumps(head).encode(), body))
    head = {"kept": 1, "job_id": job.job_id, "order": list(mine), "layout": layout, "was": was[-_WAS:]}
    lines = sorted([*others, (mine, json.dumps(head).encode(), profile)], reverse=True)[:_KINDS]
    while len(lines) > 1 and sum(len(h) + len(b) + 2 for _, h, b in lines) > _SMALL:
        lines.pop()
    return b"".join(h + b"\n" + b + b"\n" for _, h, b in lines)


def _kept(body: bytes | None) -> list[tuple[dict[str, Any], bytes]]:
    """The lines of a file of kept profiles in pairs: ours, and the profile under it."""
    lines = (body or b"").split(b"\n")[: 2 * _KINDS]
    return [(head, below) for above, below in zip(lines[::2], lines[1::2], strict=False) if (head := _json(above))]


def _json(line: bytes) -> dict[str, Any]:
    """A short line of JSON; empty if it is not an object."""
    try:
        found = json.loads(line) if len(line) <= _HEAD else None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _profile_order(head: dict[str, Any]) -> tuple[float, float, str] | None:
    """How a kept profile is ordered among others; None where it does not say so."""
    try:
        stamp, created, job_id = head["order"]
        order = float(stamp), float(created), str(job_id)
    except (ValueError, TypeError, KeyError, OverflowError):
        return None
    return order if math.isfinite(order[0]) and math.isfinite(order[1]) else None


def count_moved(telemetry: Telemetry, job: Job) -> None:
    """Count a job that this process has just ended, or made wait for a person."""
    if job.state is State.REVIEW:
        telemetry.meters.add("ade.reviews")
    elif job.ended and job.state is not State.EXPIRED:
        verdict = str(job.error.verdict) if job.error else "ok"
        fault = str(job.error.fault) if job.error else "nobody"
        telemetry.meters.add("ade.jobs.ended", state=str(job.state), verdict=verdict, fault=fault)


def _record_published(telemetry: Telemetry, job: Job, *, began: float) -> None:
    """The outputs of a job, its questions or its end are in the bucket."""
    now = telemetry.now()
    telemetry.meters.observe("ade.publish", now - began)
    telemetry.span("publish", job.trace, start=began, end=now, job_id=job.job_id, state=str(job.state))
