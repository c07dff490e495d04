"""The stored rows of a sheet as a grid whose cells can be counted by rectangle."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from runner.engine.common.a1 import CellRange
from runner.engine.reading import Layout
from runner.engine.structure.designs import Designs
from runner.engine.structure.facts import Row

TEXT, VALUE = 1, 2  # families of kinds that are interchangeable in a column; 0 is blank, 3 true or false
MOST_MERGED = 300  # cells merged over several columns that are compared with a gap
LINED = 60  # lines whose borders are counted
_FAMILIES = bytes([0, 1, 2, 2, 3, 2, 2]) + bytes(range(7, 256))


class Rect(NamedTuple):
    """A rectangle of a grid, edges included."""

    top: int  # index of a line, as stored rows are called here
    bottom: int
    left: int  # 0-based column
    right: int


class Span(NamedTuple):
    """Neighbouring lines or columns, both ends included."""

    first: int
    last: int


class Grid:
    """The lines of a sheet, their cells by family, and sums by which a rectangle is described in a few steps."""

    def __init__(self, rows: Sequence[Row], chances: Sequence[Sequence[float]], layout: Layout) -> None:
        """`chances`: the probability of each label for each row."""
        self.rows = rows
        self.chances = chances
        self.width = max((len(row.kinds) for row in rows), default=0)
        self.families = [row.kinds.translate(_FAMILIES).ljust(self.width, b"\0") for row in rows]
        self.columns = [bytes(column) for column in zip(*self.families, strict=True)]
        self._filled_by_column = [_sums(1 if family else 0 for family in column) for column in self.columns]
        self._texts_by_column = [_sums(1 if family == TEXT else 0 for family in column) for column in self.columns]
        self._values_by_column = [_sums(1 if family == VALUE else 0 for family in column) for column in self.columns]
        self._filled_by_line = [_sums(1 if family else 0 for family in line) for line in self.families]
        self._skipped = _sums(row.skipped for row in rows)
        self._has_styles = layout.styled_rows > 0
        self._bold = _by_line(layout.bold, rows)
        self._lined = _by_line(layout.lined, rows)
        self._widths = layout.column_widths
        self.designs = Designs(rows, layout, self.width)
        self.merged = [area for area in layout.merged if area[1] < area[3]][:MOST_MERGED]
        self._names: dict[tuple[int, int, int], frozenset[str]] = {}

    def filled(self, column: int, top: int, bottom: int) -> int:
        """Count the filled cells of a column in these lines."""
        sums = self._filled_by_column[column]
        return sums[bottom + 1] - sums[top]

    def texts(self, column: int, top: int, bottom: int) -> int:
        """Count the texts of a column in these lines."""
        sums = self._texts_by_column[column]
        return sums[bottom + 1] - sums[top]

    def values(self, column: int, top: int, bottom: int) -> int:
        """Count the numbers, dates and the like of a column in these lines."""
        sums = self._values_by_column[column]
        return sums[bottom + 1] - sums[top]

    def cells_of(self, line: int, left: int, right: int) -> int:
        """Count the filled cells of a line in these columns."""
        sums = self._filled_by_line[line]
        return sums[right + 1] - sums[left]

    def cells(self, rect: Rect) -> int:
        """Count the filled cells of a rectangle."""
        return sum(self.filled(column, rect.top, rect.bottom) for column in range(rect.left, rect.right + 1))

    def gap(self, above: int, below: int) -> int:
        """Count the blank rows between two lines that are neighbours in some columns; 0 if rows between were only
        counted."""
        if self.rows[below].skipped:
            return 0
        hidden = self._skipped[below + 1] - self._skipped[above + 1]
        return self.rows[below].number - self.rows[above].number - 1 - hidden

    def lines(self, rect: Rect) -> list[int]:
        """Return the lines with a cell in the rectangle."""
        return [n for n in range(rect.top, rect.bottom + 1) if self.cells_of(n, rect.left, rect.right)]

    def trimmed(self, rect: Rect) -> Rect | None:
        """Return the rectangle without blank outer lines and columns; None if it is blank."""
        lines = self.lines(rect)
        if not lines:
            return None
        top, bottom = lines[0], lines[-1]
        used = [c for c in range(rect.left, rect.right + 1) if self.filled(c, top, bottom)]
        return Rect(top, bottom, used[0], used[-1])

    def whole(self) -> Rect | None:
        """Return the rectangle of all cells; None if there is none."""
        return self.trimmed(Rect(0, len(self.rows) - 1, 0, self.width - 1)) if self.rows else None

    def column_spans(self, rect: Rect) -> list[Span]:
        """Return the columns of the rectangle between its blank ones."""
        used = [c for c in range(rect.left, rect.right + 1) if self.filled(c, rect.top, rect.bottom)]
        return runs(used, [b - a > 1 for a, b in pairwise(used)])

    def range_of(self, rect: Rect) -> CellRange:
        """Return where a rectangle is in the sheet."""
        return CellRange(self.rows[rect.top].number, rect.left + 1, self.rows[rect.bottom].number, rect.right + 1)

    def names(self, line: int, left: int, right: int) -> frozenset[str]:
        """Return the texts of a line in these columns, in lower case."""
        key = (line, left, right)
        if key not in self._names:
            values = self.rows[line].values[left : right + 1]
            self._names[key] = frozenset(value.strip().lower() for value in values if isinstance(value, str))
        return self._names[key]

    def first_length(self, line: int, left: int, right: int) -> int:
        """Return the length of a line's first cell in these columns."""
        row = self.rows[line]
        return next((row.lengths[at] for at in row.filled if left <= at <= right), 0)

    def indent(self, line: int, left: int, right: int) -> int:
        """Count the blank cells before a line's first cell in these columns."""
        return next((at - left for at in self.rows[line].filled if left <= at <= right), right - left + 1)

    def longest(self, line: int, left: int, right: int) -> int:
        """Return the length of a line's longest cell in these columns."""
        row = self.rows[line]
        return max((row.lengths[at] for at in row.filled if left <= at <= right), default=0)

    def text_share(self, span: Span, rect: Rect) -> float:
        """Return the share of texts among the cells of some columns of a rectangle."""
        columns = range(span.first, span.last + 1)
        texts = sum(self.texts(column, rect.top, rect.bottom) for column in columns)
        return texts / (sum(self.filled(column, rect.top, rect.bottom) for column in columns) or 1)

    def bold_share(self, line: int, left: int, right: int) -> float:
        """Return the share of bold cells of a line; -1 if the format stores no styles."""
        if not self._has_styles:
            return -1.0
        inside = [at for at in self.rows[line].filled if left <= at <= right]
        return sum(1 for at in inside if at + 1 in self._bold[line]) / (len(inside) or 1)

    def gap_widths(self, gap: Span, left: Span, right: Span) -> tuple[float, float]:
        """Return the width of the widest blank column, in usual widths and relative to the columns around.

        -1: the format stores no widths.
        """
        if not self._widths:
            return -1.0, -1.0
        around = [self._width_of(at) for span in (left, right) for at in range(span.first, span.last + 1)]
        widest = max(self._width_of(at) for at in range(gap.first, gap.last + 1))
        return widest, widest / (sum(around) / len(around) + 0.01)

    def _width_of(self, column: int) -> float:
        return self._widths.get(column + 1, 1.0)

    def lined_share(self, lines: Sequence[int], gap: Span) -> float:
        """Return the share of the gap's cells that a line is drawn above or below; -1 if the format stores none."""
        if not self._widths:
            return -1.0
        cells = [(line, at) for line in lines[:LINED] for at in range(gap.first, gap.last + 1)]
        return sum(1 for line, at in cells if at + 1 in self._lined[line]) / len(cells)


def _sums(numbers: Iterable[int]) -> list[int]:
    """Return the sums of the first numbers: none, one, two and so on."""
    return list(accumulate(numbers, initial=0))


def _by_line(marks: Mapping[int, set[int]], rows: Sequence[Row]) -> list[frozenset[int] | set[int]]:
    none: frozenset[int] = frozenset()
    return [marks.get(row.number, none) for row in rows]


def runs(places: Sequence[int], cuts: Sequence[bool]) -> list[Span]:
    """Divide neighbouring places after those where `cuts` is true."""
    spans: list[Span] = []
    first = 0
    for at, is_cut in enumerate(cuts):
        if is_cut:
            spans.append(Span(places[first], places[at]))
            first = at + 1
    spans.append(Span(places[first], places[-1]))
    return spans
