"""Source tables: where each stands, and its rows as chunks of columns."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from runner.engine.findings import Place
from runner.engine.reading import Block, Sheet, blocks_of
from runner.engine.structure import Table

SAMPLED: Final = 200
LOOKED_THROUGH: Final = 10_000  # rows in which a sample is looked for


class Rows(NamedTuple):
    """Some rows of a table: their numbers, and one list of values per column."""

    numbers: list[int]
    columns: list[list[Any]]


class SourceTable:
    """A table that was found, with the sheet it streams from."""

    def __init__(
        self,
        place: Place,
        sheet: Sheet,
        table: Table,
        *,
        hidden_rows: frozenset[int] = frozenset(),
        hidden_columns: frozenset[int] = frozenset(),
        epoch_1904: bool = False,
    ) -> None:
        self.place = place
        self.epoch_1904 = epoch_1904  # what a bare day number of this book counts from
        self.sheet = sheet
        self.table = table
        self.columns = [c for c in table.columns if c.index not in hidden_columns]
        self.without = table.left_out | hidden_rows
        self.top = table.data_range.top if table.data_range else 0
        self.bottom = table.data_range.bottom if table.data_range else -1

    @property
    def id(self) -> str:
        return self.place.table

    @property
    def has_data(self) -> bool:
        return self.table.data_range is not None and bool(self.columns)

    def samples(self, count: int = SAMPLED) -> list[list[Any]]:
        """The first values of each column, blanks left out.

        A column that begins with blanks is looked through further down; one with no header to its end, because whether
        it holds anything decides if it is kept.
        """
        samples: list[list[Any]] = [[] for _ in self.columns]
        seen = 0
        for _, rows in chunks([self]):
            for sample, column in zip(samples, rows.columns, strict=True):
                if len(sample) < count:
                    sample.extend(islice((v for v in column if v is not None), count - len(sample)))
            seen += len(rows.numbers)
            full = all(len(sample) >= count for sample in samples)
            unknown = any(c.generated and not s for c, s in zip(self.columns, samples, strict=True))
            if full or (seen >= LOOKED_THROUGH and not unknown):
                break
        return samples

    def cut(self, block: Block) -> Rows | None:
        """This table's part of a block of the sheet's rows; None where it has none."""
        first, last = bisect_left(block.numbers, self.top), bisect_right(block.numbers, self.bottom)
        if first >= last:
            return None
        numbers = block.numbers[first:last]
        width = len(block.columns)
        columns = [
            block.columns[c.index - 1][first:last] if c.index <= width else [None] * len(numbers) for c in self.columns
        ]
        blank = [not any(v is not None for v in row) for row in zip(*columns, strict=True)] if all(
            None in column for column in columns
        ) else []  # fmt: skip
        if any(blank) or not self.without.isdisjoint(numbers):
            keep = [n for n, row in enumerate(numbers) if row not in self.without and not (blank and blank[n])]
            numbers = [numbers[n] for n in keep]
            columns = [[column[n] for n in keep] for column in columns]
        return Rows(numbers, columns) if numbers else None


def chunks(tables: Sequence[SourceTable]) -> Iterator[tuple[SourceTable, Rows]]:
    """Stream the data rows of tables of one sheet that stand below each other, in one reading of the sheet."""
    todo = sorted((t for t in tables if t.has_data), key=lambda t: t.top)
    if not todo:
        return
    for block in blocks_of(todo[0].sheet):
        if block.numbers[0] > todo[-1].bottom:
            return
        for table in todo:
            if (rows := table.cut(block)) is not None:
                yield table, rows


def strands(tables: Sequence[SourceTable]) -> list[list[SourceTable]]:
    """Tables of one sheet in groups that share no row, so that each group takes one reading."""
    groups: list[list[SourceTable]] = []
    for table in sorted((t for t in tables if t.has_data), key=lambda t: (t.top, t.columns[0].index)):
        for group in groups:
            if group[-1].bottom < table.top:
                group.append(table)
                break
        else:
            groups.append([table])
    return groups
