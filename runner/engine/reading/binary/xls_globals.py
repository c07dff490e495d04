"""What the sheets of an .xls share: names, styles, strings, epoch."""

import codecs
from collections import Counter
from dataclasses import dataclass, field

from runner.engine.reading import errors
from runner.engine.reading.binary.biff import (
    BIFF5,
    BIFF8,
    BOF,
    CONTINUE,
    SharedTexts,
    records,
    short_text,
    text8,
    u16,
)
from runner.engine.reading.books import Visibility
from runner.engine.reading.limits import ReadLimits
from runner.engine.reading.strings import SharedStrings
from runner.engine.reading.styles import Format, Look, Styles, format_of

_FILEPASS, _CODEPAGE, _DATEMODE, _BOUNDSHEET, _SST = 0x2F, 0x42, 0x22, 0x85, 0xFC
_FORMAT, _FORMAT_OLD, _FONT, _XF = 0x041E, 0x001E, 0x0031, 0x00E0
_VISIBILITY: dict[int, Visibility] = {1: "hidden", 2: "very_hidden"}
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
_BOLD = 600


@dataclass(frozen=True, kw_only=True)
class Listed:
    name: str
    position: int
    visibility: Visibility


@dataclass(kw_only=True)
class Globals:
    version: int = BIFF8
    codepage: str = "cp1252"
    codepage_given: bool = False
    charsets: Counter[str] = field(default_factory=Counter)  # what the fonts are made for, where that is not Latin
    epoch_1904: bool = False
    sheets: list[Listed] = field(default_factory=list)
    styles: Styles = field(default_factory=Styles)
    strings: SharedStrings


class _Reader:
    def __init__(self, limits: ReadLimits) -> None:
        self.found = Globals(strings=SharedStrings(limits))
        self._limits = limits
        self._formats: dict[int, Format] = {}
        self._fonts: list[Look] = []
        self._xfs: list[bytes] = []
        self._texts: list[bytes] = []
        self._last = 0

    def read(self, stream: bytes) -> Globals:
        for kind, _, body in records(stream):
            self._record(kind, body)
            self._last = kind if kind != CONTINUE else self._last
        if self._texts:
            self.found.strings.extend(SharedTexts(self._texts, self._limits).read())
        for body in self._xfs:
            number = u16(body, 2)
            self.found.styles.add(number, self._formats, self._look(body))
        return self.found

    def _record(self, kind: int, body: bytes) -> None:
        if kind == BOF:
            self.found.version = u16(body, 0)
            if self.found.version not in (BIFF5, BIFF8):
                raise errors.unsupported("an Excel workbook older than Excel 5")
        elif kind == _FILEPASS:
            raise errors.encrypted("an Excel 97-2003 workbook")
        elif kind == _CODEPAGE:
            self.found.codepage = _codec(u16(body, 0))
            self.found.codepage_given = True
        elif kind == _DATEMODE:
            self.found.epoch_1904 = u16(body, 0) == 1
        elif kind == _BOUNDSHEET:
            self._sheet(body)
        elif kind == _SST or (kind == CONTINUE and self._last == _SST):
            self._texts.append(body)
        elif kind in (_FORMAT, _FORMAT_OLD):
            self._formats[u16(body, 0)] = format_of(self._format(body))
        elif kind == _FONT:
            self._fonts.append(Look(bold=u16(body, 6) >= _BOLD, italic=bool(u16(body, 2) & 2)))
            self._charset(body[12] if len(body) > 12 else 0)
        elif kind == _XF:
            self._xfs.append(body)

    def _charset(self, number: int) -> None:
        """A book of Excel 5 that names no code page: what most of its fonts are made for."""
        if not self.found.codepage_given and number in _CHARSETS:
            self.found.charsets[_CHARSETS[number]] += 1
            self.found.codepage = self.found.charsets.most_common(1)[0][0]

    def _format(self, body: bytes) -> str:
        if self.found.version == BIFF8:
            return text8(body, 2, wide_count=True)
        return short_text(body, 3, body[2] if len(body) > 2 else 0, wide=False, codepage=self.found.codepage)

    def _sheet(self, body: bytes) -> None:
        if len(body) < 8:
            raise errors.damaged("a record is too short")
        if body[5] != 0:
            return  # charts, macros and Visual Basic hold no cells of data
        if self.found.version == BIFF8:
            name = text8(body, 6, wide_count=False)
        else:
            name = short_text(body, 7, body[6], wide=False, codepage=self.found.codepage)
        visibility = _VISIBILITY.get(body[4] & 3, "visible")
        position = u16(body, 0) | u16(body, 2) << 16
        self.found.sheets.append(Listed(name=name, position=position, visibility=visibility))
        if len(self.found.sheets) > self._limits.max_sheets:
            raise errors.too_large(f"more than {self._limits.max_sheets} sheets")

    def _look(self, body: bytes) -> Look:
        font = u16(body, 0)
        font -= font > 4  # there is no font 4
        plain = self._fonts[font] if font < len(self._fonts) else Look()
        look = Look(bold=plain.bold, italic=plain.italic)
        if len(body) >= 20:
            look.centred = body[6] & 7 in (2, 6)
            look.indented = body[8] & 15 > 0
            look.border_top, look.border_bottom = body[11] & 15 > 0, body[11] >> 4 > 0
            look.filled = body[17] >> 2 > 0
        return look


def _codec(number: int) -> str:
    name = _CODEPAGES.get(number, f"cp{number}")
    try:
        codecs.lookup(name)  # decoding nothing would look up nothing
    except LookupError:
        return "cp1252"
    return name


def read_globals(stream: bytes, limits: ReadLimits, declared: str | None = None) -> Globals:
    """What the sheets share; ``declared`` is the code page of a book that names none."""
    reader = _Reader(limits)
    if declared is not None:
        reader.found.codepage, reader.found.codepage_given = codecs.lookup(declared).name, True
    return reader.read(stream)
