"""What lines, fills, styles and sums say about tables, and how many regions a sheet is divided into."""

import struct
from datetime import date

import pytest

from runner.engine.reading import Layout
from runner.engine.reading.books import Design
from runner.engine.reading.formula_areas import areas_read
from runner.engine.structure import search
from runner.engine.structure.designs import UNKNOWN, Designs
from runner.engine.structure.facts import row_of
from runner.engine.structure.forest import Forest
from runner.engine.structure.grid import Grid, Rect
from runner.engine.structure.rectangles import DESIGN, RECTANGLE, UNREAD, Cuts, Describer
from runner.engine.structure.regions import Regions
from runner.engine.structure.repeats import Repeats

DATA = [0.02, 0.9, 0.02, 0.02, 0.02, 0.02]
FORMULA = bytes(20)


def formula(*tokens):
    joined = b"".join(tokens)
    return FORMULA + struct.pack("<H", len(joined)) + joined


def area(token, top, bottom, left, right):
    return bytes([token]) + struct.pack("<4H", top - 1, bottom - 1, left - 1 | 0xC000, right - 1 | 0xC000)


def test_the_areas_of_a_formula_are_found_behind_other_tokens():
    text = b"\x17\x02\x01a\x00b\x00"  # "ab", two bytes a letter
    number = b"\x1e\x07\x00"
    body = formula(text, number, b"\x03", area(0x25, 5, 20, 2, 2), b"\x19\x10\x00\x00", area(0x45, 1, 1, 1, 4))
    assert list(areas_read(body)) == [(5, 2, 20, 2), (1, 1, 1, 4)]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        FORMULA,
        FORMULA + b"\xff\xff\x25\x01",  # longer than it is
        formula(b"\x25\x01\x00"),  # an area that is cut off
        formula(b"\x17"),
        formula(b"\x19\x04\xff\xff"),  # a choice of more than there is
        formula(b"\x3f", area(0x25, 1, 2, 1, 1)),  # not known: what follows is not read
    ],
)
def test_a_damaged_formula_has_no_areas(body):
    assert list(areas_read(body)) == []


def rows_of(lines):
    out, last = [], 0
    for number, values in lines:
        out.append(row_of(number, values, ordinal=len(out), gap=number - last - 1))
        last = number
    return out


LINES = [(1, ["Id", "Qty"]), (2, ["a", 1]), (3, ["b", 2]), (5, ["Sum", 3])]


def layout():
    framed, plain, head = (
        Design(True, True, True, True, kind=1),
        Design(size=200, kind=1),
        Design(fill=9, size=400, kind=2),
    )
    cells = {1: {1: 2, 2: 2}, 2: {1: 0, 2: 0}, 3: {1: 1, 2: 1}, 5: {1: 1, 2: 1}}
    return Layout(cell_designs=cells, designs=[framed, plain, head], formulas={5: {2}}, summed=[(2, 2, 3, 2)])


def test_looks_tell_lines_fills_styles_and_sums():
    designs = Designs(rows_of(LINES), layout(), 2)
    assert [designs.over(line, 0, 1) for line in range(4)] == [0, 1, 1, 0]  # the line below row 2 is above row 3
    assert [designs.fill(line, 0, 1) for line in range(4)] == [1, 0, 0, 0]
    assert designs.same(0, 1, 0, 1) == 0
    assert designs.same(1, 2, 0, 1) == 1  # lines alone do not make them differ
    assert designs.size(0, 0, 1) == 2 * designs.size(2, 0, 1)
    assert designs.formulas(3, 0, 1) == 0.5
    assert designs.sums_across(2, 3, 0, 1) == 1
    assert designs.sums_across(3, 5, 0, 1) == 0
    assert designs.sums_across(2, 3, 0, 0) == 0  # of another column


def test_without_looks_every_answer_is_unknown():
    designs = Designs(rows_of(LINES), Layout(), 2)
    answers = [
        designs.over(0, 0, 1), designs.under(0, 0, 1), designs.beside(0, 0, 1), designs.fill(0, 0, 1), designs.same(0, 1, 0, 1),
        designs.same_columns(0, 1, [0]), designs.size(0, 0, 1), designs.gap_drawn(2, 3, 0, 1), designs.formulas(0, 0, 1),
        designs.sums_across(2, 3, 0, 1),
    ]  # fmt: skip
    assert set(answers) == {UNKNOWN}


def test_a_rectangle_is_described_in_the_order_of_its_names():
    grid = Grid(rows_of(LINES), [DATA] * 4, layout())
    described = Describer(grid, Cuts(grid, Forest(()), Forest(())), ()).describe(Rect(0, 3, 0, 1))
    assert len(described) == len(RECTANGLE) == len(UNREAD) + 9
    known = dict(zip(RECTANGLE, described, strict=True))
    assert (known["sums_inside"], known["sums_over_edge"], known["colour_first"]) == (1, 0, 1)
    plain = Grid(rows_of(LINES), [DATA] * 4, Layout())
    described = Describer(plain, Cuts(plain, Forest(()), Forest(())), ()).describe(Rect(0, 3, 0, 1))
    assert {dict(zip(RECTANGLE, described, strict=True))[name] for name in DESIGN} == {UNKNOWN}


DATES = [None, date(2024, 1, 1), date(2024, 2, 1), date(2024, 3, 1)]


def test_a_block_under_the_same_dates_as_one_above_repeats_it():
    block = [DATES, ["High", 1, 2, 3], ["Low", 4, 5, 6]]
    lines = [(row + at, values) for row in (1, 6) for at, values in enumerate(block)]
    repeats = Repeats(Grid(rows_of(lines), [DATA] * 6, Layout()))
    values, kinds, _, run, names = repeats.above(3, 0, 3)
    assert (values, kinds, run, names) == (1, 1, 3, 2 / 3)  # the line of dates has no first cell
    assert repeats.above(0, 0, 3) == (0, 0, 0, 0, 0)  # nothing is above
    assert repeats.within(Rect(0, 5, 0, 3), range(6))[0] == 1
    assert repeats.within(Rect(0, 2, 0, 3), range(3))[:2] == [-1, -1]  # a single block
    assert repeats.within(Rect(0, 2, 0, 3), range(3))[3] == 1  # and its repetition outside


def test_blocks_with_other_values_repeat_only_kinds():
    lines = [(1, ["a", 1]), (2, ["b", 2]), (4, ["c", 3]), (5, ["d", 4])]
    repeats = Repeats(Grid(rows_of(lines), [DATA] * 4, Layout()))
    assert repeats.above(2, 0, 1)[:2] == (0, 1)


def test_many_vectors_get_the_probabilities_of_each():
    forest = Forest([[0, 1.0, -2.0, 2.0], [1, 0.5, 0.0, 1.0]])
    vectors = [[0.0, 0.0], [2.0, 1.0], [1.0, 3.0]]
    assert forest.probabilities(vectors) == [forest.probability(one) for one in vectors]
    assert forest.probabilities([]) == []


def test_a_rectangle_may_start_at_a_line_that_is_blank_in_its_columns():
    grid = Grid(rows_of([(1, ["Title"]), (2, [None, "a", 1]), (3, [None, "b", 2])]), [DATA] * 3, Layout())
    described = Describer(grid, Cuts(grid, Forest(()), Forest(())), ()).describe(Rect(0, 2, 1, 2))
    assert dict(zip(RECTANGLE, described, strict=True))["top_indent"] == UNKNOWN


@pytest.mark.parametrize("most", [1, 7, 160])
def test_a_sheet_of_many_blocks_has_no_more_regions_than_allowed(most):
    lines = [(1 + 4 * block + line, ["x", 1, None, "y", 2]) for block in range(60) for line in range(3)]
    grid = Grid(rows_of(lines), [DATA] * len(lines), Layout())
    regions = Regions(grid, Cuts(grid, Forest(()), Forest(())), most)
    assert next(iter(regions.divisions)) == regions.whole
    assert len(regions.divisions) == most


def test_the_best_partition_takes_the_likely_tables_of_a_division():
    lines = [(row, ["x", 1, None, "y", 2]) for row in range(1, 5)]
    grid = Grid(rows_of(lines), [DATA] * 4, Layout())
    regions = Regions(grid, Cuts(grid, Forest(()), Forest(())), 160)
    left, right, whole = Rect(0, 3, 0, 1), Rect(0, 3, 3, 4), Rect(0, 3, 0, 4)

    def best(chances):
        every = dict.fromkeys(regions.divisions, 0.0) | chances
        solver = search.Solver(regions.whole, regions.divisions, every, grid.cells)
        return solver.best().tables

    assert best({left: 0.8, right: 0.7, whole: 0.9}) == (left, right)
    assert best({left: 0.4, right: 0.3, whole: 0.9}) == (whole,)
    assert best({left: 0.9, right: 0.0, whole: 0.2}) == (left,)
