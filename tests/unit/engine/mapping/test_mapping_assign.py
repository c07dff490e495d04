"""The assignment of columns to fields: better evidence first, as many as possible of equal evidence."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from runner.engine.mapping.assign import Rank, assign

scores = st.dictionaries(
    st.tuples(st.integers(0, 4), st.integers(0, 4)), st.sampled_from([0.5, 0.7, 0.9, 1.0]), max_size=14
)
ORDERS = set(permutations((*range(5), *[None] * 5), 5))


def by_score(pairs):
    """Every score is a group of its own."""
    return {pair: Rank((-score,), score) for pair, score in pairs.items()}


def test_a_column_that_loses_its_first_choice_gets_its_next():
    assert assign(by_score({(0, 0): 1.0, (1, 0): 0.9, (1, 1): 0.6})) == {0: 0, 1: 1}


def test_the_best_pair_is_not_traded_for_a_greater_total():
    assert assign(by_score({(0, 0): 1.0, (0, 1): 0.9, (1, 0): 0.9})) == {0: 0}


def test_equal_evidence_serves_as_many_columns_as_possible():
    assert assign(by_score({(0, 0): 0.9, (0, 1): 0.9, (1, 0): 0.9})) == {0: 1, 1: 0}


def test_ties_go_to_the_left():
    assert assign(by_score({(2, 0): 1.0, (1, 0): 1.0, (0, 0): 1.0})) == {0: 0}


def test_inside_a_group_the_greater_weight_goes_first():
    assert assign({(0, 0): Rank((1,), 0.8), (1, 0): Rank((1,), 0.9)}) == {1: 0}


def test_nothing_is_forced():
    assert assign({}) == {}
    assert assign(by_score({(3, 2): 0.7})) == {3: 2}


def test_a_pair_that_no_longer_stands_is_left_out():
    ranks = by_score({(0, 0): 1.0, (1, 0): 0.9, (1, 1): 0.6})
    assert assign(ranks, lambda column, field, chosen: not (field == 1 and 0 in chosen)) == {0: 0}


@given(scores)
def test_no_pair_is_passed_over_for_weaker_evidence(pairs):
    chosen = assign(by_score(pairs))
    owner = {f: c for c, f in chosen.items()}
    assert len(owner) == len(chosen)
    assert set(chosen.items()) <= set(pairs)
    passed_over = [
        (c, f)
        for (c, f), score in pairs.items()
        if (c not in chosen or pairs[c, chosen[c]] < score) and (f not in owner or pairs[owner[f], f] < score)
    ]
    assert passed_over == []


@given(st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=14))
def test_of_equal_evidence_no_assignment_serves_more_columns(pairs):
    most = max(sum((c, f) in pairs for c, f in enumerate(order)) for order in ORDERS)
    assert len(assign(by_score(dict.fromkeys(pairs, 0.9)))) == most


def test_a_wide_table_of_equal_evidence_is_assigned_in_reasonable_work():
    ranks = by_score({(c, f): 1.0 for c in range(150) for f in range(c + 1)})
    assert assign(ranks) == {n: n for n in range(150)}
