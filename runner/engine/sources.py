"""Source tables: where each stands, and its rows as chunks of columns."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from runner.engine.findings import Place
from runner.engine.reading import Sheet
from runner.engine.structure import Table

CHUNK: Final = 2048
SAMPLED: Final = 200


class SourceTable:
    """A table that was found, with the sheet it streams from."""

    def __init__(
        self,
        place: Place,
        sheet: Sheet,
        table: Table,
        *,
        hidden_rows: frozenset[int],
        hidden_columns: frozenset[int],
    ) -> None:
        self.place = place
        self.sheet = sheet
        self.table = table
        self.columns = [c for c in table.columns if c.index not in hidden_columns]
        self.without = table.left_out | hidden_rows
        self.rows_in = 0

    @property
    def id(self) -> str:
        return self.place.table

    def samples(self, count: int = SAMPLED) -> list[list[Any]]:
        """The first values of each column."""
        for _, columns in chunks([self], size=count):
            return columns.columns
        return [[] for _ in self.columns]


class Rows(NamedTuple):
    """Some rows of a table: their numbers, and one list of values per column."""

    numbers: list[int]
    columns: list[list[Any]]


def chunks(tables: Sequence[SourceTable], size: int = CHUNK) -> Iterator[tuple[SourceTable, Rows]]:
    """Stream the data rows of tables of one sheet that stand below each other, in one reading of the sheet."""
    todo = [t for t in tables if t.table.data_range is not None and t.columns]
    if not todo:
        return
    todo.sort(key=_top)
    at = 0
    current, packer = todo[0], _Packer(todo[0], size)
    for number, values in todo[0].sheet.rows():
        while number > _bottom(current):
            if packer.numbers:
                yield current, packer.take()
            at += 1
            if at == len(todo):
                return
            current, packer = todo[at], _Packer(todo[at], size)
        if number >= _top(current) and number not in current.without:
            packer.add(number, values)
            if len(packer.numbers) >= size:
                yield current, packer.take()
    if packer.numbers:
        yield current, packer.take()


def strands(tables: Sequence[SourceTable]) -> list[list[SourceTable]]:
    """Tables of one sheet in groups that share no row, so that each group takes one reading."""
    groups: list[list[SourceTable]] = []
    for table in sorted((t for t in tables if t.table.data_range is not None), key=lambda t: (_top(t), _left(t))):
        for group in groups:
            if _bottom(group[-1]) < _top(table):
                group.append(table)
                break
        else:
            groups.append([table])
    return groups


class _Packer:
    """Collects rows and turns them into columns."""

    def __init__(self, table: SourceTable, size: int) -> None:
        self.numbers: list[int] = []
        self._rows: list[list[Any]] = []
        first, last = table.columns[0].index - 1, table.columns[-1].index
        self._span = slice(first, last)
        self._width = last - first
        indexes = [c.index - 1 - first for c in table.columns]
        self._pick = None if indexes == list(range(self._width)) else indexes
        self._size = size

    def add(self, number: int, values: list[Any]) -> None:
        part = values[self._span]
        if part.count(None) == len(part):
            return  # blank in this table, whatever stands beside it
        if len(part) < self._width:
            part += [None] * (self._width - len(part))
        self._rows.append(part)
        self.numbers.append(number)

    def take(self) -> Rows:
        columns = list(map(list, zip(*self._rows, strict=True)))
        if self._pick is not None:
            columns = [columns[i] for i in self._pick]
        taken = Rows(self.numbers, columns)
        self.numbers, self._rows = [], []
        return taken


def _top(table: SourceTable) -> int:
    return table.table.data_range.top if table.table.data_range else 0


def _bottom(table: SourceTable) -> int:
    return table.table.data_range.bottom if table.table.data_range else 0


def _left(table: SourceTable) -> int:
    return table.table.data_range.left if table.table.data_range else 0
