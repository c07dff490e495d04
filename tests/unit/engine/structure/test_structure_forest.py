"""Trees that are walked once for many rows give each row what they give it alone."""

import random

import pytest

from runner.engine.structure import labelling
from runner.engine.structure.forest import Batch, Forest


@pytest.mark.parametrize("size", [1, 2, 7, 61])
def test_a_batch_gets_exactly_the_totals_of_its_vectors(size: int) -> None:
    draw = random.Random(size)
    forest = labelling.load().classes[0]
    features = 1 + max(_features(tree) for tree in forest.trees)
    vectors = [[draw.choice((-1.0, 0.0, 0.5, 1.0, 3.0, draw.random())) for _ in range(features)] for _ in range(size)]
    assert forest.totals(Batch(vectors)) == [forest.total(vector) for vector in vectors]


def test_a_value_at_the_threshold_goes_where_at_most_leads() -> None:
    forest = Forest([[0, 1.0, 10.0, 20.0]])
    assert forest.totals(Batch([[1.0], [1.5]])) == [10.0, 20.0]


def test_no_rows_have_no_labels() -> None:
    assert labelling.load().chances_of([]) == []


def _features(node: object) -> int:
    """The highest feature that a tree asks for."""
    return max(node[0], _features(node[2]), _features(node[3])) if isinstance(node, list) else -1
