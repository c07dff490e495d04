"""Evaluates checked expressions over the columns of a chunk.

Each part of an expression becomes a column of results; whole columns go through one call of `map`. A blank operand
makes a blank result, and a failed one a failed result, except where this module says otherwise: `is blank`, `coalesce`,
`concat`, `join`, `and`, `or` and `if`.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import localcontext
from itertools import starmap
from typing import Any, Final, NamedTuple

from runner.engine.expressions.operations import (
    CONTEXT,
    INPUT,
    OPERATIONS,
    SAFE,
    Failure,
    join_texts,
    read_number,
    text_of,
    write_number,
)
from runner.engine.expressions.signatures import NUMBER, TEXT, Checked, CheckedCall, Expression, FieldValue, Value

_BLANK_OR_FAILED: Final = frozenset({type(None), Failure})
_DIVISIONS: Final = frozenset({"divide", "modulo"})
_TEXTS: Final = frozenset({str, type(None)})
_BOOLEANS: Final = frozenset({bool})
_UNEXPECTED: Final = (TypeError, ValueError, AttributeError, ArithmeticError, IndexError)


class Vector(NamedTuple):
    """A column of values."""

    values: Sequence[Any]
    has_gaps: bool  # some may be blank (None) or failed (a Failure)


class Computed(NamedTuple):
    """The results of an expression: values as cells hold them, blank where it failed, and why it failed there."""

    values: list[Any]
    failed: dict[int, Failure]


class Columns:
    """The columns of a chunk by field, loaded when an expression first uses them and then remembered."""

    def __init__(self, columns: Mapping[str, Sequence[Any]], wrong: Mapping[str, Sequence[int]], count: int) -> None:
        """Know the columns of a chunk of `count` rows; `wrong` has the indexes of cells that are not of their field's
        type."""
        self._columns = dict(columns)
        self._wrong = dict(wrong)
        self.count = count
        self._loaded: dict[str, Vector] = {}

    def add(self, name: str, values: Sequence[Any], wrong: Sequence[int]) -> None:
        """Set the column of a field that was just computed, in place of an earlier one; `wrong` as in `__init__`."""
        self._columns[name], self._wrong[name] = values, wrong
        self._loaded.pop(name, None)

    def row(self, index: int) -> "Columns":
        """Copy one row, as columns of one cell."""
        wrong = {name: [0] for name, indexes in self._wrong.items() if index in indexes}
        return Columns({name: [values[index]] for name, values in self._columns.items()}, wrong, 1)

    def vector(self, field: FieldValue) -> Vector:
        """Return the values of a field, loaded when they are first asked for."""
        vector = self._loaded.get(field.name)
        if vector is None:
            vector = self._loaded[field.name] = self._load(field)
        return vector

    def first_wrong(self, fields: Sequence[str], row: int) -> str | None:
        """Return the first of some fields whose cell in a row is not of its type; None if all are."""
        return next((name for name in fields if row in self._wrong.get(name, ())), None)

    def _load(self, field: FieldValue) -> Vector:
        """Convert the values of a field to what expressions compute with; cells with errors become failures."""
        values, wrong = self._columns[field.name], self._wrong.get(field.name, ())
        has_gaps = bool(wrong) or None in values
        if field.kind == NUMBER and set(map(type, values)) != {int}:
            values = [None if v is None else read_number(v) for v in values]
        elif field.kind == NUMBER and max(map(abs, values)) >= 10**15:
            values = list(map(read_number, values))
            has_gaps = True
        elif field.kind == TEXT and not _TEXTS.issuperset(map(type, values)):
            values = [v if v.__class__ in _TEXTS else text_of(v) for v in values]
        if wrong:
            values = list(values)
            for at in wrong:
                values[at] = INPUT
        return Vector(values, has_gaps or any(type(v) is Failure for v in values))


def evaluate_expression(expression: Expression, columns: Columns) -> Computed:
    """Evaluate an expression for every row of a chunk; never raises.

    A value that is not of its field's type, and that nothing reported as such, makes the expression fail in its row.
    """
    try:
        return _evaluate_all_rows(expression, columns)
    except _UNEXPECTED:
        return _evaluate_row_by_row(expression, columns)


def _evaluate_row_by_row(expression: Expression, columns: Columns) -> Computed:
    """Evaluate each row by itself, so that a row that breaks an operation spoils no other."""
    values: list[Any] = []
    failed: dict[int, Failure] = {}
    for n in range(columns.count):
        try:
            row_result = _evaluate_all_rows(expression, columns.row(n))
        except _UNEXPECTED:
            row_result = Computed([None], {0: INPUT})
        values += row_result.values
        if row_result.failed:
            failed[n] = row_result.failed[0]
    return Computed(values, failed)


def _evaluate_all_rows(expression: Expression, columns: Columns) -> Computed:
    """Evaluate an expression over all rows at once; may raise where a value is not of its field's type."""
    with localcontext(CONTEXT):
        vector = _evaluate_node(expression.tree, columns)
        values = list(vector.values)
        if expression.kind == NUMBER:
            values = [v if v.__class__ in _BLANK_OR_FAILED else write_number(v) for v in values]
        elif expression.kind == TEXT and "" in values:
            values = [None if v == "" else v for v in values]
    failed = {n: v for n, v in enumerate(values) if type(v) is Failure}
    for n in failed:
        values[n] = None
    return Computed(values, failed)


def _evaluate_node(node: Checked, columns: Columns) -> Vector:
    """Evaluate a part of an expression: one value for each row."""
    match node:
        case FieldValue():
            return columns.vector(node)
        case Value():
            return Vector([node.value] * columns.count, node.value is None)
        case CheckedCall():
            arguments = [_evaluate_node(argument, columns) for argument in node.arguments]
            special = _WITH_OWN_BLANKS.get(node.name)
            if special is not None:
                return special(arguments)
            result = _apply_operation(OPERATIONS[node.name], arguments, safe=node.name in SAFE)
            return result if node.name in SAFE else _name_blamed_field(result, node)


def _name_blamed_field(results: Vector, node: CheckedCall) -> Vector:
    """Set the field in fresh failures: the first one of the divisor, or of what is read or counted."""
    if not results.has_gaps or not any(v.__class__ is Failure and v.field is None for v in results.values):
        return results
    parts = node.arguments[1:] if node.name in _DIVISIONS else node.arguments
    field = next((name for part in parts if (name := _first_field(part)) is not None), None)
    blamed = {why: Failure(why, field) for why in {v.why for v in results.values if v.__class__ is Failure}}
    return Vector(
        [blamed[v.why] if v.__class__ is Failure and v.field is None and v is not INPUT else v for v in results.values],
        True,
    )


def _first_field(node: Checked) -> str | None:
    """Return the first field that a part of an expression names; None if it names none."""
    match node:
        case FieldValue():
            return node.name
        case CheckedCall():
            return next((name for argument in node.arguments if (name := _first_field(argument)) is not None), None)
    return None


def _apply_operation(operation: Callable[..., Any], arguments: list[Vector], *, safe: bool) -> Vector:
    """Apply an operation to each row of its arguments; the result is blank or failed where an operand is."""
    if not any(argument.has_gaps for argument in arguments):
        return Vector(list(map(operation, *(argument.values for argument in arguments))), not safe)
    rows = zip(*(argument.values for argument in arguments), strict=True)
    return Vector(
        [operation(*row) if _BLANK_OR_FAILED.isdisjoint(map(type, row)) else _first_failure(row) for row in rows], True
    )


def _first_failure(row: Sequence[Any]) -> Failure | None:
    """Return the first failure of a row's operands; None: they are only blank."""
    return next((value for value in row if type(value) is Failure), None)


def _choose_by_conditions(arguments: list[Vector]) -> Vector:
    """Evaluate `if(condition, value, condition, value, …, other value)` for each row: the value of the first condition
    that holds; blank or failed if a condition before it is.

    Only the chosen value counts, so a condition may keep a division from failing.
    """
    *pairs, other_values = arguments
    conditions, values = pairs[::2], pairs[1::2]
    chosen = list(other_values.values)  # what the conditions behind the one at hand lead to
    for condition, value in zip(reversed(conditions), reversed(values), strict=True):
        rows = zip(condition.values, value.values, chosen, strict=True)
        if _BOOLEANS.issuperset(map(type, condition.values)):
            chosen = [value_here if holds else other for holds, value_here, other in rows]
        else:
            chosen = list(starmap(_choose_for_row, rows))
    return Vector(chosen, any(argument.has_gaps for argument in arguments))


def _choose_for_row(holds: Any, value: Any, other: Any) -> Any:
    """Choose one of two values by a condition; a condition that is blank or a failure is the result itself."""
    if holds is True:
        return value
    return other if holds is False else holds


def _coalesce_columns(arguments: list[Vector]) -> Vector:
    """Evaluate `coalesce`: the first value that is not blank; a failure before it counts, and is never hidden."""
    first, *others = arguments
    values = list(first.values)
    for other in others:
        if None not in values:
            break
        values = [then if value is None else value for value, then in zip(values, other.values, strict=True)]
    return Vector(values, True)


def _concat_columns(arguments: list[Vector]) -> Vector:
    """Evaluate `concat`: the texts of each row put together; blanks count for nothing."""
    return Vector([_concat_row(row) for row in zip(*(argument.values for argument in arguments), strict=True)], True)


def _concat_row(row: Sequence[Any], separator: Any = "") -> Any:
    """Put the values of a row that are there together as one text; blank if none is."""
    parts = [value for value in row if value is not None]
    return next((v for v in parts if type(v) is Failure), None) or (join_texts(parts, separator) if parts else None)


def _join_columns(arguments: list[Vector]) -> Vector:
    """Evaluate `join`: as `concat`, with a separator between the values that are there."""
    separators, *parts = arguments
    rows = zip(*(part.values for part in parts), strict=True)
    return Vector(
        [
            separator if type(separator) is Failure else _concat_row(row, separator or "")
            for separator, row in zip(separators.values, rows, strict=True)
        ],
        True,
    )


def _and_columns(arguments: list[Vector]) -> Vector:
    """Evaluate `and`: a false left side decides, whatever the right one is; then a false right side, a failure, a
    blank."""
    left, right = arguments
    rows = zip(left.values, right.values, strict=True)
    are_plain = _BOOLEANS.issuperset(map(type, left.values))
    return Vector(
        [a and b for a, b in rows] if are_plain else list(starmap(_and_values, rows)), left.has_gaps or right.has_gaps
    )


def _and_values(left: Any, right: Any) -> Any:
    """Combine two values of one row by `and`: true, false, blank (None) or a failure."""
    if left is False or type(left) is Failure:
        return left
    if left is True:
        return right
    return None if right is True else right  # the left one is blank


def _or_columns(arguments: list[Vector]) -> Vector:
    """Evaluate `or` with three values: true if one side is, blank if that depends on a blank."""
    left, right = arguments
    rows = zip(left.values, right.values, strict=True)
    are_plain = _BOOLEANS.issuperset(map(type, left.values))
    return Vector(
        [a or b for a, b in rows] if are_plain else list(starmap(_or_values, rows)), left.has_gaps or right.has_gaps
    )


def _or_values(left: Any, right: Any) -> Any:
    """Combine two values of one row by `or`: true, false, blank (None) or a failure."""
    if left is True or type(left) is Failure:
        return left
    if left is False:
        return right
    return None if right is False else right  # the left one is blank


def _is_blank(arguments: list[Vector]) -> Vector:
    """Evaluate `is blank`; a failure stays one."""
    (operand,) = arguments
    return Vector([v if type(v) is Failure else v is None for v in operand.values], operand.has_gaps)


def _is_not_blank(arguments: list[Vector]) -> Vector:
    """Evaluate `is not blank`; a failure stays one."""
    (operand,) = arguments
    return Vector([v if type(v) is Failure else v is not None for v in operand.values], operand.has_gaps)


def _is_in(arguments: list[Vector]) -> Vector:
    """Evaluate `in`: whether a value is one of those listed; blanks among these count for nothing."""
    return Vector([_is_listed(row) for row in zip(*(argument.values for argument in arguments), strict=True)], True)


def _is_not_in(arguments: list[Vector]) -> Vector:
    """Evaluate `not in`; blanks and failures stay."""
    listed = _is_in(arguments)
    return Vector([v if v.__class__ in _BLANK_OR_FAILED else not v for v in listed.values], True)


def _is_listed(row: Sequence[Any]) -> Any:
    """Whether the first value of a row is among the others; a failure if one of them is, else None if the value is
    blank."""
    value, *listed = row
    failed = _first_failure(row)
    if failed is not None or value is None:
        return failed
    return value in listed


_WITH_OWN_BLANKS: Final[dict[str, Callable[[list[Vector]], Vector]]] = {
    "choose": _choose_by_conditions,
    "coalesce": _coalesce_columns,
    "concat": _concat_columns,
    "join": _join_columns,
    "both": _and_columns,
    "either": _or_columns,
    "is_blank": _is_blank,
    "is_not_blank": _is_not_blank,
    "is_in": _is_in,
    "is_not_in": _is_not_in,
}
IMPLEMENTED: Final = frozenset({*OPERATIONS, *_WITH_OWN_BLANKS})
