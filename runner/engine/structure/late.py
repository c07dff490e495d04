"""Rows of a long sheet that come after the finder is full: they are data, but for those that plainly say otherwise.

A total says so, a header that is written again spells the declared names, a rule speaks for itself, and a table with
captions so far has more of them: lone texts in the same column. None of that needs the classifier, so it costs little
and holds to the last row, however long the sheet is.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, Protocol

from runner.engine.structure.labels import RowScores
from runner.engine.structure.tables import Table
from runner.engine.structure.totals import Says, in_column, row_says

_FIRST: Final = 3  # filled cells among which a total says so
_LABELS: Final = 6  # columns in which that may be
_SURE: Final = 4.0  # points for a label that settle it: what spelling the declared names is worth
_CAPTIONS: Final = 3  # captions that show a table to have some
_MOST: Final = 500_000  # rows left out: a bound on memory, far above what a sheet holds


class Headings(Protocol):
    """Knows rows that spell the declared names."""

    def __call__(self, number: int, values: Sequence[object], /) -> Mapping[str, float]: ...

    def spelled(self, values: Sequence[object], /) -> int:
        """How many of these are declared names."""
        ...

    def key(self, name: str, /) -> bool:
        """Whether this is the name of a field that every row has a value for, or a different one in each."""
        ...

    def absent(self, columns: Sequence[Sequence[object]]) -> bool:
        """Whether no row of these columns can be one, at a glance."""
        ...


class Late:
    """Looks at the rows that are only counted; tells which of them are no data."""

    def __init__(self, headings: Headings | None, ask: RowScores | None) -> None:
        self._headings = headings
        self._ask = ask  # rules, who have a say in every row
        self._totals: set[int] = set()
        self._suspected: set[int] = set()  # say that they are totals
        self._asides: set[int] = set()
        self._repeated: set[int] = set()  # headers written again
        self._lone: dict[int, int] = {}  # rows of one text and nothing else -> its column

    def look(self, numbers: Sequence[int], columns: Sequence[Sequence[object]]) -> None:
        """Look at rows by column, and at each of them only if there may be something to see."""
        self._look_for_lone(numbers, columns)
        spelled = self._headings is not None and not self._headings.absent(columns)
        if self._ask is None and not spelled and not any(map(in_column, columns[:_LABELS])):
            return
        for number, values in zip(numbers, zip(*columns, strict=True), strict=True):
            scores = self._ask(number, values) if self._ask is not None else {}
            if spelled and self._headings is not None and not scores:
                scores = self._headings(number, values)
            self.row(number, values, scores)

    def row(self, number: int, values: Sequence[object], scores: Mapping[str, float]) -> None:
        """Look at one row, of which rules and declared names say this."""
        best = max(scores, key=scores.__getitem__, default="data")
        if len(self._totals) + len(self._suspected) + len(self._asides) + len(self._repeated) > _MOST:
            return
        if best != "data" and scores[best] - scores.get("data", 0.0) >= _SURE:
            {"total": self._totals, "header": self._repeated}.get(best, self._asides).add(number)
        elif not scores and row_says(values, _FIRST)[0] is Says.PLAINLY:
            self._suspected.add(number)

    def _look_for_lone(self, numbers: Sequence[int], columns: Sequence[Sequence[object]]) -> None:
        """Note rows of one text; two columns without a blank show at a glance that there is none."""
        if len(self._lone) > _MOST or sum(1 for _ in islice((c for c in columns if None not in c), 2)) > 1:
            return
        for number, values in zip(numbers, zip(*columns, strict=True), strict=True):
            self.note_lone(number, values)

    def note_lone(self, number: int, values: Sequence[object]) -> None:
        """Note the row if it holds one text and nothing else."""
        if values.count(None) == len(values) - 1:
            at = next(n for n, value in enumerate(values) if value is not None)
            if isinstance(values[at], str):
                self._lone[number] = at

    def leave_out(self, table: Table, captions: Collection[int]) -> Table:
        """The table without what was seen of it here; `captions` are the columns of those that it is known to have."""
        data = table.data_range
        if data is None:
            return table
        if len(table.groups) >= _CAPTIONS and captions:  # a table that is told apart by captions goes on so
            inside = range(data.top, data.bottom + 1)
            table = replace(
                table, groups=table.groups.union(n for n, at in self._lone.items() if at in captions and n in inside)
            )
        if not (self._totals or self._suspected or self._asides or self._repeated):
            return table
        inside = range(data.top, data.bottom + 1)
        totals = table.totals.union(n for n in self._totals if n in inside)
        asides = table.asides.union(n for n in self._asides if n in inside)
        repeated = table.repeated.union(n for n in self._repeated if n in inside) - totals
        suspected = {n: Says.PLAINLY for n in self._suspected if n in inside} | dict(table.suspected)
        return replace(table, totals=totals, asides=asides - totals - repeated, repeated=repeated, suspected=suspected)
