"""The most likely sequence of labels: each row's own chances, and which label follows which."""

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import Protocol

from runner.engine.structure.labels import NAMES, Label
from runner.engine.structure.rows import Row

WEIGHT = 0.3  # of the sequence against the row's own look; chosen by cross-validation
BARE = 2.0  # points against a header with nothing under it
SURE = 0.9  # chance of a header that others are measured by
AGAIN = 5.0  # points for a row that repeats a header
LEAST = 1e-12  # chance of what a rule speaks against as loudly as it can


class Sequel(Protocol):
    """Which label opens a sheet and which follows which, as logs of chances."""

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
    model: Sequel,
    scores: Scores | None = None,
) -> tuple[list[Label], list[list[float]]]:
    """The labels of the rows, and the chances with the `scores` of detectors and rules worked into them."""
    if not rows:
        return [], []
    told = [_told(one, (scores or {}).get(row.number)) for row, one in zip(rows, chances, strict=True)]
    labels = _viterbi(rows, told, model)
    again = _headers_again(rows, labels, told)
    if not again:
        return labels, told
    told = [_told(one, {"header": AGAIN}) if at in again else one for at, one in enumerate(told)]
    return _viterbi(rows, told, model), told


def _told(chances: Sequence[float], scores: Mapping[str, float] | None) -> list[float]:
    """Chances after points were added to some labels' odds."""
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
    """Rows that repeat a header cell by cell, as over the next table or on the next printed page."""
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
    """All cells the same, or all but a first that names the table."""
    return cells == header or (len(cells) > 2 and cells[1:] == header[1:])


def _viterbi(rows: Sequence[Row], chances: Sequence[Sequence[float]], model: Sequel) -> list[Label]:
    best: list[float] = [WEIGHT * one for one in model.start]
    back: list[list[int]] = []
    for at, row in enumerate(rows):
        own = [log(chance) for chance in chances[at]]
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
