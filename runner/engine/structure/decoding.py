"""The most likely sequence of labels: each row's own chances, and which label follows which."""

from collections.abc import Mapping, Sequence
from math import log

from runner.engine.structure.labels import NAMES, Label
from runner.engine.structure.model import Model
from runner.engine.structure.rows import Row

WEIGHT = 0.3  # of the sequence against the row's own look; chosen by cross-validation
BARE = 2.0  # points against a header with nothing under it
SURE = 0.9  # chance of a header that others are measured by
AGAIN = 5.0  # points for a row that repeats a header


Scores = Mapping[int, Mapping[str, float]]  # by row number, then by label


def decode(
    rows: Sequence[Row],
    chances: Sequence[Sequence[float]],
    model: Model,
    scores: Scores | None = None,
) -> list[Label]:
    """The labels of the rows; `scores` come from the rules in `row_types/`."""
    if not rows:
        return []
    labels = _viterbi(rows, chances, model, scores or {})
    again = _headers_again(rows, labels, chances)
    if not again:
        return labels
    more = {number: {**(scores or {}).get(number, {}), "header": AGAIN} for number in again}
    return _viterbi(rows, chances, model, {**(scores or {}), **more})


def _headers_again(rows: Sequence[Row], labels: Sequence[Label], chances: Sequence[Sequence[float]]) -> list[int]:
    """Rows that repeat a header cell by cell, as over the next table or on the next printed page."""
    known: dict[int, set[tuple[object, ...]]] = {}
    out: list[int] = []
    for row, label, chance in zip(rows, labels, chances, strict=True):
        cells = tuple(row.values[at] for at in row.filled)
        if len(cells) < 2:
            continue
        if label is Label.HEADER and chance[Label.HEADER] >= SURE:
            known.setdefault(len(cells), set()).add(cells)
        elif label is not Label.HEADER and any(_repeats(cells, one) for one in known.get(len(cells), ())):
            out.append(row.number)
    return out


def _repeats(cells: tuple[object, ...], header: tuple[object, ...]) -> bool:
    """All cells the same, or all but a first that names the table."""
    return cells == header or (len(cells) > 2 and cells[1:] == header[1:])


def _viterbi(rows: Sequence[Row], chances: Sequence[Sequence[float]], model: Model, scores: Scores) -> list[Label]:
    best: list[float] = [WEIGHT * one for one in model.start]
    back: list[list[int]] = []
    for at, row in enumerate(rows):
        own = [log(chance) for chance in chances[at]]
        for name, delta in scores.get(row.number, {}).items():
            if name in NAMES:
                own[NAMES[name]] += delta
        if at:
            moves = model.moves[1 if row.gap else 0]
            came: list[int] = []
            now: list[float] = []
            for to in Label:
                tries = [best[origin] + WEIGHT * moves[origin][to] for origin in Label]
                if to in (Label.TITLE, Label.NOTE):
                    tries[Label.HEADER] -= BARE
                origin = max(range(len(tries)), key=tries.__getitem__)
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
