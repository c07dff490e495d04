"""The five ports. Adapters live in infra/ and runner/sandbox/; one contract suite runs over each port."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

from core.errors import RecordNewer, RowUnreadable
from core.jobs import Job, ObjectRef, State
from core.verdicts import Verdict


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch. Never goes back within one process."""
        ...

    def steady(self) -> float:
        """Seconds since some moment of this process, whatever is done to the wall clock; only differences count."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectInfo:
    key: str
    version: str
    digest: str
    size: int
    modified: float
    metadata: Mapping[str, str] = field(default_factory=dict)

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
    """One level of the bucket by name; what a name stands for is asked only where somebody needs it."""

    keys: tuple[str, ...]
    folders: tuple[str, ...]
    infos: Callable[[Collection[str]], list[ObjectInfo]]  # those of the given keys that are still there
    strange: tuple[str, ...] = ()  # keys here that are refused (core.keys.check_key), and so are in no listing
    aside: dict[str, str] = field(default_factory=dict)  # what `infos` left out since the store refuses it, and why


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetched:
    size: int
    sha256: str


class ObjectStore(Protocol):
    """A bucket. Keys are S3 keys; an object is there whole or not at all."""

    def head(self, key: str) -> ObjectInfo | None:
        """The newest version, or None where there is none (or it is not yet complete). May raise ObjectRefused."""
        ...

    def objects(self, prefix: str, *, aside: dict[str, str] | None = None) -> Iterator[ObjectInfo]:
        """Every object whose key starts with `prefix`, by key. Nothing there: nothing yielded.

        One that cannot be yielded (its key is refused, or the store refuses to tell of it) ends no listing: it is
        left out, and put into `aside` with the reason.
        """
        ...

    def keys(self, prefix: str) -> Iterator[str]:
        """As `objects`, names only, and never reads content."""
        ...

    def folder(self, prefix: str) -> Folder:
        """One level below `prefix` (which ends in '/'). Nothing there: empty."""
        ...

    def level(self, prefix: str) -> Level:
        """As `folder`, names only: a folder of many files costs no look at each."""
        ...

    def read(self, key: str, *, version: str | None = None, limit: int) -> bytes:
        """The whole content. Raises ObjectMissing, ObjectChanged (that version is gone) or ObjectTooLarge."""
        ...

    def fetch(self, key: str, to: Path, *, version: str | None = None, limit: int) -> Fetched:
        """Stream the content into a new file; raises as `read`, and then leaves no file."""
        ...

    def put(
        self,
        key: str,
        body: bytes | Path,
        *,
        if_version: str | None = None,
        if_absent: bool = False,
        metadata: Mapping[str, str] | None = None,
    ) -> ObjectInfo:
        """Write an object whole; readers see the old or the new one. Again with the same body: no harm.

        `if_version`: only over that version; `if_absent`: only where there is none; else PreconditionFailed.
        """
        ...

    def copy(self, source: str, target: str) -> None:
        """Copy within the bucket, without the content passing through us where the store can.

        Raises ObjectMissing where the source is gone, and then leaves the target as it was.
        """
        ...

    def delete(self, key: str) -> None:
        """Remove an object; absent is fine."""
        ...

    def delete_all(self, keys: Sequence[str]) -> None:
        """Remove objects, in fewer calls than one each where the store can; absent is fine."""
        ...

    def delete_prefix(self, prefix: str) -> int:
        """Remove everything below `prefix` and say how many; nothing there is fine."""
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Pause:
    """What may not start: everything (both None), a tenant, or one workflow of a tenant."""

    tenant: str | None
    workflow: str | None
    since: float
    by: str


@dataclass(frozen=True, kw_only=True, slots=True)
class JobQuery:
    """All given conditions must hold; newest first."""

    states: frozenset[State] | None = None
    tenant: str | None = None
    workflow: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NewerRow:
    """What can be told of a row that a newer program wrote (core.errors.RecordNewer): what stands beside its record."""

    job_id: str
    tenant: str
    workflow: str
    state: str  # perhaps one that this program does not know
    created_at: float
    why: RecordNewer


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    jobs: tuple[Job, ...]
    cursor: str | None  # hand it back for the next page; None: this was the last
    newer: tuple[NewerRow, ...] = ()  # rows that match too, and are to be left alone


class JobTable(Protocol):
    """The truth about jobs. Every write is conditional; a write that meets another rev changes nothing."""

    def add(self, job: Job) -> tuple[Job, bool]:
        """Insert where the id is free. Returns the row that is there now and whether this call made it.

        A new row's fence and rev start above those of every row of its tenant that was removed before the caller
        last saw the id free, so that whoever still holds a former row can write nothing (`core.jobs.first`).
        """
        ...

    def get(self, job_id: str) -> Job | None: ...

    def get_all(self, job_ids: Collection[str]) -> dict[str, Job]:
        """Those of the jobs that are there, by id; each consistent, not all of one moment."""
        ...

    def replace(self, old: Job, new: Job) -> Job | None:
        """Write `new` where the row still has `old.rev`; the row with its new rev, or None: look again."""
        ...

    def admit(self, old: Job, new: Job, caps: Caps) -> Job | Refused | None:
        """`replace` for a start, refused in the same transaction where a cap is reached or a pause holds.

        RUNNING jobs count, whether their lease still lives or not.
        """
        ...

    def remove(self, old: Job) -> bool:
        """Delete the row where it still has `old.rev`; False: it has moved on (or is gone already)."""
        ...

    def page(self, query: JobQuery, *, limit: int = 100, cursor: str | None = None) -> Page: ...

    def line(self, line: str, *, whole: bool = False) -> tuple[Job, ...]:
        """Every job of one line (see Job.line), oldest first; consistent with the caller's own writes.

        `whole`: raises RecordNewer where one of them is newer than this program, instead of leaving it out.
        """
        ...

    def attention(self, before: float, *, limit: int = 100) -> tuple[Job, ...]:
        """Jobs whose `wake_at` (see core/chores.py) is not after `before`, longest overdue first.

        Without those that only rest until they expire or are forgotten (`core.chores.resting`): see `outdated`.
        """
        ...

    def outdated(self, before: float, *, limit: int = 100) -> tuple[Job, ...]:
        """As `attention`, for the jobs that it leaves out. Rows of an older program may be in the other list."""
        ...

    def damaged(self, *, limit: int = 100) -> dict[str, RowUnreadable]:
        """Rows that hold no job this program can read, and why; for operators, may read the whole table.

        No other method that lists jobs has them, and none is stopped by them; `get` and `add` raise the same error.
        """
        ...

    def counts(self, tenant: str | None = None) -> dict[State, int]: ...

    def count(self, states: frozenset[State], *, before: float) -> int:
        """How many jobs created before a time are in one of these states; may lag a moment behind."""
        ...

    def tenants(self) -> dict[str, dict[State, int]]:
        """Counts by tenant, for operators; may read the whole table."""
        ...

    def recount(self) -> int:
        """Correct what the table counts beside its rows to decide on starts; how many counts were wrong.

        Only where a start was refused, and only what has not changed since an earlier call: one call does nothing
        yet. A table that counts its rows has nothing to correct.
        """
        ...

    def pause(self, pause: Pause) -> None:
        """Again: the first one stays."""
        ...

    def resume(self, tenant: str | None, workflow: str | None) -> bool:
        """Whether there was such a pause."""
        ...

    def pauses(self) -> tuple[Pause, ...]: ...

    def hold(self, name: str, owner: str, seconds: float) -> bool:
        """Take or prolong a named lease (leader, chore); False while another owner holds it."""
        ...

    def let_go(self, name: str, owner: str) -> None:
        """Give a named lease back; not ours: no effect."""
        ...

    def generation(self, name: str) -> int:
        """How often `advance` was called for a name; consistent: an advance that returned is counted."""
        ...

    def advance(self, name: str) -> None:
        """Count a generation up. Done twice counts twice, which only makes others look again."""
        ...

    def wait(self, seconds: float) -> None:
        """Return after `seconds`, or sooner when a job may have changed, where the adapter can know."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """Says "look at this job" and nothing else; the table has the rest."""

    job_id: str
    tenant: str
    priority: int = 0

    @classmethod
    def of(cls, job: Job) -> Self:
        return cls(job_id=job.job_id, tenant=job.tenant, priority=job.priority)


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery:
    message: Message
    receipt: str  # names this delivery; a later delivery of the message makes it stale
    receives: int
    sent_at: float


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
        """Whether `receive` never brings a message of a tenant to `avoid`; else that is only a hint."""
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

        `avoid`: tenants that are better left alone now. A service that cannot choose (SQS) delivers theirs all the
        same, and the caller puts them back; see `chooses_tenants`.
        """
        ...

    def hide(self, receipt: str, seconds: float) -> bool:
        """Show the message again only after `seconds` (0: now). False: this receipt is stale."""
        ...

    def ack(self, receipt: str) -> None:
        """Delete the message. A stale receipt deletes nothing and raises nothing."""
        ...

    def missing(self, job_ids: Sequence[str], expected: Callable[[], int]) -> tuple[str, ...]:
        """Those of the jobs for which no message is here: ready, held or delayed. As far as the queue can tell.

        A service that cannot look for a message (SQS) counts them all. `expected` says how many there should be at
        least; if there are fewer, the first of `job_ids`, as many as are short, are taken to be missing. What was told
        to be missing is expected to be sent, and counts as here until the service's own count can have followed.
        """
        ...

    def bury(self, message: Message, reason: str) -> None:
        """Put a message on the dead-letter queue for people to see. Again for a job: its last letter is shown."""
        ...

    def dead(self, *, limit: int = 100) -> tuple[DeadLetter, ...]:
        """Dead letters, one for each job, oldest first."""
        ...

    def redrive(self, job_id: str | None = None) -> int:
        """Take dead letters (one job's, or all) off the dead-letter queue; of how many jobs."""
        ...

    def stats(self) -> QueueStats: ...

    def wake(self) -> None:
        """Make this process's waiting `receive` return at once."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class BoxLimits:
    wall_seconds: float
    cpu_seconds: int
    memory_mb: int
    file_mb: int
    log_bytes: int = 1024 * 1024
    open_files: int = 64
    processes: int = 0  # further processes that rules may start


@dataclass(frozen=True, kw_only=True, slots=True)
class Verification:
    """What a process that never ran a rule does with a box's outputs, once nothing is left that could change them."""

    job: dict[str, Any]  # the engine's order to verify (docs/engine-order.md); the driver adds the places
    outputs: tuple[str, ...]
    limits: BoxLimits
    least_seconds: float  # for outputs that came at the last moment


@dataclass(frozen=True, kw_only=True, slots=True)
class BoxOrder:
    """One run of the engine. Paths are the host's; a driver shows them to the box as it sees fit.

    `job` is the engine's order (docs/engine-order.md) but for the places: `scratch` holds `in/` and, if
    there is one, `config/`; the driver fills in where the box finds them and where its outputs go.
    """

    label: str  # job and attempt; names processes, folders and orphans
    tenant: str
    scratch: Path
    job: dict[str, Any]
    outputs: tuple[str, ...]  # file names the box may write, at most
    limits: BoxLimits
    network: bool = False
    trusted: bool = False  # no Python of the sender's in it
    layer: Path | None = None  # installed requirements, read-only
    grouped: bool = True  # in a control group of its own, where the host gives one; our own code can do without
    verification: Verification | None = None  # to be done in the same box, where the driver has a safe place for it


@dataclass(frozen=True, kw_only=True, slots=True)
class BoxReport:
    """What the runner saw, beside what the box claims."""

    verdict: Verdict
    message: str
    where: dict[str, Any] = field(default_factory=dict)
    claim: dict[str, Any] = field(default_factory=dict)  # the box's own closing words, checked for form only
    outputs: dict[str, Path] = field(default_factory=dict)  # regular files, within limits, by name
    log: Path | None = None  # what rules printed; may hold data
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_mb: float = 0.0
    verification: "BoxReport | None" = None  # how it ended; None: the box had no safe place for it
    suspicion: str = ""  # what speaks for a fault of the engine's own, whoever is held to answer for the end


@dataclass(frozen=True, kw_only=True, slots=True)
class Isolation:
    """What holds on this host, as probed."""

    driver: str
    level: str  # "none", "limits", "confined" or "isolated"
    rungs: dict[str, bool]
    gaps: tuple[str, ...]


class Sandbox(Protocol):
    """One job, one box. `run` returns when no process of the box is left, whatever happened in it."""

    def isolation(self) -> Isolation: ...

    def run(
        self,
        order: BoxOrder,
        *,
        killed: Callable[[], Verdict | None],
        on_event: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> BoxReport:
        """Run the engine. `killed` is asked often and, once it names a verdict, ends the box at once.

        Never raises for what the box does; raises SandboxUnavailable where no box can be had.
        """
        ...

    def reap(self, alive: Callable[[str], bool]) -> int:
        """End boxes whose runner is gone: every box whose label is not `alive`; how many."""
        ...

    def close(self) -> None:
        """End helpers of this sandbox (zygotes, caches' locks); a second call does nothing."""
        ...
