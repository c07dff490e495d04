"""normalized.csv: RFC 4180, one header line, values as schema.json types them.

A text that a spreadsheet would run as a formula gets an apostrophe in front (`is_formula`). The rule can be undone: a
text of apostrophes followed by such a beginning gets one more, so whoever reads it takes exactly one away.
"""

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time
from io import StringIO
from typing import IO, Any, Final, NamedTuple

from runner.engine.writing.typed import ColumnType, TypedColumn, decimal_text

BOM: Final = b"\xef\xbb\xbf"
LINE_END: Final = "\r\n"
# A sign before digits and what stands between them is a number or a phone number; before anything else, a formula.
_FORMULA: Final = re.compile(r"'*+(?:[=@\uff1d\uff20\t\r\n\0\ufffd]|[+\uff0b\uff0d-](?![0-9 .,()/-]*+\Z))")
# Wide forms too: some spreadsheets run them. U+FFFD too: a NUL becomes one where it cannot be stored.
FORMULA_STARTS: Final = frozenset("=@+-\uff1d\uff20\uff0b\uff0d\t\r\n\0\ufffd")
_STARTS: Final = FORMULA_STARTS | {"'"}


class CsvDialect(NamedTuple):
    """How a CSV file is written."""

    delimiter: str = ","
    decimal: str = "."  # the decimal point
    bom: bool = False  # whether it begins with a byte-order mark


class DelimitedFile:
    """Writes normalized.csv chunk by chunk."""

    def __init__(self, file: IO[bytes], columns: Sequence[TypedColumn], dialect: CsvDialect) -> None:
        """Write the byte-order mark, if the dialect wants one, and the header."""
        self._file = file
        self._delimiter = dialect.delimiter
        self._formatters = [_make_formatter(column, dialect.decimal) for column in columns]
        self._file.write(BOM if dialect.bom else b"")
        self._append([tuple(map(guarded, (column.name for column in columns)))])

    def write(self, columns: Sequence[list[Any]]) -> None:
        """Append rows, given as one list of fitted values per column."""
        texts = [formatted(values) for formatted, values in zip(self._formatters, columns, strict=True)]
        self._append(zip(*texts, strict=True))

    def _append(self, rows: Iterable[Sequence[str | None]]) -> None:
        """Write rows of texts; None is a blank."""
        self._file.write(csv_text(rows, self._delimiter).encode(errors="replace"))

    def close(self) -> None:
        """Write what is buffered; the file itself stays open."""
        self._file.flush()


def csv_text(rows: Iterable[Sequence[str | None]], delimiter: str) -> str:
    """Return rows as lines of a CSV file: the only spelling that the file may have."""
    text = StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator=LINE_END).writerows(rows)
    return text.getvalue()


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would take a text of a CSV file for a formula."""
    return text[:1] in _STARTS and _FORMULA.match(text) is not None


def guarded(text: str) -> str:
    """Return the text, with an apostrophe in front if a spreadsheet would take it for a formula."""
    return f"'{text}" if is_formula(text) else text


def _guarded_texts(values: list[str | None]) -> list[str | None]:
    """Guard each text of a column; without any formula the same list is returned."""
    if any(v and v[0] in _STARTS for v in values):
        return [guarded(v) if v else v for v in values]
    return values


def _make_formatter(column: TypedColumn, point: str) -> Callable[[list[Any]], Iterable[str | None]]:
    """Return a function that makes texts of a column's values; a blank stays None, which is written as nothing."""
    if column.type is ColumnType.TEXT:
        return _guarded_texts
    text = _make_text_writer(column, point)
    return lambda values: [None if v is None else text(v) for v in values]


def _make_text_writer(column: TypedColumn, point: str) -> Callable[[Any], str]:
    """Return a function that writes a value of a column as the text of a CSV cell; `point`: the decimal point."""
    kind, scale = column.type, column.scale
    if kind is ColumnType.DECIMAL:
        return lambda v: decimal_text(v, scale).replace(".", point)
    if kind is ColumnType.NUMBER:
        return lambda v: repr(v).removesuffix(".0").replace(".", point)
    if kind is ColumnType.BOOLEAN:
        return lambda v: "true" if v else "false"
    return str if kind is ColumnType.INTEGER else iso


def iso(moment: date | datetime | time) -> str:
    """Write a date or time as ISO 8601 has it."""
    return moment.isoformat()
