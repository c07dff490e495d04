"""Compares two tables row by row: is one the other again, spelled, rounded or converted otherwise?

Rows belong together if their texts and dates agree as a person reads them; then the numbers of each column are
compared. The first rows of one table are looked for in the whole of the other.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import date, datetime, time
from enum import IntEnum
from itertools import product
from typing import Any, Final, NamedTuple

from runner.engine.deciding.derivation import TableContents
from runner.engine.structure.column_sums import read_number
from runner.engine.tables.sources import SAMPLED, chunks
from runner.engine.values.dates import DateReader

_FEW_BY_CHANCE: Final = 3  # rows or numbers that agree by chance
_MOST_SEARCHED: Final = 2000  # rows of a table that are looked for in another
_RELATIVE_ERROR: Final = 1e-9
_HUGE: Final = 1e290
_MOST_DECIMALS: Final = 6
_LONG_TEXT: Final = 40  # characters of a text that is not a number
Row = Sequence[Any]  # the cells of a row in the columns that are compared
RowName = tuple[Any, ...]  # its cells in the columns that name it


class Readings(NamedTuple):
    """The number of a cell by each decimal sign; None: it is not a number."""

    with_point: float | None
    with_comma: float | None


class TableRelation(IntEnum):
    """How the numbers of a column are to those of another, the closest first."""

    EQUAL = 0
    ROUNDED = 1  # to fewer decimals
    MULTIPLIED = 2  # by one factor
    OTHER = 3


class TableLikeness(NamedTuple):
    """What differs between two tables with the same rows: nothing but spelling, or numbers."""

    relation: TableRelation
    columns: tuple[str, ...] = ()  # of which the numbers differ
    factor: float = 1.0
    is_coarser: bool = True  # whether the first table has the rounded numbers
    agreeing: int = 0  # columns in which the rows agree


class _NumbersRelation(NamedTuple):
    """How the numbers of one column are to those of another."""

    relation: TableRelation
    factor: float = 1.0
    is_coarser: bool = True


def compare_tables(
    table: TableContents, other: TableContents, *, dated: Collection[str], keys: Collection[str]
) -> TableLikeness | None:
    """Compare the rows of two tables: return what differs, None if they are not the same rows. Columns `dated` and
    `keys` name a row."""
    shared = sorted(table.columns.keys() & other.columns.keys())
    numeric = set(table.numeric).intersection(other.numeric).difference(keys, dated)
    numbers = [key for key in shared if key in numeric]
    names = [key for key in shared if key not in numeric]
    if not names or not (table.is_comparable and other.is_comparable):
        return None
    written = any(isinstance(v, str) for k in names if k in dated for t in (table, other) for v in t.sample(k))
    for day_first in (True, False) if written else (True,):
        rows = _NamedRows(names, numbers, dated, DateReader((), day_first=day_first))
        if (pairs := rows.pairs_of_rows(table, other)) is not None:
            return _compare_numbers(pairs, numbers, len(names))
    return None


class _NamedRows:
    """Rows by what they are called: the texts and dates of some columns."""

    def __init__(self, names: Sequence[str], numbers: Sequence[str], dated: Collection[str], dates: DateReader) -> None:
        """Name rows by the columns `names`, of which `dated` hold dates; `numbers` are the columns to compare."""
        self._names, self._numbers, self._dated, self._dates = names, numbers, dated, dates

    def pairs_of_rows(self, table: TableContents, other: TableContents) -> list[tuple[Row, Row]] | None:
        """Pair rows with the same name in both tables: their numbers in each. None unless every row among the first
        ones of `table` is in `other`, and nearly all of these have names of their own."""
        if table.rows != other.rows or table.rows <= SAMPLED:
            for key in self._names:
                other_names = set(self._row_names(key, other.sample(key)))
                if other_names.isdisjoint(self._row_names(key, table.sample(key))):
                    return None
        rows_by_name: dict[RowName, Row] = {}
        count = 0
        for chunk in self._name_rows(table):
            count += len(chunk)
            rows_by_name.update(chunk)
            if count >= _MOST_SEARCHED:
                break
        if len(rows_by_name) < _FEW_BY_CHANCE or len(rows_by_name) * 10 < 9 * count:
            return None
        partners: dict[RowName, Row] = {}
        for chunk in self._name_rows(other):
            partners.update((name, row) for name, row in chunk if name in rows_by_name)
        if len(partners) < len(rows_by_name):
            return None
        return [(row, partners[name]) for name, row in rows_by_name.items()]

    def _name_rows(self, table: TableContents) -> Iterator[list[tuple[RowName, Row]]]:
        """Yield the rows of a table by chunk: the name of each, and its numbers."""
        for _, rows in chunks([table.table.source]):
            parts = [self._row_names(key, rows.columns[table.columns[key]]) for key in self._names]
            numbers = [rows.columns[table.columns[key]] for key in self._numbers]
            values = zip(*numbers, strict=True) if numbers else [()] * len(parts[0])
            yield list(zip(zip(*parts, strict=True), values, strict=True))

    def _row_names(self, key: str, values: Sequence[Any]) -> list[Any]:
        """Return the part of each row's name that a column gives: texts folded, dates as dates. Clears the remarks of
        the date reader, which nobody needs."""
        if key in self._dated:
            self._dates.remarks.clear()
            return [self._as_date(value) for value in values]
        return [_fold_value(value) for value in values]

    def _as_date(self, value: Any) -> Any:
        """Return a cell as a date, or as a date and time if it has one; folded if it is not a date."""
        moment = self._dates.moment(value) if isinstance(value, str) and value.strip() else value
        if isinstance(moment, datetime):
            return moment.date() if moment.time() == time() else moment
        return moment if isinstance(moment, date) else _fold_value(value)


def _fold_value(value: Any) -> Any:
    """Fold a text's case and needless blanks, or return the whole number that it is; other cells stay as they are."""
    if isinstance(value, str):
        text = " ".join(value.split()).casefold()
        return float(text) if text.isdecimal() and len(text) <= 15 else text or None
    return value


def _compare_numbers(
    pairs: Sequence[tuple[Row, Row]], numbers: Sequence[str], name_count: int
) -> TableLikeness | None:  # fmt: skip
    """Compare the numbers of paired rows; None if columns differ in several ways.

    `numbers`: the columns whose numbers a pair has, in their order; `name_count`: how many columns name the rows.
    """
    relations = {
        key: _closest_relation(
            [_read_both_ways(row[n]) for row, _ in pairs], [_read_both_ways(row[n]) for _, row in pairs]
        )
        for n, key in enumerate(numbers)
    }
    differing = {key: compared for key, compared in relations.items() if compared.relation is not TableRelation.EQUAL}
    agreeing = name_count + len(relations) - len(differing)
    if not differing:
        return TableLikeness(TableRelation.EQUAL, agreeing=agreeing)
    first, *others = differing.values()
    same = all(compared.relation is first.relation and compared.is_coarser is first.is_coarser for compared in others)
    if not same or any(abs(compared.factor - first.factor) > 0.001 * abs(first.factor) for compared in others):
        return None
    return TableLikeness(first.relation, tuple(differing), first.factor, first.is_coarser, agreeing)


def _read_both_ways(value: Any) -> Readings:
    """Read the number of a cell with a decimal point and with a decimal comma; twice None if it is not a number, or
    huge."""
    readings = read_number(value) if isinstance(value, str) and len(value) < _LONG_TEXT else (value, value)
    if readings is None or not all(isinstance(number, int | float) and -_HUGE < number < _HUGE for number in readings):
        return Readings(None, None)
    with_point, with_comma = readings
    return Readings(float(with_point), float(with_comma))


def _closest_relation(left: Sequence[Readings], right: Sequence[Readings]) -> _NumbersRelation:
    """Relate two columns of numbers in all readings of their decimal signs, and return the closest relation."""
    left_columns, right_columns = list(zip(*left, strict=True)), list(zip(*right, strict=True))
    if all(reading.with_point == reading.with_comma for reading in (*left, *right)):
        left_columns, right_columns = left_columns[:1], right_columns[:1]
    relations = (_relate_numbers(*columns) for columns in product(left_columns, right_columns))
    return min(relations, key=lambda relation: relation.relation)


def _relate_numbers(column: Sequence[float | None], other: Sequence[float | None]) -> _NumbersRelation:
    """Relate the numbers of two columns row by row: equal, rounded, multiplied by one factor, or other; only columns
    with blanks in the same rows and several different numbers are ever rounded or multiplied."""
    if any((left is None) is not (right is None) for left, right in zip(column, other, strict=True)):
        return _NumbersRelation(TableRelation.OTHER)
    pairs = [(left, right) for left, right in zip(column, other, strict=True) if left is not None and right is not None]
    if all(abs(left - right) <= _RELATIVE_ERROR * max(1.0, abs(right)) for left, right in pairs):
        return _NumbersRelation(TableRelation.EQUAL)
    if any(len(set(numbers)) < _FEW_BY_CHANCE for numbers in zip(*pairs, strict=True)):
        return _NumbersRelation(TableRelation.OTHER)
    left_decimals, right_decimals = (max(map(_count_decimals, numbers)) for numbers in zip(*pairs, strict=True))
    unit = 10.0 ** -min(left_decimals, right_decimals)
    if left_decimals != right_decimals and all(abs(left - right) < unit for left, right in pairs):
        return _NumbersRelation(TableRelation.ROUNDED, is_coarser=left_decimals < right_decimals)
    left, right = max(pairs, key=lambda pair: abs(pair[1]))
    factor = left / right if right else 0.0
    slack = 1.01 * 10.0**-left_decimals
    if factor and all(abs(left - factor * right) <= slack + _RELATIVE_ERROR * abs(left) for left, right in pairs):
        return _NumbersRelation(TableRelation.MULTIPLIED, factor)
    return _NumbersRelation(TableRelation.OTHER)


def _count_decimals(number: float) -> int:
    """Count the decimals of a number, up to `_MOST_DECIMALS`."""
    shifted = (number * 10**n for n in range(_MOST_DECIMALS))
    return next(
        (n for n, shifted_number in enumerate(shifted) if abs(shifted_number - round(shifted_number)) < 1e-6),
        _MOST_DECIMALS,
    )
