"""The fleet of one process: slots that lease messages and run jobs, woken by the queue, drained on request.

During an outage (runner/surroundings.py) the fleet receives no messages; running jobs go on. A probe may hang like the
call that failed, so it runs in its own thread, and a stop does not wait for it.

No tenant keeps every slot from the others, if the queue can choose between tenants. While one tenant holds all of at
least two slots, the fleet only receives messages of other tenants. Such a job is started beyond the slots but waits for
a box: if no slot comes free in a moment, the tenant's youngest job is given back to the queue, no attempt lost. Its
oldest job is never given back, so the tenant makes progress, and the job given back is its next to start. Until the
other tenants have been quiet for a while, the tenant gets all slots but one, so that jobs are not started only to be
given back.
"""

import random
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Protocol

from core.errors import StoreUnavailable
from core.ports import Clock, Delivery, WorkQueue
from core.verdicts import Verdict
from infra.clocks import SystemClock
from infra.logs import Log
from runner.boxes import Killed
from runner.leases import Beats
from runner.worker import REFUSED_SECONDS, Worker

_RECEIVE_SECONDS = 20.0
_ERROR_PAUSE_SECONDS = 1.0
_REST_SECONDS = 0.5
_POLL_SECONDS = 0.05
_PATIENCE_SECONDS = 1.0  # how long a job waits for a slot before it takes one; short jobs end by then
_QUIET_SECONDS = 10.0  # without another tenant's job, after which one tenant may have every slot again


class Shield(Protocol):
    """Asks the platform not to stop this process while jobs run (infra/aws/ecs.py). No method raises."""

    def start(self) -> None: ...

    def stop(self) -> None:
        """Call after the last job; waits until the platform is informed."""
        ...

    def busy(self, jobs: int) -> None:
        """The number of running jobs changed."""
        ...

    def ready(self) -> bool:
        """Whether new jobs may be taken now."""
        ...


class Unshielded:
    """No protection needed: on your own machine, and where the platform waits for a drain by itself."""

    def start(self) -> None:
        pass

    stop = start

    def busy(self, jobs: int) -> None:
        pass

    def ready(self) -> bool:
        return True


class Fleet:
    def __init__(
        self,
        worker: Worker,
        queue: WorkQueue,
        beats: Beats,
        log: Log,
        *,
        slots: int,
        shield: Shield | None = None,
        clock: Clock | None = None,
        draw: Callable[[], float] = random.random,
        pulse: Callable[[], None] = lambda: None,
        patience: float = _PATIENCE_SECONDS,
    ) -> None:
        self._worker = worker
        self._queue = queue
        self._beats = beats
        self._log = log
        self._slots = slots
        self._shield: Shield = shield or Unshielded()
        self._surroundings = worker.surroundings
        self._clock: Clock = clock or SystemClock()
        self._draw = draw
        self._probing: threading.Thread | None = None
        self._pulse = pulse
        self._stopping = threading.Event()
        self._free = threading.Semaphore(slots)
        self._busy: dict[Future[None], Delivery] = {}
        self._lock = threading.Lock()
        self._ended = threading.Condition(self._lock)
        self._avoid: dict[str, float] = {}
        self._sharing: dict[str, float] = {}  # tenants that had every slot, and until when they get all but one
        self._patience = patience
        self._owed = 0  # jobs running beyond the slots: the next slots to come free are not handed out
        self._choosy = False  # whether the end of a job may change which messages to receive
        self._draining = False

    def stop(self) -> None:
        """Receive no more messages; running jobs go on. Safe to call from a signal handler."""
        self._stopping.set()
        self._queue.wake()

    def run(self, *, drain: Callable[[], bool] | None = None, grace_seconds: float = 30.0) -> None:
        """Run jobs until `stop`. With `drain`, also end when no job is running and `drain` returns True.

        During an outage a drain waits for its end.

        After `stop`, running jobs get `grace_seconds` to end; then their boxes are killed and the jobs given back
        to the queue, with no attempt lost.
        """
        self._draining = drain is not None
        self._beats.start()
        self._shield.start()
        pool = ThreadPoolExecutor(self._slots + 1, thread_name_prefix="slot")  # one may wait for a slot
        try:
            while not self._stopping.is_set():
                self._pulse()
                if self._surroundings.failed is not None:
                    self._wait_for_surroundings()
                    continue
                if drain is not None and not self._busy_count() and self._drained(drain):
                    break
                self._settle()
                self._take(pool, seconds=1.0 if drain else _RECEIVE_SECONDS)
            self._let_finish(grace_seconds)
        finally:
            pool.shutdown(wait=True)
            if self._surroundings.failed is None:
                self._settle()
            self._beats.stop()
            self._shield.stop()

    def _drained(self, drain: Callable[[], bool]) -> bool:
        try:
            return drain()
        except (StoreUnavailable, OSError, sqlite3.Error) as error:  # cannot tell, so not drained
            self._failed("drain_failed", error)
            return False

    def _settle(self) -> None:
        try:
            self._worker.settle()
        except Exception as error:  # noqa: BLE001 - the results are kept and tried again
            self._failed("settle_failed", error)

    def _failed(self, event: str, error: Exception) -> None:
        """An error outside any job: an outage, or something to try again in a moment."""
        self._log.error(event, error=f"{type(error).__name__}: {error}")
        if not self._stopping.is_set() and not self._surroundings.to_blame():
            self._stopping.wait(_ERROR_PAUSE_SECONDS * (0.5 + self._draw()))

    def _wait_for_surroundings(self) -> None:
        """One step of an outage: wait until a probe is due, then start it."""
        if self._probing is None:
            if (rest := self._surroundings.rest()) > 0:
                self._stopping.wait(min(rest, _REST_SECONDS))
                return
            self._probing = threading.Thread(target=self._surroundings.probe, name="probe", daemon=True)
            self._probing.start()
        while self._probing.is_alive() and not self._stopping.is_set():
            self._probing.join(_POLL_SECONDS)
        if not self._probing.is_alive():
            self._probing = None

    def _take(self, pool: ThreadPoolExecutor, *, seconds: float) -> None:
        """Wait for a free slot, then for messages, and hand them to slots."""
        self._beats.revive()
        if not self._shield.ready():
            self._stopping.wait(_REST_SECONDS)
            return
        if (crowd := self._crowd()) is not None:
            for delivery in self._receive(1, seconds, frozenset({crowd})):
                self._submit(pool, delivery, beyond=crowd)
            return
        if not self._free.acquire(timeout=0.5):
            return
        taken = 1
        while not self._sharing and self._free.acquire(blocking=False):
            taken += 1
        deliveries = self._receive(taken, seconds)
        for delivery in deliveries:
            if not self._submit(pool, delivery):
                self._free.release()
        for _ in range(taken - len(deliveries)):
            self._free.release()

    def _submit(self, pool: ThreadPoolExecutor, delivery: Delivery, *, beyond: str | None = None) -> bool:
        """Hand a message to a slot. `beyond`: the tenant that holds every slot, so that this job starts beyond them."""
        if self._stopping.is_set() or self._surroundings.failed is not None:
            self._release(delivery)
            return False
        with self._lock:
            if beyond is not None and self._free.acquire(blocking=False):
                beyond = None  # a job has ended in the meantime
            self._owed += beyond is not None
            for tenant in self._sharing.keys() - {delivery.message.tenant}:
                self._sharing[tenant] = self._clock.steady() + _QUIET_SECONDS
        future = pool.submit(self._slot, delivery, beyond)
        with self._lock:
            self._busy[future] = delivery
            self._shield.busy(len(self._busy))  # under the lock, so that changes are reported in order
        future.add_done_callback(self._done)
        return True

    def _crowd(self) -> str | None:
        """The tenant that holds every slot, if another tenant may get one of them."""
        with self._lock:
            tenants = {delivery.message.tenant for delivery in self._busy.values()}
            full = self._slots >= 2 and len(self._busy) == self._slots and not self._owed
            if not (full and len(tenants) == 1 and self._queue.chooses_tenants):
                return None
            self._choosy = True
            return tenants.pop()

    def _receive(self, most: int, seconds: float, besides: frozenset[str] = frozenset()) -> tuple[Delivery, ...]:
        now = self._clock.steady()
        with self._lock:
            for left in (self._avoid, self._sharing):
                for tenant in [t for t, until in left.items() if until <= now]:
                    del left[tenant]
            held = Counter(delivery.message.tenant for delivery in self._busy.values())
            sharing = {tenant for tenant in self._sharing if held[tenant] >= self._slots - 1}
            avoid = besides | sharing | self._avoid.keys()
            self._choosy = bool(besides or sharing)
        if avoid or most < self._slots:
            # A slot that comes free, or a tenant that may run again, should not wait for a full round.
            seconds = min(seconds, REFUSED_SECONDS)
        try:
            got = self._queue.receive(most=most, wait=seconds, visibility=self._beats.visibility, avoid=avoid)
        except Exception as error:  # noqa: BLE001 - try the queue again
            self._failed("receive_failed", error)
            return ()
        for delivery in got:
            if delivery.message.tenant in avoid:  # from a queue that cannot choose
                self._release(delivery, None)
        return tuple(delivery for delivery in got if delivery.message.tenant not in avoid)

    def _slot(self, delivery: Delivery, beyond: str | None = None) -> None:
        refused = self._worker.serve(delivery, lambda killed: self._wait_for_slot(delivery, beyond, killed))
        if refused is not None and refused.scope != "workflow":
            with self._lock:
                self._avoid[delivery.message.tenant] = self._clock.steady() + REFUSED_SECONDS

    def _wait_for_slot(self, delivery: Delivery, beyond: str | None, killed: Killed) -> None:
        """For a job started beyond the slots: wait until a slot is free or the job is killed."""
        if beyond is None:
            return
        with self._ended:
            free = self._ended.wait_for(lambda: not self._owed, timeout=self._patience)
        given_back = False
        while not free and killed() is None:
            if self._stopping.is_set():
                self._beats.kill(delivery.message.job_id, Verdict.RELEASED)
            elif not given_back:
                given_back = self._give_back(beyond, delivery.message.tenant)
            with self._ended:
                free = self._ended.wait_for(lambda: not self._owed, timeout=_POLL_SECONDS)

    def _give_back(self, tenant: str, other: str) -> bool:
        """Give the tenant's youngest job back to the queue; never its oldest."""
        with self._lock:
            theirs = [d.message.job_id for d in self._busy.values() if d.message.tenant == tenant]
            self._sharing[tenant] = self._clock.steady() + _QUIET_SECONDS
        for job_id in reversed(theirs[1:]):
            if self._beats.kill(job_id, Verdict.RELEASED):
                self._log.info("job_given_back", job_id=job_id, tenant=tenant, waiting=other)
                return True
        return False

    def _done(self, future: Future[None]) -> None:
        with self._ended:
            delivery = self._busy.pop(future, None)
            self._shield.busy(len(self._busy))
            if self._owed:
                self._owed -= 1
            else:
                self._free.release()
            choosy = self._choosy
            self._ended.notify_all()
        if self._draining or choosy:
            self._queue.wake()  # a drain waits for a job's end, and it may let other tenants run
        error = future.exception()
        if error is not None:
            job_id = delivery.message.job_id if delivery else None
            self._log.error("slot_failed", job_id=job_id, error=f"{type(error).__name__}: {error}")

    def _release(self, delivery: Delivery, seconds: float | None = 0.0) -> None:
        """Give back a message that this fleet cannot take, at once or after a moment."""
        try:
            self._worker.put_back(delivery, seconds)
        except Exception as error:  # noqa: BLE001 - it is redelivered when its visibility ends
            self._log.warning("release_failed", job_id=delivery.message.job_id, error=type(error).__name__)

    def _let_finish(self, grace_seconds: float) -> None:
        with self._lock:
            busy = list(self._busy)
        if wait(busy, timeout=grace_seconds).not_done:
            self._beats.kill_all(Verdict.RELEASED)

    def _busy_count(self) -> int:
        with self._lock:
            return len(self._busy)
