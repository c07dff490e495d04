"""Runs `transform` and `validate` of columns/<field>.py on a chunk of a column."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

from runner.engine.contract import EndCode
from runner.engine.protocol import EngineStop
from runner.engine.reading import CellError, NoCachedValue, Shown
from runner.engine.rules.call import Rule, RuleFailed
from runner.engine.values.checking import Origin
from runner.engine.values.numbers import to_number
from runner.engine.values.words import Bad

_PLAIN: Final = frozenset(
    {type(None), str, int, float, bool, date, datetime, time, timedelta, CellError, NoCachedValue, Shown}
)
LARGEST: Final = 1.7976931348623157e308  # what a number of a spreadsheet can be
_GIVE_UP_AFTER: Final = 32  # consecutive failures after which a rule fails for the whole chunk
SEVERITIES: Final = ("error", "warning", "info")


@dataclass(slots=True)
class Cells:
    """A chunk of a column for the rules of its field; `others`: all fields of the same rows."""

    origin: Origin
    column: int | None
    field: str
    given: dict[str, Any]
    _: KW_ONLY
    others: Mapping[str, list[Any]]
    strict: bool

    def transform(self, rule: Rule, values: list[Any]) -> list[Any]:
        """The values after the rule; cells on which it failed keep their values."""
        if "value" in rule.wants:
            return [self._one(rule, v, n, v, self._transformed) for n, v in enumerate(values)]

        def whole(part: list[Any], at: int) -> list[Any]:
            given = rule.call(**self.given, **self._beside(rule, at, len(part)), values=part)
            return self._transformed_list(rule, given, len(part), at)

        return self._chunk(values, whole, list)

    def validate(self, rule: Rule, values: list[Any]) -> None:
        if "value" in rule.wants:
            for n, v in enumerate(values):
                self._one(rule, v, n, None, self._validated)
            return

        def whole(part: list[Any], at: int) -> list[Any]:
            given = rule.call(**self.given, **self._beside(rule, at, len(part)), values=part)
            self._issues(rule, given, len(part), at)
            return []

        self._chunk(values, whole, lambda _: [])

    def _beside(self, rule: Rule, at: int, size: int) -> dict[str, Any]:
        """The arguments that describe the rows of the values."""
        beside: dict[str, Any] = {"rows": self.origin.rows[at : at + size]}
        if rule.sees_others:
            beside["columns"] = {name: values[at : at + size] for name, values in self.others.items()}
        return beside

    def _one(self, rule: Rule, value: Any, n: int, instead: Any, use: Callable[[Rule, Any, int], Any]) -> Any:
        try:
            beside: dict[str, Any] = {"row": self.origin.rows[n]}
            if rule.sees_others:
                beside["record"] = {name: values[n] for name, values in self.others.items()}
            return use(rule, rule.call(**self.given, **beside, value=value), n)
        except RuleFailed as failure:
            self.failed(failure, [n])
            return instead

    def _chunk(
        self,
        values: list[Any],
        whole: Callable[[list[Any], int], list[Any]],
        instead: Callable[[list[Any]], list[Any]],
    ) -> list[Any]:
        """Call the rule for the chunk; if that fails, cell by cell, so that it fails only for some cells."""
        try:
            return whole(list(values), 0)
        except RuleFailed as failure:
            if self.strict or len(values) == 1:
                self.failed(failure, range(len(values)))
                return instead(values)
        out: list[Any] = []
        streak = 0
        for n, value in enumerate(values):
            try:
                out += whole([value], n)
                streak = 0
            except RuleFailed as failure:
                streak += 1
                if streak >= _GIVE_UP_AFTER and streak == n + 1:
                    self.failed(failure, range(n, len(values)))
                    return out + instead(values[n:])
                self.failed(failure, [n])
                out += instead([value])
        return out

    def failed(self, failure: RuleFailed, indexes: "range | list[int]") -> None:
        """Add a finding per cell, or end the job if the manifest asks for it."""
        rule = failure.rule
        if self.strict:
            row = self.origin.rows[indexes[0]]
            raise stop(failure, self.origin, self.column, self.field, row)
        if self.column is None:
            what = f"{failure.message}; no column was found for {self.field}, so it gets blanks"
            self.origin.findings.add(
                "rule_error", "error", what,
                place=self.origin.place, row=self.origin.rows[indexes[0]], field=self.field, rule=rule.name,
                file=rule.file, line=failure.line, count=len(indexes),
            )  # fmt: skip
            return
        self.origin.flag(
            indexes, "rule_error", "error", failure.message, column=self.column, field=self.field,
            rule=rule.name, file=rule.file, line=failure.line,
        )  # fmt: skip

    def _transformed(self, rule: Rule, given: Any, n: int) -> Any:
        if isinstance(given, dict):
            _known_keys(rule, given, "value", "warning")
            if given.get("warning") is not None:
                self._issue(rule, {"index": 0, "message": given["warning"], "severity": "warning"}, 1, n, "warning")
            given = given["value"]
        elif given is None and rule.returns == "never":
            raise _wrong(rule, "returned nothing: it has no return statement", "return the value, or None for a blank")
        return plain_value(rule, given)

    def _transformed_list(self, rule: Rule, given: Any, size: int, at: int) -> list[Any]:
        warnings: Any = ()
        if isinstance(given, dict):
            _known_keys(rule, given, "values", "warnings")
            warnings = given.get("warnings") or ()
            given = given["values"]
        if not isinstance(given, (list, tuple)):
            raise _wrong(
                rule,
                f"returned {rule.class_of(given)}",
                'return {"values": [...]}, one value per value given',
            )
        if len(given) != size:
            what = f"returned {len(given)} values for {size}"
            raise _wrong(rule, what, "return exactly one value per value given, None for a blank")
        kinds = set(map(type, given))
        if not kinds <= _PLAIN or not kinds.isdisjoint((float, int)):
            given = [plain_value(rule, v) for v in given]
        for warning in warnings:
            self._issue(rule, warning, size, at, "warning")
        return list(given)

    def _validated(self, rule: Rule, given: Any, n: int) -> None:
        if given is None or given is True:
            return
        if given is False:
            given = {}
        elif isinstance(given, str):
            given = {"message": given}
        if isinstance(given, dict) and "issues" in given:
            self._issues(rule, given, 1, n)
        else:
            self._issue(rule, {"index": 0, **given} if isinstance(given, dict) else given, 1, n, "error")

    def _issues(self, rule: Rule, given: Any, size: int, at: int) -> None:
        if isinstance(given, dict) and given:
            _known_keys(rule, given, "issues")
        issues = given.get("issues") if isinstance(given, dict) else given
        if issues is None:
            return
        if not isinstance(issues, (list, tuple)):
            what = f"returned {rule.class_of(given)}"
            raise _wrong(rule, what, 'return {"issues": [{"index": 0, "message": "..."}]} or None')
        for issue in issues:
            self._issue(rule, issue, size, at, "error")

    def _issue(self, rule: Rule, issue: Any, size: int, at: int, severity: str) -> None:
        if not isinstance(issue, dict) or type(issue.get("index")) is not int:
            raise _wrong(rule, "returned an issue without an index", 'an issue is {"index": 0, "message": "..."}')
        if not 0 <= issue["index"] < size:
            raise _wrong(
                rule,
                f"returned an issue for index {issue['index']} of {size}",
                "count from 0 within `values`",
            )
        level = issue.get("severity") or severity
        if level not in SEVERITIES:
            raise _wrong(rule, "returned an unknown severity", f"severity is one of {', '.join(SEVERITIES)}")
        code = rule.literal(issue.get("code")) or ("rule_issue" if severity == "error" else "rule_warning")
        message = rule.literal(issue.get("message"))
        if message is None:
            given = issue.get("message") is not None
            message = "the rule's message is not a literal in its source and is withheld" if given else "does not pass"
        self.origin.flag(
            [at + issue["index"]], code, level, message, column=self.column, field=self.field, rule=rule.name,
            file=rule.file, line=rule.line,
        )  # fmt: skip


def plain_value(rule: Rule, value: Any) -> Any:
    """Check what a rule returned for a cell; anything but a cell value fails the rule."""
    kind = type(value)
    if (kind in (float, int) and not -LARGEST <= value <= LARGEST) or (kind is Decimal and not value.is_finite()):
        raise _wrong(rule, "returned a number that is not finite or too large", "return None for a blank")
    if kind in _PLAIN:
        return value
    if isinstance(value, Decimal):  # keeps digits that a float would lose
        number = to_number(str(value))
        return plain_value(rule, float(value)) if isinstance(number, Bad) else number
    if isinstance(value, (datetime, date)):
        return value
    for kind in (int, float, str):
        if isinstance(value, kind):
            return plain_value(rule, kind(value))
    what = f"returned a value of type {rule.class_of(value)}"
    raise _wrong(rule, what, "return text, a number, a boolean, a date, a time or None")


def _known_keys(rule: Rule, given: dict[Any, Any], wanted: str, *more: str) -> None:
    """Fail a rule whose dict lacks the key that it is about, or has one that nobody reads: a typo would blank cells."""
    keys = ", ".join((wanted, *more))
    if wanted not in given:
        raise _wrong(rule, f"returned a dict without {wanted}", f"its keys are {keys}")
    if len(given) > sum(key in given for key in (wanted, *more)):
        raise _wrong(rule, "returned a dict with an unknown key", f"its keys are {keys}")


def _wrong(rule: Rule, what: str, remedy: str) -> RuleFailed:
    return RuleFailed(rule, what, None, remedy)


def stop(
    failure: RuleFailed, origin: Origin | None, column: int | None, field: str | None, row: int | None
) -> EngineStop:
    from runner.engine.common import a1  # noqa: PLC0415  # only on the way out

    place = origin.place if origin else None
    return EngineStop(
        EndCode.RULE_ERROR,
        failure.message,
        rule=failure.rule.name,
        file=failure.rule.file,
        line=failure.line,
        field=field,
        cell=a1.cell(row, column) if row and column else None,
        input=place.input if place else None,
        sheet=place.sheet if place else None,
        table=place.table if place else None,
        remedy=failure.remedy,
    )
