"""A bounded cache of facts that cost a request."""

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

F = TypeVar("F")
V = TypeVar("V")

_ONE_IN = 16


class Memo(Generic[F, V]):
    """The latest value by key, valid while the `fact` it was stored with stays the same.

    Made for scans over more keys than it holds: with plain LRU every key would be evicted before its turn comes again.
    So when the cache is full, most new keys are the next to be evicted and the old ones stay; one in sixteen is kept,
    so that in time the cache holds the keys in use.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._held: OrderedDict[str, tuple[F, V]] = OrderedDict()  # the next to evict first
        self._lock = threading.Lock()
        self._pushed_out = 0

    def get(self, key: str, fact: F) -> V | None:
        with self._lock:
            held = self._held.get(key)
            if held is None or held[0] != fact:
                return None
            self._held.move_to_end(key)
            return held[1]

    def put(self, key: str, fact: F, value: V) -> None:
        with self._lock:
            stays = True
            if key not in self._held and len(self._held) >= self._size:
                self._held.popitem(last=False)
                self._pushed_out += 1
                stays = self._pushed_out % _ONE_IN == 0
            self._held[key] = (fact, value)
            self._held.move_to_end(key, last=stays)
