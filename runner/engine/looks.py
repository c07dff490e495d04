"""How the sender's cells look: fonts, fills, borders and widths of an .xlsx, as plain values.

Only what a cell shows is read, and only from the parts that hold it. Formulas, links, pictures, macros and conditional
formats are never read, so they cannot reach `rejects.xlsx`.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final

from runner.engine.mending import MendedSheet
from runner.engine.reading import InputUnreadable, Sheet
from runner.engine.reading.containers import Entry
from runner.engine.reading.xlsx.markup import OoxmlPackage, column_number
from runner.engine.reading.xlsx.workbooks import Workbook, XlsxSheet

MAX_STYLES_BYTES: Final = 4 * 1024 * 1024  # a larger styles part is not read: rows get a plain look
MAX_SHEET_BYTES: Final = 96 * 1024 * 1024  # of markup that is searched for styles; rows below take their column's
Look = dict[str, Any]

_ROW = re.compile(rb"<row\b([^>]*[^/>])>(.*?)</row>", re.DOTALL)
_CELL = re.compile(rb'<c\b[^>]*?\br="([A-Z]{1,3})[0-9]+"[^>]*>')
_NUMBER = re.compile(rb'\br="([0-9]{1,7})"')
_STYLE = re.compile(rb'\bs="([0-9]{1,6})"')
_HEIGHT = re.compile(rb'\bht="([0-9.]{1,10})"')
_COLUMN = re.compile(rb"<col\b([^>]*)>")
_FROM, _TO = re.compile(rb'\bmin="([0-9]{1,5})"'), re.compile(rb'\bmax="([0-9]{1,5})"')
_WIDTH = re.compile(rb'\bwidth="([0-9.]{1,10})"')
_RGB = re.compile(r"(?:[0-9A-Fa-f]{2})?([0-9A-Fa-f]{6})")
_MOST_HEAD: Final = 1024 * 1024
_SIDES: Final = ("left", "right", "top", "bottom")
_THEME: Final = ("lt1", "dk1", "lt2", "dk2", *(f"accent{n}" for n in range(1, 7)), "hlink", "folHlink")
_INDEXED: Final = {8: "000000", 9: "FFFFFF", 10: "FF0000", 11: "00FF00", 12: "0000FF", 13: "FFFF00"}
_BUILT_IN: Final = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?", 13: "# ??/??",
    14: "m/d/yyyy", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm",
    21: "h:mm:ss", 22: "m/d/yyyy h:mm", 37: "#,##0 ;(#,##0)", 38: "#,##0 ;[Red](#,##0)", 39: "#,##0.00;(#,##0.00)",
    40: "#,##0.00;[Red](#,##0.00)", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mmss.0", 48: "##0.0E+0", 49: "@",
}  # fmt: skip


@dataclass
class SheetLooks:
    """What is known of one sheet; nothing where its format has no styles or it could not be read."""

    looks: list[Look] = field(default_factory=list)  # by style number
    cells: dict[tuple[int, int], int] = field(default_factory=dict)  # row and column -> style number
    columns: dict[int, int] = field(default_factory=dict)  # the style of a column's data, where a row has none
    widths: dict[int, float] = field(default_factory=dict)
    heights: dict[int, float] = field(default_factory=dict)

    def style(self, row: int, column: int) -> int | None:
        found = self.cells.get((row, column), self.columns.get(column) if row not in self.heights else None)
        return found if found is not None and found < len(self.looks) else None


def sheet_looks(sheet: Sheet, rows: Collection[int], first_data: int) -> SheetLooks:
    """The looks of some rows of a sheet. `first_data`: the row whose styles are used below the searched part."""
    sheet = sheet.inner if isinstance(sheet, MendedSheet) else sheet
    if not isinstance(sheet, XlsxSheet):
        return SheetLooks()
    found = SheetLooks()
    try:
        found.looks = _Styles(sheet.workbook).read()
        _search(sheet, frozenset(rows) | {first_data}, first_data, found)
    except (InputUnreadable, ValueError, ArithmeticError):
        return SheetLooks()  # whatever is odd about the styles, the rows themselves were read
    return found


def _search(sheet: XlsxSheet, rows: frozenset[int], first_data: int, found: SheetLooks) -> None:
    archive = sheet.workbook.package.archive
    entry = archive.find(sheet.part)
    if entry is None:
        return
    rest, seen, head, last = b"", 0, False, max(rows)
    for piece in archive.stream(entry):
        rest += piece
        seen += len(piece)
        if not head and (b"<sheetData" in rest or len(rest) > _MOST_HEAD):
            head = True
            _widths(rest[: rest.find(b"<sheetData")], found)
        cut = rest.rfind(b"</row>") + 6
        if cut > 5:
            if _rows(rest[:cut], rows, first_data, found) >= last:
                return
            rest = rest[cut:]
        if seen > MAX_SHEET_BYTES:
            return


def _widths(head: bytes, found: SheetLooks) -> None:
    for column in _COLUMN.findall(head):
        first, last, width = _FROM.search(column), _TO.search(column), _WIDTH.search(column)
        if first and last and width:
            for n in range(int(first[1]), min(int(last[1]), int(first[1]) + 1000, 16_384) + 1):
                found.widths[n] = min(255.0, float(width[1]))


def _rows(markup: bytes, rows: frozenset[int], first_data: int, found: SheetLooks) -> int:
    number = 0
    for attributes, cells in _ROW.findall(markup):
        named = _NUMBER.search(attributes)
        number = int(named[1]) if named else number + 1
        if number not in rows:
            continue
        if height := _HEIGHT.search(attributes):
            found.heights[number] = min(409.0, float(height[1]))
        for cell in _CELL.finditer(cells):
            if style := _STYLE.search(cell[0]):
                column = column_number(cell[1].decode())
                found.cells[number, column] = int(style[1])
                if number == first_data:
                    found.columns[column] = int(style[1])
    return number


class _Styles:
    """Reads the styles part of a workbook."""

    def __init__(self, workbook: Workbook) -> None:
        self._package: OoxmlPackage = workbook.package
        self._entry = workbook.package.related(workbook.relations, "styles") or workbook.package.archive.find(
            "xl/styles.xml"
        )
        self._theme = self._colours(workbook.package.related(workbook.relations, "theme"))
        self._path: list[str] = []
        self._formats: dict[int, str] = dict(_BUILT_IN)
        self._fonts: list[Look] = []
        self._fills: list[str | None] = []
        self._borders: list[Look] = []
        self._looks: list[Look] = []

    def read(self) -> list[Look]:
        if self._entry is None or self._entry.size > MAX_STYLES_BYTES:
            return []
        for event in self._package.events(self._entry):
            if event[0] == "start":
                self._path.append(event[1])
                self._start(event[1], event[2])
            else:
                self._path.pop()
        return self._looks

    def _colours(self, entry: Entry | None) -> list[str]:
        found = dict.fromkeys(_THEME, "")
        name = ""
        if entry is not None and entry.size <= MAX_STYLES_BYTES:
            for event in self._package.events(entry):
                if event[0] == "start" and event[1] in found:
                    name = event[1]
                elif event[0] == "start" and event[1] in ("srgbClr", "sysClr") and name:
                    value = _RGB.fullmatch(event[2].get("lastClr") or event[2].get("val") or "")
                    found[name] = value[1] if value else ""
                    name = ""
        return list(found.values())

    def _start(self, name: str, given: dict[str, str]) -> None:
        section = self._path[1] if len(self._path) > 1 else ""
        depth = len(self._path)
        if section == "numFmts" and name == "numFmt":
            self._formats[int(given.get("numFmtId", "0"))] = given.get("formatCode", "")
        elif section == "fonts":
            self._font(name, given, depth)
        elif section == "fills":
            self._fill(name, given, depth)
        elif section == "borders":
            self._border(name, given, depth)
        elif section == "cellXfs":
            self._cell(name, given)

    def _font(self, name: str, given: dict[str, str], depth: int) -> None:
        if depth == 3:
            self._fonts.append({})
        elif depth == 4 and self._fonts:
            font, value = self._fonts[-1], given.get("val")
            if name == "name" and value:
                font["name"] = value
            elif name == "sz" and value:
                font["size"] = float(value)
            elif name == "color" and (colour := self._colour(given)):
                font["color"] = colour
            elif name in ("b", "i", "u") and value not in ("0", "false", "none"):
                font[{"b": "bold", "i": "italic", "u": "underline"}[name]] = True

    def _fill(self, name: str, given: dict[str, str], depth: int) -> None:
        if depth == 3:
            self._fills.append(None)
        elif name == "patternFill" and self._fills:
            self._solid = given.get("patternType") == "solid"
        elif name == "fgColor" and self._fills and self._solid:
            self._fills[-1] = self._colour(given)

    def _border(self, name: str, given: dict[str, str], depth: int) -> None:
        if depth == 3:
            self._borders.append({})
        elif depth == 4 and name in _SIDES and given.get("style") and self._borders:
            self._borders[-1][name] = [given["style"], None]
        elif depth == 5 and name == "color" and self._borders and self._path[-2] in self._borders[-1]:
            self._borders[-1][self._path[-2]][1] = self._colour(given)

    def _cell(self, name: str, given: dict[str, str]) -> None:
        if name == "xf":
            look: Look = {}
            for key, kept, number in (
                ("font", self._fonts, "fontId"), ("fill", self._fills, "fillId"), ("border", self._borders, "borderId"),
            ):  # fmt: skip
                at = int(given.get(number, "0"))
                if at < len(kept) and kept[at]:
                    look[key] = kept[at]
            if format_code := self._formats.get(int(given.get("numFmtId", "0"))):
                look["format"] = format_code
            self._looks.append(look)
        elif name == "alignment" and self._looks:
            found = {"h": given.get("horizontal"), "v": given.get("vertical")}
            align: Look = {k: v for k, v in found.items() if v}
            if given.get("wrapText") in ("1", "true"):
                align["wrap"] = True
            if align:
                self._looks[-1]["align"] = align

    def _colour(self, given: dict[str, str]) -> str | None:
        if (rgb := _RGB.fullmatch(given.get("rgb", ""))) is not None:
            return rgb[1].upper()
        if given.get("theme", "").isdecimal() and int(given["theme"]) < len(self._theme):
            base = self._theme[int(given["theme"])]
            return tinted(base, float(given.get("tint", "0"))) if base else None
        return _INDEXED.get(int(given["indexed"])) if given.get("indexed", "").isdecimal() else None


def tinted(colour: str, tint: float) -> str:
    """A colour of the theme, lighter or darker by a share of what is left to white or to black."""
    parts = [int(colour[n : n + 2], 16) for n in (0, 2, 4)]
    tint = max(-1.0, min(1.0, tint))
    made = [p * (1 + tint) if tint < 0 else p + (255 - p) * tint for p in parts]
    return "".join(f"{round(p):02X}" for p in made)
