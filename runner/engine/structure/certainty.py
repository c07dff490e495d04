"""How likely the header of a table is right: its last row, or that there is none.

The classifier's chances of the rows say more than is so. A line of weights (certainty.json, fitted by
tools/train_structure.py on sheets that the classifier had not seen) turns them into a probability.
"""

import json
from collections.abc import Sequence
from functools import cache
from math import exp, log
from pathlib import Path

from runner.engine.structure.bands import Draft
from runner.engine.structure.tables import BODY, Label

EVIDENCE = ("one", "inside", "head", "last", "headless", "above", "close")
EDGE = 5  # rows at both ends of a body that count
STATED = 0.99  # of a header that the file declares or the manifest sets
MOST, LEAST = 0.99, 0.01
FLOOR = 0.02  # of a chance whose odds count


def evidence(draft: Draft) -> tuple[float, ...]:
    """Return what speaks for the header of a draft, in the order of EVIDENCE."""
    band, chances = draft.band, draft.chances
    inside = [sum(chances[at][label] for label in BODY) for at in band.body[:EDGE] + band.body[-EDGE:]]
    head = [chances[at][Label.HEADER] for at in band.head]
    first = band.all[0]
    return (
        1.0,
        _odds(sum(inside) / len(inside)) if inside else 0.0,
        _odds(sum(head) / len(head)) if head else 0.0,
        _odds(head[-1]) if head else 0.0,
        float(not head),
        chances[first - 1][Label.HEADER] if first else 0.0,
        float(any(choice.kind == "header" for choice in draft.choices)),
    )


def chance_of(values: Sequence[float]) -> float:
    """Return the probability that a header with this evidence is right."""
    odds = sum(weight * value for weight, value in zip(_weights(), values, strict=True))
    return max(LEAST, min(MOST, 1.0 / (1.0 + exp(-max(-30.0, min(30.0, odds))))))


def of(draft: Draft) -> float:
    """Return the probability that the header of a draft is right."""
    return STATED if draft.declared or draft.is_fixed else chance_of(evidence(draft))


@cache
def _weights() -> tuple[float, ...]:
    """Load the shipped weights, once per process."""
    raw = json.loads(Path(__file__).with_name("certainty.json").read_text(encoding="utf-8"))
    if tuple(raw["evidence"]) != EVIDENCE:
        raise RuntimeError("certainty.json was fitted for other evidence: run tools/train_structure.py")
    return tuple(raw["weights"])


def _odds(chance: float) -> float:
    """Return the log odds of a chance, within limits."""
    limited = max(FLOOR, min(1.0 - FLOOR, chance))
    return log(limited / (1.0 - limited))
