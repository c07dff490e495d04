"""Leases: taken in the table under a new fence, kept by heartbeats, lost without argument.

Theory of operation. A runner may work on a job while its row says RUNNING with this runner as owner and the fence
that the start gave. Each beat is a conditional write that proves exactly this and prolongs the lease; the queue's
visibility follows it and always ends later than the lease, so that a redelivery finds a lease that has run out. A
beat that cannot be written is tried again until the lease has run out; then, or when the row shows another fence,
the box is killed: whatever it made cannot be committed any more, because the commit is conditional on the fence
too. A cancel is a mark in the row; the beats see it and kill the box. One thread beats for all slots of a process,
woken by changes of the table, and sleeps while nothing runs.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from core.errors import RecordNewer, StoreUnavailable
from core.jobs import Job, State, beat
from core.ports import Clock, JobTable, WorkQueue
from core.verdicts import Verdict
from infra.logs import Log
from runner.changes import mutate

VISIBILITY_MARGIN_SECONDS = 5.0
_CANCEL_LATENCY_SECONDS = 0.25


@dataclass
class Held:
    """A lease that this process holds, shared between its slot and the beating thread."""

    job: Job  # the row as this process wrote it last
    fence: int
    receipt: str
    expires: float
    next_beat: float
    killed: Verdict | None = None
    progress: dict[str, Any] = field(default_factory=dict)

    def lost(self, clock: Clock) -> Verdict | None:
        """Asked by the sandbox while the box runs: a verdict ends it. A late beat counts as a lost lease."""
        if self.killed is None and clock.now() >= self.expires:
            self.killed = Verdict.LEASE_LOST
        return self.killed


class Beats:
    def __init__(
        self, table: JobTable, queue: WorkQueue, clock: Clock, log: Log, *, lease_seconds: float, beat_seconds: float
    ) -> None:
        self._table = table
        self._queue = queue
        self._clock = clock
        self._log = log
        self._lease = lease_seconds
        self._beat = beat_seconds
        self._held: dict[str, Held] = {}
        self._lock = threading.Lock()
        self._some = threading.Event()
        self._stopped = False
        self._pause = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def visibility(self) -> float:
        return self._lease + VISIBILITY_MARGIN_SECONDS

    def start(self) -> None:
        self._thread = threading.Thread(target=self._loop, name="beats", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """After the last slot has let go; a second call does nothing."""
        self._stopped = True
        self._pause.set()
        self._some.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def hold(self, job: Job, receipt: str) -> Held:
        expires = job.lease.expires if job.lease else 0.0
        held = Held(job, job.fence, receipt, expires, self._clock.now() + self._beat)
        with self._lock:
            self._held[job.job_id] = held
        self._some.set()
        return held

    def let_go(self, held: Held) -> None:
        """Stop beating before anything else is written for the job, so that no late beat undoes it."""
        with self._lock:
            if self._held.get(held.job.job_id) is held:
                del self._held[held.job.job_id]
            if not self._held:
                self._some.clear()

    def kill_all(self, verdict: Verdict) -> None:
        with self._lock:
            for held in self._held.values():
                held.killed = held.killed or verdict

    def round(self) -> None:
        """Beat for every lease that is due, and look for cancels; one pass of the thread."""
        with self._lock:
            held = list(self._held.values())
        for one in held:
            with self._lock:
                if self._held.get(one.job.job_id) is not one:
                    continue
                self._look(one)

    def _look(self, held: Held) -> None:
        now = self._clock.now()
        try:
            if now >= held.next_beat:
                self._prolong(held, now)
            else:
                job = self._table.get(held.job.job_id)
                if job is None or not _mine(job, held):
                    held.killed = held.killed or Verdict.LEASE_LOST
                elif job.cancel_requested_at is not None:
                    held.killed = held.killed or Verdict.CANCELLED
        except RecordNewer:  # whoever wrote that takes the job over; nothing that we write would be accepted
            held.killed = held.killed or Verdict.LEASE_LOST
        except (StoreUnavailable, OSError) as error:
            self._log.warning("beat_failed", job_id=held.job.job_id, error=type(error).__name__)

    def _prolong(self, held: Held, now: float) -> None:
        def change(job: Job) -> Job | None:
            if not _mine(job, held):
                return None
            summary = job.summary | ({"progress": held.progress} if held.progress else {})
            return replace(beat(job, now=now, lease_seconds=self._lease), summary=summary)

        job = mutate(self._table, held.job.job_id, change)
        if job is None or job.lease is None:
            held.killed = held.killed or Verdict.LEASE_LOST
            return
        held.job, held.expires, held.next_beat = job, job.lease.expires, now + self._beat
        if job.cancel_requested_at is not None:
            held.killed = held.killed or Verdict.CANCELLED
        self._queue.hide(held.receipt, self.visibility)

    def _loop(self) -> None:
        while True:
            self._some.wait()
            if self._stopped:
                return
            self._table.wait(min(self._beat / 2, 1.0))
            self.round()
            # The table's bell rings for every job; looking at ours a few times a second is enough.
            self._pause.wait(min(self._beat / 4, _CANCEL_LATENCY_SECONDS))


def _mine(job: Job, held: Held) -> bool:
    return job.state is State.RUNNING and job.fence == held.fence


def fenced(fence: int, change: Callable[[Job], Job | None]) -> Callable[[Job], Job | None]:
    """A change that is made only while the job still runs under this fence."""

    def guarded(job: Job) -> Job | None:
        return change(job) if job.state is State.RUNNING and job.fence == fence else None

    return guarded
