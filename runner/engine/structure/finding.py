"""From the rows kept of a sheet to its tables: label the rows, cut them, drop what is no table, shape the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from runner.engine.reading import Layout
from runner.engine.structure import declared, decoding, detectors, features, fixed, lists, pruning
from runner.engine.structure.drafts import drafts
from runner.engine.structure.heads import Asked
from runner.engine.structure.labels import Label
from runner.engine.structure.rows import Row
from runner.engine.structure.shaping import shape
from runner.engine.structure.tables import Choice, Table

LONG = 5_000  # rows from which neighbours are taken for data unasked
# What a plain row is for: data, all but surely; the classifier would say so at two hundred times the cost.
PLAIN = [0.97 if label is Label.DATA else 0.006 for label in Label]

Told = Mapping[int, Mapping[str, float]]  # what rules in `row_types/` say: by row number, then by label


class Judge(decoding.Sequel, Protocol):
    """Gives rows their chances; the shipped trees, or in training a booster that has not seen the file."""

    def chances_of(self, vectors: Sequence[Sequence[float]]) -> list[list[float]]: ...


def tables_in(kept: Sequence[Row], asked: Asked, judge: Judge) -> list[Table]:
    """The tables of a sheet, from top to bottom and left to right."""
    layout, told = asked.layout, asked.told

    def classify(rows: Sequence[Row]) -> tuple[list[Label], list[list[float]]]:
        total = rows[-1].ordinal + 1 if rows else 0
        if total <= LONG:
            rows = [replace(row, plain=False) for row in rows]
        vectors = features.vectors(rows, total=total)
        judged = iter(judge.chances_of([vector for vector in vectors if vector]))
        chances = [next(judged) if vector else PLAIN for vector in vectors]
        return decoding.decode(rows, chances, judge, _points(rows, layout, told))

    choices: list[Choice] = []
    if asked.fixed is not None:
        if (only := fixed.draft(kept, asked.fixed, classify)) is not None:
            return [shape(only, asked)]
        choices.append(fixed.missing(asked.fixed))
    known, rest = declared.take(kept, layout.declared_tables)
    one = lists.find(rest, asked) if not known else None
    guessed = [one] if one else pruning.prune(drafts(rest, classify) if rest else [], asked, known)
    for draft in (known + guessed)[:1]:
        draft.choices += choices
    found = [shape(draft, asked) for draft in known + guessed]
    return sorted(found, key=lambda table: (table.range.top, table.range.left))


def _points(rows: Sequence[Row], layout: Layout, told: Told) -> detectors.Points:
    """What the built-in detectors and the rules say of these rows, summed."""
    points = detectors.points(rows, layout)
    for number, scores in told.items():
        sums = points.setdefault(number, {})
        for name, delta in scores.items():
            sums[name] = sums.get(name, 0.0) + delta
    return points
