"""Boosted trees, trained by tools/train_structure.py and evaluated here without a library."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Any

Node = Any  # a leaf's value, or [feature, threshold, where at most, where above]


@dataclass(frozen=True, slots=True)
class Forest:
    """Trees whose leaves add up to the log odds of one answer."""

    trees: tuple[Node, ...]

    def probability(self, vector: Sequence[float]) -> float:
        return 1.0 / (1.0 + exp(-max(-30.0, min(30.0, total(self.trees, vector)))))


def total(trees: Sequence[Node], vector: Sequence[float]) -> float:
    """The sum of the leaves that the vector reaches."""
    out = 0.0
    for tree in trees:
        node = tree
        while node.__class__ is list:
            node = node[2] if vector[node[0]] <= node[1] else node[3]
        out += node
    return out
