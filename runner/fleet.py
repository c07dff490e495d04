"""The fleet of one process: slots that lease messages and work on them, woken by the queue, drained on request."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Protocol

from core.errors import AdeError, StoreUnavailable
from core.ports import Delivery, WorkQueue
from core.verdicts import Verdict
from infra.logs import Log
from runner.leases import Beats
from runner.worker import REFUSED_SECONDS, Worker

_RECEIVE_SECONDS = 20.0
_ERROR_PAUSE_SECONDS = 1.0
_REST_SECONDS = 0.5
_POISON_RECEIVES = 20  # a message that breaks its handler so often goes to people instead


class Shield(Protocol):
    """Asks whoever runs this process to let it live while jobs run (infra/ecs.py). No method raises."""

    def start(self) -> None: ...

    def stop(self) -> None:
        """After the last job; waits for a last word to the platform."""
        ...

    def busy(self, jobs: int) -> None:
        """So many jobs run from now on."""
        ...

    def ready(self) -> bool:
        """Whether new jobs may be taken now."""
        ...


class Unshielded:
    """Nobody to ask: on a machine of one's own, and where the platform waits for a drain by itself."""

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
        pulse: Callable[[], None] = lambda: None,
    ) -> None:
        self._worker = worker
        self._queue = queue
        self._beats = beats
        self._log = log
        self._slots = slots
        self._shield: Shield = shield or Unshielded()
        self._pulse = pulse
        self._stopping = threading.Event()
        self._free = threading.Semaphore(slots)
        self._busy: dict[Future[None], Delivery] = {}
        self._lock = threading.Lock()
        self._avoid: dict[str, float] = {}
        self._draining = False

    def stop(self) -> None:
        """Receive nothing more; what runs goes on. Safe from a signal handler."""
        self._stopping.set()
        self._queue.wake()

    def run(self, *, drain: Callable[[], bool] | None = None, grace_seconds: float = 30.0) -> None:
        """Work until `stop`. With `drain`, also end when nothing runs and it says that nothing is left.

        After `stop`, jobs that run get `grace_seconds` to end; then their boxes are killed and the jobs given back
        to the queue, with no attempt lost.
        """
        self._draining = drain is not None
        self._beats.start()
        self._shield.start()
        pool = ThreadPoolExecutor(self._slots, thread_name_prefix="slot")
        try:
            while not self._stopping.is_set():
                self._pulse()
                if drain is not None and not self._busy_count() and drain():
                    break
                self._take(pool, seconds=1.0 if drain else _RECEIVE_SECONDS)
            self._let_finish(grace_seconds)
        finally:
            pool.shutdown(wait=True)
            self._beats.stop()
            self._shield.stop()

    def _take(self, pool: ThreadPoolExecutor, *, seconds: float) -> None:
        """Wait for a free slot, then for messages, and hand them out."""
        if not self._shield.ready():
            self._stopping.wait(_REST_SECONDS)
            return
        if not self._free.acquire(timeout=0.5):
            return
        taken = 1
        while self._free.acquire(blocking=False):
            taken += 1
        deliveries = self._receive(taken, seconds)
        for delivery in deliveries:
            if self._stopping.is_set():
                self._release(delivery)
                self._free.release()
                continue
            future = pool.submit(self._slot, delivery)
            with self._lock:
                self._busy[future] = delivery
                self._shield.busy(len(self._busy))  # under the lock: two changes are told in their order
            future.add_done_callback(self._done)
        for _ in range(taken - len(deliveries)):
            self._free.release()

    def _receive(self, most: int, seconds: float) -> tuple[Delivery, ...]:
        now = time.monotonic()
        self._avoid = {t: until for t, until in self._avoid.items() if until > now}
        if self._avoid or most < self._slots:
            # A slot that frees meanwhile, or a tenant that may run again, should not wait for a full round.
            seconds = min(seconds, REFUSED_SECONDS)
        avoid = frozenset(self._avoid)
        try:
            got = self._queue.receive(most=most, wait=seconds, visibility=self._beats.visibility, avoid=avoid)
            for delivery in got:
                if delivery.message.tenant in avoid:  # from a queue that cannot choose
                    self._worker.put_back(delivery)
            return tuple(delivery for delivery in got if delivery.message.tenant not in avoid)
        except (StoreUnavailable, OSError) as error:
            self._log.error("receive_failed", error=f"{type(error).__name__}: {error}")
            self._stopping.wait(_ERROR_PAUSE_SECONDS)
            return ()

    def _slot(self, delivery: Delivery) -> None:
        try:
            refused = self._worker.handle(delivery)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            self._log.error("job_not_handled", job_id=delivery.message.job_id, error=said)
            if delivery.receives >= _POISON_RECEIVES:
                self._queue.bury(delivery.message, f"could not be handled {delivery.receives} times; last: {said}")
                self._queue.ack(delivery.receipt)
            if not isinstance(error, AdeError | OSError):
                raise
            return
        if refused is not None and refused.scope != "workflow":
            self._avoid[delivery.message.tenant] = time.monotonic() + REFUSED_SECONDS

    def _done(self, future: Future[None]) -> None:
        with self._lock:
            delivery = self._busy.pop(future, None)
            self._shield.busy(len(self._busy))
        self._free.release()
        if self._draining:
            self._queue.wake()  # the last job's end is what a drain waits for
        error = future.exception()
        if error is not None:
            job_id = delivery.message.job_id if delivery else None
            self._log.error("slot_failed", job_id=job_id, error=f"{type(error).__name__}: {error}")

    def _release(self, delivery: Delivery) -> None:
        """A message that came in while we were stopping: show it to the others at once."""
        try:
            self._queue.hide(delivery.receipt, 0.0)
        except (StoreUnavailable, OSError) as error:
            self._log.warning("release_failed", job_id=delivery.message.job_id, error=type(error).__name__)

    def _let_finish(self, grace_seconds: float) -> None:
        with self._lock:
            busy = list(self._busy)
        if wait(busy, timeout=grace_seconds).not_done:
            self._beats.kill_all(Verdict.RELEASED)

    def _busy_count(self) -> int:
        with self._lock:
            return len(self._busy)
