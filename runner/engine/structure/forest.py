"""Boosted trees, trained by tools/train_structure.py and evaluated here without a library.

A forest is three arrays rather than nested lists: a box is a fork, and every list that it only reads would be copied
with its page, because reading an object changes its reference count.
"""

from array import array
from collections.abc import Sequence
from math import exp
from typing import Any

Node = Any  # a leaf's value, or [feature, threshold, where at most, where above]
_LEAF = -1


class Forest:
    """Trees whose leaves add up to the log odds of one answer."""

    __slots__ = ("_features", "_next", "_numbers", "_roots")

    def __init__(self, trees: Sequence[Node]) -> None:
        self._features = array("h")  # of each node, or _LEAF
        self._numbers = array("d")  # the threshold of each node, or the value of a leaf
        self._next = array("i")  # the node to go on with above the threshold; at most, the one right behind
        self._roots = array("i")
        for tree in trees:
            self._roots.append(len(self._features))
            self._add(tree)

    def probability(self, vector: Sequence[float]) -> float:
        return 1.0 / (1.0 + exp(-max(-30.0, min(30.0, self.total(vector)))))

    def total(self, vector: Sequence[float]) -> float:
        """The sum of the leaves that the vector reaches."""
        features, numbers, above = self._features, self._numbers, self._next
        out = 0.0
        for node in self._roots:
            while (feature := features[node]) >= 0:
                node = node + 1 if vector[feature] <= numbers[node] else above[node]  # noqa: PLW2901 - the walk
            out += numbers[node]
        return out

    @property
    def trees(self) -> list[Node]:
        """The trees as nested lists, as they are stored."""
        return [self._nested(root) for root in self._roots]

    def _nested(self, node: int) -> Node:
        if self._features[node] == _LEAF:
            return self._numbers[node]
        low, high = self._nested(node + 1), self._nested(self._next[node])
        return [self._features[node], self._numbers[node], low, high]

    def _add(self, node: Node) -> None:
        if not isinstance(node, list):
            self._features.append(_LEAF)
            self._numbers.append(node)
            self._next.append(0)
            return
        feature, threshold, low, high = node
        at = len(self._features)
        self._features.append(feature)
        self._numbers.append(threshold)
        self._next.append(0)
        self._add(low)
        self._next[at] = len(self._features)
        self._add(high)
