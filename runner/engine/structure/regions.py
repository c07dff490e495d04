"""Where a sheet may be cut into tables, and the rectangles that such cuts leave.

A region is a rectangle that may be a table. The whole sheet is one; each is divided at its blank rows, at places where
a table may start or end without a blank row, and at its blank columns. Every run of neighbouring parts is a region
again, down to DEPTH divisions and at most `most` per sheet: nearer divisions first.

        whole sheet            divided at blank rows      the second part at blank columns
        +-----------+          +-----------+
        | A A A     |          | A A A     |
        |           |   --->   +-----------+              +-----+ +---+
        | B B B  C C|          | B B B  C C|      --->    |B B B| |C C|
        | B B B  C C|          | B B B  C C|              |B B B| |C C|
        +-----------+          +-----------+              +-----+ +---+
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from runner.engine.structure.grid import Grid, Rect, Span, runs
from runner.engine.structure.rectangles import MOST_CUTS, Cuts, places

DEPTH = 4  # divisions of divisions
PARTS = 12  # parts of which every run is a region; of more, only single parts and pairs are
MOST_PARTS = 80
UNLIKELY = 0.03  # probability of a cut below which the sheet is not divided there


class Division(NamedTuple):
    """One way to divide a region: its parts are numbered, and each run of them is a region."""

    parts: int
    regions: dict[tuple[int, int], Rect]  # first and last part -> region


class Regions:
    """The regions of a sheet and their divisions."""

    def __init__(self, grid: Grid, cuts: Cuts, most: int) -> None:
        self._grid = grid
        self._cuts = cuts
        self.divisions: dict[Rect, list[Division]] = {}
        self.whole = grid.whole()
        waiting = [(self.whole, "")] if self.whole is not None else []
        for depth in range(DEPTH + 1):
            found: list[tuple[Rect, str]] = []
            for rect, made_by in waiting:
                if rect not in self.divisions and len(self.divisions) < most:
                    self.divisions[rect] = []
                    if depth < DEPTH:
                        found += self._divide(rect, made_by)
            waiting = found

    def _divide(self, rect: Rect, made_by: str) -> Iterator[tuple[Rect, str]]:
        """Divide a region in each way but the one that it comes from; yields the regions this makes."""
        for way, spans in _ways(self._grid, self._cuts, rect):
            if way != made_by:
                division = _division(self._grid, rect, spans, by_columns=way == "columns")
                self.divisions[rect].append(division)
                yield from ((region, way) for region in division.regions.values())


def _ways(grid: Grid, cuts: Cuts, rect: Rect) -> list[tuple[str, list[Span]]]:
    """The ways to divide a rectangle, each with its parts."""
    lines = grid.lines(rect)
    likely = {
        place.below: chance
        for place in places(grid, rect, lines)[:MOST_CUTS]
        if (chance := cuts.between(place)) >= UNLIKELY
    }
    blank = {b: likely[b] for a, b in pairwise(lines) if b in likely and grid.gap(a, b) > 0}
    ways = [("rows", spans) for spans in _bounded(lines, blank)]
    if len(blank) < len(likely):
        ways += [("lines", spans) for spans in _bounded(lines, likely)]
    columns = grid.column_spans(rect)
    if len(columns) > 1:
        chances = [cuts.beside(rect.top, rect.bottom, Span(a.last + 1, b.first - 1)) for a, b in pairwise(columns)]
        apart = [columns[0]]
        for span, chance in zip(columns[1:], chances, strict=True):
            apart = [*apart, span] if chance >= UNLIKELY else [*apart[:-1], Span(apart[-1].first, span.last)]
        ways += [("columns", apart[:MOST_PARTS])] if len(apart) > 1 else []
    return ways


def _bounded(lines: Sequence[int], starts: Mapping[int, float]) -> list[list[Span]]:
    """The parts that start at these lines; if there are many, also those at the most likely ones only."""
    if not starts:
        return []
    every = runs(lines, [line in starts for line in lines[1:]])
    if len(every) <= PARTS:
        return [every]
    kept = set(sorted(starts, key=lambda line: -starts[line])[: PARTS - 1])
    return [every[:MOST_PARTS], runs(lines, [line in kept for line in lines[1:]])]


def _division(grid: Grid, rect: Rect, spans: Sequence[Span], *, by_columns: bool) -> Division:
    parts = len(spans)
    longest = parts - 1 if parts <= PARTS else 2
    regions: dict[tuple[int, int], Rect] = {}
    for length in range(1, longest + 1):
        for first in range(parts - length + 1):
            start, end = spans[first].first, spans[first + length - 1].last
            cut = rect._replace(left=start, right=end) if by_columns else rect._replace(top=start, bottom=end)
            region = grid.trimmed(cut)
            if region is not None:
                regions[first, first + length - 1] = region
    return Division(parts, regions)
