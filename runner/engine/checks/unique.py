"""Remember which values were seen, in eight bytes each.

Values are known by a 64-bit hash that differs from run to run. Two different values of a million meet by chance
about once in thirty million runs.
"""

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, Final

LIVELY: Final = 1_100_000  # a set costs some 90 bytes an entry, a sorted array eight; most sheets end before that


def _key(value: Any) -> int:
    """A number has one key, whether its cell held it as 5, as 5.0 or as a text."""
    return hash(f"\0{int(value) if type(value) is float and value.is_integer() else value!r}")


class Seen:
    """The values a unique field has had so far."""

    def __init__(self, lively: int = LIVELY) -> None:
        self._lively = lively
        self._fresh: set[int] = set()
        self._runs: list[array[int]] = []

    def repeats(self, values: Sequence[Any]) -> list[int]:
        """The indexes of values that were seen before, here or in an earlier chunk; blanks never count."""
        keys = [v if v is None else hash(v) if type(v) is str else _key(v) for v in values]
        fresh = self._fresh
        if not self._runs:  # most chunks hold nothing but new values
            batch = {k for k in keys if k is not None}
            if len(batch) == len(keys) and fresh.isdisjoint(batch):
                fresh |= batch
                self._settle()
                return []
        found = []
        for i, key in enumerate(keys):
            if key is None:
                continue
            if key in fresh or (self._runs and self._in_runs(key)):
                found.append(i)
            else:
                fresh.add(key)
        self._settle()
        return found

    def _in_runs(self, key: int) -> bool:
        for run in self._runs:
            at = bisect_left(run, key)
            if at < len(run) and run[at] == key:
                return True
        return False

    def _settle(self) -> None:
        if len(self._fresh) < self._lively:
            return
        run = array("q", sorted(self._fresh))
        self._fresh = set()
        if self._runs and len(self._runs) >= 8:
            for old in self._runs:
                run.extend(old)
            run = array("q", sorted(run))
            self._runs = []
        self._runs.append(run)
