"""Rows of a long sheet that come after the finder is full: they are data, but for those that plainly say otherwise.

A total says so, a header that is written again spells the declared names, and a rule speaks for itself. None of that
needs the classifier, so it costs little and holds to the last row, however long the sheet is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from runner.engine.structure.labels import RowScores
from runner.engine.structure.tables import Table
from runner.engine.structure.totals import Says, in_column, row_says

_FIRST: Final = 3  # filled cells among which a total says so
_LABELS: Final = 6  # columns in which that may be
_SURE: Final = 4.0  # points for a label that settle it: what spelling the declared names is worth
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

    def look(self, numbers: Sequence[int], columns: Sequence[Sequence[object]]) -> None:
        """Look at rows by column, and at each of them only if there may be something to see."""
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

    def leave_out(self, table: Table) -> Table:
        """The table without what was seen of it here."""
        data = table.data_range
        if data is None or not (self._totals or self._suspected or self._asides or self._repeated):
            return table
        inside = range(data.top, data.bottom + 1)
        totals = table.totals.union(n for n in self._totals if n in inside)
        asides = table.asides.union(n for n in self._asides if n in inside)
        repeated = table.repeated.union(n for n in self._repeated if n in inside) - totals
        suspected = {n: Says.PLAINLY for n in self._suspected if n in inside} | dict(table.suspected)
        return replace(table, totals=totals, asides=asides - totals - repeated, repeated=repeated, suspected=suspected)
