"""Reads .xlsb, an .xlsx package with binary parts: records, shared parts, then rows."""

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import BinaryIO, NamedTuple

from runner.engine.reading import errors
from runner.engine.reading.books import (
    STATES,
    Book,
    CellError,
    Layout,
    ListedSheet,
    ReadLimits,
    Remark,
    Row,
    RowBuilder,
    SharedStrings,
    Sheet,
    SurveyedLayout,
    Value,
    ascending,
)
from runner.engine.reading.containers import Entry
from runner.engine.reading.number_formats import (
    BOLD,
    ERRORS,
    UNKNOWN_ERROR,
    CellStyle,
    Marker,
    NumberFormat,
    NumberReader,
    Styles,
    font_style,
    format_of,
    rk,
)
from runner.engine.reading.runs import CellNotes, RunStyle, noted_twice, runs_of, shown
from runner.engine.reading.xlsx.markup import OoxmlPackage

_U32 = struct.Struct("<I")


def records(pieces: Iterable[bytes], limits: ReadLimits) -> Iterator[tuple[int, bytes]]:
    """Yield every record of a part; raises if the part ends inside one."""
    pending = b""
    for piece in pieces:
        pending += piece
        position = 0
        while (header := _parse_header(pending, position)) is not None:
            kind, start, length = header
            if length > limits.max_token_bytes:
                raise errors.hostile(f"a record of {length} bytes")
            if start + length > len(pending):
                break
            yield kind, pending[start : start + length]
            position = start + length
        pending = pending[position:]
    if pending:
        raise errors.truncated("a workbook")


class _RecordHeader(NamedTuple):
    """What a record begins with."""

    kind: int
    body_offset: int
    length: int  # of the body, in bytes


def _parse_header(raw: bytes, position: int) -> _RecordHeader | None:
    """Parse the header of the record at a position; None if more bytes are needed."""
    end = len(raw)
    if position >= end:
        return None
    kind = raw[position]
    position += 1
    if kind & 0x80:
        if position >= end:
            return None
        kind = (kind & 0x7F) | (raw[position] & 0x7F) << 7
        position += 1
    length = 0
    for shift in (0, 7, 14, 21):
        if position >= end:
            return None
        byte = raw[position]
        position += 1
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    return _RecordHeader(kind, position, length)


def u32(body: bytes, at: int) -> int:
    """Read a 32-bit number; raises if the record is too short."""
    try:
        return int(_U32.unpack_from(body, at)[0])
    except struct.error as error:
        raise errors.damaged("a record is too short") from error


def text_at(body: bytes, at: int) -> tuple[str, int]:
    """Read a counted UTF-16 text; return it, and the offset after it."""
    count = u32(body, at)
    if count == 0xFFFFFFFF:  # null
        return "", at + 4
    end = at + 4 + 2 * count
    if end > len(body):
        raise errors.damaged("a text is longer than its record")
    return body[at + 4 : end].decode("utf-16-le", "replace"), end


_WORKBOOK_PROPERTIES, _SHEET = 153, 156
_FORMAT, _FONT, _FILL, _XF = 44, 43, 45, 47
_BEGIN_CELL_XFS, _END_CELL_XFS = 617, 618
_STRING = 19
_STRUCK_FLAG = 8  # of a font
_UNSEEN_PATTERNS = (0, 17)  # of a fill: none, and one that is never shown
_STYLE_BITS = 0xFFFFFF  # of a cell's style; the others say something else


@dataclass(kw_only=True)
class Contents:
    """What the workbook part says."""

    epoch_1904: bool = False
    sheets: list[ListedSheet] = field(default_factory=list)


def read_contents(pieces: Iterable[bytes], limits: ReadLimits) -> Contents:
    """Read the workbook part."""
    contents = Contents()
    for kind, body in records(pieces, limits):
        if kind == _WORKBOOK_PROPERTIES:
            contents.epoch_1904 = bool(u32(body, 0) & 1)
        elif kind == _SHEET:
            relation, at = text_at(body, 8)
            name, _ = text_at(body, at)
            visibility = STATES.get(u32(body, 0), "visible")
            contents.sheets.append(ListedSheet(name=name, part=relation, visibility=visibility))
    return contents


def read_strings(pieces: Iterable[bytes], limits: ReadLimits, fonts: Sequence[RunStyle] = ()) -> SharedStrings:
    """Read all shared strings in order, those with several fonts as a person reads them."""
    strings = SharedStrings(limits)
    batch: list[str | None] = []
    for kind, body in records(pieces, limits):
        if kind == _STRING:
            plain, end = text_at(body, 1)
            batch.append((_shown_text(plain, body, end, fonts) if body[0] & 1 and any(fonts) else plain) or None)
            if len(batch) >= 1024:
                strings.extend(noted_twice(batch))
                batch = []
    strings.extend(noted_twice(batch))
    return strings


def _shown_text(plain: str, body: bytes, offset: int, fonts: Sequence[RunStyle]) -> str:
    """Return what a text with runs of several fonts shows."""
    count = min(u32(body, offset), (len(body) - offset - 4) // 4)
    runs = [(_u16(body, offset + 4 * number + 4), _u16(body, offset + 4 * number + 6)) for number in range(count)]
    starts = [(start, fonts[font] if font < len(fonts) else "") for start, font in runs]
    return shown(runs_of(plain, starts)) if any(style for _, style in starts) else plain


def read_styles(pieces: Iterable[bytes], limits: ReadLimits) -> Styles:
    """Read the number formats, fonts and cell styles of the styles part, in the order in which cells name styles."""
    styles = Styles()
    formats: dict[int, NumberFormat] = {}
    fonts: list[CellStyle] = []
    fills: list[bool] = []
    in_cells = False
    for kind, body in records(pieces, limits):
        if kind == _FORMAT:
            code, _ = text_at(body, 2)
            formats[_u16(body, 0)] = format_of(code)
        elif kind == _FONT:
            flags = _u16(body, 2)
            fonts.append(CellStyle(bold=_u16(body, 4) >= BOLD, struck=bool(flags & _STRUCK_FLAG)))
            styles.fonts.append(font_style(flags, _u16(body, 6)))
        elif kind == _FILL:
            fills.append(u32(body, 0) not in _UNSEEN_PATTERNS)
        elif kind in (_BEGIN_CELL_XFS, _END_CELL_XFS):
            in_cells = kind == _BEGIN_CELL_XFS
        elif kind == _XF and in_cells:
            number = _u16(body, 2)
            styles.add(number, formats, _parse_cell_style(body, fonts, fills))
    return styles


def _parse_cell_style(body: bytes, fonts: list[CellStyle], fills: list[bool]) -> CellStyle:
    """Return the style of an XF record: its font, and whether it is filled."""
    font, fill = _u16(body, 4), _u16(body, 6)
    plain = fonts[font] if font < len(fonts) else CellStyle()
    return replace(plain, filled=fill < len(fills) and fills[fill])


def _u16(body: bytes, offset: int) -> int:
    """Return a 16-bit number; 0 if the record is too short."""
    return int.from_bytes(body[offset : offset + 2], "little")


_ROW, _BLANK, _LAST_CELL, _RICH_TEXT = 0, 1, 11, 62
_PACKED_NUMBER, _SHARED_TEXT = 2, 7
_BOOLEANS, _DOUBLES, _TEXTS = (4, 10), (5, 9), (6, 8, _RICH_TEXT)  # stored, and the result of a formula
_SHORT_BLANK, _LAST_SHORT = 12, 18  # like the first ones, in the next column
_COLUMN, _PANE, _MERGED, _FILTER = 60, 151, 176, 161
_END_DATA = 146
_POINTS_NOWHERE = CellError("#VALUE!")
_F64 = struct.Struct("<d")


class XlsbWorkbook:
    """The parts that sheets share. Strings and styles are read on first use."""

    def __init__(self, package: OoxmlPackage, part: str) -> None:
        """Read the workbook part, by its name; raises InputUnreadable if it is missing."""
        self.package = package
        self.relations = package.relations(part)
        entry = package.archive.find(part)
        if entry is None:
            raise errors.damaged("its workbook part is missing")
        self.contents = read_contents(package.archive.stream(entry), package.limits)

    def part(self, relation: str) -> Entry | None:
        """Return the entry of a part by the id of its relation; None if it is missing."""
        target = self.relations.get(relation)
        return self.package.archive.find(target.part) if target else None

    @cached_property
    def styles(self) -> Styles:
        """Return the styles of its cells; plain ones if it has no part with styles."""
        entry = self.package.related(self.relations, "styles")
        if entry is None:
            return Styles()
        return read_styles(self.package.archive.stream(entry), self.package.limits)

    @cached_property
    def strings(self) -> SharedStrings:
        """Return the texts that cells share; raises InputUnreadable if their part is missing."""
        entry = self.package.related(self.relations, "sharedStrings")
        if entry is None:
            raise errors.damaged("the part with its shared strings is missing")
        return read_strings(self.package.archive.stream(entry), self.package.limits, self.styles.fonts)

    def are_notes_expected(self) -> bool:
        """Whether any text so far may be `Noted`."""
        return "strings" in self.__dict__ and bool(self.strings.noted)


class XlsbSheet:
    """A worksheet of a binary workbook."""

    def __init__(self, workbook: XlsbWorkbook, listed: ListedSheet, index: int) -> None:
        """Prepare to read a sheet that the workbook lists; `index`: among its worksheets, from 0."""
        self.name = listed.name
        self.index = index
        self.visibility = listed.visibility
        self._workbook = workbook
        self._relation = listed.part
        self._notes = CellNotes()

    def rows(self) -> Iterator[Row]:
        """Yield the rows in ascending order, without the marks of notes."""
        self._notes = notes = CellNotes()
        rows = self._rows_in_order(notes)
        if not self._survey_records.are_rows_ordered:
            rows = ascending(rows, self._workbook.package.limits, notes.add_twice)
        return notes.plain_rows(rows, are_expected=self._workbook.are_notes_expected)

    def remarks(self) -> list[Remark]:
        """Return what the cells of the last reading show besides their values."""
        return self._notes.remarks()

    def layout(self) -> Layout:
        return self._survey_records.layout

    def _part_records(self) -> Iterator[tuple[int, bytes]]:
        """Yield the records of the sheet's part."""
        entry = self._workbook.part(self._relation)
        if entry is None:
            raise errors.damaged("the part with a sheet's cells is missing")
        package = self._workbook.package
        return records(package.archive.stream(entry), package.limits)

    def _rows_in_order(self, notes: CellNotes) -> Iterator[Row]:
        """Yield the rows in the order of the part, ascending or not."""
        book = self._workbook
        numbers = NumberReader(book.styles, epoch_1904=book.contents.epoch_1904)
        builder = RowBuilder(book.package.limits, notes.add_twice)
        column = -1

        def strings() -> SharedStrings:
            return book.strings

        for kind, body in self._part_records():
            if kind == _ROW:
                if (finished := builder.next_row(u32(body, 0) + 1)) is not None:
                    yield finished
                column = -1
            elif _BLANK <= kind <= _LAST_CELL or kind == _RICH_TEXT:
                column = u32(body, 0)
                builder.put(column + 1, _parse_value(kind, u32(body, 4), body, 8, numbers=numbers, strings=strings))
            elif _SHORT_BLANK <= kind <= _LAST_SHORT:
                column += 1
                value = _parse_value(kind - 11, u32(body, 0), body, 4, numbers=numbers, strings=strings)
                builder.put(column + 1, value)
        if (finished := builder.finish()) is not None:
            yield finished

    @cached_property
    def _survey_records(self) -> SurveyedLayout:
        """Return the layout of the sheet and whether its rows ascend, from one pass over its records (offsets:
        [MS-XLSB])."""
        limits = self._workbook.package.limits
        marker = Marker(self._workbook.styles, limits)
        layout = marker.layout
        row, ordered = 0, True
        for kind, body in self._part_records():
            if kind == _ROW:
                ordered = ordered and u32(body, 0) + 1 > row
                row = u32(body, 0) + 1
                marker.row(row, hidden=len(body) > 11 and bool(body[11] & 0x10))
            elif _BLANK <= kind <= _LAST_CELL and (marker.units or marker.is_any_struck or row <= limits.layout_rows):
                marker.mark(row, u32(body, 0) + 1, u32(body, 4) & _STYLE_BITS)
            elif kind == _COLUMN and len(body) > 16 and body[16] & 1:
                marker.hide_columns(u32(body, 0) + 1, u32(body, 4) + 1)
            elif kind in (_MERGED, _FILTER):
                first, last, left, right = (u32(body, at) + 1 for at in (0, 4, 8, 12))
                if kind == _MERGED:
                    marker.merge((first, left, last, right))
                else:
                    layout.autofilter = (first, left, last, right)
            elif kind == _PANE and len(body) >= 29 and body[28] & 1:
                across, down = struct.unpack_from("<dd", body)
                layout.frozen_rows, layout.frozen_columns = _count(down), _count(across)
        return SurveyedLayout(layout, ordered)


def _parse_value(  # one line per type of cell
    kind: int,
    style: int,
    body: bytes,
    offset: int,
    *,
    numbers: NumberReader,
    strings: Callable[[], SharedStrings],
) -> Value:
    """Convert a cell record of a kind (no short one) whose content starts at an offset; None for a blank, an error for
    an unknown string. `strings` loads the shared strings."""
    style &= _STYLE_BITS
    if kind == _BLANK:
        return None
    if kind == _PACKED_NUMBER:
        return numbers.value(style, rk(u32(body, offset)))
    if kind in _DOUBLES:
        if len(body) < offset + 8:
            raise errors.damaged("a record is too short")
        return numbers.value(style, _F64.unpack_from(body, offset)[0])
    if kind == _SHARED_TEXT:
        shared = strings()
        index = u32(body, offset)
        return shared[index] if index < len(shared) else _POINTS_NOWHERE
    if kind in _TEXTS:
        text, _ = text_at(body, offset + (kind == _RICH_TEXT))  # a rich text has a byte of flags before it
        return text or None
    code = body[offset] if offset < len(body) else 0
    return bool(code) if kind in _BOOLEANS else ERRORS.get(code, UNKNOWN_ERROR)


def _count(split: float) -> int:
    """Return the rows or columns of a pane; 0 if the number makes no sense."""
    return int(split) if 0 < split < 1_048_576 else 0


def open_xlsb(file: BinaryIO, package: OoxmlPackage, part: str) -> Book:
    """Open a binary workbook, its worksheets in order."""
    workbook = XlsbWorkbook(package, part)
    all_sheets: Iterable[ListedSheet] = workbook.contents.sheets
    if len(workbook.contents.sheets) > package.limits.max_sheets:
        raise errors.too_large(f"it has more than {package.limits.max_sheets} sheets")
    worksheets = [sheet for sheet in all_sheets if _is_worksheet(workbook, sheet)]
    sheets: list[Sheet] = [XlsbSheet(workbook, sheet, index) for index, sheet in enumerate(worksheets)]
    notes: dict[str, object] = {"epoch": 1904 if workbook.contents.epoch_1904 else 1900}
    return Book(file_format="xlsb", reader="own", sheets=sheets, notes=notes, source=file)


def _is_worksheet(workbook: XlsbWorkbook, listed: ListedSheet) -> bool:
    """Whether a listed sheet holds cells; charts, dialogs and macro sheets do not."""
    relation = workbook.relations.get(listed.part)
    return relation is not None and relation.kind == "worksheet"
