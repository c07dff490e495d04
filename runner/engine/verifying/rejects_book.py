"""rejects.xlsx, made from the box's description of it: the sender's own rows, marked, and nothing but values.

What the box says is checked line by line, and the workbook holds only what this module can write: texts,
numbers, dates, plain looks, comments. Formulas, links, macros, pictures, pivot tables and their caches, validations,
conditional formats, names and hidden sheets of the sender's workbook are in no part of the description.
"""

import json
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from math import isfinite
from typing import IO, Any, Final, NamedTuple, Protocol

from runner.engine.common import a1
from runner.engine.corrections.corrected import KINDS, TO_DO, make_key
from runner.engine.protocol import BadOutput
from runner.engine.reading.books import ERROR_CODES
from runner.engine.reading.number_formats import NumberKind, kind_of_format
from runner.engine.verifying.cell_styles import CellStyles, checked_appearance
from runner.engine.writing import parts
from runner.engine.writing.book import MAX_COLUMNS, MAX_ROWS, BookWriter, EntryWriter
from runner.engine.writing.parts import cell_text, cut, escaped

MAX_LINE: Final = 64 * 1024 * 1024
MAX_COMMENTS: Final = 10_000  # of a sheet; further cells are only marked
_MAX_STYLES: Final = 20_000
_MOST_FROZEN: Final = 12  # rows at the top that stay in sight
_TALLEST: Final = 409.0
_TO_DO_WIDTH: Final = 60
_LONGEST_COMMENT: Final = 1_000
_COMMENT_WIDTH: Final = 36  # characters of a line of a comment
_MAX_TEXT: Final = 32_767
_MAIN: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_REL: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACK: Final = "http://schemas.openxmlformats.org/package/2006/relationships"
_XML: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_WRONG_FILL: Final = "FFC7CE"
_WRONG_TEXT: Final = "9C0006"  # readable on it, whatever colour the sender's text had
_TO_DO_FILL: Final = "FFF2CC"
_GREY: Final = "8A94A0"
_HEAD_APPEARANCE: Final[dict[str, Any]] = {"font": {"bold": True}, "fill": "E7E6E6"}
_TO_DO_HEAD_APPEARANCE: Final[dict[str, Any]] = {"font": {"bold": True}, "fill": _TO_DO_FILL}
_TO_DO_APPEARANCE: Final[dict[str, Any]] = {"fill": _TO_DO_FILL, "align": {"v": "top", "wrap": True}}
_KEY_APPEARANCE: Final[dict[str, Any]] = {"font": {"color": _GREY, "size": 8.0}}
_INSTRUCTIONS: Final = (
    "Correct the red cells, save the file and drop it where the first one was dropped. "
    "Leave the headers and the last column as they are."
)
_LONGEST_LIST: Final = 255  # characters of a list of allowed values that a cell offers
_FORMAT_BY_TYPE: Final = {
    bool: '"TRUE";"TRUE";"FALSE"',  # else LibreOffice shows and saves 1 and 0
    date: "yyyy-mm-dd",
    datetime: "yyyy-mm-dd hh:mm:ss",
    time: "hh:mm:ss",
    timedelta: "[h]:mm:ss",
}
_FORMAT_KINDS: Final = {  # the kinds of formats in which a value stays what it is
    int: (NumberKind.NUMBER, NumberKind.SHOWN),
    float: (NumberKind.NUMBER, NumberKind.SHOWN),
    date: (NumberKind.DATE, NumberKind.DATETIME),
    datetime: (NumberKind.DATE, NumberKind.DATETIME),
    time: (NumberKind.TIME, NumberKind.DATETIME),
    timedelta: (NumberKind.DURATION,),
}


class RowExists(Protocol):
    """Says whether a job has a row of a kind, by the numbers of its input, sheet and row."""

    def __call__(self, kind: str, input_number: int, index: int, row: int, /) -> bool: ...


class _DescribedCell(NamedTuple):
    """A cell of a described row, checked."""

    column: int  # from 1
    value: Any
    appearance: int | None  # the number of its look


class _Comment(NamedTuple):
    """A comment on a cell of rejects.xlsx."""

    row: int
    column: int
    text: str


def write_rejects(
    described: IO[bytes],
    file: IO[bytes],
    *,
    job: str,
    title: str,
    exists: RowExists = lambda *_: True,
) -> int:
    """Write the workbook, and return the number of rows in it. Raises BadOutput. Nothing described, nothing written.

    Rows have keys that are made of `job` and the numbers that `exists` gets.
    """
    book: RejectsBook | None = None
    sheet: _Sheet | None = None
    for line in _read_lines(described):
        if book is None:
            book = RejectsBook(file, title=title)
        if "style" in line:
            book.appearances.append(checked_appearance(line["style"]))
            if len(book.appearances) > _MAX_STYLES:
                raise BadOutput("rejects.jsonl has too many styles")
        elif "sheet" in line:
            if sheet is not None:
                sheet.close()
            sheet = _Sheet(book, line, job, exists)
        elif "row" in line and sheet is not None:
            sheet.write(line)
        elif sheet is not None and ("merged" in line or "choices" in line):
            sheet.merge(line.get("merged", []))
            sheet.offer(line.get("choices", []))
        elif line.get("end") is True and sheet is not None:
            if line.get("rows") != book.rows or described.read(1):
                raise BadOutput("rejects.jsonl counts other rows than it has, or goes on after its end")
            sheet.close()
            book.close()
            return book.rows
        else:
            raise BadOutput("rejects.jsonl has a line that is not ours")
    if book is not None:
        raise BadOutput("rejects.jsonl has no end")
    return 0


def _read_lines(described: IO[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the lines of the description, each an object; raises BadOutput."""
    while raw := described.readline(MAX_LINE):
        if not raw.endswith(b"\n"):
            raise BadOutput("rejects.jsonl has a line without an end")
        try:
            line = json.loads(raw)
            if b"\\u" in raw:
                json.dumps(line, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            raise BadOutput("rejects.jsonl is not JSON") from None
        if not isinstance(line, dict):
            raise BadOutput("rejects.jsonl has a line that is not ours")
        yield line


# A text that begins so becomes a formula once its cell is edited, unless it is quoted.
_FORMULA_SIGNS: Final = ("=", "+", "-", "@")


class RejectsBook(BookWriter):
    """The workbook: sheets of marked rows, with comments."""

    def __init__(self, file: IO[bytes], *, title: str) -> None:
        """Begin a workbook in a file; `title`: in its properties."""
        super().__init__(file, title=title)
        self.appearances: list[dict[str, Any]] = []
        self.cells = CellStyles()
        self.rows = 0  # that have to be corrected
        self.commented: list[int] = []  # the numbers of sheets with comments
        self._styles: dict[tuple[int | None, type, bool, bool, bool], int] = {}

    def style(self, number: int | None, value: Any, *, is_head: bool, is_wrong: bool) -> int:
        """Return the number of the style of a cell with a value; `number`: of the described look, None if it has none.

        `is_head`: in a row above the records. `is_wrong`: it has to be corrected.
        """
        kind = type(value)
        is_quoted = kind is str and value.startswith(_FORMULA_SIGNS)
        style_key = number, kind, is_head, is_wrong, is_quoted
        if style_key not in self._styles:
            usual = _HEAD_APPEARANCE if is_head else {}
            appearance = usual if number is None else self.appearances[number]
            if is_wrong:
                appearance = {
                    **appearance,
                    "fill": _WRONG_FILL,
                    "font": {**appearance.get("font", {}), "color": _WRONG_TEXT},
                }
            code = appearance.get("format")
            if kind in _FORMAT_BY_TYPE and code is None:
                appearance = {**appearance, "format": _FORMAT_BY_TYPE[kind]}
            elif kind in _FORMAT_KINDS and code is not None and kind_of_format(code) not in _FORMAT_KINDS[kind]:
                appearance = {
                    **appearance,
                    "format": _FORMAT_BY_TYPE.get(kind, "General"),
                }  # it would come back as something else
            self._styles[style_key] = self.cells.of({**appearance, "quoted": True} if is_quoted else appearance)
        return self._styles[style_key]

    def close(self) -> None:
        """Write the small parts, with the content types of comments."""
        put, count = self.archive.put, len(self._sheets)
        put("xl/workbook.xml", parts.workbook(self._sheets))
        put("xl/_rels/workbook.xml.rels", parts.workbook_rels(count))
        put("xl/styles.xml", self.cells.xml())
        put("docProps/core.xml", parts.core(self._title))
        put("docProps/app.xml", parts.app())
        put("_rels/.rels", parts.root_rels())
        more = '<Default Extension="vml" ContentType="application/vnd.openxmlformats-officedocument.vmlDrawing"/>'
        more += "".join(
            f'<Override PartName="/xl/comments{number}.xml" '
            'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.comments+xml"/>'
            for number in self.commented
        )
        put("[Content_Types].xml", parts.content_types(count).replace("</Types>", f"{more}</Types>"))
        self.archive.close()


class _Sheet:
    """One sheet, written as its lines come."""

    def __init__(self, book: RejectsBook, line: dict[str, Any], job: str, exists: RowExists) -> None:
        """Check the description of a sheet, and write the sheet up to its rows; raises BadOutput."""
        self._book = book
        self._exists = exists
        self._job = job
        self._input, self._index = (
            _check_whole(line.get("input"), 0, 99_999),
            _check_whole(line.get("index"), 0, 99_999),
        )
        self._columns = _check_whole(line.get("columns"), 1, MAX_COLUMNS - 2)
        name = line["sheet"]
        if not isinstance(name, str):
            raise BadOutput("rejects.jsonl has a sheet without a name")
        self._number, _ = book.open_part(cut(name, 200))
        self._row = 0  # the open one of this sheet
        self._last_source_row = 0
        self._first_data_row = 0  # of this sheet; 0: none yet
        self._head_rows: dict[int, int] = {}  # of this sheet, by the row of the source
        self._merged: list[str] = []
        self._validations: list[str] = []
        self._comments: list[_Comment] = []
        self._entry: EntryWriter = book.archive.entry(f"xl/worksheets/sheet{self._number}.xml")
        self._write_head(line)
        if line.get("headless") is True:
            self._write_label_row()

    def _write_head(self, line: dict[str, Any]) -> None:
        """Write the sheet up to its rows: view, widths, frozen panes; raises BadOutput."""
        down, across = (_check_whole(line.get(name, 0), 0, _MOST_FROZEN) for name in ("frozen", "across"))
        hidden = {_check_whole(number, 1, self._columns) for number in _check_list(line.get("hidden", []))}
        added = {self._columns + 1: float(_TO_DO_WIDTH), self._columns + 2: 12.0}
        widths = dict.fromkeys(hidden, 9.0) | _check_widths(line.get("widths")) | added
        cols = "".join(
            f'<col min="{number}" max="{number}" width="{width:.2f}" customWidth="1"'
            + (' hidden="1"/>' if number in hidden else "/>")
            for number, width in sorted(widths.items())
        )
        view = line.get("view", {})
        if not isinstance(view, dict):
            raise BadOutput("rejects.jsonl has a sheet with an invalid view")
        view_attributes = ' tabSelected="1"' if self._number == 1 else ""
        view_attributes += ' showGridLines="0"' if view.get("grid") is False else ""
        view_attributes += ' rightToLeft="1"' if view.get("turned") is True else ""
        view_attributes += f' zoomScale="{_check_whole(view["zoom"], 10, 400)}"' if "zoom" in view else ""
        default_width = f' defaultColWidth="{_check_number(view["width"], 0, 255):.2f}"' if "width" in view else ""
        self._entry.write(
            f'{_XML}<worksheet xmlns="{_MAIN}" xmlns:r="{_REL}"><sheetPr><pageSetUpPr fitToPage="1"/></sheetPr>'
            f'<sheetViews><sheetView{view_attributes} workbookViewId="0">{_pane_xml(down, across)}'
            "</sheetView></sheetViews>"
            f'<sheetFormatPr{default_width} defaultRowHeight="15"/><cols>{cols}</cols><sheetData>'.encode()
        )

    def _write_label_row(self) -> None:
        """Write names for the added columns, where the source has no row of names."""
        self._begin_row(None)
        self._entry.write((self._label_cells(0) + "</row>").encode())

    def _label_cells(self, row: int) -> str:
        """Return the cells that name the added columns, as XML; adds a comment that says how to use them."""
        key_text = make_key("key", self._job, self._input, self._index, row)
        self._add_comment(self._columns + 1, _INSTRUCTIONS)
        return self._text_cell(1, TO_DO, _TO_DO_HEAD_APPEARANCE) + self._text_cell(2, key_text, _KEY_APPEARANCE)

    def _text_cell(self, added: int, text: str, appearance: dict[str, Any]) -> str:
        """Return a text cell of the open row as XML; `added`: which of the added columns, from 1."""
        style = self._book.cells.of(appearance)
        place = f"{a1.letters(self._columns + added)}{self._row}"
        return f'<c r="{place}" s="{style}" t="inlineStr">{cell_text(text)}</c>'

    def _begin_row(self, height: float | None) -> None:
        """Write the opening of the next row; raises BadOutput if the sheet is full."""
        self._row += 1
        if self._row > MAX_ROWS:
            raise BadOutput("rejects.jsonl has more rows than a sheet holds")
        height_attributes = f' ht="{height:.2f}" customHeight="1"' if height is not None else ""
        self._entry.write(f'<row r="{self._row}"{height_attributes}>'.encode())

    def write(self, line: dict[str, Any]) -> None:
        """Write a described row, marked and with its key; raises BadOutput for one that the input does not have, or an
        invalid description."""
        row, kind = _check_whole(line["row"], self._last_source_row + 1, MAX_ROWS * 100), line.get("kind")
        if kind not in KINDS:
            raise BadOutput("rejects.jsonl has a row of no known kind")
        if not self._exists(kind, self._input, self._index, row):
            raise BadOutput(f"rejects.jsonl has row {row}, which is not such a row of the input in artifact.json")
        self._last_source_row = row
        described_height = line.get("height")
        height = _check_number(described_height, 0, _TALLEST) if described_height is not None else None
        to_do = _check_text(line.get("do"), 2_000) if kind == "row" else ""
        if (lines := _count_lines(to_do, _TO_DO_WIDTH)) > 1:  # spreadsheet programs do not all make room by themselves
            height = max(height or 0.0, min(_TALLEST, 15.0 * lines))
        self._begin_row(height)
        marks = _check_marks(line.get("marks", []), self._columns)
        cells = {cell.column: cell for cell in self._check_cells(line.get("cells"))}
        elements = []
        for column in sorted(cells.keys() | marks.keys()):
            cell = cells.get(column) or _DescribedCell(column, None, None)
            if column in marks:
                self._add_comment(column, marks[column])
            style = self._book.style(cell.appearance, cell.value, is_head=kind != "row", is_wrong=column in marks)
            elements.append(self._cell_xml(column, cell.value, style))
        if kind == "key":
            elements.append(self._label_cells(row))
        else:
            if kind == "row":
                self._book.rows += 1
                self._first_data_row = self._first_data_row or self._row
                elements.append(self._text_cell(1, to_do, _TO_DO_APPEARANCE))
            elements.append(
                self._text_cell(2, make_key(kind, self._job, self._input, self._index, row), _KEY_APPEARANCE)
            )
        if kind != "row":
            self._head_rows[row] = self._row
        self._entry.write(("".join(elements) + "</row>").encode(errors="replace"))

    def _check_cells(self, value: object) -> Iterator[_DescribedCell]:
        """Yield each described cell of a row, from left to right; raises BadOutput."""
        column = 0
        for cell in _check_list(value):
            if not isinstance(cell, list) or len(cell) not in (2, 3):
                raise BadOutput("rejects.jsonl has an invalid cell")
            described_column, content, *appearances = cell
            column = _check_whole(described_column, column + 1, self._columns)
            appearance = _check_whole(appearances[0], 0, len(self._book.appearances) - 1) if appearances else None
            yield _DescribedCell(column, _check_value(content), appearance)

    def _cell_xml(self, column: int, value: Any, style: int) -> str:
        """Return a cell of the open row as XML."""
        kind = type(value)
        opening = f'<c r="{a1.letters(column)}{self._row}" s="{style}"'
        if value is None:
            return f"{opening}/>"
        if kind is str:
            return f'{opening} t="inlineStr">{cell_text(value)}</c>'
        if kind is bool:
            return f'{opening} t="b"><v>{int(value)}</v></c>'
        if kind in (int, float):
            return f"{opening}><v>{value!r}</v></c>"
        if kind is _Error:
            return f'{opening} t="e"><v>{escaped(value)}</v></c>'
        return f"{opening}><v>{parts.serial(value)}</v></c>"

    def _add_comment(self, column: int, text: str) -> None:
        """Remember a comment for a cell of the open row, unless the sheet has as many as it may."""
        if len(self._comments) < MAX_COMMENTS:
            self._comments.append(_Comment(self._row, column, text))

    def merge(self, value: object) -> None:
        """Remember the cells of headers to merge as the sender's sheet does; raises BadOutput for an invalid
        description."""
        for area in _check_list(value):
            if not isinstance(area, list) or len(area) != 4:
                raise BadOutput("rejects.jsonl has an invalid merged cell")
            top, left, bottom, right = (_check_whole(number, 1, MAX_ROWS * 100) for number in area)
            first, last = self._head_rows.get(top), self._head_rows.get(bottom)
            is_whole_head = first and last and last - first == bottom - top  # all its rows are written
            if first and last and is_whole_head and left <= right <= self._columns:
                self._merged.append(f"{a1.cell(first, left)}:{a1.cell(last, right)}")

    def offer(self, value: object) -> None:
        """Remember lists of what is allowed in columns, to choose from; too long ones and those with commas cannot be
        offered. Raises BadOutput for an invalid description."""
        for pair in _check_list(value):
            if not isinstance(pair, list) or len(pair) != 2:
                raise BadOutput("rejects.jsonl has an invalid list of choices")
            described_column, described_values = pair
            column, allowed = _check_whole(described_column, 1, self._columns), _check_list(described_values)
            choices = '"' + ",".join(map(str, allowed)).replace('"', '""') + '"'
            can_be_listed = len(choices) <= _LONGEST_LIST and not any("," in str(choice) for choice in allowed)
            if self._first_data_row and allowed and can_be_listed:
                area = f"{a1.cell(self._first_data_row, column)}:{a1.cell(self._row, column)}"
                self._validations.append(
                    f'<dataValidation type="list" allowBlank="1" showErrorMessage="0" sqref="{area}">'
                    f"<formula1>{escaped(choices)}</formula1></dataValidation>"
                )

    def close(self) -> None:
        """Write the end of the sheet: merged cells, lists of choices, comments."""
        write = self._entry.write
        write(b"</sheetData>")
        if self._merged:
            cells = "".join(f'<mergeCell ref="{area}"/>' for area in dict.fromkeys(self._merged))
            write(f'<mergeCells count="{len(dict.fromkeys(self._merged))}">{cells}</mergeCells>'.encode())
        if self._validations:
            lists = "".join(self._validations)
            write(f'<dataValidations count="{len(self._validations)}">{lists}</dataValidations>'.encode())
        page = '<pageSetup orientation="landscape" fitToHeight="0"/>'
        tail = '<legacyDrawing r:id="rId1"/></worksheet>' if self._comments else "</worksheet>"
        write(parts.SHEET_TAIL.replace("</worksheet>", page + tail).encode())
        self._entry.close()
        if self._comments:
            self._write_comments()

    def _write_comments(self) -> None:
        """Write the parts with the sheet's comments and what links them to it."""
        n, put = self._number, self._book.archive.put
        self._book.commented.append(n)
        comments = "".join(
            f'<comment ref="{a1.cell(row, column)}" authorId="0"><text><t xml:space="preserve">{escaped(text)}</t>'
            "</text></comment>"
            for row, column, text in self._comments
        )
        put(
            f"xl/comments{n}.xml",
            f'{_XML}<comments xmlns="{_MAIN}"><authors><author>ade-drop</author></authors>'
            f"<commentList>{comments}</commentList></comments>",
        )
        put(f"xl/drawings/vmlDrawing{n}.vml", _comment_boxes(self._comments))
        put(
            f"xl/worksheets/_rels/sheet{n}.xml.rels",
            f'{_XML}<Relationships xmlns="{_PACK}">'
            f'<Relationship Id="rId1" Type="{_REL}/vmlDrawing" Target="../drawings/vmlDrawing{n}.vml"/>'
            f'<Relationship Id="rId2" Type="{_REL}/comments" Target="../comments{n}.xml"/></Relationships>',
        )


def _pane_xml(down: int, across: int) -> str:
    """Return the XML element for so many rows (`down`) and columns that stay in sight; empty if none do."""
    if not (down or across):
        return ""
    split = (f' xSplit="{across}"' if across else "") + (f' ySplit="{down}"' if down else "")
    active = f"{'bottom' if down else 'top'}{'Right' if across else 'Left'}"
    return f'<pane{split} topLeftCell="{a1.cell(down + 1, across + 1)}" activePane="{active}" state="frozen"/>'


def _comment_boxes(comments: list[_Comment]) -> str:
    """Return the drawing, as XML, of the boxes in which spreadsheet programs show comments."""
    shapes = "".join(
        f'<v:shape id="_x0000_s{1025 + n}" type="#_x0000_t202" '
        f'style="position:absolute;width:220pt;height:{_box_height(text)}pt;visibility:hidden" '
        'fillcolor="#ffffe1" o:insetmode="auto">'
        '<v:fill color2="#ffffe1"/><v:shadow color="black" obscured="t"/><v:path o:connecttype="none"/>'
        '<v:textbox style="mso-direction-alt:auto"/><x:ClientData ObjectType="Note"><x:MoveWithCells/>'
        f"<x:SizeWithCells/><x:AutoFill>False</x:AutoFill><x:Row>{row - 1}</x:Row><x:Column>{column - 1}</x:Column>"
        "</x:ClientData></v:shape>"
        for n, (row, column, text) in enumerate(comments)
    )
    return (
        '<xml xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office" '
        'xmlns:x="urn:schemas-microsoft-com:office:excel"><o:shapelayout v:ext="edit"><o:idmap v:ext="edit" data="1"/>'
        '</o:shapelayout><v:shapetype id="_x0000_t202" coordsize="21600,21600" o:spt="202" '
        'path="m,l,21600r21600,l21600,xe"><v:stroke joinstyle="miter"/><v:path gradientshapeok="t" '
        f'o:connecttype="rect"/></v:shapetype>{shapes}</xml>'
    )


def _box_height(text: str) -> int:
    """Return how tall a comment's box is, in points: as tall as its text."""
    return 12 + 14 * max(2, min(_count_lines(text, _COMMENT_WIDTH), 20))


def _count_lines(text: str, width: int) -> int:
    """Count the lines that a text takes if lines have room for `width` characters."""
    return sum(1 + len(line) // width for line in text.split("\n"))


class _Error(str):
    """A spreadsheet error."""

    __slots__ = ()


def _check_value(value: object) -> Any:
    """Return a described value; raises BadOutput for anything else."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int) and abs(value) < 10**16:
        return value
    if isinstance(value, float) and isfinite(value):
        return value
    if isinstance(value, dict) and len(value) == 1:
        [(kind, content)] = value.items()
        try:
            return _parse_special(kind, content)
        except (ValueError, TypeError, OverflowError):
            pass
    raise BadOutput("rejects.jsonl has a cell with something else than a value")


def _parse_special(kind: str, content: Any) -> Any:
    """Parse a described error, date, time or duration; raises ValueError for anything else."""
    if kind == "error" and content in ERROR_CODES:
        return _Error(content)
    if kind == "date":
        return date.fromisoformat(content)
    if kind == "datetime":
        return datetime.fromisoformat(content).replace(tzinfo=None)
    if kind == "time":
        return time.fromisoformat(content).replace(tzinfo=None)
    if kind == "seconds":
        return timedelta(seconds=_check_number(content, 0, 1e12))
    raise ValueError(kind)


def _check_marks(value: object, columns: int) -> dict[int, str]:
    """Return, by column, what is wrong there; raises BadOutput."""
    marks: dict[int, str] = {}
    for mark in _check_list(value):
        if not isinstance(mark, list) or len(mark) != 2:
            raise BadOutput("rejects.jsonl has an invalid mark")
        column, text = mark
        marks[_check_whole(column, 1, columns)] = _check_text(text, _LONGEST_COMMENT)
    return marks


def _check_text(value: object, most: int) -> str:
    """Return a described text, cut to a length; raises BadOutput."""
    if not isinstance(value, str):
        raise BadOutput("rejects.jsonl lacks a text")
    return cut(value, most)


def _check_widths(value: object) -> dict[int, float]:
    """Return the described width of columns; raises BadOutput."""
    widths: dict[int, float] = {}
    for pair in _check_list(value):
        if not isinstance(pair, list) or len(pair) != 2:
            raise BadOutput("rejects.jsonl has an invalid width")
        column, width = pair
        widths[_check_whole(column, 1, MAX_COLUMNS)] = _check_number(width, 0, 255)
    return widths


def _check_list(value: object) -> list[Any]:
    """Return a described list; raises BadOutput for anything else."""
    if not isinstance(value, list):
        raise BadOutput("rejects.jsonl has no list where one is due")
    return value


def _check_whole(value: object, least: int, most: int) -> int:
    """Return a described whole number within bounds; raises BadOutput for anything else."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise BadOutput("rejects.jsonl has a number that cannot be")
    return value


def _check_number(value: object, least: float, most: float) -> float:
    """Return a described number within bounds; raises BadOutput for anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
        raise BadOutput("rejects.jsonl has a number that cannot be")
    return float(value)
