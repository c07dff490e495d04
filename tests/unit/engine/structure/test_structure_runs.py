"""Long runs of plain rows are taken in stride; the tables are the same as when each row is checked."""

from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.engine.reading.books import turned
from runner.engine.structure.detection import TableDetector
from tests.support.effort import examples

HEADER = ["Id", "Name", "Start", "Pay"]


def plain(n):
    return [n, f"Name {n}", datetime(2024, 1, 1 + n % 28), 10.5 * n]


ODD = {
    "total": ["Total", None, None, 99.0],
    "caption": ["Department 7"],
    "header again": HEADER,
    "text where numbers are": ["n/a", "x", "unknown", "n/a"],
    "short": [1],
    "wide": [1, "a", datetime(2024, 1, 1), 2.0, "more", 3],
}


def taken(rows):
    one_by_one, at_once = TableDetector(), TableDetector()
    for number, values in rows:
        one_by_one.add(number, values)
    at_once.add_blocks(turned(rows))
    return one_by_one.tables(), at_once.tables()


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.tuples(st.integers(2, 900), st.sampled_from(sorted(ODD)), st.integers(0, 5)), max_size=6))
def test_taking_rows_at_once_finds_the_same_tables(odd):
    rows, gap = [(1, HEADER)], 0
    strange = {at: (ODD[kind], blank) for at, kind, blank in odd}
    for n in range(2, 900):
        values, blank = strange.get(n, (plain(n), 0))
        gap += blank
        rows.append((n + gap, values))
    one_by_one, at_once = taken(rows)
    assert at_once == one_by_one


@pytest.mark.parametrize("kind", sorted(ODD))
def test_a_row_that_stands_out_far_down_is_seen(kind):
    rows = [
        (1, HEADER),
        *((n, plain(n)) for n in range(2, 3000)),
        (3000, ODD[kind]),
        *((n, plain(n)) for n in range(3001, 3050)),
    ]
    one_by_one, at_once = taken(rows)
    assert at_once == one_by_one
