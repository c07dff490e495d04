"""Workbook, styles and strings of an .xlsb."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from runner.engine.reading.binary.records import records, text, u32
from runner.engine.reading.books import Visibility
from runner.engine.reading.limits import ReadLimits
from runner.engine.reading.strings import SharedStrings
from runner.engine.reading.styles import Format, Look, Styles, format_of

_WORKBOOK_PROPERTIES, _SHEET = 153, 156
_FORMAT, _FONT, _FILL, _BORDER, _XF = 44, 43, 45, 46, 47
_BEGIN_CELL_XFS, _END_CELL_XFS = 617, 618
_STRING = 19
_VISIBILITY: dict[int, Visibility] = {1: "hidden", 2: "very_hidden"}
_BOLD = 600


@dataclass(frozen=True, kw_only=True)
class Listed:
    name: str
    relation: str
    visibility: Visibility


@dataclass(kw_only=True)
class Contents:
    epoch_1904: bool = False
    sheets: list[Listed] = field(default_factory=list)


def read_contents(pieces: Iterable[bytes], limits: ReadLimits) -> Contents:
    contents = Contents()
    for kind, body in records(pieces, limits):
        if kind == _WORKBOOK_PROPERTIES:
            contents.epoch_1904 = bool(u32(body, 0) & 1)
        elif kind == _SHEET:
            relation, at = text(body, 8)
            name, _ = text(body, at)
            visibility = _VISIBILITY.get(u32(body, 0), "visible")
            contents.sheets.append(Listed(name=name, relation=relation, visibility=visibility))
    return contents


def read_strings(pieces: Iterable[bytes], limits: ReadLimits) -> SharedStrings:
    strings = SharedStrings(limits)
    batch: list[str | None] = []
    for kind, body in records(pieces, limits):
        if kind == _STRING:
            batch.append(text(body, 1)[0] or None)
            if len(batch) >= 1024:
                strings.extend(batch)
                batch = []
    strings.extend(batch)
    return strings


def read_styles(pieces: Iterable[bytes], limits: ReadLimits) -> Styles:
    """Number formats, and what makes cells stand out."""
    styles = Styles()
    formats: dict[int, Format] = {}
    fonts: list[Look] = []
    fills: list[bool] = []
    borders: list[tuple[bool, bool]] = []
    in_cells = False
    for kind, body in records(pieces, limits):
        if kind == _FORMAT:
            formats[_u16(body, 0)] = format_of(text(body, 2)[0])
        elif kind == _FONT:
            fonts.append(Look(bold=_u16(body, 4) >= _BOLD, italic=bool(_u16(body, 2) & 2)))
        elif kind == _FILL:
            fills.append(u32(body, 0) not in (0, 17))  # none, and the pattern that is never shown
        elif kind == _BORDER:
            borders.append((_byte(body, 1) > 0, _byte(body, 11) > 0))
        elif kind in (_BEGIN_CELL_XFS, _END_CELL_XFS):
            in_cells = kind == _BEGIN_CELL_XFS
        elif kind == _XF and in_cells:
            number = _u16(body, 2)
            styles.add(number, formats, _look(body, fonts, fills, borders))
    return styles


def _look(body: bytes, fonts: list[Look], fills: list[bool], borders: list[tuple[bool, bool]]) -> Look:
    font, fill, border = _u16(body, 4), _u16(body, 6), _u16(body, 8)
    plain = fonts[font] if font < len(fonts) else Look()
    top, bottom = borders[border] if border < len(borders) else (False, False)
    return Look(
        bold=plain.bold,
        italic=plain.italic,
        filled=fill < len(fills) and fills[fill],
        border_top=top,
        border_bottom=bottom,
        indented=_byte(body, 11) > 0,
        centred=_byte(body, 12) & 7 in (2, 6),
    )


def _u16(body: bytes, at: int) -> int:
    return int.from_bytes(body[at : at + 2], "little")


def _byte(body: bytes, at: int) -> int:
    return body[at] if at < len(body) else 0
