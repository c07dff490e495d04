"""How far blocks of a sheet repeat each other: the same names, dates, kinds and designs, further up or further down.

A block starts at the first line of some columns, after a blank row, and at a likely header.
"""

from collections.abc import Sequence
from operator import eq

from runner.engine.structure.grid import Grid, Rect
from runner.engine.structure.tables import Label

NEAREST = 12  # starts of blocks that are compared
RUN = 8  # lines that are compared from there on
ALIKE = 0.85  # share of cells from which two lines are of one kind
LIKELY = 0.5  # probability of a header at which a block starts
WIDEST = 60  # columns that are compared
FIRST = 2  # lines of a block that are compared with starts
NONE = (0.0, 0.0, 0.0, 0.0, 0.0)

Keys = tuple[object, ...]
Likeness = tuple[float, float, float]  # shares of cells with the same value, the same kind and the same design


class Repeats:
    """Compares the lines of one grid, each pair once."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._keys: dict[int, Keys] = {}
        self._starts: dict[tuple[int, int], list[int]] = {}
        self._likeness: dict[tuple[int, int, int, int], Likeness] = {}

    def starts(self, left: int, right: int) -> list[int]:
        """Return the lines at which blocks of these columns start."""
        key = (left, right)
        if key not in self._starts:
            grid = self._grid
            starts: list[int] = []
            before = -1
            for line in grid.lines(Rect(0, len(grid.rows) - 1, left, right)):
                heads = [before < 0 or grid.chances[at][Label.HEADER] > LIKELY for at in (before, line)]
                if before < 0 or grid.gap(before, line) or (heads[1] and not heads[0]):
                    starts.append(line)
                before = line
            self._starts[key] = starts
        return self._starts[key]

    def above(self, line: int, left: int, right: int) -> tuple[float, float, float, float, float]:
        """Measure how far the block that starts at a line repeats one of those above.

        Returns the shares of cells of its first line with the same value, kind and design; how many lines go on alike,
        and the share of these with the same first cell.
        """
        starts = [start for start in self.starts(left, right) if start < line][-NEAREST:]
        return max((self._compare_blocks(start, line, left, right) for start in starts), default=NONE)

    def within(self, rect: Rect, lines: Sequence[int]) -> list[float]:
        """Measure how far blocks inside a rectangle, and outside in its columns, repeat its first lines.

        Returns the largest shares of cells with the same value and of the same kind and design, and the number of
        blocks of one design.
        """
        left, right = rect.left, rect.right
        every = self.starts(left, right)
        inside = [start for start in every if lines[0] < start <= rect.bottom and start not in lines[:FIRST]][:NEAREST]
        outside = [start for start in every if not rect.top <= start <= rect.bottom]
        near = sorted(outside, key=lambda start: min(abs(start - rect.top), abs(start - rect.bottom)))[:NEAREST]
        return [*self._best(lines[:FIRST], inside, rect), *self._best(lines[:1], near, rect)]

    def _best(self, firsts: Sequence[int], others: Sequence[int], rect: Rect) -> list[float]:
        """Compare some lines with others, and return the largest shares; -1 if there is nothing to compare."""
        likeness = [self._likeness_of(line, other, rect.left, rect.right) for line in firsts for other in others]
        if not likeness:
            return [-1.0, -1.0, 0.0]
        return [
            max(values for values, _, _ in likeness),
            max(kinds * abs(designs) for _, kinds, designs in likeness),
            sum(1 for _, kinds, designs in likeness if kinds >= ALIKE and abs(designs) >= ALIKE),
        ]

    def _compare_blocks(
        self, start: int, other: int, left: int, right: int
    ) -> tuple[float, float, float, float, float]:
        """Compare the blocks that start at two lines, as `above` returns it."""
        values, kinds, designs = self._likeness_of(start, other, left, right)
        families, length = self._grid.families, len(self._grid.rows)
        run = named = 0
        for step in range(RUN):
            a, b = start + step, other + step
            if b >= length or a >= other or self._likeness_of(a, b, left, right)[1] < ALIKE:
                break
            run += 1
            named += families[a][left] != 0 and self.keys(a)[left] == self.keys(b)[left]
        return values, kinds, designs, run, named / (run or 1)

    def _likeness_of(self, start: int, other: int, left: int, right: int) -> Likeness:
        """Compare two lines in these columns; each pair is compared once."""
        right = min(right, left + WIDEST - 1)
        key = (start, other, left, right)
        if key not in self._likeness:
            a, b = self._grid.families[start][left : right + 1], self._grid.families[other][left : right + 1]
            blank = sum(1 for x, y in zip(a, b, strict=True) if not x and not y)
            used = (len(a) - blank) or 1
            same = sum(
                x is not None and x == y
                for x, y in zip(self.keys(start)[left : right + 1], self.keys(other)[left : right + 1], strict=True)
            )
            kinds = sum(map(eq, a, b)) - blank
            self._likeness[key] = same / used, kinds / used, self._grid.designs.same(start, other, left, right)
        return self._likeness[key]

    def keys(self, line: int) -> Keys:
        """Return what is compared of each cell of a line: a text, a date, or a number other than 0."""
        if line not in self._keys:
            values = self._grid.rows[line].values
            keys = [value.strip().lower() if isinstance(value, str) else value or None for value in values]
            self._keys[line] = (*keys, *[None] * (self._grid.width - len(keys)))
        return self._keys[line]
