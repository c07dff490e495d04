"""Leases: taken in the table under a new fence, kept by heartbeats, lost without argument.

Theory of operation. A runner may work on a job while its row says RUNNING with this runner as owner and the fence
that the start gave. Each beat is a conditional write that proves exactly this and prolongs the lease; the queue's
visibility follows it and always ends later than the lease, so that a redelivery finds a lease that has run out. A
beat that cannot be written is tried again. When none got through until shortly before the lease ends, by this
process's own steady clock, or when the row shows another fence, the box is killed: whatever it made cannot be
committed any more, because the commit is conditional on the fence too. A cancel is a mark in the row; the beats see
it and kill the box. One thread, woken by changes of the table and asleep while nothing runs, hands out the beats
that are due; a pool of threads makes the calls, so that one that hangs delays no other. No call is made under the
lock that all share. The table and queue given here give up well within a lease (infra/wiring.py).
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from core.errors import RecordNewer
from core.jobs import Job, State, beat
from core.ports import Clock, JobTable, WorkQueue
from core.verdicts import Verdict
from infra.logs import Log
from infra.queueing import mutate

VISIBILITY_MARGIN_SECONDS = 5.0
_CANCEL_LATENCY_SECONDS = 0.25
_KILL_SHARE = 0.1  # of a lease: how long before its end a box that was not beaten for is killed
_MOST_CALLS = 32  # beats under way at once, at most


@dataclass
class Held:
    """A lease that this process holds, shared between its slot and the beating threads."""

    job: Job  # the row as this process wrote it last
    fence: int
    receipt: str
    ends: float  # by the steady clock: without a beat until then the box is killed
    next_beat: float  # by the steady clock
    killed: Verdict | None = None
    missed: bool = False  # the last beat met a fault: if the lease is lost now, that is not the job's doing
    progress: dict[str, Any] = field(default_factory=dict)
    let_go: bool = False
    queued: bool = False  # a look at it is under way
    turn: threading.Lock = field(default_factory=lambda: threading.Lock())  # noqa: PLW0108 - held during its calls

    def lost(self, clock: Clock) -> Verdict | None:
        """Asked by the sandbox while the box runs: a verdict ends it. A late beat counts as a lost lease."""
        if self.killed is None and clock.steady() >= self.ends:
            self.killed = Verdict.LEASE_LOST
        return self.killed


class Beats:
    def __init__(
        self,
        table: JobTable,
        queue: WorkQueue,
        clock: Clock,
        log: Log,
        *,
        lease_seconds: float,
        beat_seconds: float,
        wait: Callable[[float], None] | None = None,
    ) -> None:
        """`wait` returns when a job may have changed; the table's own where it is not given."""
        self._table = table
        self._queue = queue
        self._clock = clock
        self._log = log
        self._lease = lease_seconds
        self._beat = beat_seconds
        self._wait = wait or table.wait
        self._held: dict[str, Held] = {}
        self._lock = threading.Lock()
        self._some = threading.Event()
        self._stopped = False
        self._pause = threading.Event()
        self._thread: threading.Thread | None = None
        self._pool: ThreadPoolExecutor | None = None

    @property
    def visibility(self) -> float:
        return self._lease + VISIBILITY_MARGIN_SECONDS

    def start(self) -> None:
        self._pool = ThreadPoolExecutor(_MOST_CALLS, thread_name_prefix="beat")
        self._thread = self._started()

    def revive(self) -> None:
        """Start the thread again if it has died, however that came about."""
        if self._thread is not None and not self._thread.is_alive() and not self._stopped:
            self._log.error("beats_revived")
            self._thread = self._started()

    def stop(self) -> None:
        """After the last slot has let go; a second call does nothing."""
        self._stopped = True
        self._pause.set()
        self._some.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def hold(self, job: Job, receipt: str) -> Held:
        left = job.lease.expires - self._clock.now() if job.lease else 0.0
        steady = self._clock.steady()
        held = Held(job, job.fence, receipt, self._end(steady, left), steady + self._beat)
        with self._lock:
            self._held[job.job_id] = held
        self._some.set()
        return held

    def let_go(self, held: Held) -> None:
        """Stop beating before anything else is written for the job, so that no late beat undoes it."""
        with self._lock:
            held.let_go = True
            if self._held.get(held.job.job_id) is held:
                del self._held[held.job.job_id]
            if not self._held:
                self._some.clear()
        with held.turn:
            pass  # the beat that was under way has ended

    def holds(self, job: Job) -> bool:
        """Whether a slot of this process works on a job."""
        with self._lock:
            held = self._held.get(job.job_id)
            return held is not None and held.fence == job.fence

    def kill(self, job_id: str, verdict: Verdict) -> bool:
        """End the box of a job that a slot of this process works on; False where none does, or its end is near."""
        with self._lock:
            held = self._held.get(job_id)
            if held is None or held.killed is not None:
                return False
            held.killed = verdict
            return True

    def kill_all(self, verdict: Verdict) -> None:
        with self._lock:
            for held in self._held.values():
                held.killed = held.killed or verdict

    def round(self) -> None:
        """Beat for every lease that is due, and look for cancels; one pass of the thread.

        Before `start` the calls are made here, one after the other; afterwards by the pool.
        """
        with self._lock:
            due = sorted((held for held in self._held.values() if not held.queued), key=lambda held: held.ends)
            for held in due:
                held.queued = True
        for held in due:
            if self._pool is not None:
                self._pool.submit(self._look, held)
            else:
                self._look(held)

    def _look(self, held: Held) -> None:
        beats = self._clock.steady() >= held.next_beat
        try:
            with held.turn:
                if held.let_go:
                    return
                if beats:
                    self._prolong(held)
                else:
                    self._check(held)
        except RecordNewer:  # whoever wrote that takes the job over; nothing that we write would be accepted
            held.killed = held.killed or Verdict.LEASE_LOST
        except Exception as error:  # noqa: BLE001 - tried again until the lease ends; no other lease may suffer
            held.missed = held.missed or beats
            self._log.warning("beat_failed", job_id=held.job.job_id, error=f"{type(error).__name__}: {error}")
        finally:
            held.queued = False

    def _check(self, held: Held) -> None:
        job = self._table.get(held.job.job_id)
        if job is None or not _mine(job, held):
            held.killed = held.killed or Verdict.LEASE_LOST
        elif job.cancel_requested_at is not None:
            held.killed = held.killed or Verdict.CANCELLED

    def _prolong(self, held: Held) -> None:
        now, steady = self._clock.now(), self._clock.steady()

        def change(job: Job) -> Job | None:
            if not _mine(job, held):
                return None
            summary = job.summary | ({"progress": held.progress} if held.progress else {})
            return replace(beat(job, now=now, lease_seconds=self._lease), summary=summary)

        # Nobody else writes the row of a running job, but for a cancel.
        job = mutate(self._table, held.job.job_id, change, known=held.job)
        if job is None or job.lease is None:
            held.killed = held.killed or Verdict.LEASE_LOST
            return
        held.job, held.ends, held.next_beat = job, self._end(steady, self._lease), steady + self._beat
        held.missed = False
        if job.cancel_requested_at is not None:
            held.killed = held.killed or Verdict.CANCELLED
        if not held.let_go:
            self._queue.hide(held.receipt, self.visibility)

    def _end(self, steady: float, left: float) -> float:
        return steady + left - self._lease * _KILL_SHARE

    def _started(self) -> threading.Thread:
        thread = threading.Thread(target=self._loop, name="beats", daemon=True)
        thread.start()
        return thread

    def _loop(self) -> None:
        while True:
            self._some.wait()
            if self._stopped:
                return
            try:
                self._wait(min(self._beat / 2, 1.0))
                self.round()
            except Exception as error:  # noqa: BLE001 - whatever it is, the leases are still held
                self._log.error("beats_failed", error=f"{type(error).__name__}: {error}")
            # The table's bell rings for every job; looking at ours a few times a second is enough.
            self._pause.wait(min(self._beat / 4, _CANCEL_LATENCY_SECONDS))


def _mine(job: Job, held: Held) -> bool:
    return job.state is State.RUNNING and job.fence == held.fence


def fenced(fence: int, change: Callable[[Job], Job | None]) -> Callable[[Job], Job | None]:
    """A change that is made only while the job still runs under this fence."""

    def guarded(job: Job) -> Job | None:
        return change(job) if job.state is State.RUNNING and job.fence == fence else None

    return guarded
