"""Builds rows from cells, and puts rows in order."""

from collections.abc import Iterable, Iterator
from itertools import islice, zip_longest

from runner.engine.reading import errors
from runner.engine.reading.books import NO_CACHED_VALUE, Block, Columnar, ReadLimits, Row, Sheet, Value

BLOCK = 2048  # rows: enough to work by column, few enough to stay in the processor's cache


class RowBuilder:
    """Collects the cells of one row at a time, within the limits."""

    def __init__(self, limits: ReadLimits) -> None:
        self._limits = limits
        self._number = 0
        self._values: dict[int, Value] = {}
        self._slots = 0

    def next_row(self, number: int) -> Row | None:
        """Start a row; gives the one before it if that held any value."""
        if not 0 < number <= self._limits.max_rows:
            raise errors.damaged(f"a row numbered past {self._limits.max_rows}, the last there is")
        done = self.done()
        self._number = number
        return done

    def put(self, column: int, value: Value) -> None:
        if not 0 < column <= self._limits.max_columns:
            raise errors.damaged(f"a cell past column {self._limits.max_columns}, the last there is")
        if value or (value is not None and (value is not NO_CACHED_VALUE or column not in self._values)):
            self._values[column] = value  # of two cells in one place the later counts, unless it is blank

    def done(self) -> Row | None:
        if not self._values:
            return None
        width = max(self._values)
        self._slots += width
        if self._slots > self._limits.max_cells:
            raise errors.too_large(f"a sheet of over {self._limits.max_cells} cells, blanks counted")
        values: list[Value] = [None] * width
        for column, value in self._values.items():
            values[column - 1] = value
        self._values = {}
        return self._number, values


def ascending(rows: Iterable[Row], limits: ReadLimits) -> Iterator[Row]:
    """The same rows in order, those of one number joined, for sheets that are written out of order."""
    held: dict[int, list[Value]] = {}
    slots = 0
    for number, values in rows:
        slots += len(values)
        if slots > limits.max_sorted_cells:
            raise errors.too_large("a sheet whose rows are out of order is too large to be sorted")
        before = held.get(number)
        held[number] = values if before is None else _joined(before, values)
    yield from sorted(held.items())


def _joined(before: list[Value], after: list[Value]) -> list[Value]:
    blanks = (None, NO_CACHED_VALUE)
    return [
        old if new is None or (new is NO_CACHED_VALUE and old not in blanks) else new
        for old, new in zip_longest(before, after)
    ]


class OutOfOrder(Exception):  # an event, not an error
    """A sheet's rows turned out not to ascend after some of them were given: ask again, and they will."""


def blocks_of(sheet: Sheet) -> Iterator[Block]:
    """A sheet's rows by column; may end in ``OutOfOrder``, once."""
    return sheet.blocks() if isinstance(sheet, Columnar) else turned(sheet.rows())


def turned(rows: Iterable[Row], size: int = BLOCK) -> Iterator[Block]:
    """The same rows by column."""
    source = iter(rows)
    while some := list(islice(source, size)):
        yield Block([number for number, _ in some], list(map(list, zip_longest(*[values for _, values in some]))))


def trimmed(values: list[Value]) -> list[Value]:
    """The same row without the blanks at its end."""
    width = len(values)
    while width and values[width - 1] is None:
        width -= 1
    return values[:width]


def rows_of(blocks: Iterable[Block]) -> Iterator[Row]:
    """The same rows one by one, no blanks at their ends."""
    for numbers, columns in blocks:
        for number, values in zip(numbers, map(list, zip(*columns, strict=True)), strict=True):
            yield number, values if values[-1] is not None else trimmed(values)


def gathered(blocks: Iterable[Block]) -> Iterator[Block]:
    """Small blocks put together."""
    numbers: list[int] = []
    columns: list[list[Value]] = []
    for block in blocks:
        columns += [[None] * len(numbers) for _ in block.columns[len(columns) :]]
        for at, column in enumerate(columns):
            column.extend(block.columns[at] if at < len(block.columns) else [None] * len(block.numbers))
        numbers += block.numbers
        if len(numbers) >= BLOCK:
            yield Block(numbers, columns)
            numbers, columns = [], []
    if numbers:
        yield Block(numbers, columns)
