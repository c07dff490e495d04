"""Reads the tables of a web page: many programs export HTML tables and name the file .xls.

The page is split into tags and texts in one pass. The standard library's parser rescans from every tag that is never
closed, in quadratic time on a page of such tags; here an unclosed tag ends with the page.
"""

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import unescape
from typing import BinaryIO, Final, Literal, NamedTuple

from runner.engine.reading import errors
from runner.engine.reading.books import Area, Book, Layout, ReadLimits, Remark, Row, Sheet, Value, Visibility
from runner.engine.reading.delimited import encoding_choice
from runner.engine.reading.encodings import detect
from runner.engine.reading.runs import CellNotes, Noted, Run, RunStyle, may_be_twice, shown

_NAME = re.compile(r"</?([a-zA-Z][^\s/>]*)")
_TAG_STOP = re.compile(r"""=\s*(["'])|>""")
_ATTRIBUTE = re.compile(r"""([^\s"'<>/=]+)\s*(?:=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?""")
_TOO_LARGE_ENTITY = re.compile("&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")
_RAW_ELEMENTS: Final = {
    name: re.compile(rf"</{name}(?![\w-])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "template")
}


def plain(text: str) -> str:
    """Decode the entities of a text; numbers that are not characters stay as they are."""
    if "&" not in text:
        return text
    return unescape(_TOO_LARGE_ENTITY.sub("\ufffd", text))


class Tag(NamedTuple):
    """A tag of a page."""

    name: str  # lower case
    closes: bool
    attributes: str  # as written

    def get(self, name: str) -> str | None:
        """Return the value of an attribute, the first if it occurs twice; None if absent."""
        for key, double, single, bare in _ATTRIBUTE.findall(self.attributes):
            if key.lower() == name:
                return plain(double or single or bare)
        return None


def tokens(page: str) -> Iterator[Tag | str]:
    """Yield the tags of a page and the texts between them, with entities decoded, without comments, scripts and
    styles."""
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
        elif (tag := _NAME.match(page, at)) is None:
            yield "<"  # a plain character
            at += 1
        else:
            end = _closing_bracket(page, tag.end())
            name, closes = tag[1].lower(), page[at + 1] == "/"
            yield Tag(name, closes, page[tag.end() : end])
            at = min(end + 1, len(page))
            if not closes and name in _RAW_ELEMENTS:
                close = _RAW_ELEMENTS[name].search(page, at)
                start, at = at, close.start() if close else len(page)
                if name == "textarea":
                    yield plain(page[start:at])


def _after(page: str, mark: str, at: int) -> int:
    """Return the position behind the next mark, or the end of the page."""
    position = page.find(mark, at)
    return len(page) if position < 0 else position + len(mark)


def _closing_bracket(page: str, at: int) -> int:
    """Return the position of a tag's closing bracket; brackets in quoted values do not count."""
    while (stop := _TAG_STOP.search(page, at)) is not None:
        if stop[0] == ">":
            return stop.start()
        closed = page.find(stop[1], stop.end())
        if closed < 0:
            break
        at = closed + 1
    return len(page)


_CELLS = ("td", "th")
_SECTIONS = ("thead", "tbody", "tfoot")
_ELEMENTS_WITH_LINES = frozenset(
    {"p", "div", "li", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre"}
)
_BOLD_ELEMENTS = ("b", "strong")
_STYLE_OF_ELEMENT: Final[dict[str, RunStyle]] = {
    "sup": "raised", "sub": "lowered", "small": "small", "s": "struck", "strike": "struck", "del": "struck",
}  # fmt: skip
_UNSEEN_ELEMENTS: Final = frozenset({"rt", "rp", "datalist"})  # guides to pronunciation, proposals for an input
_VOID_ELEMENTS: Final = frozenset(
    {"br", "img", "input", "hr", "wbr", "col", "area", "link", "meta", "source", "embed", "param"}
)
_INPUTS_WITH_TEXT: Final = frozenset({
    "", "text", "number", "email", "tel", "url", "date", "datetime-local", "month", "week", "time", "search", "range",
    "color",
})  # fmt: skip
_INPUTS_WITH_TICK: Final = ("checkbox", "radio")
_MOST_COLUMNS, _MOST_ROWS = 1_000, 65_534  # the largest spans of a cell, as in browsers
_MOST_TEXTS: Final = 10_000  # different texts that are remembered, so that equal ones are one in memory
_BREAK = "\x00"  # never in a page's text


ElementStyle = RunStyle | Literal["hidden"]
ClassStyles = Mapping[str, ElementStyle]  # of the classes of the page's own style sheets
_MOST_STYLE_SHEETS: Final = 50
_COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/))*+(?:\*/)?|<!--|-->")
_MEDIA = re.compile(r"@[^{};]*+(?:;|\{(?:[^{}]*+\{[^{}]*+\})*+[^{}]*+\})")
_RULE = re.compile(r"([^{}]*+)\{([^{}]*+)\}")
_CLASS = re.compile(r"\s*[a-zA-Z]*\.(?P<name>[\w-]+)\s*")


def _declared_style(style: str) -> ElementStyle:
    """Return how the declarations of a style make a text look; nothing if they do not matter."""
    style = "".join(style.lower().split())
    if "display:none" in style or "visibility:hidden" in style or "visibility:collapse" in style:
        return "hidden"
    if "line-through" in style:
        return "struck"
    if "vertical-align:super" in style:
        return "raised"
    return "lowered" if "vertical-align:sub" in style else ""


def class_styles(page: str) -> ClassStyles:
    """Return the classes that the page's own style sheets hide, raise, lower or strike out."""
    styles: dict[str, ElementStyle] = {}
    at = 0
    for _ in range(_MOST_STYLE_SHEETS):
        opened = re.compile(r"<style\b[^<>]*>", re.IGNORECASE).search(page, at)
        if opened is None:
            break
        close = _RAW_ELEMENTS["style"].search(page, opened.end())
        at = close.start() if close else len(page)
        rules = _MEDIA.sub("", _COMMENT.sub("", page[opened.end() : at]))
        for selectors, declarations in _RULE.findall(rules):
            if style := _declared_style(declarations):
                matches = map(_CLASS.fullmatch, selectors.split(","))
                styles |= {match["name"]: style for match in matches if match}
    return styles


class _SelectOption(NamedTuple):
    """An option of a select."""

    is_chosen: bool
    texts: list[str]  # parts of its text


class PageTable:
    """Builds one table from its tags, without nested tables."""

    def __init__(self, limits: ReadLimits, styles: ClassStyles | None = None) -> None:
        """Begin without rows; feed it the tags and texts of the table, then call `end`."""
        self.notes = CellNotes()
        self.is_hidden = False
        self._class_styles = styles or {}
        self._open_elements: list[tuple[str, ElementStyle]] = []  # elements of the open cell from the first with a look
        self._style: ElementStyle = ""  # of the text here
        self._options: list[_SelectOption] | None = None  # of the open select
        self._controls = 0  # form controls in the open cell
        self._image_text = ""  # what an image shows
        self._hidden_cells: dict[int, int] = {}
        self._cells_by_column: dict[int, int] = {}
        self.name = ""
        self.rows: list[Row] = []
        self.layout = Layout()
        self.cells = 0
        self._limits = limits
        self._row = 0
        self._values: dict[int, Value] = {}
        self._column = 0  # column of the open cell; 0: none is open
        self._next_column = 1
        self._covered_until: dict[int, int] = {}  # column -> last row covered by a cell from above
        self._text: list[Run] = []
        self._stored: str | None = None  # the number that Excel wrote beside the text of the open cell
        self._in_row = self._in_caption = False
        self._texts: dict[str, str] = {}

    def tag(self, tag: Tag) -> None:
        """Process an opening or closing tag of the table."""
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
            self._covered_until = {}  # no cell spans the end of a section
        elif name == "caption":
            self._end_caption()
            self._in_caption = not tag.closes and not self._column
        elif self._column or self._in_caption:
            self._process_in_cell(tag)

    def _process_in_cell(self, tag: Tag) -> None:
        """Process a tag inside a cell or a caption: line breaks, bold, form controls, and how its text looks."""
        name = tag.name
        if name == "br" or name in _ELEMENTS_WITH_LINES:
            self._add_text(_BREAK)
        if name in _BOLD_ELEMENTS and not tag.closes and self._column:
            self._mark_bold()
        if name in ("select", "option", "input", "textarea", "img"):
            self._add_control(tag)
        if name in _VOID_ELEMENTS:
            return
        if tag.closes:
            matching = [index for index, (open_name, _) in enumerate(self._open_elements) if open_name == name]
            if matching:
                del self._open_elements[matching[-1] :]
                self._style = self._open_style()
        elif self._open_elements or name in _STYLE_OF_ELEMENT or name in _UNSEEN_ELEMENTS or tag.attributes:
            style = self.style_of(tag)
            if style or self._open_elements:
                self._open_elements.append((name, style))
                self._style = self._open_style()

    def _open_style(self) -> ElementStyle:
        """Return how the open elements together show a text: hidden, struck out, or as the innermost one with a
        style."""
        styles = [style for _, style in self._open_elements if style]
        for strongest in ("hidden", "struck"):
            if strongest in styles:
                return strongest
        return styles[-1] if styles else ""

    def style_of(self, tag: Tag) -> ElementStyle:
        """Return how an element shows its text, by its own style, its class or its name; empty if like any other."""
        if tag.name in _UNSEEN_ELEMENTS:
            return "hidden"
        style: ElementStyle = ""
        if tag.attributes:
            if "style" in tag.attributes:
                style = _declared_style(tag.get("style") or "")
            if not style and "hidden" in tag.attributes.lower() and tag.get("hidden") is not None:
                style = "hidden"
            if not style and self._class_styles and (names := tag.get("class")):
                style = next(
                    (
                        self._class_styles[class_name]
                        for class_name in names.split()
                        if class_name in self._class_styles
                    ),
                    "",
                )
        return style or _STYLE_OF_ELEMENT.get(tag.name, "")

    def _add_control(self, tag: Tag) -> None:
        """Add what a form control shows to the open cell: a chosen option, a typed value, a tick."""
        if tag.name == "option" and self._options is not None and not tag.closes:
            self._options.append(_SelectOption(tag.get("selected") is not None, []))
        elif tag.name == "select":
            if tag.closes and self._options:
                chosen = next((option for option in self._options if option.is_chosen), self._options[0])
                self._options = None
                self._add_text("".join(chosen.texts))
            else:
                self._options = None if tag.closes else []
                self._count_control()
        elif tag.closes:
            return
        elif tag.name == "textarea":
            self._count_control()
        elif tag.name == "img":
            self._image_text = self._image_text or tag.get("alt") or ""
        elif (kind := (tag.get("type") or "").strip().lower()) in _INPUTS_WITH_TEXT and self.style_of(tag) != "hidden":
            self._count_control()
            self._add_text(tag.get("value") or "")
        elif kind in _INPUTS_WITH_TICK:
            self._count_control()
            self._add_text("false" if tag.get("checked") is None else "true")

    def _count_control(self) -> None:
        """Count a form control of the cell; a blank separates it from the one before."""
        self._controls += 1
        if self._controls > 1:
            self._add_text(" ")

    def _add_text(self, text: str) -> None:
        """Add text to the open cell, or to the open option of a select, unless it is hidden."""
        if self._style != "hidden":
            if self._options:
                self._options[-1].texts.append(text)
            elif self._options is None:
                self._text.append(Run(text, self._style))

    def text(self, text: str) -> None:
        """Process a text of the page."""
        if self._column or self._in_caption:
            self._add_text(text.replace(_BREAK, ""))

    def end(self) -> None:
        """Close what is still open at the end of the table, and set which columns are hidden."""
        self._end_caption()
        self._end_row()
        hidden = {column for column, count in self._hidden_cells.items() if count == self._cells_by_column[column]}
        self.layout.hidden_columns |= hidden

    def _start_row(self, tag: Tag) -> None:
        """Open the next row, and remember whether it is hidden."""
        self._in_row, self._row, self._next_column, self._values = True, self._row + 1, 1, {}
        if self._row > self._limits.max_rows:
            raise errors.too_large(f"a table has over {self._limits.max_rows} rows")
        if tag.attributes and self.style_of(tag) == "hidden":
            self.layout.hidden_rows.add(self._row)
        self.layout.styled_rows = min(self._row, self._limits.layout_rows)

    def _start_cell(self, tag: Tag) -> None:
        """Start a cell in the next free column, with the columns and rows that it spans, and note how it is shown.
        Raises if it is beyond the limit of columns."""
        if not self._in_row:
            self._start_row(Tag("tr", False, ""))
        while self._covered_until.get(self._next_column, 0) >= self._row:
            self._next_column += 1
        self._column = self._next_column
        across = min(_span(tag, "colspan"), _MOST_COLUMNS)
        down = min(_span(tag, "rowspan"), _MOST_ROWS)
        self._next_column += across
        if self._next_column - 1 > self._limits.max_columns:
            raise errors.damaged(f"a cell beyond column {self._limits.max_columns}, the limit of a sheet")
        if down > 1:
            self._covered_until |= dict.fromkeys(range(self._column, self._next_column), self._row + down - 1)
        if (across > 1 or down > 1) and len(self.layout.merged) < self._limits.max_merged:
            area: Area = (self._row, self._column, self._row + down - 1, self._next_column - 1)
            self.layout.merged.append(area)
        if tag.name == "th":
            self._mark_bold()
        self._stored = tag.get("x:num") if "x:num" in tag.attributes else None
        self._cells_by_column[self._column] = self._cells_by_column.get(self._column, 0) + 1
        if tag.attributes:
            style = self.style_of(tag)
            if style == "hidden":
                self._hidden_cells[self._column] = self._hidden_cells.get(self._column, 0) + 1
            elif style:
                self._open_elements, self._style = [(tag.name, style)], style

    def _mark_bold(self) -> None:
        """Note that the open cell is bold."""
        if self._row <= self._limits.layout_rows:
            self.layout.bold.setdefault(self._row, set()).add(self._column)

    def _end_cell(self) -> None:
        """Set the value of the open cell: what it shows, or the number that Excel stored beside it."""
        if self._column:
            if self._image_text and not any(text.strip() for text, _ in self._text):
                self._text.append(Run(self._image_text))
                self.notes.add("image", self._row, self._column)
            if (text := _text_as_shown(self._text)) is not None:
                self._remember_about_cell(text)
                exact = _unrounded(self._stored, text) if self._stored else None
                self._values[self._column] = self._texts.setdefault(text, str(text)) if exact is None else exact
            if len(self._texts) > _MOST_TEXTS:
                self._texts.clear()
            self._column = 0
        self._start_text()

    def _start_text(self) -> None:
        """Forget the text of the last cell or caption."""
        self._text, self._open_elements, self._style, self._options = [], [], "", None
        self._controls, self._image_text = 0, ""

    def _remember_about_cell(self, text: str) -> None:
        """Note what is to be reported about the open cell."""
        if isinstance(text, Noted):
            self.notes.add(text.note, self._row, self._column)
        elif may_be_twice(text):
            self.notes.add("encoded_twice", self._row, self._column)
        if self._controls > 1:
            self.notes.add("form", self._row, self._column)

    def _end_row(self) -> None:
        """Close the open row, and add it to `rows` if it has any value."""
        self._end_cell()
        if self._in_row and self._values:
            width = max(self._values)
            self.cells += width
            self.rows.append((self._row, [self._values.get(column) for column in range(1, width + 1)]))
        self._in_row, self._values = False, {}

    def _end_caption(self) -> None:
        """Close an open caption; the first one names the table."""
        if self._in_caption:
            self.name = self.name or (_text_as_shown(self._text) or "").replace("\n", " ")
            self._in_caption = False
            self._start_text()


def read_tables(
    page_tokens: Iterable[Tag | str], limits: ReadLimits, styles: ClassStyles | None = None
) -> list[PageTable]:
    """Read all tables, in the order of their opening tags; one without text has no rows."""
    tables: list[PageTable] = []
    open_tables: list[PageTable] = []
    for token in page_tokens:
        if isinstance(token, str):
            if open_tables:
                open_tables[-1].text(token)
        elif token.name == "table":
            if token.closes and open_tables:
                open_tables.pop().end()
            elif not token.closes:
                if len(open_tables) >= limits.max_depth or len(tables) >= limits.max_page_tables:
                    raise errors.hostile(f"a web page with over {len(open_tables) or len(tables)} tables")
                open_tables.append(PageTable(limits, styles))
                open_tables[-1].is_hidden = open_tables[-1].style_of(token) == "hidden"
                tables.append(open_tables[-1])
        elif open_tables:
            open_tables[-1].tag(token)
            if open_tables[-1].cells > limits.max_page_cells:
                raise errors.too_large(f"the page has over {limits.max_page_cells} cells")
    for table in reversed(open_tables):
        table.end()
    if sum(table.cells for table in tables) > limits.max_page_cells:
        raise errors.too_large(f"the page has over {limits.max_page_cells} cells")
    return tables


def _span(tag: Tag, name: str) -> int:
    """Return how many columns or rows a cell spans by an attribute; 1 if it is absent or invalid."""
    text = (tag.get(name) or "").strip()
    return max(int(text), 1) if text.isascii() and text.isdecimal() and len(text) < 9 else 1


def _text_as_shown(parts: Sequence[Run]) -> str | None:
    """Return the text as a browser shows it: runs of blanks collapsed, lines broken where the page breaks them; None
    for none."""
    text = shown(parts) if any(style for _, style in parts) else "".join([text for text, _ in parts])
    lines = [" ".join(line.split()) for line in text.split(_BREAK)]
    shown_text = "\n".join(line for line in lines if line)
    return (Noted(shown_text, text.note) if isinstance(text, Noted) else shown_text) or None


_FRACTION = re.compile(r"[.,](?P<digits>[0-9]+)\D*$")
_LARGEST_SHOWN: Final = 1e15  # numbers from here on lose digits in a double


def _unrounded(stored: str, text: str) -> float | None:
    """Return the stored number if the text shows fewer of its digits, such as 3.14159 for 3.14; None if the text will
    do."""
    try:
        number = float(stored)
    except ValueError:
        return None
    digits = "".join(filter(str.isdecimal, text))
    fraction = _FRACTION.search(text)
    if not digits or not abs(number) < _LARGEST_SHOWN:
        return None
    for places in (len(fraction["digits"]) if fraction else 0, 0):
        shown_number = int(digits) / 10**places
        if shown_number != abs(number) and round(abs(number) * 10**places) == int(digits):
            return number
    return None


_HEAD_BYTES = 16 * 1024
_CHARSET = re.compile(rb"""<(?:meta\b[^>]*?charset|\?xml\b[^>]*?encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)


class PageSheet:
    """One table of the page."""

    def __init__(self, table: PageTable, index: int) -> None:
        """Make a sheet of a table that was read; `index`: among the page's tables with rows."""
        self.name = table.name or f"Table {index + 1}"
        self.index = index
        self.visibility: Visibility = "hidden" if table.is_hidden else "visible"
        self._table = table

    def rows(self) -> Iterator[Row]:
        return ((number, list(values)) for number, values in self._table.rows)

    def layout(self) -> Layout:
        return self._table.layout

    def remarks(self) -> list[Remark]:
        """Return what cells show besides their values."""
        return self._table.notes.remarks()


def open_page(file: BinaryIO, limits: ReadLimits, *, declared: str | None = None) -> Book:
    """Open a page: each table is a sheet, nested ones too."""
    file.seek(0, 2)
    if file.tell() > limits.max_page_bytes:
        raise errors.too_large(f"the page has {file.tell()} bytes; the limit is {limits.max_page_bytes}")
    encoding = detect(file, declared=declared or _declared_encoding(file))
    file.seek(0)
    page = file.read().decode(encoding.name, "replace")
    tables = read_tables(tokens(page.removeprefix("\ufeff")), limits, class_styles(page))
    with_rows = [table for table in tables if table.rows]
    if not with_rows:
        what = "whose tables hold no text" if tables else "without a table"
        raise errors.not_a_spreadsheet(f"an HTML page {what}")
    sheets: list[Sheet] = [PageSheet(table, index) for index, table in enumerate(with_rows)]
    notes: dict[str, object] = {"encoding": encoding.name, "encoding_sure": encoding.sure}
    choices = list(encoding_choice(encoding))
    return Book(file_format="html", reader="own", sheets=sheets, notes=notes, choices=choices, source=file)


def _declared_encoding(file: BinaryIO) -> str | None:
    """Return the encoding that the page declares; None for one that contradicts how the declaration was read."""
    file.seek(0)
    if (charset := _CHARSET.search(file.read(_HEAD_BYTES))) is None:
        return None
    try:
        name = codecs.lookup(charset[1].decode("ascii")).name
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
