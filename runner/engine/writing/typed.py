"""Typed columns of the data files: what type each output column has, and which values fit it.

A column of a data file holds values of one type and blanks, nothing else: a value that does not fit is left blank
there, and goes to the column `_rescued` if the manifest asks for it.
"""

import json
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from enum import StrEnum
from math import isfinite
from typing import Any, Final, NamedTuple

from runner.engine.mapping.output_layout import OutColumn
from runner.engine.reading import CellError, NoCachedValue
from runner.engine.values.convert import text_of
from runner.engine.values.dates import naive
from runner.engine.writing.parts import spelled

RESCUED: Final = "_rescued"
MONEY_SCALE: Final = 4  # decimals of money, unless the field has a scale of its own: rates and unit prices have four
PRECISION: Final = 18  # decimal digits that a 64-bit number holds
_LARGEST: Final = 2**63 - 1
_EXACT_FLOAT: Final = 2**53  # whole numbers up to here are exact as floats
_UNAMBIGUOUS: Final = 10.0**15  # of two different numbers of 15 digits, no two are the same double
_ALL_DIGITS: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)  # nothing is rounded


class ColumnType(StrEnum):
    """The types of columns as schema.json names them."""

    TEXT = "string"
    INTEGER = "integer"
    NUMBER = "number"  # a double
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    DATE = "date"
    DATETIME = "datetime"
    TIME = "time"


_TYPE_OF_FIELD: Final = {
    "integer": ColumnType.INTEGER,
    "decimal": ColumnType.NUMBER,
    "percent": ColumnType.NUMBER,
    "money": ColumnType.DECIMAL,
    "boolean": ColumnType.BOOLEAN,
    "date": ColumnType.DATE,
    "datetime": ColumnType.DATETIME,
    "time": ColumnType.TIME,
}
_ROW_NUMBER: Final = "source_row"
_NUMBERS: Final = frozenset({int, float, Decimal})


class TypedColumn(NamedTuple):
    """A column of the data files."""

    name: str
    type: ColumnType
    scale: int = 0  # decimals of a DECIMAL


class Fitted(NamedTuple):
    """A chunk of a typed column: a blank (None) for each value that does not fit."""

    values: list[Any]
    unfit: list[int]  # the indexes of those values


def typed_columns(columns: Sequence[OutColumn], *, rescued: bool) -> list[TypedColumn]:
    """Return the columns of the data files for those of the output; `rescued`: with one more for what does not fit."""
    typed = [_typed_column(column) for column in columns]
    return [*typed, TypedColumn(_free_name({c.name for c in typed}), ColumnType.TEXT)] if rescued else typed


def column_type(field_type: str | None, scale: int | None, added: str | None = None) -> tuple[ColumnType, int]:
    """Return the type, and the scale of a decimal, of a column whose field has this type; None: of an unmapped column.

    `added`: what a column says that no source has.
    """
    if added == _ROW_NUMBER:
        return ColumnType.INTEGER, 0
    kind = _TYPE_OF_FIELD.get(field_type or "", ColumnType.TEXT)
    if kind is ColumnType.DECIMAL or (kind is ColumnType.NUMBER and scale is not None):
        return ColumnType.DECIMAL, MONEY_SCALE if scale is None else scale
    return kind, 0


def _typed_column(column: OutColumn) -> TypedColumn:
    """Return the column of the data files for one of the output."""
    field = column.field
    field_type, scale = (None, None) if field is None else (field.type, field.scale)
    return TypedColumn(column.header, *column_type(field_type, scale, column.added))


def _free_name(names: set[str]) -> str:
    """Choose a name for the column of rescued values that no other column has."""
    name = RESCUED
    while name in names:
        name = f"_{name}"
    return name


def fit(column: TypedColumn, values: list[Any]) -> Fitted:
    """Fit the values of a column to its type; those that do not fit are blanked and listed. Texts and whole columns of
    the right type are the fast path."""
    kinds = set(map(type, values))
    kinds.discard(type(None))
    return _FITTERS[column.type](column, values, kinds)


def _fit_text(_: TypedColumn, values: list[Any], kinds: set[type]) -> Fitted:
    """Fit texts as they are, other values as text; errors do not fit."""
    if kinds <= {str}:
        return Fitted(values, [])
    unfit = [i for i, value in enumerate(values) if type(value) is CellError]
    return Fitted([_as_text(value) for value in values], unfit)


def _as_text(value: Any) -> str | None:
    """Convert a value to text; None for a blank or an error."""
    if value is None or type(value) in (CellError, NoCachedValue):
        return None
    text = text_of(value)
    return text if type(text) is str else spelled(text)


def _fit_instances(kind: type) -> Callable[[TypedColumn, list[Any], set[type]], Fitted]:
    """Return a fitter for a column of values of exactly one Python type."""

    def fitter(_: TypedColumn, values: list[Any], kinds: set[type]) -> Fitted:
        return Fitted(values, []) if kinds <= {kind} else _blank_unfit(values, lambda value: type(value) is kind)

    return fitter


def _fit_moments(column: TypedColumn, values: list[Any], kinds: set[type]) -> Fitted:
    """Fit moments without a zone; a rule's moment with one is converted to UTC, as those of the input are."""
    column_fit = _fit_instances(datetime)(column, values, kinds)
    if all(v is None or v.tzinfo is None for v in column_fit.values):
        return column_fit
    return Fitted([v if v is None else naive(v) for v in column_fit.values], column_fit.unfit)


def _fit_clocks(column: TypedColumn, values: list[Any], kinds: set[type]) -> Fitted:
    """Fit times of day; one with a zone does not fit."""
    column_fit = _fit_instances(time)(column, values, kinds)
    if all(v is None or v.tzinfo is None for v in column_fit.values):
        return column_fit
    return _blank_unfit(values, lambda v: type(v) is time and v.tzinfo is None)


def _blank_unfit(values: list[Any], fits: Callable[[Any], bool]) -> Fitted:
    """Blank the values that do not fit; a formula without a result is a blank already."""
    unfit = [i for i, v in enumerate(values) if v is not None and not fits(v)]
    if not unfit:
        return Fitted(values, [])
    blanked = values.copy()
    for i in unfit:
        blanked[i] = None
    return Fitted(blanked, [i for i in unfit if type(values[i]) is not NoCachedValue])


def _fit_integer(_: TypedColumn, values: list[Any], kinds: set[type]) -> Fitted:
    """Fit whole numbers that 64 bits hold."""
    if kinds <= {int} and all(v is None or -_LARGEST <= v <= _LARGEST for v in values):
        return Fitted(values, [])
    return _blank_unfit(values, lambda v: type(v) is int and -_LARGEST <= v <= _LARGEST)


def _fit_number(_: TypedColumn, values: list[Any], kinds: set[type]) -> Fitted:
    """Fit finite numbers as floats; whole ones that no float has exactly do not fit."""
    if not (kinds <= {float} and all(v is None or isfinite(v) for v in values)):
        fitted = _blank_unfit(values, _is_double)
        return Fitted([float(v) if type(v) is int else v for v in fitted.values], fitted.unfit)
    return Fitted(values, [])


def _is_double(value: Any) -> bool:
    """Whether a value is a finite float, or a whole number that a float has exactly."""
    if type(value) is int:
        return -_EXACT_FLOAT <= value <= _EXACT_FLOAT
    return type(value) is float and isfinite(value)


def _fit_decimal(column: TypedColumn, values: list[Any], kinds: set[type]) -> Fitted:
    """Fit numbers that are exact in the column's scale, as the whole numbers that stand for them (`unscaled`)."""
    fitted = values if kinds <= _NUMBERS else _blank_unfit(values, lambda v: type(v) in _NUMBERS).values
    made = [None if v is None else unscaled(v, column.scale) for v in fitted]
    unfit = [
        i for i, v in enumerate(made) if v is None and values[i] is not None and type(values[i]) is not NoCachedValue
    ]
    return Fitted(made, unfit)


def unscaled(value: float | Decimal, scale: int) -> int | None:
    """Return the whole number that stands for a number of this scale; None if it needs more digits, or is too large."""
    if type(value) is float:
        power = 10**scale
        if abs(value * power) < _UNAMBIGUOUS:
            number = round(value * power)
            return number if number / power == value else None
        value = Decimal(repr(value))  # several decimals of the scale are this double: its shortest digits are meant
    digits = Decimal(value)
    if not digits.is_finite() or digits.copy_abs() >= 10 ** (PRECISION - scale):
        return None
    scaled = digits.scaleb(scale, _ALL_DIGITS)
    return int(scaled) if scaled == scaled.to_integral_value(context=_ALL_DIGITS) else None


_OWN_KINDS: Final = {
    ColumnType.INTEGER: frozenset({int}),
    ColumnType.NUMBER: _NUMBERS,
    ColumnType.DECIMAL: _NUMBERS,
    ColumnType.TIME: frozenset({time}),
}


def is_of_type(column: TypedColumn, value: Any) -> bool:
    """Whether a value that does not fit its column is of its type all the same, so that only digits or a zone are too
    many."""
    return type(value) in _OWN_KINDS.get(column.type, ())


_FITTERS: Final[dict[ColumnType, Callable[[TypedColumn, list[Any], set[type]], Fitted]]] = {
    ColumnType.TEXT: _fit_text,
    ColumnType.INTEGER: _fit_integer,
    ColumnType.NUMBER: _fit_number,
    ColumnType.DECIMAL: _fit_decimal,
    ColumnType.BOOLEAN: _fit_instances(bool),
    ColumnType.DATE: _fit_instances(date),
    ColumnType.DATETIME: _fit_moments,
    ColumnType.TIME: _fit_clocks,
}


def decimal_text(number: int, scale: int) -> str:
    """Return the shortest digits of a decimal: 199000 of scale 4 is 19.9."""
    if not scale:
        return str(number)
    digits = str(abs(number)).rjust(scale + 1, "0")
    text = f"{digits[:-scale]}.{digits[-scale:]}".rstrip("0").rstrip(".")
    return f"-{text}" if number < 0 else text


def rescued_texts(
    columns: Sequence[TypedColumn], raw: Sequence[list[Any]], unfit: Sequence[list[int]], count: int
) -> list[str | None]:
    """Return for each row a JSON object of the values that did not fit, by column; None where all did.

    `raw`: the values as they were, by column; `unfit`: the rows in which they did not fit.
    """
    by_row: dict[int, dict[str, str]] = {}
    for column, values, indexes in zip(columns, raw, unfit, strict=False):
        for i in indexes:
            by_row.setdefault(i, {})[column.name] = _as_text(values[i]) or spelled(values[i])
    return [json.dumps(by_row[i], ensure_ascii=False) if i in by_row else None for i in range(count)]
