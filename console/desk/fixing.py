"""rejects.xlsx as a grid that a browser edits: its rows as plain values, and the workbook with cells changed.

These functions run apart (infra/apart.py): what rejects.xlsx holds was written by a sender. Only the workbook that
runner/engine/verifying/rejects_book.py writes is read here, so rows and cells are found by their text. Whatever is not
edited stays as it was, and the same edits make the same bytes, so that a second click is the same drop.
"""

import csv
import io
import re
import zipfile
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta
from typing import Any, Final, NamedTuple
from xml.etree.ElementTree import fromstring
from xml.sax.saxutils import unescape

from runner.engine.common import a1
from runner.engine.reading import open_book
from runner.engine.reading.books import Value
from runner.engine.writing.parts import cell_text

LARGEST: Final = 16 * 1024 * 1024  # bytes of a workbook that is edited in a browser
MOST_ROWS: Final = 12_000  # that a browser gets; the others are corrected in the workbook
LONGEST_TEXT: Final = 32_767  # characters of a cell
_ADDED: Final = 2  # columns at the right that are not the sender's: what to do, and the key
_AROUND: Final = 50  # rows beside the edited ones that a check reads: they show what the columns are
_ROW: Final = re.compile(r'<row r="(\d+)"([^>]*)>(.*?)</row>', re.DOTALL)
_CELL: Final = re.compile(r'<c r="([A-Z]+)\d+"((?: s="\d+")?)[^>]*?(?:/>|>.*?</c>)', re.DOTALL)
_OFFER: Final = re.compile(r'<dataValidation [^>]*sqref="([A-Z]+)\d+:[^"]*"><formula1>(.*?)</formula1>', re.DOTALL)
_IS_DATA: Final = "ade: row "
_PLAIN_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,10})?")
_NAMES: Final = {"m": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}
_NO_DATE: Final = (1980, 1, 1, 0, 0, 0)


class Edit(NamedTuple):
    """One cell that somebody changed; rows and columns are those of rejects.xlsx, from 1."""

    sheet: int  # from 0
    row: int
    column: int
    text: str


def rejected_rows(path: str) -> dict[str, Any]:
    """What the grid shows: sheets with headers, rows, and lists of allowed values.

    A row: its number in rejects.xlsx, its cells, what is wrong by column, its number in the sender's file.
    """
    sheets, total, shown = [], 0, 0
    with zipfile.ZipFile(path) as archive, open_book(path, name="rejects.xlsx") as book:
        for number, sheet in enumerate(book.sheets):
            marks = _marks(archive, number)
            header: list[str] = []
            rows = []
            for row, values in sheet.rows():
                *cells, _, key = (_shown(value) for value in values)
                if not key.startswith(_IS_DATA):
                    header = cells if key.startswith("ade: key ") else header
                    continue
                total += 1
                if shown < MOST_ROWS:
                    shown += 1
                    rows.append([row, cells, marks.get(row, {}), int(key.rpartition("/")[2])])
            sheets.append({"name": sheet.name, "header": header, "rows": rows, "choices": _choices(archive, number)})
    return {"sheets": sheets, "rows": total, "shown": shown}


def with_edits(path: str, edits: Iterable[Edit]) -> bytes:
    """The workbook with these cells changed; raises LookupError for a cell that is not a sender's."""
    by_sheet = _by_sheet(path, edits)
    return _rewritten(path, lambda sheet, text: _edited(text, by_sheet.get(sheet, {})))


def edited_rows(path: str, edits: Iterable[Edit]) -> tuple[bytes, list[list[int]]]:
    """A small workbook for a check: the edited rows with some others, without our columns; and which row is which.

    The second: sheet, row there, row of rejects.xlsx.
    """
    by_sheet = _by_sheet(path, edits)
    places: list[list[int]] = []

    def cut(sheet: int, text: str) -> str:
        edited = by_sheet.get(sheet, {})
        lines: list[str] = []
        around = _AROUND
        for found in _ROW.finditer(_edited(text, edited)):
            row, is_data = int(found[1]), _IS_DATA in found[3]
            if is_data and row not in edited:
                if not around or not edited:
                    continue
                around -= 1
            lines.append(_moved(found, len(lines) + 1))
            if is_data:
                places.append([sheet, len(lines), row])
        head = text[: text.index("<sheetData>")]
        return f"{head}<sheetData>{''.join(lines)}</sheetData></worksheet>"

    return _rewritten(path, cut), places


def as_csv(path: str) -> bytes:
    """The rows of a workbook as CSV, for a workflow that takes no workbooks."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    with open_book(path, name="rejects.xlsx") as book:
        for sheet in book.sheets:
            writer.writerows([_shown(value) for value in values] for _, values in sheet.rows())
    return text.getvalue().encode()


def _by_sheet(path: str, edits: Iterable[Edit]) -> dict[int, dict[int, dict[int, str]]]:
    """Sheet -> row -> column -> the content of its new cell."""
    numeric, sheets = _numeric_columns(path)
    found: dict[int, dict[int, dict[int, str]]] = {}
    for edit in edits:
        if edit.sheet >= sheets:
            raise LookupError(f"rejects.xlsx has no sheet {edit.sheet}")
        content = _content(edit.text, is_numeric=(edit.sheet, edit.column) in numeric)
        found.setdefault(edit.sheet, {}).setdefault(edit.row, {})[edit.column] = content
    return found


def _numeric_columns(path: str) -> tuple[set[tuple[int, int]], int]:
    """Sheets and columns that hold numbers, and the number of sheets.

    A number that is typed in such a column is one, elsewhere it is a text.
    """
    found = set()
    with open_book(path, name="rejects.xlsx") as book:
        for number, sheet in enumerate(book.sheets):
            for _, values in sheet.rows():
                found |= {(number, n) for n, value in enumerate(values, 1) if type(value) in (int, float)}
        return found, len(book.sheets)


def _content(text: str, *, is_numeric: bool) -> str:
    """What a cell holds once somebody has typed a text: the end of its element."""
    if not text.strip():
        return "/>"
    if is_numeric and _PLAIN_NUMBER.fullmatch(text.strip()):
        return f"><v>{text.strip()}</v></c>"
    return f' t="inlineStr">{cell_text(text)}</c>'


def _edited(text: str, edits: dict[int, dict[int, str]]) -> str:
    """The text of a sheet with cells changed; raises LookupError for one that nobody may change."""
    left = dict(edits)

    def changed(found: re.Match[str]) -> str:
        cells = left.pop(int(found[1]), None)
        if cells is None:
            return found[0]
        if _IS_DATA not in found[3]:
            raise LookupError(f"row {found[1]} holds no record")
        return f'<row r="{found[1]}"{found[2]}>{_with_cells(found[3], int(found[1]), cells)}</row>'

    done = _ROW.sub(changed, text)
    if left:
        raise LookupError(f"rejects.xlsx has no row {min(left)}")
    return done


def _with_cells(row: str, number: int, cells: dict[int, str]) -> str:
    there = {a1.column_number(found[1]): (found[0], found[2]) for found in _CELL.finditer(row)}
    last = max(there) - _ADDED
    for column, content in cells.items():
        if not 1 <= column <= last:
            raise LookupError(f"rejects.xlsx has no column {column} to correct")
        style = there[column][1] if column in there else ""
        there[column] = (f'<c r="{a1.cell(number, column)}"{style}{content}', style)
    return "".join(element for _, (element, _) in sorted(there.items()))


def _moved(row: re.Match[str], number: int) -> str:
    """A row's element at another place, without our columns."""
    cells = list(_CELL.finditer(row[3]))[:-_ADDED]
    moved = "".join(cell[0].replace(f'r="{cell[1]}{row[1]}"', f'r="{cell[1]}{number}"', 1) for cell in cells)
    return f'<row r="{number}">{moved}</row>'


def _rewritten(path: str, change: Callable[[int, str], str]) -> bytes:
    """The workbook with the text of each sheet changed."""
    made = io.BytesIO()
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as target:
        for entry in archive.infolist():
            body = archive.read(entry)
            number = re.fullmatch(r"xl/worksheets/sheet(\d+)\.xml", entry.filename)
            if number is not None:
                body = change(int(number[1]) - 1, body.decode()).encode()
            target.writestr(zipfile.ZipInfo(entry.filename, _NO_DATE), body, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def _marks(archive: zipfile.ZipFile, sheet: int) -> dict[int, dict[int, str]]:
    """Row -> column (from 0) -> what is wrong there."""
    found: dict[int, dict[int, str]] = {}
    name = f"xl/comments{sheet + 1}.xml"
    if name in archive.namelist():
        for comment in fromstring(archive.read(name)).iterfind(".//m:comment", _NAMES):  # noqa: S314 - our own file, apart
            letters = comment.attrib["ref"].rstrip("0123456789")
            row = int(comment.attrib["ref"].removeprefix(letters))
            found.setdefault(row, {})[a1.column_number(letters) - 1] = "".join(comment.itertext())
    return found


def _choices(archive: zipfile.ZipFile, sheet: int) -> dict[int, list[str]]:
    """Column (from 0) -> the values that are allowed there, where the workbook offers them."""
    tail = archive.read(f"xl/worksheets/sheet{sheet + 1}.xml").decode().rpartition("</sheetData>")[2]
    return {
        a1.column_number(found[1]) - 1: unescape(found[2])[1:-1].replace('""', '"').split(",")
        for found in _OFFER.finditer(tail)
    }


def _shown(value: Value) -> str:
    """A cell as a person reads and types it."""
    match value:
        case None:
            return ""
        case bool():
            return "TRUE" if value else "FALSE"
        case datetime():
            return value.isoformat(sep=" ")
        case date() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
        case float():
            return repr(value).removesuffix(".0")
        case _:
            return str(value)
