"""Rows that spell the declared fields are header rows: what a manifest tells the structure pass."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from runner.engine.fields import Field
from runner.engine.mapping.headers import normalized

SPELLED: Final = {"header": 4.0}
BELOW: Final = {"data": 4.0}  # what stands right under the names is data, unless it looks very much like units
NOTHING: Final[dict[str, float]] = {}


class Headings:
    """Scores rows by how many cells are a declared name, label or synonym.

    Called for every row of a sheet, so a row that cannot be one costs a single set operation.
    """

    def __init__(self, fields: Iterable[Field]) -> None:
        fields = list(fields)
        names = [name for field in fields for name, _ in field.names]
        self._keys = {normalized(name) for f in fields if f.required or f.unique for name, _ in f.names} - {""}
        self._names = {normalized(name) for name in names} - {""}
        self._spellings = {spelling for name in names for spelling in _spellings(name)}
        self._enough = min(2, len(self._names))
        self._last = -1

    def __call__(self, number: int, values: Sequence[object]) -> Mapping[str, float]:
        if self._spellings.isdisjoint(values):
            return BELOW if number == self._last + 1 else NOTHING
        texts = [v for v in values if isinstance(v, str)]
        found = {n for n in map(normalized, texts) if n in self._names}
        if not found or len(found) < self._enough or len(found) * 3 < len(texts):
            return NOTHING
        self._last = number
        return SPELLED

    def spelled(self, values: Sequence[object]) -> int:
        """How many of these values are a declared name, label or synonym."""
        return sum(1 for v in values if isinstance(v, str) and normalized(v) in self._names)

    def key(self, name: str) -> bool:
        """Whether this is the name of a required or unique field."""
        return normalized(name) in self._keys

    def absent(self, columns: Sequence[Sequence[object]]) -> bool:
        """Whether no row of these columns can be one."""
        return all(map(self._spellings.isdisjoint, columns))


def _spellings(name: str) -> set[str]:
    spaced = name.replace("_", " ")
    forms = {name, spaced, name.replace(" ", "_")}
    return {f for form in forms for f in (form, form.lower(), form.upper(), form.title(), form.capitalize())}
