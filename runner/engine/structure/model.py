"""The line classifier: boosted trees from tests/bench/train_structure.py, without any library."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import exp
from pathlib import Path
from typing import Any

from runner.engine.structure import features
from runner.engine.structure.labels import Label

Node = Any  # a leaf's value, or [feature, threshold, where at most, where above]
FLOOR = 1e-6


@dataclass(frozen=True, slots=True)
class Model:
    classes: tuple[tuple[Node, ...], ...]  # the trees of each label
    start: tuple[float, ...]  # log of how often each label opens a sheet
    moves: tuple[tuple[tuple[float, ...], ...], ...]  # log odds of label to label: without and with a gap

    def chances_of(self, vectors: Sequence[Sequence[float]]) -> list[list[float]]:
        return [self.chances(vector) for vector in vectors]

    def chances(self, vector: Sequence[float]) -> list[float]:
        """How likely each label is for a row, summing to one."""
        scores = []
        for trees in self.classes:
            total = 0.0
            for tree in trees:
                node = tree
                while node.__class__ is list:
                    node = node[2] if vector[node[0]] <= node[1] else node[3]
                total += node
            scores.append(total)
        top = max(scores)
        raised = [exp(score - top) for score in scores]
        whole = sum(raised)
        return [max(one / whole, FLOOR) for one in raised]


@cache
def load() -> Model:
    """The weights that come with the package; read once a process."""
    with Path(__file__).with_name("weights.json").open(encoding="utf-8") as file:
        raw = json.load(file)
    if raw["labels"] != [label.name.lower() for label in Label] or raw["features"] != features.names():
        raise RuntimeError("weights.json was trained for other labels or features: run tests/bench/train_structure.py")
    return Model(
        classes=tuple(tuple(trees) for trees in raw["classes"]),
        start=tuple(raw["start"]),
        moves=tuple(tuple(tuple(line) for line in table) for table in raw["moves"]),
    )
