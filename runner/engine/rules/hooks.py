"""Calls hooks and row_types detectors, and validates their answers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Final, NamedTuple

from runner.engine.common.findings import Findings
from runner.engine.contract import EndCode
from runner.engine.protocol import EngineStop
from runner.engine.rules.call import Rule, RuleFailed
from runner.engine.rules.columns import SEVERITIES, plain_value, stop_for_failure
from runner.engine.rules.load import ROW_LABELS, RulePackage

CELLS_FOR_RULES = 50  # cells of a row that rules get
RowScores = Callable[[int, Sequence[object]], Mapping[str, float]]


class HookIssue(NamedTuple):
    """What a hook finds wrong with a row of a chunk."""

    rule: Rule
    row_index: int  # in the chunk
    field: str | None
    code: str
    severity: str
    message: str


class Hooks:
    """The hooks of a package, with the arguments that all rules of a job share."""

    def __init__(self, package: RulePackage, findings: Findings, shared: dict[str, Any], *, strict: bool) -> None:
        """Know the hooks of a package; `shared`: arguments of all rules. `strict`: a hook that fails ends the job."""
        self._package = package
        self._findings = findings
        self._strict = strict
        self.shared = shared

    def has(self, name: str) -> bool:
        """Whether the package has a hook of this name."""
        return bool(self._package.hooks[name])

    def answers(self, name: str, **arguments: Any) -> Iterator[tuple[Rule, Any]]:
        """Call each hook of this name and yield what it returned; one that fails is reported and skipped."""
        for rule in self._package.hooks[name]:
            try:
                answer = rule.call(**self.shared, **arguments)
                if answer is not None and not isinstance(answer, dict):
                    what = f"returned {rule.class_of(answer)}"
                    raise RuleFailed(rule, what, None, "a hook returns None or a dict")
            except RuleFailed as failure:
                self.report_failure(failure)
                continue
            if unknown := set(answer or ()) - ANSWERS.get(name, frozenset(answer or ())):
                supported = ", ".join(sorted(ANSWERS[name]))
                what = f"returned {len(unknown)} keys that {name} does not support"
                self.report_failure(RuleFailed(rule, what, None, f"{name} supports: {supported}"))
            if answer:
                yield rule, answer

    def report_failure(self, failure: RuleFailed) -> None:
        """Report a hook that failed, or raise EngineStop if the manifest asks for it."""
        if self._strict:
            raise stop_for_failure(failure, None, None, None, None)
        rule = failure.rule
        self._findings.add("rule_error", "error", failure.message, rule=rule.name, file=rule.file, line=failure.line)

    def notify(self, name: str, **arguments: Any) -> None:
        """Call the hooks of this name, whose answers do not matter; one that fails is reported."""
        for _ in self.answers(name, **arguments):
            pass

    def skipped_tables(self, tables: list[dict[str, Any]]) -> set[str]:
        """Call after_structure, and return the ids of the tables that it skips: {"skip": [table ids]}."""
        table_ids = {table["id"] for table in tables}
        skip: set[str] = set()
        for rule, answer in self.answers("after_structure", tables=tables):
            ids = answer.get("skip", [])
            if not isinstance(ids, list) or not set(map(str, ids)) <= table_ids:
                self.report_failure(
                    RuleFailed(rule, "named tables that do not exist", None, 'return {"skip": [ids from `tables`]}')
                )
                continue
            skip |= set(map(str, ids))
        return skip

    def remapped_columns(self, fields: set[str], columns: set[str], **arguments: Any) -> dict[str, str | None]:
        """Call after_mapping, and return the fields of the columns that it remaps: {"mapping": {"B": "plan", "C":
        None}}."""
        changes: dict[str, str | None] = {}
        for rule, answer in self.answers("after_mapping", **arguments):
            mapping = answer.get("mapping", {})
            is_valid = isinstance(mapping, dict) and all(
                letters in columns and (field is None or field in fields) for letters, field in mapping.items()
            )
            if not is_valid:
                remedy = 'return {"mapping": {column letters: a declared field or None}}'
                self.report_failure(RuleFailed(rule, "named columns or fields that do not exist", None, remedy))
                continue
            combined = {**changes, **mapping}
            mapped = [field for field in combined.values() if field is not None]
            if len(set(mapped)) < len(mapped):
                self.report_failure(
                    RuleFailed(rule, "mapped two columns to one field", None, "map one column to each field")
                )
                continue
            changes = combined
        return changes

    def replaced_columns(self, columns: dict[str, list[Any]], count: int, **arguments: Any) -> dict[str, list[Any]]:
        """Call after_transform, and return the columns that it rewrites, by field; invalid ones are reported and left
        out. `count`: the rows of each column."""
        changes: dict[str, list[Any]] = {}
        for rule, answer in self.answers("after_transform", columns=columns, **arguments):
            new_columns = answer.get("columns", {})
            is_valid = isinstance(new_columns, dict) and all(
                name in columns and isinstance(values, (list, tuple)) and len(values) == count
                for name, values in new_columns.items()
            )
            if not is_valid:
                remedy = f'return {{"columns": {{field: one value per row}}}}; fields are {", ".join(columns)}'
                self.report_failure(RuleFailed(rule, "returned columns with a wrong name or length", None, remedy))
                continue
            try:
                changes |= {
                    name: [plain_value(rule, value) for value in values] for name, values in new_columns.items()
                }
            except RuleFailed as failure:
                self.report_failure(failure)
        return changes

    def row_issues(self, count: int, fields: set[str], **arguments: Any) -> Iterator[HookIssue]:
        """Call after_validate, and yield the issues that it adds: {"issues": [{"index", "field", "message", …}]}."""
        for rule, answer in self.answers("after_validate", **arguments):
            for issue in answer.get("issues") or ():
                index = issue.get("index") if isinstance(issue, dict) else None
                if type(index) is not int or not 0 <= index < count or issue.get("field") not in {*fields, None}:
                    remedy = 'an issue is {"index": row within `rows`, "field": name, "message": "..."}'
                    self.report_failure(RuleFailed(rule, "returned an issue of a wrong shape", None, remedy))
                    break
                severity = issue.get("severity") if issue.get("severity") in SEVERITIES else "error"
                code = rule.literal_only(issue.get("code")) or "rule_issue"
                message = rule.literal_only(issue.get("message")) or "does not pass"
                yield HookIssue(rule, index, issue.get("field"), code, str(severity), message)

    def extra_sheets(self) -> Iterator[tuple[str, list[list[Any]]]]:
        """Call finalize, and yield name and rows of the extra sheets: {"sheets": {name: rows, the first being the
        header}}. Raises EngineStop for one that is too long."""
        for rule, answer in self.answers("finalize"):
            sheets = answer.get("sheets", {})
            remedy = 'return {"sheets": {"Totals": [["plan", "members"], ["A", 3]]}}'
            if not isinstance(sheets, dict):
                self.report_failure(RuleFailed(rule, "returned sheets of a wrong shape", None, remedy))
                continue
            for name, rows in sheets.items():
                if not isinstance(rows, list) or not rows or not all(isinstance(row, (list, tuple)) for row in rows):
                    self.report_failure(RuleFailed(rule, "returned a sheet of a wrong shape", None, remedy))
                    continue
                if len(rows) > MAX_SHEET_ROWS:
                    raise EngineStop(
                        EndCode.RULE_ERROR,
                        f"{rule.name} returned a sheet of {len(rows)} rows ({rule.file}, line {rule.line})",
                        rule=rule.name, file=rule.file, line=rule.line, remedy="return totals, not the data again",
                    )  # fmt: skip
                yield str(name), [self._finite_cells(rule, row) for row in rows]

    def _finite_cells(self, rule: Rule, row: Sequence[Any]) -> list[Any]:
        """Return the cells of a row; numbers that no cell can hold become blanks, and are reported."""
        is_infinite = [type(cell) is float and not isfinite(cell) for cell in row]
        if any(is_infinite):
            self.report_failure(
                RuleFailed(rule, "returned a sheet with numbers that are not finite", None, "use None instead")
            )
        return [None if infinite else cell for cell, infinite in zip(row, is_infinite, strict=True)]


def row_scores(package: RulePackage, hooks: Hooks, **place: str) -> RowScores | None:
    """Return a function that asks the package's row rules about each row of one sheet; None if it has no such rules."""
    if not package.row_types:
        return None
    broken: set[str] = set()

    def scores(number: int, values: Sequence[object]) -> dict[str, float]:
        """Ask the rules about a row, and add up their scores by label; a rule that failed is not asked again."""
        totals: dict[str, float] = {}
        for label, rules in package.row_types.items():
            for rule in rules:
                if rule.name in broken:
                    continue
                try:
                    answer = rule.call(
                        **hooks.shared, **place, row_index=number, row_values_sample=list(values[:CELLS_FOR_RULES])
                    )
                    for name, delta in _check_scores(rule, label, answer).items():
                        totals[name] = totals.get(name, 0.0) + delta
                except RuleFailed as failure:
                    broken.add(rule.name)  # reported once: it would fail on every row
                    hooks.report_failure(failure)
        return totals

    return scores


def _check_scores(rule: Rule, label: str, answer: Any) -> dict[str, float]:
    """Return the scores that a detector returned, without zeros; raises RuleFailed for a wrong shape."""
    remedy = f'return {{"scores": {{label: number}}}}, a number or None; labels are {", ".join(ROW_LABELS)}'
    if answer is None:
        return {}
    scores = answer.get("scores") if isinstance(answer, dict) else {label: answer}
    if not isinstance(scores, dict):
        raise RuleFailed(rule, f"returned {rule.class_of(answer)}", None, remedy)
    for name, delta in scores.items():
        if name not in ROW_LABELS or isinstance(delta, bool) or not isinstance(delta, (int, float)):
            raise RuleFailed(rule, "returned a score of a wrong label or type", None, remedy)
        if not -100 <= delta <= 100:
            raise RuleFailed(rule, "returned a score that is not between -100 and 100", None, remedy)
    return {name: float(delta) for name, delta in scores.items() if delta}


MAX_SHEET_ROWS: Final = 1_048_575
ANSWERS: Final[dict[str, frozenset[str]]] = {  # keys that a hook may return; one that is not listed may return any
    "after_structure": frozenset({"skip"}),
    "after_mapping": frozenset({"mapping"}),
    "after_transform": frozenset({"columns"}),
    "after_validate": frozenset({"issues"}),
    "finalize": frozenset({"sheets"}),
}
