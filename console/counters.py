"""Counters of what ended, read again only where they may still change.

Each end is counted in the stretch of time in which it happened: counters of stretches that are over stay as they are.
They are read once and kept in memory; a read of all of them now and then, and after a tenant is gone, finds changes
that nobody expects: an erasure, or a clock that was wrong.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from core.ends import EndCounts

_WHOLE_SECONDS = 600.0  # after which all of them are read again


@dataclass(frozen=True, slots=True)
class ReadCounters:
    """The counters of a window of time."""

    past: tuple[EndCounts, ...]  # of stretches that are over
    changing: tuple[EndCounts, ...]
    generation: int  # another one when `past` is not what it was before


class CounterWindow:
    """The counters of the last `seconds`; those that begin in the last stretches, `changing` seconds, are always read.

    Safe to share between threads.
    """

    def __init__(
        self, read: Callable[[float], tuple[EndCounts, ...]], *, seconds: float, stretch: float, changing: float
    ) -> None:
        self._read = read
        self._seconds = seconds
        self._stretch = stretch
        self._changing = changing
        self._lock = threading.Lock()
        self._past: tuple[EndCounts, ...] = ()
        self._tenants = frozenset[str]()  # of these, those that were among all tenants when they were read
        self._edge = float("-inf")  # where those that were read last stopped being past
        self._whole_at = float("-inf")
        self._generation = 0

    def get(self, now: float, steady: float, *, tenants: frozenset[str] | None = None) -> ReadCounters:
        """The counters at a time. `tenants`: all there are, if known; once one is gone, all counters are read again."""
        edge = now - now % self._stretch - self._changing
        with self._lock:
            is_gone = tenants is not None and not self._tenants <= tenants
            is_whole = is_gone or edge < self._edge or steady > self._whole_at + _WHOLE_SECONDS
            since = now - self._seconds
            found = self._read(since if is_whole else max(since, self._edge))
            if is_whole:
                self._whole_at, self._past = steady, ()
            if is_whole or edge != self._edge:
                over = (one for one in found if one.at < edge)
                self._past = tuple(one for one in (*self._past, *over) if one.at >= since)
                self._tenants = frozenset(one.tenant for one in self._past) & (tenants or frozenset())
                self._generation += 1
                self._edge = edge
            return ReadCounters(self._past, tuple(one for one in found if one.at >= edge), self._generation)
