"""A declared field as the passes use it: defaults filled, patterns compiled, bounds typed."""

import re
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any, Final, NamedTuple

NUMERIC: Final = frozenset({"integer", "decimal", "money", "percent"})
TEMPORAL: Final = frozenset({"date", "datetime", "time"})
ANY: Final = "any"  # a field that only columns/<name>.py defines: its values stay as they are


class FieldSource(NamedTuple):
    """Where a field's values come from instead of a column of its own: `from` in the manifest."""

    kind: str  # its first key: expression, columns, lookup, label, caption, file, sheet, row
    options: Mapping[str, Any]  # the whole of it


COMPUTED: Final = frozenset({"expression", "lookup"})  # sources that need nothing but other fields of the row


class ValueMap(NamedTuple):
    """`map` and `otherwise` of a field: what the values of a column become."""

    values: Mapping[str, Any]  # by the text of a cell, without case and outer blanks
    otherwise: str  # finding, keep, blank or value
    other: Any = None  # the value of all others


class Field:
    """One column of the normalized table."""

    __slots__ = (
        "allowed", "clean", "constant", "day_first", "decimal", "declared", "default", "description", "fill_down",
        "formats", "label", "lookup", "max", "max_blank_share", "max_length", "merged", "min", "min_length", "name",
        "number_format",
        "optional", "pattern", "required", "scale", "severity", "source", "synonyms", "type", "unique", "unit",
        "value_map",
    )  # fmt: skip

    def __init__(self, spec: Mapping[str, Any], *, declared: bool = True) -> None:
        """Fill in the defaults of a field as a validated manifest has it; `declared`: not only by columns/<name>.py."""
        self.name: str = spec["name"]
        self.declared = declared
        self.label: str | None = spec.get("label")
        self.description: str | None = spec.get("description")  # what it is, in a sentence; evidence for mapping
        self.type: str = spec.get("type") or "text"
        self.required: bool = bool(spec.get("required"))
        self.optional: bool = bool(spec.get("optional"))  # a file may lack its column
        self.max_blank_share: float | None = spec.get("max_blank_share")
        self.unique: bool = bool(spec.get("unique"))
        self.synonyms: tuple[str, ...] = tuple(spec.get("synonyms") or ())
        pattern = spec.get("pattern")
        self.pattern: re.Pattern[str] | None = re.compile(pattern) if pattern else None
        clean = spec.get("clean")
        self.clean: tuple[str, ...] = ("strip",) if clean is None else tuple(clean)
        self.formats: tuple[str, ...] = tuple(spec.get("formats") or ())
        self.day_first: bool | None = spec.get("day_first")
        self.decimal: str | None = spec.get("decimal")
        self.unit: str | None = spec.get("unit")  # what a number without a percent sign means: "share" or "percent"
        self.min = bound(self.type, spec.get("min"))
        self.max = bound(self.type, spec.get("max"))
        self.min_length: int | None = spec.get("min_length")
        self.max_length: int | None = spec.get("max_length")
        allowed = spec.get("allowed")
        self.lookup: tuple[str, str] | None = None
        self.allowed: tuple[Any, ...] | None = None
        if isinstance(allowed, Mapping):
            self.lookup = (allowed["lookup"], allowed["column"])
        elif allowed is not None:
            self.allowed = tuple(allowed)
        self.default: Any = bound(self.type, spec.get("default"))
        self.constant: Any = bound(self.type, spec.get("constant"))  # the value of every row; no column is mapped to it
        source = spec.get("from")
        self.source = FieldSource(next(iter(source)), source) if source else None
        self.value_map = _parse_value_map(self.type, spec)
        self.merged: str | None = spec.get("merged")  # "fill": repeat a merged cell's value in all it covers
        self.fill_down: bool = bool(spec.get("fill_down"))  # blank cells take the value above
        self.severity: str = spec.get("severity") or "error"
        self.number_format: str | None = spec.get("number_format")
        self.scale: int | None = spec.get("scale")  # digits behind the point in data files

    @property
    def needs_column(self) -> bool:
        """Whether a column of the source may be mapped to it."""
        return self.constant is None and self.source is None

    @property
    def needs_some_column(self) -> bool:
        """Whether its values come from a column of the source, or from several."""
        return self.needs_column or (self.source is not None and self.source.kind == "columns")

    @property
    def is_computed(self) -> bool:
        """Whether its values come from other fields of the row."""
        return self.source is not None and self.source.kind in COMPUTED

    @property
    def as_sent(self) -> "Field":
        """Return the field as its column looks before `map`: with the values that are mapped, if no others are
        allowed."""
        if self.value_map is None or self.value_map.otherwise == "keep":
            return self
        names = {"name": self.name, "label": self.label, "synonyms": self.synonyms, "description": self.description}
        sent = Field(names | {"type": "enum", "allowed": tuple(self.value_map.values)})
        sent.source = self.source
        return sent

    @property
    def names(self) -> tuple[tuple[str, str], ...]:
        """Return the names that a header may match, each with its kind: name, label or synonym."""
        label = ((self.label, "label"),) if self.label else ()
        return ((self.name, "name"), *label, *((s, "synonym") for s in self.synonyms))


def _parse_value_map(kind: str, spec: Mapping[str, Any]) -> ValueMap | None:
    """Parse the value map that a field declares, with values of its type; None if it has none."""
    values, otherwise = spec.get("map"), spec.get("otherwise") or "finding"
    if not values:
        return None
    typed = {key.strip().casefold(): bound(kind, value) for key, value in values.items()}
    if isinstance(otherwise, Mapping):
        return ValueMap(typed, "value", bound(kind, otherwise["value"]))
    return ValueMap(typed, otherwise)


def bound(kind: str, value: Any) -> Any:
    """Convert a declared bound or constant to the field's type: dates and times, which are written as texts, to moments
    without a zone; any other value stays."""
    if not isinstance(value, str) or kind not in TEMPORAL:
        return value
    if kind == "date":
        has_time = len(value) > len("2026-01-31")
        return datetime.fromisoformat(value).date() if has_time else date.fromisoformat(value)
    if kind == "datetime":
        return datetime.fromisoformat(value).replace(tzinfo=None)
    return time.fromisoformat(value).replace(tzinfo=None)
