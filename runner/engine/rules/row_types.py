"""Ask row_types/<label>.py what a row is for; their scores add to the built-in detectors' own."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runner.engine.rules.call import Rule, RuleFailed
from runner.engine.rules.hooks import Hooks
from runner.engine.rules.load import ROW_LABELS, Package

SHOWN = 50  # cells of a row that rules are shown
RowScores = Callable[[int, Sequence[object]], Mapping[str, float]]


def row_scores(package: Package, hooks: Hooks, **place: str) -> RowScores | None:
    """What the package's rules say about the rows of one sheet; None where it has no such rules."""
    if not package.row_types:
        return None
    broken: set[str] = set()

    def scores(number: int, values: Sequence[object]) -> dict[str, float]:
        total: dict[str, float] = {}
        for label, rules in package.row_types.items():
            for rule in rules:
                if rule.name in broken:
                    continue
                try:
                    answer = rule.call(
                        **hooks.shared, **place, row_index=number, row_values_sample=list(values[:SHOWN])
                    )
                    for name, delta in _said(rule, label, answer).items():
                        total[name] = total.get(name, 0.0) + delta
                except RuleFailed as failure:
                    broken.add(rule.name)  # once is enough: it would fail on every row
                    hooks.failed(failure)
        return total

    return scores


def _said(rule: Rule, label: str, answer: Any) -> dict[str, float]:
    remedy = f'return {{"scores": {{label: number}}}}, a number or None; labels are {", ".join(ROW_LABELS)}'
    if answer is None:
        return {}
    scores = answer.get("scores") if isinstance(answer, dict) else {label: answer}
    if not isinstance(scores, dict):
        raise RuleFailed(rule, f"returned {type(answer).__name__}", None, remedy)
    for name, delta in scores.items():
        if name not in ROW_LABELS or isinstance(delta, bool) or not isinstance(delta, (int, float)):
            raise RuleFailed(rule, "returned a score of a wrong label or type", None, remedy)
        if not -100 <= delta <= 100:
            raise RuleFailed(rule, "returned a score that is not between -100 and 100", None, remedy)
    return {name: float(delta) for name, delta in scores.items() if delta}
