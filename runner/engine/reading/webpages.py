"""Reads the tables of a web page: many programs export HTML tables and name the file .xls.

The page is split into tags and texts in one pass. The standard library's parser rescans from every tag that is never
closed, in quadratic time on a page of such tags; here an unclosed tag ends with the page.
"""

import codecs
import re
from collections.abc import Iterable, Iterator
from html import unescape
from typing import BinaryIO, Final, NamedTuple

from runner.engine.reading import errors
from runner.engine.reading.books import Area, Book, Layout, ReadLimits, Row, Sheet, Value, Visibility
from runner.engine.reading.delimited import encoding_choice
from runner.engine.reading.encodings import detect

_NAME = re.compile(r"</?([a-zA-Z][^\s/>]*)")
_STOP = re.compile(r"""=\s*(["'])|>""")
_ATTRIBUTE = re.compile(r"""([^\s"'<>/=]+)\s*(?:=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?""")
_HUGE = re.compile("&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")
_RAW: Final = {
    name: re.compile(rf"</{name}(?![\w-])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "template")
}


def plain(text: str) -> str:
    """Decode the entities of a text; numbers that are not characters stay as they are."""
    if "&" not in text:
        return text
    return unescape(_HUGE.sub("\ufffd", text))


class Tag(NamedTuple):
    name: str  # lower case
    closes: bool
    attributes: str  # as written

    def get(self, name: str) -> str | None:
        """The value of an attribute, the first if it occurs twice; None if absent."""
        for key, double, single, bare in _ATTRIBUTE.findall(self.attributes):
            if key.lower() == name:
                return plain(double or single or bare)
        return None


def tokens(page: str) -> Iterator[Tag | str]:
    """Tags and the texts between them, with entities decoded, without comments, scripts and styles."""
    at = 0
    while at < len(page):
        opened = page.find("<", at)
        if opened < 0:
            opened = len(page)
        if opened > at:
            yield plain(page[at:opened])
        if opened == len(page):
            return
        at = opened
        if page.startswith("<!--", at):
            at = _after(page, "-->", at + 2)
        elif page.startswith(("<!", "<?"), at):
            at = _after(page, ">", at)
        elif (found := _NAME.match(page, at)) is None:
            yield "<"  # a plain character
            at += 1
        else:
            end = _end(page, found.end())
            name, closes = found[1].lower(), page[at + 1] == "/"
            yield Tag(name, closes, page[found.end() : end])
            at = min(end + 1, len(page))
            if not closes and name in _RAW:
                close = _RAW[name].search(page, at)
                at = close.start() if close else len(page)


def _after(page: str, mark: str, at: int) -> int:
    found = page.find(mark, at)
    return len(page) if found < 0 else found + len(mark)


def _end(page: str, at: int) -> int:
    """The position of a tag's closing bracket; brackets in quoted values do not count."""
    while (stop := _STOP.search(page, at)) is not None:
        if stop[0] == ">":
            return stop.start()
        closed = page.find(stop[1], stop.end())
        if closed < 0:
            break
        at = closed + 1
    return len(page)


_CELLS = ("td", "th")
_SECTIONS = ("thead", "tbody", "tfoot")
_LINES = frozenset({"p", "div", "li", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre"})
_BOLD = ("b", "strong")
_MOST_COLUMNS, _MOST_ROWS = 1_000, 65_534  # the largest spans of a cell, as in browsers
_HIDDEN = "display:none"
_BREAK = "\x00"  # never in a page's text


class PageTable:
    """Builds one table from its tags, without nested tables."""

    def __init__(self, limits: ReadLimits) -> None:
        self.name = ""
        self.rows: list[Row] = []
        self.layout = Layout()
        self.cells = 0
        self._limits = limits
        self._row = 0
        self._values: dict[int, Value] = {}
        self._column = 0  # column of the open cell; 0: none is open
        self._next = 1
        self._below: dict[int, int] = {}  # column -> last row covered by a cell from above
        self._text: list[str] = []
        self._stored: str | None = None  # the number that Excel wrote beside the text of the open cell
        self._in_row = self._in_caption = False
        self._known: dict[str, str] = {}

    def tag(self, tag: Tag) -> None:
        name = tag.name
        if name in _CELLS:
            self._end_cell()
            if not tag.closes:
                self._start_cell(tag)
        elif name == "tr":
            self._end_row()
            if not tag.closes:
                self._start_row(tag)
        elif name in _SECTIONS:
            self._end_row()
            self._below = {}  # no cell spans the end of a section
        elif name == "caption":
            self._end_caption()
            self._in_caption = not tag.closes and not self._column
        elif name == "br" or name in _LINES:
            self._text.append(_BREAK)
        elif name in _BOLD and not tag.closes and self._column:
            self._mark()

    def text(self, text: str) -> None:
        if self._column or self._in_caption:
            self._text.append(text.replace(_BREAK, ""))

    def end(self) -> None:
        self._end_caption()
        self._end_row()

    def _start_row(self, tag: Tag) -> None:
        self._in_row, self._row, self._next, self._values = True, self._row + 1, 1, {}
        if self._row > self._limits.max_rows:
            raise errors.too_large(f"a table has over {self._limits.max_rows} rows")
        if _HIDDEN in (tag.get("style") or "").replace(" ", "").lower():
            self.layout.hidden_rows.add(self._row)
        self.layout.styled_rows = min(self._row, self._limits.layout_rows)

    def _start_cell(self, tag: Tag) -> None:
        if not self._in_row:
            self._start_row(Tag("tr", False, ""))
        while self._below.get(self._next, 0) >= self._row:
            self._next += 1
        self._column = self._next
        across = min(_span(tag, "colspan"), _MOST_COLUMNS)
        down = min(_span(tag, "rowspan"), _MOST_ROWS)
        self._next += across
        if self._next - 1 > self._limits.max_columns:
            raise errors.damaged(f"a cell beyond column {self._limits.max_columns}, the limit of a sheet")
        if down > 1:
            self._below |= dict.fromkeys(range(self._column, self._next), self._row + down - 1)
        if (across > 1 or down > 1) and len(self.layout.merged) < self._limits.max_merged:
            area: Area = (self._row, self._column, self._row + down - 1, self._next - 1)
            self.layout.merged.append(area)
        if tag.name == "th":
            self._mark()
        self._stored = tag.get("x:num") if "x:num" in tag.attributes else None

    def _mark(self) -> None:
        if self._row <= self._limits.layout_rows:
            self.layout.bold.setdefault(self._row, set()).add(self._column)

    def _end_cell(self) -> None:
        if self._column:
            if (text := _shown(self._text)) is not None:
                exact = _unrounded(self._stored, text) if self._stored else None
                self._values[self._column] = self._known.setdefault(text, text) if exact is None else exact
            if len(self._known) > 10_000:
                self._known.clear()
            self._column = 0
        self._text = []

    def _end_row(self) -> None:
        self._end_cell()
        if self._in_row and self._values:
            width = max(self._values)
            self.cells += width
            self.rows.append((self._row, [self._values.get(column) for column in range(1, width + 1)]))
        self._in_row, self._values = False, {}

    def _end_caption(self) -> None:
        if self._in_caption:
            self.name = self.name or (_shown(self._text) or "").replace("\n", " ")
            self._in_caption, self._text = False, []


def read_tables(found: Iterable[Tag | str], limits: ReadLimits) -> list[PageTable]:
    """All tables, in the order of their opening tags; one without text has no rows."""
    tables: list[PageTable] = []
    opened: list[PageTable] = []
    for token in found:
        if isinstance(token, str):
            if opened:
                opened[-1].text(token)
        elif token.name == "table":
            if token.closes and opened:
                opened.pop().end()
            elif not token.closes:
                if len(opened) >= limits.max_depth or len(tables) >= limits.max_page_tables:
                    raise errors.hostile(f"a web page with over {len(opened) or len(tables)} tables")
                opened.append(PageTable(limits))
                tables.append(opened[-1])
        elif opened:
            opened[-1].tag(token)
            if opened[-1].cells > limits.max_page_cells:
                raise errors.too_large(f"the page has over {limits.max_page_cells} cells")
    for table in reversed(opened):
        table.end()
    if sum(table.cells for table in tables) > limits.max_page_cells:
        raise errors.too_large(f"the page has over {limits.max_page_cells} cells")
    return tables


def _span(tag: Tag, name: str) -> int:
    text = (tag.get(name) or "").strip()
    return max(int(text), 1) if text.isascii() and text.isdecimal() and len(text) < 9 else 1


def _shown(parts: list[str]) -> str | None:
    """The text as a browser shows it: runs of blanks collapsed, lines broken where the page breaks them."""
    lines = [" ".join(line.split()) for line in "".join(parts).split(_BREAK)]
    return "\n".join(line for line in lines if line) or None


_FRACTION = re.compile(r"[.,]([0-9]+)\D*$")


def _unrounded(stored: str, text: str) -> float | None:
    """The stored number if the text shows fewer of its digits: 3.14159 for 3.14."""
    try:
        number = float(stored)
    except ValueError:
        return None
    digits = "".join(filter(str.isdecimal, text))
    fraction = _FRACTION.search(text)
    if not digits or not abs(number) < 1e15:
        return None
    for places in (len(fraction[1]) if fraction else 0, 0):
        shown = int(digits) / 10**places
        if shown != abs(number) and round(abs(number) * 10**places) == int(digits):
            return number
    return None


_HEAD = 16 * 1024
_CHARSET = re.compile(rb"""<(?:meta\b[^>]*?charset|\?xml\b[^>]*?encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)


class PageSheet:
    """One table of the page."""

    def __init__(self, table: PageTable, index: int) -> None:
        self.name = table.name or f"Table {index + 1}"
        self.index = index
        self.visibility: Visibility = "visible"
        self._table = table

    def rows(self) -> Iterator[Row]:
        return ((number, list(values)) for number, values in self._table.rows)

    def layout(self) -> Layout:
        return self._table.layout


def open_page(file: BinaryIO, limits: ReadLimits, *, declared: str | None = None) -> Book:
    """Open a page: each table is a sheet, nested ones too."""
    file.seek(0, 2)
    if file.tell() > limits.max_page_bytes:
        raise errors.too_large(f"the page has {file.tell()} bytes; the limit is {limits.max_page_bytes}")
    encoding = detect(file, declared=declared or _named(file))
    file.seek(0)
    page = file.read().decode(encoding.name, "replace")
    tables = read_tables(tokens(page.removeprefix("\ufeff")), limits)
    filled = [table for table in tables if table.rows]
    if not filled:
        what = "whose tables hold no text" if tables else "without a table"
        raise errors.not_a_spreadsheet(f"an HTML page {what}")
    sheets: list[Sheet] = [PageSheet(table, index) for index, table in enumerate(filled)]
    notes: dict[str, object] = {"encoding": encoding.name, "encoding_sure": encoding.sure}
    choices = list(encoding_choice(encoding))
    return Book(file_format="html", reader="own", sheets=sheets, notes=notes, choices=choices, source=file)


def _named(file: BinaryIO) -> str | None:
    """The encoding that the page declares; None for one that contradicts how the declaration was read."""
    file.seek(0)
    if (found := _CHARSET.search(file.read(_HEAD))) is None:
        return None
    try:
        name = codecs.lookup(found[1].decode("ascii")).name
    except (LookupError, UnicodeDecodeError):
        return None
    if name in ("iso8859-1", "ascii"):
        return "cp1252"  # as in browsers
    return name if _is_text(name) and not name.startswith(("utf-16", "utf-32")) else None


def _is_text(name: str) -> bool:
    """Whether Python's codec of this name is a text encoding."""
    try:
        return isinstance(b"a".decode(name), str)
    except (LookupError, ValueError):
        return False
