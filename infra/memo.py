"""A bounded memory of facts that cost a request to learn."""

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

F = TypeVar("F")
V = TypeVar("V")


class Memo(Generic[F, V]):
    """The latest value by key, valid while the `fact` it was learnt under stays the same."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._held: OrderedDict[str, tuple[F, V]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str, fact: F) -> V | None:
        with self._lock:
            held = self._held.get(key)
            if held is None or held[0] != fact:
                return None
            self._held.move_to_end(key)
            return held[1]

    def put(self, key: str, fact: F, value: V) -> None:
        with self._lock:
            self._held[key] = (fact, value)
            self._held.move_to_end(key)
            while len(self._held) > self._size:
                self._held.popitem(last=False)
