"""The ports. Adapters live in infra/; one contract suite runs over each port. The port to boxes is `runner/boxes.py`.

What only some adapters can do is a Protocol of its own (`SharesDatabase`, `AddsWithMessage`, `PutsTogether`, `Hasty`),
recognised by isinstance.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

from core.ends import EndCounts
from core.errors import ObjectRefused, RecordNewer, RowUnreadable
from core.jobs import Job, ObjectRef, Outcome, State
from core.verdicts import Fault, Verdict


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch. Never goes back within one process."""
        ...

    def steady(self) -> float:
        """Seconds since some moment of this process, whatever happens to the wall clock; only differences count."""
        ...


Body = bytes | Path  # of an object: in memory, or a file
Metadata = Mapping[str, str] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectInfo:
    key: str
    version: str
    digest: str
    size: int
    modified: float
    metadata: Mapping[str, str] | None = field(default_factory=dict)  # None: a listing does not say; `head` does

    @property
    def ref(self) -> ObjectRef:
        return ObjectRef(key=self.key, version=self.version, digest=self.digest, size=self.size)


@dataclass(frozen=True, kw_only=True, slots=True)
class Folder:
    """One level of the bucket: the objects in it and the names of the folders below it."""

    objects: tuple[ObjectInfo, ...]
    folders: tuple[str, ...]  # full prefixes, each with its trailing slash


@dataclass(frozen=True, kw_only=True, slots=True)
class Level:
    """One level of the bucket by name; details of an object are requested only where needed."""

    keys: tuple[str, ...]
    folders: tuple[str, ...]
    infos: Callable[[Collection[str]], list[ObjectInfo]]  # of the given keys: as listed, or as they are now if they are
    refused_keys: tuple[str, ...] = ()  # keys here that are refused (core.keys.check_key), and so are not listed
    unreadable: dict[str, str] = field(
        default_factory=dict
    )  # what `infos` left out because the store refuses it, and why


def readable(
    keys: Collection[str], head: Callable[[str], ObjectInfo | None], unreadable: dict[str, str]
) -> list[ObjectInfo]:
    """The objects of those keys that exist; notes in `unreadable` those that the store refuses."""
    found = []
    for key in keys:
        try:
            info = head(key)
        except ObjectRefused as error:
            unreadable[key] = str(error)
            continue
        if info is not None:
            found.append(info)
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetched:
    size: int
    sha256: str
    version: str | None = None  # None: not known


class ObjectStore(Protocol):
    """A bucket. Keys are S3 keys; an object exists completely or not at all."""

    def head(self, key: str) -> ObjectInfo | None:
        """The newest version, or None if there is none (or it is not yet complete). May raise ObjectRefused."""
        ...

    def objects(self, prefix: str, *, unreadable: dict[str, str] | None = None) -> Iterator[ObjectInfo]:
        """Every object whose key starts with `prefix`, by key; none: yields nothing.

        One that cannot be yielded (its key is refused, or the store refuses access) does not end the listing: it is
        left out and added to `unreadable` with the reason.
        """
        ...

    def keys(self, prefix: str) -> Iterator[str]:
        """Like `objects`, but only names; never reads content."""
        ...

    def folder(self, prefix: str) -> Folder:
        """One level below `prefix` (which ends in '/'); empty if nothing is there."""
        ...

    def level(self, prefix: str) -> Level:
        """Like `folder`, but only names: does not stat each of many files."""
        ...

    def read(self, key: str, *, version: str | None = None, limit: int) -> bytes:
        """The whole content. Raises ObjectMissing, ObjectChanged (that version is gone) or ObjectTooLarge."""
        ...

    def fetch(self, key: str, to: Path, *, version: str | None = None, limit: int) -> Fetched:
        """Stream the content into a new file; raises like `read`, and then leaves no file."""
        ...

    def put(
        self, key: str, body: Body, *, if_version: str | None = None, if_absent: bool = False, metadata: Metadata = None
    ) -> ObjectInfo:
        """Write an object atomically; readers see the old or the new one. Safe to repeat with the same body.

        `if_version`: only over that version; `if_absent`: only if there is none; else PreconditionFailed.
        """
        ...

    def link(self, key: str, *, seconds: int, write: bool = False, save_as: str | None = None) -> str | None:
        """A URL by which anybody who has it may read (or write) the object for a while; None: this store has none.

        `save_as`: the file name that a browser gives it.
        """
        ...

    def copy(self, source: str, target: str) -> None:
        """Copy within the bucket, on the server where the store can.

        Raises ObjectMissing if the source is gone, and then leaves the target unchanged.
        """
        ...

    def delete(self, key: str) -> None:
        """Delete an object; no error if it does not exist."""
        ...

    def delete_all(self, keys: Sequence[str]) -> None:
        """Delete objects, batched where the store can; no error for those that do not exist."""
        ...

    def delete_prefix(self, prefix: str) -> int:
        """Delete everything below `prefix` and return how many; no error if there is nothing."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Caps:
    """How many jobs may run at once across the fleet; 0 means no cap."""

    tenant: int
    workflow: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """Why a job may not start now. It stays QUEUED and loses no attempt."""

    reason: str
    scope: str  # "tenant", "workflow" or "pause"


QUARANTINE = "!quarantine"  # in place of a workflow's name, which has no such sign


@dataclass(frozen=True, kw_only=True, slots=True)
class Pause:
    """What may not start: everything (both None), a tenant, or one workflow of a tenant."""

    tenant: str | None
    workflow: str | None
    since: float
    by: str

    @property
    def is_quarantine(self) -> bool:
        """Whether it says that nothing of its tenant is accepted, beside the pause of the tenant itself."""
        return self.workflow == QUARANTINE


@dataclass(frozen=True, kw_only=True, slots=True)
class JobQuery:
    """All given conditions must hold; newest first. Times: from this one on, up to but without the other."""

    states: frozenset[State] | None = None
    tenant: str | None = None
    workflow: str | None = None
    text: str | None = None  # part of the subject or the job id; case does not matter
    outcome: Outcome | None = None  # of jobs that are SUCCEEDED
    verdict: Verdict | None = None
    fault: Fault | None = None
    runner: str | None = None  # owner of the lease
    created_from: float | None = None
    created_to: float | None = None
    ended_from: float | None = None
    ended_to: float | None = None

    @property
    def plain(self) -> bool:
        """Whether state, tenant, workflow and creation are all that it asks for: what is known without the record."""
        asked = (self.outcome, self.text, self.verdict, self.fault, self.runner, self.ended_from, self.ended_to)
        return all(one is None for one in asked)

    def holds(self, job: "Job | NewerRow") -> bool:
        """Whether a job fits; of a newer row only what is known without its record counts."""
        if (
            (self.states is not None and job.state not in self.states)
            or (self.tenant is not None and job.tenant != self.tenant)
            or (self.workflow is not None and job.workflow != self.workflow)
            or not _within(job.created_at, self.created_from, self.created_to)
        ):
            return False
        if isinstance(job, NewerRow):
            return self.plain
        return self._holds_end(job) and (
            (self.text is None or self.text.casefold() in f"{job.subject}\n{job.job_id}".casefold())
            and (self.runner is None or (job.lease is not None and job.lease.owner == self.runner))
        )

    def _holds_end(self, job: "Job") -> bool:
        """Whether a job ended, if at all, as the query asks."""
        return (
            (self.outcome is None or (job.state is State.SUCCEEDED and job.outcome is self.outcome))
            and (self.verdict is None or (job.error is not None and job.error.verdict is self.verdict))
            and (self.fault is None or (job.error is not None and job.error.fault == self.fault))
            and _within(job.ended_at, self.ended_from, self.ended_to)
        )


def _within(at: float | None, begin: float | None, end: float | None) -> bool:
    if begin is None and end is None:
        return True
    return at is not None and (begin is None or at >= begin) and (end is None or at < end)


@dataclass(frozen=True, kw_only=True, slots=True)
class NewerRow:
    """What is readable of a row that a newer program wrote (core.errors.RecordNewer): the columns beside its record."""

    job_id: str
    tenant: str
    workflow: str
    state: str  # perhaps one that this program does not know
    created_at: float
    why: RecordNewer


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    jobs: tuple[Job, ...]
    cursor: str | None  # pass it in for the next page; None: this was the last
    newer: tuple[NewerRow, ...] = ()  # rows that match too, and must be left alone


@dataclass(frozen=True, slots=True)
class Tally:
    """Jobs by tenant and state."""

    tenants: dict[str, dict[State, int]]
    whole: bool = True  # else there are more: only the newest were counted, of those that have not ended and of all


@dataclass(frozen=True, kw_only=True, slots=True)
class Resolution:
    """Somebody took care of what needed attention, up to a time: whatever happens later needs it again."""

    what: str  # names the matter, not one case of it
    until: float  # when the newest case of it happened
    tenant: str  # whose matter it is; empty: of nobody in particular
    at: float
    by: str
    note: str


class JobTable(Protocol):
    """The truth about jobs. Every write is conditional; a write that finds another rev changes nothing."""

    def add(self, job: Job) -> tuple[Job, bool]:
        """Insert if the id is free. Returns the row that now exists and whether this call created it.

        A new row's fence and rev start above those of every row of its tenant that was removed before the caller
        last saw the id free, so that a holder of a former row can no longer write (`core.jobs.first`).
        """
        ...

    def get(self, job_id: str) -> Job | None: ...

    def get_all(self, job_ids: Collection[str]) -> dict[str, Job]:
        """Those of the jobs that exist, by id; each read is consistent, but not all of one moment."""
        ...

    def replace(self, old: Job, new: Job) -> Job | None:
        """Write `new` if the row still has `old.rev` and, if that is leased, its owner; the row with its new rev, or
        None: read it again."""
        ...

    def admit(self, old: Job, new: Job, caps: Caps) -> Job | Refused | None:
        """`replace` for a start, refused in the same transaction if a cap is reached or a pause applies.

        RUNNING jobs count, whether their lease has expired or not.
        """
        ...

    def remove(self, old: Job) -> bool:
        """Delete the row if it still has `old.rev`; False: it has moved on (or is already gone)."""
        ...

    def page(self, query: JobQuery, *, limit: int = 100, cursor: str | None = None) -> Page:
        """Jobs that fit, newest first. Reads a bounded number of rows: a page may be short, even empty, and have
        a cursor all the same."""
        ...

    def line(self, line: str, *, whole: bool = False) -> tuple[Job, ...]:
        """Every job of one line (see Job.line), oldest first; consistent with the caller's own writes.

        `whole`: raises RecordNewer if one of them is newer than this program, instead of leaving it out.
        """
        ...

    def attention(self, before: float, *, limit: int = 100) -> tuple[Job, ...]:
        """Jobs whose `wake_at` (see core/chores.py) is not after `before`, longest overdue first.

        Excludes those that only wait to expire or to be forgotten (`core.chores.resting`): see `outdated`.
        """
        ...

    def outdated(self, before: float, *, limit: int = 100) -> tuple[Job, ...]:
        """Like `attention`, for the jobs that it leaves out. Rows of an older program may be in the other list."""
        ...

    def damaged(self, *, limit: int = 100) -> dict[str, RowUnreadable]:
        """Rows that this program cannot read, and why; for operators, may read the whole table.

        Methods that list jobs leave them out and go on; `get` and `add` raise the same error.
        """
        ...

    def counts(self) -> dict[State, int]:
        """How many jobs are in which state; may lag a moment behind, and take a while in a large table."""
        ...

    def count(self, states: frozenset[State], *, before: float) -> int:
        """How many jobs created before a time are in one of these states; may lag a moment behind."""
        ...

    def tally(self, tenant: str | None = None) -> Tally:
        """Counts by tenant, or of one; at the same cost whatever the table holds."""
        ...

    def ends(self, since: float) -> tuple[EndCounts, ...]:
        """What all jobs that ended came to (core/ends.py), by stretches of `STEP` that begin at `since` or later.

        Oldest first; stretches without any are left out. Counted by the writes that end jobs: each end once.
        """
        ...

    def sender_ends(self, since: float, tenant: str | None = None) -> tuple[EndCounts, ...]:
        """The same by sender and `DAY`, of one tenant or of all; in no particular order."""
        ...

    def resolve(self, resolution: Resolution) -> bool:
        """Keep a resolution; it takes the place of an older one. False: there is one that goes as far or further."""
        ...

    def resolutions(self) -> tuple[Resolution, ...]:
        """Those of the last few weeks, newest first."""
        ...

    def recount(self) -> int:
        """Correct the counters that the table keeps beside its rows for caps; returns how many were wrong.

        Only where a start was refused, and only counters unchanged since an earlier call: a single call corrects
        nothing. A table that counts its rows has nothing to correct. Also deletes counters of ends, and resolutions,
        that are too old for anybody.
        """
        ...

    def pause(self, pause: Pause) -> None:
        """A second call keeps the first pause."""
        ...

    def resume(self, tenant: str | None, workflow: str | None) -> bool:
        """Whether there was such a pause."""
        ...

    def pauses(self) -> tuple[Pause, ...]: ...

    def hold(self, name: str, owner: str, seconds: float) -> bool:
        """Take or renew a named lease (leader, chore); False while another owner holds it."""
        ...

    def let_go(self, name: str, owner: str) -> None:
        """Release a named lease; no effect if another owner holds it."""
        ...

    def generations(self, names: Collection[str]) -> dict[str, int]:
        """How often `advance` was called for each name; consistent: every advance that returned is counted."""
        ...

    def advance(self, name: str) -> None:
        """Increment a generation. Incrementing twice is harmless: others only check again."""
        ...

    def wait(self, seconds: float) -> None:
        """Return after `seconds`, or sooner if the adapter learns that a job may have changed."""
        ...


@runtime_checkable
class SharesDatabase(Protocol):
    """A table or a queue in a database that may hold both."""

    @property
    def database(self) -> object:
        """Which database it is: equal where a table and a queue are in the same."""
        ...


@runtime_checkable
class AddsWithMessage(SharesDatabase, Protocol):
    """A table that writes a job and its message in one transaction, where the queue is in the same database."""

    def add_sent(self, job: Job, delay: float) -> tuple[Job, bool]:
        """`JobTable.add`, and send the job's message if it was made: both, or neither."""
        ...

    def without_message(self, cursor: str | None) -> tuple[tuple[Job, ...], str | None]:
        """Of the next QUEUED jobs those that were sent and have no message; where to go on, None: at the end."""
        ...


@runtime_checkable
class PutsTogether(Protocol):
    """A store to which several small objects cost less together."""

    def put_new(self, bodies: Mapping[str, bytes]) -> frozenset[str]:
        """`put` each object below `outputs/` if there is none, in this order; the keys where there was something.

        If this raises, some may have been written.
        """
        ...


@runtime_checkable
class ErasesTenants(Protocol):
    """A table or a queue in a database, where what is left of a tenant can be found."""

    def erase_tenant(self, tenant: str) -> int:
        """Delete what is left of a tenant but its name, its pauses and its last fence; returns how many rows went.

        The caller has removed the jobs that can be read. A second call finds nothing.
        """
        ...


@runtime_checkable
class Purges(Protocol):
    """A store that can delete more than it lists: hidden and unfinished files, former versions."""

    def purge(self, prefix: str) -> int:
        """Delete every version of everything whose key starts with `prefix`; returns how many there were."""
        ...

    def purge_former(self, key: str) -> int:
        """Delete what this key held before its present content; returns how many versions went."""
        ...

    def purgeable_folders(self, prefix: str) -> Iterator[str]:
        """The folders right below `prefix`, also those of which only former versions are left."""
        ...


@runtime_checkable
class Hasty(Protocol):
    """An adapter of a service over a network."""

    def within(self, seconds: float) -> Self:
        """The same by calls that end within `seconds`, over connections of its own, which the caller closes."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class LineMark:
    """A line that a sweep found in order."""

    planned_from: bytes  # a digest of everything in the bucket that its jobs are planned from
    rows: frozenset[tuple[str, int]]  # job id and rev of its rows at that time


class Marks(Protocol):
    """Which lines a sweep need not plan again. Losing marks costs time, nothing else."""

    def marked(self, lines: Collection[str]) -> dict[str, bytes]:
        """What the lines were planned from, for those of which no row was written since they were marked."""
        ...

    def mark(self, marks: Mapping[str, LineMark]) -> None:
        """LineMark lines by name, except those whose rows have changed since then. A mark expires within a day."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """Names a job that is ready; the table has the rest."""

    job_id: str
    tenant: str
    priority: int = 0
    # A copy of Job.trace, for whoever reads the queue. A queue beside the table (SQLite, PostgreSQL) leaves it out.
    trace: str = field(default="", compare=False)

    @classmethod
    def of(cls, job: Job) -> Self:
        return cls(job_id=job.job_id, tenant=job.tenant, priority=job.priority, trace=job.trace)


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery:
    message: Message
    receipt: str  # names this delivery; a later delivery of the message makes it stale
    receives: int
    sent_at: float
    record: str | None = None  # the job's row when it was taken, where the queue can see it: saves a read


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadLetter:
    message: Message
    reason: str
    at: float


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueStats:
    ready: int
    in_flight: int
    delayed: int
    dead: int
    oldest_seconds: float | None  # age of the oldest message that is ready


class WorkQueue(Protocol):
    """At-least-once delivery. A received message is hidden for `visibility` seconds, then comes back."""

    @property
    def chooses_tenants(self) -> bool:
        """Whether `receive` never returns a message of a tenant to `avoid`; else that is only a hint."""
        ...

    def send(self, message: Message, *, delay: float = 0.0) -> None:
        """Durable when it returns. Sent twice may be delivered twice."""
        ...

    def send_all(self, messages: Sequence[tuple[Message, float]]) -> None:
        """`send` for each message and delay, in fewer calls where the adapter can; some may be sent when it raises."""
        ...

    def receive(
        self, *, most: int, wait: float, visibility: float, avoid: frozenset[str] = frozenset()
    ) -> tuple[Delivery, ...]:
        """Up to `most` messages, fair between tenants, waiting up to `wait` seconds for the first.

        `avoid`: tenants to leave alone for now. A service that cannot choose (SQS) delivers their messages anyway,
        and the caller puts them back; see `chooses_tenants`.
        """
        ...

    def hide(self, receipt: str, seconds: float) -> bool:
        """Show the message again only after `seconds` (0: now). False: this receipt is stale."""
        ...

    def ack(self, receipt: str) -> None:
        """Delete the message. A stale receipt deletes nothing and raises nothing."""
        ...

    def missing(self, job_ids: Sequence[str], expected: Callable[[], int]) -> tuple[str, ...]:
        """Those of the jobs that have no message in the queue, ready, held or delayed, as far as it can tell.

        A service that cannot search for a message (SQS) counts all of them. `expected` says how many there should be
        at least; if there are fewer, that many of the first `job_ids` are reported missing. The caller is expected to
        send those, so they count as present until the service's own count has caught up.
        """
        ...

    def bury(self, message: Message, reason: str) -> None:
        """Put a message on the dead-letter queue for people to see. Of several for one job, the last is shown."""
        ...

    def dead(self, *, limit: int = 100) -> tuple[DeadLetter, ...]:
        """Dead letters, one for each job, oldest first."""
        ...

    def redrive(self, job_id: str | None = None) -> int:
        """Take dead letters (one job's, or all) off the dead-letter queue; returns how many jobs had one."""
        ...

    def stats(self) -> QueueStats: ...

    def wake(self) -> None:
        """Make this process's waiting `receive` return at once."""
        ...
