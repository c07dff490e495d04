"""Pass 4: the declared rules of fields and rows, checked a chunk at a time.

Each check first tests the whole chunk in one fast call and locates the offending cells only if there are any.
Unique values are kept as 64-bit hashes that differ from run to run; among a million values, two collide about once in
thirty million runs.
"""

import operator
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from runner.engine.common.fields import Field, bound
from runner.engine.common.findings import FindingPlace, Findings
from runner.engine.options import DeclaredRule, RowComparison
from runner.engine.reading import CellError
from runner.engine.values.convert import fold, text_of

# How a message names a value of each type.
_A_VALID: Final = {
    "integer": "a whole number", "decimal": "a number", "money": "an amount of money", "percent": "a percentage",
    "boolean": "a yes/no value", "date": "a valid date", "datetime": "a valid date and time",
    "time": "a valid time of day", "email": "a valid email address", "phone": "a valid phone number",
    "url": "a valid web address",
}  # fmt: skip


class Origin:
    """The source rows of a chunk, and their table."""

    __slots__ = ("errors", "findings", "place", "rows")

    def __init__(self, findings: Findings, place: FindingPlace, rows: list[int]) -> None:
        self.findings = findings
        self.place = place
        self.rows = rows
        self.errors: dict[int, list[tuple[int | None, str | None, str, str]]] = {}  # index -> what is wrong there

    def flag(
        self,
        indexes: Iterable[int],
        code: str,
        severity: str,
        message: str,
        *,
        column: int | None,
        field: str | None,
        rule: str | None,
        file: str | None = None,
        line: int | None = None,
    ) -> None:
        """Add a finding for each index, at the cell in `column` (1-based, in the sheet)."""
        for i in indexes:
            if severity == "error":
                self.errors.setdefault(i, []).append((column, field, code, message))
            self.findings.add(
                code, severity, message, place=self.place, row=self.rows[i], column=column, field=field,
                rule=rule, file=file, line=line,
            )  # fmt: skip


Report = Callable[..., None]  # flags cells: their indexes, a code, what is wrong with them, and the rule that says so


class FieldChecks:
    """Checks the chunks of one field across all tables of a job."""

    def __init__(self, field: Field, allowed: frozenset[Any] | None) -> None:
        self.field = field
        self._allowed = allowed
        self._known: set[Any] = {None}  # values already found to be allowed
        self._seen = SeenValues() if field.unique else None

    def check(self, values: list[Any], bad: list[int], origin: Origin, column: int | None) -> None:
        """Report every cell that breaks a rule. `bad`: cells not of the type, to which only `required` applies."""
        field, skip = self.field, set(bad)
        report = partial(self._report, origin, column)
        if bad:
            self._types(values, bad, report)
        if field.required and None in values:
            report([i for i, v in enumerate(values) if v is None], "required", what="is blank")
        if field.pattern is not None:
            self._patterns(field.pattern, values, skip, report)
        if field.min is not None or field.max is not None:
            self._bounds(values, skip, report)
        if field.min_length is not None or field.max_length is not None:
            self._lengths(values, skip, report)
        if self._allowed is not None:
            self._members(values, skip, report)
        if self._seen is not None:
            again = self._seen.repeats(_without_errors(values, skip))
            report(again, "duplicate", what="duplicates a value in an earlier row", rule="unique")

    def _report(
        self, origin: Origin, column: int | None, cells: Sequence[int], code: str, *, what: str, rule: str = ""
    ) -> None:
        """Flag cells of this field; a rule that is not named is called like the code."""
        field = self.field
        origin.flag(cells, code, field.severity, what, column=column, field=field.name, rule=rule or code)

    def _types(self, values: list[Any], bad: list[int], report: Report) -> None:
        field = self.field
        what = f"is not {_A_VALID.get(field.type, 'a valid ' + field.type)}"
        what += " in the given formats" if field.formats else ""
        untyped = [i for i in bad if type(values[i]) is not CellError]  # an error cell has a finding of its own
        report(untyped, "type_error", what=what, rule=f"type:{field.type}")

    def _patterns(self, pattern: re.Pattern[str], values: list[Any], skip: set[int], report: Report) -> None:
        match = pattern.fullmatch
        off = [
            i
            for i, v in enumerate(values)
            if v is not None and i not in skip and match(v if type(v) is str else text_of(v)) is None
        ]
        report(off, "pattern", what=f"does not match {pattern.pattern}")

    def _bounds(self, values: list[Any], skip: set[int], report: Report) -> None:
        low, high = self.field.min, self.field.max
        present = values if not skip and None not in values else [
            v for i, v in enumerate(values) if v is not None and i not in skip
        ]  # fmt: skip
        if not present:
            return
        for limit, name, extreme in ((low, "min", min), (high, "max", max)):
            if limit is None or not _beyond(extreme(present), limit, name):
                continue
            off = [i for i, v in enumerate(values) if v is not None and i not in skip and _beyond(v, limit, name)]
            report(off, name, what=f"is {'below' if name == 'min' else 'above'} {limit}")

    def _lengths(self, values: list[Any], skip: set[int], report: Report) -> None:
        low, high = self.field.min_length or 0, self.field.max_length
        for i, v in enumerate(values):
            if v is None or i in skip:
                continue
            size = len(v if type(v) is str else text_of(v))
            if size < low:
                report([i], "min_length", what=f"is shorter than {low} characters")
            elif high is not None and size > high:
                report([i], "max_length", what=f"is longer than {high} characters")

    def _members(self, values: list[Any], skip: set[int], report: Report) -> None:
        try:
            strange = set(values) - self._known
        except TypeError:
            return
        if not strange:
            return
        allowed = self._allowed or frozenset()
        fine = {v for v in strange if fold(v) in allowed}
        if len(self._known) < 50_000:
            self._known |= fine
        strange -= fine
        off = [i for i, v in enumerate(values) if v in strange and i not in skip] if strange else []
        lookup = self.field.lookup
        if lookup:
            what, rule = f"is not in column {lookup[1]} of {lookup[0]}", f"lookup:{lookup[0]}.{lookup[1]}"
        else:
            what, rule = "is not one of the allowed values", "allowed"
        report(off, "not_allowed", what=what, rule=rule)


def _without_errors(values: list[Any], skip: set[int]) -> list[Any]:
    """The values, with cells of spreadsheet errors taken for blank."""
    if not skip:
        return values
    return [None if i in skip and type(v) is CellError else v for i, v in enumerate(values)]


def _beyond(value: Any, bound: Any, name: str) -> bool:
    return bool(value < bound if name == "min" else value > bound)


IN_SET: Final = 1_100_000  # a set costs some 90 bytes an entry, a sorted array 8; most sheets are shorter than this


def _key(value: Any) -> int:
    """The hash of a value; a number has the same one as 5, as 5.0 and as text."""
    return hash(f"\0{int(value) if type(value) is float and value.is_integer() else value!r}")


class SeenValues:
    """The values of a unique field seen so far."""

    def __init__(self, in_set: int = IN_SET) -> None:
        self._in_set = in_set
        self._fresh: set[int] = set()
        self._runs: list[array[int]] = []

    def repeats(self, values: Sequence[Any]) -> list[int]:
        """The indexes of values seen before, in this chunk or an earlier one; blanks never count."""
        keys = [v if v is None else hash(v) if type(v) is str else _key(v) for v in values]
        fresh = self._fresh
        if not self._runs:  # most chunks contain only new values
            batch = {k for k in keys if k is not None}
            if len(batch) == len(keys) and fresh.isdisjoint(batch):
                fresh |= batch
                self._settle()
                return []
        found = []
        for i, key in enumerate(keys):
            if key is None:
                continue
            if key in fresh or (self._runs and self._in_runs(key)):
                found.append(i)
            else:
                fresh.add(key)
        self._settle()
        return found

    def _in_runs(self, key: int) -> bool:
        for run in self._runs:
            at = bisect_left(run, key)
            if at < len(run) and run[at] == key:
                return True
        return False

    def _settle(self) -> None:
        if len(self._fresh) < self._in_set:
            return
        run = array("q", sorted(self._fresh))
        self._fresh = set()
        if self._runs and len(self._runs) >= 8:
            for old in self._runs:
                run.extend(old)
            run = array("q", sorted(run))
            self._runs = []
        self._runs.append(run)


_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_EQUALITY: Final = frozenset({"==", "!=", "in", "not in"})


class FieldComparison:
    """One side of a rule: a field, an operator, and a constant or another field.

    Rows where a compared cell is blank or not of its type are skipped: `required` and `type_error` report those.
    """

    def __init__(self, rule: RowComparison, fields: Mapping[str, Field]) -> None:
        self.field, self.op, self.other = rule.field, rule.op, rule.other
        kind, value = fields[self.field].type, rule.value
        self.value = frozenset(fold(bound(kind, v)) for v in value) if isinstance(value, list) else bound(kind, value)

    def test(self, columns: Mapping[str, list[Any]], n: int) -> bool | None:
        """Whether row `n` satisfies it; None if it cannot be compared."""
        left = columns[self.field][n]
        if self.op == "empty":
            return left is None
        if self.op == "present":
            return left is not None
        right = columns[self.other][n] if self.other else self.value
        if left is None or right is None:
            return None
        if isinstance(right, frozenset):
            return (fold(left) in right) is (self.op == "in")
        try:
            return _COMPARE[self.op](left, right)
        except TypeError:
            return None


class RowCheck:
    def __init__(self, rule: DeclaredRule, fields: Mapping[str, Field]) -> None:
        self.name = rule.name
        self.when = None if rule.when is None else FieldComparison(rule.when, fields)
        self.then = FieldComparison(rule.then, fields)
        self.severity = rule.severity
        then = self.then
        against = f" {then.other}" if then.other else ""
        self.message = rule.message or f"{then.field} {then.op}{against} does not hold"

    def check(self, columns: Mapping[str, list[Any]], count: int, origin: Origin, column: int | None) -> None:
        off = []
        for n in range(count):
            if self.when is not None and self.when.test(columns, n) is not True:
                continue
            if self.then.test(columns, n) is False:
                off.append(n)
        origin.flag(off, "row_rule", self.severity, self.message, column=column, field=self.then.field, rule=self.name)
