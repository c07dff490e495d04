"""How far blocks of a sheet repeat each other: the same names, dates, kinds and looks, further up or further down.

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
Likeness = tuple[float, float, float]  # shares of cells with the same value, the same kind and the same look


class Repeats:
    """Compares the lines of one grid, each pair once."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._keys: dict[int, Keys] = {}
        self._starts: dict[tuple[int, int], list[int]] = {}
        self._likeness: dict[tuple[int, int, int, int], Likeness] = {}

    def starts(self, left: int, right: int) -> list[int]:
        """The lines at which blocks of these columns start."""
        key = (left, right)
        if key not in self._starts:
            grid = self._grid
            out: list[int] = []
            before = -1
            for line in grid.lines(Rect(0, len(grid.rows) - 1, left, right)):
                heads = [before < 0 or grid.chances[at][Label.HEADER] > LIKELY for at in (before, line)]
                if before < 0 or grid.gap(before, line) or (heads[1] and not heads[0]):
                    out.append(line)
                before = line
            self._starts[key] = out
        return self._starts[key]

    def above(self, line: int, left: int, right: int) -> tuple[float, float, float, float, float]:
        """How far the block that starts at a line repeats one of those above: shares of cells of its first line with
        the same value, kind and look; how many lines go on alike, and the share of these with the same first cell."""
        starts = [start for start in self.starts(left, right) if start < line][-NEAREST:]
        return max((self._block(start, line, left, right) for start in starts), default=NONE)

    def within(self, rect: Rect, lines: Sequence[int]) -> list[float]:
        """How far blocks inside a rectangle, and outside in its columns, repeat its first lines: the largest shares of
        cells with the same value and of the same kind and look, and the number of blocks that look the same."""
        left, right = rect.left, rect.right
        every = self.starts(left, right)
        inside = [start for start in every if lines[0] < start <= rect.bottom and start not in lines[:FIRST]][:NEAREST]
        outside = [start for start in every if not rect.top <= start <= rect.bottom]
        near = sorted(outside, key=lambda start: min(abs(start - rect.top), abs(start - rect.bottom)))[:NEAREST]
        return [*self._best(lines[:FIRST], inside, rect), *self._best(lines[:1], near, rect)]

    def _best(self, firsts: Sequence[int], others: Sequence[int], rect: Rect) -> list[float]:
        likeness = [self._like(line, other, rect.left, rect.right) for line in firsts for other in others]
        if not likeness:
            return [-1.0, -1.0, 0.0]
        return [
            max(values for values, _, _ in likeness),
            max(kinds * abs(looks) for _, kinds, looks in likeness),
            sum(1 for _, kinds, looks in likeness if kinds >= ALIKE and abs(looks) >= ALIKE),
        ]

    def _block(self, start: int, other: int, left: int, right: int) -> tuple[float, float, float, float, float]:
        values, kinds, looks = self._like(start, other, left, right)
        families, length = self._grid.families, len(self._grid.rows)
        run = named = 0
        for step in range(RUN):
            a, b = start + step, other + step
            if b >= length or a >= other or self._like(a, b, left, right)[1] < ALIKE:
                break
            run += 1
            named += families[a][left] != 0 and self.keys(a)[left] == self.keys(b)[left]
        return values, kinds, looks, run, named / (run or 1)

    def _like(self, start: int, other: int, left: int, right: int) -> Likeness:
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
        """What is compared of each cell: a text, a date, or a number other than 0."""
        if line not in self._keys:
            values = self._grid.rows[line].values
            keys = [value.strip().lower() if isinstance(value, str) else value or None for value in values]
            self._keys[line] = (*keys, *[None] * (self._grid.width - len(keys)))
        return self._keys[line]
