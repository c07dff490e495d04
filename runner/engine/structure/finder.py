"""Finds the tables of a sheet while its rows stream by.

Theory of operation. The classifier looks at a row with its neighbours and costs half a millisecond, too much for a
million rows that all look alike. So the finder keeps in full only the rows that can matter: the first ones of the
sheet, every row unlike what is usual by then, and a few rows around each of those (keeping.py). The rest are *plain*:
the kinds of their cells are what their columns usually hold. They are only counted, and are data like their neighbours.
Memory is bounded by KEPT rows, whatever the sheet's size. At the end of the sheet the kept rows are labelled
(features.py, labelling.py), cut into drafts (bands.py, settled.py), and shaped into tables (heads.py, captions.py,
shaping.py); sums.py then checks the totals.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from runner.engine.reading import Block, Layout, OutOfOrder, Sheet, Value, blocks_of, trimmed
from runner.engine.structure import features, labelling, settled, shaping, sums
from runner.engine.structure.bands import drafts
from runner.engine.structure.facts import Row, row_of
from runner.engine.structure.heads import Asked
from runner.engine.structure.keeping import Headings, Late, Usual
from runner.engine.structure.shaping import shape
from runner.engine.structure.tables import Choice, Label, RowScores, Table

LONG = 5_000  # rows from which neighbours are taken for data unasked
# What a plain row is for: data, all but surely; the classifier would say so at two hundred times the cost.
PLAIN = [0.97 if label is Label.DATA else 0.006 for label in Label]

Told = Mapping[int, Mapping[str, float]]  # what rules in `row_types/` say: by row number, then by label


class Judge(labelling.Sequel, Protocol):
    """Gives rows their chances; the shipped trees, or in training a booster that has not seen the file."""

    def chances_of(self, vectors: Sequence[Sequence[float]]) -> list[list[float]]: ...


def tables_in(kept: Sequence[Row], asked: Asked, judge: Judge) -> list[Table]:
    """The tables of a sheet, from top to bottom and left to right."""
    layout, told = asked.layout, asked.told

    def classify(rows: Sequence[Row]) -> tuple[list[Label], list[list[float]]]:
        total = rows[-1].ordinal + 1 if rows else 0
        if total <= LONG:
            rows = [replace(row, plain=False) for row in rows]
        vectors = features.vectors(rows, total=total)
        judged = iter(judge.chances_of([vector for vector in vectors if vector]))
        chances = [next(judged) if vector else PLAIN for vector in vectors]
        return labelling.decode(rows, chances, judge, _points(rows, layout, told))

    choices: list[Choice] = []
    if asked.fixed is not None:
        if (only := settled.draft(kept, asked.fixed, classify)) is not None:
            return [shape(only, asked)]
        choices.append(settled.missing(asked.fixed))
    known, rest = settled.take(kept, layout.declared_tables)
    one = settled.find(rest, asked) if not known else None
    guessed = [one] if one else shaping.prune(drafts(rest, classify) if rest else [], asked, known)
    for draft in (known + guessed)[:1]:
        draft.choices += choices
    found = [shape(draft, asked) for draft in known + guessed]
    return sorted(found, key=lambda table: (table.range.top, table.range.left))


def _points(rows: Sequence[Row], layout: Layout, told: Told) -> labelling.Points:
    """What the built-in detectors and the rules say of these rows, summed."""
    points = labelling.points(rows, layout)
    for number, scores in told.items():
        sums = points.setdefault(number, {})
        for name, delta in scores.items():
            sums[name] = sums.get(name, 0.0) + delta
    return points


AROUND = features.WINDOW  # rows kept before and after one that stands out
KEPT = 4_000  # rows kept in full; what stands out after that is counted with the rest
SPARSE = 1_200  # rows kept after which a long sheet with few of them has shown what it has: dirt, no more tables
SPARSE_SHARE = 8  # rows of such a sheet for each one kept
CELLS = 250_000  # and cells in them, blank ones too, for sheets that are wide as well
NAMED = {"header": 20.0}  # what a manifest says of a row
FAR = 3  # blank rows above a row that make it stand out


class Finder:
    """Eats the rows of one sheet in order, then tells its tables."""

    def __init__(
        self,
        *,
        row_scores: RowScores | None = None,
        headings: Headings | None = None,
        reading: Mapping[str, Any] | None = None,
    ) -> None:
        """`reading`: what the manifest says of header rows and captions."""
        self._row_scores = row_scores
        self._headings = headings
        said = reading or {}
        self._header = () if said.get("header") == "none" else tuple(said.get("header_rows") or ()) or None
        self._captions = str(said.get("group_rows") or "drop")
        self._late = Late(headings, row_scores)
        self._scores: dict[int, Mapping[str, float]] = {}
        self._ruled: set[int] = set()
        self._rows: list[Row] = []
        self._usual = Usual()
        self._recent: deque[tuple[int, Sequence[object], int, int]] = deque(maxlen=AROUND)
        self._plain = 0  # plain rows since the last kept one
        self._wanted = 0  # rows still to be kept whatever they look like
        self._cells = 0
        self._full = False  # no room for more rows; what stands out from now on is counted with the rest
        self._total = 0
        self._last = 0

    def eat(self, number: int, values: Sequence[object]) -> None:
        """Take the next row; rows come in ascending order, blank ones may be left out."""
        self._take(number, values, self._ask(number, values))

    def _ask(self, number: int, values: Sequence[object]) -> Mapping[str, float] | None:
        """What the declared names and the rules say of a row."""
        headings, rules = self._headings, self._row_scores
        spelled = headings(number, values) if headings is not None else None
        told = rules(number, values) if rules is not None else None
        if told:
            self._ruled.add(number)
        if self._header and number in self._header:
            return NAMED
        if spelled and told:
            return {k: spelled.get(k, 0.0) + told.get(k, 0.0) for k in {*spelled, *told}}
        return spelled or told

    def eat_blocks(self, blocks: Iterable[Block]) -> None:
        """Take every row of a sheet; long runs of plain ones at a fraction of the cost of taking them one by one."""
        for numbers, columns in blocks:
            for at, (number, values) in enumerate(zip(numbers, zip(*columns, strict=True), strict=True)):
                if self._full and len(self._recent) == AROUND:
                    self._count_all(numbers[at:], [column[at:] for column in columns] if at else columns)
                    break
                self._glance(number, values if values[-1] is not None else trimmed(list(values)))

    def _glance(self, number: int, values: Sequence[object]) -> None:
        """What `eat` does, at half its cost for a row that is surely plain."""
        scores = self._ask(number, values)
        if (
            scores
            or (self._wanted and not self._full)
            or len(self._recent) < AROUND
            or number - self._last > FAR
            or not (self._full or self._usual.plainly(values))
        ):
            self._take(number, values, scores)
            return
        self._plain += 1
        self._recent.append((number, values, number - self._last - 1, self._total))
        self._total += 1
        self._last = number

    def _count_all(self, numbers: list[int], columns: list[list[Value]]) -> None:
        """Rows of a sheet that is full: only the last of them may be brought back."""
        self._late.look(numbers, columns)
        for at in range(max(0, len(numbers) - AROUND), len(numbers)):
            values = trimmed([column[at] for column in columns])
            above = numbers[at - 1] if at else self._last
            self._recent.append((numbers[at], values, numbers[at] - above - 1, self._total + at))
        self._plain += len(numbers)
        self._total += len(numbers)
        self._last = numbers[-1]

    def _take(self, number: int, values: Sequence[object], scores: Mapping[str, float] | None) -> None:
        gap = number - self._last - 1
        if scores:
            self._scores[number] = scores
        if self._full:
            self._late.row(number, values, scores or {})
            self._late.note_lone(number, values)
            self._count(number, values)
            return
        if scores or self._usual.stands_out(values) or gap >= FAR:
            self._wanted = AROUND + 1
            stands_out = True
        else:
            stands_out = False
        if not self._wanted:
            self._count(number, values)
            return
        self._flush()
        if not self._keep(number, values, gap, self._total, plain=not stands_out):
            return  # nothing but blanks: as if the row were not there
        self._wanted -= 1
        self._total += 1
        self._last = number

    def _count(self, number: int, values: Sequence[object]) -> None:
        """A row that is not kept; the last ones of a sheet are brought back at its end."""
        if len(self._recent) == AROUND:
            self._plain += 1
        self._recent.append((number, values, number - self._last - 1, self._total))
        self._total += 1
        self._last = number

    def _flush(self) -> None:
        """Bring back the plain rows right before one that is kept: they are its neighbours."""
        for number, values, gap, ordinal in self._recent:
            self._keep(number, values, gap, ordinal, plain=True)
        self._recent.clear()

    def _keep(self, number: int, values: Sequence[object], gap: int, ordinal: int, *, plain: bool) -> bool:
        row = row_of(number, values, ordinal=ordinal, gap=gap)
        if row is None:
            return False
        row.skipped, self._plain = self._plain, 0
        row.plain = plain
        self._cells += len(row.values)
        self._rows.append(row)
        kept = len(self._rows)
        sparse = kept >= SPARSE and self._total >= SPARSE_SHARE * kept
        self._full = kept >= KEPT or self._cells >= CELLS or sparse
        return True

    def rows(self, layout: Layout) -> list[Row]:
        """The rows kept of what was eaten, with what the layout tells of them."""
        self._flush()
        _dress(self._rows, layout)
        return self._rows

    def tables(self, layout: Layout | None = None) -> list[Table]:
        """The tables of what was eaten, from top to bottom."""
        layout = layout or Layout()
        kept = self.rows(layout)
        if not kept:
            return []
        names = self._headings
        asked = Asked(self._scores, layout, frozenset(self._ruled), captions=self._captions, fixed=self._header)
        if names is not None:
            asked = replace(asked, spelled=names.spelled, key=names.key)
        found = tables_in(kept, asked, labelling.load())
        return [
            self._late.leave_out(table, {row.filled[0] for row in kept if row.number in table.groups})
            for table in found
        ]


def _dress(rows: Iterable[Row], layout: Layout) -> None:
    """Add what the layout tells to the rows' facts."""
    starts: dict[int, int] = {}
    for top, left, _, right in layout.merged:
        if right > left:
            starts[top] = starts.get(top, 0) + 1
    for row in rows:
        row.merged = starts.get(row.number, 0)
        if row.number <= layout.styled_rows and row.filled:
            bold = layout.bold.get(row.number, ())
            row.bold = sum(1 for at in row.filled if at + 1 in bold) / len(row.filled)


def find_tables(sheet: Sheet) -> list[Table]:
    """The tables of a sheet, from top to bottom and left to right."""
    return look_through(sheet)


def look_through(
    sheet: Sheet,
    *,
    row_scores: RowScores | None = None,
    headings: Headings | None = None,
    reading: Mapping[str, Any] | None = None,
) -> list[Table]:
    """The tables of a sheet; `reading` is what the manifest says of its header and totals."""
    try:
        finder = _fed(sheet, Finder(row_scores=row_scores, headings=headings, reading=reading))
    except OutOfOrder:
        finder = _fed(sheet, Finder(row_scores=row_scores, headings=headings, reading=reading))
    tables = sums.settle(finder.tables(sheet.layout()), blocks_of(sheet))
    if reading and reading.get("total_rows") == "keep":
        tables = [replace(t, choices=tuple(c for c in t.choices if c.kind != "total")) for t in tables]
    return tables


def _fed(sheet: Sheet, finder: Finder) -> Finder:
    finder.eat_blocks(blocks_of(sheet))
    return finder
