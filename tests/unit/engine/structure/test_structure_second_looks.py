"""Mistakes that the structure pass once made on sheets of other people, each as a sheet made up for it."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.engine.structure import find_tables
from runner.engine.structure.facts import row_of
from runner.engine.structure.features import rises
from tests.unit.engine.structure.test_structure_finding import HEADER, Grid, members, only_table, shifted

FORM = [
    ["Owner name", "Harbour Light Company"],
    ["Station", "North Pier"],
    ["Region", "NORD"],
    ["Capacity", 891],
    ["Start date", date(2001, 9, 29)],
    ["End date", date(2001, 10, 25)],
    ["Comments", "expected back by the end of the month"],
    ["Unit", 1006324],
    ["Checked", True],
]
CODES = [["Clear", "C"], ["Cloudy", "CL"], ["Partly cloudy", "PC"], ["Rain", "R"], ["Sleet", "SL"], ["Snow", "SN"]]


def found(lines):
    return [(table.range.a1, table.header_rows) for table in find_tables(Grid(lines))]


def names(lines):
    return [column.name for table in find_tables(Grid(lines)) for column in table.columns]


def test_form_alone_has_no_header():
    assert [headers for _, headers in found(FORM)] == [()]


def test_form_alone_gives_no_value_as_a_name():
    assert names(FORM) == ["Column A", "Column B"]


def test_form_is_called_one():
    assert any("a form" in reason for reason in only_table(FORM).why)


def test_form_with_its_values_further_right_has_no_header():
    assert [headers for _, headers in found([[label, None, value] for label, value in FORM])] == [()]


def test_a_rule_may_give_a_form_a_header():
    tables = find_tables(Grid(FORM), row_scores=lambda number, _: {"header": 20.0} if number == 1 else {})
    assert [table.header_rows for table in tables] == [(1,)]


def test_form_above_a_table_is_no_table():
    assert found([*FORM, [], [], HEADER, *members(20)]) == [("A12:D32", (12,))]


def test_list_of_pairs_without_a_header_gives_no_value_as_a_name():
    assert names([["Weather codes in use"], *CODES]) == ["Column A", "Column B"]


def test_scratch_cells_without_a_header_below_a_table_are_no_table():
    scratch = [["Ann", 289, 0.049], ["Bob", 133, 0.023], ["Cid", 627, 0.107], ["Eve", 24, 0.004], [None, 1073]]
    assert found([HEADER, *members(30), *[[]] * 20, *scratch]) == [("A1:D31", (1,))]


def test_big_body_without_a_header_stands_beside_a_small_table():
    numbers = [[at, at * 1.5, at * at, 100 - at] for at in range(60)]
    ranges = [one for one, _ in found([HEADER, *members(5), *[[]] * 12, *numbers])]
    assert ranges[-1] == "A19:D78"


def test_a_pair_of_cells_beside_a_table_is_no_table():
    lines = [line + [None] * (4 - len(line)) for line in [HEADER, *members(20)]]
    lines[2] += [None, "km", "miles"]
    lines[3] += [None, 1207, 651.7]
    assert found(lines) == [("A1:D21", (1,))]


def test_header_that_starts_over_parts_two_tables():
    left = [["Year", "Month", "Jobs"], *[[2010 + at // 12, at % 12 + 1, 650_000 + at * 37] for at in range(24)]]
    right = [["Year", "Month", "Rate"], *[[2010 + at // 12, at % 12 + 1, 7.1 + at / 10] for at in range(24)]]
    assert [one for one, _ in found([a + b for a, b in zip(left, right, strict=True)])] == ["A1:C25", "D1:F25"]


def test_header_under_captions_may_start_over_in_one_table():
    lines = [
        ["Region", "Men", None, "Women", None],
        [None, "Number", "Percent", "Number", "Percent"],
        *[[f"Region {at}", 100 + at, 41.5 + at, 90 + at, 58.5 - at] for at in range(12)],
    ]
    assert found(lines) == [("A1:E14", (1, 2))]


def test_narrow_rows_of_other_kinds_after_two_blank_rows_are_no_part_of_the_table():
    hours = [["Hours", *[f"HE{at}" for at in range(1, 13)]]]
    hours += [[name, *[at * 3.5 for at in range(12)]] for name in ("Buys", "Sells", "Load", "Losses", "Variance")]
    prices = [["Peak long", "Peak", 23.78], ["Peak short", "Peak", 24.28], ["Off long", "Off", 17.32]]
    assert found([*hours, [], [], *prices])[0][0] == "A1:M6"


def test_first_of_several_captions_is_no_header_row():
    years = ["", 2009, 2010, 2011, 2012]
    lines = [["Pupils by sex"], years]
    for caption in ("All pupils", "Boys", "Girls"):
        lines += [[caption], *[[f"Level {at}", 500 + at, 520 + at, 531 + at, 544 + at] for at in range(1, 6)]]
    table = only_table(lines)
    assert (table.header_rows, table.groups) == ((2,), {3, 9, 15})


@pytest.mark.parametrize(
    "cells",
    [
        ["Region", 1990, 1995, 2000, 2005],
        ["Region", "2004/05", "2005/06", "2006/07", "2007/08"],
        ["Region", date(2001, 11, 1), date(2001, 12, 1), date(2002, 1, 1), date(2002, 2, 1)],
        ["Region", "2001-11-01", "2001-12-01", "2002-01-01", "2002-02-01"],
    ],
)
def test_years_and_dates_in_a_header_rise(cells):
    assert rises(row_of(1, cells, ordinal=0, gap=0)) == 1.0


def test_measurements_do_not_rise():
    assert rises(row_of(1, ["Oslo", 12.5, 3.1, 8.8, 2.0], ordinal=0, gap=0)) < 0.5


CELLS = st.one_of(
    st.none(), st.integers(-1000, 3000), st.floats(allow_nan=False, width=32), st.sampled_from(["", "a", "Total", "x:"])
)


@given(st.lists(st.lists(CELLS, max_size=7), max_size=25))
def test_whatever_stands_in_a_sheet_its_tables_are_well_formed(lines):
    for table in find_tables(Grid(lines)):
        box = table.range
        assert box.top <= box.bottom
        assert box.left <= box.right
        assert all(box.top <= row <= box.bottom for row in table.header_rows)
        assert len(table.columns) == box.right - box.left + 1
        assert table.data_range is None or box.top <= table.data_range.top <= table.data_range.bottom <= box.bottom
        assert 0 <= table.confidence <= 1


@given(st.integers(0, 4), st.integers(1, 40))
def test_a_table_is_found_wherever_it_is(columns, count):
    lines = shifted([HEADER, *members(count)], columns)
    assert found(lines)[0][1] == (1,)
