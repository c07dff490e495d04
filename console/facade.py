"""What the pages and the API read: one place over the ports, which knows no adapter.

Answers cost the same whatever the table holds: lists are pages, an artifact is read where it is shown, and counts are
taken from counters or, where a table has to count, counted aside and remembered for as long as counting them is worth.
"""

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Generic, NotRequired, TypedDict, TypeVar

from console import attention
from console.attention import Matter
from console.counters import CounterWindow, ReadCounters
from console.senders import SenderHistory, histories_of_jobs, sender_histories
from core.budget import Budget, plain, weight_of
from core.caches import BoundedCache
from core.ends import COUNTER_SECONDS, DAY, SENDER_SECONDS, STEP, EndCounts
from core.errors import AdeError, ObjectMissing, ObjectTooLarge, StoreUnavailable
from core.jobs import ENDED, Job, State
from core.keys import CONFIGS, INBOX, job_folder
from core.ports import DeadLetter, JobQuery, ObjectInfo, Page, Pause, QueueStats, Tally
from infra.newest import read_newest
from infra.wiring import Stack
from runner.engine.contract import escape_controls

LOG_BYTES = 8 * 1024 * 1024
DOCUMENT = Budget(bytes=16 * 1024 * 1024, values=600_000)  # what is shown; larger ones can be downloaded
_DOCUMENT_BYTES = 128 * 1024 * 1024
_RECENT = 300  # ended jobs that rates and causes are computed from
_FAILURES = 100  # that what needs attention is made of
_FAILURE_SECONDS = 7 * 86400.0  # older ones are history
_WAITING = 100
_LONGEST_WAITING = 50  # that the page of reviews lists
_WAITING_PAGES = 20  # that are read to find them
_ASKED = 1000  # jobs whose questions are remembered for lists
_WITHOUT_COUNTERS = 40  # tenants whose jobs are read because nothing was counted of them
_LEAST_FRESH, _WORTH, _MOST_FRESH = 0.5, 20.0, 60.0  # an answer is kept for twenty times as long as it took
_ANSWERS = 200
_TENANTS = 300  # whose answers are kept, of each kind
_STALE_SECONDS = 2.0  # an answer that is older than that is waited for
_ASIDE_SECONDS = 0.2  # a count that takes longer is not waited for
_MOST_FRESH_ASIDE = 900.0
_LONGEST_TROUBLE = 10.0  # for how long an error is believed, if it took as long to get it
_HOUR = 3600.0
_MEMORY = ".memory.json"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Recent:
    """A summary of the jobs that ended last, by tenant or of all."""

    jobs: int
    succeeded: int
    since: float | None  # end of the oldest of them
    verdicts: dict[str, int]
    faults: dict[str, int]
    outcomes: dict[str, int]  # of those that succeeded
    seconds: list[float]  # how long they ran, newest first
    ends: list[tuple[float, str]]  # when they ended, and how; newest first


@dataclass(frozen=True, slots=True)
class OverviewFacts:
    at: float
    counted_at: float  # when the jobs were counted
    states: dict[str, int]
    tenants: dict[str, dict[str, int]]
    whole: bool  # else `tenants`, and `states` of one tenant, have only the newest jobs
    queue: QueueStats | None  # None where the caller sees one tenant only, or the queue does not answer
    trouble: str  # why it does not
    pauses: tuple[Pause, ...]


class JobMoment(TypedDict):
    """Something that happened to a job."""

    at: float
    what: str  # a state, "uploaded", "pass …" or "error"
    seconds: NotRequired[float]  # of a pass
    verdict: NotRequired[str]  # of an error, as the next two
    fault: NotRequired[str]
    message: NotRequired[str]


class DropFacts(TypedDict):
    """How one drop of a sender went."""

    job_id: str
    subject: str
    state: str
    at: float
    rows: int | None
    errors: int | None
    drift: int


class SenderFacts(TypedDict):
    """The newest drops of a tenant's workflow."""

    tenant: str
    workflow: str
    states: dict[str, int]
    drops: list[DropFacts]
    last: DropFacts


class Facade:
    """Safe to share between threads."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._counts = Fresh(stack.table.counts, stack.clock.steady, aside=True)
        self._tallies: dict[str | None, Fresh[Tally]] = {}
        self._queue = Fresh(stack.queue.stats, stack.clock.steady)
        self._pauses = Fresh(stack.table.pauses, stack.clock.steady)
        self._recent: dict[str | None, Fresh[Recent]] = {}
        self._senders: dict[str | None, Fresh[list[SenderFacts]]] = {}
        self._histories: dict[str | None, Fresh[list[SenderHistory]]] = {}
        self._matters: dict[str | None, Fresh[list[Matter]]] = {}
        self._steps = CounterWindow(stack.table.ends, seconds=COUNTER_SECONDS, stretch=STEP, changing=_HOUR)
        self._days = CounterWindow(stack.table.sender_ends, seconds=SENDER_SECONDS, stretch=DAY, changing=DAY)
        self._past = _PastHistories()
        self._ends = Fresh(self._list_ends, stack.clock.steady)
        self._waiting: dict[str | None, Fresh[tuple[Job, ...]]] = {}
        self._lock = threading.Lock()
        self._asked = BoundedCache[tuple[str, int], frozenset[str]](_ASKED)
        self._documents = BoundedCache[tuple[str, str], dict[str, object]](_DOCUMENT_BYTES)

    # Jobs

    def jobs(self, query: JobQuery, *, limit: int = 50, cursor: str | None = None) -> Page:
        return self._stack.table.page(query, limit=limit, cursor=cursor)

    def job(self, job_id: str, *, tenant: str | None = None) -> Job | None:
        """A job that the caller may see: of `tenant` alone, where one is given."""
        job = self._stack.table.get(job_id)
        return job if job is not None and tenant in (None, job.tenant) else None

    def line(self, job: Job) -> tuple[Job, ...]:
        """All jobs of the same file and workflow, oldest first."""
        return self._stack.table.line(job.line)

    def files(self, job: Job) -> list[ObjectInfo]:
        """What a job has published so far."""
        return list(self._stack.store.objects(job_folder(job)))

    def timeline(self, job: Job) -> list[JobMoment]:
        """States, passes and failures of a job in the order in which they happened."""
        moments: list[JobMoment] = []
        if job.stamp:
            moments.append({"at": job.stamp, "what": "uploaded"})
        moments += [{"at": at, "what": state} for state, at in job.history]
        passes = job.summary.get("passes")
        if isinstance(passes, dict) and job.started_at is not None:
            at = job.started_at
            for name, seconds in passes.items():
                if isinstance(seconds, int | float):
                    moments.append({"at": at, "what": f"pass {name}", "seconds": seconds})
                    at += seconds
        if job.error is not None:
            moments.append(
                {
                    "at": job.ended_at or job.updated_at,
                    "what": "error",
                    "verdict": str(job.error.verdict),
                    "fault": str(job.error.fault),
                    "message": job.error.message,
                }
            )
        return sorted(moments, key=lambda entry: entry["at"])

    # Documents of a job

    def artifact(self, job: Job) -> dict[str, object] | None:
        """The published audit: structure, mapping, findings. None: there is none (yet)."""
        return self.document(f"{job_folder(job)}artifact.json")

    def review(self, job: Job) -> dict[str, object] | None:
        """The questions of a job in REVIEW, as they are now."""
        return self.document(f"{job_folder(job)}review.json")

    def asked(self, job: Job, signed: Callable[[dict[str, object] | None], frozenset[str]]) -> frozenset[str]:
        """The signatures of a job's questions for a list: read once for each version of its row. What is answered is
        compared with `review`."""
        if (known := self._asked.get((job.job_id, job.rev))) is not None:
            return known
        questions = signed(self.review(job))
        if questions and not job.unpublished:
            self._asked.put((job.job_id, job.rev), questions)
        return questions

    def waiting(self, tenant: str | None = None) -> tuple[Job, ...]:
        """Jobs in REVIEW, those that wait longest first, of the newest two thousand. Some may have gone on by now."""
        return self._of_tenant(self._waiting, tenant, self._list_waiting).get()

    def _list_waiting(self, tenant: str | None) -> tuple[Job, ...]:
        query, waiting, cursor = JobQuery(tenant=tenant, states=frozenset({State.REVIEW})), tuple[Job, ...](), None
        for _ in range(_WAITING_PAGES):
            page = self._stack.table.page(query, limit=_WAITING, cursor=cursor)
            waiting = (*waiting, *page.jobs)[-_LONGEST_WAITING:]
            cursor = page.cursor
            if cursor is None:
                break
        return waiting[::-1]

    def size(self, key: str) -> int:
        """Of an object; 0 if there is none."""
        info = self._stack.store.head(key)
        return 0 if info is None else info.size

    def document(self, key: str) -> dict[str, object] | None:
        """A JSON object of the bucket, unless it is too large to show; the last few are kept by their versions."""
        info = self._stack.store.head(key)
        if info is None:
            return None
        known = self._documents.get((key, info.version))
        if known is not None:
            return known
        try:
            found = read_newest(self._stack.store, key, limit=DOCUMENT.bytes, listed=info)
            read = None if found is None else plain(found.body, DOCUMENT)
        except (ObjectTooLarge, ValueError):
            return None
        if found is None or not isinstance(read, dict):
            return None
        self._documents.put((key, found.info.version), read, weight_of(found.body, each=300))
        return read

    def log(self, job: Job, after: int = 0) -> bytes:
        """What a job's rules printed, without the first bytes: of the box on this machine, or published."""
        if not job.ended and job.lease is not None:
            path = self._stack.run_dir / job.lease.owner / f"{job.job_id}-{job.fence}" / "log.txt"
            try:
                with path.open("rb") as source:
                    source.seek(after)
                    return source.read(LOG_BYTES)
            except OSError:
                return b""
        if not job.ended:
            return b""
        try:
            return self._stack.store.read(f"{job_folder(job)}logs.txt", limit=LOG_BYTES)[after:]
        except ObjectMissing:
            return b""

    def forget_pauses(self) -> None:
        """We changed something: whoever asks next sees it."""
        self._pauses.forget()

    # Overview

    def tally(self) -> Tally:
        return self._tally(None).get()

    def _tally(self, tenant: str | None) -> "Fresh[Tally]":
        return self._of_tenant(self._tallies, tenant, self._stack.table.tally, aside=True)

    def overview(self, tenant: str | None = None) -> OverviewFacts:
        """The current state: of everything, or of one tenant."""
        counting = self._tally(None)
        if tenant is not None and not counting.get().whole:
            counting = self._tally(tenant)
        counted = counting.get()
        shown = {
            name: {str(state): n for state, n in sorted(states.items()) if n}
            for name, states in sorted(counted.tenants.items())
            if tenant in (None, name)
        }
        states: Counter[str] = Counter()
        for one in shown.values():
            states.update(one)
        age = counting.age()
        if tenant is None and not counted.whole:
            states = Counter({str(state): n for state, n in self._counts.get().items()})
            age = max(age, self._counts.age())
        pauses = tuple(p for p in self._pauses.get() if tenant is None or p.tenant in (None, tenant))
        queue, trouble = None, ""
        if tenant is None:
            try:
                queue = self._queue.get()
            except StoreUnavailable as error:
                trouble = str(error)  # the table has most of the answer
        now = self._stack.clock.now()
        return OverviewFacts(
            at=now,
            counted_at=now - age,
            states=dict(sorted(states.items())),
            tenants=shown,
            whole=counted.whole,
            queue=queue,
            trouble=trouble,
            pauses=pauses,
        )

    def recent(self, tenant: str | None = None) -> Recent:
        """Rates, times and causes from the newest jobs that ended."""
        return self._of_tenant(self._recent, tenant, self._summarize).get()

    def ends(self) -> tuple[EndCounts, ...]:
        """What all jobs that ended in the last days came to, by five minutes."""
        return self._ends.get()

    def _list_ends(self) -> tuple[EndCounts, ...]:
        found = self._steps.get(self._stack.clock.now(), self._stack.clock.steady())
        return (*found.past, *found.changing)

    def sender_histories(self, tenant: str | None = None) -> list[SenderHistory]:
        """Every sender as its counters show it, whatever the number of its jobs."""
        return self._of_tenant(self._histories, tenant, self._list_histories).get()

    def _list_histories(self, tenant: str | None) -> list[SenderHistory]:
        table, clock = self._stack.table, self._stack.clock
        if tenant is None:
            tally = self.tally()
            everybody = frozenset(tally.tenants) if tally.whole else None
            histories = self._past.with_changes(self._days.get(clock.now(), clock.steady(), tenants=everybody))
        else:
            histories = sender_histories(table.sender_ends(clock.now() - SENDER_SECONDS, tenant))
        counted = {one.tenant for one in histories}
        tenants = [tenant] if tenant is not None else sorted(self.tally().tenants)
        rest = [name for name in tenants if name not in counted][:_WITHOUT_COUNTERS]
        for name in rest:
            histories += histories_of_jobs(table.page(JobQuery(tenant=name), limit=20).jobs)
        return histories

    def attention(self, tenant: str | None = None) -> list[Matter]:
        """What needs a person, the most urgent first, without what somebody took care of."""
        return self._of_tenant(self._matters, tenant, self._list_matters).get()

    def forget_matters(self) -> None:
        """Something was taken care of: whoever asks next sees it."""
        with self._lock:
            self._matters.clear()
            self._waiting.clear()

    def _list_matters(self, tenant: str | None) -> list[Matter]:
        table, now = self._stack.table, self._stack.clock.now()

        def jobs(states: set[State], limit: int, since: float | None = None) -> tuple[Job, ...]:
            return table.page(JobQuery(states=frozenset(states), tenant=tenant, created_from=since), limit=limit).jobs

        waiting = jobs({State.AWAITING}, _WAITING)
        matters = attention.failures(jobs({State.FAILED, State.TIMED_OUT}, _FAILURES, now - _FAILURE_SECONDS))
        matters += attention.reviews(jobs({State.REVIEW}, _WAITING), now)
        matters += attention.incomplete(waiting, now)
        matters += attention.of_senders(self.sender_histories(tenant), now, waiting)
        overdue = table.attention(now - attention.STUCK_SECONDS, limit=_WAITING)
        queue: QueueStats | None = None
        dead: tuple[DeadLetter, ...] = ()
        with contextlib.suppress(StoreUnavailable):
            queue = self._queue.get() if tenant is None else None
            dead = self._stack.queue.dead(limit=_WAITING) if tenant is None and queue is not None and queue.dead else ()
        matters += attention.buried(dead)
        stuck = [job for job in overdue if tenant in (None, job.tenant)]
        matters += attention.stuck(stuck, queue, now, paused=any(one.tenant is None for one in self._pauses.get()))
        return attention.unresolved(matters, table.resolutions())

    def senders(self, tenant: str | None = None) -> list[SenderFacts]:
        """Tenants and workflows of the newest jobs, each with its last drops and how they went."""
        return self._of_tenant(self._senders, tenant, self._list_senders).get()

    def _of_tenant(
        self,
        known: "dict[str | None, Fresh[T]]",
        tenant: str | None,
        ask: Callable[[str | None], T],
        *,
        aside: bool = False,
    ) -> "Fresh[T]":
        """An answer for one tenant, or for all."""
        with self._lock:
            if len(known) > _TENANTS:
                known.clear()
            return known.setdefault(tenant, Fresh(lambda: ask(tenant), self._stack.clock.steady, aside=aside))

    def _list_senders(self, tenant: str | None) -> list[SenderFacts]:
        names = [tenant] if tenant is not None else sorted(self.tally().tenants)
        by_sender: dict[tuple[str, str], list[Job]] = {}
        for name in names[:_RECENT]:
            for job in self._stack.table.page(JobQuery(tenant=name), limit=100).jobs:
                by_sender.setdefault((job.tenant, job.workflow), []).append(job)
        return [_sender_facts(jobs) for jobs in by_sender.values()]

    def memories(self, tenant: str | None = None, *, after: str = "") -> Iterator[tuple[ObjectInfo, str, str]]:
        """The memories of one tenant or of all after a key: object, tenant, workflow; in the order of their keys.

        Shared ones are of tenant `_shared`. What is not asked for is not read.
        """
        names = [tenant] if tenant is not None else sorted(self._config_folders())
        for folder in sorted(f"{CONFIGS}{name}/" for name in names):
            if folder < after and not after.startswith(folder):
                continue
            for key in sorted(key for key in self._stack.store.level(folder).keys if key.endswith(_MEMORY)):
                if key > after and (info := self._stack.store.head(key)) is not None:
                    workflow = key.removeprefix(folder).removesuffix(_MEMORY)
                    yield info, folder.removeprefix(CONFIGS).rstrip("/"), workflow

    def _config_folders(self) -> list[str]:
        return [folder.removeprefix(CONFIGS).rstrip("/") for folder in self._stack.store.level(CONFIGS).folders]

    def inbox(self, tenant: str, path: str = "") -> list[ObjectInfo]:
        """What is in one folder of a tenant's inbox."""
        return list(self._stack.store.folder(f"{INBOX}{tenant}/{path}").objects)

    def checks(self) -> dict[str, str]:
        """Whether store, table and queue answer: `ok`, or what is wrong."""
        asked: dict[str, Callable[[], object]] = {
            "table": self._stack.table.pauses,
            "queue": self._stack.queue.stats,
            "store": lambda: self._stack.store.head(f"{CONFIGS}ready"),
        }
        return {name: _well(ask) for name, ask in asked.items()}

    def _summarize(self, tenant: str | None) -> Recent:
        page = self._stack.table.page(JobQuery(tenant=tenant, states=ENDED - {State.EXPIRED}), limit=_RECENT)
        jobs = sorted((j for j in page.jobs if j.ended_at is not None), key=lambda j: j.ended_at or 0.0, reverse=True)
        wrong = [job.error for job in jobs if job.error is not None]
        return Recent(
            jobs=len(jobs),
            succeeded=sum(job.state is State.SUCCEEDED for job in jobs),
            since=jobs[-1].ended_at if jobs else None,
            verdicts=dict(Counter(str(error.verdict) for error in wrong).most_common()),
            faults=dict(Counter(str(error.fault) for error in wrong).most_common()),
            outcomes=dict(Counter(str(job.outcome) for job in jobs if job.outcome is not None)),
            seconds=[j.ended_at - j.started_at for j in jobs if j.ended_at is not None and j.started_at is not None],
            ends=[(j.ended_at, str(j.state)) for j in jobs if j.ended_at is not None],
        )


def findings(
    artifact: dict[str, object], *, severity: str | None = None, code: str | None = None
) -> list[dict[str, object]]:
    """The findings of an artifact that fit, in its order."""
    listed = artifact.get("findings")
    return [
        one
        for one in (listed if isinstance(listed, list) else [])
        if isinstance(one, dict) and severity in (None, one.get("severity")) and code in (None, one.get("code"))
    ]


def log_text(raw: bytes, *, whole: bool) -> tuple[str, int]:
    """Lines that may be shown, and how many bytes they are; a line that is still being written waits unless `whole`."""
    end = len(raw) if whole else raw.rfind(b"\n") + 1
    lines = raw[:end].decode("utf-8", "replace").split("\n")
    return "\n".join(escape_controls(line) for line in lines), end


def _sender_facts(jobs: list[Job]) -> SenderFacts:
    """`jobs`: of one tenant's workflow, the newest first."""
    drops = [_drop_facts(job) for job in jobs]
    return {
        "tenant": jobs[0].tenant,
        "workflow": jobs[0].workflow,
        "states": dict(Counter(str(job.state) for job in jobs)),
        "drops": drops,
        "last": drops[0],
    }


def _drop_facts(job: Job) -> DropFacts:
    rows, found, drift = (job.summary.get(name) for name in ("rows_out", "findings", "drift"))
    return {
        "job_id": job.job_id,
        "subject": job.subject,
        "state": str(job.state),
        "at": job.created_at,
        "rows": rows if isinstance(rows, int) else None,
        "errors": found.get("error") if isinstance(found, dict) else None,
        "drift": drift if isinstance(drift, int) else 0,
    }


def _well(ask: Callable[[], object]) -> str:
    try:
        ask()
    except (AdeError, OSError) as error:
        return str(error) if isinstance(error, StoreUnavailable) else f"{type(error).__name__}: {error}"
    return "ok"


class Fresh(Generic[T]):
    """An answer that is asked for again once it is too old: the longer it took, the longer it is kept.

    While one thread asks again, the others get the answer from before, unless that is too old for anybody. An error is
    an answer too: while a service is down, one thread waits for it, and the others fail at once. With `aside`, an
    answer that took long is asked for again in a thread of its own, and only the very first is waited for.
    """

    def __init__(self, ask: Callable[[], T], steady: Callable[[], float], *, aside: bool = False) -> None:
        self._ask = ask
        self._steady = steady
        self._aside = aside
        self._asking = threading.Lock()
        self._known: _Known[T] | None = None
        self._failed: _Known[AdeError] | None = None

    def get(self) -> T:
        known, now = self._known, self._steady()
        if known is not None and now < known.until:
            return known.answer
        if known is not None and self._aside and known.seconds > _ASIDE_SECONDS:
            if self._asking.acquire(blocking=False):
                threading.Thread(target=self._ask_aside, name="count", daemon=True).start()
            return known.answer
        if (failed := self._failed) is not None and (now < failed.until or self._asking.locked()):
            raise failed.answer.with_traceback(None)
        if known is not None and now > known.until + _STALE_SECONDS:
            known = None  # too old to be of use to anybody
        if not self._asking.acquire(blocking=known is None):
            return known.answer if known is not None else self.get()
        try:
            again, failed = self._known, self._failed
            if again is not None and self._steady() < again.until:
                return again.answer  # somebody asked while we waited
            if failed is not None and self._steady() < failed.until:
                raise failed.answer.with_traceback(None)
            return self._ask_again()
        finally:
            self._asking.release()

    def forget(self) -> None:
        self._known = self._failed = None

    def age(self) -> float:
        """Seconds since the answer was complete."""
        return self._steady() - self._known.at if self._known is not None else 0.0

    def _ask_again(self) -> T:
        began = self._steady()
        try:
            answer = self._ask()
        except AdeError as error:
            now = self._steady()
            self._failed = _Known(error, at=now, seconds=now - began, until=now + min(now - began, _LONGEST_TROUBLE))
            raise
        now = self._steady()
        self._failed = None
        most = _MOST_FRESH_ASIDE if self._aside else _MOST_FRESH
        fresh = min(max(_LEAST_FRESH, _WORTH * (now - began)), most)
        self._known = _Known(answer, at=now, seconds=now - began, until=now + fresh)
        return answer

    def _ask_aside(self) -> None:
        try:
            with contextlib.suppress(Exception):  # whoever asks next starts another
                self._ask_again()
        finally:
            self._asking.release()


class _PastHistories:
    """Senders by their days that are over, so that only those with newer counters are put together again."""

    def __init__(self) -> None:
        self._known: tuple[int, dict[tuple[str, str], SenderHistory]] = (0, {})

    def with_changes(self, counters: ReadCounters) -> list[SenderHistory]:
        """All senders, with the days that may still change."""
        if self._known[0] != counters.generation:
            past = {(one.tenant, one.workflow): one for one in sender_histories(counters.past)}
            self._known = (counters.generation, past)
        by_sender = dict(self._known[1])
        for one in sender_histories(counters.changing):
            before = by_sender.get((one.tenant, one.workflow))
            by_sender[one.tenant, one.workflow] = one if before is None else before.with_days(one.days)
        return list(by_sender.values())


@dataclass(frozen=True, slots=True)
class _Known(Generic[T]):
    answer: T
    at: float
    seconds: float
    until: float  # when it stops being fresh


class SharedAnswers:
    """Whole answers by what was asked, so that many who ask the same cost as much as one."""

    def __init__(self, steady: Callable[[], float]) -> None:
        self._steady = steady
        self._answers = BoundedCache[Hashable, Fresh[bytes]](_ANSWERS)

    def get(self, what: Hashable, ask: Callable[[], bytes]) -> bytes:
        return self._answers.get_or_make(what, lambda: Fresh(ask, self._steady)).get()

    def forget(self) -> None:
        """Something was changed by us: whoever asks next sees it."""
        self._answers.clear()
