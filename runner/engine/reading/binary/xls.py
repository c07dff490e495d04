"""An .xls opened. The workbook stream is held whole; rows are taken from it as they are asked for."""

import struct
from collections.abc import Iterator
from functools import cached_property
from typing import BinaryIO

from runner.engine.reading import errors
from runner.engine.reading.binary.biff import BIFF8, BOF, CONTINUE, continued_text, records, short_text, text8, u16
from runner.engine.reading.binary.xls_globals import Globals, Listed, read_globals
from runner.engine.reading.books import Book, Choice, Layout, Sheet
from runner.engine.reading.layouts import Marker
from runner.engine.reading.limits import ReadLimits
from runner.engine.reading.numbers import ERRORS, UNKNOWN_ERROR, NumberReader, rk
from runner.engine.reading.ole import Container, workbook_stream
from runner.engine.reading.rows import RowBuilder, ascending
from runner.engine.reading.values import CellError, Row, Value

_NUMBER, _RK, _MULRK, _BLANK, _MULBLANK = 0x0203, 0x027E, 0x00BD, 0x0201, 0x00BE
_LABEL, _RSTRING, _LABELSST, _BOOLERR = 0x0204, 0x00D6, 0x00FD, 0x0205
_FORMULA, _FORMULA_TEXT = 0x0006, 0x0207
_FORMULAS = (0x0006, 0x0206, 0x0406)
_CELLS = {_NUMBER, _RK, _MULRK, _BLANK, _MULBLANK, _LABEL, _RSTRING, _LABELSST, _BOOLERR, *_FORMULAS}
_ROW, _COLUMNS, _MERGED, _PANE, _WINDOW = 0x0208, 0x007D, 0x00E5, 0x0041, 0x023E
_F64 = struct.Struct("<d")
_POINTS_NOWHERE = CellError("#VALUE!")


class XlsSheet:
    def __init__(self, stream: bytes, shared: Globals, listed: Listed, index: int, limits: ReadLimits) -> None:
        self.name = listed.name
        self.index = index
        self.visibility = listed.visibility
        self._stream = stream
        self._shared = shared
        self._position = listed.position
        self._limits = limits

    def rows(self) -> Iterator[Row]:
        rows = self._rows()
        return rows if self._surveyed[1] else ascending(rows, self._limits)

    def layout(self) -> Layout:
        return self._surveyed[0]

    def needs_code_page(self) -> bool:
        """Whether texts hold more than ASCII in one byte each."""
        return self._shared.version != BIFF8 and any(
            not body[8:].isascii() for kind, _, body in self._records() if kind in (_LABEL, _RSTRING, _FORMULA_TEXT)
        )

    def _records(self) -> Iterator[tuple[int, int, bytes]]:
        found = records(self._stream, self._position)
        first = next(found, None)
        if first is None or first[0] != BOF:
            raise errors.damaged("a sheet is not where the workbook says")
        return found

    def _rows(self) -> Iterator[Row]:
        builder = RowBuilder(self._limits)
        cells = _Cells(self._shared)
        row = -1
        result: list[bytes] = []  # the text of a formula, with what continues it
        for kind, _, body in self._records():
            if result and kind == CONTINUE:
                result.append(body)
                continue
            if result and cells.awaited is not None:
                builder.put(cells.awaited, cells.long_text(result) or None)
                result, cells.awaited = [], None
            if kind == _FORMULA_TEXT and cells.awaited is not None:
                result = [body]
            if kind not in _CELLS:
                continue
            if u16(body, 0) != row:
                row = u16(body, 0)
                if (done := builder.next_row(row + 1)) is not None:
                    yield done
            for column, value in cells.read(kind, body):
                builder.put(column, value)
        if (done := builder.done()) is not None:
            yield done

    @cached_property
    def _surveyed(self) -> tuple[Layout, bool]:
        """The layout, and whether the rows come in order."""
        marker = Marker(self._shared.styles, self._limits)
        row, ordered, frozen = 0, True, False
        for kind, _, body in self._records():
            if kind in _CELLS:
                number = u16(body, 0) + 1
                ordered = ordered and number >= row
                row = number
                _mark(marker, kind, row, body)
            elif kind == _ROW:
                marker.row(u16(body, 0) + 1, hidden=len(body) > 12 and bool(body[12] & 0x20))
            elif kind == _COLUMNS and u16(body, 8) & 1:
                marker.hide_columns(u16(body, 0) + 1, u16(body, 2) + 1)
            elif kind == _MERGED:
                for at in range(2, min(2 + 8 * u16(body, 0), len(body) - 7), 8):
                    first, last, left, right = (u16(body, at + step) + 1 for step in (0, 2, 4, 6))
                    marker.merge((first, left, last, right))
            elif kind == _WINDOW:
                frozen = bool(u16(body, 0) & 8)
            elif kind == _PANE and frozen:
                marker.layout.frozen_columns, marker.layout.frozen_rows = u16(body, 0), u16(body, 2)
        return marker.layout, ordered


def _mark(marker: Marker, kind: int, row: int, body: bytes) -> None:
    column = u16(body, 2) + 1
    if kind in (_MULRK, _MULBLANK):
        step = 6 if kind == _MULRK else 2
        for offset, at in enumerate(range(4, len(body) - step, step)):
            marker.mark(row, column + offset, u16(body, at))
    else:
        marker.mark(row, column, u16(body, 4))


class _Cells:
    """Cell records to (column, value)."""

    def __init__(self, shared: Globals) -> None:
        self._shared = shared
        self._numbers = NumberReader(shared.styles, epoch_1904=shared.epoch_1904)
        self.awaited: int | None = None  # column of a formula whose text comes in a record of its own

    def text(self, body: bytes, at: int) -> str:
        if self._shared.version == BIFF8:
            return text8(body, at, wide_count=True)
        return short_text(body, at + 2, u16(body, at), wide=False, codepage=self._shared.codepage)

    def long_text(self, bodies: list[bytes]) -> str:
        if self._shared.version == BIFF8:
            return continued_text(bodies)
        return self.text(b"".join(bodies), 0)

    def read(self, kind: int, body: bytes) -> Iterator[tuple[int, Value]]:
        column = u16(body, 2) + 1
        if kind == _MULRK:
            for offset, at in enumerate(range(4, len(body) - 6, 6)):
                number = rk(u16(body, at + 2) | u16(body, at + 4) << 16)
                yield column + offset, self._numbers.value(u16(body, at), number)
        elif kind in _FORMULAS:
            yield column, self._result(column, body)
        elif kind not in (_BLANK, _MULBLANK):
            yield column, self._one(kind, body)

    def _one(self, kind: int, body: bytes) -> Value:
        if kind == _LABELSST:
            index = u16(body, 6) | u16(body, 8) << 16
            strings = self._shared.strings
            return strings[index] if index < len(strings) else _POINTS_NOWHERE
        if kind == _NUMBER:
            return self._numbers.value(u16(body, 4), _double(body, 6))
        if kind == _RK:
            return self._numbers.value(u16(body, 4), rk(u16(body, 6) | u16(body, 8) << 16))
        if kind == _BOOLERR:
            code, is_error = u16(body, 6) & 0xFF, u16(body, 6) >> 8
            return ERRORS.get(code, UNKNOWN_ERROR) if is_error else bool(code)
        return self.text(body, 6) or None

    def _result(self, column: int, body: bytes) -> Value:
        self.awaited = None
        if u16(body, 12) != 0xFFFF:
            return self._numbers.value(u16(body, 4), _double(body, 6))
        kind, code = body[6], body[8]
        if kind == 0:
            self.awaited = column
        elif kind == 1:
            return bool(code)
        elif kind == 2:
            return ERRORS.get(code, UNKNOWN_ERROR)
        return None


def _double(body: bytes, at: int) -> float:
    if len(body) < at + 8:
        raise errors.damaged("a record is too short")
    return float(_F64.unpack_from(body, at)[0])


def open_xls(file: BinaryIO, container: Container, limits: ReadLimits, *, declared: str | None = None) -> Book:
    stream = container.read(workbook_stream(container) or "Workbook")
    shared = read_globals(stream, limits, declared)
    own = [XlsSheet(stream, shared, one, index, limits) for index, one in enumerate(shared.sheets)]
    sheets: list[Sheet] = list(own)
    notes: dict[str, object] = {"epoch": 1904 if shared.epoch_1904 else 1900}
    choices = [_guessed(shared)] if not shared.codepage_given and any(one.needs_code_page() for one in own) else []
    return Book(file_format="xls", reader="own", sheets=sheets, notes=notes, choices=choices, source=file)


def _guessed(shared: Globals) -> Choice:
    """A book of Excel 5 that does not say which code page its texts are in."""
    return Choice(
        kind="encoding",
        chosen=shared.codepage,
        evidence=dict(shared.charsets) or {shared.codepage: 0},
        sure=bool(shared.charsets),
        settle=f'"reading": {{"encoding": "{shared.codepage}"}}',
        message=f"the workbook does not say which encoding its texts are in; they were read as {shared.codepage}",
    )
