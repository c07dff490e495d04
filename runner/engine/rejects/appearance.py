"""How the sender's cells look: fonts, fills, borders and widths of an .xlsx, as plain values.

Only what a cell shows is read, and only from the parts that hold it. Formulas, links, pictures, macros and conditional
formats are never read, so they cannot reach `rejects.xlsx`.
"""

import re
from array import array
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final

from runner.engine.common.a1 import column_number
from runner.engine.corrections.corrected import CorrectedSheet
from runner.engine.reading import InputUnreadable, Sheet
from runner.engine.reading.containers import Entry
from runner.engine.reading.xlsx.markup import OoxmlPackage
from runner.engine.reading.xlsx.workbooks import Workbook, XlsxSheet

MAX_STYLES_BYTES: Final = 4 * 1024 * 1024  # a larger styles part is not read: rows get a plain look
MAX_SHEET_BYTES: Final = 96 * 1024 * 1024  # of markup that is searched for styles; rows below look like the first one
MAX_CELLS: Final = 4_000_000  # whose styles are kept
Appearance = dict[str, Any]

_ROW = re.compile(rb"<row\b([^<>]{0,2000})(?<!/)>(.*?)</row>", re.DOTALL)
_CELL = re.compile(rb'<c\b[^<>]{0,200}?\br="([A-Z]{1,3})[0-9]{1,7}"[^<>]{0,200}>')
_NUMBER = re.compile(rb'\br="([0-9]{1,7})"')
_STYLE = re.compile(rb'\bs="([0-9]{1,6})"')
_HEIGHT = re.compile(rb'\bht="([0-9.]{1,10})"')
_COLUMN = re.compile(rb"<col\b([^<>]{0,500})>")
_VIEW = re.compile(rb"<sheetView\b([^<>]{0,1000})>")
_SHEET_FORMAT = re.compile(rb"<sheetFormatPr\b([^<>]{0,1000})>")
_RIGHT_TO_LEFT, _NO_GRID = re.compile(rb'\brightToLeft="(?:1|true)"'), re.compile(rb'\bshowGridLines="(?:0|false)"')
_ZOOM = re.compile(rb'\bzoomScale="([0-9]{2,3})"')
_PLAIN_WIDTH = re.compile(rb'\bdefaultColWidth="([0-9.]{1,10})"')
_FIRST_COLUMN, _LAST_COLUMN = re.compile(rb'\bmin="([0-9]{1,5})"'), re.compile(rb'\bmax="([0-9]{1,5})"')
_WIDTH = re.compile(rb'\bwidth="([0-9.]{1,10})"')
_RGB = re.compile(r"(?:[0-9A-Fa-f]{2})?([0-9A-Fa-f]{6})")
_SEEN_HEIGHT: Final = 3.0  # a row that is lower is as good as hidden
_HIGHEST: Final = 409.0  # points; spreadsheet programs allow no more
_WIDEST: Final = 255.0  # characters, likewise
_LAST_OF_SHEET: Final = 16_384  # columns, likewise
_MOST_ALIKE: Final = 1000  # columns that one element describes
_MOST_HEAD_BYTES: Final = 1024 * 1024
_ITEM_DEPTH: Final = 3  # of a font, fill or border in the styles part: styleSheet, fonts, font
_FONT_MARKS: Final = {"b": "bold", "i": "italic", "u": "underline", "strike": "struck"}
_SIDES: Final = ("left", "right", "top", "bottom")
_THEME_COLOURS: Final = ("lt1", "dk1", "lt2", "dk2", *(f"accent{n}" for n in range(1, 7)), "hlink", "folHlink")
_PALETTE: Final = (  # the colours that numbers from 8 on mean
    "000000", "FFFFFF", "FF0000", "00FF00", "0000FF", "FFFF00", "FF00FF", "00FFFF", "800000", "008000", "000080",
    "808000", "800080", "008080", "C0C0C0", "808080", "9999FF", "993366", "FFFFCC", "CCFFFF", "660066", "FF8080",
    "0066CC", "CCCCFF", "000080", "FF00FF", "FFFF00", "00FFFF", "800080", "800000", "008080", "0000FF", "00CCFF",
    "CCFFFF", "CCFFCC", "FFFF99", "99CCFF", "FF99CC", "CC99FF", "FFCC99", "3366FF", "33CCCC", "99CC00", "FFCC00",
    "FF9900", "FF6600", "666699", "969696", "003366", "339966", "003300", "333300", "993300", "993366", "333399",
    "333333",
)  # fmt: skip
_BUILT_IN: Final = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?", 13: "# ??/??",
    14: "m/d/yyyy", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm",
    21: "h:mm:ss", 22: "m/d/yyyy h:mm", 37: "#,##0 ;(#,##0)", 38: "#,##0 ;[Red](#,##0)", 39: "#,##0.00;(#,##0.00)",
    40: "#,##0.00;[Red](#,##0.00)", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mmss.0", 48: "##0.0E+0", 49: "@",
}  # fmt: skip


@dataclass
class SheetAppearance:
    """What is known of one sheet; nothing where its format has no styles or it could not be read."""

    appearances: list[Appearance] = field(default_factory=list)  # by style number
    rows: dict[int, "array[int]"] = field(default_factory=dict)  # row -> the styles of its cells from column A
    columns: dict[int, int] = field(default_factory=dict)  # the style of a column's cells that are not stored
    first: list[Appearance | None] = field(default_factory=list)  # those of the first row of data
    searched: int = 0  # the last row that was searched
    widths: dict[int, float] = field(default_factory=dict)
    heights: dict[int, float] = field(default_factory=dict)
    view: dict[str, Any] = field(default_factory=dict)  # how the sheet as a whole is shown

    def of(self, row: int, column: int) -> Appearance | None:
        """Return the look of a cell (from 1), or None if it is not known; one that is not stored has its column's."""
        styles = self.rows.get(row, ())
        style = styles[column - 1] if column <= len(styles) else -1
        return self._appearance_of_style(style if style >= 0 else self.columns.get(column, -1))

    def of_unsearched(self, row: int, column: int) -> Appearance | None:
        """Return the look of a cell below the part that was searched: that of the first row of data; None for other
        cells."""
        return self.first[column - 1] if row > self.searched and column <= len(self.first) else None

    def _appearance_of_style(self, style: int) -> Appearance | None:
        """Return the look of a style by its number; None if there is none."""
        return self.appearances[style] if 0 <= style < len(self.appearances) else None


def sheet_appearance(sheet: Sheet, rows: Collection[int], first_data: int) -> SheetAppearance:
    """Read the looks of some rows of a sheet; empty for a sheet without styles, or with some that cannot be read.

    `first_data`: the row like which those below the searched part look.
    """
    sheet = sheet.inner if isinstance(sheet, CorrectedSheet) else sheet
    if not isinstance(sheet, XlsxSheet):
        return SheetAppearance()
    known = SheetAppearance()
    try:
        known.appearances = _Styles(sheet.workbook).read()
        _search_styles(sheet, frozenset(rows) | {first_data}, known)
    except (InputUnreadable, ValueError, ArithmeticError):
        return SheetAppearance()  # whatever is odd about the styles, the rows themselves were read
    for column in range(1, len(known.rows.get(first_data, ())) + 1):
        appearance = known.of(first_data, column)  # its fill may be a mark of its own
        known.first.append(appearance and {name: part for name, part in appearance.items() if name != "fill"})
    return known


def _search_styles(sheet: XlsxSheet, rows: frozenset[int], known: SheetAppearance) -> None:
    """Search a sheet's part for the styles of some rows, and add what it shows to `known`; stops early if the part is
    too large, or has too many cells."""
    archive = sheet.workbook.package.archive
    entry = archive.find(sheet.part)
    if entry is None:
        return
    pieces: list[bytes] = []
    bytes_read, cells_left, is_head_read, last_row = 0, MAX_CELLS, False, max(rows)
    for piece in archive.stream(entry):
        pieces.append(piece)
        bytes_read += len(piece)
        if not is_head_read and (b"<sheetData" in piece or b"<row" in piece or bytes_read > _MOST_HEAD_BYTES):
            is_head_read = True
            _read_head(b"".join(pieces).partition(b"<sheetData")[0], known)
        if b"</row>" in piece:
            markup = b"".join(pieces)
            end_of_rows = markup.rfind(b"</row>") + 6
            cells_left -= _read_rows(markup[:end_of_rows], rows, known, cells_left)
            pieces = [markup[end_of_rows:]]
            if known.searched >= last_row or cells_left <= 0:
                return
        if bytes_read > MAX_SHEET_BYTES:
            return


def _read_head(head: bytes, known: SheetAppearance) -> None:
    """Add the widths and styles of columns, and how the sheet is shown, to `known`."""
    for column_attributes in _COLUMN.findall(head):
        first, last = _number_in(_FIRST_COLUMN, column_attributes), _number_in(_LAST_COLUMN, column_attributes)
        width, style = _number_in(_WIDTH, column_attributes), _number_in(_STYLE, column_attributes)
        if first is None or last is None:
            continue
        for number in range(int(first), min(int(last), int(first) + _MOST_ALIKE, _LAST_OF_SHEET) + 1):
            if width is not None:
                known.widths[number] = min(_WIDEST, width)
            if style is not None:
                known.columns[number] = int(style)
    view, plain = _VIEW.search(head), _SHEET_FORMAT.search(head)
    if view:
        zoom = _number_in(_ZOOM, view[1])
        known.view |= {"turned": True} if _RIGHT_TO_LEFT.search(view[1]) else {}
        known.view |= {"grid": False} if _NO_GRID.search(view[1]) else {}
        known.view |= {"zoom": max(10, min(400, int(zoom)))} if zoom is not None else {}
    if plain and (plain_width := _number_in(_PLAIN_WIDTH, plain[1])) is not None:
        known.view["width"] = min(_WIDEST, plain_width)


def _number_in(pattern: re.Pattern[bytes], attributes: bytes) -> float | None:
    """Return the number that a pattern finds among attributes; None if it finds none."""
    match = pattern.search(attributes)
    return None if match is None else float(match[1])


def _read_rows(markup: bytes, rows: frozenset[int], known: SheetAppearance, room: int) -> int:
    """Add the styles of rows to `known` while there is room for their cells; returns how many cells those are."""
    count = 0
    for attributes, cells in _ROW.findall(markup):
        if count >= room:
            break
        row_number = _NUMBER.search(attributes)
        number = known.searched = int(row_number[1]) if row_number else known.searched + 1
        if number not in rows:
            continue
        if (height := _number_in(_HEIGHT, attributes)) is not None and height >= _SEEN_HEIGHT:
            known.heights[number] = min(_HIGHEST, height)
        styles = known.rows[number] = array("i")
        for cell in _CELL.finditer(cells):
            column, style = column_number(cell[1].decode()), _STYLE.search(cell[0])
            if len(styles) < column <= _LAST_OF_SHEET:
                styles.extend([-1] * (column - len(styles)))
                styles[-1] = int(style[1]) if style else 0
        count += len(styles)
    return count


class _Styles:
    """Reads the styles part of a workbook."""

    def __init__(self, workbook: Workbook) -> None:
        """Find the styles part of a workbook, and read the colours of its theme."""
        self._package: OoxmlPackage = workbook.package
        self._entry = workbook.package.related(workbook.relations, "styles") or workbook.package.archive.find(
            "xl/styles.xml"
        )
        self._theme = self._read_theme(workbook.package.related(workbook.relations, "theme"))
        self._open_elements: list[str] = []
        self._formats: dict[int, str] = dict(_BUILT_IN)
        self._fonts: list[Appearance] = []
        self._fills: list[str | None] = []
        self._borders: list[Appearance] = []
        self._appearances: list[Appearance] = []

    def read(self) -> list[Appearance]:
        """Return the looks of all cell styles, by their number; empty if the part is not there or too large."""
        if self._entry is None or self._entry.size > MAX_STYLES_BYTES:
            return []
        for event in self._package.events(self._entry):
            if event[0] == "start":
                self._open_elements.append(event[1])
                self._read_element(event[1], event[2])
            else:
                self._open_elements.pop()
        return self._appearances

    def _read_theme(self, entry: Entry | None) -> list[str]:
        """Return the colours of the theme, in the order in which styles number them; empty for an unknown one."""
        colours = dict.fromkeys(_THEME_COLOURS, "")
        name = ""
        if entry is not None and entry.size <= MAX_STYLES_BYTES:
            for event in self._package.events(entry):
                if event[0] == "start" and event[1] in colours:
                    name = event[1]
                elif event[0] == "start" and event[1] in ("srgbClr", "sysClr") and name:
                    value = _RGB.fullmatch(event[2].get("lastClr") or event[2].get("val") or "")
                    colours[name] = value[1] if value else ""
                    name = ""
        return list(colours.values())

    def _read_element(self, name: str, attributes: dict[str, str]) -> None:
        """Add what an element of the styles part says to the fonts, fills, borders and cell styles so far."""
        section = self._open_elements[1] if len(self._open_elements) > 1 else ""
        depth = len(self._open_elements)
        if section == "numFmts" and name == "numFmt":
            self._formats[int(attributes.get("numFmtId", "0"))] = attributes.get("formatCode", "")
        elif section == "fonts":
            self._read_font(name, attributes, depth)
        elif section == "fills":
            self._read_fill(name, attributes, depth)
        elif section == "borders":
            self._read_border(name, attributes, depth)
        elif section == "cellXfs":
            self._read_cell_style(name, attributes)

    def _read_font(self, name: str, attributes: dict[str, str], depth: int) -> None:
        """Start a font, or set a property of the last one; `depth`: of the element in the part."""
        if depth == _ITEM_DEPTH:
            self._fonts.append({})
        elif depth == _ITEM_DEPTH + 1 and self._fonts:
            font, value = self._fonts[-1], attributes.get("val")
            if name == "name" and value:
                font["name"] = value
            elif name == "sz" and value and 1 <= float(value) <= 409:  # no infinite one either
                font["size"] = float(value)
            elif name == "color" and (colour := self._resolve_colour(attributes)):
                font["color"] = colour
            elif name in _FONT_MARKS and value not in ("0", "false", "none"):
                font[_FONT_MARKS[name]] = True

    def _read_fill(self, name: str, attributes: dict[str, str], depth: int) -> None:
        """Start a fill, or set the colour of the last one if it is solid; `depth`: of the element in the part."""
        if depth == _ITEM_DEPTH:
            self._fills.append(None)
        elif name == "patternFill" and self._fills:
            self._solid = attributes.get("patternType") == "solid"
        elif name == "fgColor" and self._fills and self._solid:
            self._fills[-1] = self._resolve_colour(attributes)

    def _read_border(self, name: str, attributes: dict[str, str], depth: int) -> None:
        """Start a border, or set a side of the last one or its colour; `depth`: of the element in the part."""
        if depth == _ITEM_DEPTH:
            self._borders.append({})
        elif depth == _ITEM_DEPTH + 1 and name in _SIDES and attributes.get("style") and self._borders:
            self._borders[-1][name] = [attributes["style"], None]
        elif (
            depth == _ITEM_DEPTH + 2
            and name == "color"
            and self._borders
            and self._open_elements[-2] in self._borders[-1]
        ):
            self._borders[-1][self._open_elements[-2]][1] = self._resolve_colour(attributes)

    def _read_cell_style(self, name: str, attributes: dict[str, str]) -> None:
        """Start the look of a cell style, or set the alignment of the last one."""
        if name == "xf":
            appearance: Appearance = {}
            for key, parts, number in (
                ("font", self._fonts, "fontId"), ("fill", self._fills, "fillId"), ("border", self._borders, "borderId"),
            ):  # fmt: skip
                index = int(attributes.get(number, "0"))
                if index < len(parts) and parts[index]:
                    appearance[key] = parts[index]
            if format_code := self._formats.get(int(attributes.get("numFmtId", "0"))):
                appearance["format"] = format_code
            self._appearances.append(appearance)
        elif name == "alignment" and self._appearances:
            directions = {"h": attributes.get("horizontal"), "v": attributes.get("vertical")}
            align: Appearance = {k: v for k, v in directions.items() if v}
            if attributes.get("wrapText") in ("1", "true"):
                align["wrap"] = True
            for key, number in (("indent", "indent"), ("turn", "textRotation")):
                if attributes.get(number, "0").isdecimal() and (degrees := int(attributes.get(number, "0"))):
                    align[key] = degrees
            if align:
                self._appearances[-1]["align"] = align

    def _resolve_colour(self, attributes: dict[str, str]) -> str | None:
        """Return the colour that attributes name, as RRGGBB; None if it is the default."""
        if (rgb := _RGB.fullmatch(attributes.get("rgb", ""))) is not None:
            return rgb[1].upper()
        if attributes.get("theme", "").isdecimal() and int(attributes["theme"]) < len(self._theme):
            base = self._theme[int(attributes["theme"])]
            return tinted(base, float(attributes.get("tint", "0"))) if base else None
        palette_number = int(attributes["indexed"]) if attributes.get("indexed", "").isdecimal() else 64
        return _PALETTE[palette_number if palette_number < 8 else palette_number - 8] if palette_number < 64 else None


def tinted(colour: str, tint: float) -> str:
    """Make a colour (RRGGBB) lighter, or for a `tint` below 0 darker, by a share of what is left to white or black."""
    parts = [int(colour[start : start + 2], 16) for start in (0, 2, 4)]
    tint = max(-1.0, min(1.0, tint))
    tinted_parts = [part * (1 + tint) if tint < 0 else part + (255 - part) * tint for part in parts]
    return "".join(f"{round(part):02X}" for part in tinted_parts)
