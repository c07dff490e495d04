"""The janitor: every chore of a job that nobody else will do, by one leader at a time, each safe to repeat.

APScheduler runs in every process that has a janitor; a lease in the table lets one of them work. If two work at
once for a moment (a leader that slept), nothing breaks: each chore is a conditional write.
"""

import shutil
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from apscheduler.schedulers.background import BackgroundScheduler

from core.chores import Chore, Timings, chore
from core.errors import ObjectRefused, RowUnreadable
from core.jobs import ENDED, Job, State, move
from core.keys import WORK
from core.ports import Clock, JobQuery, JobTable, Message, ObjectStore, WorkQueue
from infra.lanes import Lanes
from infra.logs import Log
from infra.presence import Presence
from infra.statuses import Statuses
from runner.attempt import Boxes
from runner.changes import mutate
from runner.publish import Publisher
from runner.results import job_folder
from runner.worker import Worker

LEADER_SECONDS = 30.0
CHORES_SECONDS = 2.0
COLLECT_SECONDS = 600.0
ALIVE, ALIVE_SECONDS = "janitor_alive", 300.0  # an alarm of the CloudFormation template waits for this event
LAYER_SECONDS = 7 * 86400.0  # installed requirements that nobody asked for in so long
_BATCH = 200


class Janitor:
    def __init__(
        self,
        *,
        store: ObjectStore,
        table: JobTable,
        queue: WorkQueue,
        clock: Clock,
        timings: Timings,
        worker: Worker,
        publisher: Publisher,
        presence: Presence,
        boxes: Boxes,
        run_dir: Path,
        log: Log,
        lanes: Lanes,
        sweep: Callable[[], object] | None = None,
        sweep_seconds: float = 300.0,
        pulse: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._table = table
        self._queue = queue
        self._clock = clock
        self._timings = timings
        self._worker = worker
        self._publisher = publisher
        self._presence = presence
        self._boxes = boxes
        self._run_dir = run_dir
        self._log = log
        self._lanes = lanes
        self._sweep = sweep
        self._sweep_seconds = sweep_seconds
        self._pulse = pulse
        self._alive_at = 0.0
        self._statuses = Statuses(store, table)
        self._leads_until = 0.0
        self._turn = threading.Lock()

    def scheduler(self) -> BackgroundScheduler:
        """The chores on their intervals; the caller starts it and shuts it down."""
        made = BackgroundScheduler(
            timezone="UTC", job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        )
        made.add_job(lambda: self._led(self.chores), "interval", seconds=CHORES_SECONDS)
        made.add_job(lambda: self._led(self.collect), "interval", seconds=COLLECT_SECONDS)
        if self._sweep is not None:
            made.add_job(lambda: self._led(self.sweep), "interval", seconds=self._sweep_seconds)
        return made

    def run_once(self) -> Counter[str]:
        """All chores now, leader or not: what an operator asks for by hand."""
        done = self.sweep() + self.chores() + self.collect()
        return Counter({name: n for name, n in done.items() if n})

    def resign(self) -> None:
        if self._leads_until:
            self._table.let_go("janitor", self._presence.owner)
            self._leads_until = 0.0

    def chores(self) -> Counter[str]:
        """Everything that is due by the clock, and jobs whose runner is known to be dead."""
        done: Counter[str] = Counter()
        seen: set[tuple[str, int]] = set()
        while True:
            now = self._clock.now()
            due = [j for j in self._table.attention(now, limit=_BATCH) if (j.job_id, j.rev) not in seen]
            seen |= {(job.job_id, job.rev) for job in due}
            for one in self._lanes.each(lambda job: self._one(job, now), due):  # noqa: B023 - called at once
                done += one
            if not due:
                break
        for owner in self._presence.sweep():
            done += self._bury_owner(owner)
        return done

    def collect(self) -> Counter[str]:
        """Staged files that no job will publish, boxes and scratch folders that nobody owns."""
        done: Counter[str] = Counter()
        for prefix in self._store.folder(WORK).folders:
            try:
                job = self._table.get(prefix.removeprefix(WORK).rstrip("/"))
                if job is None or (job.state in ENDED and not job.unpublished):
                    done["staged_files_removed"] += self._store.delete_prefix(prefix)
            except (RowUnreadable, ObjectRefused) as error:
                self._log.warning("staged_files_kept", prefix=prefix, error=str(error))
        done["boxes_reaped"] += self._boxes.sandbox.reap(self._label_alive)
        done["layers_removed"] += self._boxes.layers.collect(LAYER_SECONDS)
        return done

    def sweep(self) -> Counter[str]:
        if self._sweep is not None:
            self._sweep()
            return Counter(sweeps=1)
        return Counter()

    def _led(self, chores: Callable[[], Counter[str]]) -> None:
        """Run chores if we lead, or can: a scheduler's entry, so nothing may escape."""
        with self._turn:
            self._pulse()
            try:
                now = self._clock.now()
                if now > self._leads_until - LEADER_SECONDS / 2:
                    leads = self._table.hold("janitor", self._presence.owner, LEADER_SECONDS)
                    self._leads_until = now + LEADER_SECONDS if leads else 0.0
                if not self._leads_until:
                    return
                done = chores()
            except Exception as error:  # noqa: BLE001 - the next round may fare better
                self._log.error("chores_failed", error=f"{type(error).__name__}: {error}")
                return
            if now >= self._alive_at:
                self._alive_at = now + ALIVE_SECONDS
                self._log.info(ALIVE)
        if done:
            self._log.info("chores_done", **{k: v for k, v in done.items() if v})

    def _one(self, job: Job, now: float) -> Counter[str]:
        what = chore(job, now, self._timings)
        try:
            match what:
                case Chore.ENQUEUE:
                    self._statuses.clear(job)
                    moved = self._table.replace(job, move(job, State.QUEUED, now=now, announced=False))
                    if moved is not None:
                        self._send(moved)
                case Chore.RESEND:
                    self._send(job)
                case Chore.RESCUE:
                    self._worker.rescue(job)
                case Chore.PUBLISH:
                    self._worker.finish(job)
                case Chore.EXPIRE:
                    expired = self._table.replace(job, move(job, State.EXPIRED, now=now, files=()))
                    if expired is not None:
                        self._publisher.finish(expired)
                case Chore.FORGET:
                    self._forget(job, now)
                case None:
                    return Counter()
        except Exception as error:  # noqa: BLE001 - one job that cannot be dealt with keeps no other waiting
            said = f"{type(error).__name__}: {error}"
            self._log.warning("chore_failed", job_id=job.job_id, chore=str(what), error=said)
            return Counter(chores_failed=1)
        return Counter({f"jobs_{what}": 1})

    def _forget(self, job: Job, now: float) -> None:
        """Remove a tombstone; it stays while its input stands in the inbox, or the next sweep would run that again."""
        for item in job.inputs:
            there = self._store.head(item.ref.key) if item.role == "primary" else None
            if there is not None and there.digest == item.ref.digest:
                self._table.replace(job, replace(job, updated_at=now))
                return
        if self._table.remove(job):
            self._store.delete_prefix(job_folder(job))

    def _send(self, job: Job) -> None:
        self._queue.send(Message(job_id=job.job_id, tenant=job.tenant, priority=job.priority))
        mutate(
            self._table,
            job.job_id,
            lambda j: replace(j, enqueued_at=self._clock.now()) if j.state is State.QUEUED else None,
        )

    def _bury_owner(self, owner: str) -> Counter[str]:
        """A process of this machine died: its jobs go back at once, its scratch folder and lock go away."""
        done: Counter[str] = Counter()
        cursor: str | None = None
        while True:
            page = self._table.page(JobQuery(states=frozenset({State.RUNNING})), cursor=cursor)
            for job in page.jobs:
                if job.lease is not None and job.lease.owner == owner:
                    self._worker.rescue(job)
                    done["jobs_rescued"] += 1
            cursor = page.cursor
            if cursor is None:
                break
        self._boxes.sandbox.reap(self._label_alive)
        shutil.rmtree(self._run_dir / owner, ignore_errors=True)
        self._presence.forget(owner)
        done["owners_buried"] += 1
        return done

    def _label_alive(self, label: str) -> bool:
        """Whether the attempt that a box is named after still runs."""
        job_id, _, fence = label.rpartition("-")
        job = self._table.get(job_id)
        return job is not None and job.state is State.RUNNING and str(job.fence) == fence
