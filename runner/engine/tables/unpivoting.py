"""Columns that become rows: months across, one row for each month (`rows.unpivot` in the manifest)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain, compress, repeat
from typing import Any, Final, NamedTuple

from runner.engine.options import UnpivotOptions
from runner.engine.structure import Column

_ROWS_AT_ONCE: Final = 16_384  # rows made at a time: memory is bounded whatever the number of columns
_MIDNIGHT: Final = " 00:00:00"  # of a header that is a date


@dataclass(frozen=True, slots=True)
class SpreadColumn:
    """A column of the sheet whose cells become rows."""

    index: int  # 1-based, in the sheet
    name: str  # what its rows are called


class MadeRows(NamedTuple):
    """Rows made from some rows of a table."""

    at: list[int]  # for each the index of the row that it is made of
    names: list[str]
    values: list[Any]
    value_columns: list[int]  # for each the column of the sheet that its value is in
    unmade: list[int]  # indexes of rows of which none is made


def choose_spread_columns(columns: Sequence[Column], options: UnpivotOptions) -> list[SpreadColumn]:
    """Choose the columns that the manifest turns into rows, and name them by their last header if that is distinct."""
    patterns = [_folded(pattern) for pattern in options.columns]
    matches = [(column, text) for column in columns if (text := _matching_header(column, patterns)) is not None]
    texts = [text for _, text in matches]
    # Leaves that occur twice, Jan of two years, are no names.
    distinct = len(set(texts)) == len(texts)
    return [
        SpreadColumn(column.index, text if distinct else _without_midnight(column.name)) for column, text in matches
    ]


def _matching_header(column: Column, patterns: Sequence[str]) -> str | None:
    """Return the header of a column that matches a pattern: the whole of it, or its last row; None if neither does."""
    if column.generated:
        return None
    for text in dict.fromkeys(map(_without_midnight, (column.name, *column.parts[-1:]))):
        folded = _folded(text)
        if any(folded == pattern or fnmatchcase(folded, pattern) for pattern in patterns):
            return text
    return None


def _without_midnight(header: str) -> str:
    """Return a header without the midnight of a date."""
    return header.removesuffix(_MIDNIGHT)


def _folded(text: str) -> str:
    """Return a text without case and needless blanks."""
    return " ".join(text.split()).casefold()


def make_rows(spread: Sequence[SpreadColumn], columns: Sequence[list[Any]], *, drop: bool) -> Iterator[MadeRows]:
    """Turn each cell of these columns into a row, from top to bottom and left to right; `drop`: leave out blank cells.

    Yields chunks; all rows made of one row are in one of them.
    """
    count, wide = len(columns[0]), len(spread)
    step = max(1, _ROWS_AT_ONCE // wide)
    for first in range(0, max(count, 1), step):
        source_rows = range(first, min(first + step, count))
        values = list(
            chain.from_iterable(zip(*(column[source_rows.start : source_rows.stop] for column in columns), strict=True))
        )
        at = list(chain.from_iterable(repeat(row, wide) for row in source_rows))
        names = [spread_column.name for spread_column in spread] * len(source_rows)
        value_columns = [spread_column.index for spread_column in spread] * len(source_rows)
        is_filled = [_has_value(value) for value in values] if drop else []
        if all(is_filled):
            yield MadeRows(at, names, values, value_columns, [])
            continue
        at = list(compress(at, is_filled))
        names, values = list(compress(names, is_filled)), list(compress(values, is_filled))
        value_columns = list(compress(value_columns, is_filled))
        with_rows = set(at)
        yield MadeRows(at, names, values, value_columns, [row for row in source_rows if row not in with_rows])


def _has_value(value: Any) -> bool:
    """Whether a cell has a value that is not only spaces."""
    return value is not None and not (value.__class__ is str and not value.strip())
