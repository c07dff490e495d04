"""The ledger of a sheet: every row that was read is either data in the output or listed with its reason.

Rows are counted while the sheet is read and, independently, while data rows are written. The structure pass explains
the others; rows that are still unexplained belong to no table and are listed as such. Cells in a table's rows that lie
outside its columns are listed by range.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from runner.engine.common import a1
from runner.engine.common.findings import FindingPlace, Findings, FindingText
from runner.engine.common.rowsets import RowSet, Run
from runner.engine.contract import Json
from runner.engine.options import DUPLICATE, FILTERED, GROUP
from runner.engine.reading import Block
from runner.engine.reading.spool import Extent, SpooledSheet
from runner.engine.tables.sources import SourceTable

# Kinds of rows of a table that are not in the output, as artifact.json counts them.
LEFT_OUT: Final = (
    "total", "group", "note", "repeated_header", "hidden", "blank", FILTERED, DUPLICATE, "rejected", "skipped_table",
)  # fmt: skip
OUTSIDE: Final = "outside"
_WITH_BLANKS: Final = '"rows": {"unpivot": {"blanks": "keep"}}'
# Kind -> the words for one row and for several, and how to keep them.
_WHY_LEFT_OUT: Final = {
    "total": ("a total", "totals", '"reading": {"total_rows": "keep"}'),
    "group": ("a group caption", "group captions", '"reading": {"group_rows": "fill"}'),
    "note": ("a note", "notes", '"reading": {"note_rows": "keep"}'),
    "repeated_header": ("a repeated header", "repeated headers", ""),
    "hidden": ("hidden", "hidden", '"reading": {"hidden_rows": "read"}'),
    "blank": ("blank in the columns that become rows", "blank in the columns that become rows", _WITH_BLANKS),
    "title": ("a title", "titles", "move it below the header"),
}
# Rows that the manifest's `rows` leaves out: why one is and several are, and the setting that does it.
_WHY_REMOVED: Final = {
    FILTERED: ("does not satisfy rows.filter", "do not satisfy rows.filter", "rows.filter"),
    DUPLICATE: ("has the key of another row", "have the keys of other rows", "rows.dedupe"),
}
_SEVERAL_CELLS: Final = 2  # cells from which a row, or an area beside a table, may be more than a title or a remark


class LedgerEntry(NamedTuple):
    """A run of rows of one kind: data, or left out for one reason. Blank rows inside it are not counted."""

    first: int
    last: int
    kind: str  # "data", one of LEFT_OUT, OUTSIDE, header or title; of shared rows how many tables share them
    rows: int
    table: str | None = None  # its short name

    @property
    def words(self) -> str:
        """Write the rows in words: `row 3`, `rows 3 to 9 (5 rows)`."""
        if self.rows == 1:
            return f"row {self.first}"
        blanks = self.last - self.first + 1 > self.rows
        return f"rows {self.first} to {self.last}" + (f" ({self.rows} rows)" if blanks else "")

    def message(self, text: str, entry: str = "", remedy: str = "") -> FindingText:
        """Make a message about these rows, with their numbers as its parameters. `remedy`: the manifest line that keeps
        them."""
        line = {"settle": remedy} if remedy else {}
        return FindingText(text, entry, first=self.first, last=self.last, count=self.rows, **line)

    def as_dict(self) -> Json:
        """Return the entry as artifact.json has it."""
        parts = {"from": self.first, "to": self.last, "as": self.kind, "table": self.table, "rows": self.rows}
        return {k: v for k, v in parts.items() if v is not None}


class StrayCells(NamedTuple):
    """An area in a table's rows, outside its columns, and how many cells in it have values."""

    top: int
    left: int
    bottom: int
    right: int
    cells: int

    @property
    def area(self) -> str:
        """The range of the area."""
        return f"{a1.cell(self.top, self.left)}:{a1.cell(self.bottom, self.right)}"


class TableBooks:
    """The rows of one table by kind: data, or why a row is left out.

    It is made after the rows were streamed; `SheetBooks` then adds titles, notes and rows of hidden columns.
    """

    def __init__(self, source: SourceTable, ref: str, read: RowSet, *, skipped: bool) -> None:
        """Sort the rows of a table by kind. `ref`: its short name in artifact.json. `read`: all rows of the sheet with
        values."""
        self.source = source
        self.ref = ref
        self.skipped = skipped  # the whole table is not in the output
        self.kinds: dict[str, RowSet] = {kind: RowSet.of(rows) & read for kind, rows in source.left_out.items()}
        self.kinds["hidden"] = source.hidden
        self.kinds["blank"] = source.unmade
        rejected = source.split_off
        self.kinds["rejected"] = rejected
        data = source.data_rows
        for kind, removed in source.removed.items():
            self.kinds[kind] = removed
            data = data - removed if removed else data
        self.kinds["skipped_table" if skipped else "data"] = data - rejected if rejected else data
        self.around: dict[str, RowSet] = {}  # titles above it and notes below it
        supplied = {cell.row for cell in source.labelled.values()}  # the manifest names what is in them
        left_out = source.table.left_out.items()
        # Rows that may be records, though they are left out.
        self.unproven = RowSet.of(n for n, row in left_out if row.proof is None and n not in supplied)
        box, rows = source.table.range, [n for kind in source.left_out.values() for n in kind]
        # First and last row; a repeated header may be further down than the range.
        self.top, self.bottom = min([box.top, *rows]), max([box.bottom, *rows])
        self.columns = sum(1 << c.index for c in source.table.columns)  # a bit for each, by its number in the sheet

    def withhold(self) -> None:
        """Count data and rejected rows as those of a skipped table: the job ends without an output after all."""
        if not self.skipped:
            self.skipped = True
            self.kinds["skipped_table"] = self.kinds.pop("data") | self.kinds["rejected"]
            self.kinds["rejected"] = RowSet()

    @property
    def rows(self) -> RowSet:
        """Collect all rows that the table accounts for."""
        all_rows = RowSet()
        for rows in (*self.kinds.values(), *self.around.values()):
            all_rows = all_rows | rows
        return all_rows

    def hides(self, row: int, filled: Iterable[int]) -> bool:
        """Whether the row's only values in this table are in hidden columns."""
        hidden = {c.index for c in self.source.hidden_columns}
        return self.top <= row <= self.bottom and not hidden.isdisjoint(filled)

    @property
    def left_out(self) -> dict[str, int]:
        """Count the rows that are not in the output, by kind; kinds without rows are absent."""
        sets = [*self.kinds.items(), *self.around.items()]
        counts = {kind: sum(rows.count for k, rows in sets if k == kind) for kind in LEFT_OUT}
        return {kind: count for kind, count in counts.items() if count}

    @property
    def rows_out(self) -> int:
        """Count the rows of the sheet that are in the output."""
        return 0 if self.skipped else self.kinds["data"].count

    @property
    def rows_in(self) -> int:
        """Count the rows of the sheet that belong to the table, those that are left out included."""
        return self.rows_out + sum(self.left_out.values())

    def entries(self, outside: RowSet) -> list[LedgerEntry]:
        """Return the table's rows as ledger entries, one for each run of one kind; `outside`: rows of no table, which
        separate runs."""
        sets = [*self.kinds.items(), *self.around.items()]
        return _make_entries([(run, kind) for kind, rows in sets for run in rows], outside, self.ref)


class _RunOfSeveral(NamedTuple):
    """A run of rows of which at least one has several cells."""

    first: int
    last: int
    most_cells: int  # in one row


class SheetBooks:
    """Accounts for every row of one sheet: complete once it is made, from what its tables counted.

    The steps of its set-up depend on each other: titles and notes are assigned before rows are counted as of no table,
    and the scan then corrects both by what cells show.
    """

    def __init__(
        self, sheet: SpooledSheet, tables: Sequence[tuple[SourceTable, str, bool]], place: FindingPlace
    ) -> None:
        """Account for the rows of a sheet; `tables`: each with its short name, and whether it was skipped."""
        self.place = place
        self._sheet = sheet
        self._read = sheet.read  # all rows with values
        self.tables = [TableBooks(source, ref, sheet.read, skipped=skipped) for source, ref, skipped in tables]
        self._assign_titles_and_notes()
        by_tables = self._count_tables_per_row()
        self._outside = self._read - by_tables[0] if by_tables else self._read  # rows of no table
        self.shared = self._find_shared_rows(by_tables)
        self._rows_apart = self._outside  # titles, notes, and rows of no table
        for table in self.tables:
            for rows in table.around.values():
                self._rows_apart = self._rows_apart | rows
        self._runs_of_several: list[_RunOfSeveral] = []  # of these
        self.beside = self._scan_sheet()
        self.outside = _make_entries([(run, OUTSIDE) for run in self._outside], self._read - self._outside)

    def _find_shared_rows(self, by_tables: Sequence[RowSet]) -> list[LedgerEntry]:
        """Return the runs of rows that several tables have, by how many; `by_tables`: as `_count_tables_per_row`
        returns it."""
        several = by_tables[1] if len(by_tables) > 1 else RowSet()
        exactly = [rows - by_tables[n] if n < len(by_tables) else rows for n, rows in enumerate(by_tables[1:], 2)]
        return _make_entries([(run, str(n)) for n, rows in enumerate(exactly, 2) for run in rows], self._read - several)

    @property
    def rows_read(self) -> int:
        """Count the rows of the sheet that have values."""
        return self._read.count

    def entries(self) -> list[LedgerEntry]:
        """Return every row that was read as ledger entries, from top to bottom."""
        runs = [entry for table in self.tables for entry in table.entries(self._outside)]
        return sorted([*runs, *self.outside], key=lambda entry: entry.first)

    def report(self, findings: Findings) -> None:
        """Report each run of rows that was left out, and cells beside tables."""
        for table in self.tables:
            if not table.skipped:
                self._report_left_out(table, findings)
                self._report_removed(table, findings)
        for entry in self.outside:
            self._report_outside(entry, findings)
        for stray in self.beside:
            several = stray.cells >= _SEVERAL_CELLS
            what = f"{stray.cells} cells in {stray.area} are" if several else f"{stray.area.split(':')[0]} is"
            findings.add(
                "cells_beside", "warning" if several else "info",
                FindingText(f"{what} beside a table, outside its columns; left out", count=stray.cells),
                place=self.place, row=stray.top, column=stray.left, rule="structure", count=stray.cells,
            )  # fmt: skip

    def _report_outside(self, entry: LedgerEntry, findings: Findings) -> None:
        """Report a run of rows that belong to no table: a warning if a row of it has several cells."""
        several = self._most_cells(entry.first, entry.last) >= _SEVERAL_CELLS
        verb = "has values but belongs" if entry.rows == 1 else "have values but belong"
        text = entry.message(f"{entry.words} {verb} to no table; left out")
        findings.add(
            "rows_outside", "warning" if several else "info", text,
            place=self.place, row=entry.first, rule="structure", count=entry.rows,
        )  # fmt: skip

    def _report_left_out(self, table: TableBooks, findings: Findings) -> None:
        """Report each run of rows that are no records: as a warning where nothing proves that they are none. Titles of
        one cell, as most sheets have them, are not reported."""
        for kind in _WHY_LEFT_OUT:
            rows = table.kinds.get(kind, RowSet()) | table.around.get(kind, RowSet())
            for some, proven in ((rows - table.unproven, True), (rows & table.unproven, False)):
                for entry in _make_entries([(run, kind) for run in some], table.rows - some | self._outside):
                    if proven and kind == "title" and self._most_cells(entry.first, entry.last) < _SEVERAL_CELLS:
                        continue
                    filled = kind == "group" and GROUP in table.source.added
                    findings.add(
                        _finding_code(kind) if proven else "rows_doubtful", "info" if proven else "warning",
                        _left_out_message(entry, proven=proven, filled=filled),
                        place=table.source.place, row=entry.first, rule="structure", count=entry.rows,
                    )  # fmt: skip

    def _report_removed(self, table: TableBooks, findings: Findings) -> None:
        """Report the rows that the manifest leaves out: once for a table, because they may be everywhere in it."""
        for kind, (of_one, of_several, line) in _WHY_REMOVED.items():
            rows = table.kinds[kind]
            if rows:
                first = next(iter(rows))[0]
                several = f"{rows.count:,} rows, from row {first} on, are left out: they {of_several}"
                what = f"row {first} is left out: it {of_one}" if rows.count == 1 else several
                findings.add(
                    _finding_code(kind), "info", FindingText(f"{what}; to keep: change {line}", count=rows.count),
                    place=table.source.place, row=first, rule=line, count=rows.count,
                )  # fmt: skip

    def _most_cells(self, first: int, last: int) -> int:
        """Return the largest number of cells in one row of a run; 0 if no row has several."""
        runs = (run for run in self._runs_of_several if first <= run.last and run.first <= last)
        return max((run.most_cells for run in runs), default=0)

    def _assign_titles_and_notes(self) -> None:
        """Assign each title and note row to its table, unless it is already a row of another one."""
        assigned = RowSet()
        for table in self.tables:
            assigned = assigned | table.rows
        for table in self.tables:
            structure, source = table.source.table, table.source
            cells = (*source.labelled.values(), *([source.caption] if source.caption else ()))
            above = [cell.row for cell in cells if cell.row < structure.range.top]
            below = [cell.row for cell in cells if cell.row > structure.range.bottom]
            for kind, numbers in (("title", (*structure.titles, *above)), ("note", (*structure.notes, *below))):
                rows = (RowSet.of(numbers) & self._read) - assigned
                if rows:
                    table.around[kind] = rows
                    assigned = assigned | rows

    def _count_tables_per_row(self) -> list[RowSet]:
        """Return the rows of at least one table, of at least two, and so on: tables side by side share rows."""
        at_least: list[RowSet] = []
        for table in self.tables:
            table_rows = table.rows
            for n, rows in enumerate(at_least):
                at_least[n], table_rows = rows | table_rows, rows & table_rows
                if not table_rows:
                    break
            if table_rows:
                at_least.append(table_rows)
        return at_least

    def _scan_sheet(self) -> list[StrayCells]:
        """Find the cells beside tables, and check the rows of no table on the way.

        Corrects the account: rows with only spaces no longer count as read, and rows that only have values in a table's
        hidden columns become hidden rows of it. Blocks that one table fills are not unpacked.
        """
        if not self.tables and not self._sheet.complete:  # too long to read again for this
            self._runs_of_several = [_RunOfSeveral(first, last, _SEVERAL_CELLS) for first, last in self._rows_apart]
            return []
        strays: dict[tuple[str, ...], dict[int, StrayCells]] = {}  # refs of the tables beside -> column -> cells
        hidden: dict[str, list[int]] = {}  # ref of a table -> rows
        blank: list[int] = []
        for block in self._sheet.some_blocks(self._must_be_scanned):
            for first, last in self._rows_apart.within(block.numbers[0], block.numbers[-1]):
                self._scan_apart(block.within(first, last), hidden, blank)
            for first, last in self._split_at_tables(block):
                over = [t for t in self.tables if t.top <= first and last <= t.bottom]
                if over:
                    columns = strays.setdefault(tuple(t.ref for t in over), {})
                    for stray in self._find_stray_cells(block.within(first, last), over):
                        before = columns.get(stray.left)
                        columns[stray.left] = stray if before is None else _join_below(before, stray)
        spaces = RowSet.of(blank) & self._outside  # rows with only spaces count as blank
        self._read, self._outside = self._read - spaces, self._outside - spaces
        for table in self.tables:
            if table.ref in hidden:
                rows = RowSet.of(hidden[table.ref])
                table.kinds["hidden"] = table.kinds["hidden"] | rows
                self._outside = self._outside - rows
        return [stray for columns in strays.values() for stray in _join_neighbours(columns)]

    def _must_be_scanned(self, extent: Extent) -> bool:
        """Whether a block may hold cells beside a table, or rows that are none of its data: titles, notes, others."""
        if self._rows_apart.meets(extent.first, extent.last):
            return True
        covered = 0
        for table in self.tables:
            if table.top <= extent.first and extent.last <= table.bottom:
                covered |= table.columns
            elif table.top <= extent.last and extent.first <= table.bottom:
                return True
        return bool(extent.columns & ~covered) and bool(covered)

    def _scan_apart(self, rows: Block, hidden: dict[str, list[int]], blank: list[int]) -> None:
        """Check rows around and outside tables: adds rows to `hidden` and `blank`, and the run of all these rows to
        `_runs_of_several` if one has several cells."""
        covering = [t for t in self.tables if t.source.hidden_columns]
        most = 0
        for number, values in zip(rows.numbers, zip(*rows.columns, strict=True), strict=True):
            filled = [n for n, value in enumerate(values, 1) if _has_value(value)]
            if not filled:
                blank.append(number)
            elif number in self._outside and (table := next((t for t in covering if t.hides(number, filled)), None)):
                hidden.setdefault(table.ref, []).append(number)
            else:
                most = max(most, len(filled))
        if most >= _SEVERAL_CELLS:
            self._runs_of_several.append(_RunOfSeveral(rows.numbers[0], rows.numbers[-1], most))

    def _split_at_tables(self, block: Block) -> Iterator[Run]:
        """Split the block's rows into runs, cut wherever a table starts or ends."""
        first, last = block.numbers[0], block.numbers[-1]
        starts = {first, *(t.top for t in self.tables), *(t.bottom + 1 for t in self.tables)}
        cuts = sorted(row for row in starts if first <= row <= last)
        yield from zip(cuts, [*(row - 1 for row in cuts[1:]), last], strict=True)

    def _find_stray_cells(self, rows: Block, over: Sequence[TableBooks]) -> Iterator[StrayCells]:
        """Yield the cells, by column, of some rows that are outside the columns of the tables `over` them."""
        covered = 0
        for table in over:
            covered |= table.columns
        for column, values in enumerate(rows.columns, 1):
            if covered >> column & 1 or not (any(values) or values.count(None) != len(values)):
                continue
            rows_with_value = [row for row, value in zip(rows.numbers, values, strict=True) if _has_value(value)]
            rows_with_value = [row for row in rows_with_value if row not in self._outside]
            if rows_with_value:
                yield StrayCells(rows_with_value[0], column, rows_with_value[-1], column, len(rows_with_value))


def _left_out_message(entry: LedgerEntry, *, proven: bool, filled: bool) -> FindingText:
    """Explain why rows are left out, and how to keep them; `filled`: the row is a value of a column of the rows
    below."""
    singular, plural, remedy = _WHY_LEFT_OUT[entry.kind]
    noun, verb = (singular, "is") if entry.rows == 1 else (plural, "are")
    if not proven:
        record = "a record" if entry.rows == 1 else "records"
        message = f"{entry.words} {verb} taken for {noun} and left out, but may be {record}"
        return entry.message(f"{message}; to settle it: {remedy}" if remedy else message, remedy=remedy)
    message = f"{entry.words} {verb} left out: {noun}"
    if filled:
        return entry.message(f"{message}; in a column of the rows below", "filled")
    return entry.message(f"{message}; to keep: {remedy}" if remedy else message, remedy=remedy)


def _finding_code(kind: str) -> str:
    """Return the code of the finding about rows of a kind that were left out."""
    return "rows_outside" if kind == "title" else f"rows_{kind}"


def _has_value(value: object) -> bool:
    """Whether a cell has a value that is not only spaces."""
    return value is not None and not (value.__class__ is str and not value.strip())


def _join_below(above: StrayCells, below: StrayCells) -> StrayCells:
    """Join two stray areas of one column, one below the other."""
    return above._replace(bottom=below.bottom, cells=above.cells + below.cells)


def _join_neighbours(columns: dict[int, StrayCells]) -> Iterator[StrayCells]:
    """Join stray cells of neighbouring columns into areas; `columns` has them by column number."""
    area: StrayCells | None = None
    for _, column in sorted(columns.items()):
        if area is not None and area.right + 1 == column.left:
            area = StrayCells(
                top=min(area.top, column.top),
                left=area.left,
                bottom=max(area.bottom, column.bottom),
                right=column.right,
                cells=area.cells + column.cells,
            )
            continue
        if area is not None:
            yield area
        area = column
    if area is not None:
        yield area


def _make_entries(runs: Iterable[tuple[Run, str]], between: RowSet, table: str | None = None) -> list[LedgerEntry]:
    """Make ledger entries of runs of rows, each with its kind, in the order of the rows; runs of one kind are joined
    across blank rows, but not across rows in `between`. `table`: its short name."""
    entries: list[LedgerEntry] = []
    for (first, last), kind in sorted(runs):
        rows = last - first + 1
        above = entries[-1] if entries else None
        if above and above.kind == kind and above.last < first and not between.meets(above.last + 1, first - 1):
            entries[-1] = above._replace(last=last, rows=above.rows + rows)
        else:
            entries.append(LedgerEntry(first, last, kind, rows, table))
    return entries
