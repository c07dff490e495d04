"""Blocks with the same header are never one table, whatever the format says about them."""

import pytest

from runner.engine.common.a1 import CellRange
from runner.engine.reading import Layout
from runner.engine.reading.books import Design
from runner.engine.structure import find_tables
from runner.engine.structure.equal_blocks import is_named_alike
from runner.engine.structure.facts import row_of
from runner.engine.structure.grid import Span
from tests.unit.engine.structure.test_structure_finding import Grid

HEAD = ["member_id", "phone"]


def block(start, rows):
    return [[start + at, f"+3972326{start + at}"] for at in range(rows)]


def ranges(lines, *, with_designs):
    cells = {n: dict.fromkeys(range(1, 9), 0) for n in range(1, len(lines) + 1)} if with_designs else {}
    designs = [Design()] if with_designs else []
    return [table.range for table in find_tables(Grid(lines, Layout(cell_designs=cells, designs=designs)))]


def beside(left, right, blank, header=HEAD):
    longest = max(len(left), len(right))
    rows = [[*(left[n] if n < len(left) else [None, None]), *[None] * blank,
             *(right[n] if n < len(right) else [])] for n in range(longest)]  # fmt: skip
    return [[*HEAD, *[None] * blank, *header], *rows]


@pytest.mark.parametrize("with_designs", [True, False])
@pytest.mark.parametrize("blank", [0, 1, 2, 3])
@pytest.mark.parametrize("rows", [3, 4])
def test_blocks_beside_each_other_with_the_same_header_are_two_tables(rows, blank, with_designs):
    found = ranges(beside(block(3715, 4), block(3715, rows), blank), with_designs=with_designs)
    assert found == [CellRange(1, 1, 5, 2), CellRange(1, 3 + blank, rows + 1, 4 + blank)]


@pytest.mark.parametrize("with_designs", [True, False])
@pytest.mark.parametrize("blank", [1, 3])
def test_blocks_below_each_other_with_the_same_header_are_two_tables(blank, with_designs):
    lines = [HEAD, *block(3715, 4), *[[]] * blank, HEAD, *block(3719, 3)]
    found = ranges(lines, with_designs=with_designs)
    assert found == [CellRange(1, 1, 5, 2), CellRange(6 + blank, 1, 9 + blank, 2)]


def test_columns_of_several_periods_beside_their_names_are_one_table():
    rows = [[f"Plant {n}", None, 10.5 * n, 11.5 * n, None, 12.5 * n, 13.5 * n] for n in range(1, 9)]
    found = ranges([["Plant", None, "Plan", "Actual", None, "Plan", "Actual"], *rows], with_designs=False)
    assert found == [CellRange(1, 1, 9, 7)]


@pytest.mark.parametrize(("label", "alike"), [("Hours", True), (None, False)])
def test_a_block_whose_first_column_has_no_label_does_not_repeat_another(label, alike):
    head = row_of(1, [label, "Plan", "Actual", None, label, "Plan", "Actual"], ordinal=0, gap=0)
    assert is_named_alike([head], [0], Span(0, 2), Span(4, 6)) is alike
