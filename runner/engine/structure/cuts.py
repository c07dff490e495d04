"""Describes the places where one table may end and another begin: between two lines, and at blank columns.

A place between lines is described for the columns of a region only: what is beside it does not count. Two small forests
(forest.py) turn the description into the probability that no table spans the place.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from runner.engine.structure.facts import CellKind
from runner.engine.structure.grid import TEXT, VALUE, Grid, Rect, Span
from runner.engine.structure.repeats import Repeats
from runner.engine.structure.tables import BODY, Label

NEAR = 8  # lines above and below that are compared
FAR = 40  # lines above among which the header of the block above is looked for
WIDEST = 20  # blank rows from which more do not matter
COMPARED_LINES = 60  # lines whose designs are compared
TITLES = 3  # rows above a rectangle whose merged cells count
FIRST = 5  # lines of a strip that may name its columns
UNKNOWN = -1.0
_BODY = sorted(BODY)

ROW_CUT = (
    "gap", "gap_to_widest", "gap_to_usual", "gaps",
    *(f"above_{label.name.lower()}" for label in Label), *(f"below_{label.name.lower()}" for label in Label),
    "next_header", "next_body", "before_header", "before_body",
    "cells_above", "cells_below", "widest_above", "widest_below", "lines_above", "lines_below",
    "left_moves", "right_moves", "same_kinds", "fits_above", "over_values", "texts_below", "header_again",
    "first_length", "beside_above", "beside_below", "bold_above", "bold_below", "bold_next",
    "look_same", "look_same_after", "look_same_before", "line_under", "line_over", "line_under_next",
    "fill_above", "fill_below", "fill_next", "size_above", "size_below",
    "gap_drawn", "sums_across", "formulas_above", "formulas_below",
    "indent_above", "indent_below", "indent_next", "longest_above", "longest_below",
    "again_values", "again_kinds", "again_looks", "again_lines", "again_names",
)  # fmt: skip
COLUMN_CUT = (
    "gap", "gap_share", "left_width", "right_width", "left_lines", "right_lines", "left_shared", "right_shared",
    "starts_later", "ends_later", "height_ratio", "header_again",
    "left_key_filled", "left_key_texts", "left_key_distinct", "right_key_filled", "right_key_texts",
    "right_key_distinct", "left_end_texts", "left_texts", "right_texts", "equal_keys",
    "left_header", "left_data", "right_header", "right_data", "left_named", "right_named", "same_width", "rows",
    "gap_width", "gap_relative_width", "gap_lined",
    "line_right_of_left", "line_left_of_right", "look_same", "look_same_firsts", "gap_filled", "merged_over",
)  # fmt: skip


class LinePlace(NamedTuple):
    """Two lines that are neighbours in some columns."""

    above: int
    below: int
    left: int
    right: int


def row_cut(grid: Grid, place: LinePlace, gaps: Sequence[int], repeats: Repeats) -> list[float]:
    """Describe a place in the order of ROW_CUT; `gaps`: the blank rows between the other lines of these columns."""
    above, below, left, right = place
    upper, lower = _block(grid, place, NEAR, up=True), _block(grid, place, NEAR, up=False)
    gap = min(grid.gap(above, below), WIDEST)
    usual = sorted(gaps)[len(gaps) // 2] if gaps else 0
    after = grid.chances[lower[1]] if len(lower) > 1 else None
    before = grid.chances[upper[1]] if len(upper) > 1 else None
    return [
        gap, gap - max(gaps, default=0), gap - usual, len(gaps),
        *grid.chances[above], *grid.chances[below],
        *_head_and_body(after), *_head_and_body(before),
        grid.cells_of(above, left, right), grid.cells_of(below, left, right),
        max(grid.cells_of(line, left, right) for line in upper),
        max(grid.cells_of(line, left, right) for line in lower),
        len(upper), len(lower),
        *_moves(grid, upper, lower, left, right),
        *_likeness(grid, upper, lower, left, right),
        _header_again(grid, place, lower),
        grid.first_length(below, left, right),
        len(grid.rows[above].filled) - grid.cells_of(above, left, right),
        len(grid.rows[below].filled) - grid.cells_of(below, left, right),
        grid.bold_share(above, left, right), grid.bold_share(below, left, right),
        grid.bold_share(lower[1], left, right) if len(lower) > 1 else UNKNOWN,
        *_row_design(grid, place, upper, lower),
        grid.indent(above, left, right), grid.indent(below, left, right),
        grid.indent(lower[1], left, right) if len(lower) > 1 else UNKNOWN,
        grid.longest(above, left, right), grid.longest(below, left, right),
        *repeats.above(below, left, right),
    ]  # fmt: skip


def _row_design(grid: Grid, place: LinePlace, upper: Sequence[int], lower: Sequence[int]) -> list[float]:
    """Describe the designs of the lines around a place."""
    designs = grid.designs
    above, below, left, right = place
    return [
        designs.same(above, below, left, right),
        designs.same(lower[0], lower[1], left, right) if len(lower) > 1 else UNKNOWN,
        designs.same(upper[1], upper[0], left, right) if len(upper) > 1 else UNKNOWN,
        designs.under(above, left, right), designs.over(below, left, right), designs.under(below, left, right),
        designs.fill(above, left, right), designs.fill(below, left, right),
        designs.fill(lower[1], left, right) if len(lower) > 1 else UNKNOWN,
        designs.size(above, left, right), designs.size(below, left, right),
        designs.gap_drawn(above, below, left, right),
        designs.sums_across(grid.rows[above].number, grid.rows[below].number, left, right),
        designs.formulas(above, left, right), designs.formulas(below, left, right),
    ]  # fmt: skip


def _block(grid: Grid, place: LinePlace, most: int, *, up: bool) -> list[int]:
    """Return the lines up from the place, or down from it, to the next blank row; the nearest first."""
    step = -1 if up else 1
    last = place.above if up else place.below
    block = [last]
    line = last + step
    while 0 <= line < len(grid.rows) and len(block) < most and abs(line - last) <= most:
        if grid.cells_of(line, place.left, place.right):
            upper, lower = (line, last) if up else (last, line)
            if grid.rows[lower].skipped or grid.gap(upper, lower):
                break
            block.append(line)
            last = line
        line += step
    return block


def _head_and_body(chances: Sequence[float] | None) -> tuple[float, float]:
    """Return the probabilities that a line is a header, and that it is part of a body; None: there is no line."""
    if chances is None:
        return UNKNOWN, UNKNOWN
    return chances[Label.HEADER], sum(chances[label] for label in _BODY)


def _moves(grid: Grid, upper: Sequence[int], lower: Sequence[int], left: int, right: int) -> tuple[float, float]:
    """Measure how far the first and the last used column move from the lines above to those below."""
    used = [
        [c for c in range(left, right + 1) if any(grid.families[line][c] for line in lines)] for lines in (upper, lower)
    ]
    return used[1][0] - used[0][0], used[1][-1] - used[0][-1]


def _likeness(
    grid: Grid, upper: Sequence[int], lower: Sequence[int], left: int, right: int
) -> tuple[float, float, float, float]:
    """Return shares: of columns of the same family on both sides; of cells of the first line below that are like those
    above, that are texts over values, and that are texts."""
    body_above = upper[:-1] if len(upper) > 2 else upper
    body_below = lower[1:] if len(lower) > 2 else lower
    first = grid.families[lower[0]]
    used = same = cells = fits = over = texts = 0
    for column in range(left, right + 1):
        above, below = _usual(grid, body_above, column), _usual(grid, body_below, column)
        used += bool(above or below)
        same += above == below != 0
        if first[column]:
            cells += 1
            fits += above == first[column]
            over += first[column] == TEXT and below == VALUE
            texts += first[column] == TEXT
    return same / (used or 1), fits / (cells or 1), over / (cells or 1), texts / (cells or 1)


def _usual(grid: Grid, lines: Sequence[int], column: int) -> int:
    """Return the family of most cells of a column; 0 if it is blank."""
    families = [family for line in lines if (family := grid.families[line][column])]
    return max(set(families), key=families.count) if families else 0


def _header_again(grid: Grid, place: LinePlace, lower: Sequence[int]) -> float:
    """Return the largest share of texts that one of the first lines below has in common with one of the first above."""
    firsts = [grid.names(line, place.left, place.right) for line in _block(grid, place, FAR, up=True)[-3:]]
    best = 0.0
    for line in lower[:3]:
        names = grid.names(line, place.left, place.right)
        if len(names) > 1:
            best = max([best, *(len(names & other) / max(len(names), len(other)) for other in firsts)])
    return best


def column_cut(grid: Grid, rect: Rect, gap: Span) -> list[float]:
    """Describe the blank columns `gap` of a rectangle in the order of COLUMN_CUT."""
    left, right = _strips(grid, rect, gap)
    upper = [n for n in range(rect.top, rect.bottom + 1) if grid.cells_of(n, left.first, left.last)]
    lower = [n for n in range(rect.top, rect.bottom + 1) if grid.cells_of(n, right.first, right.last)]
    if not upper or not lower:
        return [UNKNOWN] * len(COLUMN_CUT)
    shared = len(set(upper) & set(lower))
    blanks = [b.first - a.last - 1 for a, b in pairwise(grid.column_spans(rect))]
    size = gap.last - gap.first + 1
    left_key, right_key = _key(grid, upper, left.first), _key(grid, lower, right.first)
    head_left, head_right = grid.chances[upper[0]], grid.chances[lower[0]]
    return [
        size, sum(1 for blank in blanks if blank >= size) / (len(blanks) or 1),
        left.last - left.first + 1, right.last - right.first + 1,
        len(upper), len(lower), shared / len(upper), shared / len(lower),
        lower[0] - upper[0], lower[-1] - upper[-1], min(len(upper), len(lower)) / max(len(upper), len(lower)),
        _same_names(grid, rect, left, right),
        *left_key, *right_key, _key(grid, upper, left.last)[1],
        grid.text_share(left, rect), grid.text_share(right, rect),
        _equal(grid, sorted(set(upper) & set(lower)), left.first, right.first),
        head_left[Label.HEADER], head_left[Label.DATA], head_right[Label.HEADER], head_right[Label.DATA],
        _named(grid, upper[0], left), _named(grid, lower[0], right),
        float(left.last - left.first == right.last - right.first),
        grid.rows[rect.bottom].number - grid.rows[rect.top].number,
        *grid.gap_widths(gap, left, right), grid.lined_share(sorted({*upper, *lower}), gap),
        *_column_design(grid, rect, gap, sorted({*upper, *lower})[:COMPARED_LINES]),
    ]  # fmt: skip


def _column_design(grid: Grid, rect: Rect, gap: Span, lines: Sequence[int]) -> list[float]:
    """Describe the designs of the columns on both sides of a gap, and how many merged cells are across it."""
    designs = grid.designs
    left, right = _strips(grid, rect, gap)
    first, last = grid.rows[rect.top].number - TITLES, grid.rows[rect.bottom].number
    return [
        designs.beside(left.last + 1, rect.top, rect.bottom),
        designs.beside(right.first, rect.top, rect.bottom),
        designs.same_columns(left.last, right.first, lines),
        designs.same_columns(left.first, right.first, lines),
        max(designs.fill(line, gap.first, gap.last) for line in lines[:2]),
        sum(1 for area in grid.merged if area[1] <= gap.first and area[3] > gap.last + 1 and first <= area[0] <= last),
    ]


def _strips(grid: Grid, rect: Rect, gap: Span) -> tuple[Span, Span]:
    """Return the columns on both sides of a gap, up to the next blank ones."""
    spans = grid.column_spans(rect)
    left = next(span for span in reversed(spans) if span.last < gap.first)
    right = next(span for span in spans if span.first > gap.last)
    return left, right


def _key(grid: Grid, lines: Sequence[int], column: int) -> tuple[float, float, float]:
    """Describe how far a column names the lines: shares of filled lines, of texts, and of distinct values."""
    filled = [line for line in lines if grid.families[line][column]]
    if not filled:
        return 0.0, 0.0, 0.0
    texts = sum(1 for line in filled if grid.families[line][column] == TEXT)
    distinct = len({str(grid.rows[line].values[column]) for line in filled})
    return len(filled) / len(lines), texts / len(filled), distinct / len(filled)


def _same_names(grid: Grid, rect: Rect, left: Span, right: Span) -> float:
    """Return the largest share of texts that both strips have in one of the first lines."""
    best = 0.0
    for line in range(rect.top, min(rect.top + FIRST, rect.bottom + 1)):
        a, b = grid.names(line, left.first, left.last), grid.names(line, right.first, right.last)
        if a and b:
            best = max(best, len(a & b) / min(len(a), len(b)))
    return best


def _equal(grid: Grid, lines: Sequence[int], column: int, other: int) -> float:
    """Return the share of lines with the same value in two columns."""
    pairs = [
        str(grid.rows[line].values[column]) == str(grid.rows[line].values[other])
        for line in lines
        if grid.families[line][column] and grid.families[line][other]
    ]
    return sum(pairs) / len(pairs) if pairs else UNKNOWN


def _named(grid: Grid, line: int, span: Span) -> float:
    """Return the share of columns in which a line has a text."""
    kinds = grid.rows[line].kinds[span.first : span.last + 1]
    return kinds.count(CellKind.TEXT) / (span.last - span.first + 1)
