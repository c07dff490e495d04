"""Declared rules over several fields of one row."""

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from runner.engine.checks.chunk import Origin
from runner.engine.fields import Field, bound
from runner.engine.values.convert import fold

_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_EQUALITY: Final = frozenset({"==", "!=", "in", "not in"})


class Comparison:
    """One side of a rule: a field, an operator, and a constant or another field.

    Where a compared cell is blank or not of its type, nothing is said: `required` and the type say it already.
    """

    def __init__(self, spec: Mapping[str, Any], fields: Mapping[str, Field]) -> None:
        self.field: str = spec["field"]
        self.op: str = spec["op"]
        self.other: str | None = spec.get("other")
        kind = fields[self.field].type
        value = spec.get("value")
        self.value = frozenset(fold(bound(kind, v)) for v in value) if isinstance(value, list) else bound(kind, value)

    def test(self, columns: Mapping[str, list[Any]], n: int) -> bool | None:
        """Whether row `n` satisfies it; None where it cannot be told."""
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


class RowRule:
    def __init__(self, spec: Mapping[str, Any], fields: Mapping[str, Field]) -> None:
        self.name: str = spec["name"]
        self.when = Comparison(spec["when"], fields) if spec.get("when") else None
        self.then = Comparison(spec["then"], fields)
        self.severity: str = spec.get("severity") or "error"
        then = self.then
        against = f" {then.other}" if then.other else ""
        self.message: str = spec.get("message") or f"{then.field} {then.op}{against} does not hold"

    def check(self, columns: Mapping[str, list[Any]], count: int, origin: Origin, column: int | None) -> None:
        off = []
        for n in range(count):
            if self.when is not None and self.when.test(columns, n) is not True:
                continue
            if self.then.test(columns, n) is False:
                off.append(n)
        origin.flag(off, "row_rule", self.severity, self.message, column=column, field=self.then.field, rule=self.name)
