"""The most likely sequence of labels: each row's own chances, and which label follows which."""

from collections.abc import Mapping, Sequence
from math import log

from runner.engine.structure.labels import NAMES, Label
from runner.engine.structure.model import Model
from runner.engine.structure.rows import Row

WEIGHT = 0.3  # of the sequence against the row's own look; chosen by cross-validation


def decode(
    rows: Sequence[Row],
    chances: Sequence[Sequence[float]],
    model: Model,
    scores: Mapping[int, Mapping[str, float]] | None = None,
) -> list[Label]:
    """Viterbi over the rows; `scores` by row number come from the rules in `row_types/`."""
    if not rows:
        return []
    best: list[float] = [WEIGHT * one for one in model.start]
    back: list[list[int]] = []
    for at, row in enumerate(rows):
        own = [log(chance) for chance in chances[at]]
        for name, delta in (scores or {}).get(row.number, {}).items():
            if name in NAMES:
                own[NAMES[name]] += delta
        if at:
            moves = model.moves[1 if row.gap else 0]
            came: list[int] = []
            now: list[float] = []
            for to in Label:
                tries = [best[origin] + WEIGHT * moves[origin][to] for origin in Label]
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
