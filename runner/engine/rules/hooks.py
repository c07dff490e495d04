"""Calls hooks and row_types detectors, and validates their answers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Final, NamedTuple

from runner.engine.common.findings import Findings
from runner.engine.contract import EndCode
from runner.engine.protocol import EngineStop
from runner.engine.rules.call import Rule, RuleFailed
from runner.engine.rules.columns import SEVERITIES, plain_value, stop
from runner.engine.rules.load import ROW_LABELS, RulePackage

SHOWN = 50  # cells of a row that rules get
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
        self._package = package
        self._findings = findings
        self._strict = strict
        self.shared = shared

    def has(self, name: str) -> bool:
        """Whether the package has a hook of this name."""
        return bool(self._package.hooks[name])

    def answers(self, name: str, **arguments: Any) -> Iterator[tuple[Rule, Any]]:
        """What each hook of this name returned; a failing one is reported and skipped."""
        for rule in self._package.hooks[name]:
            try:
                answer = rule.call(**self.shared, **arguments)
                if answer is not None and not isinstance(answer, dict):
                    what = f"returned {rule.class_of(answer)}"
                    raise RuleFailed(rule, what, None, "a hook returns None or a dict")
            except RuleFailed as failure:
                self.failed(failure)
                continue
            if unknown := set(answer or ()) - ANSWERS.get(name, frozenset(answer or ())):
                supported = ", ".join(sorted(ANSWERS[name]))
                what = f"returned {len(unknown)} keys that {name} does not support"
                self.failed(RuleFailed(rule, what, None, f"{name} supports: {supported}"))
            if answer:
                yield rule, answer

    def failed(self, failure: RuleFailed) -> None:
        """Report a hook that failed, or end the job if the manifest asks for it."""
        if self._strict:
            raise stop(failure, None, None, None, None)
        rule = failure.rule
        self._findings.add("rule_error", "error", failure.message, rule=rule.name, file=rule.file, line=failure.line)

    def notify(self, name: str, **arguments: Any) -> None:
        """Call hooks whose answer does not matter."""
        for _ in self.answers(name, **arguments):
            pass

    def skipped_tables(self, tables: list[dict[str, Any]]) -> set[str]:
        """Tables that after_structure skips: {"skip": [table ids]}."""
        table_ids = {table["id"] for table in tables}
        skip: set[str] = set()
        for rule, answer in self.answers("after_structure", tables=tables):
            ids = answer.get("skip", [])
            if not isinstance(ids, list) or not set(map(str, ids)) <= table_ids:
                self.failed(
                    RuleFailed(rule, "named tables that do not exist", None, 'return {"skip": [ids from `tables`]}')
                )
                continue
            skip |= set(map(str, ids))
        return skip

    def remapped(self, fields: set[str], columns: set[str], **arguments: Any) -> dict[str, str | None]:
        """Columns that after_mapping remaps: {"mapping": {"B": "plan", "C": None}}."""
        changes: dict[str, str | None] = {}
        for rule, answer in self.answers("after_mapping", **arguments):
            mapping = answer.get("mapping", {})
            is_valid = isinstance(mapping, dict) and all(
                letters in columns and (field is None or field in fields) for letters, field in mapping.items()
            )
            if not is_valid:
                remedy = 'return {"mapping": {column letters: a declared field or None}}'
                self.failed(RuleFailed(rule, "named columns or fields that do not exist", None, remedy))
                continue
            combined = {**changes, **mapping}
            mapped = [field for field in combined.values() if field is not None]
            if len(set(mapped)) < len(mapped):
                self.failed(RuleFailed(rule, "mapped two columns to one field", None, "map one column to each field"))
                continue
            changes = combined
        return changes

    def replaced(self, columns: dict[str, list[Any]], count: int, **arguments: Any) -> dict[str, list[Any]]:
        """Columns that after_transform rewrites: {"columns": {"plan": [...]}}."""
        changes: dict[str, list[Any]] = {}
        for rule, answer in self.answers("after_transform", columns=columns, **arguments):
            new_columns = answer.get("columns", {})
            is_valid = isinstance(new_columns, dict) and all(
                name in columns and isinstance(values, (list, tuple)) and len(values) == count
                for name, values in new_columns.items()
            )
            if not is_valid:
                remedy = f'return {{"columns": {{field: one value per row}}}}; fields are {", ".join(columns)}'
                self.failed(RuleFailed(rule, "returned columns with a wrong name or length", None, remedy))
                continue
            try:
                changes |= {
                    name: [plain_value(rule, value) for value in values] for name, values in new_columns.items()
                }
            except RuleFailed as failure:
                self.failed(failure)
        return changes

    def issues(self, count: int, fields: set[str], **arguments: Any) -> Iterator[HookIssue]:
        """What after_validate adds: {"issues": [{"index", "field", "message", "severity", "code"}]}."""
        for rule, answer in self.answers("after_validate", **arguments):
            for issue in answer.get("issues") or ():
                index = issue.get("index") if isinstance(issue, dict) else None
                if type(index) is not int or not 0 <= index < count or issue.get("field") not in {*fields, None}:
                    remedy = 'an issue is {"index": row within `rows`, "field": name, "message": "..."}'
                    self.failed(RuleFailed(rule, "returned an issue of a wrong shape", None, remedy))
                    break
                severity = issue.get("severity") if issue.get("severity") in SEVERITIES else "error"
                code = rule.literal(issue.get("code")) or "rule_issue"
                message = rule.literal(issue.get("message")) or "does not pass"
                yield HookIssue(rule, index, issue.get("field"), code, str(severity), message)

    def sheets(self) -> Iterator[tuple[str, list[list[Any]]]]:
        """Extra sheets from finalize: {"sheets": {name: rows, the first being the header}}."""
        for rule, answer in self.answers("finalize"):
            sheets = answer.get("sheets", {})
            remedy = 'return {"sheets": {"Totals": [["plan", "members"], ["A", 3]]}}'
            if not isinstance(sheets, dict):
                self.failed(RuleFailed(rule, "returned sheets of a wrong shape", None, remedy))
                continue
            for name, rows in sheets.items():
                if not isinstance(rows, list) or not rows or not all(isinstance(row, (list, tuple)) for row in rows):
                    self.failed(RuleFailed(rule, "returned a sheet of a wrong shape", None, remedy))
                    continue
                if len(rows) > MAX_SHEET_ROWS:
                    raise EngineStop(
                        EndCode.RULE_ERROR,
                        f"{rule.name} returned a sheet of {len(rows)} rows ({rule.file}, line {rule.line})",
                        rule=rule.name, file=rule.file, line=rule.line, remedy="return totals, not the data again",
                    )  # fmt: skip
                yield str(name), [self._finite_cells(rule, row) for row in rows]

    def _finite_cells(self, rule: Rule, row: Sequence[Any]) -> list[Any]:
        """The cells of a row; numbers that no cell can hold become blanks, and are reported."""
        is_infinite = [type(cell) is float and not isfinite(cell) for cell in row]
        if any(is_infinite):
            self.failed(RuleFailed(rule, "returned a sheet with numbers that are not finite", None, "use None instead"))
        return [None if infinite else cell for cell, infinite in zip(row, is_infinite, strict=True)]


def row_scores(package: RulePackage, hooks: Hooks, **place: str) -> RowScores | None:
    """The package's row rules for one sheet; None if it has none."""
    if not package.row_types:
        return None
    broken: set[str] = set()

    def scores(number: int, values: Sequence[object]) -> dict[str, float]:
        """What the config's rules say about a row, by label; a rule that failed is not asked again."""
        totals: dict[str, float] = {}
        for label, rules in package.row_types.items():
            for rule in rules:
                if rule.name in broken:
                    continue
                try:
                    answer = rule.call(
                        **hooks.shared, **place, row_index=number, row_values_sample=list(values[:SHOWN])
                    )
                    for name, delta in _checked_scores(rule, label, answer).items():
                        totals[name] = totals.get(name, 0.0) + delta
                except RuleFailed as failure:
                    broken.add(rule.name)  # reported once: it would fail on every row
                    hooks.failed(failure)
        return totals

    return scores


def _checked_scores(rule: Rule, label: str, answer: Any) -> dict[str, float]:
    """The scores that a detector returned, without zeros; a wrong shape raises RuleFailed."""
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
