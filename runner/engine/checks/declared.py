"""The declared rules of one field, checked a chunk at a time.

Each check first asks whether anything in the chunk offends, in one call to something fast, and looks for the
offenders only then.
"""

from typing import Any, Final

from runner.engine.checks.chunk import Origin
from runner.engine.checks.unique import Seen
from runner.engine.fields import NUMERIC, TEMPORAL, Field
from runner.engine.reading import CellError
from runner.engine.values.convert import fold, text_of

ORDERED: Final = NUMERIC | TEMPORAL


class FieldChecks:
    """Checks chunks of one field over all tables of a job."""

    def __init__(self, field: Field, allowed: frozenset[Any] | None) -> None:
        self.field = field
        self._allowed = allowed
        self._known: set[Any] = {None}  # values found allowed so far
        self._seen = Seen() if field.unique else None

    def check(self, values: list[Any], bad: list[int], origin: Origin, column: int | None) -> None:
        """Report every cell that breaks a rule; `bad` are cells not of the type, which only `required` sees."""
        field = self.field
        flag = origin.flag
        where: dict[str, Any] = {"column": column, "field": field.name}
        severity = field.severity
        if bad:
            what = f"is no {field.type}" + (" in the given formats" if field.formats else "")
            untyped = [i for i in bad if type(values[i]) is not CellError]  # an error cell is told as such, once
            flag(untyped, "type_error", severity, what, rule=f"type:{field.type}", **where)
        if field.required and None in values:
            blank = [i for i, v in enumerate(values) if v is None]
            flag(blank, "required", severity, "is blank", rule="required", **where)
        skip = set(bad)
        if field.pattern is not None:
            match = field.pattern.fullmatch
            off = [
                i
                for i, v in enumerate(values)
                if v is not None and i not in skip and match(v if type(v) is str else text_of(v)) is None
            ]
            flag(off, "pattern", severity, f"does not match {field.pattern.pattern}", rule="pattern", **where)
        if field.min is not None or field.max is not None:
            self._bounds(values, skip, origin, where)
        if field.min_length is not None or field.max_length is not None:
            self._lengths(values, skip, origin, where)
        if self._allowed is not None:
            self._members(values, skip, origin, where)
        if self._seen is not None:
            present = (
                [None if i in skip and type(v) is CellError else v for i, v in enumerate(values)] if skip else values
            )
            again = self._seen.repeats(present)
            flag(again, "duplicate", severity, "stands already further up", rule="unique", **where)

    def _bounds(self, values: list[Any], skip: set[int], origin: Origin, where: dict[str, Any]) -> None:
        low, high = self.field.min, self.field.max
        present = values if not skip and None not in values else [
            v for i, v in enumerate(values) if v is not None and i not in skip
        ]  # fmt: skip
        if not present:
            return
        for bound, name, extreme in ((low, "min", min), (high, "max", max)):
            if bound is None or not _beyond(extreme(present), bound, name):
                continue
            off = [i for i, v in enumerate(values) if v is not None and i not in skip and _beyond(v, bound, name)]
            what = f"is {'below' if name == 'min' else 'above'} {bound}"
            origin.flag(off, name, self.field.severity, what, rule=name, **where)

    def _lengths(self, values: list[Any], skip: set[int], origin: Origin, where: dict[str, Any]) -> None:
        field = self.field
        low, high = field.min_length or 0, field.max_length
        for i, v in enumerate(values):
            if v is None or i in skip:
                continue
            size = len(v if type(v) is str else text_of(v))
            if size < low:
                what = f"is shorter than {low} characters"
                origin.flag([i], "min_length", field.severity, what, rule="min_length", **where)
            elif high is not None and size > high:
                what = f"is longer than {high} characters"
                origin.flag([i], "max_length", field.severity, what, rule="max_length", **where)

    def _members(self, values: list[Any], skip: set[int], origin: Origin, where: dict[str, Any]) -> None:
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
            what, rule = f"does not stand in {lookup[0]}.{lookup[1]}", f"lookup:{lookup[0]}.{lookup[1]}"
        else:
            what, rule = "is none of the allowed values", "allowed"
        origin.flag(off, "not_allowed", self.field.severity, what, rule=rule, **where)


def _beyond(value: Any, bound: Any, name: str) -> bool:
    return bool(value < bound if name == "min" else value > bound)
