"""Accounts for every cell of a sheet: which rows and cells no table covers.

While the rows stream by, only each block's first and last row and its columns that hold something are noted. Blocks
that lie inside a table, rows and columns, need no second look; the rows of all others are looked at again.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from runner.engine.reading import Block
from runner.engine.structure.tables import Box, Table

Run = tuple[int, int]  # first and last


class Seen(NamedTuple):
    """A block of rows, as it streamed by."""

    first: int
    last: int
    columns: int  # bit n is set where column n + 1 holds something


class Account:
    """Counts the rows of a sheet and finds what belongs to no table."""

    def __init__(self) -> None:
        self.rows = 0  # rows that hold something
        self._seen: list[Seen] = []

    def note(self, block: Block) -> None:
        """Remember where a block's rows and cells are; blocks come in order."""
        numbers, columns = block
        count = len(numbers)
        bits = 0
        for at, column in enumerate(columns):
            if column[0] is not None or column.count(None) != count:
                bits |= 1 << at
        self.rows += count
        self._seen.append(Seen(numbers[0], numbers[-1], bits))

    def uncovered(self, tables: Sequence[Table], blocks: Iterable[Block]) -> tuple[list[Run], list[Box]]:
        """Runs of rows that no table covers, and cells beside tables; `blocks` are those that were noted."""
        ask = [one.first for one in self._seen if not _covered(one, tables)]
        outside: list[list[int]] = []
        beside: list[list[int]] = []
        if ask:
            own = {n for table in tables for n in (*table.titles, *table.notes)}
            spans = [(_rows(table), (table.range.left, table.range.right)) for table in tables]
            for block in blocks:
                if (at := bisect_left(ask, block.numbers[0])) < len(ask) and ask[at] == block.numbers[0]:
                    _look(block, own, spans, outside, beside)
                if block.numbers[0] >= ask[-1]:
                    break
        return [(first, last) for first, last in outside], [Box(*one) for one in beside]


def _rows(table: Table) -> range:
    return range(table.range.top, table.range.bottom + 1)


def _covered(seen: Seen, tables: Sequence[Table]) -> bool:
    """Whether tables that span all rows of a block span all its cells too."""
    left = seen.columns
    for table in tables:
        if table.range.top <= seen.first and seen.last <= table.range.bottom:
            width = table.range.right - table.range.left + 1
            left &= ~(((1 << width) - 1) << (table.range.left - 1))
    return not left


def _look(
    block: Block,
    own: set[int],
    spans: Sequence[tuple[range, tuple[int, int]]],
    outside: list[list[int]],
    beside: list[list[int]],
) -> None:
    """Look at each row of a block; `outside` and `beside` grow by what no table covers."""
    for number, values in zip(block.numbers, zip(*block.columns, strict=True), strict=True):
        here = [span for rows, span in spans if number in rows]
        filled = [at for at, value in enumerate(values, 1) if value is not None]
        loose = [at for at in filled if not any(left <= at <= right for left, right in here)]
        if len(loose) == len(filled):
            if number not in own:
                if outside and outside[-1][1] == number - 1:
                    outside[-1][1] = number
                else:
                    outside.append([number, number])
        elif loose:
            _beside(number, loose, beside)


def _beside(number: int, columns: Sequence[int], beside: list[list[int]]) -> None:
    left = columns[0]
    for at, column in enumerate(columns):
        if at + 1 < len(columns) and columns[at + 1] == column + 1:
            continue
        above = next(
            (box for box in reversed(beside[-8:]) if box[2] == number - 1 and box[1::2] == [left, column]), None
        )
        if above is not None:
            above[2] = number
        else:
            beside.append([number, left, number, column])
        left = columns[at + 1] if at + 1 < len(columns) else column
