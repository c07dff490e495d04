"""The fleet of one process: slots that lease messages and run jobs, woken by the queue, drained on request.

During an outage (runner/surroundings.py) the fleet receives no messages; running jobs go on. A probe may hang like the
call that failed, so it runs in its own thread, and a stop does not wait for it.

No tenants keep every slot from the others: core/fairness.py decides whose messages are received and whose job makes
room. A job that another one has to make room for is started beyond the slots but waits for a box; the other is given
back to the queue, no attempt lost. A queue that cannot choose between tenants (SQS) brings whatever comes first, and
what may not start now is put back for a moment.
"""

import random
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Protocol

from core.errors import StoreUnavailable
from core.fairness import QUANTUM_SECONDS, Offer, SlotShares
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
_FULL_SECONDS = 0.5
_PATIENCE_SECONDS = 1.0  # how long a job waits for a slot before it takes one; short jobs end by then
_UNCHOSEN = 10  # messages among which to find one that may start, where the queue cannot choose


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
        self._shares = SlotShares(slots=slots)
        self._busy: dict[Future[None], Delivery] = {}
        self._lock = threading.Lock()
        self._ended = threading.Condition(self._lock)
        self._avoid: dict[str, float] = {}
        self._patience = patience
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
                self._write_results()
                self._fill_slots(pool, seconds=1.0 if drain else _RECEIVE_SECONDS)
            self._let_finish(grace_seconds)
        finally:
            pool.shutdown(wait=True)
            if self._surroundings.failed is None:
                self._write_results()
            self._beats.stop()
            self._shield.stop()

    def _drained(self, drain: Callable[[], bool]) -> bool:
        try:
            return drain()
        except (StoreUnavailable, OSError, sqlite3.Error) as error:  # cannot tell, so not drained
            self._failed("drain_failed", error)
            return False

    def _write_results(self) -> None:
        try:
            self._worker.write_results()
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

    def _fill_slots(self, pool: ThreadPoolExecutor, *, seconds: float) -> None:
        """Wait for a free slot, then for messages, and hand them to slots."""
        self._beats.revive()
        if not self._shield.ready():
            self._stopping.wait(_REST_SECONDS)
            return
        with self._ended:
            offer = self._shares.offer(self._clock.steady())
            if offer is None:
                self._ended.wait(_FULL_SECONDS)
                return
        for delivery in self._receive(offer, seconds):
            self._submit(pool, delivery, offer)

    def _submit(self, pool: ThreadPoolExecutor, delivery: Delivery, offer: Offer) -> None:
        """Hand a message to a slot, or start its job beyond the slots."""
        if self._stopping.is_set() or self._surroundings.failed is not None:
            self._release(delivery)
            return
        with self._lock:
            self._shares = self._shares.begin(delivery.receipt, delivery.message.tenant, self._clock.steady())
        future = pool.submit(self._slot, delivery, self._patience if offer.patient else 0.0)
        with self._lock:
            self._busy[future] = delivery
            self._shield.busy(len(self._busy))  # under the lock, so that changes are reported in order
        future.add_done_callback(self._done)

    def _receive(self, offer: Offer, seconds: float) -> tuple[Delivery, ...]:
        """Up to as many messages as may start now, of tenants that may."""
        now = self._clock.steady()
        with self._lock:
            for tenant in [t for t, until in self._avoid.items() if until <= now]:
                del self._avoid[tenant]
            avoid = offer.avoid | self._avoid.keys()
            self._choosy = bool(avoid or offer.beyond)
        if self._busy or avoid:
            # A slot that comes free, or a tenant that may run again, should not wait for a full round.
            seconds = min(seconds, REFUSED_SECONDS)
        try:
            if not self._queue.chooses_tenants:
                return self._chosen(offer, seconds, avoid)
            if offer.last and (got := self._ask(offer.most, 0.0, avoid | offer.last)):
                return got
            return () if self._stopping.is_set() else self._ask(offer.most, seconds, avoid)
        except Exception as error:  # noqa: BLE001 - try the queue again
            self._failed("receive_failed", error)
            return ()

    def _ask(self, most: int, seconds: float, avoid: frozenset[str]) -> tuple[Delivery, ...]:
        return self._queue.receive(most=most, wait=seconds, visibility=self._beats.visibility, avoid=avoid)

    def _chosen(self, offer: Offer, seconds: float, avoid: frozenset[str]) -> tuple[Delivery, ...]:
        """From a queue that cannot choose: what may start, of tenants that used little if there are several."""
        got = self._ask(_UNCHOSEN if offer.beyond else offer.most, seconds, avoid)
        able = sorted((d for d in got if d.message.tenant not in avoid), key=lambda d: d.message.tenant in offer.last)
        for delivery in able[offer.most :]:
            self._release(delivery)
        for delivery in got:
            if delivery.message.tenant in avoid:  # for longer where many of them may hide the one that may start
                self._release(delivery, QUANTUM_SECONDS * (0.5 + self._draw()) if offer.beyond else None)
        if got and not able and offer.beyond:
            with self._ended:
                self._ended.wait(REFUSED_SECONDS)
        return tuple(able[: offer.most])

    def _slot(self, delivery: Delivery, patience: float = 0.0) -> None:
        refused = self._worker.serve(delivery, lambda ran, killed: self._wait_for_slot(delivery, patience, ran, killed))
        if refused is not None and refused.scope != "workflow":
            with self._lock:
                self._avoid[delivery.message.tenant] = self._clock.steady() + REFUSED_SECONDS

    def _wait_for_slot(self, delivery: Delivery, patience: float, ran: float, killed: Killed) -> None:
        """For a job that has its lease: wait until it has a slot, too, or is killed. `ran`: its longest run so far."""
        with self._ended:
            free = self._ended.wait_for(lambda: not self._shares.crowded, timeout=patience)
            may_exceed = free or self._shares.may_exceed(ran)
            if not may_exceed:
                self._shares = self._shares.refuse(delivery.receipt, self._clock.steady())
        is_room_made = False
        while not free and killed() is None:
            if self._stopping.is_set() or not may_exceed:
                self._beats.kill(delivery.message.job_id, Verdict.RELEASED)
            elif not is_room_made:
                is_room_made = self._make_room(delivery.message.tenant)
            with self._ended:
                free = self._ended.wait_for(lambda: not self._shares.crowded, timeout=_POLL_SECONDS)
        with self._lock:
            self._shares = self._shares.place(delivery.receipt, ran, self._clock.steady())

    def _make_room(self, waiting: str) -> bool:
        """Have a job make room for one of another tenant."""
        now = self._clock.steady()
        with self._lock:
            running = {delivery.receipt: delivery.message for delivery in self._busy.values()}
            messages = [(key, running[key]) for key in self._shares.victims(waiting, now) if key in running]
        for key, message in messages:
            if self._beats.kill(message.job_id, Verdict.RELEASED):
                with self._lock:
                    self._shares = self._shares.stop(key, now)
                self._log.info("job_given_back", job_id=message.job_id, tenant=message.tenant, waiting=waiting)
                return True
        return False

    def _done(self, future: Future[None]) -> None:
        with self._ended:
            delivery = self._busy.pop(future, None)
            self._shield.busy(len(self._busy))
            if delivery is not None:
                self._shares = self._shares.end(delivery.receipt, self._clock.steady())
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
