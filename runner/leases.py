"""Leases: taken in the table under a new fence, kept by heartbeats, and given up when a beat fails for too long.

Theory of operation. A runner may work on a job while its row says RUNNING with this runner as owner and the fence of
its start. Each beat is a conditional write that proves exactly this and extends the lease; the queue's visibility
follows and always ends later than the lease, so that a redelivery finds an expired lease. A beat that cannot be written
is tried again. If none gets through until shortly before the lease ends, by this process's own steady clock, or if the
row shows another fence or owner, the box is killed: its outputs can no longer be committed, because the commit is
conditional on both too. A cancel is a mark in the row; the beats see it and kill the box. One thread, woken by changes
of the table and asleep while nothing runs, hands out the beats that are due; a pool of threads makes the calls, so that
one that hangs delays no other. No call is made under the shared lock. The table and queue used here time out well
within a lease (infra/wiring.py).

A lease names a time of its runner's clock, and clocks differ. So a lease that seems to have expired is watched: a live
runner extends it every few seconds, and one that does not for longer than two beats is lost (`LeaseWatch`).
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from core.errors import RecordNewer
from core.jobs import Job, State, beat, lease_owner
from core.ports import Clock, JobTable, WorkQueue
from core.verdicts import Verdict
from infra.logs import Log
from infra.queueing import mutate
from infra.telemetry import Telemetry, job_fields

VISIBILITY_MARGIN_SECONDS = 5.0
_CANCEL_LATENCY_SECONDS = 0.25
_KILL_SHARE = 0.1  # of a lease: how long before its end a box without a beat is killed
_MOST_WATCHED = 10_000
_MOST_CALLS = 32  # most beats in progress at once


@dataclass
class Held:
    """A lease that this process holds, shared between its slot and the heartbeat threads."""

    job: Job  # the row as this process wrote it last
    fence: int
    receipt: str
    ends: float  # by the steady clock: without a beat until then the box is killed
    next_beat: float  # by the steady clock
    killed: Verdict | None = None
    missed: bool = False  # the last beat failed: if the lease is lost now, the job is not to blame
    late: bool = False  # no beat was made in time: the table was silent, or this host stood still (suspended, paused)
    progress: dict[str, object] = field(default_factory=dict)
    let_go: bool = False
    queued: bool = False  # a check of it is in progress
    turn: threading.Lock = field(default_factory=lambda: threading.Lock())  # noqa: PLW0108 - held during its calls

    def is_of(self, job: Job) -> bool:
        """Whether a row has this lease: its fence, and its owner too, for a restored table may give a fence again."""
        return job.fence == self.fence and lease_owner(job) == lease_owner(self.job)

    def lost(self, clock: Clock) -> Verdict | None:
        """Called by the sandbox while the box runs; a verdict kills it. A late beat counts as a lost lease."""
        if self.killed is None and clock.steady() >= self.ends:
            self.killed, self.late = Verdict.LEASE_LOST, True
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
        telemetry: Telemetry | None = None,
    ) -> None:
        """`wait` returns when a job may have changed; by default the table's own."""
        self._table = table
        self._queue = queue
        self._clock = clock
        self._log = log
        self._meters = (telemetry or Telemetry()).meters
        self._lease = lease_seconds
        self._beat = beat_seconds
        self._wait = wait or table.wait
        self._held: dict[str, Held] = {}
        self._lock = threading.Lock()
        self._some = threading.Event()
        self._stopped = False
        self._ending: Verdict | None = None  # what ends every job from now on
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
        """Restart the thread if it has died."""
        if self._thread is not None and not self._thread.is_alive() and not self._stopped:
            self._log.error("beats_revived")
            self._thread = self._started()

    def stop(self) -> None:
        """Call after the last slot has released its lease; a second call does nothing."""
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
            held.killed = self._ending
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
            pass  # the beat in progress has ended

    def holds(self, job: Job) -> bool:
        """Whether a slot of this process is running a job."""
        with self._lock:
            held = self._held.get(job.job_id)
            return held is not None and held.is_of(job)

    def kill(self, job_id: str, verdict: Verdict) -> bool:
        """Kill the box of a job that this process is running; False if it is not, or is about to end."""
        with self._lock:
            held = self._held.get(job_id)
            if held is None or held.killed is not None:
                return False
            held.killed = verdict
            return True

    def kill_all(self, verdict: Verdict) -> None:
        """Kill every box of this process, and those of jobs that a slot is just about to hold."""
        with self._lock:
            self._ending = verdict
            for held in self._held.values():
                held.killed = held.killed or verdict

    def round(self) -> None:
        """Beat for every lease that is due, and check for cancels; one pass of the thread.

        Before `start` the calls are made here, one after the other; afterwards by the pool.
        """
        with self._lock:
            due = sorted((held for held in self._held.values() if not held.queued), key=lambda held: held.ends)
            for held in due:
                held.queued = True
        for held in due:
            if self._pool is not None:
                self._pool.submit(self._tend, held)
            else:
                self._tend(held)

    def _tend(self, held: Held) -> None:
        beats = self._clock.steady() >= held.next_beat
        try:
            with held.turn:
                if held.let_go:
                    return
                if beats:
                    self._prolong(held)
                else:
                    self._check(held)
        except RecordNewer:  # a newer program has taken the job over; none of our writes would be accepted
            held.killed = held.killed or Verdict.LEASE_LOST
        except Exception as error:  # noqa: BLE001 - tried again until the lease ends; other leases must go on
            held.missed = held.missed or beats
            if beats:
                self._meters.add("ade.beats.missed")
            self._log.warning("beat_failed", **job_fields(held.job), error=f"{type(error).__name__}: {error}")
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

        # Only a cancel writes the row of a running job besides its runner.
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
            except Exception as error:  # noqa: BLE001 - the leases are still held
                self._log.error("beats_failed", error=f"{type(error).__name__}: {error}")
            # The table's bell rings for every job; a few checks a second are enough.
            self._pause.wait(min(self._beat / 4, _CANCEL_LATENCY_SECONDS))


def _mine(job: Job, held: Held) -> bool:
    return job.state is State.RUNNING and held.is_of(job)


def fenced(held: Held, change: Callable[[Job], Job | None]) -> Callable[[Job], Job | None]:
    """A change that only applies while the job still runs under this lease."""

    def guarded(job: Job) -> Job | None:
        return change(job) if _mine(job, held) else None

    return guarded


class LeaseWatch:
    """Finds runners that no longer extend their lease, by this process's own clock. Safe to share between threads."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._seen: dict[str, tuple[tuple[int, float], float]] = {}  # by job: fence and end of the lease, first seen at
        self._lock = threading.Lock()

    def silent(self, job: Job, now: float, steady: float) -> bool:
        """Whether a running job's lease has expired and was not extended since that was first seen.

        `steady` measures the time in between, so a wall clock that is set forward makes no runner silent.
        """
        if job.lease is None:
            return True
        if job.lease.expires > now:
            return False
        lease = job.fence, job.lease.expires
        with self._lock:
            known, since = self._seen.get(job.job_id, (None, steady))
            if known != lease:
                if len(self._seen) >= _MOST_WATCHED:
                    self._seen.clear()  # start over with those that are still expired
                self._seen[job.job_id], since = (lease, steady), steady
        return steady - since >= self._seconds
