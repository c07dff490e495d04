"""Rows put together from cells, and put in order."""

from collections.abc import Iterable, Iterator
from itertools import zip_longest

from runner.engine.reading import errors
from runner.engine.reading.limits import ReadLimits
from runner.engine.reading.values import Row, Value


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
        if value is not None:
            self._values[column] = value

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
    return [old if new is None else new for old, new in zip_longest(before, after)]
