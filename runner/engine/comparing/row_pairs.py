"""Pairs the rows of two results by an id, in one reading of each and in bounded memory.

Two results mostly have their rows in the same order, so rows wait for their partner in memory, a few at a time. If too
many wait, all that is left goes to a spool file in buckets by a hash of the id, and each bucket is paired by itself.
"""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Final, NamedTuple
from zlib import crc32

from runner.engine.comparing.result_sides import SideRow

_WAITING_CELLS: Final = 500_000  # of a side that wait in memory, some fifty megabytes
_LEAST_ROWS: Final = 100
_BUCKETS: Final = 1024  # a million rows of three hundred columns have as many cells in each bucket as may wait
_BUFFER_CHARACTERS: Final = 8 * 1024  # characters of a bucket that are gathered before they are written

LEFT, RIGHT = 0, 1
RowId = Callable[[SideRow], str]
Queue = deque[SideRow]


class RowPair(NamedTuple):
    """A row and its partner; None: the other result has no such row."""

    left: SideRow | None
    right: SideRow | None


def rows_in_memory(columns: int) -> int:
    """Return how many rows of so many columns may wait in memory."""
    return max(_LEAST_ROWS, _WAITING_CELLS // max(1, columns))


class RowPairs:
    """Pairs rows of two results that have the same id, in their order."""

    def __init__(self, ids: tuple[RowId, RowId], spool: IO[bytes] | None, *, most_waiting: int) -> None:
        """Prepare to pair rows; `ids`: what tells the id of a row, for each side.

        `most_waiting`: how many rows of a side may wait in memory; the others go to `spool`; without one all wait.
        """
        self._ids = ids
        self._spool = spool
        self._most_waiting = most_waiting

    def pairs(self, left: Iterable[SideRow], right: Iterable[SideRow]) -> Iterator[RowPair]:
        """Yield every row of both sides once: with its partner, or alone. Pairs come in no particular order; of rows
        with one id the first ones are partners."""
        sides = (iter(left), iter(right))
        most_waiting: tuple[dict[str, Queue], dict[str, Queue]] = ({}, {})
        counts = [0, 0]
        open_sides = [LEFT, RIGHT]
        while open_sides:
            for side in list(open_sides):
                row = next(sides[side], None)
                if row is None:
                    open_sides.remove(side)
                    continue
                other = _pop_waiting(most_waiting[1 - side], name := self._ids[side](row))
                if other is not None:
                    counts[1 - side] -= 1
                    yield RowPair(row, other) if side == LEFT else RowPair(other, row)
                else:
                    most_waiting[side].setdefault(name, deque()).append(row)
                    counts[side] += 1
            if max(counts) > self._most_waiting and self._spool is not None:
                yield from self._pair_by_buckets(self._spool, most_waiting, sides)
                return
        yield from _pair_singles(most_waiting)

    def _pair_by_buckets(
        self,
        spool: IO[bytes],
        most_waiting: tuple[dict[str, Queue], dict[str, Queue]],
        sides: tuple[Iterator[SideRow], Iterator[SideRow]],
    ) -> Iterator[RowPair]:
        """Spool the rows that wait and all that have not come yet, in buckets by their ids, and pair each bucket."""
        buckets = ([_Bucket(spool) for _ in range(_BUCKETS)], [_Bucket(spool) for _ in range(_BUCKETS)])
        for side in (LEFT, RIGHT):
            for rows in (*most_waiting[side].values(), sides[side]):
                for row in rows:
                    name = self._ids[side](row)
                    buckets[side][crc32(name.encode(errors="replace")) % _BUCKETS].add(row)
            most_waiting[side].clear()
        for left_bucket, right_bucket in zip(*buckets, strict=True):
            queues: tuple[dict[str, Queue], dict[str, Queue]] = ({}, {})
            for row in left_bucket.rows():
                queues[LEFT].setdefault(self._ids[LEFT](row), deque()).append(row)
            for row in right_bucket.rows():
                name = self._ids[RIGHT](row)
                other = _pop_waiting(queues[LEFT], name)
                if other is not None:
                    yield RowPair(other, row)
                else:
                    queues[RIGHT].setdefault(name, deque()).append(row)
            yield from _pair_singles(queues)


class _Bucket:
    """Rows in a file that other buckets are in too: written in pieces, read back in order."""

    def __init__(self, spool: IO[bytes]) -> None:
        """Begin without rows; they are written to the end of `spool`."""
        self._spool = spool
        self._lines: list[str] = []  # not written yet
        self._size = 0  # characters of these
        self._pieces: list[tuple[int, int]] = []  # of the file: start, bytes

    def add(self, row: SideRow) -> None:
        """Add a row; rows are written once there are enough of them."""
        line = json.dumps(row)
        self._lines.append(line)
        self._size += len(line)
        if self._size >= _BUFFER_CHARACTERS:
            self._write()

    def _write(self) -> None:
        """Append the rows in memory to the file as one piece."""
        body = "\n".join(self._lines).encode()
        at = self._spool.seek(0, 2)
        self._spool.write(body)
        self._pieces.append((at, len(body)))
        self._lines, self._size = [], 0

    def rows(self) -> Iterator[SideRow]:
        """Read back all rows that were added, in their order."""
        if self._lines:
            self._write()
        for at, size in self._pieces:
            self._spool.seek(at)
            for line in self._spool.read(size).split(b"\n"):
                yield SideRow(*json.loads(line))


def _pop_waiting(most_waiting: dict[str, Queue], name: str) -> SideRow | None:
    """Remove the first row that waits under this id, and return it; None if none waits."""
    rows = most_waiting.get(name)
    if rows is None:
        return None
    row = rows.popleft()
    if not rows:
        del most_waiting[name]
    return row


def _pair_singles(most_waiting: tuple[dict[str, Queue], dict[str, Queue]]) -> Iterator[RowPair]:
    """Yield the rows that still wait, each without a partner: those of the left, then those of the right."""
    for rows in most_waiting[LEFT].values():
        yield from (RowPair(row, None) for row in rows)
    for rows in most_waiting[RIGHT].values():
        yield from (RowPair(None, row) for row in rows)
