"""The XML of a normalized workbook: escaped text, its few styles, small parts, and cells by column chunk.

A chunk of cells is assembled as one join over a zip of pieces (constants, row numbers and values), so that a column of
one type costs no Python code per cell. Mixed columns are formatted cell by cell.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any, Final, NamedTuple

from runner.engine.common import a1
from runner.engine.reading import CellError, NoCachedValue, Shown

MAX_TEXT: Final = 32_767  # UTF-16 units: a character beyond U+FFFF counts twice
_FORBIDDEN: Final = "\x00-\x08\x0b-\x1f\ufffe\uffff"  # not allowed in XML
_ESCAPE_LIKE = re.compile(f"_(?=x[0-9A-Fa-f]{{4}}[_{_FORBIDDEN}])")  # forbidden ones become "_x…", too
_FORBIDDEN_CHARACTERS = re.compile(f"[{_FORBIDDEN}]")
_TWO_UNITS = re.compile("[\U00010000-\U0010ffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SUSPECTS: Final = ("&", "<", ">")


def escaped(text: str) -> str:
    """Escape `text` as XML content. Characters that XML forbids are escaped as `_xHHHH_`, as in Excel."""
    if "_x" in text:
        text = _ESCAPE_LIKE.sub("_x005F_", text)
    if not text.isprintable():
        text = _FORBIDDEN_CHARACTERS.sub(lambda char: f"_x{ord(char[0]):04X}_", text)
        text = _SURROGATE.sub("\ufffd", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def attribute(text: str) -> str:
    """Return a text as the value of an XML attribute."""
    return escaped(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")


def cell_text(text: str) -> str:
    """Write a cell's text with its element."""
    if too_long(text):
        text = cut(text, MAX_TEXT)
    preserve = ' xml:space="preserve"' if text[:1].isspace() or text[-1:].isspace() or "\n" in text else ""
    return f"<is><t{preserve}>{escaped(text)}</t></is>"


def too_long(text: str) -> bool:
    """Whether a text exceeds the limit of a cell."""
    if 2 * len(text) <= MAX_TEXT or text.isascii():
        return len(text) > MAX_TEXT
    return len(text) + len(_TWO_UNITS.findall(text)) > MAX_TEXT


def cut(text: str, units: int) -> str:
    """Return the start of a text, at most `units` UTF-16 units, without splitting a character."""
    raw = text[:units].encode("utf-16-le", "surrogatepass")[: 2 * units]
    return raw.decode("utf-16-le", "ignore")


def need_no_escaping(texts: Sequence[str]) -> bool:
    """Whether no text needs escaping, cutting or preserved blanks: one check for a whole chunk."""
    joined = "|".join(texts)
    if not joined.isprintable() or joined[:1] == " " or joined[-1:] == " ":
        return False
    if any(suspect in joined for suspect in _SUSPECTS):
        return False
    if "_" in joined and "_x" in joined:  # searching one character first is many times faster
        return False
    if " " in joined and (" |" in joined or "| " in joined):
        return False
    if 2 * len(joined) <= MAX_TEXT:
        return True
    longest = max(map(len, texts))
    if joined.isascii() or 2 * longest <= MAX_TEXT:
        return longest <= MAX_TEXT
    return not any(map(too_long, texts))


HEADER: Final = 1
FORMATS: Final = {
    "text": "@",
    "email": "@",
    "phone": "@",
    "url": "@",
    "enum": "@",
    "integer": "0",
    "money": "#,##0.00",
    "percent": "0.00%",
    "date": "yyyy-mm-dd",
    "datetime": "yyyy-mm-dd hh:mm:ss",
    "time": "hh:mm:ss",
}
KIND_OF: Final[dict[str, type]] = {
    "integer": int,
    "decimal": float,
    "money": float,
    "percent": float,
    "date": date,
    "datetime": datetime,
    "time": time,
    "boolean": bool,
}
BUILT_IN: Final = {"0": 1, "0.00": 2, "#,##0": 3, "#,##0.00": 4, "0%": 9, "0.00%": 10, "@": 49}
_FIRST_OWN_FORMAT: Final = 164
DURATION: Final = "[h]:mm:ss"


class _AlikeCells(NamedTuple):
    """The texts of cells of one kind."""

    opening: str  # after the reference, the same in all cells
    contents: Iterable[str]  # of each cell
    closing: str


class StyleSheet:
    """Assigns style numbers to number formats."""

    def __init__(self, formats: Sequence[str] = ()) -> None:
        """`formats`: those that already have numbers, in order."""
        self._formats = list(formats)
        self.by_kind = {
            date: self.of(FORMATS["date"]),
            datetime: self.of(FORMATS["datetime"]),
            time: self.of(FORMATS["time"]),
            timedelta: self.of(DURATION),
        }

    def of(self, number_format: str | None) -> int:
        """Return the style of a number format, which is added if it is new; 0, the default, for none."""
        if not number_format or number_format == "General":
            return 0
        if number_format not in self._formats:
            self._formats.append(number_format)
        return self._formats.index(number_format) + 2

    def xml(self) -> str:
        """Write the styles part."""
        own_formats = [number_format for number_format in self._formats if number_format not in BUILT_IN]
        number_of = {
            number_format: BUILT_IN.get(number_format) or _FIRST_OWN_FORMAT + own_formats.index(number_format)
            for number_format in self._formats
        }
        formats = "".join(
            f'<numFmt numFmtId="{number_of[number_format]}" formatCode="{attribute(number_format)}"/>'
            for number_format in own_formats
        )
        plain = '<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
        header = (
            '<xf numFmtId="0" fontId="1" fillId="2" borderId="1" xfId="0" applyFont="1" applyFill="1" '
            'applyBorder="1" applyAlignment="1"><alignment vertical="center"/></xf>'
        )
        cells = "".join(
            f'<xf numFmtId="{number_of[code]}" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
            for code in self._formats
        )
        return (
            '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
            '<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
            + (f'<numFmts count="{len(own_formats)}">{formats}</numFmts>' if own_formats else "")
            + '<fonts count="2"><font><sz val="11"/><name val="Calibri"/><family val="2"/></font>'
            '<font><b/><sz val="11"/><color rgb="FFFFFFFF"/><name val="Calibri"/><family val="2"/></font></fonts>'
            '<fills count="3"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/>'
            '</fill><fill><patternFill patternType="solid"><fgColor rgb="FF1F3864"/><bgColor indexed="64"/>'
            "</patternFill></fill></fills>"
            '<borders count="2"><border><left/><right/><top/><bottom/><diagonal/></border><border><left/><right/><top/>'
            '<bottom style="thin"><color rgb="FF8EA9DB"/></bottom><diagonal/></border></borders>'
            '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
            f'<cellXfs count="{len(self._formats) + 2}">{plain}{header}{cells}</cellXfs>'
            '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
        )


_DAY_ZERO: Final = 693_594  # 1899-12-30
_MIDNIGHT_ZERO: Final = datetime(1899, 12, 30)  # noqa: DTZ001
_LEAP_DAY: Final = 60  # Excel counts a 29 February 1900, so earlier days are off by one
_ONE_DAY: Final = timedelta(days=1)
_MOST_SERIALS: Final = 50_000  # distinct dates of a column whose texts are in memory
MAX_EXACT: Final = 10**15
_INLINE: Final = '" t="inlineStr'
_NUMBERS: Final = {int, float}
_TRUTH: Final = {True: "1", False: "0"}
# What a row consists of: a text that is the same in all rows, or the texts of all rows.
Pieces = list[str | Iterable[str]]


def serial(value: Any) -> str:
    """Return the number, as text, that a spreadsheet stores for a date, time or duration: days since 1899-12-30."""
    kind = type(value)
    if kind is date:
        day = value.toordinal() - _DAY_ZERO
        return str(day if day > _LEAP_DAY else day - 1)
    if kind is datetime:
        gap = value.replace(tzinfo=None) - _MIDNIGHT_ZERO
        if gap.days <= _LEAP_DAY:
            gap -= _ONE_DAY
    elif kind is time:
        gap = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
    else:
        gap = value
    return repr(gap.days + (gap.seconds + gap.microseconds / 1e6) / 86_400)


def holdable(value: Any) -> bool:
    """Whether a cell can store the value: at most 15 digits, nothing before 1900, no negative time."""
    if type(value) in (date, datetime):
        return bool(value.year >= 1900)
    if type(value) is int:
        return -MAX_EXACT < value < MAX_EXACT
    if type(value) is Decimal:  # always a number that no float represents
        return False
    return type(value) is not timedelta or value >= timedelta()


def spelled(value: Any) -> str:
    """Return a value of any kind as text; where that fails, the name of its type in parentheses."""
    if isinstance(value, str):
        return str.__str__(value)
    try:
        return str(value)
    except Exception:  # noqa: BLE001  # a rule's own kind of value, or more digits than Python spells
        return f"({type(value).__name__})"


class Serials(dict[Any, str]):
    """Formats each distinct date once."""

    def __missing__(self, value: Any) -> str:
        if len(self) > _MOST_SERIALS:
            self.clear()
        text = self[value] = serial(value)
        return text


class CellFormatter:
    """Formats the chunks of one column."""

    def __init__(self, letters: str, style: int, kind: type | None, styles: dict[type, int]) -> None:
        """`kind`: of the values that have the column's `style`; `styles`: of values of other kinds."""
        self._letters = letters
        self._styles = dict(styles)
        if kind is not None:
            self._styles[kind] = style
            if kind is float:
                self._styles[int] = style
        self._serials = Serials()
        self.altered = 0  # cells that could not be written unchanged

    def pieces(self, values: list[Any], rows: list[str]) -> Pieces:
        """Return the column's pieces of some rows; none if all values are blank. `rows`: their numbers as texts."""
        kinds = set(map(type, values))
        has_blanks = type(None) in kinds
        kinds.discard(type(None))
        if not kinds:
            return []
        kind = float if kinds == _NUMBERS else next(iter(kinds))
        if len(kinds) == 1 or kinds == _NUMBERS:
            of_one_kind = self._pieces_of_one_kind(
                kind, [value for value in values if value is not None] if has_blanks else values
            )
            if of_one_kind is not None:
                opening_of_cell = f'<c r="{self._letters}'
                opening, text, closing = of_one_kind
                if self._styles.get(kind):
                    opening = f'" s="{self._styles[kind]}{opening}'
                if not has_blanks:
                    return [opening_of_cell, rows, opening, text, closing]
                texts_left = iter(text)
                return [
                    [
                        "" if value is None else f"{opening_of_cell}{row}{opening}{next(texts_left)}{closing}"
                        for value, row in zip(values, rows, strict=True)
                    ]
                ]
        return [[self._write_cell(value, row) for value, row in zip(values, rows, strict=True)]]

    def _pieces_of_one_kind(self, kind: type, values: list[Any]) -> _AlikeCells | None:
        """Return the texts of cells of one kind, none of them blank; None if one needs to be written by itself."""
        if kind is str:
            if need_no_escaping(values):
                return _AlikeCells(_INLINE + '"><is><t>', values, "</t></is></c>")
        elif kind is float or kind is int:
            if min(values) > -MAX_EXACT and max(values) < MAX_EXACT and isfinite(sum(values)):
                return _AlikeCells('"><v>', map(repr, values), "</v></c>")
        elif kind is bool:
            return _AlikeCells('" t="b"><v>', map(_TRUTH.__getitem__, values), "</v></c>")
        elif kind is date and min(values).year >= 1900:
            return _AlikeCells('"><v>', map(self._serials.__getitem__, values), "</v></c>")
        return None

    def _write_cell(self, value: Any, row: str) -> str:
        """Return the element of one cell, with its reference; empty for a blank. Counts it if it is altered."""
        if value is None:
            return ""
        kind = type(value)
        style = f' s="{self._styles[kind]}"' if self._styles.get(kind) else ""
        opening = f'<c r="{self._letters}{row}"{style}'
        if kind is str:
            self.altered += too_long(value)
            return f'{opening} t="inlineStr">{cell_text(value)}</c>' if value else ""
        if kind is Shown:
            return f'<c r="{self._letters}{row}" t="inlineStr">{cell_text(value.shown)}</c>'
        if kind is float:
            return f"{opening}><v>{value!r}</v></c>" if isfinite(value) else f'{opening} t="e"><v>#NUM!</v></c>'
        if kind is int and holdable(value):
            return f"{opening}><v>{value}</v></c>"
        if kind is bool:
            return f'{opening} t="b"><v>{int(value)}</v></c>'
        if kind in (date, datetime, time, timedelta) and holdable(value):
            return f"{opening}><v>{serial(value)}</v></c>"
        if kind is CellError:
            return f'{opening} t="e"><v>{escaped(value)}</v></c>'
        if kind is NoCachedValue:
            return ""
        self.altered += 1
        # Values that a spreadsheet cannot store become text: more than 15 digits, days before 1900.
        return f'<c r="{self._letters}{row}" t="inlineStr">{cell_text(spelled(value))}</c>'


_XML: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN_NAMESPACE: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATION: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006"
_OFFICE: Final = "http://schemas.openxmlformats.org/officeDocument/2006"
_TYPES: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml"
SHEET_TAIL: Final = (
    '<pageMargins left="0.7" right="0.7" top="0.75" bottom="0.75" header="0.3" footer="0.3"/></worksheet>'
)
_MOST_WIDTHS: Final = 1000  # as many widths fit into the fixed head; wider tables use the default


class SheetPart:
    """A sheet's entry in the workbook part."""

    __slots__ = ("filtered", "name")

    def __init__(self, name: str) -> None:
        """A sheet without a filter so far."""
        self.name = name
        self.filtered = ""  # the area of its filter as A1:C9


def sheet_head(widths: list[int], last_row: int, *, active: bool) -> str:
    """Write a sheet's part up to its rows; the widths are in characters."""
    last = f"{a1.letters(max(1, len(widths)))}{last_row}"
    cols = "".join(
        f'<col min="{number}" max="{number}" width="{width}" customWidth="1"/>'
        for number, width in enumerate(widths[:_MOST_WIDTHS], 1)
    )
    return (
        f'{_XML}<worksheet xmlns="{_MAIN_NAMESPACE}"><dimension ref="A1:{last}"/>'
        f'<sheetViews><sheetView {"tabSelected=" + chr(34) + "1" + chr(34) + " " if active else ""}workbookViewId="0">'
        '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>'
        '<selection pane="bottomLeft" activeCell="A2" sqref="A2"/></sheetView></sheetViews>'
        '<sheetFormatPr defaultRowHeight="15"/>' + (f"<cols>{cols}</cols>" if cols else "")
    )


def workbook(sheets: list[SheetPart]) -> str:
    """Write the workbook part: the sheets, and their filters as defined names."""
    sheet_elements = "".join(
        f'<sheet name="{attribute(sheet.name)}" sheetId="{number}" r:id="rId{number}"/>'
        for number, sheet in enumerate(sheets, 1)
    )
    names = "".join(
        f'<definedName name="_xlnm._FilterDatabase" localSheetId="{number}" hidden="1">'
        f"{escaped(_quoted(sheet.name))}!{_absolute(sheet.filtered)}</definedName>"
        for number, sheet in enumerate(sheets)
        if sheet.filtered
    )
    return (
        f'{_XML}<workbook xmlns="{_MAIN_NAMESPACE}" xmlns:r="{_RELATION}"><workbookPr defaultThemeVersion="124226"/>'
        f'<bookViews><workbookView xWindow="0" yWindow="0" windowWidth="24000" windowHeight="12000"/></bookViews>'
        f"<sheets>{sheet_elements}</sheets>{f'<definedNames>{names}</definedNames>' if names else ''}"
        '<calcPr calcId="124519"/></workbook>'
    )


def _quoted(name: str) -> str:
    """Return a sheet's name as references have it."""
    return "'" + name.replace("'", "''") + "'"


def _absolute(area: str) -> str:
    """Put dollar signs into an area: $A$1:$C$9."""

    def fixed(cell: str) -> str:
        column_letters = cell.rstrip("0123456789")
        return f"${column_letters}${cell[len(column_letters) :]}"

    first, _, last = area.partition(":")
    return f"{fixed(first)}:{fixed(last)}"


def workbook_rels(count: int) -> str:
    """Write the relations of the workbook part."""
    sheets = "".join(
        f'<Relationship Id="rId{number}" Type="{_RELATION}/worksheet" Target="worksheets/sheet{number}.xml"/>'
        for number in range(1, count + 1)
    )
    return (
        f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships">{sheets}'
        f'<Relationship Id="rId{count + 1}" Type="{_RELATION}/styles" Target="styles.xml"/></Relationships>'
    )


def root_rels() -> str:
    """Write the relations of the package."""
    return (
        f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{_RELATION}/officeDocument" Target="xl/workbook.xml"/>'
        f'<Relationship Id="rId2" Type="{_PACKAGE}/relationships/metadata/core-properties" '
        'Target="docProps/core.xml"/>'
        f'<Relationship Id="rId3" Type="{_RELATION}/extended-properties" Target="docProps/app.xml"/></Relationships>'
    )


def content_types(count: int) -> str:
    """Write the content types of all parts."""
    sheets = "".join(
        f'<Override PartName="/xl/worksheets/sheet{number}.xml" ContentType="{_TYPES}.worksheet+xml"/>'
        for number in range(1, count + 1)
    )
    return (
        f'{_XML}<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPES}.sheet.main+xml"/>{sheets}'
        f'<Override PartName="/xl/styles.xml" ContentType="{_TYPES}.styles+xml"/>'
        '<Override PartName="/docProps/core.xml" '
        'ContentType="application/vnd.openxmlformats-package.core-properties+xml"/>'
        '<Override PartName="/docProps/app.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.extended-properties+xml"/></Types>'
    )


def core(title: str) -> str:
    """Write the core properties: title and creator."""
    return (
        f'{_XML}<cp:coreProperties xmlns:cp="{_PACKAGE}/metadata/core-properties" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{escaped(title)}</dc:title><dc:creator>ade-drop</dc:creator></cp:coreProperties>"
    )


def app() -> str:
    """Return the extended properties."""
    return f'{_XML}<Properties xmlns="{_OFFICE}/extended-properties"><Application>ade-drop</Application></Properties>'
