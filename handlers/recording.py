"""In: planned jobs. Out: rows that are created, completed, retried or superseded, and the messages they need.

Each row changes by one conditional write, and every step can be repeated: if a planner dies, the next event or sweep
continues; planners that race meet in the same rows.

Theory of operation. Versions of one line are ordered by stamp. Stamps come from the store's clock, which has whole
seconds on S3, can go back, and does not change when an old version is restored. So a stamp counts only where it is
greater than every other version's; otherwise the bucket is read again, after the line was read. A version that is no
longer in the bucket is an outdated plan and is dropped: the scan of the current version plans that one. A current
version gets a stamp just above all others, so the order in the table, and with it latest.json, is strict. The next
sweep repairs what a slow planner superseded by mistake: a SKIPPED job whose input is current runs again.
"""

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, NamedTuple

from core.drops import is_placeholder
from core.errors import IllegalTransition, RowUnreadable
from core.jobs import (
    LENGTHS,
    RETRIABLE,
    UNSTARTED,
    WAITING,
    InputRef,
    Job,
    ObjectRef,
    PinChanges,
    State,
    again,
    decided,
    is_retracted,
    job_id,
    move,
    put_back,
)
from core.ports import Clock, JobTable, LineMark, Marks, WorkQueue
from infra.queueing import Lanes, add, enqueue_all, mutate
from infra.statuses import Statuses, status_key
from infra.telemetry import Root, Telemetry

_BATCH = 10  # messages per request
_SHORT_DELAY = 10.0
_MARKS = 1000  # to set in one go
# A standing workflow that changes does not process again what an earlier version of it has processed.
_HANDLED = frozenset(State) - WAITING - {State.SKIPPED}


@dataclass(frozen=True, slots=True)
class Planned:
    """The jobs of one input set: one line, one generation, one job per combination of parameters."""

    jobs: list[Job]
    is_current: Callable[[], bool]  # reads the bucket again: does it still hold exactly what was planned?
    delay: float = 0.0
    dropped: float = 0.0  # when the newest of its inputs was uploaded


class MetJob(NamedTuple):
    """What a scan keeps of a job that existed already: a sweep meets every job of the inbox."""

    job_id: str
    config_digest: str
    params: dict[str, Any]
    is_placeholder: bool

    @classmethod
    def of(cls, job: Job) -> "MetJob":
        return cls(job.job_id, job.config_digest, job.params, is_placeholder(job))


@dataclass
class Recorded:
    """What a scan changed in the table."""

    created: list[Job] = field(default_factory=list)
    queued: list[Job] = field(default_factory=list)
    superseded: list[Job] = field(default_factory=list)
    met: list[MetJob] = field(default_factory=list)  # existed already


class FollowUps:
    """What is left to do for recorded rows: messages to send, placeholders to remove, statuses to write, marks to set.

    Shared by threads.
    """

    def __init__(self, began: float = 0.0, trace: str = "") -> None:
        """`began`: when the scan started, and with it the traces of its jobs; `trace`: of the request it is part of."""
        self.began = began
        self.trace = trace
        self._lock = threading.Lock()
        self._messages: dict[str, tuple[Job, float]] = {}
        self._added: set[str] = set()
        self._placeholders: dict[str, str] = {}  # identities by job id
        self._waiting: dict[str, Job] = {}
        self._marks: dict[str, LineMark] = {}

    def send(self, job: Job, delay: float, *, added: bool = False) -> None:
        """`added`: its row was added by this scan."""
        with self._lock:
            self._messages[job.job_id] = (job, delay)
            if added:
                self._added.add(job.job_id)

    @property
    def added(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._added)

    def drop(self, placeholders: Iterable[Job]) -> None:
        """Remove these placeholders, if they exist: the real job replaces them."""
        found = {job.job_id: job.identity for job in placeholders}
        with self._lock:
            self._placeholders |= found

    def announce(self, job: Job) -> None:
        """Write status.json for a waiting job; of several jobs of one line, the last one counts."""
        with self._lock:
            self._waiting[status_key(job)] = job

    def mark(self, marks: dict[str, LineMark]) -> None:
        """LineMark lines that are in order, once everything else is done."""
        with self._lock:
            self._marks |= marks

    @property
    def full(self) -> bool:
        """Whether there is a full batch of messages: sending it now costs no more calls than sending it later."""
        with self._lock:
            return len(self._messages) >= _BATCH or len(self._marks) >= _MARKS

    def drain(self) -> tuple[list[tuple[Job, float]], dict[str, str], list[Job], dict[str, LineMark]]:
        with self._lock:
            pending = list(self._messages.values()), self._placeholders, list(self._waiting.values()), self._marks
            self._messages, self._placeholders, self._waiting, self._marks = {}, {}, {}, {}
        return pending


@dataclass(eq=False, repr=False)
class Recorder:
    table: JobTable
    queue: WorkQueue
    clock: Clock
    lanes: Lanes
    statuses: Statuses
    _: KW_ONLY
    telemetry: Telemetry = field(default_factory=Telemetry)
    marks: Marks | None = None
    unnoted: bool = False  # messages of jobs that were just added are not noted as sent (core.chores.Timings)

    def record(
        self, sets: Sequence[Planned], *, standing: bool, done: Recorded, followups: FollowUps
    ) -> list["_Line | None"]:
        """Write the planned jobs; `settle` does the follow-ups. Each line is read once, however many jobs it has.

        Returns the line of each set; None: the plan is outdated.
        """
        found = self.lanes.each(lambda planned: self._line(planned, standing=standing), sets)
        lines = [
            (planned, line)
            for planned, line in zip(sets, found, strict=True)
            if line is not None and not line.is_done_with
        ]
        jobs = [(job, planned, line) for planned, line in lines for job in planned.jobs]
        unreadable = [
            error for error in self.lanes.each(lambda one: self._try_record(*one, done, followups), jobs) if error
        ]
        outdated = [(older, line) for _, line in lines for older in line.others if older.stamp < line.planned.stamp]
        self.lanes.each(lambda one: self._supersede(*one, done), outdated)
        if unreadable:
            raise unreadable[0]
        return found

    def _line(self, planned: Planned, *, standing: bool) -> "_Line | None":
        """The line of a set, stamped as its newest version; None if the plan is outdated."""
        line = _Line(planned.jobs[0], self.table.line(planned.jobs[0].line))
        line.is_done_with = standing and line.is_processed(planned.dropped)
        if line.is_done_with:
            return line
        stamp = line.stamp(planned.is_current)
        if stamp is None:
            return None
        line.planned = replace(line.planned, stamp=stamp)
        return line

    def _try_record(
        self, job: Job, planned: Planned, line: "_Line", done: Recorded, followups: FollowUps
    ) -> RowUnreadable | None:
        """Record a job; the error of an unreadable row is returned, so it does not block the others."""
        try:
            self._record(job, planned, line, done, followups)
        except RowUnreadable as error:
            return error
        return None

    def _record(self, job: Job, planned: Planned, line: "_Line", done: Recorded, followups: FollowUps) -> None:
        wanted = replace(job, stamp=line.planned.stamp)
        root, began = self.telemetry.root("drop", start=followups.began, below=followups.trace), self.telemetry.now()
        wanted = replace(wanted, trace=root.trace) if root is not None else wanted
        there, created = self._add(wanted, line.known, planned.delay)
        if root is not None and created:
            self._trace(root, there, began)
        if created:
            done.created.append(there)
        else:
            done.met.append(MetJob.of(there))
        job = there if created else self._meet(there, wanted, line, planned.is_current)
        is_changed = created or job.rev != there.rev
        if is_changed and job.announced:
            followups.announce(job)
        if is_changed or not self._is_in_order(job):
            line.is_in_order = False
        if job.state is State.QUEUED and (created or job.enqueued_at is None):
            done.queued.append(job)
        if not _is_sent(job):
            followups.send(job, planned.delay, added=created)
        elif not _is_published(job):
            followups.send(job, 0.0)  # its receiver updates latest.json

    def _is_in_order(self, job: Job) -> bool:
        """Whether no step of a job is left to whoever plans it again."""
        return _is_sent(job) and _is_published(job) and is_retracted(job, self.clock.now())

    def _trace(self, root: Root, job: Job, began: float) -> None:
        now = self.telemetry.now()
        facts = {"tenant": job.tenant, "workflow": job.workflow, "subject": job.subject, "state": str(job.state)}
        root.end(now, job_id=job.job_id, **facts)
        if job.enqueued_at is not None:  # its message was sent with the row
            self.telemetry.span("enqueue", job.trace, start=began, end=now, kind="producer")

    def follow_up(self, followups: FollowUps) -> None:
        """Send messages and note them as sent, then the rest. A crash in between sends them twice, harmlessly."""
        messages, placeholders, waiting, marks = followups.drain()
        if messages:
            began = self.telemetry.now()
            # A message that is delayed may be late by far more than a note costs.
            late = {job.job_id for job, delay in messages if delay > _SHORT_DELAY}
            unnoted = followups.added - late if self.unnoted else frozenset()
            enqueue_all(self.table, self.queue, self.clock, messages, lanes=self.lanes, unnoted=unnoted)
            if self.telemetry.traces:
                now = self.telemetry.now()
                for job, delay in messages:
                    self.telemetry.span("enqueue", job.trace, start=began, end=now, kind="producer", delay=delay)
        for job in self.table.get_all(placeholders).values() if placeholders else ():
            if job.identity == placeholders[job.job_id] and is_placeholder(job):
                self.statuses.remove(job)
        self.lanes.each(self.statuses.announce, waiting)
        if marks and self.marks is not None:
            self.marks.mark(marks)

    def place(self, placeholder: Job, done: Recorded, followups: FollowUps, planned_from: bytes | None = None) -> None:
        """Record a row that says what is missing; replace it if that changed. `planned_from`: see `LineMark`."""
        job, created = self._add(placeholder, {}, 0.0)
        if not created and planned_from is not None:
            followups.mark({job.line: LineMark(planned_from, frozenset({(job.job_id, job.rev)}))})
        if created:
            done.created.append(job)
            followups.announce(job)
        elif is_placeholder(job) and (job.reason, job.inputs) != (placeholder.reason, placeholder.inputs):
            updated = replace(
                placeholder, fence=job.fence, created_at=job.created_at, history=job.history, unknown=job.unknown
            )
            if (written := self.table.replace(job, updated)) is not None:
                followups.announce(written)

    def is_processed(self, planned: Job, dropped: float) -> bool:
        """Whether another version of its workflow processed this very input, uploaded at `dropped`, and nothing came
        since."""
        return _Line(planned, self.table.line(planned.line)).is_processed(dropped)

    def _add(self, job: Job, known: dict[str, Job], delay: float) -> tuple[Job, bool]:
        """Insert, under a longer id if another job has the short one; `known`: rows that exist already."""
        for length in LENGTHS:
            job = replace(job, job_id=job_id(job.tenant, job.workflow, job.identity, length))
            there = known.get(job.job_id)
            row, created = (there, False) if there else add(self.table, self.queue, self.clock, job, delay=delay)
            if row.identity == job.identity:
                return row, created
        raise IllegalTransition(f"job id {job.job_id} is taken by another job at every length")

    def _meet(self, job: Job, planned: Job, line: "_Line", is_current: Callable[[], bool]) -> Job:
        """Apply a plan to a job that exists: complete it if it waits, retry it if it failed and was dropped again."""
        latest = job

        def change(row: Job) -> Job | None:
            nonlocal latest
            latest, after = row, self._after(row, planned, line, is_current)
            after = self._decided(after or row, planned) or after
            if after is not None and row.announced and not after.announced:
                self.statuses.clear(row)
            return after

        return mutate(self.table, job.job_id, change, known=job) or latest

    def _after(self, job: Job, planned: Job, line: "_Line", is_current: Callable[[], bool]) -> Job | None:
        now, newer = self.clock.now(), planned.stamp > job.stamp
        starts: _Starts = {
            "manifest": planned.manifest,
            "config": planned.config,
            "config_place": planned.config_place,
            "overlays": planned.overlays,
            "inputs": planned.inputs,
            "stamp": planned.stamp,
            "priority": planned.priority,
            "memories": planned.memories,
            "decision": planned.decision,
            "decided_at": planned.decided_at,
            "waiting_for": planned.waiting_for,
            "announced": planned.announced,
            "due_at": planned.due_at,
        }
        if job.state is State.AWAITING and planned.state is State.AWAITING:
            if planned.waiting_for != job.waiting_for:
                return replace(job, reason=planned.reason, waiting_for=planned.waiting_for, announced=planned.announced)
        elif job.state is State.AWAITING:
            return move(job, planned.state, now=now, reason=planned.reason, **starts)
        elif not is_retracted(job, now):
            return None  # the next sweep finds it
        elif planned.state in UNSTARTED and (
            (job.state in RETRIABLE | {State.SKIPPED} and newer) or (job.state is State.SKIPPED and is_current())
        ):
            return again(job, now=now, to=planned.state, reason=planned.reason or "dropped again", **starts)
        if newer and line.overtook(job):
            after = put_back(job, now=now, stamp=planned.stamp)
            return None if after is job else after
        return None

    def _decided(self, job: Job, planned: Job) -> Job | None:
        """The job with the decision that is there now, or without the one that is not; None if that changes nothing."""
        if planned.decision is not None:
            return decided(job, planned.decision, now=self.clock.now(), at=planned.decided_at or planned.stamp)
        if job.decision is not None and job.state in UNSTARTED:
            return replace(job, decision=None, decided_at=None)
        return None

    def _supersede(self, older: Job, line: "_Line", done: Recorded) -> None:
        """A newer version of the same key replaces a job that has not started, or that waits for a person."""
        if is_placeholder(older):
            line.is_in_order = False
            self.statuses.remove(older)
        elif older.state in WAITING:
            line.is_in_order = False
            now = self.clock.now()
            ended = mutate(self.table, older.job_id, lambda j: _superseded(j, line.planned, now), known=older)
            if ended is not None:
                done.superseded.append(ended)


class _Starts(PinChanges):
    """What a plan says about a job that it starts."""

    manifest: ObjectRef | None
    config: tuple[ObjectRef, ...]
    config_place: str
    overlays: tuple[ObjectRef, ...]
    inputs: tuple[InputRef, ...]
    stamp: float
    priority: int
    waiting_for: tuple[str, ...]
    announced: bool
    due_at: float | None


class _Line:
    """The rows of a planned set's line: those of its own version, and those of others.

    Two manifests with the same name that select the same file each get their own job; neither supersedes the other.
    """

    def __init__(self, planned: Job, jobs: tuple[Job, ...]) -> None:
        same = [job for job in jobs if _manifest_key(job) == _manifest_key(planned)]
        mine = planned.generation
        self.planned = planned
        self.known = {job.job_id: job for job in jobs}
        self.own = [job for job in same if job.generation == mine]
        self.others = [job for job in same if job.generation != mine]
        self._newest = max((job.stamp for job in self.others if not is_placeholder(job)), default=-math.inf)
        self.is_done_with = False  # there is nothing to record
        self.is_in_order = True  # as far as recorded: no row had to change, and nothing is left to do for one

    def stamp(self, is_current: Callable[[], bool]) -> float | None:
        """The stamp that makes the planned version the newest of its line; None: it is outdated."""
        mine = max([self.planned.stamp, *(job.stamp for job in self.own)])
        if mine > self._newest:
            return mine
        return math.nextafter(self._newest, math.inf) if is_current() else None

    def mark(self, planned_from: bytes) -> LineMark:
        return LineMark(planned_from, frozenset((job.job_id, job.rev) for job in self.known.values()))

    def overtook(self, job: Job) -> bool:
        """Whether another version is newer than a job of the planned one."""
        return self._newest >= job.stamp

    def is_processed(self, dropped: float) -> bool:
        """Whether an earlier version of the workflow processed this very input, and no other version came since.

        Not if it ended without success and the input was uploaded again since then, at `dropped`.
        """
        mine, config = _primaries(self.planned), self.planned.config_digest
        known = [j for j in self.others if j.state in _HANDLED and j.config_digest != config and _primaries(j) == mine]
        newest = max((job.stamp for job in known), default=-math.inf)
        since = any(j.stamp > newest and _primaries(j) != mine and not is_placeholder(j) for j in self.others)
        failed = [j for j in known if j.stamp == newest and j.state in RETRIABLE]
        # A store with versions tells also where its times have whole seconds.
        again = dropped > newest or any(_versions(j) != _versions(self.planned) for j in failed)
        return bool(known) and not since and not (failed and again)


def _is_sent(job: Job) -> bool:
    return job.state is not State.QUEUED or job.enqueued_at is not None


def _is_published(job: Job) -> bool:
    return job.state is not State.SUCCEEDED or not job.unpublished


def _superseded(job: Job, by: Job, now: float) -> Job | None:
    if job.state not in WAITING:
        return None
    return move(job, State.SKIPPED, now=now, reason=f"superseded by {by.job_id}")


def _manifest_key(job: Job) -> str:
    return job.manifest.key if job.manifest else ""


def _versions(job: Job) -> set[str]:
    return {i.ref.version for i in job.inputs if i.role == "primary"}


def _primaries(job: Job) -> set[str]:
    return {i.ref.digest for i in job.inputs if i.role == "primary"}
