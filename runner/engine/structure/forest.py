"""Boosted trees, trained by tools/train_structure.py and evaluated here without a library.

A forest is three arrays rather than nested lists: a box is a fork, and every list that it only reads would be copied
with its page, because reading an object changes its reference count.
"""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from math import exp
from operator import or_
from typing import Any

Node = Any  # a leaf's value, or [feature, threshold, where at most, where above]
_LEAF = -1


class Batch:
    """Vectors that are evaluated together. A set of them is a whole number with one bit for each.

    The rows of a sheet are mostly alike, so most nodes of a tree send all of them the same way.
    """

    __slots__ = ("_columns", "_members", "everyone", "highest", "lowest", "size", "sorted")

    def __init__(self, vectors: Sequence[Sequence[float]]) -> None:
        self.size = len(vectors)
        self.everyone = (1 << self.size) - 1
        self._columns = list(zip(*vectors, strict=True))
        self.lowest = list(map(min, self._columns))
        self.highest = list(map(max, self._columns))
        self.sorted: dict[int, tuple[list[float], list[int]]] = {}  # what `sort` returned
        self._members: dict[int, list[int]] = {}

    def sort(self, feature: int) -> tuple[list[float], list[int]]:
        """Return the values of a feature in order, and the sets of the first none, one, two … vectors in that order."""
        column = self._columns[feature]
        order = sorted(range(self.size), key=column.__getitem__)
        sets = [0, *accumulate([1 << at for at in order], or_)]
        found = self.sorted[feature] = [column[at] for at in order], sets
        return found

    def members(self, those: int) -> list[int]:
        """Return the numbers of the vectors in a set."""
        found = self._members.get(those)
        if found is None:
            found, left = [], those
            while left:
                found.append((left & -left).bit_length() - 1)
                left &= left - 1
            self._members[those] = found
        return found


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

    def probabilities(self, vectors: Sequence[Sequence[float]]) -> list[float]:
        """As `probability`, of each vector: fast for many that are alike."""
        if not vectors:
            return []
        return [1.0 / (1.0 + exp(-max(-30.0, min(30.0, one)))) for one in self.totals(Batch(vectors))]

    def total(self, vector: Sequence[float]) -> float:
        """Return the sum of the leaves that the vector reaches."""
        features, numbers, above = self._features, self._numbers, self._next
        out = 0.0
        for node in self._roots:
            while (feature := features[node]) >= 0:
                node = node + 1 if vector[feature] <= numbers[node] else above[node]  # noqa: PLW2901 - the walk
            out += numbers[node]
        return out

    def totals(self, batch: Batch) -> list[float]:
        """As `total`, of each vector: each tree is walked once for all that go the same way."""
        features, numbers, above = self._features, self._numbers, self._next
        lowest, highest, ordered, members = batch.lowest, batch.highest, batch.sorted, batch.members
        out = [0.0] * batch.size
        for root in self._roots:
            node, those = root, batch.everyone
            left: list[tuple[int, int]] = []
            while True:
                while (feature := features[node]) >= 0:
                    threshold = numbers[node]
                    if highest[feature] <= threshold:
                        node += 1
                    elif lowest[feature] > threshold:
                        node = above[node]
                    else:
                        values, sets = ordered.get(feature) or batch.sort(feature)
                        low = those & sets[bisect_right(values, threshold)]
                        if low == those:
                            node += 1
                        elif not low:
                            node = above[node]
                        else:
                            left.append((above[node], those ^ low))
                            node, those = node + 1, low
                value = numbers[node]
                for at in members(those):
                    out[at] += value
                if not left:
                    break
                node, those = left.pop()
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
