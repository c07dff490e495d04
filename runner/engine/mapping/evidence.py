"""What the values of a column say about which field it is."""

from collections.abc import Sequence
from typing import Any, Final

from runner.engine.fields import Field
from runner.engine.values.convert import Converter, fold, text_of

# How far values that fit a type speak for the field, and values that do not speak against it.
FOR: Final = {
    "email": 0.5,
    "url": 0.5,
    "phone": 0.3,
    "date": 0.25,
    "datetime": 0.25,
    "time": 0.3,
    "boolean": 0.2,
}
FOR_NUMBER: Final = 0.1
AGAINST: Final = -0.3
GOOD: Final = 0.8
POOR: Final = 0.3
FEWEST: Final = 3
_PROBES: Final = ("x", "Abc def", "17", "2026-01-31", "a.b@c.de", "M-1")


class Sample:
    """The first values of a column, and what each type makes of them, worked out once."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = [v for v in values if v is not None]
        self.texts = [t for t in map(text_of, self.values) if t.strip()]
        self._fits: dict[Any, float | None] = {}

    def fit(self, field: Field) -> float | None:
        """The share of values that are of the field's type; None where there is nothing to tell."""
        key = (field.type, field.formats, field.decimal, field.day_first, field.clean)
        if key not in self._fits:
            self._fits[key] = self._fit(field)
        return self._fits[key]

    def _fit(self, field: Field) -> float | None:
        if not self.values:
            return None
        out, bad = Converter(field, self.values).convert(self.values)
        present = sum(v is not None for v in out)
        return (present - len(bad)) / present if present else None


def type_delta(sample: Sample, field: Field) -> float:
    if field.type in ("text", "enum", "any") or len(sample.values) < FEWEST:
        return 0.0
    fit = sample.fit(field)
    if fit is None:
        return 0.0
    if fit >= GOOD:
        return round(FOR.get(field.type, FOR_NUMBER) * fit, 4)
    return AGAINST if fit < POOR else 0.0


def pattern_delta(sample: Sample, field: Field) -> float:
    """A pattern that fits speaks for a field as far as it does not fit just anything."""
    if field.pattern is None or len(sample.texts) < FEWEST:
        return 0.0
    converter = Converter(field)
    texts = [text_of(v) for v in converter.convert(list(sample.texts))[0] if v is not None]
    fit = sum(field.pattern.fullmatch(t) is not None for t in texts) / max(1, len(texts))
    if fit >= GOOD:
        loose = sum(field.pattern.fullmatch(p) is not None for p in _PROBES)
        return round(0.5 * fit * max(0.0, 1 - loose / 3), 4)
    return AGAINST if fit < POOR / 2 else 0.0


def allowed_delta(sample: Sample, allowed: frozenset[Any] | None) -> float:
    """Values that are all among the allowed ones speak for an enum; few different ones speak softly."""
    if not allowed or len(sample.texts) < FEWEST:
        return 0.0
    folded = [fold(t) for t in sample.texts]
    fit = sum(f in allowed for f in folded) / len(folded)
    if fit >= GOOD:
        return round((0.5 if len(set(folded)) > 2 else 0.3) * fit, 4)
    return AGAINST if fit < POOR / 2 else 0.0
