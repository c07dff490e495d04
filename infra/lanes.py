"""Runs independent calls in parallel, where most of the time is spent waiting for a network."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Lanes:
    """Up to `most` at a time. A single lane works in the caller's own thread, one after the other."""

    def __init__(self, most: int) -> None:
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="lane") if most > 1 else None

    def each(self, act: Callable[[T], R], things: Sequence[T]) -> list[R]:
        """What `act` returns for each; if any raises, the first error, once all have ended."""
        if self._pool is None or len(things) < 2:
            return [act(thing) for thing in things]
        under_way = [self._pool.submit(act, thing) for thing in things]
        wait(under_way)
        return [one.result() for one in under_way]
