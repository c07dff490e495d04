"""Finds the best partition of a sheet into tables.

Theory of operation. A sheet is divided again and again, between lines and at blank columns (regions.py); the regions
that this leaves are the candidates. A forest that knows the tables that were read row by row gives each the probability
of being a table (rectangles.py). Where the format stores designs of cells, two others do not know them: one finds
tables that the first misses, their edges nearly right, and one says whether these are exact. A partition is worth the
sum of its tables' probabilities, less COST for each table and UNCOVERED times the share of cells in no table; a table
over blocks with the same header (equal_blocks.py) is worth less than any other. The best one is found from the smallest
regions up: a region is a table, or blank, or the best sequence of its parts. Each region is solved once, so the number
of regions bounds the work.

The tables that were read row by row (bands.py) are one partition. If the format stores no designs of cells, another
one takes its place only if it is worth MARGIN more. The one that is not taken is the tables' `alternative`, if close.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp
from pathlib import Path
from typing import NamedTuple

from runner.engine.structure.cuts import COLUMN_CUT, ROW_CUT
from runner.engine.structure.equal_blocks import has_equal_blocks
from runner.engine.structure.forest import Forest
from runner.engine.structure.grid import Grid, Rect
from runner.engine.structure.rectangles import RECTANGLE, UNREAD, Cuts, Describer
from runner.engine.structure.regions import Division, Regions

COST = 0.3  # of each table
UNCOVERED = 0.4  # of a sheet whose cells are in no table
# By how much a partition must be worth more to replace the one that was read row by row, if the format has no designs
# of cells: a blank column may then be a spacer as well as a border between tables. With designs the search decides.
MARGIN = 0.2
UNSEEN = 0.5  # what a partition is worth less where designs, which might speak against it, are not stored
NEVER = -100.0  # what several blocks with the same header count as one table
REGIONS, FEW_REGIONS = 160, 50  # of a sheet with and without designs of cells
EXACT = 0.5  # what of a table's worth depends on exact edges
HARDLY = 0.1  # probability of a table below which its edges do not matter


FEATURES = {"row_cuts": ROW_CUT, "column_cuts": COLUMN_CUT, "rectangles": RECTANGLE, "near": UNREAD, "exact": UNREAD}


@dataclass(frozen=True, slots=True)
class SearchModel:
    """The shipped forests, and what makes a probability of a difference of values."""

    row_cuts: Forest
    column_cuts: Forest
    rectangles: Forest  # knows the tables that were read row by row
    near: Forest  # does not: rectangles whose edges are off by two at most; where the format stores designs of cells
    exact: Forest  # which of these are exact
    slope: float  # the log odds that a partition is better than another: slope * difference of values + offset
    offset: float


@cache
def load() -> SearchModel:
    """Load the shipped forests, once per process."""
    with Path(__file__).with_name("search.json").open(encoding="utf-8") as file:
        raw = json.load(file)
    if {part: raw[part]["features"] for part in FEATURES} != {part: list(names) for part, names in FEATURES.items()}:
        raise RuntimeError("search.json was trained for other features: run tools/train_search.py")
    forests = {part: Forest(raw[part]["trees"]) for part in FEATURES}
    return SearchModel(**forests, slope=raw["slope"], offset=raw["offset"])


def chances_of(vectors: Sequence[Sequence[float]], model: SearchModel, *, has_designs: bool) -> list[float]:
    """Return what rectangles are worth as tables: the probability that each is one, less if its edges are doubtful."""
    known = model.rectangles.probabilities(vectors)
    if not has_designs:
        return known
    near = [max(pair) for pair in zip(known, model.near.probabilities(vectors), strict=True)]
    likely = [at for at, chance in enumerate(near) if chance >= HARDLY]
    exact = dict(zip(likely, model.exact.probabilities([vectors[at] for at in likely]), strict=True))
    return [chance * (1 - EXACT + EXACT * exact.get(at, 0.0)) for at, chance in enumerate(near)]


class Solution(NamedTuple):
    """Tables of a part of a sheet, and what they are worth."""

    value: float
    tables: tuple[Rect, ...]


NOTHING = Solution(0.0, ())


class SearchOutcome(NamedTuple):
    """The best partition that was found, the one that was read row by row, and how likely the first is the better."""

    best: Solution
    reading: Solution
    probability: float
    is_sure: bool  # that the first is the better


def search(grid: Grid, reading: Sequence[Rect], model: SearchModel) -> SearchOutcome:
    """Compare the partition that was read row by row with the best one."""
    cuts = Cuts(grid, model.row_cuts, model.column_cuts)
    regions = Regions(grid, cuts, REGIONS if grid.designs.are_known else FEW_REGIONS)
    describer = Describer(grid, cuts, reading)

    every = dict.fromkeys((*regions.divisions, *reading))
    tables = [rect for rect in every if not has_equal_blocks(grid, rect)]
    vectors = [describer.describe(rect) for rect in tables]
    chances = dict.fromkeys(every, NEVER)
    chances |= zip(tables, chances_of(vectors, model, has_designs=grid.designs.are_known), strict=True)
    solver = Solver(regions.whole, regions.divisions, chances, grid.cells)
    best = solver.best()
    read = solver.value_of(reading)
    more = best.value - read.value - (0.0 if grid.designs.are_known else UNSEEN)
    odds = max(-30.0, min(30.0, model.slope * more + model.offset))
    return SearchOutcome(best, read, 1.0 / (1.0 + exp(-odds)), grid.designs.are_known or more > MARGIN)


class Solver:
    """Finds the best tables of each region, once."""

    def __init__(
        self,
        whole: Rect | None,
        divisions: Mapping[Rect, Sequence[Division]],
        chances: Mapping[Rect, float],
        cells: Callable[[Rect], int],
    ) -> None:
        """`chances`: the probability that each region is a table; `cells`: how many it has."""
        self._whole = whole
        self._divisions = divisions
        self._chances = chances
        self._cells = cells
        self._all = cells(whole) if whole is not None else 1
        self._solved: dict[Rect, Solution] = {}

    def best(self) -> Solution:
        """Find the best partition of the sheet."""
        return self._solve(self._whole) if self._whole is not None else NOTHING

    def value_of(self, tables: Sequence[Rect]) -> Solution:
        """Return what a partition is worth."""
        covered = sum(map(self._cells, tables)) / self._all
        value = sum(self._chances[rect] - COST for rect in tables) - UNCOVERED * max(0.0, 1.0 - covered)
        return Solution(value, tuple(tables))

    def _solve(self, rect: Rect) -> Solution:
        """Find the best tables of a region: itself, none, or the best of one of its divisions."""
        if rect in self._solved:
            return self._solved[rect]
        blank = Solution(-UNCOVERED * self._cells(rect) / self._all, ())
        if rect not in self._divisions:  # beyond the limit of regions
            return blank
        best = max(blank, Solution(self._chances[rect] - COST, (rect,)))
        self._solved[rect] = best
        for division in self._divisions[rect]:
            best = max(best, self._sequence(division), key=lambda solution: solution.value)
        self._solved[rect] = best
        return best

    def _sequence(self, division: Division) -> Solution:
        """Find the best way to group the parts of a division into regions, from the first part to the last."""
        best: list[Solution | None] = [NOTHING]
        for end in range(division.parts):
            tries = [
                Solution(before.value + here.value, before.tables + here.tables)
                for start in range(end + 1)
                if (before := best[start]) is not None and (region := division.regions.get((start, end))) is not None
                for here in (self._solve(region),)
            ]
            best.append(max(tries, key=lambda solution: solution.value, default=None))
        return best[-1] or Solution(float("-inf"), ())
