"""Work on independent things side by side, where waiting for a network is most of it."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Lanes:
    """Up to `most` at a time. One lane works in the caller's own thread, one thing after the other."""

    def __init__(self, most: int) -> None:
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="lane") if most > 1 else None

    def each(self, act: Callable[[T], R], things: Sequence[T]) -> list[R]:
        """What `act` returns for each; where it raises, the first error, once no other is still under way."""
        if self._pool is None or len(things) < 2:
            return [act(thing) for thing in things]
        under_way = [self._pool.submit(act, thing) for thing in things]
        wait(under_way)
        return [one.result() for one in under_way]
