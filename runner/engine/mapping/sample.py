"""The first values of a column, and how they fit what a field declares: its type, its pattern, its allowed values."""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from types import MappingProxyType
from typing import Any, Final

from runner.engine.common.fields import Field
from runner.engine.mapping import odd_values
from runner.engine.mapping.matcher import model
from runner.engine.mapping.traits import TRAITS, TRUTHS, class_log_odds, traits_of
from runner.engine.values.convert import Converter, fold, text_of
from runner.engine.values.words import BOOLEANS

GOOD: Final = 0.8  # share of values that fit what a field declares
POOR: Final = 0.3  # share below which they speak against it
FEWEST: Final = 3  # values that are evidence
FEW: Final = 6  # values that show half of what many would
TESTED: Final = 60  # values that a type is tried on
UNTESTED: Final = frozenset({"text", "enum", "any"})  # types that say nothing about their values
_PROBES: Final = ("x", "Abc def", "17", "2026-01-31", "a.b@c.de", "M-1")
_STRIPPED: Final = ("strip",)
_TYPES_WITH_DIGITS: Final = frozenset({"integer", "decimal", "money", "percent", "date", "datetime", "time", "phone"})
_DIGIT: Final = re.compile("[0-9]")
_COMMON_VALUE_COUNTS: Final = 0.2  # what an allowed value counts that many columns hold
_RARE: Final = frozenset({"email", "url", "phone"})
_STRONG: Final = frozenset({"date", "datetime", "time", "boolean"})
_NUMBERS: Final = frozenset({"integer", "decimal", "money", "percent"})
_ADDRESSES: Final = frozenset({"email", "phone", "url"})
# The types that no cell with such a value is of.
_TYPES_NEVER_OF: Final[Mapping[type, frozenset[str]]] = {
    date: _NUMBERS | _ADDRESSES | {"boolean"},
    datetime: _NUMBERS | _ADDRESSES | {"boolean"},
    bool: _NUMBERS | _ADDRESSES | {"date", "datetime"},
    int: frozenset({"email", "url"}),
    float: frozenset({"email", "url"}),
}


class Sample:
    """The first values of a column, and what each type makes of them, worked out once."""

    def __init__(self, values: Sequence[Any]) -> None:
        """Store the values that are not empty and their texts; everything else is computed when asked for and then
        remembered."""
        self.values = [v for v in values if v is not None]
        self.texts = [t for t in map(text_of, self.values) if t.strip()]
        self._fits: dict[Any, float | None] = {}
        self._class_log_odds: dict[str, float] | None = None
        self._traits: list[float] | None = None
        self._kinds = set(map(type, self.values[:TESTED]))
        self._text: str | None = None  # all tested values, if they are texts

    def fit(self, field: Field) -> float | None:
        """Return the share of values that the field's type accepts; None without values. Remembered by type and reading
        options."""
        key = (field.type, field.formats, field.decimal, field.day_first, field.clean)
        if key not in self._fits:
            self._fits[key] = self._measure_fit(field)
        return self._fits[key]

    def class_log_odds(self) -> Mapping[str, float]:
        """Return for each class of values (a name, a city …) how likely this column's values are of it, as log-odds
        against the average column; computed once."""
        if self._class_log_odds is None:
            size = len(self.texts)
            raw_odds = {} if size < FEWEST else class_log_odds(self._all_traits(), model().classes)
            self._class_log_odds = {name: odds * size / (size + FEW) for name, odds in raw_odds.items()}
        return self._class_log_odds

    def shares(self) -> Mapping[str, float]:
        """Return the shares of values by their traits; empty where there are too few."""
        traits = self._all_traits() if len(self.texts) >= odd_values.FEWEST_VALUES else None
        return dict(zip(TRAITS, traits, strict=True)) if traits else {}

    def _all_traits(self) -> list[float] | None:
        """Return the traits of the values that the trained classes are weighed by, computed once; None if all are
        blank."""
        if self._traits is None:
            self._traits = traits_of(self.texts)
        return self._traits

    def _measure_fit(self, field: Field) -> float | None:
        """Convert the first values with the field's own converter and return the share that succeeds; None if there are
        none."""
        values = self.values[:TESTED]
        if not values:
            return None
        if field.clean == _STRIPPED and not field.formats and self._excludes_type(field.type):
            return 0.0
        out, bad = Converter(field, values).convert(values)
        present = sum(v is not None for v in out)
        return (present - len(bad)) / present if present else None

    def _excludes_type(self, field_type: str) -> bool:
        """Whether no value can be of a type, without converting any: all are cells of other types, or texts without the
        signs or words that every such value has."""
        if str not in self._kinds:
            return all(field_type in _TYPES_NEVER_OF.get(cell_type, ()) for cell_type in self._kinds)
        values = self.values[:TESTED]
        if self._text is None:
            self._text = "".join(values) if self._kinds == {str} else ""
        text = self._text
        if not text.strip():
            return False
        if field_type == "boolean":
            return text.isascii() and BOOLEANS.keys().isdisjoint([value.strip().casefold() for value in values])
        if field_type in _TYPES_WITH_DIGITS:
            return text.isascii() and _DIGIT.search(text) is None
        if field_type == "email":
            return "@" not in text
        return field_type == "url" and "://" not in text and "www." not in text.casefold()


def type_fit(sample: Sample, field: Field) -> str | None:
    """Name how values speak for or against a field's type, as a number of matcher.NAMES; None if they say nothing."""
    if field.type in UNTESTED or len(sample.values) < FEWEST:
        return None
    fit = sample.fit(field)
    if fit is None:
        return None
    if fit < GOOD:
        return "type_against" if fit < POOR else None
    return most_type_fit(field)


def most_type_fit(field: Field) -> str | None:
    """Name how values that are all of a field's type speak for it; None if they say nothing."""
    if field.type in UNTESTED:
        return None
    if field.type in _RARE:
        return "type_rare"
    return "type_strong" if field.type in _STRONG else "type_weak"


def pattern_fit(sample: Sample, field: Field) -> dict[str, float]:
    """Return the named number by which values speak for or against a field's pattern; empty if they say nothing.

    A pattern that fits says the less the more other texts it fits.
    """
    if field.pattern is None or len(sample.texts) < FEWEST:
        return {}
    converted, _ = Converter(field).convert(list(sample.texts[:TESTED]))
    texts = [text_of(v) for v in converted if v is not None]
    fit = sum(field.pattern.fullmatch(t) is not None for t in texts) / max(1, len(texts))
    if fit >= GOOD:
        probes_fitting = sum(field.pattern.fullmatch(p) is not None for p in _PROBES)
        return {"pattern": fit * max(0.0, 1 - probes_fitting / 3)}
    return {"pattern_against": 1.0} if fit < POOR / 2 else {}


def allowed_fit(
    sample: Sample, allowed: frozenset[Any] | None, spelled: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, float]:
    """Return the named numbers by which values speak for or against a field's allowed values.

    Values that are all among the allowed ones speak for an enum; few different ones speak softly, and so do yes and no,
    bare numbers and single letters: many columns hold those. `spelled`: texts that were confirmed to mean one of them.
    They agree, too, but such short ones are no reason.
    """
    if not allowed or len(sample.texts) < FEWEST:
        return {}
    folded = [fold(t) for t in sample.texts[:TESTED]]
    allowed_texts = [f for f in folded if f in allowed]
    confirmed_texts = [f for f in folded if f in spelled] if spelled else []
    fit = (len(allowed_texts) + len(confirmed_texts)) / len(folded)
    if fit >= GOOD:
        strength = (1.0 if len({spelled.get(f, f) for f in folded}) > 2 else 0.6) / len(folded)
        specific = sum(map(_is_specific, allowed_texts))
        sums = {
            "allowed": specific + _COMMON_VALUE_COUNTS * (len(allowed_texts) - specific),
            "allowed_learnt": sum(map(_is_specific, confirmed_texts)),
        }
        return {name: strength * x for name, x in sums.items() if x}
    return {"allowed_against": 1.0} if fit < POOR / 2 else {}


def _is_specific(folded: str) -> bool:
    """Whether a value is one that few columns hold."""
    return len(folded) > 1 and not folded.isdecimal() and folded not in TRUTHS
