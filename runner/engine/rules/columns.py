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
from runner.engine.values.checking import CellColumn, ChunkReporter
from runner.engine.values.numbers import to_number
from runner.engine.values.words import Bad

_CELL_KINDS: Final = frozenset(
    {type(None), str, int, float, bool, date, datetime, time, timedelta, CellError, NoCachedValue, Shown}
)
LARGEST_NUMBER: Final = 1.7976931348623157e308  # what a number of a spreadsheet can be
_MAX_STREAK: Final = 32  # consecutive failures after which a rule fails for the whole chunk
SEVERITIES: Final = ("error", "warning", "info")


@dataclass(slots=True)
class Cells:
    """Calls the rules of a field for a chunk of its column, and reports what they find and where they fail."""

    reporter: ChunkReporter
    column: CellColumn  # None: the field has none
    field: str
    arguments: dict[str, Any]  # of the rules, but for those about their rows
    _: KW_ONLY
    others: Mapping[str, list[Any]]  # the values of all fields of the same rows
    strict: bool  # a rule that fails ends the job

    def transform(self, rule: Rule, values: list[Any]) -> list[Any]:
        """Return the values after the rule; cells on which it failed stay as they are, and are reported."""
        if "value" in rule.wants:
            transformed = []
            for index, value in enumerate(values):
                try:
                    transformed.append(self._check_value(rule, self._answer_for_cell(rule, value, index), index))
                except RuleFailed as failure:
                    self.report_failure(failure, [index])
                    transformed.append(value)
            return transformed

        def transform_some(some: list[Any], start: int) -> list[Any]:
            """Return some values of the chunk after the rule; `start`: the index of the first."""
            return self._check_values(rule, self._answer_for_some(rule, some, start), len(some), start)

        return self._call_for_chunk(values, transform_some, list)

    def validate(self, rule: Rule, values: list[Any]) -> None:
        """Report what the rule finds wrong with the values, and where it failed."""
        if "value" in rule.wants:
            for index, value in enumerate(values):
                try:
                    self._report_answer(rule, self._answer_for_cell(rule, value, index), index)
                except RuleFailed as failure:
                    self.report_failure(failure, [index])
            return

        def validate_some(some: list[Any], start: int) -> list[Any]:
            """Report what the rule finds wrong with some values of the chunk; `start`: the index of the first. Returns
            nothing."""
            self._report_issues(rule, self._answer_for_some(rule, some, start), len(some), start)
            return []

        self._call_for_chunk(values, validate_some, lambda _: [])

    def _answer_for_cell(self, rule: Rule, value: Any, index: int) -> Any:
        """Call a rule for one cell and return its answer; raises RuleFailed."""
        of_row: dict[str, Any] = {"row": self.reporter.rows[index]}
        if rule.sees_others:
            of_row["record"] = {name: values[index] for name, values in self.others.items()}
        return rule.call(**self.arguments, **of_row, value=value)

    def _answer_for_some(self, rule: Rule, some: list[Any], start: int) -> Any:
        """Call a rule for some values of the chunk, from an index on, and return its answer; raises RuleFailed."""
        end = start + len(some)
        of_rows: dict[str, Any] = {"rows": self.reporter.rows[start:end]}
        if rule.sees_others:
            of_rows["columns"] = {name: values[start:end] for name, values in self.others.items()}
        return rule.call(**self.arguments, **of_rows, values=some)

    def _call_for_chunk(
        self,
        values: list[Any],
        call: Callable[[list[Any], int], list[Any]],
        values_without_rule: Callable[[list[Any]], list[Any]],
    ) -> list[Any]:
        """Call a rule for the chunk; if that fails, cell by cell, so that it fails only for some cells.

        `call`: gets values and the index of the first. `values_without_rule`: makes what comes back for values on which
        the rule failed.
        """
        try:
            return call(list(values), 0)
        except RuleFailed as failure:
            if self.strict or len(values) == 1:
                self.report_failure(failure, range(len(values)))
                return values_without_rule(values)
        results: list[Any] = []
        streak = 0
        for index, value in enumerate(values):
            try:
                results += call([value], index)
                streak = 0
            except RuleFailed as failure:
                streak += 1
                if streak >= _MAX_STREAK and streak == index + 1:
                    self.report_failure(failure, range(index, len(values)))
                    return results + values_without_rule(values[index:])
                self.report_failure(failure, [index])
                results += values_without_rule([value])
        return results

    def report_failure(self, failure: RuleFailed, indexes: "range | list[int]") -> None:
        """Flag the rows on which a rule failed, or raise EngineStop if the manifest asks for it.

        A field without a column gets one finding.
        """
        rule = failure.rule
        if self.strict:
            row = self.reporter.rows[indexes[0]]
            raise stop_for_failure(
                failure, self.reporter, self.reporter.column_of(self.column, indexes[0]), self.field, row
            )
        if self.column is None:
            what = f"{failure.message}; no column was found for {self.field}, so it gets blanks"
            self.reporter.findings.add(
                "rule_error", "error", what,
                place=self.reporter.place, row=self.reporter.rows[indexes[0]], field=self.field, rule=rule.name,
                file=rule.file, line=failure.line, count=len(indexes),
            )  # fmt: skip
            return
        self.reporter.flag(
            indexes, "rule_error", "error", failure.message, column=self.column, field=self.field,
            rule=rule.name, file=rule.file, line=failure.line,
        )  # fmt: skip

    def _check_value(self, rule: Rule, answer: Any, index: int) -> Any:
        """Return the value in a rule's answer for the cell at an index, and report its warning; raises RuleFailed for a
        wrong shape, and for None from a rule that never returns anything."""
        if isinstance(answer, dict):
            _check_keys(rule, answer, "value", "warning")
            if answer.get("warning") is not None:
                warning = {"index": 0, "message": answer["warning"], "severity": "warning"}
                self._report_issue(rule, warning, 1, index, "warning")
            answer = answer["value"]
        elif answer is None and rule.returns == "never":
            what = "returned nothing: it has no return statement"
            raise _fail(rule, what, "return the value, or None for a blank")
        return plain_value(rule, answer)

    def _check_values(self, rule: Rule, answer: Any, size: int, start: int) -> list[Any]:
        """Return the values in a rule's answer for so many cells, and report its warnings; raises RuleFailed for a
        wrong shape."""
        warnings: Any = ()
        if isinstance(answer, dict):
            _check_keys(rule, answer, "values", "warnings")
            warnings = answer.get("warnings") or ()
            answer = answer["values"]
        if not isinstance(answer, (list, tuple)):
            what = f"returned {rule.class_of(answer)}"
            raise _fail(rule, what, 'return {"values": [...]}, one value per value given')
        if len(answer) != size:
            what = f"returned {len(answer)} values for {size}"
            raise _fail(rule, what, "return exactly one value per value given, None for a blank")
        kinds = set(map(type, answer))
        if not kinds <= _CELL_KINDS or not kinds.isdisjoint((float, int)):
            answer = [plain_value(rule, value) for value in answer]
        for warning in warnings:
            self._report_issue(rule, warning, size, start, "warning")
        return list(answer)

    def _report_answer(self, rule: Rule, answer: Any, index: int) -> None:
        """Report what a rule says about one cell: True and None pass, False and a text do not."""
        if answer is None or answer is True:
            return
        if answer is False:
            answer = {}
        elif isinstance(answer, str):
            answer = {"message": answer}
        if isinstance(answer, dict) and "issues" in answer:
            self._report_issues(rule, answer, 1, index)
        else:
            issue = {"index": 0, **answer} if isinstance(answer, dict) else answer
            self._report_issue(rule, issue, 1, index, "error")

    def _report_issues(self, rule: Rule, answer: Any, size: int, start: int) -> None:
        """Report the issues in a rule's answer for so many cells; a wrong shape raises RuleFailed."""
        if isinstance(answer, dict) and answer:
            _check_keys(rule, answer, "issues")
        issues = answer.get("issues") if isinstance(answer, dict) else answer
        if issues is None:
            return
        if not isinstance(issues, (list, tuple)):
            what = f"returned {rule.class_of(answer)}"
            raise _fail(rule, what, 'return {"issues": [{"index": 0, "message": "..."}]} or None')
        for issue in issues:
            self._report_issue(rule, issue, size, start, "error")

    def _report_issue(self, rule: Rule, issue: Any, size: int, start: int, severity: str) -> None:
        """Flag the cell of an issue; its index counts from `start` in the chunk, among `size` values.

        `severity`: of an issue that names none. Raises RuleFailed for a wrong shape.
        """
        if not isinstance(issue, dict) or type(issue.get("index")) is not int:
            raise _fail(rule, "returned an issue without an index", 'an issue is {"index": 0, "message": "..."}')
        if not 0 <= issue["index"] < size:
            raise _fail(
                rule,
                f"returned an issue for index {issue['index']} of {size}",
                "count from 0 within `values`",
            )
        level = issue.get("severity") or severity
        if level not in SEVERITIES:
            raise _fail(rule, "returned an unknown severity", f"severity is one of {', '.join(SEVERITIES)}")
        code = rule.literal_only(issue.get("code")) or ("rule_issue" if severity == "error" else "rule_warning")
        message = rule.literal_only(issue.get("message"))
        if message is None:
            has_message = issue.get("message") is not None
            withheld = "the rule's message is not a literal in its source and is withheld"
            message = withheld if has_message else "does not pass"
        self.reporter.flag(
            [start + issue["index"]], code, level, message, column=self.column, field=self.field, rule=rule.name,
            file=rule.file, line=rule.line,
        )  # fmt: skip


def plain_value(rule: Rule, value: Any) -> Any:
    """Convert what a rule returned for a cell to a cell value; raises RuleFailed for anything else."""
    kind = type(value)
    if (kind in (float, int) and not -LARGEST_NUMBER <= value <= LARGEST_NUMBER) or (
        kind is Decimal and not value.is_finite()
    ):
        raise _fail(rule, "returned a number that is not finite or too large", "return None for a blank")
    if kind in _CELL_KINDS:
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
    raise _fail(rule, what, "return text, a number, a boolean, a date, a time or None")


def _check_keys(rule: Rule, answer: dict[Any, Any], needed: str, *more: str) -> None:
    """Raise RuleFailed for a dict that lacks the key `needed`, or has one that nobody reads: a typo would blank
    cells."""
    keys = ", ".join((needed, *more))
    if needed not in answer:
        raise _fail(rule, f"returned a dict without {needed}", f"its keys are {keys}")
    if len(answer) > sum(key in answer for key in (needed, *more)):
        raise _fail(rule, "returned a dict with an unknown key", f"its keys are {keys}")


def _fail(rule: Rule, what: str, remedy: str) -> RuleFailed:
    """Make the failure of a rule that returned something wrong, for the caller to raise."""
    return RuleFailed(rule, what, None, remedy)


def stop_for_failure(
    failure: RuleFailed, reporter: ChunkReporter | None, column: int | None, field: str | None, row: int | None
) -> EngineStop:
    """Make the end of a job whose manifest lets no rule fail, at the cell if one is known."""
    from runner.engine.common import a1  # noqa: PLC0415  # only on the way out

    place = reporter.place if reporter else None
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
