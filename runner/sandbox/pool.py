"""The zygotes of a runner: one per tenant, recycled, and ended when nobody has needed them for a while."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from runner.sandbox.zygotes import ZygoteProcess

IDLE_SECONDS = 300.0
MOST_IDLE = 8


@dataclass(slots=True)
class _Place:
    """Where one tenant's zygote stands; the lock is held while it is being started."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    zygote: ZygoteProcess | None = None
    made_of: object = None


class Pool:
    """One zygote per tenant, made when first needed, replaced after many jobs or when the code has changed."""

    def __init__(
        self, make: Callable[[bool], ZygoteProcess], *, recycle_after: int, version: Callable[[], object]
    ) -> None:
        self._make = make
        self._recycle_after = recycle_after
        self._version = version
        self._places: dict[tuple[str, bool], _Place] = {}
        self._lock = threading.Lock()
        self._retired: list[ZygoteProcess] = []

    @contextmanager
    def zygote(self, tenant: str, *, network: bool) -> Iterator[ZygoteProcess]:
        """A zygote of this tenant's, for as long as one of its boxes runs."""
        with self._lock:
            place = self._places.setdefault((tenant, network), _Place())
        with place.lock:
            zygote = self._current(place, network=network)
            zygote.busy += 1
            zygote.jobs += 1
        try:
            yield zygote
        finally:
            with place.lock:
                zygote.busy -= 1
                zygote.used_at = time.monotonic()
            self._tidy()

    def discard(self, tenant: str, *, network: bool) -> None:
        """Do not use this tenant's zygote again."""
        with self._lock:
            place = self._places.get((tenant, network))
        if place is not None:
            with place.lock:
                self._retire(place)
        self._tidy()

    def close(self) -> None:
        with self._lock:
            places, self._places = list(self._places.values()), {}
        for place in places:
            with place.lock:
                if place.zygote is not None:
                    place.zygote.close()
                    place.zygote = None
        for zygote in self._retired:
            zygote.close()
        self._retired = []

    def _current(self, place: _Place, *, network: bool) -> ZygoteProcess:
        version = self._version()
        worn = place.zygote is not None and (
            place.zygote.jobs >= self._recycle_after or place.made_of != version or not place.zygote.alive
        )
        if worn:
            self._retire(place)
        if place.zygote is None:
            place.zygote = self._make(network)
            place.made_of = version
        return place.zygote

    def _retire(self, place: _Place) -> None:
        if place.zygote is not None:
            with self._lock:
                self._retired.append(place.zygote)
            place.zygote = None

    def _tidy(self) -> None:
        """End retired zygotes that have no box left, and idle ones that are old or too many."""
        now = time.monotonic()
        with self._lock:
            done = [zygote for zygote in self._retired if zygote.busy == 0]
            self._retired = [zygote for zygote in self._retired if zygote.busy]
            idle = sorted(
                (place.zygote.used_at, key)
                for key, place in self._places.items()
                if place.zygote is not None and place.zygote.busy == 0
            )
            surplus = len(idle) - MOST_IDLE
            for index, (used_at, key) in enumerate(idle):
                place = self._places[key]
                if (index < surplus or now - used_at > IDLE_SECONDS) and place.lock.acquire(blocking=False):
                    try:
                        if place.zygote is not None and place.zygote.busy == 0:
                            done.append(place.zygote)
                            place.zygote = None
                    finally:
                        place.lock.release()
        for zygote in done:
            zygote.close()
