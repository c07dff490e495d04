"""Reads .xls (BIFF5 and BIFF8): records and their texts, the parts that sheets share, then rows.

The workbook stream is kept in memory; rows are decoded on demand.
"""

import codecs
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import BinaryIO

from runner.engine.reading import errors
from runner.engine.reading.books import (
    STATES,
    Book,
    CellError,
    Design,
    Layout,
    ListedSheet,
    ReadingChoice,
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
from runner.engine.reading.containers import Container, workbook_stream
from runner.engine.reading.formula_areas import areas_read
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

BOF, EOF, CONTINUE = 0x0809, 0x000A, 0x003C
BIFF5, BIFF8 = 0x0500, 0x0600
_HEADER = struct.Struct("<HH")


def records(stream: bytes, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield type and body of each record from a position to the end of its substream, without embedded charts."""
    position = start
    depth = 0
    while position + 4 <= len(stream):
        kind, length = _HEADER.unpack_from(stream, position)
        body = stream[position + 4 : position + 4 + length]
        if len(body) < length:
            raise errors.truncated("an Excel 97-2003 workbook")
        if kind == BOF:
            depth += 1
        if depth <= 1:
            yield kind, body
        if kind == EOF:
            depth -= 1
            if depth <= 0:
                return
        position += 4 + length
    raise errors.truncated("an Excel 97-2003 workbook")


def u16(body: bytes, at: int) -> int:
    """Read a 16-bit number; raises if the record is too short."""
    if at + 2 > len(body):
        raise errors.damaged("a record is too short")
    return body[at] | body[at + 1] << 8


def short_text(body: bytes, at: int, count: int, *, wide: bool, codepage: str) -> str:
    """Read a text within one record: UTF-16 or its Latin-1 half (BIFF8), or the book's code page (BIFF5)."""
    if wide:
        return body[at : at + 2 * count].decode("utf-16-le", "replace")
    return body[at : at + count].decode(codepage, "replace")


def _byte(body: bytes, at: int) -> int:
    """Return the byte at a position; 0 behind the end."""
    return body[at] if at < len(body) else 0


def text8(body: bytes, at: int, *, wide_count: bool) -> str:
    """Read a BIFF8 text that starts with its count, of two bytes if `wide_count`, and its flags."""
    count = u16(body, at) if wide_count else _byte(body, at)
    at += 2 if wide_count else 1
    flags = _byte(body, at)
    at += 1 + (2 if flags & 8 else 0) + (4 if flags & 4 else 0)
    return short_text(body, at, count, wide=bool(flags & 1), codepage="latin-1")


def continued_text(bodies: list[bytes]) -> str:
    """Read a BIFF8 text that continues in further records; each starts with a flag for the width of its characters."""
    count = u16(bodies[0], 0)
    parts: list[str] = []
    for number, body in enumerate(bodies):
        at = 2 if number == 0 else 0
        wide = bool(body[at] & 1) if at < len(body) else False
        length = min(count, (len(body) - at - 1) // 2 if wide else len(body) - at - 1)
        if length <= 0:
            continue
        parts.append(short_text(body, at + 1, length, wide=wide, codepage="latin-1"))
        count -= length
    return "".join(parts)


class SharedTexts:
    """The shared strings record and its continuations.

    The end of a record may cut a text anywhere; if it cuts the characters, the next record starts with a flag for
    their width.
    """

    def __init__(self, bodies: list[bytes], limits: ReadLimits, fonts: Sequence[RunStyle] = ()) -> None:
        """Prepare to read the bodies of these records; `fonts`: how each makes a run of a text look."""
        self._fonts = fonts
        self._stream = b"".join(bodies)
        self._limits = limits
        ends = [0]
        for body in bodies:
            ends.append(ends[-1] + len(body))
        self._ends = [end for start, end in pairwise(ends) if end > start]
        self._next_end = 0  # index of the end of the current record
        self._offset = 8  # after two counts

    def read(self) -> list[str | None]:
        """Return all texts in order; None for an empty one."""
        texts: list[str | None] = []
        while self._offset + 3 <= len(self._stream):
            texts.append(self._read_text() or None)
            if len(texts) > self._limits.max_strings:
                raise errors.too_large(f"it has more than {self._limits.max_strings} shared strings")
        return noted_twice(texts)

    def _read_text(self) -> str:
        """Read the text at the current position, which moves behind it."""
        while self._next_end < len(self._ends) and self._ends[self._next_end] <= self._offset:
            self._next_end += 1
        count = u16(self._stream, self._offset)
        flags = self._stream[self._offset + 2]
        self._offset += 3
        runs = extra = 0
        if flags & 8:
            runs = u16(self._stream, self._offset)
            self._offset += 2
        if flags & 4:
            extra = u16(self._stream, self._offset) | u16(self._stream, self._offset + 2) << 16
            self._offset += 4
        characters = self._read_characters(count, wide=bool(flags & 1))
        starts = [self._read_run(self._offset + 4 * number) for number in range(runs)] if any(self._fonts) else []
        self._offset += 4 * runs + extra
        return shown(runs_of(characters, starts)) if any(style for _, style in starts) else characters

    def _read_run(self, at: int) -> tuple[int, RunStyle]:
        """Read where a run of a text starts, and its style."""
        font = u16(self._stream, at + 2)
        font -= font > 4  # there is no font 4
        return u16(self._stream, at), self._fonts[font] if font < len(self._fonts) else ""

    def _read_characters(self, count: int, *, wide: bool) -> str:
        """Read so many characters from the current position, which moves behind them, over the ends of records."""
        parts: list[str] = []
        while count > 0:
            while self._next_end < len(self._ends) and self._ends[self._next_end] < self._offset:
                self._next_end += 1
            if self._next_end >= len(self._ends):
                break
            bytes_left = self._ends[self._next_end] - self._offset
            length = min(count, bytes_left // 2 if wide else bytes_left)
            parts.append(short_text(self._stream, self._offset, length, wide=wide, codepage="latin-1"))
            self._offset += length * (2 if wide else 1)
            count -= length
            if count > 0:  # continues in the next record, after its flag
                self._offset = self._ends[self._next_end]
                if self._offset >= len(self._stream):
                    break
                wide = bool(self._stream[self._offset] & 1)
                self._offset += 1
        return "".join(parts)


_FILEPASS, _CODEPAGE, _DATEMODE, _BOUNDSHEET, _SST = 0x2F, 0x42, 0x22, 0x85, 0xFC
_FORMAT, _FORMAT_OLD, _FONT, _XF = 0x041E, 0x001E, 0x0031, 0x00E0
_CODEPAGES = {
    367: "ascii", 1200: "utf-16-le", 1361: "johab", 32768: "mac-roman", 32769: "cp1252",
    10000: "mac-roman", 10001: "shift_jis", 10002: "big5", 10003: "euc-kr", 10004: "mac-arabic", 10005: "cp1255",
    10006: "mac-greek", 10007: "mac-cyrillic", 10008: "gb2312", 10010: "mac-romanian", 10017: "mac-cyrillic",
    10021: "cp874", 10029: "mac-latin2", 10079: "mac-iceland", 10081: "mac-turkish", 10082: "mac-croatian",
}  # fmt: skip
_CHARSETS = {
    128: "cp932", 129: "cp949", 130: "johab", 134: "cp936", 136: "cp950", 161: "cp1253", 162: "cp1254", 163: "cp1258",
    177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250", 77: "mac-roman",
}  # fmt: skip


@dataclass(kw_only=True)
class Globals:
    """What the sheets of a workbook share."""

    version: int = BIFF8
    codepage: str = "cp1252"
    has_codepage: bool = False
    charsets: Counter[str] = field(default_factory=Counter)  # non-Latin character sets of the fonts
    epoch_1904: bool = False
    sheets: list[ListedSheet] = field(default_factory=list)
    styles: Styles = field(default_factory=Styles)
    strings: SharedStrings


class _GlobalsReader:
    """Reads the records before the sheets."""

    def __init__(self, limits: ReadLimits) -> None:
        """Begin with an empty workbook."""
        self.shared = Globals(strings=SharedStrings(limits))
        self._limits = limits
        self._formats: dict[int, NumberFormat] = {}  # by number
        self._fonts: list[CellStyle] = []
        self._font_sizes: list[int] = []  # of the fonts
        self._design_kinds: dict[tuple[int, ...], int] = {}  # what makes a design -> its number
        self._xfs: list[bytes] = []  # records of cell styles
        self._texts: list[bytes] = []  # records of shared strings
        self._last_kind = 0  # the kind of the last record that continues no other

    def read(self, stream: bytes) -> Globals:
        """Read all records of the globals substream, and return what the sheets share."""
        for kind, body in records(stream):
            self._add_record(kind, body)
            self._last_kind = kind if kind != CONTINUE else self._last_kind
        if self._texts:
            self.shared.strings.extend(SharedTexts(self._texts, self._limits, self.shared.styles.fonts).read())
        for body in self._xfs:
            number = u16(body, 2)
            self.shared.styles.add(number, self._formats, self._parse_cell_style(body))
            self.shared.styles.designs.append(self._parse_design(body))
        return self.shared

    def _add_record(self, kind: int, body: bytes) -> None:
        """Add what a record says to `shared`, or to what `read` completes it with; refuses old and encrypted books."""
        if kind == BOF:
            self.shared.version = u16(body, 0)
            if self.shared.version not in (BIFF5, BIFF8):
                raise errors.unsupported("an Excel workbook older than Excel 5")
        elif kind == _FILEPASS:
            raise errors.encrypted("an Excel 97-2003 workbook")
        elif kind == _CODEPAGE:
            self.shared.codepage = _codec_of_page(u16(body, 0))
            self.shared.has_codepage = True
        elif kind == _DATEMODE:
            self.shared.epoch_1904 = u16(body, 0) == 1
        elif kind == _BOUNDSHEET:
            self._add_sheet(body)
        elif kind == _SST or (kind == CONTINUE and self._last_kind == _SST):
            self._texts.append(body)
        elif kind in (_FORMAT, _FORMAT_OLD):
            self._formats[u16(body, 0)] = format_of(self._parse_format(body))
        elif kind == _FONT:
            flags = u16(body, 2)
            self._font_sizes.append(u16(body, 0))
            self._fonts.append(CellStyle(bold=u16(body, 6) >= BOLD, struck=bool(flags & 8)))
            self.shared.styles.fonts.append(font_style(flags, u16(body, 8)))
            self._use_charset(body[12] if len(body) > 12 else 0)
        elif kind == _XF:
            self._xfs.append(body)

    def _use_charset(self, number: int) -> None:
        """Use the character set of most fonts so far in an Excel 5 book without a code page; `number`: that of one
        more font."""
        if not self.shared.has_codepage and number in _CHARSETS:
            self.shared.charsets[_CHARSETS[number]] += 1
            self.shared.codepage = self.shared.charsets.most_common(1)[0][0]

    def _parse_format(self, body: bytes) -> str:
        """Return the code of a number format record."""
        if self.shared.version == BIFF8:
            return text8(body, 2, wide_count=True)
        return short_text(body, 3, body[2] if len(body) > 2 else 0, wide=False, codepage=self.shared.codepage)

    def _add_sheet(self, body: bytes) -> None:
        """Add a sheet to the list of those that hold cells."""
        if len(body) < 8:
            raise errors.damaged("a record is too short")
        if body[5] != 0:
            return  # charts, macros and Visual Basic contain no data
        if self.shared.version == BIFF8:
            name = text8(body, 6, wide_count=False)
        else:
            name = short_text(body, 7, body[6], wide=False, codepage=self.shared.codepage)
        visibility = STATES.get(body[4] & 3, "visible")
        position = u16(body, 0) | u16(body, 2) << 16
        self.shared.sheets.append(ListedSheet(name=name, position=position, visibility=visibility))
        if len(self.shared.sheets) > self._limits.max_sheets:
            raise errors.too_large(f"it has more than {self._limits.max_sheets} sheets")

    def _parse_cell_style(self, body: bytes) -> CellStyle:
        """Return the style of an XF record: its font, whether it is filled, whether it has a line above or below."""
        font = u16(body, 0)
        font -= font > 4  # there is no font 4
        plain = self._fonts[font] if font < len(self._fonts) else CellStyle()
        style = replace(plain)
        if len(body) >= 20:
            style.filled = body[17] >> 2 > 0
            style.lined = body[11] > 0  # the lines above and below; those at the sides are in the byte before
        return style

    def _parse_design(self, body: bytes) -> Design:
        """Return the look that an XF record gives a cell; of an Excel 5 book without lines and colours."""
        font = u16(body, 0)
        font -= font > 4
        bold, size = (self._fonts[font].bold, self._font_sizes[font]) if font < len(self._fonts) else (False, 0)
        fill = lines = 0
        if len(body) >= 20:
            fill = u16(body, 18) & 0x7F if body[17] >> 2 else 0
            lines = u16(body, 10)
        kind = (font, u16(body, 2), body[6] & 7 if len(body) > 6 else 0, fill)
        left, right, above, below = (bool(lines >> shift & 0xF) for shift in (0, 4, 8, 12))
        return Design(
            above,
            below,
            left,
            right,
            fill,
            bold,
            size,
            self._design_kinds.setdefault(kind, len(self._design_kinds) + 1),
        )


def _codec_of_page(number: int) -> str:
    """Return the name of Python's codec for a code page; Windows-1252 for an unknown one."""
    name = _CODEPAGES.get(number, f"cp{number}")
    try:
        codecs.lookup(name)  # decoding an empty text would not look it up
    except LookupError:
        return "cp1252"
    return name


def read_globals(stream: bytes, limits: ReadLimits, declared: str | None = None) -> Globals:
    """Read the parts that sheets share; ``declared``: the code page to use if the book has none."""
    reader = _GlobalsReader(limits)
    if declared is not None:
        reader.shared.codepage, reader.shared.has_codepage = codecs.lookup(declared).name, True
    return reader.read(stream)


_NUMBER, _RK, _MULRK, _BLANK, _MULBLANK = 0x0203, 0x027E, 0x00BD, 0x0201, 0x00BE
_LABEL, _RSTRING, _LABELSST, _BOOLERR = 0x0204, 0x00D6, 0x00FD, 0x0205
_FORMULA, _FORMULA_TEXT = 0x0006, 0x0207
_FORMULAS = (0x0006, 0x0206, 0x0406)
_CELLS = {_NUMBER, _RK, _MULRK, _BLANK, _MULBLANK, _LABEL, _RSTRING, _LABELSST, _BOOLERR, *_FORMULAS}
_ROW, _COLUMNS, _MERGED, _PANE, _WINDOW = 0x0208, 0x007D, 0x00E5, 0x0041, 0x023E
_MOST_SUMMED = 5_000  # areas of formulas that are kept as hints
_USUAL_WIDTH = 2340  # of a column, in 256ths of a character
_NO_NUMBER = 0xFFFF  # at the end of a formula's result: it is of one of these kinds instead
_TEXT_RESULT, _BOOLEAN_RESULT, _ERROR_RESULT = 0, 1, 2
_F64 = struct.Struct("<d")
_POINTS_NOWHERE = CellError("#VALUE!")


class XlsSheet:
    """A worksheet of an Excel 97-2003 workbook."""

    def __init__(self, stream: bytes, shared: Globals, listed: ListedSheet, index: int, limits: ReadLimits) -> None:
        """Prepare to read the sheet that begins at its position in the workbook's stream."""
        self.name = listed.name
        self.index = index
        self.visibility = listed.visibility
        self._stream = stream
        self._shared = shared
        self._position = listed.position
        self._limits = limits
        self._notes = CellNotes()

    def rows(self) -> Iterator[Row]:
        """Yield the rows in ascending order, without the marks of notes."""
        self._notes = notes = CellNotes()
        rows = self._rows_in_order(notes)
        if not self._survey_records.are_rows_ordered:
            rows = ascending(rows, self._limits, notes.add_twice)
        return notes.plain_rows(rows, are_expected=lambda: True) if self._shared.strings.noted else rows

    def remarks(self) -> list[Remark]:
        """Return what the cells of the last reading show besides their values."""
        return self._notes.remarks()

    def layout(self) -> Layout:
        return self._survey_records.layout

    def needs_code_page(self) -> bool:
        """Whether single-byte texts contain non-ASCII bytes."""
        return self._shared.version != BIFF8 and any(
            not body[8:].isascii() for kind, body in self._sheet_records() if kind in (_LABEL, _RSTRING, _FORMULA_TEXT)
        )

    def _sheet_records(self) -> Iterator[tuple[int, bytes]]:
        """Yield the records of the sheet after the first, which must begin it."""
        sheet_records = records(self._stream, self._position)
        kind, _ = next(sheet_records, (None, b""))
        if kind != BOF:
            raise errors.damaged("a sheet is not at its offset in the workbook")
        return sheet_records

    def _rows_in_order(self, notes: CellNotes) -> Iterator[Row]:
        """Yield the rows as they are stored, ascending or not; the text of a formula is in records behind it."""
        builder = RowBuilder(self._limits, notes.add_twice)
        cells = _Cells(self._shared)
        row = -1
        text_records: list[bytes] = []  # the text of a formula and its continuations
        for kind, body in self._sheet_records():
            if text_records and kind == CONTINUE:
                text_records.append(body)
                continue
            if text_records and cells.awaited is not None:
                builder.put(cells.awaited, cells.long_text(text_records) or None)
                text_records, cells.awaited = [], None
            if kind == _FORMULA_TEXT and cells.awaited is not None:
                text_records = [body]
            if kind not in _CELLS:
                continue
            if u16(body, 0) != row:
                row = u16(body, 0)
                if (finished := builder.next_row(row + 1)) is not None:
                    yield finished
            for column, value in cells.read(kind, body):
                builder.put(column, value)
        if (finished := builder.finish()) is not None:
            yield finished

    @cached_property
    def _survey_records(self) -> SurveyedLayout:
        """Return the layout of the sheet and whether its rows ascend, from one pass over its records (offsets:
        [MS-XLS])."""
        marker = Marker(self._shared.styles, self._limits)
        row, ordered, frozen = 0, True, False
        for kind, body in self._sheet_records():
            if kind in _CELLS:
                number = u16(body, 0) + 1
                ordered = ordered and number >= row
                row = number
                _mark_styles(marker, kind, row, body)
                if kind in _FORMULAS and row <= self._limits.layout_rows:
                    _mark_formula(marker.layout, row, body, self._shared.version)
            elif kind == _ROW:
                marker.row(u16(body, 0) + 1, hidden=len(body) > 12 and bool(body[12] & 0x20))
            elif kind == _COLUMNS:
                _mark_columns(marker, body)
            elif kind == _MERGED:
                for at in range(2, min(2 + 8 * u16(body, 0), len(body) - 7), 8):
                    first, last, left, right = (u16(body, at + step) + 1 for step in (0, 2, 4, 6))
                    marker.merge((first, left, last, right))
            elif kind == _WINDOW:
                frozen = bool(u16(body, 0) & 8)
            elif kind == _PANE and frozen:
                marker.layout.frozen_columns, marker.layout.frozen_rows = u16(body, 0), u16(body, 2)
        return SurveyedLayout(marker.layout, ordered)


def _mark_columns(marker: Marker, body: bytes) -> None:
    """Remember the hidden columns and the widths of a record."""
    first, last = u16(body, 0) + 1, u16(body, 2) + 1
    if u16(body, 8) & 1:
        marker.hide_columns(first, last)
    marker.widen_columns(first, last, u16(body, 4) / _USUAL_WIDTH)


def _mark_formula(layout: Layout, row: int, body: bytes, version: int) -> None:
    """Add a formula's cell to the layout, and the areas of several cells that it reads."""
    layout.formulas.setdefault(row, set()).add(u16(body, 2) + 1)
    if version == BIFF8 and len(layout.summed) < _MOST_SUMMED:
        areas = areas_read(body)
        layout.summed += [
            (top, left, bottom, right) for top, left, bottom, right in areas if top < bottom or left < right
        ]


def _mark_styles(marker: Marker, kind: int, row: int, body: bytes) -> None:
    """Add what the styles of a record's cells show to the layout."""
    column = u16(body, 2) + 1
    if kind in (_MULRK, _MULBLANK):
        step = 6 if kind == _MULRK else 2
        for offset, place in enumerate(range(4, len(body) - step, step)):
            marker.mark(row, column + offset, u16(body, place))
    else:
        marker.mark(row, column, u16(body, 4))


class _Cells:
    """Decodes cell records into (column, value)."""

    def __init__(self, shared: Globals) -> None:
        """Prepare to decode the cells of one sheet; `shared`: what the workbook's sheets share."""
        self._shared = shared
        self._numbers = NumberReader(shared.styles, epoch_1904=shared.epoch_1904)
        self.awaited: int | None = None  # column of a formula whose text follows in its own record

    def text(self, body: bytes, offset: int) -> str:
        """Read the text that starts at an offset of a record."""
        if self._shared.version == BIFF8:
            return text8(body, offset, wide_count=True)
        return short_text(body, offset + 2, u16(body, offset), wide=False, codepage=self._shared.codepage)

    def long_text(self, bodies: list[bytes]) -> str:
        """Read a text that continues in further records; `bodies`: all of them."""
        if self._shared.version == BIFF8:
            return continued_text(bodies)
        return self.text(b"".join(bodies), 0)

    def read(self, kind: int, body: bytes) -> Iterator[tuple[int, Value]]:
        """Yield the column and value of each cell of a record; for a formula with a text, sets `awaited`."""
        column = u16(body, 2) + 1
        if kind == _MULRK:
            for offset, place in enumerate(range(4, len(body) - 6, 6)):
                number = rk(u16(body, place + 2) | u16(body, place + 4) << 16)
                yield column + offset, self._numbers.value(u16(body, place), number)
        elif kind in _FORMULAS:
            yield column, self._read_result(column, body)
        elif kind not in (_BLANK, _MULBLANK):
            yield column, self._plain_cell(kind, body)

    def _plain_cell(self, kind: int, body: bytes) -> Value:
        """Read a record with one cell that is neither blank nor a formula."""
        if kind == _LABELSST:
            index = u16(body, 6) | u16(body, 8) << 16
            strings = self._shared.strings
            return strings[index] if index < len(strings) else _POINTS_NOWHERE
        if kind == _NUMBER:
            return self._numbers.value(u16(body, 4), _read_double(body, 6))
        if kind == _RK:
            return self._numbers.value(u16(body, 4), rk(u16(body, 6) | u16(body, 8) << 16))
        if kind == _BOOLERR:
            code, is_error = u16(body, 6) & 0xFF, u16(body, 6) >> 8
            return ERRORS.get(code, UNKNOWN_ERROR) if is_error else bool(code)
        return self.text(body, 6) or None

    def _read_result(self, column: int, body: bytes) -> Value:
        """Read the stored result of a formula; None if it is a text, which follows in its own record."""
        self.awaited = None
        if u16(body, 12) != _NO_NUMBER:
            return self._numbers.value(u16(body, 4), _read_double(body, 6))
        kind, code = body[6], body[8]
        if kind == _TEXT_RESULT:
            self.awaited = column
        elif kind == _BOOLEAN_RESULT:
            return bool(code)
        elif kind == _ERROR_RESULT:
            return ERRORS.get(code, UNKNOWN_ERROR)
        return None


def _read_double(body: bytes, offset: int) -> float:
    """Read a double at an offset of a record; raises if the record is too short."""
    if len(body) < offset + 8:
        raise errors.damaged("a record is too short")
    return float(_F64.unpack_from(body, offset)[0])


def open_xls(file: BinaryIO, container: Container, limits: ReadLimits, *, declared: str | None = None) -> Book:
    """Open the workbook of an OLE container. `declared`: the code page to use if it has none."""
    stream = container.read(workbook_stream(container) or "Workbook")
    shared = read_globals(stream, limits, declared)
    xls_sheets = [XlsSheet(stream, shared, listed, index, limits) for index, listed in enumerate(shared.sheets)]
    sheets: list[Sheet] = list(xls_sheets)
    notes: dict[str, object] = {"epoch": 1904 if shared.epoch_1904 else 1900}
    choices = (
        [_codepage_choice(shared)]
        if not shared.has_codepage and any(sheet.needs_code_page() for sheet in xls_sheets)
        else []
    )
    return Book(file_format="xls", reader="own", sheets=sheets, notes=notes, choices=choices, source=file)


def _codepage_choice(shared: Globals) -> ReadingChoice:
    """Make the choice of a code page for an Excel 5 book that has none."""
    return ReadingChoice(
        kind="encoding",
        chosen=shared.codepage,
        evidence=dict(shared.charsets) or {shared.codepage: 0},
        sure=bool(shared.charsets),
        settle=f'"reading": {{"encoding": "{shared.codepage}"}}',
        message=f"the workbook does not declare its text encoding; its texts were read as {shared.codepage}",
    )
