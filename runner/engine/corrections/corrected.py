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
_KEY = re.compile(r"ade: (key|row|top) ([a-z0-9][a-z0-9-]{0,79})/([0-9]{1,5})/([0-9]{1,5})/([0-9]{1,9})")
_TEXT_FORMATS: Final = frozenset({"csv", "tsv", "html"})  # which have only what cells show
_RAW_KEY = re.compile(rb"ade: (?:key|row|top) |a\0d\0e\0:\0 \0(?:k\0e\0y|r\0o\0w|t\0o\0p)\0 ")
_RAW: Final = 256 * 1024
_TOP_ROWS: Final = 200  # of a sheet that are searched for a key
MAX_ROWS: Final = 1_048_576  # corrected rows of one job


def key(kind: str, job: str, number: int, sheet: int, row: int) -> str:
    """The text of a row's key."""
    return f"ade: {kind} {job}/{number}/{sheet}/{row}"


def seems_keyed(path: Path) -> bool:
    """Whether a file, if it is one of text, begins with a key of rejects.xlsx. It is not read as its manifest says."""
    with path.open("rb") as file:
        return _RAW_KEY.search(file.read(_RAW)) is not None


def claimed(sheet: SpooledSheet, name: str) -> str | None:
    """The job whose rejects a sheet of a file seems to hold; None for any other sheet."""
    block = next(iter(sheet.blocks()), None)
    if block is None:
        return None
    claims, is_ours = Counter[str](), False
    for column in block.columns:
        for value in column[:_TOP_ROWS]:
            if value.__class__ is str and value[:5] == "ade: ":
                is_ours = is_ours or value.strip() == TO_DO
                if (found := _KEY.fullmatch(value.strip())) is not None:
                    claims[found[2]] += 1
    if not claims and is_ours:
        raise EngineStop(
            EndCode.CORRECTS,
            f"{name} looks like corrected rejects (it has the column “{TO_DO}”), but its column with the keys is gone "
            "or was changed, so it is unknown which rows it corrects; correct rejects.xlsx again and keep that column",
            input=name,
        )
    return claims.most_common(1)[0][0] if claims else None  # a cell of the sender's may look like a key, too


def keyed_input(file: InputFile, job: str) -> EngineStop:
    """How the engine asks for the inputs of the job whose rejects a file corrects."""
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
    met: set[int] = field(default_factory=set)  # rows that the source has
    applied: set[int] = field(default_factory=set)


@dataclass(slots=True)
class CorrectedHeader:
    """The row of a corrected file that names its columns."""

    row: int  # in the source; 0: it has no header, and columns are where they were
    values: list[Value]
    skipped: frozenset[int]  # positions of the columns that we added
    file: "CorrectedFile"
    places: list[int | None] | None = None  # for each column of the source, its position here; once it is known
    place: FindingPlace | None = None
    todo: int | None = None  # the position of the column that says what to do
    written: dict[int, WrittenColumn] = field(default_factory=dict)  # of a text file: how it writes each column

    def at(self, column: int) -> int | None:
        """The position of a column of the source; None if it is not in the file."""
        if self.places is not None:
            known = self.places[column] if column < len(self.places) else None
            return None if known in self.skipped else known
        return None if column in self.skipped else column

    def learn(self, own: Sequence[Value], values: Sequence[Value]) -> None:
        """Learn from a row how a text file writes the values of the source."""
        asked = self.asked(values)
        for column, value in enumerate(own):
            at = self.at(column)
            if at is not None and at < len(values) and at not in asked and type(text := values[at]) is str:
                self.written.setdefault(column, WrittenColumn()).learn(value, text)

    def correction(
        self, own: Value, column: int, values: Sequence[Value], asked: Collection[int]
    ) -> tuple[Value] | None:
        """What a row of the file says instead of a value of the source; None if it still says the same."""
        at = self.at(column)
        if at is None:
            return None
        value = values[at] if at < len(values) else None
        if self.file.is_text and (value is None or type(value) is str):
            written = self.written.setdefault(column, WrittenColumn())
            is_same_text = written.is_same(own, value or "", asked=at in asked)
            return None if is_same_text else (written.value(value) if value else None,)
        return None if is_same(own, value) else (value,)

    def asked(self, values: Sequence[Value]) -> set[int]:
        """The positions of the cells that a row says have to be corrected."""
        if self.todo is None or self.todo >= len(values):
            return set()
        lines = [_label(line) for line in str(values[self.todo]).split("\n")]
        labels = enumerate(map(_label, self.values))
        return {n for n, label in labels if label and any(_is_about(line, label) for line in lines)}


class CorrectedFile(NamedTuple):
    """One of the corrected files of a job, by its number."""

    number: int
    knows: frozenset[int]  # those that it was made of: the result whose rejects it corrects had them
    earlier: bool  # of an earlier drop, whose result reported what is wrong with it
    key: str  # where it was dropped
    is_text: bool = False  # it has texts only


class CorrectedRow(NamedTuple):
    values: list[Value]
    headings: CorrectedHeader


class KeyedRow(NamedTuple):
    """A row of a corrected file that bears a key."""

    number: int
    values: list[Value]
    headings: CorrectedHeader


class Corrections:
    """All corrected rows of a job."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._sheets: dict[tuple[str, int], SheetCorrections] = {}
        self._origins: dict[tuple[str, int, int], tuple[FindingPlace, int]] = {}
        self._files = 0
        self.jobs: list[str] = []
        self.left_out = 0

    def __bool__(self) -> bool:
        return bool(self._sheets) or bool(self.jobs)

    @property
    def rows(self) -> int:
        """Rows that were put back."""
        return sum(len(sheet.applied) for sheet in self._sheets.values())

    def read(self, file: InputFile) -> None:
        """Take the rows of a corrected file; files come from the oldest to the newest."""
        if file.corrects is None:
            raise EngineStop(
                EndCode.ENGINE_ERROR, "a corrected input without its job", remedy="see docs/reference/engine-order.md"
            )
        corrected_file = CorrectedFile(
            self._files, frozenset(file.corrects.knows), file.corrects.earlier, file.corrects.key
        )
        self._files += 1
        seen: set[tuple[int, int, int]] = set()
        try:
            with open_book(file.path, name=file.hint) as book:
                corrected_file = corrected_file._replace(is_text=book.format in _TEXT_FORMATS)
                for sheet in book.sheets:
                    self._read_sheet(file, corrected_file, sheet, seen)
        except InputUnreadable as error:
            if corrected_file.earlier:
                self.lost(file.name)
                return
            raise EngineStop(
                EndCode.INPUT_UNREADABLE, f"{file.name}: {error.message}", input=file.name, reason=error.code,
                remedy=error.remedy,
            ) from None  # fmt: skip
        if file.corrects.job not in self.jobs:
            self.jobs.append(file.corrects.job)

    def lost(self, name: str) -> None:
        """Report an earlier correction of the same input that can no longer be read."""
        what = f"{name} corrected rows of this input before and is gone or was replaced; correct them once more"
        self._findings.add("mend_lost", "warning", what, rule="mending")

    def _read_sheet(
        self, file: InputFile, corrected_file: CorrectedFile, sheet: Sheet, seen: set[tuple[int, int, int]]
    ) -> None:
        place = FindingPlace(file.name, sheet.name, "")
        leave = _ignore if corrected_file.earlier else self._leave
        headings: CorrectedHeader | None = None
        early: list[tuple[tuple[str, int, int], int, list[Value]]] = []  # rows above the header
        at = -1
        for number, values in rows_of(blocks_of(sheet)):
            at, found = _keyed(values, at)
            if found is None:
                if headings is not None and _holds(values, headings.skipped):
                    leave(place, number, "mend_without_key", "has no key, so it is unknown which row it corrects")
                continue
            kind, job, where = found[1], found[2], (int(found[3]), int(found[4]), int(found[5]))
            if file.corrects is None or job != file.corrects.job or where[0] >= len(file.corrects.inputs):
                leave(place, number, "mend_other_job", "has the key of another job than the rest of the file")
            elif kind == "key":
                headings = CorrectedHeader(
                    where[2], values, _added(values, at), corrected_file, place=place, todo=_place_of_todo(values)
                )
                for source, above, held in early:
                    self._add(source, place, KeyedRow(above, held, headings))
                early = []
            elif kind == "row":
                if where in seen:
                    leave(place, number, "mend_twice", "has a key that is in the file twice; the first counts")
                    continue
                seen.add(where)
                source = (file.corrects.inputs[where[0]], where[1], where[2])
                if headings is not None:
                    self._add(source, place, KeyedRow(number, values, headings))
                elif len(early) < MAX_ROWS:
                    early.append((source, number, values))
        for _, number, _ in early:
            leave(place, number, "mend_without_header", "has no row of headers, so its columns are not known")

    def _add(self, source: tuple[str, int, int], place: FindingPlace, row: "KeyedRow") -> None:
        """Keep a row for the row of the source (input, sheet, row) that its key names."""
        name, sheet, number = source
        file = row.headings.file
        if not _holds(row.values, row.headings.skipped):
            if not file.earlier:
                what = "is blank except for its key; the row of the first file stays as it was"
                self._leave(place, row.number, "mend_blank", what, "warning")
            return
        corrections = self._sheets.setdefault((name, sheet), SheetCorrections())
        if len(corrections.rows) < MAX_ROWS:
            corrections.rows.setdefault(number, []).append(CorrectedRow(row.values, row.headings))
            if not file.earlier:
                self._origins[source] = (place, row.number)

    def of(self, name: str, sheet: Sheet) -> Sheet:
        """The sheet of an input with its corrected rows in place."""
        corrections = self._sheets.get((name, sheet.index))
        return sheet if corrections is None else CorrectedSheet(sheet, corrections, self._findings)

    def report(self) -> None:
        """Report rows whose key names no row of the input."""
        for (name, index), sheet in self._sheets.items():
            for row in sorted(set(sheet.rows) - sheet.met):
                if (origin := self._origins.get((name, index, row))) is not None:
                    what = f"corrects row {row} of {name}, which is blank or does not exist"
                    self._leave(*origin, "mend_unknown_row", what)

    def as_dict(self) -> Json:
        return {"jobs": self.jobs, "rows": self.rows, "left_out": self.left_out}

    def _leave(self, place: FindingPlace, row: int, code: str, what: str, severity: str = "error") -> None:
        self.left_out += 1
        remedy = (
            "; use the file as it was published, and keep its headers and the column “ade: key”"
            if severity == "error"
            else ""
        )
        self._findings.add(code, severity, f"row {row} {what}{remedy}", place=place, row=row, rule="mending")


class CorrectedSheet:
    """A sheet that streams corrected rows in place of its own."""

    def __init__(self, sheet: Sheet, corrections: SheetCorrections, findings: Findings) -> None:
        self.inner = sheet
        self.name = sheet.name
        self.index = sheet.index
        self.visibility = sheet.visibility
        self._corrections = corrections
        self._findings = findings
        headings = {id(h): h for rows in corrections.rows.values() for _, h in rows}
        self._named = [h for h in headings.values() if h.row]
        self._has_learnt = False

    def rows(self) -> Iterator[Row]:
        return rows_of(self.blocks())

    def layout(self) -> Layout:
        return self.inner.layout()

    def remarks(self) -> list[Remark]:
        return self.inner.remarks() if isinstance(self.inner, Remarking) else []

    def blocks(self) -> Iterator[Block]:
        rows = self._corrections.rows
        self._learn()
        for block in blocks_of(self.inner):
            self._match(block)
            hit = [n for n, number in enumerate(block.numbers) if number in rows]
            yield self._replaced(block, hit) if hit else block

    def _learn(self) -> None:
        """Learn how corrected text files write their columns, from the cells that need no correction."""
        rows = self._corrections.rows
        texts = {n for n, corrections in rows.items() if any(c.headings.file.is_text for c in corrections)}
        if not texts or self._has_learnt:
            return
        self._has_learnt = True
        for block in blocks_of(self.inner):
            self._match(block)
            for n in (n for n, number in enumerate(block.numbers) if number in texts):
                for values, headings in rows[block.numbers[n]]:
                    if headings.file.is_text and (headings.places is not None or not headings.row):
                        headings.learn([column[n] for column in block.columns], values)

    def _match(self, block: Block) -> None:
        """Find the columns of corrected files by the header of the source, once it comes by."""
        for headings in self._named:
            if headings.places is None and headings.row in block.numbers:
                at = block.numbers.index(headings.row)
                own = [column[at] for column in block.columns]
                headings.places, lost = matched(own, headings.values, headings.skipped)
                if lost and not headings.file.earlier:
                    self._findings.add(
                        "mend_column_gone", "warning",
                        f"{lost} {'columns were' if lost > 1 else 'column was'} not found in the corrected file; "
                        "the values of the first file stay there",
                        place=headings.place, row=None, rule="mending", count=lost,
                    )  # fmt: skip

    def _replaced(self, block: Block, hit: Sequence[int]) -> Block:
        made = [list(column) for column in block.columns]
        for n in hit:
            number = block.numbers[n]
            corrections = [
                c for c in self._corrections.rows[number] if not (c.headings.row and c.headings.places is None)
            ]
            if not corrections:
                continue  # its header is below it or gone: nothing says which column is which
            self._corrections.met.add(number)
            width = max(len(block.columns), *(len(c.values) for c in corrections if c.headings.places is None), 0)
            own = [column[n] for column in block.columns] + [None] * (width - len(block.columns))
            is_one = len(corrections) == 1
            asked = [
                set() if is_one and not c.headings.file.is_text else c.headings.asked(c.values) for c in corrections
            ]
            changes = [_changes(value, column, corrections, asked) for column, value in enumerate(own)]
            outdated = _outdated(corrections, {number for changed in changes for number in changed})
            for column, changed in enumerate(changes):
                counted = [
                    value
                    for number, value in changed.items()
                    if number not in outdated
                    or corrections[outdated[number]].headings.at(column) in asked[outdated[number]]
                ]
                if counted:
                    while len(made) <= column:
                        made.append([None] * len(block.numbers))
                    made[column][n] = counted[-1]
                    self._corrections.applied.add(number)
        return Block(block.numbers, made)


def _outdated(corrections: Sequence[CorrectedRow], changing: Collection[int]) -> dict[int, int]:
    """Files that a later one with the same key replaces, and the place of that one: it corrects the same row, and was
    not made of them. What is still wrong in it is replaced by nothing: nobody sets a cell back to that."""
    files = [headings.file for _, headings in corrections]
    return {
        old.number: at
        for n, old in enumerate(files)
        for at, new in enumerate(files[n + 1 :], n + 1)
        if old.key and new.key == old.key and new.number in changing and old.number not in new.knows
    }


def _changes(
    own: Value, column: int, corrections: Sequence[CorrectedRow], asked: Sequence[Collection[int]]
) -> dict[int, Value]:
    """The corrections of a cell by the numbers of their files: where they differ from what they were made of."""
    changed: dict[int, Value] = {}
    for (values, headings), wanted in zip(corrections, asked, strict=True):
        known = [number for number in changed if number in headings.file.knows]
        found = headings.correction(changed[known[-1]] if known else own, column, values, wanted)
        if found is not None:
            changed[headings.file.number] = found[0]
    return changed


def matched(own: Sequence[Value], corrected: Sequence[Value], skipped: frozenset[int]) -> tuple[list[int | None], int]:
    """For each column of the source its position in the corrected file, by header; and how many were not found."""
    texts = [_label(v) for v in corrected]
    places: list[int | None] = []
    names = [_label(v) for v in own]
    moved = any(t and (n >= len(texts) or texts[n] != t) for n, t in enumerate(names))
    for n, name in enumerate(names):
        if not name:
            places.append(None if moved else n)
        elif n < len(texts) and texts[n] == name:
            places.append(n)
        else:
            others = [m for m, text in enumerate(texts) if text == name and m not in skipped]
            places.append(others[0] if len(others) == 1 else None)
    if not moved:  # columns beyond the header, such as notes beside the table
        places += [n for n in range(len(names), max([*skipped, len(names)])) if n not in skipped]
    lost = sum(1 for name, at in zip(names, places, strict=False) if name and at is None)
    return places, lost


def _keyed(values: Sequence[Value], at: int) -> tuple[int, re.Match[str] | None]:
    """Where a row's key is: searched first where the last one was."""
    for n in (at, *range(len(values) - 1, -1, -1)):
        if 0 <= n < len(values):
            value = values[n]
            if value.__class__ is str and str(value)[:5] == "ade: " and (found := _KEY.fullmatch(str(value).strip())):
                return n, found
    return at, None


def _added(values: Sequence[Value], at: int) -> frozenset[int]:
    return frozenset({at, *(n for n, v in enumerate(values) if v.__class__ is str and str(v).strip() == TO_DO)})


def _place_of_todo(values: Sequence[Value]) -> int | None:
    return next((n for n, v in enumerate(values) if v.__class__ is str and str(v).strip() == TO_DO), None)


def _is_about(line: str, label: str) -> bool:
    """Whether a line of what to do is about the column with a header."""
    return line.startswith(f"{label}: ") or f" / {label}: " in line


def _holds(values: Sequence[Value], skipped: frozenset[int]) -> bool:
    return any(v is not None and str(v).strip() for n, v in enumerate(values) if n not in skipped)


def _ignore(*_: object) -> None:
    """Leaves out a row of an earlier file, whose own result reported it."""


def _label(value: Value) -> str:
    return "" if value is None else " ".join(str(value).split())
