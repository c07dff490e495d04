"""Cells of an input as texts, for people who may see values: given rows, and samples of columns.

Wanted: `{"rows": {sheet: [number, …]}, "samples": {sheet: [[column, first, last], …]}}`; an empty name is that of the
first sheet. The answer has the same keys, and as much as the limits below allow: by sheet, texts by number of the row,
and by letters of the column.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from runner.engine.common import a1
from runner.engine.comparing.cell_texts import cell_text
from runner.engine.reading import open_book
from runner.engine.reading.books import Sheet, Value

_LONGEST: Final = 80  # characters of one cell
_MOST_ROWS: Final = 400
_MOST_COLUMNS: Final = 60
_VALUES_IN_SAMPLE: Final = 5
_SAMPLED_ROWS: Final = 5_000  # of one sheet that samples are taken from


def shown_cells(path: Path, request: Mapping[str, Any]) -> dict[str, dict[str, dict[str, list[str]]]]:
    """Read the cells of a file that a request asks for, in the form that the module's docstring describes."""
    cells: dict[str, dict[str, dict[str, list[str]]]] = {"rows": {}, "samples": {}}
    rows, samples = request.get("rows") or {}, request.get("samples") or {}
    with open_book(path, name=path.name) as book:
        for n, sheet in enumerate(book.sheets):
            names = {sheet.name, ""} if n == 0 else {sheet.name}
            if len(book.sheets) == 1:
                names |= {*rows, *samples}  # that of a text file is the file's, which has another name here
            for name in names:
                if name in rows or name in samples:
                    numbers = set(map(int, rows.get(name, ())))
                    columns = _ColumnSamples(samples.get(name, ()))
                    cells["rows"][name] = _read_rows(sheet, numbers, columns)
                    cells["samples"][name] = columns.texts
    return cells


def _read_rows(sheet: Sheet, numbers: set[int], samples: "_ColumnSamples") -> dict[str, list[str]]:
    """Return the texts of the rows with these numbers, by number, and collect samples on the way, in `samples`.

    Stops where nothing more is wanted. Only the first 400 numbers count.
    """
    texts: dict[str, list[str]] = {}
    numbers = set(sorted(numbers)[:_MOST_ROWS])
    last_number = max(numbers, default=0)
    for rows_seen, (number, values) in enumerate(sheet.rows(), 1):
        if number in numbers:
            texts[str(number)] = [_shown_text(value) for value in values[:_MOST_COLUMNS]]
        if rows_seen <= _SAMPLED_ROWS and samples.incomplete:
            samples.add_row(number, values)
        if number >= last_number and (rows_seen >= _SAMPLED_ROWS or not samples.incomplete):
            break
    return texts


class _SampledArea(NamedTuple):
    """The part of a column that is sampled."""

    column: int  # from 0
    first_row: int
    last_row: int


class _ColumnSamples:
    """Collects the first few different values of columns, row by row."""

    def __init__(self, areas: Iterable[Any]) -> None:
        """Prepare to sample areas: each has the letters of a column, and the first and the last row to sample."""
        self.texts: dict[str, list[str]] = {}  # by letters
        self.incomplete: dict[str, _SampledArea] = {}  # those that lack values, by letters
        for letters, first_row, last_row in list(areas)[:_MOST_COLUMNS]:
            column = a1.column_number(str(letters)) - 1
            self.incomplete[str(letters)] = _SampledArea(column, int(first_row), int(last_row))
            self.texts[str(letters)] = []

    def add_row(self, number: int, values: list[Value]) -> None:
        """Add the values of a row to columns that still lack some; rows come from top to bottom."""
        for letters, area in list(self.incomplete.items()):
            is_inside = area.first_row <= number <= area.last_row and area.column < len(values)
            text = _shown_text(values[area.column]) if is_inside else ""
            if text and text not in self.texts[letters]:
                self.texts[letters].append(text)
            if number > area.last_row or len(self.texts[letters]) == _VALUES_IN_SAMPLE:
                del self.incomplete[letters]


def _shown_text(value: Value) -> str:
    """Write a value as text, cut to what is shown; a text stays as it is, without a mark."""
    text = value if isinstance(value, str) else cell_text(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
