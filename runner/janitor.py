"""The janitor: does every chore of a job that no one else will do. One leader at a time; each chore is safe to repeat.

APScheduler runs in every process that has a janitor; a lease in the table lets one of them work. If two work at once
for a moment (a leader that slept), nothing breaks: each chore is a conditional write.

Theory of operation. Urgent chores (rescues, publications, starts) run every two seconds; where each round costs
requests, less often while nothing is due or will be soon. Jobs that have ended and only
have to expire or be forgotten have their own round, and so has the sweep of the inbox; none of the three waits for
another. A round ends after a bounded time, however much is due. A chore that fails is deferred in its row, so it does
not come first again, whoever leads by then. If more is due than one query returns, the jobs that runners may have lost
are searched by state, so that a crowd of other chores cannot hide them.
"""

import contextlib
import functools
import math
import shutil
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from core.chores import Chore, Timings, chore, defer, may_be_sent, sent_anyway, stays_until, wake_at
from core.errors import AdeError, ObjectRefused, RowUnreadable
from core.jobs import ENDED, Job, State, move, undecided
from core.keys import WORK, staging_folder
from core.ports import Clock, JobQuery, JobTable, ObjectStore, WorkQueue
from infra.local.presence import Presence
from infra.logs import ForeignLogs, Log
from infra.queueing import Lanes, enqueue, enqueue_all, note_sent, without_message
from infra.statuses import Statuses
from infra.telemetry import Telemetry, job_fields
from runner.attempt import Boxes
from runner.audit import Audit
from runner.documents import order_of
from runner.notifier import Notifier
from runner.publish import Publisher, count_moved
from runner.versions import StoredVersions, forget_replays
from runner.worker import Worker

if TYPE_CHECKING:
    from apscheduler.schedulers.background import BackgroundScheduler

LEADER_SECONDS = 30.0
CHORES_SECONDS = 2.0
TIDY_SECONDS = 10.0  # between rounds for expired jobs, each of which may take most of that time
REST_SECONDS = 60.0  # the longest between urgent rounds that found nothing, of a table over a network
REST_TIDY_SECONDS = 300.0
RECOUNT_SECONDS = 30.0
REPLENISH_SECONDS = 30.0
COLLECT_SECONDS = 600.0
AUDIT_SECONDS = 600.0
ALIVE, ALIVE_SECONDS = "janitor_alive", 300.0  # an alarm of the CloudFormation template waits for this event
LAYER_SECONDS = 7 * 86400.0  # installed requirements unused for so long are deleted
_UNNAMED_SECONDS = 3600.0  # a version stays so long after the retention: a job of it may be about to be recorded
_REPLAY_SECONDS = 30 * 86400.0  # so long the report of a replay stays, and the version that it is of
_BATCH = 200
_AT_ONCE = 24  # chores between two checks of the clock
_COUNTED_SECONDS = 60.0  # how far a service's counts may lag behind
_LOST = frozenset({State.RUNNING, State.PUBLISHING})


class Rest:
    """Leaves rounds out while nothing happens: after each that found nothing, the next comes after twice the time."""

    def __init__(self, shortest: float, longest: float, steady: Callable[[], float]) -> None:
        self._shortest, self._longest, self._steady = shortest, longest, steady
        self._pause, self._until = shortest, -math.inf

    def rest_or(self, act: Callable[[], tuple[Counter[str], bool]]) -> Counter[str]:
        """Run a round if it is time for one. It returns what it did, and whether the next must not wait."""
        if self._steady() < self._until:
            return Counter()
        done, busy = act()
        self._pause = self._shortest if busy else min(2 * self._pause, self._longest)
        # A scheduler is never early, so a round of the usual interval is never left out.
        self._until = self._steady() + self._pause - self._shortest
        return done


@dataclass(kw_only=True, eq=False, repr=False)
class Janitor:
    store: ObjectStore
    table: JobTable
    queue: WorkQueue
    clock: Clock
    timings: Timings
    worker: Worker
    publisher: Publisher
    notifier: Notifier
    presence: Presence
    boxes: Boxes
    run_dir: Path
    log: Log
    lanes: Lanes
    tidy_lanes: Lanes
    versions: StoredVersions
    scan_inbox: Callable[[], object] | None = None
    sweep_seconds: float = 300.0
    rest_seconds: float = 0.0  # the longest between rounds while nothing happens; 0: none is left out
    pulse: Callable[[], None] = lambda: None
    telemetry: Telemetry = field(default_factory=Telemetry)

    def __post_init__(self) -> None:
        self._alive_at = 0.0
        self._replenished: str | None = None  # how far the look for purged messages has come
        self._statuses = Statuses(self.store, self.table)
        self.audit = Audit(self.store, self.table, self.clock, self.log)
        self._leads_until = 0.0
        self._leading = threading.Lock()
        self._soon = False  # whether the last round saw chores that are not due yet

    def scheduler(self) -> "BackgroundScheduler":
        """The chores on their intervals; the caller starts it and shuts it down."""
        from apscheduler.schedulers.background import BackgroundScheduler  # noqa: PLC0415 - a runner alone has none

        self.notifier.start()
        ForeignLogs.capture("apscheduler", self.log)
        made = BackgroundScheduler(
            timezone="UTC", job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        )
        acts: dict[str, tuple[Callable[[], Counter[str]], float]] = {
            "urgent": (self._resting_urgent(), CHORES_SECONDS),
            "tidy": (self._resting_tidy(), TIDY_SECONDS),
            "recount": (self.recount, RECOUNT_SECONDS),
            "replenish": (lambda: self.replenish(REPLENISH_SECONDS / 6), min(REPLENISH_SECONDS, self.sweep_seconds)),
            "audit": (self.audit.round, AUDIT_SECONDS),
            "collect": (self.collect, COLLECT_SECONDS),
        }
        if self.scan_inbox is not None:
            acts["sweep"] = self.sweep, self.sweep_seconds
        for name, (act, seconds) in acts.items():
            led = functools.partial(self._led, act, vital=name == "urgent")
            made.add_job(led, "interval", seconds=seconds, name=name)
        return made

    def _resting_urgent(self) -> Callable[[], Counter[str]]:
        """The urgent round of the scheduler; the next one is worth it at once if something was due, or will be soon."""
        if not self.rest_seconds:
            return lambda: self.urgent(CHORES_SECONDS)
        rest = Rest(CHORES_SECONDS, self.rest_seconds, self.clock.steady)
        ahead = max(self.rest_seconds, self.timings.lease_seconds)

        def act() -> tuple[Counter[str], bool]:
            done = self._round(CHORES_SECONDS, urgent=True, ahead=ahead)
            return done, self._soon or any(done.values())

        return lambda: rest.rest_or(act) + self._bury_dead()

    def _resting_tidy(self) -> Callable[[], Counter[str]]:
        seconds = 0.8 * TIDY_SECONDS
        if not self.rest_seconds:
            return lambda: self.tidy(seconds)
        rest = Rest(TIDY_SECONDS, REST_TIDY_SECONDS, self.clock.steady)

        def act() -> tuple[Counter[str], bool]:
            done = self.tidy(seconds)
            return done, any(done.values())

        return lambda: rest.rest_or(act)

    def run_once(self) -> Counter[str]:
        """All chores now, leader or not, for an operator."""
        done = self.sweep() + self.replenish() + self.chores() + self.audit.round() + self.collect()
        return Counter({name: n for name, n in done.items() if n})

    def resign(self) -> None:
        self.notifier.stop()
        if self._leads_until:
            self.table.let_go("janitor", self.presence.owner)
            self._leads_until = 0.0

    def chores(self) -> Counter[str]:
        """Everything that is due, and the jobs of dead runners, however long it takes."""
        return self.urgent() + self.tidy()

    def urgent(self, seconds: float = math.inf, *, notices: bool = True) -> Counter[str]:
        """Chores that a job waits for: all of them, or as many as fit into so many seconds; notices if asked for."""
        return self._round(seconds, urgent=True, notices=notices) + self._bury_dead()

    def _bury_dead(self) -> Counter[str]:
        """Clean up after processes of this machine that died."""
        return sum((self._bury_owner(owner) for owner in self.presence.sweep()), Counter[str]())

    def tidy(self, seconds: float = math.inf) -> Counter[str]:
        """Expire and forget jobs: all that are due, or as many as fit into so many seconds."""
        return self._round(seconds, urgent=False)

    def recount(self) -> Counter[str]:
        """Correct wrong counts of running jobs, which would refuse starts."""
        return Counter(slots_corrected=self.table.recount())

    def replenish(self, seconds: float = math.inf) -> Counter[str]:
        """Send messages again that somebody purged, where a query finds the jobs that miss theirs.

        Looks through all that wait, or as many as fit into so many seconds; the next round goes on from there.
        """
        done: Counter[str] = Counter()
        until = self.clock.steady() + seconds
        while True:
            jobs, self._replenished = without_message(self.table, self.queue, self._replenished)
            done += self._resend(list(jobs), self.clock.now())
            if self._replenished is None or self.clock.steady() >= until:
                return done

    def collect(self) -> Counter[str]:
        """Delete staged files that no job will publish, and boxes and scratch folders without an owner."""
        done: Counter[str] = Counter()
        for prefix in self.store.folder(WORK).folders:
            try:
                job = self.table.get(prefix.removeprefix(WORK).rstrip("/"))
                if job is not None and job.state is State.REVIEW and not job.unpublished:
                    done["staged_files_removed"] += self.store.delete_prefix(staging_folder(job.job_id, job.fence))
                elif job is None or (job.state in ENDED and not job.unpublished):
                    done["staged_files_removed"] += self.store.delete_prefix(prefix)
            except (RowUnreadable, ObjectRefused) as error:
                self.log.warning("staged_files_kept", prefix=prefix, error=str(error))
        done["boxes_reaped"] += self.boxes.sandbox.reap(self._label_alive)
        done["layers_removed"] += self.boxes.layers.collect(LAYER_SECONDS)
        done["versions_forgotten"] += self._forget_versions()
        return done

    def _forget_versions(self) -> int:
        """Delete versions of workflows that no job names any more."""
        before = self.clock.now() - self.timings.retention_seconds - _UNNAMED_SECONDS
        try:
            replays = forget_replays(self.store, self.clock.now() - _REPLAY_SECONDS)
            return self.versions.forget(self.table, before, replays)
        except AdeError as error:
            self.log.warning("versions_kept", error=str(error))
            return 0

    def sweep(self) -> Counter[str]:
        if self.scan_inbox is not None:
            self.scan_inbox()
            return Counter(sweeps=1)
        return Counter()

    def gauges(self) -> dict[tuple[str, str], float]:
        """What the queue and the table hold, for metrics; nothing unless this process leads."""
        if self.clock.now() > self._leads_until:
            return {}
        stats = self.queue.stats()
        kinds = {"ready": stats.ready, "in_flight": stats.in_flight, "delayed": stats.delayed, "dead": stats.dead}
        return {
            **{("ade.queue.messages", kind): n for kind, n in kinds.items()},
            ("ade.queue.oldest", ""): stats.oldest_seconds or 0.0,
            **{("ade.jobs", str(state)): n for state, n in self.table.counts().items()},
        }

    def _led(self, chores: Callable[[], Counter[str]], *, vital: bool = False) -> None:
        """Run chores if this process leads or can take the lead. Called by the scheduler, so it never raises.

        `vital`: this round is the health check; the other rounds go on even while it hangs.
        """
        if vital:
            self.pulse()
        try:
            if not self._leads():
                return
            done = chores()
        except Exception as error:  # noqa: BLE001 - the next round may succeed
            self.log.error("chores_failed", error=f"{type(error).__name__}: {error}")  # noqa: TRY400 - no logging.Logger
            return
        now = self.clock.now()
        if vital and now >= self._alive_at:
            self._alive_at = now + ALIVE_SECONDS
            self.log.info(ALIVE)
        if failed := done.get("chores_failed"):
            self.telemetry.meters.add("ade.chores.failed", failed)
        if done:
            self.log.info("chores_done", **{k: v for k, v in done.items() if v})

    def _leads(self) -> bool:
        """Whether this process is the leader; takes or renews the lease when that is due."""
        with self._leading:
            now = self.clock.now()
            if now > self._leads_until - LEADER_SECONDS / 2:
                leads = self.table.hold("janitor", self.presence.owner, LEADER_SECONDS)
                self._leads_until = now + LEADER_SECONDS if leads else 0.0
            return self._leads_until > 0.0

    def _round(self, seconds: float, *, urgent: bool, notices: bool = True, ahead: float = 0.0) -> Counter[str]:
        """Do what is due, longest overdue first, each row once, until nothing is left or time is up.

        `ahead`: so many seconds into the future is looked whether something will be.
        """
        query = self.table.attention if urgent else self.table.outdated
        lanes = self.lanes if urgent else self.tidy_lanes
        done: Counter[str] = Counter()
        seen: set[tuple[str, int]] = set()
        until, still = self.clock.steady() + seconds, 0
        while True:
            now, most = self.clock.now(), _BATCH + still
            found = query(now + ahead, limit=most)
            due = [job for job in found if (job.job_id, job.rev) not in seen and not self._is_ahead(job, now)]
            still = len(found) - len(due)  # handled but still due, or not due yet: read past it
            self._soon = any(self._is_ahead(job, now) for job in found)
            if urgent and len(due) >= _BATCH:
                due = self._crowded_out(due, now, seen)
            seen |= {(job.job_id, job.rev) for job in due}
            sent = [job for job in due if self._is_sent(job)]
            due = [job for job in due if not self._is_sent(job)]
            for at in range(0, len(due), _AT_ONCE):
                for one in lanes.each(lambda job: self._one(job, now, notices=notices), due[at : at + _AT_ONCE]):  # noqa: B023
                    done += one
                if self.clock.steady() >= until:
                    break
            done += self._resend(
                sent, now
            )  # after messages that were never sent: a queue that only counts would report those as lost too
            if self.clock.steady() >= until or still == len(found) < most:
                return done

    def _is_sent(self, job: Job) -> bool:
        """Whether the only possible problem of a job is a lost message."""
        return job.state is State.QUEUED and may_be_sent(job, self.timings)

    def _is_ahead(self, job: Job, now: float) -> bool:
        at = wake_at(job, self.timings)
        return at is not None and at > now

    def _crowded_out(self, due: list[Job], now: float, seen: set[tuple[str, int]]) -> list[Job]:
        """What is due, with the jobs that runners may have lost first: a crowd of other chores could hide them."""
        lost: dict[str, Job] = {}
        cursor: str | None = None
        while True:
            page = self.table.page(JobQuery(states=_LOST), limit=_BATCH, cursor=cursor)
            lost |= {job.job_id: job for job in page.jobs if chore(job, now, self.timings) is not None}
            cursor = page.cursor
            if cursor is None:
                break
        first = [job for job in lost.values() if (job.job_id, job.rev) not in seen]
        return first + [job for job in due if job.job_id not in lost]

    def _one(self, job: Job, now: float, *, notices: bool = True) -> Counter[str]:
        what = chore(job, now, self.timings)
        if what is Chore.NOTIFY:
            return self._notify(job) if notices else Counter()
        return self._done(job, what, now) if what is not None else Counter()

    def _notify(self, job: Job) -> Counter[str]:
        return Counter(jobs_notify=int(self.notifier.deliver(job)))

    def _done(self, job: Job, what: Chore, now: float) -> Counter[str]:
        try:
            match what:
                case Chore.ENQUEUE:
                    self._statuses.clear(job)
                    moved = self.table.replace(job, move(job, State.QUEUED, now=now, announced=False))
                    if moved is not None:
                        enqueue(self.table, self.queue, self.clock, moved)
                case Chore.RESEND:
                    enqueue(self.table, self.queue, self.clock, job)
                case Chore.RESCUE:
                    if self.worker.rescue(job) is job:
                        return Counter()  # its runner may still be alive
                case Chore.PUBLISH:
                    self.worker.finish(job)
                case Chore.EXPIRE:
                    return self._expire(job, now)
                case Chore.CLOSE_REVIEW:
                    self._close_review(job, now)
                case Chore.FORGET:
                    self._forget(job, now)
                case Chore.NOTIFY:
                    return self._notify(job)
        except Exception as error:  # noqa: BLE001 - one job that fails must not block the others
            cause = f"{type(error).__name__}: {error}"
            self.log.warning("chore_failed", **job_fields(job), chore=str(what), error=cause)
            with contextlib.suppress(Exception):  # then the next round tries again
                self.table.replace(job, defer(job, now, self.timings))
            return Counter(chores_failed=1)
        return Counter({f"jobs_{what}": 1})

    def _expire(self, job: Job, now: float) -> Counter[str]:
        if (until := self._stays_until(job, now)) is not None:
            self.table.replace(job, replace(job, deferred_until=until))
            return Counter()
        expired = self.table.replace(job, move(job, State.EXPIRED, now=now, files=()))
        if expired is not None:
            self.publisher.finish(expired)
        return Counter({f"jobs_{Chore.EXPIRE}": 1})

    def _stays_until(self, job: Job, now: float) -> float | None:
        """When to check again a result that stays for now; None: it expires."""
        if job.state is not State.SUCCEEDED or job.replay or not self.timings.latest_retention_seconds:
            return None
        line = self.table.line(job.line, whole=True)
        newest = max((one for one in line if one.state is State.SUCCEEDED), key=order_of, default=job)
        return stays_until(job, newest, now, self.timings)

    def _resend(self, jobs: list[Job], now: float) -> Counter[str]:
        """Send lost messages again, and note that the others are still in the queue."""
        if not jobs:
            return Counter()
        # Check refused jobs last: their messages were received and put back, so they are least likely to be lost.
        likely = sorted(jobs, key=lambda job: (job.reason.startswith("waiting:"), job.enqueued_at or job.created_at))
        here = frozenset({State.QUEUED, State.RUNNING})
        try:
            lost = self.queue.missing(
                [job.job_id for job in likely], lambda: self.table.count(here, before=now - _COUNTED_SECONDS)
            )
            again = [job for job in jobs if job.job_id in lost or sent_anyway(job, now)]
            sent = [(job, max(0.0, (job.due_at or 0.0) - now)) for job in again]
            enqueue_all(self.table, self.queue, self.clock, sent, lanes=self.lanes)
            resent = {job.job_id for job in again}
            self.lanes.each(
                lambda job: note_sent(self.table, job, now), [job for job in jobs if job.job_id not in resent]
            )
        except Exception as error:  # noqa: BLE001 - the next round tries again; nothing else waits for them
            self.log.warning("chore_failed", chore=str(Chore.RESEND), error=f"{type(error).__name__}: {error}")
            return Counter(chores_failed=1)
        return Counter(jobs_resend=len(again))

    def _close_review(self, job: Job, now: float) -> None:
        """End a review that nobody answered in time, as its manifest says."""
        closed = self.table.replace(job, undecided(job, now=now))
        if closed is not None and closed.state is State.QUEUED:
            enqueue(self.table, self.queue, self.clock, closed)
        elif closed is not None:
            count_moved(self.telemetry, closed)
            self.worker.finish(closed)

    def _forget(self, job: Job, now: float) -> None:
        """Remove a tombstone; it stays while its input is in the inbox, or the next sweep would run that again."""
        for item in job.inputs if not job.replay else ():
            current = self.store.head(item.ref.key) if item.role == "primary" else None
            if current is not None and current.digest == item.ref.digest:
                self.table.replace(job, replace(job, updated_at=now))
                return
        # Remove the row last; until then it blocks another run (`is_retracted`). Once it is gone, a drop of the same
        # content creates the same job, and a late delete would hit its outputs.
        held = self.table.replace(job, replace(job, updated_at=now))
        if held is not None:
            self.publisher.erase(held)
            self.table.remove(held)

    def _bury_owner(self, owner: str) -> Counter[str]:
        """Clean up after a process of this machine that died: requeue its jobs, delete its scratch folder and lock."""
        done: Counter[str] = Counter()
        cursor: str | None = None
        left = False
        while True:
            page = self.table.page(JobQuery(states=frozenset({State.RUNNING})), cursor=cursor)
            for job in page.jobs:
                if job.lease is None or job.lease.owner != owner:
                    continue
                try:
                    self.worker.rescue(job)
                    done["jobs_rescued"] += 1
                except Exception as error:  # noqa: BLE001 - one job that fails must not block the others
                    self.log.warning("chore_failed", job_id=job.job_id, chore="rescue", error=type(error).__name__)
                    left = True
            cursor = page.cursor
            if cursor is None:
                break
        if left:
            return done + Counter(chores_failed=1)
        self.boxes.sandbox.reap(self._label_alive)
        shutil.rmtree(self.run_dir / owner, ignore_errors=True)
        self.presence.forget(owner)
        done["owners_buried"] += 1
        return done

    def _label_alive(self, label: str) -> bool:
        """Whether the attempt that a box is named after still runs; True if its row cannot be read."""
        job_id, _, fence = label.rpartition("-")
        try:
            job = self.table.get(job_id)
        except RowUnreadable:
            return True
        return job is not None and job.state is State.RUNNING and str(job.fence) == fence
