"""The job record and its state machine: ids, transitions, retries, and the record as JSON. Pure functions over one
closed set of states.

A record carries the version of its layout: the lowest that holds what it says, so that programs of the release before
read whatever they can work on; docs/guides/upgrading.md says when a version is raised. A record of a newer version is
not read at all. Unknown fields in a record of a known version come from a newer program: they are kept and written
back. Values equal to their default are not written, so a default never changes within a version.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Any, TypedDict, Unpack

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from core.errors import IllegalTransition, RecordNewer, RowUnreadable
from core.verdicts import FAULTS, Fault, Verdict

NO_WORKFLOW = "-"
MAX_HISTORY = 24
MAX_NOTICES = 40


class State(StrEnum):
    AWAITING = "AWAITING"  # something it needs has not arrived; `waiting_for` says what
    SCHEDULED = "SCHEDULED"  # complete, to start at `due_at`
    QUEUED = "QUEUED"  # ready; a message in the queue names it
    RUNNING = "RUNNING"  # leased by one runner
    REVIEW = "REVIEW"  # an attempt found that a person must decide; waits for a decision until `due_at`
    PUBLISHING = "PUBLISHING"  # committed; anyone may finish the copies
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    CANCELLED = "CANCELLED"
    SKIPPED = "SKIPPED"  # superseded, or outside the schedule window
    EXPIRED = "EXPIRED"  # its outputs were collected; the row stays as a tombstone


class Outcome(StrEnum):
    """How good a result is, beside its state: the worst of its findings, notes aside."""

    CLEAN = "clean"
    WARNINGS = "warnings"
    ERRORS = "errors"


S = State
UNSTARTED = frozenset({S.AWAITING, S.SCHEDULED, S.QUEUED})
WAITING = UNSTARTED | {S.REVIEW}  # nobody works on it: it can be cancelled and superseded at once
ENDED = frozenset({S.SUCCEEDED, S.FAILED, S.TIMED_OUT, S.CANCELLED, S.SKIPPED, S.EXPIRED})
_WITH_FILES = ENDED - {S.EXPIRED} | {S.PUBLISHING}
RETRIABLE = frozenset({S.FAILED, S.TIMED_OUT, S.CANCELLED, S.EXPIRED})

TRANSITIONS: dict[State, frozenset[State]] = {
    S.AWAITING: frozenset({S.SCHEDULED, S.QUEUED, S.SKIPPED, S.CANCELLED}),
    S.SCHEDULED: frozenset({S.QUEUED, S.SKIPPED, S.CANCELLED}),
    # QUEUED, RUNNING, REVIEW → SUCCEEDED: a job that was reset did not succeed again; its earlier result stays.
    S.QUEUED: frozenset({S.RUNNING, S.SKIPPED, S.CANCELLED, S.SUCCEEDED}),
    # RUNNING → SKIPPED: the pinned input was replaced after the lease and before it was read.
    S.RUNNING: frozenset(
        {S.PUBLISHING, S.REVIEW, S.QUEUED, S.FAILED, S.TIMED_OUT, S.CANCELLED, S.SKIPPED, S.SUCCEEDED}
    ),
    # REVIEW → QUEUED: decided, or nobody decided in time and the manifest accepts that. → FAILED: it does not.
    S.REVIEW: frozenset({S.QUEUED, S.CANCELLED, S.SKIPPED, S.FAILED, S.SUCCEEDED}),
    # PUBLISHING → QUEUED: the staged files were lost before they were copied.
    # PUBLISHING → FAILED: its outputs can never be written because their keys are refused.
    S.PUBLISHING: frozenset({S.SUCCEEDED, S.QUEUED, S.FAILED}),
    S.SUCCEEDED: frozenset({S.EXPIRED, S.QUEUED}),
    # Back to AWAITING or SCHEDULED: dropped again while something it needs is missing, or before it is due.
    S.FAILED: frozenset({S.EXPIRED, S.QUEUED, S.AWAITING, S.SCHEDULED}),
    S.TIMED_OUT: frozenset({S.EXPIRED, S.QUEUED, S.AWAITING, S.SCHEDULED}),
    S.CANCELLED: frozenset({S.EXPIRED, S.QUEUED, S.AWAITING, S.SCHEDULED}),
    S.SKIPPED: frozenset({S.EXPIRED, S.QUEUED, S.AWAITING, S.SCHEDULED}),
    S.EXPIRED: frozenset({S.QUEUED, S.AWAITING, S.SCHEDULED}),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectRef:
    """An object at an exact version."""

    key: str
    version: str  # what the store needs to read exactly this content again
    digest: str  # the store's hash of the content; equal content has an equal digest where the store can tell
    size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class InputRef:
    role: str  # "primary" or "auxiliary"
    name: str  # a primary's path below the drop, an auxiliary's declared name
    ref: ObjectRef


@dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    owner: str
    expires: float
    # Which of a tenant's and of a workflow's counters the table counts it on, where it has several.
    counters: tuple[int, int] = (0, 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class JobError:
    """Why a job did not succeed. Never holds a cell's value."""

    verdict: Verdict
    message: str
    where: dict[str, Any] = field(default_factory=dict)  # rule, file, line, cell: whatever is known

    @property
    def fault(self) -> str:
        return FAULTS[self.verdict]


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputFile:
    name: str
    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CorrectionOf:
    """Which of a job's inputs are corrected rejects, and the first drop that its result completes."""

    files: tuple[tuple[str, str], ...]  # key of an input, and the job whose rejects it corrects
    job_id: str  # the job of the first drop
    subject: str
    stamp: float
    created_at: float
    place: int = 0  # among the corrections of that drop; its result has the rows of all before it


@dataclass(frozen=True, kw_only=True, slots=True)
class Correction:
    """A job that corrects the rejects of a drop, listed in the row of the drop's first job (runner/origins.py)."""

    place: int
    job_id: str
    stamp: float
    claims: tuple[tuple[int, str], ...]  # number of an input, and the job whose rejects it corrects


@dataclass(frozen=True, kw_only=True, slots=True)
class Review:
    """What the last attempt that needed a person asked, and what happens if nobody answers."""

    questions: int
    on_expiry: str  # "fail" or "accept"
    accepted: bool = False  # nobody answered in time: the engine's own choices count


@dataclass(frozen=True, kw_only=True, slots=True)
class NotifyRule:
    """Who wants to know what, as the manifest says."""

    to: str  # a URL, the ARN of a topic or an event bus, or mailto: and an address
    on: tuple[str, ...]  # kinds of notices


@dataclass(frozen=True, kw_only=True, slots=True)
class Notice:
    """Something that a receiver does not know yet."""

    id: str  # the same in every delivery
    kind: str  # "succeeded", "errors", "failed", "review" or "missing"
    to: str
    at: float
    next_at: float  # when to try to deliver it
    tries: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class EarlierResult:
    """What a job that was reset had published: it counts again if the job does not succeed."""

    files: tuple[OutputFile, ...]
    summary: dict[str, Any] = field(default_factory=dict)
    sandbox: dict[str, Any] = field(default_factory=dict)
    started_at: float | None = None
    ended_at: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One workflow applied to one input set at exact versions: the unit of work, retry and output."""

    job_id: str
    identity: str  # full hash behind the readable id; tells a collision from a duplicate
    tenant: str
    workflow: str
    subject: str  # path below the tenant's inbox that the outputs mirror
    replay: str = ""  # the replay that it is part of; its outputs are there, and nothing is learnt from it
    params: dict[str, Any] = field(default_factory=dict)
    state: State = State.AWAITING
    reason: str = ""  # why it is in this state, for people
    waiting_for: tuple[str, ...] = ()
    manifest: ObjectRef | None = None
    config: tuple[ObjectRef, ...] = ()
    config_place: str = ""  # the package's folder or zip; what the names inside it are relative to
    config_digest: str = ""  # of manifest, config and overlays
    overlays: tuple[ObjectRef, ...] = ()  # what its tenant or sender changes of the manifest, most specific last
    version: str = ""  # digest of manifest and config; empty: there is no overlay, and it is `config_digest`
    inputs: tuple[InputRef, ...] = ()
    mends: CorrectionOf | None = None  # set by the attempt that found keys of rejects.xlsx in an input
    corrections: tuple[Correction, ...] = ()  # jobs that correct the rejects of this one
    memories: tuple[ObjectRef, ...] = ()  # what was learnt before, most specific last; not part of its identity
    decision: ObjectRef | None = None  # a person's answer, for the next attempt or that of the last one
    decided_at: float | None = None  # when that decision was uploaded
    review: Review | None = None
    stamp: float = 0.0  # newest upload among what it was made of; orders versions of one line
    priority: int = 0
    due_at: float | None = None
    attempt: int = 0  # attempts of the present round; `ade retry` starts a new round
    attempts_total: int = 0  # of all rounds
    fence: int = 0  # grows with every start and names the staging folder; never goes back, not even in a recreated row
    lease: Lease | None = None
    cancel_requested_at: float | None = None
    error: JobError | None = None
    files: tuple[OutputFile, ...] = ()  # what the last committed attempt published or will publish
    earlier: EarlierResult | None = None  # of a job that was reset, until its next result is published
    unpublished: bool = False  # this end's result.json is still to be written; SUCCEEDED: latest.json is
    announced: bool = False  # status.json may describe it; see infra/statuses.py
    summary: dict[str, Any] = field(default_factory=dict)  # counts and timings; no cell values
    sandbox: dict[str, Any] = field(default_factory=dict)  # driver, level and rungs of the last attempt
    created_at: float = 0.0
    updated_at: float = 0.0
    started_at: float | None = None
    ended_at: float | None = None
    enqueued_at: float | None = None  # when its message was last known to be in the queue; None: not yet sent
    latest: str = "succeeded"  # "any": latest.json names this job even if it failed
    keep_days: float | None = None  # how long the manifest wants its outputs kept; None: as the settings say
    retention_seconds: float | None = None  # how long they are kept at least, decided when it started
    notify: tuple[NotifyRule, ...] = ()  # not part of its identity
    notices: tuple[Notice, ...] = ()  # to be delivered; written with what they are about
    trace: str = ""  # W3C traceparent of the span that began its trace; empty: it has none
    deferred_until: float | None = None  # the janitor could not do its chore and tries again then
    history: tuple[tuple[str, float], ...] = ()
    unknown: dict[str, Any] = field(default_factory=dict)  # fields that a newer program added; kept as they are
    rev: int = 0  # grows with every write; every write is conditional on it; starts above that of any former row

    @property
    def line(self) -> str:
        """Jobs of one line replace each other: same subject, same workflow."""
        return f"{self.tenant}/{self.subject}|{self.workflow}"

    @property
    def generation(self) -> str:
        """Jobs of one line and generation differ only in their parameters."""
        primaries = ",".join(sorted(i.ref.digest for i in self.inputs if i.role == "primary"))
        return f"{self.config_digest}:{primaries}"

    @property
    def workflow_version(self) -> str:
        """Which version of its workflow this is, whatever overlays it has."""
        return self.version or self.config_digest

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def committed_at(self) -> float:
        """When its present state was decided: of a success, when its files were final."""
        decisive = S.PUBLISHING if self.state is S.SUCCEEDED else self.state
        return next((at for name, at in reversed(self.history) if name == decisive), self.updated_at)

    @property
    def expires_at(self) -> float | None:
        """Until when its files are kept at least; None: it has none, or a program that kept no such promise ran it."""
        if self.retention_seconds is None or not self.files or self.state not in _WITH_FILES:
            return None
        return self.committed_at + self.retention_seconds

    @property
    def outcome(self) -> Outcome | None:
        """Of a job that has a result; None: it has none, or an attempt that counted no findings wrote it."""
        findings = self.summary.get("findings") if self.state in (S.PUBLISHING, S.SUCCEEDED) else None
        if not isinstance(findings, dict):
            return None
        if findings.get("error"):
            return Outcome.ERRORS
        return Outcome.WARNINGS if findings.get("warning") else Outcome.CLEAN


class PinChanges(TypedDict, total=False):
    """What the next attempt of a job is given beside its inputs."""

    memories: tuple[ObjectRef, ...]
    decision: ObjectRef | None
    decided_at: float | None


class JobChanges(PinChanges, total=False):
    """The fields of a row that may change with its state."""

    waiting_for: tuple[str, ...]
    manifest: ObjectRef | None
    config: tuple[ObjectRef, ...]
    config_place: str
    overlays: tuple[ObjectRef, ...]
    inputs: tuple[InputRef, ...]
    mends: CorrectionOf | None
    stamp: float
    priority: int
    due_at: float | None
    attempt: int
    attempts_total: int
    fence: int
    lease: Lease | None
    cancel_requested_at: float | None
    error: JobError | None
    files: tuple[OutputFile, ...]
    earlier: EarlierResult | None
    unpublished: bool
    announced: bool
    summary: dict[str, Any]
    sandbox: dict[str, Any]
    updated_at: float
    started_at: float | None
    ended_at: float | None
    enqueued_at: float | None
    retention_seconds: float | None
    notices: tuple[Notice, ...]
    deferred_until: float | None
    history: tuple[tuple[str, float], ...]


def move(
    job: Job,
    to: State,
    *,
    now: float,
    reason: str = "",
    review: Review | None = None,
    **changes: Unpack[JobChanges],
) -> Job:
    """The job after a transition; raises IllegalTransition if TRANSITIONS does not allow it.

    A job that was reset ends with its earlier result where it would end without one. `review`: None: it stays.
    """
    if to not in TRANSITIONS[job.state]:
        raise IllegalTransition(
            f"job {job.job_id} is {job.state} and cannot become {to}; "
            f"from there it may go to {', '.join(sorted(TRANSITIONS[job.state]))}"
        )
    if job.earlier is not None and to in _WITHOUT_RESULT:
        return _restored(job, to, now=now, reason=reason, error=changes.get("error"))
    base: JobChanges = {
        "waiting_for": (),
        "updated_at": now,
        "deferred_until": None,
        "history": (*job.history, (str(to), now))[-MAX_HISTORY:],
    }
    if to in ENDED:
        base |= {"lease": None, "ended_at": now, "unpublished": to is not S.SUCCEEDED}
    if to is S.REVIEW:
        base |= {"lease": None, "unpublished": True, "announced": True}
    if job.state is S.REVIEW:
        base["files"] = ()  # its questions; no result names them
    if to in UNSTARTED:
        base |= {"lease": None, "enqueued_at": None, "due_at": None, "ended_at": None, "unpublished": False}
    if job.notify or job.notices:
        base["notices"] = _notices_after(job, to, now)
    return replace(job, state=to, reason=reason, review=review or job.review, **(base | changes))


_WITHOUT_RESULT = frozenset({S.FAILED, S.TIMED_OUT, S.CANCELLED, S.SKIPPED})


def published(job: Job) -> EarlierResult:
    """What a job that has succeeded leaves in the bucket."""
    return EarlierResult(
        files=job.files,
        summary=job.summary,
        sandbox=job.sandbox,
        started_at=job.started_at,
        ended_at=job.ended_at,
    )


def _restored(job: Job, to: State, *, now: float, reason: str, error: JobError | None) -> Job:
    """A job that was reset and would end as `to`, with what it had published before."""
    why = reason or (error.message if error is not None else "")
    words = f"a reset ended {to}{f' ({why})' if why else ''}; the result from before stays"
    earlier = job.earlier or published(job)
    bare = replace(job, earlier=None, error=None)
    return move(
        bare,
        S.SUCCEEDED,
        now=now,
        reason=words,
        files=earlier.files,
        summary=earlier.summary,
        sandbox=earlier.sandbox,
        started_at=earlier.started_at,
        ended_at=earlier.ended_at,
        due_at=None,
        cancel_requested_at=None,
        unpublished=True,  # what it left in waiting is to be removed
        notices=job.notices,
    )


NOTICE_KINDS: dict[State, str] = {
    S.SUCCEEDED: "succeeded",
    S.FAILED: "failed",
    S.TIMED_OUT: "failed",
    S.REVIEW: "review",
}


def _notices_after(job: Job, to: State, now: float) -> tuple[Notice, ...]:
    """The notices that are still due after a transition. That a review waits is not reported once it no longer does."""
    left = tuple(n for n in job.notices if n.kind != "review") if job.state is S.REVIEW else job.notices
    if to is S.EXPIRED:
        return ()
    kind = NOTICE_KINDS.get(to)
    if kind is None:
        return left
    new = new_notices(job, kind, now)
    if to is S.SUCCEEDED and job.outcome is Outcome.ERRORS:
        known = {notice.to for notice in new}  # nobody is notified twice of one result
        new += tuple(notice for notice in new_notices(job, "errors", now) if notice.to not in known)
    return (*left, *new)[-MAX_NOTICES:]


def new_notices(job: Job, kind: str, now: float) -> tuple[Notice, ...]:
    """One notice for each receiver that asked for this kind."""
    return tuple(
        Notice(id=_notice_id(job, kind, rule.to, now), kind=kind, to=rule.to, at=now, next_at=now)
        for rule in job.notify
        if kind in rule.on
    )


def _notice_id(job: Job, kind: str, to: str, now: float) -> str:
    return hashlib.sha256(json.dumps([job.job_id, job.fence, kind, to, now]).encode()).hexdigest()[:32]


_REVS = 1 << 20  # more writes than any row gets between two starts


def first(job: Job, floor: int) -> Job:
    """The row that a table inserts. `floor`: no row of this tenant that was ever removed had a greater fence.

    So a runner that still works on a removed row holds neither the fence nor the rev of its successor.
    """
    fence = max(job.fence, floor)
    return replace(job, fence=fence, rev=fence * _REVS + 1)


def is_as_added(job: Job) -> bool:
    """Whether a row was never written since it was inserted."""
    return job.rev == job.fence * _REVS + 1


def start(job: Job, *, owner: str, now: float, lease_seconds: float, retention_seconds: float | None = None) -> Job:
    """Take the lease: a new attempt under a fence that no earlier runner holds.

    `retention_seconds`: how long its outputs will be kept; what it was promised before is not shortened.
    """
    return move(
        job,
        S.RUNNING,
        now=now,
        lease=Lease(owner=owner, expires=now + lease_seconds),
        fence=job.fence + 1,
        attempt=job.attempt + 1,
        attempts_total=job.attempts_total + 1,
        started_at=now,
        retention_seconds=max(
            (one for one in (retention_seconds, job.retention_seconds) if one is not None), default=None
        ),
        error=None,
    )


def lease_owner(job: Job) -> str | None:
    """Who holds the lease of a job. A table whose rows were restored may have given a rev and a fence a second time,
    to another runner, so a write of a leased row is conditional on its owner too."""
    return job.lease.owner if job.lease is not None else None


def beat(job: Job, *, now: float, lease_seconds: float) -> Job:
    """Renew the lease of a running job."""
    if job.state is not S.RUNNING or job.lease is None:
        raise IllegalTransition(f"job {job.job_id} is {job.state}; only a running job has a heartbeat")
    return replace(job, lease=replace(job.lease, expires=now + lease_seconds), updated_at=now)


RETRACTED_SECONDS = 60.0  # longer than any single call to a store


def is_retracted(job: Job, now: float) -> bool:
    """Whether an expired job's outputs are certain to be gone; until then it may not run again.

    Deletes are unconditional: one still on its way would hit the outputs of the next run.
    """
    return job.state is not S.EXPIRED or not (job.unpublished or now - job.updated_at < RETRACTED_SECONDS)


def again(job: Job, *, now: float, reason: str, to: State = S.QUEUED, **changes: Unpack[JobChanges]) -> Job:
    """Start a new round for an ended job: retry, reset or re-drop."""
    fresh: JobChanges = {"attempt": 0, "error": None, "cancel_requested_at": None, "summary": {}}
    review = replace(job.review, accepted=False) if job.review is not None else None
    return move(job, to, now=now, reason=reason, review=review, **(fresh | changes))


def ended_incomplete(job: Job) -> bool:
    """Whether an ended job still waited for a part of its set: its package, a lookup table, a manifest at all."""
    before = next((state for state, _ in reversed(job.history) if state not in ENDED), None)
    return before == S.AWAITING


def ask(job: Job, *, now: float, review: Review, expires: float, key: str, **changes: Unpack[JobChanges]) -> Job:
    """Let a running job wait for a person's decision, at `key`, for `expires` seconds."""
    count = f"{review.questions} question{'' if review.questions == 1 else 's'}"
    left = " that the decision leaves open" if job.decision is not None else ""
    waits: JobChanges = {"due_at": now + expires, "waiting_for": (key,), "attempt": 0}
    reason = f"waiting for a decision on {count}{left}; see review.html"
    return move(job, S.REVIEW, now=now, reason=reason, review=review, **(waits | changes))


def is_new_decision(job: Job, decision: ObjectRef | None) -> bool:
    """Whether a decision says something that no attempt of this job was given."""
    return decision is not None and (job.decision is None or job.decision.digest != decision.digest)


def decided(job: Job, decision: ObjectRef, *, now: float, at: float) -> Job | None:
    """The job with a decision that was uploaded at `at`; None where it changes nothing.

    One that is REVIEW goes back to the queue, and so does one that failed because nobody had answered in time. One
    that has not ended takes the decision along: if it runs, its runner notices at the end (`Worker`).
    """
    if not is_new_decision(job, decision):
        return None
    facts: PinChanges = {"decision": decision, "decided_at": at}
    if job.state is S.REVIEW:
        return move(job, S.QUEUED, now=now, reason=f"decided by {decision.key}", files=(), **facts)
    if job.state is S.FAILED and job.error is not None and job.error.verdict is Verdict.REVIEW_EXPIRED:
        return None if job.unpublished else again(job, now=now, reason=f"decided late by {decision.key}", **facts)
    return replace(job, **facts) if job.state in UNSTARTED | {S.RUNNING} else None


def undecided(job: Job, *, now: float) -> Job:
    """The job after its review's deadline."""
    review = job.review or Review(questions=0, on_expiry="fail")
    if review.on_expiry == "accept":
        reason = "nobody decided in time; the likeliest answers are taken, as review.on_expiry says"
        return move(job, S.QUEUED, now=now, reason=reason, files=(), review=replace(review, accepted=True))
    message = f"nobody answered its review in time; put {', '.join(job.waiting_for)} into the bucket to run it again"
    error = JobError(verdict=Verdict.REVIEW_EXPIRED, message=message)
    return move(job, S.FAILED, now=now, error=error, files=())


def put_back(job: Job, *, now: float, stamp: float) -> Job:
    """Make a job the newest of its line: its input is back after another version replaced it.

    Not while it is PUBLISHING: result.json is made from the row, which must not change while it is being published.
    """
    if job.state is S.SUCCEEDED:
        # latest.json has to follow, and the outputs are kept as long as those of a new drop.
        return replace(job, stamp=stamp, unpublished=True, updated_at=now, ended_at=now)
    return job if job.state is S.PUBLISHING else replace(job, stamp=stamp)


_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # no i, l, o, u: easy to read aloud
LENGTHS = (8, 13, 26)  # the next one is used if another job has the shorter id


def identity(
    *, tenant: str, workflow: str, subject: str, config_digest: str, inputs: list[str], params: Mapping[str, object]
) -> str:
    """The full hash of what a job is: the same for every event that leads to it, so duplicates meet in one row."""
    facts = [tenant, workflow, subject, config_digest, sorted(inputs), params]
    return hashlib.sha256(json.dumps(facts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def job_id(tenant: str, workflow: str, identity_hash: str, length: int = LENGTHS[0]) -> str:
    number = int(identity_hash, 16)
    tail = "".join(_ALPHABET[(number >> (5 * i)) & 31] for i in range(length))
    return f"{job_ids_of(tenant)}{_slug(workflow)}-{tail}"


def job_ids_of(tenant: str) -> str:
    """How the ids of a tenant's jobs begin; those of another may begin so, too."""
    return f"{_slug(tenant)}-"


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:24].strip("-") or "x"


def digest_of(parts: list[tuple[str, str]]) -> str:
    """One digest for a set of named digests, in any order."""
    text = "\n".join(f"{name}\0{digest}" for name, digest in sorted(parts))
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryPolicy:
    max_attempts: int = 3
    backoff_seconds: float = 2.0
    backoff_cap_seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class Retry:
    delay: float
    counts: bool = True  # against the job's attempts


@dataclass(frozen=True, slots=True)
class End:
    state: State


_MOST_DOUBLED = 5


def decide(
    verdict: Verdict, *, attempt: int, policy: RetryPolicy, jitter: float, blameless: bool = False, spared: int = 0
) -> Retry | End:
    """`attempt` is the one that just ended, from 1; `jitter` is drawn from [0, 1) by the caller.

    `blameless`: the environment failed, and would have failed any other job too. `spared`: how many attempts were given
    back before, if that does not stop the taking of jobs: the wait grows with them, to about a minute.
    """
    if verdict is Verdict.CANCELLED:
        return End(State.CANCELLED)
    if verdict is Verdict.WALL_CLOCK:
        return End(State.TIMED_OUT)
    if verdict is Verdict.INPUT_GONE:
        return End(State.SKIPPED)
    if verdict is Verdict.RELEASED:
        return Retry(0.0, counts=False)
    if FAULTS[verdict] is not Fault.OURS or verdict is Verdict.ENGINE_FAILED:
        return End(State.FAILED)
    if attempt >= policy.max_attempts and not blameless:
        return End(State.FAILED)
    ceiling = min(policy.backoff_cap_seconds, policy.backoff_seconds * 2 ** (attempt - 1 + min(spared, _MOST_DOUBLED)))
    return Retry(ceiling * (0.5 + jitter / 2), counts=not blameless)


def since(job: Job) -> float:
    """When the job entered its present state."""
    return next((at for name, at in reversed(job.history) if name == job.state), job.updated_at)


def stamp_text(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


RECORD_VERSION = 4  # the newest that this program reads and writes
# Verdicts that programs of version 1 know, and those that came with version 3; a row with any other is of version 2.
_FIRST = frozenset(
    {
        Verdict.OK, Verdict.INPUT_UNREADABLE, Verdict.NOTHING_MAPPED, Verdict.INPUT_GONE, Verdict.RULE_ERROR,
        Verdict.CONFIG_REFUSED, Verdict.BAD_OUTPUT, Verdict.CPU, Verdict.MEMORY, Verdict.WALL_CLOCK, Verdict.FILE_SIZE,
        Verdict.PROCESSES, Verdict.SIGNAL, Verdict.CANCELLED, Verdict.LEASE_LOST, Verdict.RELEASED, Verdict.BOX_FAILED,
        Verdict.STORE_FAILED, Verdict.RUNNER_LOST,
    }
)  # fmt: skip
_THIRD = frozenset({Verdict.EMPTY_INPUT, Verdict.ENGINE_FAILED})


@cache
def job_codec() -> TypeAdapter[Job]:
    """What reads and writes records; made on first use, since a command that has no table does without."""
    return TypeAdapter(Job)


_KNOWN = frozenset(field.name for field in fields(Job)) - {"unknown"}


def record_version(job: Job) -> int:
    """The lowest version that holds a job: programs of version 1 know no reviews and would ignore a decision.

    They would lose nothing of a job that corrects rejects, but would not point the first drop's latest.json to it.
    """
    if job.overlays or job.earlier or job.replay or job.keep_days is not None:
        return 4  # older programs would run it without overlays, give up its result too early, or publish a replay
    verdict = Verdict.OK if job.error is None else job.error.verdict
    if verdict in _THIRD:
        return 3
    newer = job.state is State.REVIEW or any((job.review, job.decision, job.mends))
    return 2 if newer or verdict not in _FIRST else 1


def dump_job(job: Job) -> str:
    record: dict[str, object] = {"v": record_version(job)}
    record |= job_codec().dump_python(job, mode="json", exclude_defaults=True, exclude={"unknown"})
    return to_json(record | job.unknown, inf_nan_mode="null").decode()


def load_job(text: str | bytes, name: str = "") -> Job:
    """The job of a record; raises RecordNewer or RowUnreadable. `name`: of the row, for messages."""
    try:
        record = from_json(text, cache_strings="keys")  # its values are of one job
        if not isinstance(record, dict):
            raise ValueError(f"it holds a {type(record).__name__}")  # noqa: TRY004 - as every other bad record
        version_of(record.pop("v", 1), name)
        unknown = {field: record.pop(field) for field in record.keys() - _KNOWN}
        job = job_codec().validate_python(record)
    except ValueError as error:
        first = str(error).splitlines()
        raise RowUnreadable(
            f"row {name or 'of a job'} cannot be read ({' '.join(first[1:3]) or first[0]}); "
            "repair or delete it in the table: the next sweep finds its drop again"
        ) from None
    return replace(job, unknown=unknown) if unknown else job


def version_of(version: Any, name: str) -> int:
    """A record's version; raises RecordNewer if this program does not know it, ValueError if it is not a version."""
    if type(version) is not int or version < 1:
        raise ValueError("its version is not a positive integer")
    if version > RECORD_VERSION:
        raise RecordNewer(f"row {name or 'of a job'}", version, RECORD_VERSION)
    return version


def job_dict(job: Job) -> dict[str, Any]:
    """The documented shape behind `--json`: plain values only. Without receivers: a webhook's URL may be its secret."""
    shown: dict[str, Any] = job_codec().dump_python(job, mode="json", exclude={"unknown", "notify", "notices"})
    shown["outcome"], shown["expires_at"] = job.outcome, job.expires_at
    if job.error is not None:
        shown["error"]["fault"] = job.error.fault
    return shown
