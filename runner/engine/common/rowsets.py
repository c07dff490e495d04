"""Sets of row numbers, stored as runs: a million consecutive rows cost as much as one."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

Run = tuple[int, int]  # first and last row, both included


class RowSet:
    """Row numbers in ascending order. `count` counts additions, so a row added twice shows up in the ledger."""

    __slots__ = ("_firsts", "_lasts", "count")

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        """Make the set of the rows of these runs, which ascend and do not overlap."""
        self._firsts = array("L")
        self._lasts = array("L")
        self.count = 0
        for first, last in runs:
            self._append(first, last)

    @classmethod
    def of(cls, numbers: Iterable[int]) -> "RowSet":
        """Make the set of these rows, which may be in any order."""
        rows = cls()
        rows.add(sorted(set(numbers)))
        return rows

    def add(self, numbers: Sequence[int]) -> None:
        """Add rows, in ascending order and below those added so far; consecutive rows cost next to nothing."""
        if not numbers:
            return
        first, last = numbers[0], numbers[-1]
        if last - first + 1 == len(numbers):
            self._append(first, last)
            return
        for above, below in pairwise(numbers):
            if below - above != 1:
                self._append(first, above)
                first = below
        self._append(first, last)

    def _append(self, first: int, last: int) -> None:
        """Add a run below the others; one that follows the last directly extends it."""
        self.count += last - first + 1
        if self._lasts and self._lasts[-1] + 1 == first:
            self._lasts[-1] = last
        else:
            self._firsts.append(first)
            self._lasts.append(last)

    def __iter__(self) -> Iterator[Run]:
        """Yield the runs, from top to bottom."""
        return zip(self._firsts, self._lasts, strict=True)

    def __len__(self) -> int:
        """Return how many runs there are."""
        return len(self._firsts)

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def __contains__(self, row: int) -> bool:
        run = bisect_right(self._firsts, row) - 1
        return run >= 0 and row <= self._lasts[run]

    def within(self, first: int, last: int) -> "RowSet":
        """Return the rows from `first` to `last`."""
        first_run, end_run = bisect_left(self._lasts, first), bisect_right(self._firsts, last)
        return RowSet((max(self._firsts[run], first), min(self._lasts[run], last)) for run in range(first_run, end_run))

    def meets(self, first: int, last: int) -> bool:
        """Whether any row from `first` to `last` is in the set; False if `last` is before `first`."""
        run = bisect_left(self._lasts, first)
        return first <= last and run < len(self._firsts) and self._firsts[run] <= last

    def __and__(self, other: "RowSet") -> "RowSet":
        return RowSet(run for first, last in self for run in other.within(first, last))

    def __or__(self, other: "RowSet") -> "RowSet":
        if not self or not other:
            return self or other
        return RowSet(_join_runs(sorted([*self, *other])))

    def __sub__(self, other: "RowSet") -> "RowSet":
        return RowSet(_runs_without(self, other))

    def numbers(self) -> Iterator[int]:
        """Yield the rows, one by one."""
        for first, last in self:
            yield from range(first, last + 1)


def _join_runs(runs: Sequence[Run]) -> Iterator[Run]:
    """Join sorted runs that touch or overlap."""
    first, last = runs[0]
    for start, end in runs[1:]:
        if start > last + 1:
            yield first, last
            first, last = start, end
        else:
            last = max(last, end)
    yield first, last


def _runs_without(rows: RowSet, others: RowSet) -> Iterator[Run]:
    """Yield the runs of `rows` without those of `others`, in ascending order."""
    for first, last in rows:
        next_row = first
        for start, end in others.within(first, last):
            if start > next_row:
                yield next_row, start - 1
            next_row = end + 1
        if next_row <= last:
            yield next_row, last
