"""Finds the tables of a sheet while its rows stream by: the steps of docs/explanation/structure.md, in order.

Theory of operation. The classifier takes half a millisecond per row, too much for a million similar rows. So the
detector keeps only the rows that can matter (keeping.py): the first ones of the sheet, every row unlike the usual ones,
and a few rows around each of those. The rest are *plain*: their cells have the usual kinds of their columns. Plain rows
are only counted, and are data like their neighbours. Memory is bounded by MOST_STORED rows, whatever the sheet's size.
At the end of the sheet the stored rows are described (facts.py, features.py), labelled (labelling.py), cut into drafts
of tables (bands.py, or shortcuts.py where no classifier is needed) and shaped into tables (header_rows.py, captions.py,
shaping.py). totals.py then reads the sheet again to check the totals.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from runner.engine.options import AS_FOUND, ReadingOptions
from runner.engine.reading import Block, Layout, OutOfOrder, Sheet, Value, blocks_of, trimmed
from runner.engine.structure import features, labelling, partitioning, remarks, shaping, shortcuts
from runner.engine.structure.bands import Classify, Draft, Labelled, drafts
from runner.engine.structure.facts import Row, row_of
from runner.engine.structure.header_rows import Hints
from runner.engine.structure.keeping import Headings, Late, Usual
from runner.engine.structure.partitioning import SheetReading
from runner.engine.structure.shaping import shape
from runner.engine.structure.tables import Choice, Label, RowScores, Table
from runner.engine.structure.totals import check_totals

LONG = 5_000  # rows of a sheet from which plain neighbours are data without classification
# The chances of a plain row: almost certainly data, as the classifier would find at two hundred times the cost.
PLAIN = [0.97 if label is Label.DATA else 0.006 for label in Label]

Scores = Mapping[int, Mapping[str, float]]  # points from rules in `row_types/`: by row number, then by label


# Kept rows, hints and the detection itself -> the tables, found with what is remembered about the sheet.
ShapesOfSheet = Callable[[Sequence[Row], Hints, Callable[[Hints], list[Table]]], list[Table]]


class RowClassifier(labelling.LabelOrder, Protocol):
    """Rates rows: the shipped trees, or in training a booster that has not seen the file."""

    def chances_of(self, vectors: Sequence[Sequence[float]]) -> list[list[float]]: ...


def tables_in(rows: Sequence[Row], hints: Hints, judge: RowClassifier) -> list[Table]:
    """Find the tables of a sheet's stored rows, from top to bottom and left to right."""
    return _tables(rows, hints, judge, is_searched=True)


def tables_read_by_row(rows: Sequence[Row], hints: Hints, judge: RowClassifier) -> list[Table]:
    """Find the tables without the search for a better partition: what the search is trained to improve on."""
    return _tables(rows, hints, judge, is_searched=False)


def _tables(rows: Sequence[Row], hints: Hints, judge: RowClassifier, *, is_searched: bool) -> list[Table]:
    """Find tables as the manifest sets them, as the file declares them, by a shortcut, and else by the classifier."""
    classify = _classifier(hints, judge)
    choices: list[Choice] = []
    if hints.fixed is not None:
        if (only := shortcuts.fixed_draft(rows, hints.fixed, classify)) is not None:
            remarks.decide_remarks(only, (), hints)
            return [shape(only, hints)]
        choices.append(shortcuts.header_missing(hints.fixed))
    declared, rest = shortcuts.declared_drafts(rows, hints.layout.declared_tables)
    plain = shortcuts.list_draft(rest, hints) or shortcuts.plain_draft(rest, hints) if not declared else None
    if plain is not None:
        reading = SheetReading([plain])
    else:
        reading = _read(rest, hints, declared, classify, is_searched=is_searched)
    drafts_of_sheet = declared + reading.drafts
    for draft in drafts_of_sheet[:1]:
        draft.choices += choices
    for draft in reading.drafts:
        remarks.decide_remarks(draft, [other for other in drafts_of_sheet if other is not draft], hints)
    tables = sorted(
        (shape(draft, hints) for draft in drafts_of_sheet), key=lambda table: (table.range.top, table.range.left)
    )
    return partitioning.with_alternative(tables, reading.alternative)


def _classifier(hints: Hints, judge: RowClassifier) -> Classify:
    """Return what labels some rows of a sheet, with the points that detectors and rules give to them."""

    def classify(rows: Sequence[Row]) -> Labelled:
        total = rows[-1].ordinal + 1 if rows else 0
        vectors = features.vectors(rows, total=total, every=total <= LONG)
        judged = iter(judge.chances_of([vector for vector in vectors if vector]))
        chances = [next(judged) if vector else PLAIN for vector in vectors]
        return labelling.decode(rows, chances, judge, _points(rows, hints.layout, hints.scores))

    return classify


def _read(
    rows: Sequence[Row], hints: Hints, known: Sequence[Draft], classify: Classify, *, is_searched: bool
) -> SheetReading:
    """Make the drafts of the rows that no declared table has: read row by row, or searched."""
    if not rows:
        return SheetReading([])
    labelled = classify(rows)
    read = shaping.without_fragments(drafts(rows, labelled, classify), hints, known)
    if known or not is_searched or any(draft.form for draft in read):
        return SheetReading(read)
    reading = partitioning.better(rows, labelled[1], read, hints.layout, classify)
    shaping.mark_forms_and_headers([draft for draft in reading.drafts if draft not in read], hints)
    return reading


def _points(rows: Sequence[Row], layout: Layout, scored: Scores) -> labelling.Points:
    """Return the points of the built-in detectors and of the rules, summed; by row number and label."""
    points = labelling.points(rows, layout)
    for number, scores in scored.items():
        sums = points.setdefault(number, {})
        for name, delta in scores.items():
            sums[name] = sums.get(name, 0.0) + delta
    return points


AROUND = features.WINDOW  # rows stored before and after an unusual one
MOST_STORED = 4_000  # rows; unusual rows after that are counted with the rest
SPARSE = 1_200  # stored rows after which a long sheet with few unusual rows has only dirt, and no more tables
SPARSE_SHARE = 8  # rows of such a sheet per stored row
MOST_CELLS = 250_000  # in stored rows, blank ones included: a limit for wide sheets
_HEADER_OF_MANIFEST = {"header": 20.0}  # points for a header row in the manifest
FAR = 3  # blank rows above a row that make it unusual


class TableDetector:
    """Consumes the rows of one sheet in order and returns its tables."""

    def __init__(
        self,
        *,
        row_scores: RowScores | None = None,
        headings: Headings | None = None,
        reading: ReadingOptions = AS_FOUND,
        shapes: ShapesOfSheet | None = None,
    ) -> None:
        """`reading`: the manifest's options for header rows and captions; `shapes`: what is remembered."""
        self._shapes = shapes
        self._row_scores = row_scores
        self._headings = headings
        self._header = () if reading.headless else reading.header_rows or None
        self._captions = reading.group_rows
        self._notes = reading.note_rows
        self._late = Late(headings, row_scores)
        self._scores: dict[int, Mapping[str, float]] = {}
        self._ruled: set[int] = set()
        self._rows: list[Row] = []
        self._usual = Usual()
        self._recent: deque[tuple[int, Sequence[object], int, int]] = deque(maxlen=AROUND)
        self._plain = 0  # plain rows since the last stored one
        self._wanted = 0  # rows still to be stored whatever they contain
        self._cells = 0
        self._full = False  # no more rows are stored; unusual ones are counted with the rest
        self._total = 0
        self._last = 0

    def add(self, number: int, values: Sequence[object]) -> None:
        """Add the next row; rows must ascend, blank ones may be skipped."""
        self._add_scored(number, values, self._score(number, values))

    def _score(self, number: int, values: Sequence[object]) -> Mapping[str, float] | None:
        """Return the points of a row from declared names and rules; notes rows with points of rules as ruled."""
        headings, rules = self._headings, self._row_scores
        spelled = headings(number, values) if headings is not None else None
        ruled = rules(number, values) if rules is not None else None
        if ruled:
            self._ruled.add(number)
        if self._header and number in self._header:
            return _HEADER_OF_MANIFEST
        if spelled and ruled:
            return {k: spelled.get(k, 0.0) + ruled.get(k, 0.0) for k in {*spelled, *ruled}}
        return spelled or ruled

    def add_blocks(self, blocks: Iterable[Block]) -> None:
        """Add blocks of rows; long runs of plain rows at a fraction of the cost of `add`."""
        for numbers, columns in blocks:
            for at, (number, values) in enumerate(zip(numbers, zip(*columns, strict=True), strict=True)):
                if self._full and len(self._recent) == AROUND:
                    self._count_all(numbers[at:], [column[at:] for column in columns] if at else columns)
                    break
                self._add_fast(number, values if values[-1] is not None else trimmed(list(values)))

    def _add_fast(self, number: int, values: Sequence[object]) -> None:
        """Like `add`, at half the cost for a row that is certainly plain."""
        scores = self._score(number, values)
        if (
            scores
            or (self._wanted and not self._full)
            or len(self._recent) < AROUND
            or number - self._last > FAR
            or not (self._full or self._usual.is_plain(values))
        ):
            self._add_scored(number, values, scores)
            return
        self._plain += 1
        self._recent.append((number, values, number - self._last - 1, self._total))
        self._total += 1
        self._last = number

    def _count_all(self, numbers: list[int], columns: list[list[Value]]) -> None:
        """Count the rest of a block when no more rows are stored; only the last rows may be restored."""
        self._late.scan(numbers, columns)
        for at in range(max(0, len(numbers) - AROUND), len(numbers)):
            values = trimmed([column[at] for column in columns])
            above = numbers[at - 1] if at else self._last
            self._recent.append((numbers[at], values, numbers[at] - above - 1, self._total + at))
        self._plain += len(numbers)
        self._total += len(numbers)
        self._last = numbers[-1]

    def _add_scored(self, number: int, values: Sequence[object], scores: Mapping[str, float] | None) -> None:
        """Store a row if it, or one right before it, is unusual; else count it."""
        gap = number - self._last - 1
        if scores:
            self._scores[number] = scores
        if self._full:
            self._late.row(number, values, scores or {})
            self._late.note_lone(number, values)
            self._late.note_gap(number, values)
            self._count(number, values)
            return
        if scores or self._usual.is_unusual(values) or gap >= FAR:
            self._wanted = AROUND + 1
            is_unusual = True
        else:
            is_unusual = False
        if not self._wanted:
            self._count(number, values)
            return
        self._flush()
        if not self._store(number, values, gap, self._total, plain=not is_unusual):
            return  # only blanks: ignored
        self._wanted -= 1
        self._total += 1
        self._last = number

    def _count(self, number: int, values: Sequence[object]) -> None:
        """Count a row without storing it; the last ones of a sheet are restored at its end."""
        if len(self._recent) == AROUND:
            self._plain += 1
        self._recent.append((number, values, number - self._last - 1, self._total))
        self._total += 1
        self._last = number

    def _flush(self) -> None:
        """Store the plain rows right before a stored one: they are its neighbours."""
        for number, values, gap, ordinal in self._recent:
            self._store(number, values, gap, ordinal, plain=True)
        self._recent.clear()

    def _store(self, number: int, values: Sequence[object], gap: int, ordinal: int, *, plain: bool) -> bool:
        """Store a row with its facts, and find out whether there is room for more; False for a row of blanks only."""
        row = row_of(number, values, ordinal=ordinal, gap=gap)
        if row is None:
            return False
        row.skipped, self._plain = self._plain, 0
        row.plain = plain
        self._cells += len(row.values)
        self._rows.append(row)
        stored = len(self._rows)
        is_sparse = stored >= SPARSE and self._total >= SPARSE_SHARE * stored
        self._full = stored >= MOST_STORED or self._cells >= MOST_CELLS or is_sparse
        return True

    def rows(self, layout: Layout) -> list[Row]:
        """Return the stored rows, with the facts from the layout."""
        self._flush()
        return add_layout(self._rows, layout)

    def tables(self, layout: Layout | None = None) -> list[Table]:
        """Find the tables of the rows added so far, from top to bottom."""
        layout = layout or Layout()
        rows = self.rows(layout)
        if not rows:
            return []
        names = self._headings
        hints = Hints(
            self._scores, layout, frozenset(self._ruled), captions=self._captions, notes=self._notes, fixed=self._header
        )  # fmt: skip
        if names is not None:
            hints = replace(hints, spelled=names.spelled, key=names.key)

        def detect(hints: Hints) -> list[Table]:
            return tables_in(rows, hints, labelling.load())

        remembered = self._shapes if self._header is None else None
        tables = detect(hints) if remembered is None else remembered(rows, hints, detect)
        return [
            self._late.leave_out(
                table,
                {row.filled[0] for row in rows if row.number in table.groups},
                {row.filled: why for row in rows if (why := table.suspected.get(row.number)) and why.lacks},
            )
            for table in tables
        ]


def add_layout(rows: Sequence[Row], layout: Layout) -> list[Row]:
    """Add to the rows' facts their merges and bold cells; returns them."""
    starts: dict[int, int] = {}
    for top, left, _, right in layout.merged:
        if right > left:
            starts[top] = starts.get(top, 0) + 1
    if not starts and not layout.styled_rows:
        return list(rows)
    for row in rows:
        bold = -1.0
        if row.number <= layout.styled_rows and row.filled:
            marked = layout.bold.get(row.number, ())
            bold = sum(1 for at in row.filled if at + 1 in marked) / len(row.filled)
        row.merged, row.bold = starts.get(row.number, 0), bold
    return list(rows)


def find_tables(
    sheet: Sheet,
    *,
    row_scores: RowScores | None = None,
    headings: Headings | None = None,
    reading: ReadingOptions = AS_FOUND,
    shapes: ShapesOfSheet | None = None,
) -> list[Table]:
    """Find the tables of a sheet, from top to bottom and left to right.

    `row_scores`: points of rules, `headings`: declared names, `reading`: the manifest's options, `shapes`: what is
    remembered about the sender's tables.
    """

    def detect() -> TableDetector:
        detector = TableDetector(row_scores=row_scores, headings=headings, reading=reading, shapes=shapes)
        detector.add_blocks(blocks_of(sheet))
        return detector

    try:
        detector = detect()
    except OutOfOrder:  # the sheet knows now, and yields its rows in order
        detector = detect()
    tables = check_totals(detector.tables(sheet.layout()), blocks_of(sheet), drop=reading.total_rows == "drop")
    if reading.total_rows == "keep":
        tables = [replace(t, choices=tuple(c for c in t.choices if c.kind != "total")) for t in tables]
    return tables
