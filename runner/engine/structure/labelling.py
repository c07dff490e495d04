"""Step 3: the probability of each label for each row, then the most likely sequence of labels.

Probabilities come from boosted trees (trained by tools/train_structure.py, evaluated here without a library) and
from built-in detectors, which add points just like the rules in `row_types/`. One point multiplies the odds by e.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import dropwhile
from math import exp, log
from operator import add
from pathlib import Path
from typing import Protocol

from runner.engine.reading import Layout
from runner.engine.structure import features
from runner.engine.structure.facts import CellKind, Mark, Row
from runner.engine.structure.forest import Batch, Forest
from runner.engine.structure.tables import NAMES, Label

FLOOR = 1e-6
TOGETHER = 60  # rows whose labels are rated at once; sets of so many fit into two digits of a whole number


@dataclass(frozen=True, slots=True)
class Model:
    """The shipped trees and how labels follow each other."""

    classes: tuple[Forest, ...]  # of each label
    start: tuple[float, ...]  # log of how often each label opens a sheet
    moves: tuple[tuple[tuple[float, ...], ...], ...]  # log odds of label to label: without and with a gap

    def chances_of(self, vectors: Sequence[Sequence[float]]) -> list[list[float]]:
        """Return the probability of each label, for each row's vector of facts."""
        chances: list[list[float]] = []
        for start in range(0, len(vectors), TOGETHER):
            batch = Batch(vectors[start : start + TOGETHER])
            chances += map(_shares, zip(*(forest.totals(batch) for forest in self.classes), strict=True))
        return chances


def _shares(scores: Sequence[float]) -> list[float]:
    """Convert log odds to probabilities."""
    top = max(scores)
    raised = [exp(score - top) for score in scores]
    whole = sum(raised)
    return [max(power / whole, FLOOR) for power in raised]


@cache
def load() -> Model:
    """Load the shipped weights, once per process."""
    with Path(__file__).with_name("weights.json").open(encoding="utf-8") as file:
        raw = json.load(file)
    if raw["labels"] != [label.name.lower() for label in Label] or raw["features"] != features.names():
        raise RuntimeError("weights.json was trained for other labels or features: run tools/train_structure.py")
    return Model(
        classes=tuple(map(Forest, raw["classes"])),
        start=tuple(raw["start"]),
        moves=tuple(tuple(tuple(line) for line in table) for table in raw["moves"]),
    )


BOLD = 0.7  # a bold row over one that is not
FILLED = 0.5  # the same with a background colour
FROZEN = 1.5  # the last row above the freeze line
TITLES = 1.0  # rows repeated on each printed page
FILTER = 3.0  # the row that carries the filter's arrows
CAPTION = -1.5  # a single text under a header, in the body's first column, like others further down
STUB = 3.0  # a single text over a caption that names the column of labels, which the header row above leaves blank
ANEW = 2.0  # texts after a blank row, over rows unlike the ones above
NEAR = 5  # rows above and below to compare

Points = dict[int, dict[str, float]]
Marks = dict[int, set[int]]


def points(rows: Sequence[Row], layout: Layout) -> Points:
    """Return the header points of the built-in detectors, by row number."""
    header_points: dict[int, float] = {}
    single_texts = Counter(
        row.filled[0] for row in rows if row.width == 1 and row.kinds[row.filled[0]] == CellKind.TEXT
    )
    has_style = False  # only the first row with a distinct style: further down it may be a total
    for at, row in enumerate(rows):
        below = rows[at + 1] if at + 1 < len(rows) else None
        score = _place_points(rows, at, single_texts)
        if not has_style and below is not None and below.number <= layout.styled_rows and len(row.filled) > 1:
            style = BOLD * _is_marked(layout.bold, row, below) + FILLED * _is_marked(layout.filled, row, below)
            has_style = style > 0
            score += style
        score += _layout_points(row, layout)
        if score:
            header_points[row.number] = score
    return {number: {"header": score} for number, score in header_points.items()}


def _place_points(rows: Sequence[Row], at: int, single_texts: Counter[int]) -> float:
    """Return the points of a row for what is around it; `single_texts`: rows with only a text, by its column."""
    score = ANEW if _starts_anew(rows, at) else 0.0
    if _names_labels(rows, at):
        return score + STUB
    return score + CAPTION if at and _is_first_caption(rows, at, single_texts) else score


def _layout_points(row: Row, layout: Layout) -> float:
    """Return the points of a row for frozen rows, print titles and a filter."""
    score = FROZEN if row.number == layout.frozen_rows and len(row.filled) > 1 else 0.0
    if layout.print_title_rows and layout.print_title_rows[0] <= row.number <= layout.print_title_rows[1]:
        score += TITLES
    if layout.autofilter and row.number == layout.autofilter[0]:
        score += FILTER
    return score


def style_points(rows: Sequence[Row], layout: Layout, number: int) -> float:
    """Return the points of one row for style, filter, frozen rows and print titles."""
    without_gaps = [replace(row, gap=0) for row in rows]  # its place does not matter here
    return points(without_gaps, layout).get(number, {}).get("header", 0.0)


def _is_marked(marks: Marks, row: Row, below: Row) -> bool:
    """Whether the row is all text with the mark in every cell, and hardly any cell below has it."""
    marked, marked_below = marks.get(row.number, set()), marks.get(below.number, set())
    is_all_marked = all(at + 1 in marked and row.kinds[at] == CellKind.TEXT for at in row.filled)
    count_below = sum(1 for at in below.filled if at + 1 in marked_below)
    return is_all_marked and count_below * 2 < len(below.filled)


def _is_first_caption(rows: Sequence[Row], at: int, single_texts: Counter[int]) -> bool:
    """Whether the row looks like the first of several captions rather than another header row.

    `single_texts`: how many rows have their only text in each column.
    """
    row = rows[at]
    first = row.filled[0]
    if row.width != 1 or row.kinds[first] != CellKind.TEXT or rows[at - 1].width == 1:
        return False
    below = rows[at + 1 : at + 1 + NEAR]
    return bool(below) and first <= min(other.filled[0] for other in below) and single_texts[first] > 1


def _names_labels(rows: Sequence[Row], at: int) -> bool:
    """Whether the row is a short text that names the column left of the header row above, over a caption."""
    if not 0 < at < len(rows) - 1:
        return False
    row, below = rows[at], rows[at + 1]
    first = row.filled[0]
    if row.width > 1 or row.gap or below.gap or below.filled != row.filled:
        return False
    if any(text.kinds[first] != CellKind.TEXT or text.marks[first] & Mark.SENTENCE for text in (row, below)):
        return False
    above = list(dropwhile(lambda other: other.width < 2, rows[max(0, at - NEAR) : at]))
    return bool(above) and above[-1].width > 1 and all(first < other.filled[0] for other in above)


def _starts_anew(rows: Sequence[Row], at: int) -> bool:
    """Whether a row of texts after a blank row is over rows of other kinds than those above: another table's header."""
    row = rows[at]
    if not at or not row.gap or len(row.filled) < 2:
        return False
    if any(row.kinds[column] != CellKind.TEXT or row.marks[column] & Mark.SENTENCE for column in row.filled):
        return False
    below = rows[at + 1 : at + 1 + NEAR]
    below = below[: next((n for n, other in enumerate(below) if other.gap), len(below))]
    above = rows[max(0, at - NEAR) : at]
    over_values = sum(1 for column in row.filled if _usual_kind(below, column) not in (CellKind.BLANK, CellKind.TEXT))
    if not below or not over_values:
        return False
    used = {column for other in (*above, *below) for column in other.filled}
    alike = sum(1 for column in used if _usual_kind(above, column) == _usual_kind(below, column))
    return alike * 2 < len(used)


def _usual_kind(rows: Sequence[Row], column: int) -> int:
    """Return the usual kind of a column; blank if it is empty."""
    kinds = [row.kinds[column] for row in rows if column < len(row.kinds) and row.kinds[column]]
    return max(set(kinds), key=kinds.count) if kinds else int(CellKind.BLANK)


WEIGHT = 0.3  # of the sequence relative to the row itself; chosen by cross-validation
BARE = 2.0  # points against a header with no rows under it
SURE = 0.9  # probability of a header that others are compared with
AGAIN = 5.0  # points for a row that repeats a header
LEAST = 1e-12  # the lowest probability that a rule can cause


class LabelOrder(Protocol):
    """Log probabilities of the first label of a sheet, and of each label after another."""

    @property
    def start(self) -> Sequence[float]: ...

    @property
    def moves(self) -> Sequence[Sequence[Sequence[float]]]:
        """From label to label: without and with a blank row between."""
        ...


Scores = Mapping[int, Mapping[str, float]]  # by row number, then by label


def decode(
    rows: Sequence[Row],
    chances: Sequence[Sequence[float]],
    model: LabelOrder,
    scores: Scores | None = None,
) -> tuple[list[Label], list[list[float]]]:
    """Label the rows; returns also the probabilities after the `scores` of detectors and rules.

    `chances`: the classifier's probability of each label for each row.
    """
    if not rows:
        return [], []
    scored = [
        _with_points(row_chances, (scores or {}).get(row.number))
        for row, row_chances in zip(rows, chances, strict=True)
    ]
    labels = _viterbi(rows, scored, model)
    again = _headers_again(rows, labels, scored)
    if not again:
        return labels, scored
    for at in again:
        scored[at] = _with_points(scored[at], {"header": AGAIN})
    return _viterbi(rows, scored, model), scored


def _with_points(chances: Sequence[float], scores: Mapping[str, float] | None) -> list[float]:
    """Return the probabilities after adding points to some labels' odds."""
    if not scores:
        return list(chances)
    logs = [log(chance) for chance in chances]
    for name, delta in scores.items():
        if name in NAMES:
            logs[NAMES[name]] += delta
    top = max(logs)
    raised = [exp(odds - top) for odds in logs]
    whole = sum(raised)
    return [max(power / whole, LEAST) for power in raised]


def _headers_again(rows: Sequence[Row], labels: Sequence[Label], chances: Sequence[Sequence[float]]) -> set[int]:
    """Find the rows that repeat a header cell by cell, over the next table or on the next printed page."""
    headers: dict[int, set[tuple[object, ...]]] = {}  # by their number of cells
    again: set[int] = set()
    for index, (row, label, chance) in enumerate(zip(rows, labels, chances, strict=True)):
        cells = tuple([row.values[at] for at in row.filled])
        if len(cells) < 2:
            continue
        if label is Label.HEADER and chance[Label.HEADER] >= SURE:
            headers.setdefault(len(cells), set()).add(cells)
        elif label is not Label.HEADER and any(_repeats(cells, header) for header in headers.get(len(cells), ())):
            again.add(index)
    return again


def _repeats(cells: tuple[object, ...], header: tuple[object, ...]) -> bool:
    """Whether all cells are equal, or all but the first, which names the table."""
    return cells == header or (len(cells) > 2 and cells[1:] == header[1:])


def _viterbi(rows: Sequence[Row], chances: Sequence[Sequence[float]], model: LabelOrder) -> list[Label]:
    """Return the most likely sequence of labels, of each row's chances and of how labels follow each other."""
    best: list[float] = [WEIGHT * odds for odds in model.start]  # of all sequences that end with each label
    weighted = [[[WEIGHT * odds for odds in to] for to in zip(*moves, strict=True)] for moves in model.moves]
    origins_of_rows: list[list[int]] = []  # of each row but the first: the label before, for each label
    for at, row in enumerate(rows):
        row_logs = [log(chance) for chance in chances[at]]
        if not at:
            best = list(map(add, best, row_logs))
            continue
        moves = weighted[1 if row.gap else 0]
        origins: list[int] = []
        best_here: list[float] = []
        for to in Label:
            tries = list(map(add, best, moves[to]))
            if to in (Label.TITLE, Label.NOTE):
                tries[Label.HEADER] -= BARE
            origin = tries.index(max(tries))
            origins.append(origin)
            best_here.append(tries[origin] + row_logs[to])
        origins_of_rows.append(origins)
        best = best_here
    label = max(range(len(best)), key=best.__getitem__)
    labels = [Label(label)]
    for origins in reversed(origins_of_rows):
        label = origins[label]
        labels.append(Label(label))
    return labels[::-1]
