"""The one cache of the product that has a limit: by count, or by the bytes of memory that its values take.

The engine imports nothing from here, as it runs in the box; functools.lru_cache is enough for its pure functions.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """The values that were used last, up to a total weight of `most`. Safe to share between threads.

    A value weighs 1 unless `put` says otherwise; then `most` is in the same unit, such as bytes.

    `newcomers`: for scans over more keys than fit, where plain LRU would evict every key before its turn comes again.
    When the cache is full, a new key is the next to be evicted and the old ones stay, except for one in so many:
    in time the cache holds the keys in use.
    """

    def __init__(self, most: int, *, newcomers: int = 1) -> None:
        self._most = most
        self._newcomers = newcomers
        self._lock = threading.Lock()
        self._values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()  # the next to evict first
        self._weight = 0
        self._evicting = 0  # how many new keys evicted others

    def __contains__(self, key: Key) -> bool:
        """Whether there is a value; asking is not using."""
        with self._lock:
            return key in self._values

    def get(self, key: Key) -> Value | None:
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: Key, value: Value, weight: int = 1) -> None:
        """Store a value in place of any other of this key. One that weighs more than a quarter of all is not stored."""
        if weight > max(1, self._most // 4):
            return
        with self._lock:
            self._put(key, value, weight)

    def get_or_make(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value of a key, made where there is none; `make` must be quick, since others wait for it."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                found = make(), 1
                self._put(key, *found)
            else:
                self._values.move_to_end(key)
            return found[0]

    def clear(self) -> None:
        with self._lock:
            self._values.clear()
            self._weight = 0

    def _put(self, key: Key, value: Value, weight: int) -> None:
        is_new = key not in self._values
        self._weight += weight - self._values.pop(key, (None, 0))[1]
        self._values[key] = (value, weight)
        is_full = self._weight > self._most
        while self._weight > self._most:
            self._weight -= self._values.popitem(last=False)[1][1]
        if is_new and is_full:
            self._evicting += 1
            if self._evicting % self._newcomers:
                self._values.move_to_end(key, last=False)
