"""The assignment of columns to fields."""

from hypothesis import given
from hypothesis import strategies as st

from runner.engine.mapping import assign as module
from runner.engine.mapping.assign import assign

scores = st.dictionaries(
    st.tuples(st.integers(0, 4), st.integers(0, 4)), st.floats(0.5, 3).map(lambda f: round(f, 3)), max_size=14
)


def total(pairs, chosen):
    return sum(pairs[c, f] for c, f in chosen.items())


def test_a_column_that_loses_its_first_choice_gets_its_next():
    assert assign({(0, 0): 1.0, (1, 0): 0.9, (1, 1): 0.6}) == {0: 0, 1: 1}


def test_the_total_counts_not_the_single_best_pair():
    assert assign({(0, 0): 1.0, (0, 1): 0.9, (1, 0): 0.9}) == {0: 1, 1: 0}


def test_ties_go_to_the_left():
    assert assign({(0, 0): 1.0, (1, 0): 1.0, (2, 0): 1.0}) == {0: 0}


def test_nothing_is_forced():
    assert assign({}) == {}
    assert assign({(3, 2): 0.7}) == {3: 2}


@given(scores)
def test_no_assignment_is_better(pairs):
    # Small enough to try all; the tie-breaking weights lie below the third digit.
    chosen = assign(pairs)
    assert len(set(chosen.values())) == len(chosen)
    assert set(chosen.items()) <= set(pairs)
    assert total(pairs, chosen) >= best_total(pairs) - 1e-6


def best_total(pairs):
    def best(column, taken):
        if column == 5:
            return 0.0
        options = [best(column + 1, taken)]
        options += [
            pairs[column, f] + best(column + 1, taken | {f})
            for f in range(5)
            if (column, f) in pairs and f not in taken
        ]
        return max(options)

    return best(0, frozenset())


@given(scores)
def test_the_method_for_large_knots_gives_a_valid_assignment(pairs):
    columns, fields = sorted({c for c, _ in pairs}), sorted({f for _, f in pairs})
    chosen = module._greedy(columns, fields, pairs)
    assert len(set(chosen.values())) == len(chosen)
    assert set(chosen.items()) <= set(pairs)
    free = [(c, f) for c, f in pairs if c not in chosen and f not in chosen.values()]
    assert free == []


def test_a_wide_table_is_assigned_exactly_in_reasonable_work():
    pairs = {(c, f): 1.0 + (c == f) for c in range(60) for f in range(60)}
    assert assign(pairs) == {n: n for n in range(60)}
