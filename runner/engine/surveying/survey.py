"""Pass 1 for a whole job: opens each input, finds its tables, and scores rows with declared names as headers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Final, Protocol

from runner.engine.common.findings import FindingPlace, Findings
from runner.engine.corrections.corrected import find_claimed_job, stop_for_corrected_inputs
from runner.engine.document_types import SheetHead
from runner.engine.memory.remembered import SenderShapes, table_key
from runner.engine.options import ReadingOptions
from runner.engine.reading import Remarking, Sheet
from runner.engine.reading.spool import Room, SpooledSheet
from runner.engine.rules.hooks import Hooks
from runner.engine.structure import CellRange, RowScores, Table, find_tables
from runner.engine.structure.detection import ShapesOfSheet
from runner.engine.structure.stated_cuts import stated_tables
from runner.engine.surveying import partitions
from runner.engine.surveying.block_captions import without_next_captions
from runner.engine.surveying.declared_names import DeclaredNames
from runner.engine.surveying.irregular import report_irregular
from runner.engine.surveying.partitions import PartitionAnswers, report_unmet
from runner.engine.surveying.surveyed_input import UNMATCHED, SurveyedInput
from runner.engine.surveying.table_reports import report_hidden, report_remarks, report_turned, report_wide_rows
from runner.engine.tables.sources import Leaving, SourceTable

TEXT_FORMATS: Final = frozenset({"csv", "tsv"})
_MOST_HEADERS: Final = 100  # of one sheet that later ones are compared with


class SheetDecisions(PartitionAnswers, Protocol):
    """What a person decided about sheets (deciding/answers.py)."""

    def reading(self, reading: ReadingOptions, input_name: str, sheet: str) -> ReadingOptions:
        """Return the options for a sheet, with what was decided about its header and its tables."""
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
    """Find the tables of an input: fills in `source`, and reports what is left out and what is irregular.

    `room`: the memory that all sheets of a job share. `added`: columns of every table that its sheet does not have.
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
            if why := _why_sheet_skipped(sheet, reading, source, findings):
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
                report_remarks(plain, findings, FindingPlace(source.file.name, sheet.name, ""))
        if not source.spools:  # whoever corrects rejects may rename the sheet
            _stop_if_keyed((SpooledSheet(plain, room) for plain in book.sheets), source)


def _why_sheet_skipped(sheet: Sheet, reading: ReadingOptions, source: SurveyedInput, findings: Findings) -> str:
    """Return why a sheet is not read; empty if it is. Reports a hidden sheet that is not."""
    if not any(fnmatchcase(sheet.name, pattern) for pattern in reading.sheets):
        return UNMATCHED
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
    """Find the tables of a sheet, and add them to `source`; returns them, None if the sheet is left out as a whole."""
    name = source.file.name
    asked = decided.reading(reading.for_sheet(name, sheet.name), name, sheet.name)
    found_tables = _find_sheet_tables(sheet, source, asked, detect, findings, decided=decided, shapes=shapes)
    source.spools[sheet.index] = sheet
    _stop_if_keyed([sheet], source)
    tables = list(_place_tables(found_tables, source, sheet, _what_to_leave_out(sheet, reading, added)))
    if _leave_sheet_out(tables, source, decided, shapes, findings):
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
    report_turned(table, headings(), findings)
    report_hidden(table, sheet, findings)
    report_irregular(table, sheet, headings(), findings, is_text=is_text)
    if is_text:
        report_wide_rows(table, tables, findings)


def _detect(
    sheet: Sheet,
    reading: ReadingOptions,
    *,
    row_scores: RowScores | None,
    headings: Callable[[], DeclaredNames],
    shapes: ShapesOfSheet | None = None,
) -> list[Table]:
    """Find the tables of a sheet, or of a part of one, with the points of rules, the declared names and what a memory
    knows; what a person decided about its cut into tables is applied afterwards, or not at all.
    """
    return find_tables(sheet, row_scores=row_scores, headings=headings(), reading=reading, shapes=shapes)


def _find_sheet_tables(
    sheet: SpooledSheet,
    source: SurveyedInput,
    reading: ReadingOptions,
    detect: "partial[list[Table]]",
    findings: Findings,
    *,
    decided: SheetDecisions,
    shapes: SenderShapes | None,
) -> list[Table]:
    """Find the tables of a sheet as somebody stated them, else by detection; reports what could be cut otherwise."""
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
    tables, doubts = partitions.apply_answers(
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
    """Return the place of the table with this range, for findings."""
    return FindingPlace(source.file.name, sheet.name, f"{source.file.name}/{sheet.name}!{area.a1}")


def _stop_if_keyed(sheets: Iterable[SpooledSheet], source: SurveyedInput) -> None:
    """Raise EngineStop if a sheet is one of corrected rejects, because the job lacks the inputs that they correct."""
    for sheet in sheets:
        if (job := find_claimed_job(sheet, source.file.name)) is not None:
            raise stop_for_corrected_inputs(source.file, job)


def _what_to_leave_out(sheet: Sheet, reading: ReadingOptions, added: tuple[str, ...]) -> Leaving:
    """Collect the rows and columns of a sheet that the manifest leaves out."""
    none: frozenset[int] = frozenset()
    layout = sheet.layout()
    return Leaving(
        groups=reading.group_rows,
        totals=reading.total_rows,
        hidden_rows=frozenset(layout.hidden_rows) if reading.hidden_rows == "skip" else none,
        hidden_columns=frozenset(layout.hidden_columns) if reading.hidden_columns == "skip" else none,
        added=added,
    )


def _place_tables(tables: list[Table], source: SurveyedInput, sheet: Sheet, leaving: Leaving) -> Iterator[SourceTable]:
    """Make source tables of the tables of a sheet; `altered` of each says which headers differ from an earlier
    table's."""
    merged = sheet.layout().merged
    headers: set[tuple[str, ...]] = set()  # of the tables so far
    for table in tables:
        place = _place_of(source, sheet, table.range)
        epoch_1904 = source.notes.get("epoch") == 1904
        placed = SourceTable(place, sheet, table, leaving, epoch_1904=epoch_1904, merged=merged)
        names = tuple("" if c.generated else " ".join(c.name.casefold().split()) for c in placed.columns)
        placed.altered = frozenset(n for header in headers for n in _differing_headers(names, header))
        if len(headers) < _MOST_HEADERS:
            headers.add(names)
        yield placed


def _differing_headers(names: tuple[str, ...], header: tuple[str, ...]) -> list[int]:
    """Return the positions at which a header differs from an earlier one that it mostly repeats; none if it does not
    repeat it.

    There a value may be typed over a label.
    """
    if len(names) != len(header):
        return []
    changed = [n for n, (name, earlier) in enumerate(zip(names, header, strict=True)) if name != earlier]
    return changed if 2 * len(changed) <= len(names) else []


def _leave_sheet_out(
    placed: list[SourceTable],
    source: SurveyedInput,
    decided: SheetDecisions,
    shapes: SenderShapes | None,
    findings: Findings,
) -> bool:
    """Decide whether a person left the sheet of these tables out, now or for an earlier drop of this sender.

    If so, sets why on each table, and reports it.
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
    """Report tables unlike the sender's confirmed ones; if no table is left, use those again that memories left out."""
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


def leave_out_by_hooks(sources: list[SurveyedInput], hooks: Hooks, findings: Findings) -> None:
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
