"""Rows that spell the declared fields are header rows: what a manifest tells the structure pass."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from runner.engine.fields import Field
from runner.engine.mapping.headers import normalized

RowScores = Callable[[int, Sequence[object]], Mapping[str, float]]
SPELLED: Final = {"header": 4.0}
BELOW: Final = {"data": 4.0}  # what stands right under the names is data, unless it looks very much like units
NOTHING: Final[dict[str, float]] = {}


def heading_scores(fields: Iterable[Field]) -> RowScores | None:
    """Scores rows by how many cells are a declared name, label or synonym; None where nothing is declared.

    Called for every row of a sheet, so a row that cannot be one costs a single set operation.
    """
    names = {normalized(name) for field in fields for name, _ in field.names} - {""}
    if not names:
        return None
    spellings = {s for field in fields for name, _ in field.names for s in _spellings(name)}
    enough = min(2, len(names))
    last = -1

    def scores(number: int, values: Sequence[object]) -> Mapping[str, float]:
        nonlocal last
        if spellings.isdisjoint(values):
            return BELOW if number == last + 1 else NOTHING
        texts = [v for v in values if isinstance(v, str)]
        found = {n for n in map(normalized, texts) if n in names}
        if len(found) < enough or len(found) * 3 < len(texts):
            return NOTHING
        last = number
        return SPELLED

    return scores


def _spellings(name: str) -> set[str]:
    spaced = name.replace("_", " ")
    forms = {name, spaced, name.replace(" ", "_")}
    return {f for form in forms for f in (form, form.lower(), form.upper(), form.title(), form.capitalize())}


def both(first: RowScores | None, second: RowScores | None) -> RowScores | None:
    """The sum of two judges."""
    if first is None or second is None:
        return first or second

    def scores(number: int, values: Sequence[object]) -> Mapping[str, float]:
        one, other = first(number, values), second(number, values)
        return {k: one.get(k, 0.0) + other.get(k, 0.0) for k in {*one, *other}}

    return scores
