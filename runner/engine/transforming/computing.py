"""Values that come from elsewhere than one column: expressions, lookup tables, several columns at once, value maps.

All of it is declared in the manifest and needs no Python. What cannot be computed is blank and reported, never guessed.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from runner.engine.common.fields import Field, FieldSource, ValueMap
from runner.engine.common.findings import FindingPlace, Findings
from runner.engine.contract import EndCode
from runner.engine.expressions.evaluation import Columns, evaluate_expression
from runner.engine.expressions.grammar import ExpressionError
from runner.engine.expressions.operations import INPUT, Failure
from runner.engine.expressions.signatures import CircularFields, Expression, compile_expression, sort_computed
from runner.engine.protocol import EngineStop
from runner.engine.reading import CellError, NoCachedValue
from runner.engine.tables.lookups import Lookups
from runner.engine.values.convert import Converter, fold
from runner.engine.values.decisions import decide_convention, tally_values

_MEMO: Final = 50_000  # different cells whose mapped values are kept


class RowRemark(NamedTuple):
    """A finding on cells of an output column, held back until it is known which of the rows stay."""

    column: int  # of the output
    indexes: Sequence[int]
    code: str
    what: str
    rule: str
    points_at: int | None = None  # the output column whose cells to name; None: the one that it is about


class FailedRows(NamedTuple):
    """Rows of a chunk in which a field could not be computed, by index, and the finding about them."""

    indexes: list[int]
    code: str
    what: str
    rule: str
    field: str | None = None  # the used one that is to blame


class ComputedColumn(NamedTuple):
    """A computed column: its values, the cells that are not of the field's type, and what is to be reported."""

    values: list[Any]
    wrong: list[int]
    failed: list[FailedRows]
    is_typed: bool = False  # those of the field's type are converted


def compile_declared(text: str, types: Mapping[str, str], place: str) -> Expression:
    """Compile an expression of the manifest; raises EngineStop, which names `place`, if it cannot be used.

    `types`: of the fields that it may use. It was checked when the manifest was read.
    """
    try:
        return compile_expression(text, types)
    except ExpressionError as error:
        raise EngineStop(
            EndCode.CONFIG_REFUSED, f"{place} {error.problem} (at character {error.at})", remedy=error.allowed
        ) from None


class FailedAlike(NamedTuple):
    """Rows of a chunk in which an expression failed for the same reason."""

    indexes: list[int]
    why: str
    field: str | None  # that is to blame


def group_failures(failed: Mapping[int, Failure]) -> Iterator[FailedAlike]:
    """Group the rows in which an expression failed, by reason and by the field that is to blame."""
    by_reason: dict[tuple[str, str | None], list[int]] = {}
    for index, failure in failed.items():
        by_reason.setdefault((failure.why, failure.field), []).append(index)
    for (why, field), indexes in by_reason.items():
        yield FailedAlike(indexes, why, field)


class Computations:
    """The computed fields of a job, in an order in which each finds the values that it needs."""

    def __init__(self, fields: Sequence[Field], lookups: Lookups, findings: Findings) -> None:
        """Compile expressions and read lookup tables; raises EngineStop for fields that need each other."""
        self.types = {f.name: f.type for f in fields if f.declared}
        self._expressions: dict[str, Expression] = {}
        self._joins: dict[str, LookupJoin] = {}
        self._uses: dict[str, tuple[str, ...]] = {}  # computed field -> the fields that it is computed from
        for field in fields:
            if field.source is None or not field.is_computed:
                continue
            if field.source.kind == "expression":
                text, place = field.source.options["expression"], f"the expression of field {field.name}"
                self._expressions[field.name] = compile_declared(text, self.types, place)
                self._uses[field.name] = self._expressions[field.name].fields
            else:
                self._joins[field.name] = LookupJoin(field, field.source, lookups, findings)
                self._uses[field.name] = (self._joins[field.name].key,)
        try:
            self.order: Sequence[str] = sort_computed(self._uses)
        except CircularFields as error:
            raise EngineStop(EndCode.CONFIG_REFUSED, f"fields are computed from each other: {error}") from None

    def split_around(self, late_fields: Collection[str]) -> tuple[list[str], list[str]]:
        """Split the computed fields into those to compute before fields whose Python rule is late, and those that need
        one of these."""
        before: list[str] = []
        after: list[str] = []
        for name in self.order:
            waits = any(used in late_fields or used in after for used in self._uses[name])
            (after if waits else before).append(name)
        return before, after

    def uses(self, name: str) -> Sequence[str]:
        """Return the fields that a computed field is computed from, from left to right."""
        return self._uses[name]

    def compute(self, name: str, columns: Columns, values_by_field: Mapping[str, list[Any]]) -> ComputedColumn:
        """Compute a field for the rows of a chunk, from the values of all fields so far, in both forms. Nothing is
        changed."""
        if name in self._joins:
            return self._joins[name].values_of_keys(values_by_field[self._joins[name].key])
        expression = self._expressions[name]
        computed = evaluate_expression(expression, columns)
        failed: list[FailedRows] = []
        for rows, why, to_blame in group_failures(computed.failed):
            if why != INPUT.why:
                failed.append(FailedRows(rows, "expression_error", f"the expression {why}", "from", to_blame))
                continue
            invalid_fields = {row: columns.first_wrong(expression.fields, row) for row in rows}
            for field in dict.fromkeys(invalid_fields.values()):
                what = (
                    f"the expression {why}"
                    if field is None
                    else f"the expression uses {field}, which is not valid here"
                )
                rows_of_field = [row for row in rows if invalid_fields[row] == field]
                failed.append(FailedRows(rows_of_field, "expression_error", what, "from", field))
        return ComputedColumn(computed.values, [], failed)


class _LookupValue(NamedTuple):
    """What a lookup table has for a key."""

    value: Any
    is_wrong: bool  # not of the field's type


class LookupJoin:
    """Brings a column of a lookup table to the rows whose key it has."""

    def __init__(self, field: Field, source: FieldSource, lookups: Lookups, findings: Findings) -> None:
        """Read the lookup table; reports a table that is not there, whose values are then blank, and how its column was
        read."""
        options = source.options
        self.key: str = options["key"]
        self._name: str = options["lookup"]
        self._match: str = options["match"]
        self._values: dict[Any, _LookupValue] = {}  # by the folded key
        self._ambiguous_keys: set[Any] = set()  # of several rows with different values
        if self._name not in lookups:
            findings.add(
                "lookup_absent", "warning", f"{self._name} is not there; field {field.name} comes out empty",
                field=field.name, rule=f"lookup:{self._name}",
            )  # fmt: skip
            self._absent = True
            return
        self._absent = False
        values = lookups.values(self._name, options["column"], field)
        place = FindingPlace(self._name, "", "")
        tally = tally_values(field, values)
        convention, choices = (None, []) if tally is None else decide_convention(field, tally)
        for choice in choices:
            findings.chose(
                choice.kind, choice.chosen, evidence=choice.evidence, sure=choice.sure, code=choice.code,
                message=choice.message, settle=choice.settle, place=place, field=field.name, count=choice.values,
            )  # fmt: skip
        typed, wrong = Converter(field, values, convention).convert(values)
        self._read_lookup(lookups.values(self._name, self._match, field), typed, set(wrong))

    def _read_lookup(self, keys: Sequence[Any], values: Sequence[Any], wrong: set[int]) -> None:
        """Remember the value of each key, and the keys that have several different values.

        `wrong`: indexes of values that are not of the field's type.
        """
        for n, (key, value) in enumerate(zip(keys, values, strict=True)):
            if key is None:
                continue
            folded = fold(key)
            known = self._values.setdefault(folded, _LookupValue(value, n in wrong))
            if known.value != value:
                self._ambiguous_keys.add(folded)

    def values_of_keys(self, keys: Sequence[Any]) -> ComputedColumn:
        """Look up the values of some rows by their keys; blank where there is no key, no row, or rows that differ."""
        if self._absent:
            return ComputedColumn([None] * len(keys), [], [])
        values: list[Any] = [None] * len(keys)
        wrong: list[int] = []
        missing: list[int] = []
        unclear: list[int] = []
        for n, key in enumerate(keys):
            if key is None:
                continue
            folded = fold(key)
            if folded in self._ambiguous_keys:
                unclear.append(n)
            elif (known := self._values.get(folded)) is None:
                missing.append(n)
            else:
                values[n] = known.value
                if known.is_wrong:
                    wrong.append(n)
        rule = f"lookup:{self._name}.{self._match}"
        is_missing = f"is not in column {self._match} of {self._name}"
        is_unclear = f"is in several rows of {self._name}, and they differ"
        failed = [
            FailedRows(missing, "lookup_missing", is_missing, rule),
            FailedRows(unclear, "lookup_ambiguous", is_unclear, rule),
        ]
        return ComputedColumn(values, wrong, failed, is_typed=True)


class MappedCells(NamedTuple):
    """The cells of a column, split by what its value map says about them."""

    mapped: dict[int, Any]  # index -> the value that the map has for the cell
    unmapped: list[Any]  # the column as it was, with blanks for mapped cells
    unknown: list[int]  # indexes of cells to report, because the map lacks them


class MappedValues:
    """Applies the value map of a field to the cells of its column."""

    def __init__(self, value_map: ValueMap) -> None:
        """Remember no cell yet."""
        self._map = value_map
        self._folded_texts: dict[str, str] = {}  # text of a cell -> the same folded, as the map has it

    def apply(self, raw: Sequence[Any]) -> MappedCells:
        """Map the cells of a column; blanks, errors and formulas without a result are never mapped."""
        value_map, known = self._map, self._folded_texts
        mapped: dict[int, Any] = {}
        unmapped: list[Any] = [None] * len(raw)
        unknown: list[int] = []
        for n, cell in enumerate(raw):
            if cell is None or cell.__class__ in _NO_VALUES or (cell.__class__ is str and not cell.strip()):
                unmapped[n] = cell
                continue
            folded = known.get(cell) if cell.__class__ is str else fold(cell)  # 1 and TRUE would be one key
            if folded is None:
                if len(known) > _MEMO:
                    known.clear()
                folded = known[cell] = fold(cell)
            if folded in value_map.values:
                mapped[n] = value_map.values[folded]
            elif value_map.otherwise == "value":
                mapped[n] = value_map.other
            elif value_map.otherwise != "blank":
                unmapped[n] = cell
                if value_map.otherwise == "finding":
                    unknown.append(n)
        return MappedCells(mapped, unmapped, unknown)


_NO_VALUES: Final = frozenset({CellError, NoCachedValue})
