"""Describes a rectangle of a sheet as a candidate for a table: what is inside, and what is right outside its edges.

To add a feature, append its name to the tuple of a group and its value to the group's function, then train again
(tools/train_search.py). Every value is a number; -1 where the sheet cannot tell.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import log, log2
from typing import NamedTuple

from runner.engine.structure.cuts import UNKNOWN, LinePlace, column_cut, row_cut
from runner.engine.structure.facts import Mark
from runner.engine.structure.forest import Forest
from runner.engine.structure.grid import TEXT, VALUE, Grid, Rect, Span
from runner.engine.structure.repeats import Repeats
from runner.engine.structure.tables import BODY, Label

SIZE = ("lines", "columns", "cells", "density", "share", "top", "left", "gaps", "widest_gap", "blanks", "widest_blank")
FILL = ("first_fill", "second_fill", "last_fill", "first_cells", "lone", "first_column", "last_column")
LABELS = (
    "first_header", "first_title", "second_header", "last_note", "last_data", "body", "inner_header", "inner_headers",
    "header_after_gap", "unlike_after_gap", "last_total",
)  # fmt: skip
CONTENT = ("first_texts", "header_again", "over_values", "pure", "key_texts", "texts")
OUTSIDE = (
    "gap_above", "gap_below", "gap_left", "gap_right", "cells_above", "alike_above", "fill_above", "cells_below",
    "alike_below", "fill_below", "filled_left", "filled_right",
)  # fmt: skip
CUTS = (
    "cut_rows", "cut_rows_mean", "cut_rows_second", "cut_columns", "cut_columns_mean", "cut_above", "cut_below",
    "cut_left", "cut_right", "cut_least", "whole", "whole_and_alone", "cuts", "cut_margin",
)  # fmt: skip
READING = (
    "read_off", "read_overlap", "read_inside", "read_meets", "read", "read_top", "read_left", "read_bottom",
    "read_right",
)  # fmt: skip
DESIGN = (
    "line_over", "line_under", "line_left", "line_right", "line_over_second", "line_inside", "line_inside_share",
    "look_same_above", "look_same_below", "look_same_second", "look_changes", "look_least",
    "colour_first", "colour_second", "colour_above", "colour_last", "colour_below", "bold_first", "bold_second",
    "bold_above", "bold_last", "bold_below", "size_first", "size_above", "size_below",
    "formulas_last", "formulas_below", "sums_inside", "sums_over_edge", "sums_at_bottom", "formulas_first",
)  # fmt: skip
REPEATS = (
    "inner_values", "inner_looks", "inner_alike", "outer_values", "outer_looks", "outer_alike",
)  # fmt: skip
EDGES = (
    *(f"{at}_{of}" for at in ("above", "top", "second") for of in ("indent", "longest", "over", "values", "merged")),
    "above_header", "above_title", "last_indent", "last_total_label", "below_indent", "below_longest", "below_header",
    "below_body", "below_total_label", "left_texts", "right_texts", "left_first", "right_first",
)  # fmt: skip
UNREAD = (*SIZE, *FILL, *LABELS, *CONTENT, *OUTSIDE, *CUTS, *DESIGN, *REPEATS, *EDGES)
RECTANGLE = (*UNREAD, *READING)

FAR = 99.0  # to the next cell where there is none
FAR_EDGE = 50  # rows or columns from which an edge of another table is far
MOST_GAP = 30.0
MOST_LINES = 500
MOST_ROWS_ABOVE = 200
MOST_COLUMNS_LEFT = 60
MOST_CUTS = 100  # places inside a rectangle that are examined
NEAR = 6  # lines above and below a gap that are compared
LIKELY = 0.3  # probability of a label from which a table may start or end at a row
COMPARED = 300  # lines in which a header is looked for again
HALF = 0.5
_BODY = sorted(BODY)


class Cuts:
    """The probabilities that no table spans a place, each computed once."""

    def __init__(self, grid: Grid, rows: Forest, columns: Forest) -> None:
        self._grid = grid
        self._rows = rows
        self._columns = columns
        self._between: dict[LinePlace, float] = {}
        self._beside: dict[tuple[int, int, Span], float] = {}
        self._gaps: dict[Span, list[int]] = {}
        self.repeats = Repeats(grid)

    def between(self, place: LinePlace) -> float:
        """Between two lines."""
        if place not in self._between:
            self._between[place] = self._rows.probability(row_cut(self._grid, place, self.gaps(place), self.repeats))
        return self._between[place]

    def beside(self, top: int, bottom: int, gap: Span) -> float:
        """At blank columns of some lines."""
        key = (top, bottom, gap)
        if key not in self._beside:
            rect = Rect(top, bottom, 0, self._grid.width - 1)
            self._beside[key] = self._columns.probability(column_cut(self._grid, rect, gap))
        return self._beside[key]

    def gaps(self, place: LinePlace) -> list[int]:
        """Return the runs of blank rows in the columns of a place."""
        span = Span(place.left, place.right)
        if span not in self._gaps:
            lines = self._grid.lines(Rect(0, len(self._grid.rows) - 1, span.first, span.last))
            self._gaps[span] = [gap for a, b in pairwise(lines) if (gap := self._grid.gap(a, b)) > 0]
        return self._gaps[span]


class Neighbours(NamedTuple):
    """The nearest lines and columns outside a rectangle with a cell beside it; None: there is none."""

    above: int | None
    below: int | None
    left: int | None
    right: int | None


def places(grid: Grid, rect: Rect, lines: Sequence[int]) -> list[LinePlace]:
    """Return where a table may end between the lines of a rectangle: at blank rows, headers, titles and notes."""
    return [
        LinePlace(a, b, rect.left, rect.right)
        for a, b in pairwise(lines)
        if not grid.rows[b].skipped and (grid.gap(a, b) > 0 or may_end(grid, a, b, rect))
    ]


def may_end(grid: Grid, above: int, below: int, rect: Rect) -> bool:
    """Whether a table may end between two lines without a blank row: a header, a title or a note starts or ends."""
    before, after = grid.chances[above], grid.chances[below]
    outside = [chances[Label.TITLE] + chances[Label.NOTE] for chances in (before, after)]
    if sum(before[label] for label in _BODY) > HALF and after[Label.HEADER] > LIKELY:
        return True
    if max(outside) > LIKELY and min(outside) < 2 * LIKELY:
        return True
    wide = [grid.cells_of(line, rect.left, rect.right) for line in (above, below)]
    if 2 * min(wide) <= max(wide) and max(wide) > 2:  # far fewer cells above or below
        return True
    return grid.designs.are_known and _design_changes(grid, above, below, rect)


def _design_changes(grid: Grid, above: int, below: int, rect: Rect) -> bool:
    """Whether fills or lines start or end between two lines, and most cells look otherwise."""
    designs, left, right = grid.designs, rect.left, rect.right
    if designs.same(above, below, left, right) > HALF:
        return False
    fills = designs.fill(above, left, right) - designs.fill(below, left, right)
    lines = designs.over(below, left, right) - min(designs.over(above, left, right), designs.under(below, left, right))
    return max(abs(fills), lines) > HALF


class Describer:
    """Describes rectangles of one grid in the order of RECTANGLE."""

    def __init__(self, grid: Grid, cuts: Cuts, reading: Sequence[Rect]) -> None:
        """`reading`: the tables that were read row by row (bands.py)."""
        self._grid = grid
        self._cuts = cuts
        self._reading = reading
        whole = grid.whole()
        self._cells = grid.cells(whole) if whole is not None else 1

    def describe(self, rect: Rect) -> list[float]:
        """Return the numbers that describe a rectangle, in the order of RECTANGLE."""
        grid = self._grid
        lines = grid.lines(rect)
        near = _neighbours(grid, rect)
        filled = [grid.filled(column, rect.top, rect.bottom) for column in range(rect.left, rect.right + 1)]
        return [
            *self._size(rect, lines, filled),
            *_fill(grid, rect, lines, filled),
            *_labels(grid, rect, lines),
            *_content(grid, rect, lines),
            *_outside(grid, rect, near, sum(1 for cells in filled if cells), len(lines)),
            *self._cut(rect, lines, near),
            *_designs(grid, rect, lines, near),
            *self._cuts.repeats.within(rect, lines),
            *_edges(grid, rect, lines, near),
            *self._read(rect),
        ]

    def _size(self, rect: Rect, lines: Sequence[int], filled: Sequence[int]) -> list[float]:
        """Describe how large a rectangle is, where it is, and its gaps, in the order of SIZE.

        `lines`: the indexes of its rows; `filled`: the number of cells in each of its columns.
        """
        grid = self._grid
        gaps = [gap for a, b in pairwise(lines) if (gap := grid.gap(a, b)) > 0]
        spans = grid.column_spans(rect)
        blanks = [b.first - a.last - 1 for a, b in pairwise(spans)]
        cells = sum(filled)
        return [
            min(len(lines), MOST_LINES), len(filled), log2(cells + 1), cells / (len(lines) * len(filled)),
            cells / self._cells, min(grid.rows[rect.top].number, MOST_ROWS_ABOVE), min(rect.left, MOST_COLUMNS_LEFT),
            len(gaps), max(gaps, default=0), len(blanks), max(blanks, default=0),
        ]  # fmt: skip

    def _cut(self, rect: Rect, lines: Sequence[int], near: Neighbours) -> list[float]:
        """Describe how likely tables end inside, and at each edge."""
        cuts = self._cuts
        rows = [cuts.between(place) for place in places(self._grid, rect, lines)[:MOST_CUTS]] or [0.0]
        spans = self._grid.column_spans(rect)
        columns = [cuts.beside(rect.top, rect.bottom, Span(a.last + 1, b.first - 1)) for a, b in pairwise(spans)] or [
            0.0
        ]
        edges = self._edges(rect, near)
        inner = sum(log(max(1e-4, 1 - chance)) for chance in (*rows, *columns))
        return [
            max(rows), sum(rows) / len(rows), sorted(rows)[-2] if len(rows) > 1 else 0.0,
            max(columns), sum(columns) / len(columns), *edges, min(edges), inner,
            inner + sum(log(max(1e-4, chance)) for chance in edges),
            sum(1 for chance in (*rows, *columns) if chance > HALF), min(edges) - max(*rows, *columns),
        ]  # fmt: skip

    def _edges(self, rect: Rect, near: Neighbours) -> list[float]:
        """Return the probabilities that no table spans the edges: above, below, left and right."""
        top, bottom, left, right = rect
        cuts = self._cuts
        return [
            1.0 if near.above is None else cuts.between(LinePlace(near.above, top, left, right)),
            1.0 if near.below is None else cuts.between(LinePlace(bottom, near.below, left, right)),
            self._beside(rect, near.left, left),
            self._beside(rect, right, near.right),
        ]

    def _beside(self, rect: Rect, left: int | None, right: int | None) -> float:
        """Return the probability for the columns between two; without a blank one between, a table spans them."""
        if left is None or right is None:
            return 1.0
        if right - left == 1:
            return 0.0
        return self._cuts.beside(rect.top, rect.bottom, Span(left + 1, right - 1))

    def _read(self, rect: Rect) -> list[float]:
        """Describe how the rectangle relates to the tables that were read row by row."""
        box, *boxes = [
            (cells.top, cells.left, cells.bottom, cells.right)
            for cells in map(self._grid.range_of, (rect, *self._reading))
        ]
        meeting = [table for table in boxes if _overlap(box, table)]
        inside = sum(1 for table in boxes if _is_inside(table, box))
        edges = [min((abs(box[n] - table[n]) for table in meeting), default=FAR_EDGE) for n in range(4)]
        return [
            min((max(abs(a - b) for a, b in zip(box, table, strict=True)) for table in boxes), default=FAR),
            max((_overlap(box, table) for table in boxes), default=0.0),
            inside, len(meeting), len(boxes), *(min(distance, FAR_EDGE) for distance in edges),
        ]  # fmt: skip


Box = tuple[int, int, int, int]  # top, left, bottom, right


def _overlap(a: Box, b: Box) -> float:
    """Return the area that two boxes share, relative to the area that they cover."""
    height, width = min(a[2], b[2]) - max(a[0], b[0]) + 1, min(a[3], b[3]) - max(a[1], b[1]) + 1
    if height <= 0 or width <= 0:
        return 0.0
    areas = [(box[2] - box[0] + 1) * (box[3] - box[1] + 1) for box in (a, b)]
    return height * width / (sum(areas) - height * width)


def _is_inside(box: Box, other: Box) -> bool:
    """Whether a box is inside another, or at most one row or column outside."""
    return box[0] >= other[0] - 1 and box[1] >= other[1] - 1 and box[2] <= other[2] + 1 and box[3] <= other[3] + 1


def _neighbours(grid: Grid, rect: Rect) -> Neighbours:
    """Return the nearest lines and columns outside a rectangle."""
    top, bottom, left, right = rect
    lines = range(len(grid.rows))
    return Neighbours(
        next((n for n in reversed(lines[:top]) if grid.cells_of(n, left, right)), None),
        next((n for n in lines[bottom + 1 :] if grid.cells_of(n, left, right)), None),
        next((n for n in range(left - 1, -1, -1) if grid.filled(n, top, bottom)), None),
        next((n for n in range(right + 1, grid.width) if grid.filled(n, top, bottom)), None),
    )


def _fill(grid: Grid, rect: Rect, lines: Sequence[int], filled: Sequence[int]) -> list[float]:
    """Describe how many cells the first and last lines and columns have."""
    used = sum(1 for cells in filled if cells)
    widths = [grid.cells_of(line, rect.left, rect.right) for line in lines]
    return [
        widths[0] / used, widths[1] / used if len(widths) > 1 else UNKNOWN, widths[-1] / used, widths[0],
        widths.count(1) / len(widths), filled[0] / len(lines), filled[-1] / len(lines),
    ]  # fmt: skip


def _labels(grid: Grid, rect: Rect, lines: Sequence[int]) -> list[float]:
    """Describe what the labels of the rows say about the first and last lines, and about headers further down."""
    chances = [grid.chances[line] for line in lines]
    body = [sum(line[label] for label in _BODY) for line in chances]
    start = next((at for at, chance in enumerate(body) if chance > HALF), len(body))
    inner = [line[Label.HEADER] for line in chances[start + 1 :]]
    after_gap, unlike = _after_gaps(grid, rect, lines)
    last = grid.rows[lines[-1]].marks[rect.left : rect.right + 1]
    return [
        chances[0][Label.HEADER], chances[0][Label.TITLE],
        chances[1][Label.HEADER] if len(chances) > 1 else UNKNOWN,
        chances[-1][Label.NOTE], chances[-1][Label.DATA], sum(body) / len(body),
        max(inner, default=0.0), sum(1 for chance in inner if chance > HALF), after_gap, unlike,
        float(any(marks & Mark.TOTAL for marks in last)),
    ]  # fmt: skip


def _after_gaps(grid: Grid, rect: Rect, lines: Sequence[int]) -> tuple[float, float]:
    """Return the chance of the likeliest header below a blank row, and the largest share of columns that differ."""
    header, unlike = 0.0, UNKNOWN
    gaps = [at for at in range(1, len(lines)) if grid.gap(lines[at - 1], lines[at]) > 0]
    for at in gaps[:MOST_CUTS]:
        if at > 1:
            chances = grid.chances[lines[at]]
            header = max(header, chances[Label.HEADER] + HALF * chances[Label.TITLE])
        unlike = max(unlike, _unlike(grid, rect, lines[max(0, at - NEAR) : at], lines[at : at + NEAR]))
    return header, unlike


def _unlike(grid: Grid, rect: Rect, above: Sequence[int], below: Sequence[int]) -> float:
    """Return the share of columns that are used on one side only, or by another family of values."""
    differ = used = 0
    for column in range(rect.left, rect.right + 1):
        sides = [(grid.texts(column, s[0], s[-1]), grid.values(column, s[0], s[-1])) for s in (above, below)]
        if any(map(sum, sides)):
            used += 1
            differ += not all(map(sum, sides)) or (sides[0][0] > sides[0][1]) != (sides[1][0] > sides[1][1])
    return differ / (used or 1)


def _content(grid: Grid, rect: Rect, lines: Sequence[int]) -> list[float]:
    """Describe whether the widest of the first lines names the columns, and whether each column is of one kind."""
    top, bottom, left, right = rect
    head = max(lines[:3], key=lambda line: grid.cells_of(line, left, right))
    columns = [column for column in range(left, right + 1) if grid.filled(column, top, bottom)]
    over = named = pure = cells = texts = 0
    for column in columns:
        text, value = grid.texts(column, head + 1, bottom), grid.values(column, head + 1, bottom)
        if grid.families[head][column]:
            named += 1
            over += grid.families[head][column] == TEXT and value > text
        pure += max(text, value)
        cells += grid.filled(column, head + 1, bottom)
        texts += grid.texts(column, top, bottom)
    first = [family for family in grid.families[lines[0]][left : right + 1] if family]
    return [
        first.count(TEXT) / len(first), _header_repeated(grid, rect, head, lines),
        over / (named or 1), pure / (cells or 1),
        grid.texts(columns[0], top, bottom) / grid.filled(columns[0], top, bottom), texts / grid.cells(rect),
    ]  # fmt: skip


def _header_repeated(grid: Grid, rect: Rect, head: int, lines: Sequence[int]) -> float:
    """Return the largest share of the header's texts that a line below repeats in the same columns."""
    names = [(c, grid.rows[head].values[c]) for c in range(rect.left, rect.right + 1) if grid.families[head][c] == TEXT]
    if len(names) < 2:  # one name may be a value
        return 0.0
    best = 0
    for line in [below for below in lines if below > head][:COMPARED]:
        values = grid.rows[line].values
        best = max(best, sum(1 for column, name in names if column < len(values) and values[column] == name))
    return best / len(names)


def _outside(grid: Grid, rect: Rect, near: Neighbours, used: int, height: int) -> list[float]:
    """Describe the distance to what is outside each edge, and whether it is like what is inside."""
    top, bottom, left, right = rect
    return [
        FAR if near.above is None else min(MOST_GAP, grid.gap(near.above, top)),
        FAR if near.below is None else min(MOST_GAP, grid.gap(bottom, near.below)),
        FAR if near.left is None else left - near.left - 1,
        FAR if near.right is None else near.right - right - 1,
        *_line_outside(grid, rect, near.above, used),
        *_line_outside(grid, rect, near.below, used),
        UNKNOWN if near.left is None else grid.filled(near.left, top, bottom) / height,
        UNKNOWN if near.right is None else grid.filled(near.right, top, bottom) / height,
    ]


def _line_outside(grid: Grid, rect: Rect, line: int | None, used: int) -> tuple[float, float, float]:
    """Describe the cells of a line outside: how many, how many fit their columns inside, how many columns they fill."""
    if line is None:
        return UNKNOWN, UNKNOWN, UNKNOWN
    cells = fits = 0
    for column in range(rect.left, rect.right + 1):
        family = grid.families[line][column]
        if family:
            cells += 1
            text, value = grid.texts(column, rect.top, rect.bottom), grid.values(column, rect.top, rect.bottom)
            fits += (family == TEXT and text >= value > -1 and text > 0) or (
                family == VALUE and value >= text and value > 0
            )
    return cells, fits / cells, cells / used


def _edges(grid: Grid, rect: Rect, lines: Sequence[int], near: Neighbours) -> list[float]:
    """Describe whether the lines and columns at the edges, and those right outside, belong to the table."""
    top, bottom, left, right = rect
    second = lines[1] if len(lines) > 1 else None
    third = lines[2] if len(lines) > 2 else None
    below = None if near.below is None else grid.chances[near.below]
    above = None if near.above is None else grid.chances[near.above]
    return [
        *_head_line(grid, rect, near.above, top), *_head_line(grid, rect, top, second),
        *_head_line(grid, rect, second, third),
        *((UNKNOWN, UNKNOWN) if above is None else (above[Label.HEADER], above[Label.TITLE])),
        grid.indent(bottom, left, right), grid.chances[bottom][Label.TOTAL],
        *(
            [UNKNOWN] * 5
            if below is None or near.below is None
            else (
                grid.indent(near.below, left, right), grid.longest(near.below, left, right), below[Label.HEADER],
                sum(below[label] for label in _BODY), below[Label.TOTAL],
            )
        ),
        *_column_outside(grid, rect, near.left), *_column_outside(grid, rect, near.right),
    ]  # fmt: skip


def _head_line(grid: Grid, rect: Rect, line: int | None, below: int | None) -> tuple[float, ...]:
    """Describe where a line starts, its longest cell, shares of cells over others and of values, its widest merge."""
    left, right = rect.left, rect.right
    filled = [] if line is None else [at for at in range(left, right + 1) if grid.families[line][at]]
    if line is None or not filled:
        return (UNKNOWN,) * 5
    over = UNKNOWN if below is None else sum(1 for at in filled if grid.families[below][at]) / len(filled)
    values = sum(1 for at in filled if grid.families[line][at] == VALUE) / len(filled)
    number = grid.rows[line].number
    merged = max((min(a[3], right + 1) - max(a[1], left + 1) + 1 for a in grid.merged if a[0] == number), default=0)
    return filled[0] - left, grid.longest(line, left, right), over, values, max(merged, 0) / (right - left + 1)


def _column_outside(grid: Grid, rect: Rect, column: int | None) -> tuple[float, float]:
    """Describe a column beside the rectangle: its share of texts, and whether its first line is filled."""
    if column is None:
        return UNKNOWN, UNKNOWN
    texts = grid.texts(column, rect.top, rect.bottom) / grid.filled(column, rect.top, rect.bottom)
    return texts, float(grid.families[rect.top][column] != 0)


def _designs(grid: Grid, rect: Rect, lines: Sequence[int], near: Neighbours) -> list[float]:
    """Describe the design of the first and last lines, what is drawn around the rectangle, and which sums are in it."""
    designs = grid.designs
    top, bottom, left, right = rect
    if not designs.are_known:
        return [UNKNOWN] * len(DESIGN)
    second = lines[1] if len(lines) > 1 else lines[0]
    inner = [designs.over(line, left, right) for line in lines[2:-2][:60]] or [0.0]
    pairs = [designs.same(a, b, left, right) for a, b in pairwise(lines[1:62])] or [1.0]
    return [
        designs.over(top, left, right), designs.under(bottom, left, right),
        designs.beside(left, top, bottom), designs.beside(right + 1, top, bottom),
        designs.over(second, left, right), max(inner), sum(inner) / len(inner),
        UNKNOWN if near.above is None else designs.same(near.above, top, left, right),
        UNKNOWN if near.below is None else designs.same(bottom, near.below, left, right),
        designs.same(top, second, left, right), sum(1 for share in pairs if share < HALF), min(pairs),
        designs.fill(top, left, right), designs.fill(second, left, right),
        UNKNOWN if near.above is None else designs.fill(near.above, left, right),
        designs.fill(bottom, left, right), UNKNOWN if near.below is None else designs.fill(near.below, left, right),
        grid.bold_share(top, left, right), grid.bold_share(second, left, right),
        UNKNOWN if near.above is None else grid.bold_share(near.above, left, right),
        grid.bold_share(bottom, left, right),
        UNKNOWN if near.below is None else grid.bold_share(near.below, left, right),
        designs.size(top, left, right),
        UNKNOWN if near.above is None else designs.size(near.above, left, right),
        UNKNOWN if near.below is None else designs.size(near.below, left, right),
        designs.formulas(bottom, left, right),
        UNKNOWN if near.below is None else designs.formulas(near.below, left, right),
        *_sums_in(grid, rect), designs.formulas(top, left, right),
    ]  # fmt: skip


def _sums_in(grid: Grid, rect: Rect) -> tuple[float, float, float]:
    """Count the sums of a column: of rows all inside, of some inside, and of those that reach the end."""
    first, last = grid.rows[rect.top].number, grid.rows[rect.bottom].number
    inside = across = at_end = 0
    for top, column, bottom, _ in grid.designs.columns_summed:
        if rect.left < column <= rect.right + 1 and top <= last and bottom >= first:
            is_inside = first <= top and bottom <= last
            inside += is_inside
            across += not is_inside
            at_end += is_inside and bottom >= last - 1
    return inside, across, at_end
