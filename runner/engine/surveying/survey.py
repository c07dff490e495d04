"""Pass 1 for a whole job: opens each input, finds its tables, and scores rows with declared names as headers."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from itertools import zip_longest
from typing import Final, Protocol

from runner.engine.common.fields import Field
from runner.engine.common.findings import FindingPlace, Findings
from runner.engine.common.rowsets import RowSet
from runner.engine.common.spelling import all_spelled, normalized
from runner.engine.contract import EndCode, InputFile, Json
from runner.engine.corrections.corrected import Corrections, claimed, keyed_input, seems_keyed
from runner.engine.document_types import SheetHead
from runner.engine.memory.remembered import SenderShapes, table_key
from runner.engine.options import ReadingOptions
from runner.engine.protocol import EngineStop
from runner.engine.reading import Book, InputUnreadable, Remarking, Sheet, TextOptions, open_book
from runner.engine.reading.spool import Room, SpooledSheet
from runner.engine.rules.hooks import Hooks
from runner.engine.structure import CellRange, RowScores, Table, find_tables
from runner.engine.structure.detection import ShapesOfSheet
from runner.engine.structure.stated_cuts import stated_tables
from runner.engine.surveying import partitions
from runner.engine.surveying.block_captions import without_next_captions
from runner.engine.surveying.irregular import report_irregular
from runner.engine.surveying.ledger import SheetBooks
from runner.engine.surveying.partitions import PartitionAnswers, PartitionDoubt, report_unmet
from runner.engine.tables.sources import Leaving, SourceTable

# What `DeclaredNames` says about a row: kinds of rows, each with how much more likely it becomes.
SPELLED: Final = {"header": 4.0}  # enough of its cells are declared names
LABELLED: Final = {"title": 4.0, "note": 4.0}  # a label of the manifest, `Account:`, is around a table
BELOW: Final = {"data": 4.0}  # the row under the names is data, unless it looks very much like units
NOTHING: Final[dict[str, float]] = {}
_LABEL: Final = 200  # characters of a sheet's name that a memory keeps
_UNMATCHED: Final = "no pattern in reading.sheets matches it"
_SHEETS, _SHOWN = 10, 60  # sheets named in a message, and characters of their names
_APART: Final = "\x1f"  # between names
TEXT_FORMATS: Final = frozenset({"csv", "tsv"})
_RUNS_NAMED: Final = 5  # runs of rows that a message names
_WIDE: Final = 20  # rows with more cells than the header: so many, or fewer than half of all, are reported one by one
_TURNED: Final = 200  # rows that are checked for names of fields
_HEADERS: Final = 100  # of one sheet that later ones are compared with


class HeadingSpellings:
    """The texts that a job knows as headings: made once for a job, used by the `DeclaredNames` of each sheet."""

    def __init__(self, fields: Iterable[Field], learnt: Iterable[str] = ()) -> None:
        """`learnt`: headers that earlier drops taught. A field that takes a label's value has no header of its own."""
        labels: set[str] = set()
        in_columns: list[Field] = []
        for field in fields:
            if field.source is not None and field.source.kind == "label":
                labels.add(str(field.source.options["label"]))
            else:
                in_columns.append(field)
        names = {name for field in in_columns for name, _ in field.names}.union(learnt)
        # Normalized names of all fields with columns, and of the required and unique ones.
        self.names = {" ".join(words.split()) for words in all_spelled(list(names))[0]} - {""}
        self.keys = {normalized(name) for f in in_columns if f.required or f.unique for name, _ in f.names} - {""}
        # Names and labels as cells may have them; not normalized, so that a whole row is compared at once.
        self.spellings = _spellings(names)
        self.labels = (
            {f"{name}{end}" for name in _spellings(labels) for end in ("", ":", " :")} if labels else set[str]()
        )


class DeclaredNames:
    """Scores the rows of one sheet by how many of their cells are a declared name, or a header that was learnt.

    Called for every row of a sheet from top to bottom, so a row that cannot be one costs a single set operation. It
    remembers the last row of names, because the row below it is data.
    """

    def __init__(self, headings: HeadingSpellings) -> None:
        self._keys, self._names, self._labels = headings.keys, headings.names, headings.labels
        self._spellings = headings.spellings | headings.labels if headings.labels else headings.spellings
        self._enough = min(2, len(self._names))  # names that make a row a header
        self._last = -1  # the number of the last row with so many names

    def __call__(self, number: int, values: Sequence[object]) -> Mapping[str, float]:
        """What a row's texts say about it: SPELLED, BELOW such a row, LABELLED or NOTHING."""
        if self._spellings.isdisjoint(values):
            return BELOW if number == self._last + 1 else NOTHING
        is_labelled = not self._labels.isdisjoint(values)
        texts = [v for v in values if isinstance(v, str)]
        declared = {name for name in map(normalized, texts) if name in self._names}
        has_enough = len(declared) >= max(1, self._enough) and len(declared) * 3 >= len(texts)
        if not has_enough:
            return LABELLED if is_labelled else NOTHING
        self._last = number
        return SPELLED

    def spelled(self, values: Sequence[object]) -> int:
        """How many of these values are a declared name or synonym, or a header that was learnt."""
        return sum(1 for v in values if isinstance(v, str) and normalized(v) in self._names)

    def key(self, name: str) -> bool:
        """Whether this is the name of a required or unique field."""
        return normalized(name) in self._keys

    def absent(self, columns: Sequence[Sequence[object]]) -> bool:
        """Whether no row of these columns can hold declared names."""
        return all(map(self._spellings.isdisjoint, columns))


def _spellings(names: set[str]) -> set[str]:
    """Names as they are and in other cases, with blanks and with underscores; there may be thousands."""
    names = names | {name.replace("_", " ") for name in names if "_" in name}
    names |= {name.replace(" ", "_") for name in names if " " in name}
    spellings = names.union(map(str.capitalize, names))
    whole = _APART.join(names)
    for in_case in (whole.lower(), whole.upper(), whole.title()):
        spellings.update(in_case.split(_APART))
    return spellings


class SurveyedInput:
    """A primary input: read once, and again only if a sheet is too large to spool.

    `survey` fills in what it found; `close_books` accounts for the rows after they were streamed.
    """

    def __init__(self, file: InputFile, reading: ReadingOptions, corrections: Corrections | None = None) -> None:
        self.file = file
        self._corrections = corrections
        declared = TextOptions(encoding=reading.encoding, delimiter=reading.delimiter, quote=reading.quote)
        if (reading.encoding or reading.delimiter or reading.quote) and seems_keyed(file.path):
            declared = TextOptions()  # the manifest is about the sender's files, and not about how people save rejects
        self.options = declared
        self.format = ""  # of the file, as its reader found it
        self.reader = ""
        self.notes: Json = {}  # what the reader found out about the file, such as its encoding
        self.sheets: list[SheetHead] = []
        self.tables: list[SourceTable] = []  # that hold records, for all we know
        self.skipped: list[SourceTable] = []  # left out by a person or by a hook
        self.spools: dict[int, SpooledSheet] = {}  # sheets that were read, by their place in the book
        self.books: dict[int, SheetBooks] = {}  # the account of their rows
        self.partitions: list[PartitionDoubt] = []  # parts of sheets that could be cut into tables otherwise
        self.is_single = False  # it has one sheet

    def label(self, sheet: str) -> str:
        """What a memory calls a sheet: its name, or nothing for the only one, which may be named after the file."""
        return "" if self.is_single else sheet[:_LABEL]

    @property
    def letters(self) -> str:
        """The letters of the file's name: `members-2026-06.csv` and `Members 07.csv` are alike."""
        stem = self.file.name.rpartition("/")[2].rpartition(".")[0]
        return "".join(filter(str.isalpha, stem)).casefold()[:_LABEL]

    @property
    def has_no_bytes(self) -> bool:
        """Whether the file is empty."""
        return self.file.path.stat().st_size == 0

    def why_empty(self) -> str:
        """Why there are no rows of data, in words."""
        if self.has_no_bytes:
            return "the file has 0 bytes"
        if self.skipped and not self.tables:
            return "every sheet with a table was left out, by a person or by a hook"
        if any(t.has_data for t in self.tables):
            return "no row of its tables is a row of data"
        if self.tables:
            return "a header without rows below it"
        unread = {row["skipped"] for row in self.sheets if "skipped" in row}
        if self.spools or not unread:
            return "it contains no table"
        names = ", ".join(f"“{row['name'][:_SHOWN]}”" for row in self.sheets[:_SHEETS])
        names += f" and {len(self.sheets) - _SHEETS} more" if len(self.sheets) > _SHEETS else ""
        if unread == {_UNMATCHED}:
            return f"no sheet matches reading.sheets; its sheets are {names}"
        return f"none of its sheets is read ({names}): {'; '.join(sorted(unread))}"

    @contextmanager
    def book(self) -> Iterator[Book]:
        """Open the file, with corrected rows in place of the rejected ones; raises EngineStop if it is unreadable."""
        try:
            with open_book(self.file.path, name=self.file.hint, options=self.options) as book:
                if self._corrections is not None:
                    book.sheets = [self._corrections.of(self.file.name, sheet) for sheet in book.sheets]
                yield book
        except InputUnreadable as error:
            raise EngineStop(
                EndCode.INPUT_UNREADABLE,
                f"{self.file.name}: {error.message}",
                input=self.file.name,
                reason=error.code,
                remedy=error.remedy,
            ) from None

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Within this context the tables' rows can be read again."""
        large = [t for t in (*self.tables, *self.skipped) if not self.spools[t.sheet.index].complete]
        if not large:
            yield
            return
        with self.book() as book:
            sheets = {s.index: s for s in book.sheets}
            for table in large:
                table.sheet = sheets[table.sheet.index]
                self.spools[table.sheet.index].reopen(table.sheet)
            yield

    def close_books(self, used: Collection[str], refs: Iterator[str]) -> None:
        """Set `books`, which account for every row that was read.

        `used`: ids of the tables in the output; `refs`: short names for all tables.
        """
        every = sorted((*self.tables, *self.skipped), key=lambda t: (t.table.range.top, t.table.range.left))
        for index, spool in self.spools.items():
            of_sheet = [
                (t, next(refs), t in self.skipped or (t.has_data and t.id not in used))
                for t in every
                if t.sheet.index == index
            ]
            self.books[index] = SheetBooks(spool, of_sheet, FindingPlace(self.file.name, spool.name, ""))


class SheetDecisions(PartitionAnswers, Protocol):
    """What a person decided about sheets (deciding/answers.py)."""

    def reading(self, reading: ReadingOptions, input_name: str, sheet: str) -> ReadingOptions:
        """The options for a sheet, with what was decided about its header and its tables."""
        ...

    def skips(self, input_name: str, sheet: str) -> bool | None:
        """Whether the sheet is left out; None if nobody decided it."""
        ...

    def has_header(self, input_name: str, sheet: str, *, found: bool) -> bool:
        """Whether somebody decided which rows are the header; `found`: the table has one."""
        ...


def survey(
    source: SurveyedInput,
    reading: ReadingOptions,
    findings: Findings,
    *,
    room: Room,
    added: tuple[str, ...] = (),
    headings: Callable[[], DeclaredNames],
    scores: Callable[..., RowScores | None],
    decided: SheetDecisions,
    shapes: SenderShapes | None = None,
) -> None:
    """Find the tables of an input, fill in `source`, and report what is left out and what is odd.

    `room`: what all sheets of a job may take of memory. `added`: columns of every table that its sheet does not have.
    `headings`, `scores`: make what scores the rows of a sheet, by declared names and by hooks. `shapes`: what the
    memories say about its sheets.
    """
    if source.has_no_bytes:  # in any format: no rows rather than no spreadsheet
        source.format, source.reader = "empty", "none"
        return
    with source.book() as book:
        source.format, source.reader, source.notes = book.format, book.reader, dict(book.notes)
        for chosen in book.choices:
            findings.chose(**chosen._asdict(), place=FindingPlace(source.file.name, "", ""))
        source.is_single = len(book.sheets) == 1
        for plain in book.sheets:
            sheet = SpooledSheet(plain, room)
            head: SheetHead = {"name": sheet.name, "index": sheet.index, "visibility": sheet.visibility}
            source.sheets.append(head)
            if why := _why_skipped(sheet, reading, source, findings):
                head["skipped"] = why
                continue
            detect = partial(_detect, row_scores=scores(sheet=sheet.name), headings=headings)
            tables = _survey_sheet(
                sheet, source, reading, detect, findings, added=added, decided=decided, shapes=shapes
            )
            if tables is None:
                continue
            for table in tables:
                _report_table(table, tables, source, headings, findings)
            if isinstance(plain, Remarking):
                _report_remarks(plain, findings, FindingPlace(source.file.name, sheet.name, ""))
        if not source.spools:  # whoever corrects rejects may rename the sheet
            _stop_if_keyed((SpooledSheet(plain, room) for plain in book.sheets), source)


def _why_skipped(sheet: Sheet, reading: ReadingOptions, source: SurveyedInput, findings: Findings) -> str:
    """Why a sheet is not read; empty if it is. Reports a hidden one."""
    if not any(fnmatchcase(sheet.name, pattern) for pattern in reading.sheets):
        return _UNMATCHED
    if sheet.visibility != "visible" and reading.hidden_sheets == "skip":
        place = FindingPlace(source.file.name, sheet.name, "")
        findings.add("hidden_sheet_skipped", "info", "the sheet is hidden and was not read", place=place)
        return "it is hidden"
    return ""


def _survey_sheet(
    sheet: SpooledSheet,
    source: SurveyedInput,
    reading: ReadingOptions,
    detect: "partial[list[Table]]",
    findings: Findings,
    *,
    added: tuple[str, ...],
    decided: SheetDecisions,
    shapes: SenderShapes | None,
) -> list[SourceTable] | None:
    """Add the tables of a sheet to its input and return them; None if the sheet is left out as a whole."""
    name = source.file.name
    asked = decided.reading(reading.for_sheet(name, sheet.name), name, sheet.name)
    found_tables = _tables_of(sheet, source, asked, detect, findings, decided=decided, shapes=shapes)
    source.spools[sheet.index] = sheet
    _stop_if_keyed([sheet], source)
    tables = list(_as_source_tables(found_tables, source, sheet, _leaving(sheet, reading, added)))
    if _is_left_out(tables, source, decided, shapes, findings):
        source.skipped += tables
        return None
    source.tables += tables
    for table in tables:
        table.is_confirmed = decided.has_header(name, sheet.name, found=bool(table.table.header_rows))
    return tables


def _report_table(
    table: SourceTable,
    tables: Sequence[SourceTable],
    source: SurveyedInput,
    headings: Callable[[], DeclaredNames],
    findings: Findings,
) -> None:
    """Report what was decided about a table, and what is odd in it; `tables`: all of its sheet."""
    sheet, is_text = source.spools[table.sheet.index], source.format in TEXT_FORMATS
    for choice in table.table.choices:
        findings.chose(**choice._asdict(), place=table.place)
    _report_turned(table, headings(), findings)
    _report_hidden(table, sheet, findings)
    report_irregular(table, sheet, headings(), findings, is_text=is_text)
    if is_text:
        _report_wide_rows(table, tables, findings)


def _detect(
    sheet: Sheet,
    reading: ReadingOptions,
    *,
    row_scores: RowScores | None,
    headings: Callable[[], DeclaredNames],
    shapes: ShapesOfSheet | None = None,
) -> list[Table]:
    """The tables that detection finds in a sheet."""
    return find_tables(sheet, row_scores=row_scores, headings=headings(), reading=reading, shapes=shapes)


def _tables_of(
    sheet: SpooledSheet,
    source: SurveyedInput,
    reading: ReadingOptions,
    detect: "partial[list[Table]]",
    findings: Findings,
    *,
    decided: SheetDecisions,
    shapes: SenderShapes | None,
) -> list[Table]:
    """The tables of a sheet: as somebody stated, or as they are found; reports what could be cut otherwise."""
    name, label = source.file.name, source.label(sheet.name)
    if reading.cut is not None:
        tables = stated_tables(sheet, reading.cut, reading, detect)
        report_unmet(reading.cut.ranges, tables, findings, FindingPlace(name, sheet.name, ""))
        return tables
    tables = detect(sheet, reading, shapes=partial(shapes.read, label, source.letters) if shapes else None)
    if reading.heads_count:
        tables = without_next_captions(tables, sheet)
    if all(table.alternative is None for table in tables):
        return tables
    tables, doubts = partitions.decided(
        tables,
        sheet,
        reading,
        detect,
        input_name=name,
        answers=decided,
        remembered=shapes.cut(label) if shapes else None,
    )
    partitions.report_doubts(doubts, tables, findings, lambda area: _place_of(source, sheet, area))
    source.partitions += doubts
    return tables


def _place_of(source: SurveyedInput, sheet: Sheet, area: CellRange) -> FindingPlace:
    """The place of the table with this range."""
    return FindingPlace(source.file.name, sheet.name, f"{source.file.name}/{sheet.name}!{area.a1}")


def _stop_if_keyed(sheets: Iterable[SpooledSheet], source: SurveyedInput) -> None:
    """Raise EngineStop for a sheet of corrected rejects, which need the inputs that they belong to."""
    for sheet in sheets:
        if (job := claimed(sheet, source.file.name)) is not None:
            raise keyed_input(source.file, job)


def _report_remarks(sheet: Remarking, findings: Findings, place: FindingPlace) -> None:
    """Report the rows that a reader remarked on: they could be read in two ways."""
    for remark in sheet.remarks():
        message = f"{remark.message}; to settle it: {remark.settle}" if remark.settle else remark.message
        rest = remark.count - len(remark.rows) + 1
        last = len(remark.rows) - 1
        for at, (row, column) in enumerate(zip_longest(remark.rows, remark.columns)):
            findings.add(
                remark.code, "warning", message, place=place, row=row, column=column, rule="reading",
                count=rest if at == last else 1,
            )  # fmt: skip


def _report_wide_rows(table: SourceTable, tables: Sequence[SourceTable], findings: Findings) -> None:
    """Report rows of a text file that have more cells than the header names: their values may have moved.

    Few are reported one by one, many as one finding at the first; `tables`: all of the sheet.
    """
    if not (table.table.header_rows and isinstance(table.sheet, SpooledSheet)):
        return
    wide = _wide_rows(table, table.sheet, _beyond_header(table, table.sheet, tables))
    if not wide:
        return
    are_few = len(wide) <= max(_WIDE, (table.bottom - table.top + 1) // 2)
    if are_few:
        subject, reported, rest = "the row has", wide, 0
    else:
        runs = [str(a) if a == b else f"{a} to {b}" for a, b in RowSet.of(wide)]
        more = f" and others, {len(wide):,} in all," if len(runs) > _RUNS_NAMED else ""
        subject, reported, rest = f"rows {', '.join(runs[:_RUNS_NAMED])}{more} have", wide[:1], len(wide) - 1
    why = "a value that contains the delimiter and is not quoted, or a column without a name, moves what follows"
    message = f"{subject} more cells than the header: {why}"
    for number in reported:
        findings.add("wide_row", "warning", message, place=table.place, row=number, rule="reading", count=1 + rest)


def _beyond_header(table: SourceTable, sheet: SpooledSheet, tables: Sequence[SourceTable]) -> list[int]:
    """The numbers of filled columns to the right of the last named one that belong to no other table."""
    named = max((c.index for c in table.columns if not c.generated), default=0)
    if not named:
        return []
    filled = 0
    for extent in sheet.extents:
        filled |= extent.columns
    elsewhere = {c.index for t in tables if t is not table for c in t.columns}
    return [at for at in range(named + 1, filled.bit_length()) if filled >> at & 1 and at not in elsewhere]


def _wide_rows(table: SourceTable, sheet: SpooledSheet, beyond: Sequence[int]) -> list[int]:
    """The numbers of a table's rows that fill one of the columns beyond its header."""
    bits = sum(1 << column for column in beyond)
    if not bits:
        return []
    rows: list[int] = []
    for block in sheet.some_blocks(lambda e: e.columns & bits and e.first <= table.bottom and table.top <= e.last):
        cut = block.within(table.top, table.bottom)
        cells = [cut.columns[column - 1] for column in beyond if column <= len(cut.columns)]
        rows += [
            row for row, beyond_cells in zip(cut.numbers, zip(*cells, strict=True), strict=True) if any(beyond_cells)
        ]
    return [row for row in rows if row not in table.without]


def _report_hidden(table: SourceTable, sheet: SpooledSheet, findings: Findings) -> None:
    """Report hidden rows and columns that are read."""
    layout = sheet.layout()
    columns = [c for c in table.columns if c.index in layout.hidden_columns]
    rows = sum(1 for row in layout.hidden_rows if table.top <= row <= table.bottom and row not in table.without)
    for what, count, option in (("row", rows, "hidden_rows"), ("column", len(columns), "hidden_columns")):
        if count:
            message = f"{count:,} hidden {what}{'s' * (count > 1)} read; to leave out: "
            message += f'"reading": {{"{option}": "skip"}}'
            findings.add("hidden_read", "info", message, place=table.place, rule="reading", count=count)


def _report_turned(table: SourceTable, names: DeclaredNames, findings: Findings) -> None:
    """Mark and report a table whose first column, and not its header, holds the names of the fields."""
    if not table.has_data or len(table.columns) < 2 or not isinstance(table.sheet, SpooledSheet):
        return
    first, last = table.top, min(table.bottom, table.top + _TURNED)
    first_cells: list[object] = [*table.columns[0].parts]
    for block in table.sheet.some_blocks(lambda e: e.first <= last and first <= e.last):
        cut = block.within(first, last)
        column = table.columns[0].index
        first_cells += cut.columns[column - 1] if column <= len(cut.columns) else []
    first_cells = list(dict.fromkeys(v for v in first_cells if v is not None))  # a list of blocks repeats the names
    in_column = names.spelled(first_cells)
    in_header = names.spelled([part for c in table.columns[1:] for part in c.parts])
    is_turned = in_column >= 2 and in_column > 2 * in_header and in_column * 2 >= len(first_cells)
    if is_turned:
        table.is_turned = True
        findings.add(
            "header_assumed",
            "warning",
            f"the first column has the names of {in_column} fields, the other headers of {in_header}: the table "
            "may be turned, with a record in each column; to settle it: swap its rows and columns",
            place=table.place,
            row=(*table.table.header_rows, table.top)[0],
            rule="reading",
        )


def _leaving(sheet: Sheet, reading: ReadingOptions, added: tuple[str, ...]) -> Leaving:
    """What becomes of rows and columns of a sheet that are not plain data, as the manifest asks."""
    none: frozenset[int] = frozenset()
    layout = sheet.layout()
    return Leaving(
        groups=reading.group_rows,
        totals=reading.total_rows,
        hidden_rows=frozenset(layout.hidden_rows) if reading.hidden_rows == "skip" else none,
        hidden_columns=frozenset(layout.hidden_columns) if reading.hidden_columns == "skip" else none,
        added=added,
    )


def _as_source_tables(
    tables: list[Table], source: SurveyedInput, sheet: Sheet, leaving: Leaving
) -> Iterator[SourceTable]:
    """The tables of a sheet as source tables; `altered` says which headers differ from an earlier table's."""
    merged = sheet.layout().merged
    headers: set[tuple[str, ...]] = set()  # of the tables so far
    for table in tables:
        place = _place_of(source, sheet, table.range)
        epoch_1904 = source.notes.get("epoch") == 1904
        placed = SourceTable(place, sheet, table, leaving, epoch_1904=epoch_1904, merged=merged)
        names = tuple("" if c.generated else " ".join(c.name.casefold().split()) for c in placed.columns)
        placed.altered = frozenset(n for header in headers for n in _differing_headers(names, header))
        if len(headers) < _HEADERS:
            headers.add(names)
        yield placed


def _differing_headers(names: tuple[str, ...], header: tuple[str, ...]) -> list[int]:
    """The positions at which a header differs from an earlier one that it mostly repeats; none if it does not repeat
    it.

    There a value may be typed over a label.
    """
    if len(names) != len(header):
        return []
    changed = [n for n, (name, earlier) in enumerate(zip(names, header, strict=True)) if name != earlier]
    return changed if 2 * len(changed) <= len(names) else []


def _is_left_out(
    placed: list[SourceTable],
    source: SurveyedInput,
    decided: SheetDecisions,
    shapes: SenderShapes | None,
    findings: Findings,
) -> bool:
    """Whether a person left the sheet of these tables out, now or for an earlier drop of this sender.

    If so, sets why on each of them, and reports it.
    """
    if not placed:
        return False
    label, is_skipped = source.label(placed[0].place.sheet), decided.skips(source.file.name, placed[0].place.sheet)
    shape = shapes.left_out(label) if is_skipped is None and shapes and label else None
    if not is_skipped and shape is None:
        return False
    for table in placed:
        if shape is not None:
            table.table = replace(table.table, shape=shape)
        who = f"{shape.by or 'somebody'} left it out of an earlier drop" if shape else "it was decided for this drop"
        table.skipped = f"its sheet is left out: {who}"
        findings.add("table_skipped", "info", table.skipped, place=table.place, rule="structure")
    return True


def compare_shapes(sources: Sequence[SurveyedInput], shapes: SenderShapes, findings: Findings) -> None:
    """Report tables unlike the sender's confirmed ones; use those again that memories left out if no other is left."""
    if not any(source.tables for source in sources):
        for source in sources:
            _use_tables_left_out(source, findings)
    used = [t for source in sources for t in source.tables if t.has_data]
    fitting = [t for t in used if t.table.shape is not None or table_key(t.table) in shapes.known]
    for table in used if fitting else ():
        if table not in fitting:
            what = "no table of this sender was confirmed with these headers; others of this drop were"
            findings.add("table_unknown", "info", what, place=table.place, rule="structure")


def _use_tables_left_out(source: SurveyedInput, findings: Findings) -> None:
    """Use the tables that a memory left out, and report it: a memory that leaves nothing to read does not count."""
    back = [t for t in source.skipped if t.table.shape is not None]
    for table in back:
        table.skipped, table.table = "", replace(table.table, shape=None)
        what = "an earlier drop's sheet of this name was left out; it is read, since there is no other table"
        findings.add("shape_ignored", "warning", what, place=table.place, rule="structure")
    source.tables = back
    source.skipped = [t for t in source.skipped if t not in back]


def leave_out(sources: list[SurveyedInput], hooks: Hooks, findings: Findings) -> None:
    """Ask the hooks which tables to leave out, move those to `skipped` of their input, and report them."""
    seen = [
        {
            "id": t.id,
            "input": t.place.input,
            "sheet": t.place.sheet,
            "range": t.table.range.a1,
            "headers": [c.name for c in t.columns],
            "confidence": t.table.confidence,
        }
        for source in sources
        for t in source.tables
    ]
    skip = hooks.skipped_tables(seen)
    for source in sources:
        skipped = [t for t in source.tables if t.id in skip]
        source.skipped += skipped
        source.tables = [t for t in source.tables if t.id not in skip]
        for table in skipped:
            findings.add("table_skipped", "info", "a hook skipped this table", place=table.place, rule="structure")
