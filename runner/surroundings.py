"""Decides whether a failure is the job's own or an outage of what every job needs: store, table, queue, disk, boxes.

Theory of operation. A call may fail because of the job (an object that the store always refuses) or because of an
outage (the store is down for everyone). A probe distinguishes the two: it does what every job needs, for no job at all.
If the probe fails too, it is an outage: no attempt is used up, and this runner takes no jobs until a probe succeeds (a
circuit breaker). Probes run at growing, jittered intervals, so that a fleet does not overload a service that has just
come back. If the probe succeeds, the failure is the job's own and counts. A tenant can make its own jobs fail but not a
probe, so it stops nobody else.

A disk that has a little room left fails only the jobs that need more. So the probe asks for as much room as the jobs of
late used, those that failed for lack of it included (`DiskRoom`). A store that is full or over its quota says so itself
(`lacks_room`): whatever a small probe may still write, the job waits.
"""

import errno
import os
import random
import threading
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

from core.errors import StoreFull, StoreUnavailable
from core.keys import staging_folder
from core.ports import Clock, JobTable, ObjectStore, WorkQueue
from infra.logs import Log

BOX = "boxes"  # checked only after a box failed: it costs as much as a small job
_FIRST_SECONDS = 1.0
_LONGEST_SECONDS = 30.0
_CALM_SECONDS = 60.0  # without an outage for so long, the intervals start short again
_SCRATCH_BYTES = 1024 * 1024
_LATE = 20  # jobs
_MOST_ROOM = 1024**3  # a probe asks for no more

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})

Check = Callable[[], object]


def lacks_room(error: BaseException) -> bool:
    """Whether the disk or the store refused a write for lack of room: no fault of the job's."""
    return isinstance(error, StoreFull) or (isinstance(error, OSError) and error.errno in _NO_ROOM)


class DiskRoom:
    """How much of the scratch disk the jobs of late used. Safe to share between threads."""

    def __init__(self) -> None:
        self._used: deque[int] = deque(maxlen=_LATE)

    def note(self, used: int) -> None:
        self._used.append(used)

    @property
    def needed(self) -> int:
        """As much, and somewhat more: whoever ran out of room needs more than it had."""
        return min(_MOST_ROOM, max(self._used, default=0) * 5 // 4 + _SCRATCH_BYTES)


class Surroundings:
    """The circuit breaker of one runner. Safe to share between threads."""

    def __init__(
        self,
        checks: Mapping[str, Check],
        clock: Clock,
        log: Log,
        *,
        on_change: Callable[[str], None] = lambda _: None,
        draw: Callable[[], float] = random.random,
        room: DiskRoom | None = None,
    ) -> None:
        """A check raises if its part fails. `on_change` gets the reason when jobs stop, and "" when they resume."""
        self.room = room or DiskRoom()
        self._checks = checks
        self._clock = clock
        self._log = log
        self._on_change = on_change
        self._draw = draw
        self._turn = threading.Lock()
        self._begun = 0  # probes so far; one that began after a failure decides about it
        self._failed: str | None = None
        self._boxed = False
        self._since = 0.0
        self._next = 0.0
        self._interval = _FIRST_SECONDS

    @property
    def failed(self) -> str | None:
        """The part that fails; None: jobs may be taken."""
        return self._failed

    def rest(self) -> float:
        """Seconds until the next probe is due; 0 if one is due or nothing fails."""
        return max(0.0, self._next - self._clock.steady()) if self._failed is not None else 0.0

    def to_blame(self, *, box: bool = False) -> bool:
        """Whether a failure that just happened is an outage. `box`: it happened in a box."""
        if self._failed is not None:
            return True
        begun = self._begun
        with self._turn:
            if self._begun == begun or (box and not self._boxed):
                self._probe(box=box)
            return self._failed is not None

    def probe(self) -> bool:
        """Check again; True if everything works."""
        with self._turn:
            self._probe(box=self._boxed)
            return self._failed is None

    def _probe(self, *, box: bool) -> None:
        self._begun += 1
        self._boxed = box
        failed, cause = self._first_failure(box=box)
        now, was = self._clock.steady(), self._failed
        if failed is None:
            if was is not None:
                self._since = now
                self._failed = None
                self._log.info("surroundings_recovered", part=was)
                self._on_change("")
            return
        if was is None:
            if now - self._since >= _CALM_SECONDS:
                self._interval = _FIRST_SECONDS
            self._since = now
        wait = self._interval * (0.5 + self._draw())
        self._interval = min(_LONGEST_SECONDS, self._interval * 2)
        self._next, self._failed = now + wait, failed
        self._log.error("surroundings_failed", part=failed, error=cause, probe_in_seconds=round(wait, 1))
        if was != failed:
            self._on_change(f"{failed}: {cause}")

    def _first_failure(self, *, box: bool) -> tuple[str | None, str]:
        for name, check in self._checks.items():
            if name == BOX and not box:
                continue
            try:
                check()
            except Exception as error:  # noqa: BLE001 - any error is a failure
                return name, f"{type(error).__name__}: {error}"
        return None, ""


def make_checks(
    store: ObjectStore, table: JobTable, queue: WorkQueue, *, scratch: Path, owner: str, box: Check, room: DiskRoom
) -> dict[str, Check]:
    """Checks of what every job needs. The janitor collects what a crash leaves behind, like any staged file."""
    name = f"probe-{owner}"

    def check_table() -> None:
        table.hold(name, owner, 60.0)
        table.let_go(name, owner)

    def check_queue() -> None:
        queue.stats()

    def check_store() -> None:
        key, body = staging_folder(name) + "probe", owner.encode()
        store.put(key, body)
        found = store.read(key, limit=len(body))
        store.delete(key)
        if found != body:
            raise StoreUnavailable(f"{key} was written and reads differently")

    def check_disk() -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        path = scratch / "probe"
        try:
            with path.open("wb") as probe:
                probe.write(bytes(_SCRATCH_BYTES))
                probe.flush()
                os.posix_fallocate(probe.fileno(), 0, room.needed)  # real blocks: quotas count them too
        finally:
            path.unlink(missing_ok=True)

    return {"table": check_table, "queue": check_queue, "disk": check_disk, "store": check_store, BOX: box}
