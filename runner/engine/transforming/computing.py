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


class Failed(NamedTuple):
    """Rows of a chunk in which a field could not be computed, by index, and the finding about them."""

    indexes: list[int]
    code: str
    what: str
    rule: str
    field: str | None = None  # the used one that is to blame


class Made(NamedTuple):
    """A computed column: its values, the cells that are not of the field's type, and what is to be reported."""

    values: list[Any]
    wrong: list[int]
    failed: list[Failed]
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


def group_failures(failed: Mapping[int, Failure]) -> Iterator[tuple[list[int], str, str | None]]:
    """Group the rows in which an expression failed: yields their indexes, why, and the field that is to blame (None:
    none)."""
    by_reason: dict[tuple[str, str | None], list[int]] = {}
    for index, failure in failed.items():
        by_reason.setdefault((failure.why, failure.field), []).append(index)
    for (why, field), indexes in by_reason.items():
        yield indexes, why, field


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

    def in_turns(self, late: Collection[str]) -> tuple[list[str], list[str]]:
        """Split the computed fields: those before and those after the fields whose Python rule needs other fields
        (`late`)."""
        before: list[str] = []
        after: list[str] = []
        for name in self.order:
            waits = any(used in late or used in after for used in self._uses[name])
            (after if waits else before).append(name)
        return before, after

    def uses(self, name: str) -> Sequence[str]:
        """Return the fields that a computed field is computed from, from left to right."""
        return self._uses[name]

    def compute(self, name: str, columns: Columns, out: Mapping[str, list[Any]]) -> Made:
        """Compute a field for the rows of a chunk; `out`: the values of all fields so far. Nothing is changed."""
        if name in self._joins:
            return self._joins[name].values_of_keys(out[self._joins[name].key])
        expression = self._expressions[name]
        done = evaluate_expression(expression, columns)
        failed: list[Failed] = []
        for rows, why, blame in group_failures(done.failed):
            if why != INPUT.why:
                failed.append(Failed(rows, "expression_error", f"the expression {why}", "from", blame))
                continue
            blamed = {row: columns.first_wrong(expression.fields, row) for row in rows}
            for field in dict.fromkeys(blamed.values()):
                what = (
                    f"the expression {why}"
                    if field is None
                    else f"the expression uses {field}, which is not valid here"
                )
                here = [row for row in rows if blamed[row] == field]
                failed.append(Failed(here, "expression_error", what, "from", field))
        return Made(done.values, [], failed)


class LookupJoin:
    """Brings a column of a lookup table to the rows whose key it has."""

    def __init__(self, field: Field, source: FieldSource, lookups: Lookups, findings: Findings) -> None:
        """Read the lookup table; reports a table that is not there, and how its column was read."""
        options = source.options
        self.key: str = options["key"]
        self._name: str = options["lookup"]
        self._match: str = options["match"]
        self._values: dict[Any, tuple[Any, bool]] = {}  # key -> value, whether it is of the field's type
        self._twins: set[Any] = set()  # keys of several rows with different values
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
            known = self._values.setdefault(folded, (value, n in wrong))
            if known[0] != value:
                self._twins.add(folded)

    def values_of_keys(self, keys: Sequence[Any]) -> Made:
        """Look up the values of some rows by their keys; blank where there is no key, no row, or rows that differ."""
        if self._absent:
            return Made([None] * len(keys), [], [])
        values: list[Any] = [None] * len(keys)
        wrong: list[int] = []
        missing: list[int] = []
        unclear: list[int] = []
        for n, key in enumerate(keys):
            if key is None:
                continue
            folded = fold(key)
            if folded in self._twins:
                unclear.append(n)
            elif (known := self._values.get(folded)) is None:
                missing.append(n)
            else:
                values[n] = known[0]
                if known[1]:
                    wrong.append(n)
        rule = f"lookup:{self._name}.{self._match}"
        is_missing = f"is not in column {self._match} of {self._name}"
        is_unclear = f"is in several rows of {self._name}, and they differ"
        failed = [
            Failed(missing, "lookup_missing", is_missing, rule),
            Failed(unclear, "lookup_ambiguous", is_unclear, rule),
        ]
        return Made(values, wrong, failed, is_typed=True)


class MappedValues:
    """Applies the value map of a field to the cells of its column."""

    def __init__(self, value_map: ValueMap) -> None:
        self._map = value_map
        self._known: dict[str, str] = {}  # text of a cell -> the same folded, as the map has it

    def apply(self, raw: Sequence[Any]) -> tuple[dict[int, Any], list[Any], list[int]]:
        """Map the cells of a column: return the mapped values by index, the column with blanks for them, and the
        indexes of cells to report as not mapped."""
        value_map, known = self._map, self._known
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
        return mapped, unmapped, unknown


_NO_VALUES: Final = frozenset({CellError, NoCachedValue})
