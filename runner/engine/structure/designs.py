"""How the cells of a grid look: lines, fills, sizes and styles, and what the formulas add up.

Only .xls stores all of this where the reader keeps it. Without it every answer is UNKNOWN, and nothing depends on it.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate

from runner.engine.reading import Layout
from runner.engine.reading.books import Area, Design
from runner.engine.structure.facts import Row

UNKNOWN = -1.0
MOST_ROWS = 40  # blank rows of a gap that are examined
MOST_SUMS = 300  # different areas that are compared with a place
NO_DESIGN = Design()


class Designs:
    """Answers for lines (indexes of kept rows) and columns (0-based)."""

    def __init__(self, rows: Sequence[Row], layout: Layout, width: int) -> None:
        self.are_known = bool(layout.cell_designs)
        self._rows = rows
        self._width = width
        self._designs = layout.designs
        self._cells = layout.cell_designs
        self._formulas = layout.formulas
        self._kinds: dict[int, list[int]] = {}
        self._above: dict[int, list[int]] = {}  # by row number: sums of the lines drawn above its cells
        self._left: dict[int, list[int]] = {}  # by column: sums of the lines drawn left of its cells
        self._fills: dict[int, list[int]] = {}
        self._usual_size = _usual_size(layout) if self.are_known else 1
        in_columns = dict.fromkeys(area for area in layout.summed if area[1] == area[3])
        self.columns_summed: list[Area] = list(in_columns)[:MOST_SUMS]

    def _design(self, number: int, column: int) -> Design:
        """Return the design of a cell by the number of its row and its 0-based column."""
        cells = self._cells.get(number)
        at = cells.get(column + 1) if cells else None
        return self._designs[at] if at is not None and at < len(self._designs) else NO_DESIGN

    def line_above(self, number: int, left: int, right: int) -> float:
        """Return the share of the cells of a row, by its number, with a border above; `right` is included."""
        if not self.are_known:
            return UNKNOWN
        if number not in self._above:
            self._above[number] = _sums(
                self._design(number, at).above or self._design(number - 1, at).below for at in range(self._width)
            )
        sums = self._above[number]
        return (sums[right + 1] - sums[left]) / (right - left + 1)

    def over(self, line: int, left: int, right: int) -> float:
        """Return the share of a row's cells with a border above, in columns from `left` to `right`."""
        return self.line_above(self._rows[line].number, left, right)

    def under(self, line: int, left: int, right: int) -> float:
        """Return the share of a row's cells with a border below, in columns from `left` to `right`."""
        return self.line_above(self._rows[line].number + 1, left, right)

    def beside(self, column: int, top: int, bottom: int) -> float:
        """Return the share of lines with a line drawn left of the column."""
        if not self.are_known:
            return UNKNOWN
        if column not in self._left:
            self._left[column] = _sums(
                self._design(row.number, column).left or self._design(row.number, column - 1).right
                for row in self._rows
            )
        sums = self._left[column]
        return (sums[bottom + 1] - sums[top]) / (bottom - top + 1)

    def fill(self, line: int, left: int, right: int) -> float:
        """Return the share of a line's cells with a fill."""
        if not self.are_known:
            return UNKNOWN
        if line not in self._fills:
            number = self._rows[line].number
            self._fills[line] = _sums(self._design(number, at).fill > 0 for at in range(self._width))
        sums = self._fills[line]
        return (sums[right + 1] - sums[left]) / (right - left + 1)

    def _kinds_of(self, line: int) -> list[int]:
        """Return the design of each cell of a line but for its lines, as a number."""
        if line not in self._kinds:
            number = self._rows[line].number
            self._kinds[line] = [self._design(number, at).kind for at in range(self._width)]
        return self._kinds[line]

    def same(self, line: int, other: int, left: int, right: int) -> float:
        """Return the share of columns in which the cells of two lines look the same but for their lines."""
        if not self.are_known:
            return UNKNOWN
        a, b = self._kinds_of(line)[left : right + 1], self._kinds_of(other)[left : right + 1]
        return sum(x == y for x, y in zip(a, b, strict=True)) / len(a)

    def same_columns(self, column: int, other: int, lines: Sequence[int]) -> float:
        """Return the share of lines in which the cells of two columns look the same but for their lines."""
        if not self.are_known or not lines:
            return UNKNOWN
        return sum(self._kinds_of(line)[column] == self._kinds_of(line)[other] for line in lines) / len(lines)

    def size(self, line: int, left: int, right: int) -> float:
        """Return the size of the largest letters of a line, relative to the usual size."""
        if not self.are_known:
            return UNKNOWN
        row = self._rows[line]
        return max((self._design(row.number, at).size for at in row.filled if left <= at <= right), default=0) / (
            self._usual_size
        )

    def gap_drawn(self, above: int, below: int, left: int, right: int) -> float:
        """Return the share of the cells between two lines that are filled or have a line at a side."""
        first, last = self._rows[above].number + 1, self._rows[below].number - 1
        if not self.are_known or first > last:
            return UNKNOWN
        designs = [
            self._design(number, at)
            for number in range(first, min(last, first + MOST_ROWS) + 1)
            for at in range(left, right + 1)
        ]
        return sum(1 for design in designs if design.left or design.right or design.fill) / len(designs)

    def formulas(self, line: int, left: int, right: int) -> float:
        """Return the share of a line's cells with a formula."""
        if not self.are_known:
            return UNKNOWN
        row = self._rows[line]
        inside = [at for at in row.filled if left <= at <= right]
        marked = self._formulas.get(row.number, ())
        return sum(1 for at in inside if at + 1 in marked) / (len(inside) or 1)

    def sums_across(self, upper: int, lower: int, left: int, right: int) -> float:
        """Count the sums of a column in this range with rows on both sides of a place, given by the rows' numbers."""
        if not self.are_known:
            return UNKNOWN
        return sum(
            1
            for top, column, bottom, _ in self.columns_summed
            if top <= upper and bottom >= lower and left < column <= right + 1
        )


def _usual_size(layout: Layout) -> int:
    """Return the size of most letters of the first rows."""
    counts: dict[int, int] = {}
    for row in list(layout.cell_designs.values())[:300]:
        for at in row.values():
            size = layout.designs[at].size if at < len(layout.designs) else 0
            counts[size] = counts.get(size, 0) + 1
    return max(counts, key=lambda size: counts[size], default=1) or 1


def _sums(marks: Iterable[bool]) -> list[int]:
    return list(accumulate(map(int, marks), initial=0))
