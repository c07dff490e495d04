"""Step 3: the probability of each label for each row, then the most likely sequence of labels.

Probabilities come from boosted trees (trained by tools/train_structure.py, evaluated here without a library) and
from built-in detectors, which add points just like the rules in `row_types/`. One point multiplies the odds by e.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
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
    classes: tuple[Forest, ...]  # of each label
    start: tuple[float, ...]  # log of how often each label opens a sheet
    moves: tuple[tuple[tuple[float, ...], ...], ...]  # log odds of label to label: without and with a gap

    def chances_of(self, vectors: Sequence[Sequence[float]]) -> list[list[float]]:
        """The probability of each label, for each row."""
        out: list[list[float]] = []
        for start in range(0, len(vectors), TOGETHER):
            batch = Batch(vectors[start : start + TOGETHER])
            out += map(_shares, zip(*(forest.totals(batch) for forest in self.classes), strict=True))
        return out


def _shares(scores: Sequence[float]) -> list[float]:
    """Log odds as probabilities."""
    top = max(scores)
    raised = [exp(score - top) for score in scores]
    whole = sum(raised)
    return [max(one / whole, FLOOR) for one in raised]


@cache
def load() -> Model:
    """The shipped weights, loaded once per process."""
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
ANEW = 2.0  # texts after a blank row, over rows unlike the ones above
LOOK = 5  # rows above and below to compare

Points = dict[int, dict[str, float]]
Marks = dict[int, set[int]]


def points(rows: Sequence[Row], layout: Layout) -> Points:
    """The header points of the built-in detectors, by row number."""
    out: dict[int, float] = {}
    lone = Counter(row.filled[0] for row in rows if row.width == 1 and row.kinds[row.filled[0]] == CellKind.TEXT)
    styled = False  # only the first row with a distinct style: further down it may be a total
    for at, row in enumerate(rows):
        below = rows[at + 1] if at + 1 < len(rows) else None
        score = ANEW if _starts_anew(rows, at) else 0.0
        if at and _captions(rows, at, lone):
            score += CAPTION
        if not styled and below is not None and below.number <= layout.styled_rows and len(row.filled) > 1:
            style = BOLD * _only(layout.bold, row, below) + FILLED * _only(layout.filled, row, below)
            styled = style > 0
            score += style
        if row.number == layout.frozen_rows and len(row.filled) > 1:
            score += FROZEN
        if layout.print_title_rows and layout.print_title_rows[0] <= row.number <= layout.print_title_rows[1]:
            score += TITLES
        if layout.autofilter and row.number == layout.autofilter[0]:
            score += FILTER
        if score:
            out[row.number] = score
    return {number: {"header": score} for number, score in out.items()}


def styled(rows: Sequence[Row], layout: Layout, number: int) -> float:
    """The points of one row for style, filter, frozen rows and print titles."""
    bare = [replace(row, gap=0) for row in rows]  # its place does not matter here
    return points(bare, layout).get(number, {}).get("header", 0.0)


def _only(marks: Marks, row: Row, below: Row) -> bool:
    """Whether the row is all text with the mark in every cell, and hardly any cell below has it."""
    own, under = marks.get(row.number, set()), marks.get(below.number, set())
    here = all(at + 1 in own and row.kinds[at] == CellKind.TEXT for at in row.filled)
    there = sum(1 for at in below.filled if at + 1 in under)
    return here and there * 2 < len(below.filled)


def _captions(rows: Sequence[Row], at: int, lone: Counter[int]) -> bool:
    """Whether the row looks like the first of several captions rather than another header row."""
    row = rows[at]
    first = row.filled[0]
    if row.width != 1 or row.kinds[first] != CellKind.TEXT or rows[at - 1].width == 1:
        return False
    below = rows[at + 1 : at + 1 + LOOK]
    return bool(below) and first <= min(other.filled[0] for other in below) and lone[first] > 1


def _starts_anew(rows: Sequence[Row], at: int) -> bool:
    row = rows[at]
    if not at or not row.gap or len(row.filled) < 2:
        return False
    if any(row.kinds[one] != CellKind.TEXT or row.marks[one] & Mark.SENTENCE for one in row.filled):
        return False
    below = [rows[one] for one in range(at + 1, min(at + 1 + LOOK, len(rows)))]
    for index, other in enumerate(below):
        if other.gap:
            below = below[:index]
            break
    above = rows[max(0, at - LOOK) : at]
    over = sum(1 for one in row.filled if _kind(below, one) not in (CellKind.BLANK, CellKind.TEXT))
    if not below or not over:
        return False
    used = {one for other in (*above, *below) for one in other.filled}
    same = sum(1 for one in used if _kind(above, one) == _kind(below, one))
    return same * 2 < len(used)


def _kind(rows: Sequence[Row], column: int) -> int:
    """The usual kind of a column; blank if it is empty."""
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
    """The labels of the rows, and the probabilities after the `scores` of detectors and rules."""
    if not rows:
        return [], []
    scored = [_with_points(one, (scores or {}).get(row.number)) for row, one in zip(rows, chances, strict=True)]
    labels = _viterbi(rows, scored, model)
    again = _headers_again(rows, labels, scored)
    if not again:
        return labels, scored
    scored = [_with_points(one, {"header": AGAIN}) if at in again else one for at, one in enumerate(scored)]
    return _viterbi(rows, scored, model), scored


def _with_points(chances: Sequence[float], scores: Mapping[str, float] | None) -> list[float]:
    """Probabilities after adding points to some labels' odds."""
    if not scores:
        return list(chances)
    logs = [log(chance) for chance in chances]
    for name, delta in scores.items():
        if name in NAMES:
            logs[NAMES[name]] += delta
    top = max(logs)
    raised = [exp(one - top) for one in logs]
    whole = sum(raised)
    return [max(one / whole, LEAST) for one in raised]


def _headers_again(rows: Sequence[Row], labels: Sequence[Label], chances: Sequence[Sequence[float]]) -> set[int]:
    """Rows that repeat a header cell by cell, over the next table or on the next printed page."""
    known: dict[int, set[tuple[object, ...]]] = {}
    out: set[int] = set()
    for index, (row, label, chance) in enumerate(zip(rows, labels, chances, strict=True)):
        cells = tuple([row.values[at] for at in row.filled])
        if len(cells) < 2:
            continue
        if label is Label.HEADER and chance[Label.HEADER] >= SURE:
            known.setdefault(len(cells), set()).add(cells)
        elif label is not Label.HEADER and any(_repeats(cells, one) for one in known.get(len(cells), ())):
            out.add(index)
    return out


def _repeats(cells: tuple[object, ...], header: tuple[object, ...]) -> bool:
    """Whether all cells are equal, or all but the first, which names the table."""
    return cells == header or (len(cells) > 2 and cells[1:] == header[1:])


def _viterbi(rows: Sequence[Row], chances: Sequence[Sequence[float]], model: LabelOrder) -> list[Label]:
    best: list[float] = [WEIGHT * one for one in model.start]
    weighed = [[[WEIGHT * one for one in to] for to in zip(*moves, strict=True)] for moves in model.moves]
    back: list[list[int]] = []
    for at, row in enumerate(rows):
        own = [log(chance) for chance in chances[at]]
        if at:
            moves = weighed[1 if row.gap else 0]
            came: list[int] = []
            now: list[float] = []
            for to in Label:
                tries = list(map(add, best, moves[to]))
                if to in (Label.TITLE, Label.NOTE):
                    tries[Label.HEADER] -= BARE
                origin = tries.index(max(tries))
                came.append(origin)
                now.append(tries[origin] + own[to])
            back.append(came)
            best = now
        else:
            best = [one + two for one, two in zip(best, own, strict=True)]
    label = max(range(len(best)), key=best.__getitem__)
    out = [Label(label)]
    for came in reversed(back):
        label = came[label]
        out.append(Label(label))
    return out[::-1]
