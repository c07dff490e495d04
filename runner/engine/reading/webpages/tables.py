"""The tables of a web page as rows of texts."""

from collections.abc import Iterable

from runner.engine.reading import errors
from runner.engine.reading.books import Area, Layout
from runner.engine.reading.limits import ReadLimits
from runner.engine.reading.values import Row, Value
from runner.engine.reading.webpages.tags import Tag

_CELLS = ("td", "th")
_SECTIONS = ("thead", "tbody", "tfoot")
_LINES = frozenset({"p", "div", "li", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre"})
_BOLD = ("b", "strong")
_MOST_COLUMNS, _MOST_ROWS = 1_000, 65_534  # that a cell may span, as browsers have it
_HIDDEN = "display:none"
_BREAK = "\x00"  # no page's text holds it


class PageTable:
    """One table: its rows as they are told, tables inside it left out."""

    def __init__(self, limits: ReadLimits) -> None:
        self.name = ""
        self.rows: list[Row] = []
        self.layout = Layout()
        self.cells = 0
        self._limits = limits
        self._row = 0
        self._values: dict[int, Value] = {}
        self._column = 0  # where the open cell stands; 0: none is open
        self._next = 1
        self._below: dict[int, int] = {}  # column -> last row that a cell from above covers it
        self._text: list[str] = []
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
            self._below = {}  # no cell reaches over the end of a section
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
            raise errors.too_large(f"a table of over {self._limits.max_rows} rows")
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
            raise errors.damaged(f"a cell past column {self._limits.max_columns}, the last there is")
        if down > 1:
            self._below |= dict.fromkeys(range(self._column, self._next), self._row + down - 1)
        if (across > 1 or down > 1) and len(self.layout.merged) < self._limits.max_merged:
            area: Area = (self._row, self._column, self._row + down - 1, self._next - 1)
            self.layout.merged.append(area)
        if tag.name == "th":
            self._mark()

    def _mark(self) -> None:
        if self._row <= self._limits.layout_rows:
            self.layout.bold.setdefault(self._row, set()).add(self._column)

    def _end_cell(self) -> None:
        if self._column:
            if (text := _shown(self._text)) is not None:
                self._values[self._column] = self._known.setdefault(text, text)
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
    """Every table that holds a text, in the order of their first tags."""
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
                    raise errors.hostile(f"over {len(opened) or len(tables)} tables in a web page")
                opened.append(PageTable(limits))
                tables.append(opened[-1])
        elif opened:
            opened[-1].tag(token)
            if opened[-1].cells > limits.max_page_cells:
                raise errors.too_large(f"a web page of over {limits.max_page_cells} cells")
    for table in reversed(opened):
        table.end()
    if sum(table.cells for table in tables) > limits.max_page_cells:
        raise errors.too_large(f"a web page of over {limits.max_page_cells} cells")
    return [table for table in tables if table.rows]


def _span(tag: Tag, name: str) -> int:
    text = (tag.get(name) or "").strip()
    return max(int(text), 1) if text.isascii() and text.isdecimal() and len(text) < 9 else 1


def _shown(parts: list[str]) -> str | None:
    """What a browser shows: runs of blanks are one, lines end where the page breaks them."""
    lines = [" ".join(line.split()) for line in "".join(parts).split(_BREAK)]
    return "\n".join(line for line in lines if line) or None
