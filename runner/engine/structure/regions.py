"""Where a sheet may be cut into tables, and the rectangles that such cuts leave.

A region is a rectangle that may be a table, or that is divided again. The whole sheet is one; each is divided between
lines, at the likeliest places where a table may start or end, and at its blank columns. Every run of neighbouring parts
may be a region again. Those whose edges are likely places, with no likely place inside, come first, up to `most` per
sheet.

        whole sheet            divided between lines      the second part at blank columns
        +-----------+          +-----------+
        | A A A     |          | A A A     |
        |           |   --->   +-----------+              +-----+ +---+
        | B B B  C C|          | B B B  C C|      --->    |B B B| |C C|
        | B B B  C C|          | B B B  C C|              |B B B| |C C|
        +-----------+          +-----------+              +-----+ +---+
"""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush, nsmallest
from itertools import accumulate, pairwise
from math import log
from typing import NamedTuple

from runner.engine.structure.grid import Grid, Rect, Span, runs
from runner.engine.structure.rectangles import MOST_CUTS, Cuts, places

DEPTH = 4  # divisions of divisions
MOST_PARTS = 32  # of a division: it is cut at the likeliest places
MOST_RUNS = 60  # runs of parts that become regions, besides single parts
UNLIKELY = 0.02  # probability of a cut below which a region is not divided there
INSIDE = 0.6  # weight of the places inside a region, relative to those at its edges
NEVER = 1e-3


class Division(NamedTuple):
    """One way to divide a region: its parts are numbered, and runs of them are regions."""

    parts: int
    regions: dict[tuple[int, int], Rect]  # first and last part -> region


class Cut(NamedTuple):
    """A region still to be divided."""

    cost: float  # how unlikely its edges are, and that no table ends inside
    depth: int
    made_by: str
    rect: Rect


class Regions:
    """The regions of a sheet and their divisions."""

    def __init__(self, grid: Grid, cuts: Cuts, most: int) -> None:
        self._grid = grid
        self._cuts = cuts
        self.divisions: dict[Rect, list[Division]] = {}
        self.whole = grid.whole()
        waiting = [Cut(0.0, 0, "", self.whole)] if self.whole is not None else []
        while waiting and len(self.divisions) < most:
            cut = heappop(waiting)
            if cut.rect not in self.divisions:
                self.divisions[cut.rect] = []
                if cut.depth < DEPTH:
                    for part in self._divide(cut):
                        heappush(waiting, part)

    def _divide(self, cut: Cut) -> Iterator[Cut]:
        """Divide a region in each way but the one that it comes from; notes the divisions, and yields the regions."""
        for way, spans, chances in _ways(self._grid, self._cuts, cut.rect):
            if way != cut.made_by:
                regions: dict[tuple[int, int], Rect] = {}
                for cost, first, last in _runs(chances):
                    region = _part(self._grid, cut.rect, spans[first].first, spans[last].last, way)
                    if region is not None:
                        regions[first, last] = region
                        yield Cut(cut.cost + cost, cut.depth + 1, way, region)
                self.divisions[cut.rect].append(Division(len(spans), regions))


def _ways(grid: Grid, cuts: Cuts, rect: Rect) -> Iterator[tuple[str, list[Span], list[float]]]:
    """Yield the ways to divide a rectangle, each with its parts and the probability of the cut before each further
    one."""
    lines = grid.lines(rect)
    row_chances = _likeliest({place.below: cuts.between(place) for place in places(grid, rect, lines)[:MOST_CUTS]})
    if row_chances:
        spans = runs(lines, [line in row_chances for line in lines[1:]])
        yield "lines", spans, [row_chances[span.first] for span in spans[1:]]
    columns = grid.column_spans(rect)
    column_chances = _likeliest(
        {b.first: cuts.beside(rect.top, rect.bottom, Span(a.last + 1, b.first - 1)) for a, b in pairwise(columns)}
    )
    if column_chances:
        apart = [columns[0]]
        for span in columns[1:]:
            apart = [*apart, span] if span.first in column_chances else [*apart[:-1], Span(apart[-1].first, span.last)]
        yield "columns", apart, [column_chances[span.first] for span in apart[1:]]


def _likeliest(chances: dict[int, float]) -> dict[int, float]:
    """Return the likeliest places of a region, at most MOST_PARTS - 1."""
    order = sorted((place for place in chances if chances[place] >= UNLIKELY), key=lambda place: -chances[place])
    return {place: chances[place] for place in order[: MOST_PARTS - 1]}


def _runs(chances: Sequence[float]) -> list[tuple[float, int, int]]:
    """Return runs of parts as cost, first and last part: all single parts, and those with the likeliest edges."""
    parts = len(chances) + 1
    edge = [0.0, *(-log(max(chance, NEVER)) for chance in chances), 0.0]  # before each part, and after the last
    inside = list(accumulate((-INSIDE * log(max(1 - chance, NEVER)) for chance in chances), initial=0.0))
    single = [(edge[at] + edge[at + 1], at, at) for at in range(parts)]
    longer = (
        (edge[first] + edge[last + 1] + inside[last] - inside[first], first, last)
        for first in range(parts)
        for last in range(first + 1, parts)
        if last - first < parts - 1
    )
    return single + nsmallest(MOST_RUNS, longer)


def _part(grid: Grid, rect: Rect, start: int, end: int, way: str) -> Rect | None:
    """Return a part of a rectangle without blank outer lines and columns; None if it is blank."""
    by_columns = way == "columns"
    return grid.trimmed(rect._replace(left=start, right=end) if by_columns else rect._replace(top=start, bottom=end))
