"""Corrected rejects: recognises a corrected `rejects.xlsx`, and puts its rows back into the input they came from.

Every row of `rejects.xlsx` bears a key: the job, the number of the input, the sheet and the row that it is. A file
with such keys is not data of its own. The runner finds the job it names and stages that job's inputs; the engine then
reads those, with each corrected row in place of the row its key names. So the result is that of a whole drop, checked
as if the sender had corrected the first file. Nothing that a key says is believed: a row that does not exist, comes
twice or names another job is left out and reported.

Several people may correct copies of one `rejects.xlsx`, and each copy holds the rows that the others corrected as they
were. So a cell counts as corrected only where it differs from what its file was made of: the source, with the
corrections that the result had whose rejects it corrects. Of several corrections of one cell the newest counts.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from runner.engine.common.findings import FindingPlace, Findings
from runner.engine.contract import EndCode, InputFile, Json
from runner.engine.corrections.written import WrittenColumn, is_same
from runner.engine.protocol import EngineStop
from runner.engine.reading import (
    Block,
    Layout,
    Row,
    Sheet,
    Value,
    blocks_of,
    open_book,
    rows_of,
)
from runner.engine.reading.books import Remark, Remarking
from runner.engine.reading.errors import InputUnreadable
from runner.engine.reading.spool import SpooledSheet

TO_DO: Final = "ade: what to do"
KINDS: Final = ("key", "row", "top")  # the row that names the columns, a row of data, any other row above it
_KEY = re.compile(
    r"ade: (?P<kind>key|row|top) (?P<job>[a-z0-9][a-z0-9-]{0,79})/(?P<input>[0-9]{1,5})/(?P<sheet>[0-9]{1,5})/"
    r"(?P<row>[0-9]{1,9})"
)
_TEXT_FORMATS: Final = frozenset({"csv", "tsv", "html"})  # which have only what cells show
_KEY_BYTES = re.compile(rb"ade: (?:key|row|top) |a\0d\0e\0:\0 \0(?:k\0e\0y|r\0o\0w|t\0o\0p)\0 ")
_SEARCHED_BYTES: Final = 256 * 1024
_TOP_ROWS: Final = 200  # of a sheet that are searched for a key
MAX_ROWS: Final = 1_048_576  # corrected rows of one job


def make_key(kind: str, job: str, number: int, sheet: int, row: int) -> str:
    """Make the key of a row, as rejects.xlsx has it in a column; `kind`: one of KINDS, `number`: of the input, from
    0."""
    return f"ade: {kind} {job}/{number}/{sheet}/{row}"


def seems_keyed(path: Path) -> bool:
    """Whether a text file begins with a key of rejects.xlsx. The file is not read as its manifest says."""
    with path.open("rb") as file:
        return _KEY_BYTES.search(file.read(_SEARCHED_BYTES)) is not None


def find_claimed_job(sheet: SpooledSheet, name: str) -> str | None:
    """Return the job whose rejects a sheet of a file seems to hold; None for any other sheet.

    Raises EngineStop if it looks like rejects without their keys.
    """
    block = next(iter(sheet.blocks()), None)
    if block is None:
        return None
    claims, is_ours = Counter[str](), False
    for column in block.columns:
        for value in column[:_TOP_ROWS]:
            if value.__class__ is str and value[:5] == "ade: ":
                is_ours = is_ours or value.strip() == TO_DO
                if (key_match := _KEY.fullmatch(value.strip())) is not None:
                    claims[key_match["job"]] += 1
    if not claims and is_ours:
        raise EngineStop(
            EndCode.CORRECTS,
            f"{name} looks like corrected rejects (it has the column “{TO_DO}”), but its column with the keys is gone "
            "or was changed, so it is unknown which rows it corrects; correct rejects.xlsx again and keep that column",
            input=name,
        )
    return claims.most_common(1)[0][0] if claims else None  # a cell of the sender's may look like a key, too


def stop_for_corrected_inputs(file: InputFile, job: str) -> EngineStop:
    """Make the end of a job that lacks the inputs whose rejects a file corrects; the runner then stages those."""
    return EngineStop(
        EndCode.CORRECTS,
        f"{file.name} holds corrected rejects of job {job}",
        input=file.name,
        job=job,
        remedy="drop it where the first file was dropped; its rows are put back into that file",
    )


@dataclass(slots=True)
class SheetCorrections:
    """The rows that corrected files replace in one sheet, each with its corrections from the oldest to the newest."""

    rows: dict[int, list["CorrectedRow"]] = field(default_factory=dict)
    rows_met: set[int] = field(default_factory=set)  # rows that the source has
    rows_applied: set[int] = field(default_factory=set)


@dataclass(slots=True)
class CorrectedHeader:
    """The row of a corrected file that names its columns."""

    row: int  # in the source; 0: it has no header, and columns are where they were
    values: list[Value]
    skipped: frozenset[int]  # positions of the columns that we added
    file: "CorrectedFile"
    places: list[int | None] | None = None  # for each column of the source, its position here; None: not known yet
    place: FindingPlace | None = None
    todo_position: int | None = None  # the position of the column that says what to do
    written_columns: dict[int, WrittenColumn] = field(default_factory=dict)  # of a text file: how it writes each column

    def position_of(self, column: int) -> int | None:
        """Return the position in the corrected file of a column of the source (0-based); None if it is not there."""
        if self.places is not None:
            position = self.places[column] if column < len(self.places) else None
            return None if position in self.skipped else position
        return None if column in self.skipped else column

    def learn(self, source_values: Sequence[Value], values: Sequence[Value]) -> None:
        """Learn from a row how a text file writes the values of the source, by the cells that need no correction."""
        to_correct = self.positions_to_correct(values)
        for column, value in enumerate(source_values):
            position = self.position_of(column)
            if position is None or position >= len(values) or position in to_correct:
                continue
            text = values[position]
            if type(text) is str:
                self.written_columns.setdefault(column, WrittenColumn()).learn(value, text)

    def correction(
        self, source_value: Value, column: int, values: Sequence[Value], to_correct: Collection[int]
    ) -> "CorrectedValue | None":
        """Return what a row of the file says instead of a value of the source; None if it says the same, or lacks the
        column. `to_correct`: positions of the row's cells that somebody was asked to correct."""
        position = self.position_of(column)
        if position is None:
            return None
        value = values[position] if position < len(values) else None
        if self.file.is_text and (value is None or type(value) is str):
            written = self.written_columns.setdefault(column, WrittenColumn())
            is_same_text = written.is_same(source_value, value or "", to_correct=position in to_correct)
            return None if is_same_text else CorrectedValue(written.value(value) if value else None)
        return None if is_same(source_value, value) else CorrectedValue(value)

    def positions_to_correct(self, values: Sequence[Value]) -> set[int]:
        """Return the positions of the cells that a row says have to be corrected."""
        if self.todo_position is None or self.todo_position >= len(values):
            return set()
        lines = [_header_text(line) for line in str(values[self.todo_position]).split("\n")]
        labels = enumerate(map(_header_text, self.values))
        return {position for position, label in labels if label and any(_is_about(line, label) for line in lines)}


class CorrectedValue(NamedTuple):
    """A value that a corrected file has instead of the source's; its value may be a blank."""

    value: Value


class SourceRow(NamedTuple):
    """A row of the source."""

    input: str
    sheet: int  # its place in the input, from 0
    row: int


class CorrectedFile(NamedTuple):
    """One of the corrected files of a job, by its number."""

    number: int
    knows: frozenset[int]  # those that it was made of: the result whose rejects it corrects had them
    earlier: bool  # of an earlier drop, whose result reported what is wrong with it
    key: str  # where it was dropped
    is_text: bool = False  # it has texts only


class CorrectedRow(NamedTuple):
    """A row of a corrected file, for one row of the source."""

    values: list[Value]
    headings: CorrectedHeader


class KeyedRow(NamedTuple):
    """A row of a corrected file that bears a key."""

    number: int
    values: list[Value]
    headings: CorrectedHeader


class Corrections:
    """All corrected rows of a job: read from corrected files, then put into the sheets of its inputs by `of`."""

    def __init__(self, findings: Findings) -> None:
        """Know no corrections yet; `findings` receives rows that cannot be put back."""
        self._findings = findings
        self._sheets: dict[tuple[str, int], SheetCorrections] = {}  # by input and sheet
        # Row of the source -> place and number of the row in a corrected file that replaces it.
        self._origins: dict[SourceRow, tuple[FindingPlace, int]] = {}
        self._files = 0  # corrected files so far
        self.jobs: list[str] = []  # whose rejects they correct
        self.left_out = 0  # rows that were not put back

    def __bool__(self) -> bool:
        return bool(self._sheets) or bool(self.jobs)

    @property
    def rows(self) -> int:
        """Count the rows that were put back."""
        return sum(len(sheet.rows_applied) for sheet in self._sheets.values())

    def read(self, file: InputFile) -> None:
        """Add the rows of a corrected file; files come from the oldest to the newest.

        Raises EngineStop for a file of this drop that cannot be read; one of an earlier drop is reported.
        """
        if file.corrects is None:
            raise EngineStop(
                EndCode.ENGINE_ERROR, "a corrected input without its job", remedy="see docs/reference/engine-order.md"
            )
        corrected_file = CorrectedFile(
            self._files, frozenset(file.corrects.knows), file.corrects.earlier, file.corrects.key
        )
        self._files += 1
        keys_seen: set[tuple[int, int, int]] = set()
        try:
            with open_book(file.path, name=file.hint) as book:
                corrected_file = corrected_file._replace(is_text=book.format in _TEXT_FORMATS)
                for sheet in book.sheets:
                    self._read_sheet(file, corrected_file, sheet, keys_seen)
        except InputUnreadable as error:
            if corrected_file.earlier:
                self.report_lost(file.name)
                return
            raise EngineStop(
                EndCode.INPUT_UNREADABLE, f"{file.name}: {error.message}", input=file.name, reason=error.code,
                remedy=error.remedy,
            ) from None  # fmt: skip
        if file.corrects.job not in self.jobs:
            self.jobs.append(file.corrects.job)

    def report_lost(self, name: str) -> None:
        """Report an earlier correction of the same input that can no longer be read."""
        what = f"{name} corrected rows of this input before and is gone or was replaced; correct them once more"
        self._findings.add("mend_lost", "warning", what, rule="mending")

    def _read_sheet(
        self, file: InputFile, corrected_file: CorrectedFile, sheet: Sheet, keys_seen: set[tuple[int, int, int]]
    ) -> None:
        """Collect the keyed rows of a sheet of a corrected file; rows that cannot be placed are reported, unless the
        file is of an earlier drop. `keys_seen`: of all its sheets (input, sheet, row), to which keys are added."""
        place = FindingPlace(file.name, sheet.name, "")
        leave_out = _ignore if corrected_file.earlier else self._leave_out
        headings: CorrectedHeader | None = None
        rows_above: list[tuple[SourceRow, int, list[Value]]] = []  # rows above the header, with their numbers
        key_position = -1
        for number, values in rows_of(blocks_of(sheet)):
            key_position, key_match = _find_key(values, key_position)
            if key_match is None:
                if headings is not None and _has_other_values(values, headings.skipped):
                    leave_out(place, number, "mend_without_key", "has no key, so it is unknown which row it corrects")
                continue
            kind, job, *numbers = key_match.group("kind", "job", "input", "sheet", "row")
            input_number, sheet_index, row = map(int, numbers)
            if file.corrects is None or job != file.corrects.job or input_number >= len(file.corrects.inputs):
                leave_out(place, number, "mend_other_job", "has the key of another job than the rest of the file")
            elif kind == "key":
                headings = CorrectedHeader(
                    row,
                    values,
                    _added_columns(values, key_position),
                    corrected_file,
                    place=place,
                    todo_position=_find_todo_column(values),
                )
                for source, above_number, above_values in rows_above:
                    self._add(source, place, KeyedRow(above_number, above_values, headings))
                rows_above = []
            elif kind == "row":
                key = (input_number, sheet_index, row)
                if key in keys_seen:
                    leave_out(place, number, "mend_twice", "has a key that is in the file twice; the first counts")
                    continue
                keys_seen.add(key)
                source = SourceRow(file.corrects.inputs[input_number], sheet_index, row)
                if headings is not None:
                    self._add(source, place, KeyedRow(number, values, headings))
                elif len(rows_above) < MAX_ROWS:
                    rows_above.append((source, number, values))
        for _, number, _ in rows_above:
            leave_out(place, number, "mend_without_header", "has no row of headers, so its columns are not known")

    def _add(self, source: SourceRow, place: FindingPlace, row: "KeyedRow") -> None:
        """Add a row as a correction of the row of the source that its key names; a blank one is reported instead."""
        file = row.headings.file
        if not _has_other_values(row.values, row.headings.skipped):
            if not file.earlier:
                what = "is blank except for its key; the row of the first file stays as it was"
                self._leave_out(place, row.number, "mend_blank", what, "warning")
            return
        corrections = self._sheets.setdefault((source.input, source.sheet), SheetCorrections())
        if len(corrections.rows) < MAX_ROWS:
            corrections.rows.setdefault(source.row, []).append(CorrectedRow(row.values, row.headings))
            if not file.earlier:
                self._origins[source] = (place, row.number)

    def of(self, name: str, sheet: Sheet) -> Sheet:
        """Return a sheet of an input, with its corrected rows in place if there are any."""
        corrections = self._sheets.get((name, sheet.index))
        return sheet if corrections is None else CorrectedSheet(sheet, corrections, self._findings)

    def report(self) -> None:
        """Report rows whose key names no row of the input, once the inputs were read; not those of earlier drops."""
        for (name, index), sheet in self._sheets.items():
            for row in sorted(set(sheet.rows) - sheet.rows_met):
                if (origin := self._origins.get(SourceRow(name, index, row))) is not None:
                    what = f"corrects row {row} of {name}, which is blank or does not exist"
                    self._leave_out(*origin, "mend_unknown_row", what)

    def as_dict(self) -> Json:
        """Return what was corrected, as artifact.json has it."""
        return {"jobs": self.jobs, "rows": self.rows, "left_out": self.left_out}

    def _leave_out(self, place: FindingPlace, row: int, code: str, what: str, severity: str = "error") -> None:
        """Count and report a row of a corrected file that is not put back."""
        self.left_out += 1
        remedy = (
            "; use the file as it was published, and keep its headers and the column “ade: key”"
            if severity == "error"
            else ""
        )
        self._findings.add(code, severity, f"row {row} {what}{remedy}", place=place, row=row, rule="mending")


class CorrectedSheet:
    """A sheet that streams corrected rows in place of its own, and notes which it has and which were applied."""

    def __init__(self, sheet: Sheet, corrections: SheetCorrections, findings: Findings) -> None:
        """Stream the rows of `sheet`, with corrections in place; `findings` receives columns that are gone."""
        self.inner = sheet
        self.name = sheet.name
        self.index = sheet.index
        self.visibility = sheet.visibility
        self._corrections = corrections
        self._findings = findings
        headings = {id(header): header for rows in corrections.rows.values() for _, header in rows}
        self._named = [header for header in headings.values() if header.row]
        self._has_learnt = False

    def rows(self) -> Iterator[Row]:
        return rows_of(self.blocks())

    def layout(self) -> Layout:
        return self.inner.layout()

    def remarks(self) -> list[Remark]:
        return self.inner.remarks() if isinstance(self.inner, Remarking) else []

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks of the source with corrected rows in place; notes in the corrections which rows were met."""
        rows = self._corrections.rows
        self._learn()
        for block in blocks_of(self.inner):
            self._find_columns(block)
            corrected = [index for index, number in enumerate(block.numbers) if number in rows]
            yield self._with_corrections(block, corrected) if corrected else block

    def _learn(self) -> None:
        """Learn how corrected text files write their columns, from the cells that need no correction."""
        rows = self._corrections.rows
        rows_from_text = {
            index
            for index, corrections in rows.items()
            if any(correction.headings.file.is_text for correction in corrections)
        }
        if not rows_from_text or self._has_learnt:
            return
        self._has_learnt = True
        for block in blocks_of(self.inner):
            self._find_columns(block)
            for index in (index for index, number in enumerate(block.numbers) if number in rows_from_text):
                for values, headings in rows[block.numbers[index]]:
                    if headings.file.is_text and (headings.places is not None or not headings.row):
                        headings.learn([column[index] for column in block.columns], values)

    def _find_columns(self, block: Block) -> None:
        """Find the columns of corrected files by the header of the source, once it comes by; reports columns that are
        gone."""
        for headings in self._named:
            if headings.places is None and headings.row in block.numbers:
                index = block.numbers.index(headings.row)
                source_header = [column[index] for column in block.columns]
                headings.places, missing = match_columns(source_header, headings.values, headings.skipped)
                if missing and not headings.file.earlier:
                    self._findings.add(
                        "mend_column_gone", "warning",
                        f"{missing} {'columns were' if missing > 1 else 'column was'} not found in the corrected file; "
                        "the values of the first file stay there",
                        place=headings.place, row=None, rule="mending", count=missing,
                    )  # fmt: skip

    def _with_corrections(self, block: Block, indexes: Sequence[int]) -> Block:
        """Copy a block with the corrected values of some of its rows, by their indexes; notes them as met and
        applied."""
        columns = [list(column) for column in block.columns]
        for index in indexes:
            number = block.numbers[index]
            corrections = [
                correction
                for correction in self._corrections.rows[number]
                if not (correction.headings.row and correction.headings.places is None)
            ]
            if not corrections:
                continue  # its header is below it or gone: nothing says which column is which
            self._corrections.rows_met.add(number)
            for column, value in _corrected_cells([column[index] for column in block.columns], corrections).items():
                while len(columns) <= column:
                    columns.append([None] * len(block.numbers))
                columns[column][index] = value
                self._corrections.rows_applied.add(number)
        return Block(block.numbers, columns)


def _replaced_files(corrections: Sequence[CorrectedRow], changing: Collection[int]) -> dict[int, int]:
    """Map the number of each file that a later one with the same key replaces to the index in `corrections` of that
    one: it corrects the same row, and was not made of it. `changing`: numbers of files that change any cell.

    What is still wrong in the later one replaces nothing: nobody sets a cell back to that.
    """
    files = [headings.file for _, headings in corrections]
    return {
        old_file.number: new_index
        for old_index, old_file in enumerate(files)
        for new_index, new_file in enumerate(files[old_index + 1 :], old_index + 1)
        if old_file.key
        and new_file.key == old_file.key
        and new_file.number in changing
        and old_file.number not in new_file.knows
    }


def _corrected_cells(source_values: list[Value], corrections: Sequence[CorrectedRow]) -> dict[int, Value]:
    """Return the corrected values of a row, by column (0-based); of several corrections of a cell the newest counts.

    `corrections`: from the oldest to the newest.
    """
    widths = [len(correction.values) for correction in corrections if correction.headings.places is None]
    blanks: list[Value] = [None] * (max(len(source_values), *widths, 0) - len(source_values))
    is_single = len(corrections) == 1
    to_correct = [
        set()
        if is_single and not correction.headings.file.is_text
        else correction.headings.positions_to_correct(correction.values)
        for correction in corrections
    ]
    changes = [
        _changes_of_cell(value, column, corrections, to_correct) for column, value in enumerate(source_values + blanks)
    ]
    replaced_by = _replaced_files(corrections, {file for changed in changes for file in changed})
    corrected: dict[int, Value] = {}
    for column, changed in enumerate(changes):
        for file, value in changed.items():
            newer = replaced_by.get(file)
            if newer is None or corrections[newer].headings.position_of(column) in to_correct[newer]:
                corrected[column] = value
    return corrected


def _changes_of_cell(
    source_value: Value, column: int, corrections: Sequence[CorrectedRow], to_correct: Sequence[Collection[int]]
) -> dict[int, Value]:
    """Return the corrections of a cell by the numbers of their files: where they differ from what they were made of.

    `to_correct`: for each correction, positions of the cells that somebody was asked to correct.
    """
    changed: dict[int, Value] = {}
    for (values, headings), to_correct_in_row in zip(corrections, to_correct, strict=True):
        made_of = [number for number in changed if number in headings.file.knows]
        correction = headings.correction(
            changed[made_of[-1]] if made_of else source_value, column, values, to_correct_in_row
        )
        if correction is not None:
            changed[headings.file.number] = correction.value
    return changed


class MatchedColumns(NamedTuple):
    """Where the columns of a source are in a corrected file."""

    places: list[int | None]  # for each column of the source its position there; None: it is not there
    missing: int  # columns with a header that were not found


def match_columns(
    source_header: Sequence[Value], corrected: Sequence[Value], skipped: frozenset[int]
) -> MatchedColumns:
    """Find each column of the source in a corrected file: by its header, or where nothing has moved, by its position.

    `source_header`, `corrected`: the rows of headers. `skipped`: positions of the columns that we added.
    """
    texts = [_header_text(value) for value in corrected]
    places: list[int | None] = []
    names = [_header_text(value) for value in source_header]
    has_moved = any(name and (position >= len(texts) or texts[position] != name) for position, name in enumerate(names))
    for position, name in enumerate(names):
        if not name:
            places.append(None if has_moved else position)
        elif position < len(texts) and texts[position] == name:
            places.append(position)
        else:
            same_named = [
                position_there
                for position_there, text in enumerate(texts)
                if text == name and position_there not in skipped
            ]
            places.append(same_named[0] if len(same_named) == 1 else None)
    if not has_moved:  # columns beyond the header, such as notes beside the table
        places += [position for position in range(len(names), max([*skipped, len(names)])) if position not in skipped]
    missing = sum(1 for name, place in zip(names, places, strict=False) if name and place is None)
    return MatchedColumns(places, missing)


class _FoundKey(NamedTuple):
    """The key of a row."""

    position: int  # of its column; where the last key was if there is none
    parts: re.Match[str] | None  # None: the row has no key


def _find_key(values: Sequence[Value], likely_position: int) -> _FoundKey:
    """Find the key of a row, first in the column where the last one was."""
    for position in (likely_position, *range(len(values) - 1, -1, -1)):
        if 0 <= position < len(values):
            value = values[position]
            if (
                value.__class__ is str
                and str(value)[:5] == "ade: "
                and (key_match := _KEY.fullmatch(str(value).strip()))
            ):
                return _FoundKey(position, key_match)
    return _FoundKey(likely_position, None)


def _added_columns(values: Sequence[Value], key_position: int) -> frozenset[int]:
    """Return the positions of the columns that we added: what to do, and the key."""
    return frozenset(
        {
            key_position,
            *(
                position
                for position, value in enumerate(values)
                if value.__class__ is str and str(value).strip() == TO_DO
            ),
        }
    )


def _find_todo_column(values: Sequence[Value]) -> int | None:
    """Return the position of the column that says what to do; None if it is gone."""
    return next(
        (position for position, value in enumerate(values) if value.__class__ is str and str(value).strip() == TO_DO),
        None,
    )


def _is_about(line: str, label: str) -> bool:
    """Whether a line of the column "what to do" is about the column with this header."""
    return line.startswith(f"{label}: ") or f" / {label}: " in line


def _has_other_values(values: Sequence[Value], skipped: frozenset[int]) -> bool:
    """Whether a row has any value besides those in the skipped columns."""
    return any(
        value is not None and str(value).strip() for position, value in enumerate(values) if position not in skipped
    )


def _ignore(*_: object) -> None:
    """Leaves out a row of an earlier file, whose own result reported it."""


def _header_text(value: Value) -> str:
    """Return a header without needless blanks; empty for a blank."""
    return "" if value is None else " ".join(str(value).split())
