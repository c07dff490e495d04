"""Recognizes rows of declared names: a header spelled as the manifest spells its fields, or as earlier drops taught."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from runner.engine.common.fields import Field
from runner.engine.common.spelling import normalized, spell_all

# What `DeclaredNames` says about a row: kinds of rows, each with how much more likely it becomes.
SPELLED: Final = {"header": 4.0}  # enough of its cells are declared names
LABELLED: Final = {"title": 4.0, "note": 4.0}  # a label of the manifest, `Account:`, is around a table
BELOW: Final = {"data": 4.0}  # the row under the names is data, unless it looks very much like units
NOTHING: Final[dict[str, float]] = {}
_BETWEEN_NAMES: Final = "\x1f"  # between names


class HeadingSpellings:
    """The texts that a job knows as headings: made once for a job, used by the `DeclaredNames` of each sheet."""

    def __init__(self, fields: Iterable[Field], learnt: Iterable[str] = ()) -> None:
        """Collect the headings of all fields, and `learnt` headers that earlier drops taught.

        A field that takes a label's value has no header of its own.
        """
        labels: set[str] = set()
        in_columns: list[Field] = []
        for field in fields:
            if field.source is not None and field.source.kind == "label":
                labels.add(str(field.source.options["label"]))
            else:
                in_columns.append(field)
        names = {name for field in in_columns for name, _ in field.names}.union(learnt)
        # Normalized names of all fields with columns, and of the required and unique ones.
        self.names = {" ".join(words.split()) for words in spell_all(list(names))[0]} - {""}
        self.keys = {normalized(name) for f in in_columns if f.required or f.unique for name, _ in f.names} - {""}
        # Names and labels as cells may have them; not normalized, so that a whole row is compared at once.
        self.spellings = spell_in_cases(names)
        self.labels = (
            {f"{name}{end}" for name in spell_in_cases(labels) for end in ("", ":", " :")} if labels else set[str]()
        )


class DeclaredNames:
    """Scores the rows of one sheet by how many of their cells are a declared name, or a header that was learnt.

    Called for every row of a sheet from top to bottom, so a row that cannot be one costs a single set operation. It
    remembers the last row of names, because the row below it is data.
    """

    def __init__(self, headings: HeadingSpellings) -> None:
        """Prepare to score the rows of one sheet, from its first row on."""
        self._keys, self._names, self._labels = headings.keys, headings.names, headings.labels
        self._spellings = headings.spellings | headings.labels if headings.labels else headings.spellings
        self._enough_names = min(2, len(self._names))  # names that make a row a header
        self._last_row_of_names = -1  # its number in the sheet

    def __call__(self, number: int, values: Sequence[object]) -> Mapping[str, float]:
        """Return what a row's texts say about it: SPELLED, BELOW if it is right under such a row, LABELLED or NOTHING;
        remembers a row of names."""
        if self._spellings.isdisjoint(values):
            return BELOW if number == self._last_row_of_names + 1 else NOTHING
        is_labelled = not self._labels.isdisjoint(values)
        texts = [v for v in values if isinstance(v, str)]
        declared = {name for name in map(normalized, texts) if name in self._names}
        has_enough = len(declared) >= max(1, self._enough_names) and len(declared) * 3 >= len(texts)
        if not has_enough:
            return LABELLED if is_labelled else NOTHING
        self._last_row_of_names = number
        return SPELLED

    def spelled(self, values: Sequence[object]) -> int:
        """Count the values that are a declared name or synonym, or a header that was learnt."""
        return sum(1 for v in values if isinstance(v, str) and normalized(v) in self._names)

    def key(self, name: str) -> bool:
        """Whether this is the name of a required or unique field."""
        return normalized(name) in self._keys

    def absent(self, columns: Sequence[Sequence[object]]) -> bool:
        """Whether no row of these columns can hold declared names."""
        return all(map(self._spellings.isdisjoint, columns))


def spell_in_cases(names: set[str]) -> set[str]:
    """Spell names as people do in cells: in other cases, with blanks and with underscores; there may be thousands."""
    names = names | {name.replace("_", " ") for name in names if "_" in name}
    names |= {name.replace(" ", "_") for name in names if " " in name}
    spellings = names.union(map(str.capitalize, names))
    whole = _BETWEEN_NAMES.join(names)
    for in_case in (whole.lower(), whole.upper(), whole.title()):
        spellings.update(in_case.split(_BETWEEN_NAMES))
    return spellings
