"""Rows through a full XML parser: slower, and right for every dialect."""

from collections.abc import Iterable, Iterator

from runner.engine.reading import errors
from runner.engine.reading.limits import ReadLimits
from runner.engine.reading.rows import RowBuilder
from runner.engine.reading.texts import XML_BLANKS
from runner.engine.reading.values import Row
from runner.engine.reading.xlsx.cells import CellReader
from runner.engine.reading.xlsx.coordinates import cell
from runner.engine.reading.xlsx.markup import Attributes, Markup, local
from runner.engine.reading.xlsx.style_parts import number


class SheetData:
    """One pass of the parser over a sheet part, or over rows cut from one."""

    def __init__(self, cells: CellReader, limits: ReadLimits, after: int) -> None:
        self.done: list[Row] = []  # rows that are complete
        self.numbers: list[int] = []  # of every row, blank ones too
        self._cells = cells
        self._limits = limits
        self._depth = 0
        self._in_data = False
        self.row = after
        self._unnumbered = False
        self._column = 0
        self._builder = RowBuilder(limits)
        self._kind = ""
        self._style = 0
        self._formula = False
        self._held: str | None = None  # the stored value
        self._inline: str | None = None  # the text stored in the cell itself
        self._text: list[str] = []
        self._keep = False
        self._strip = False
        self._phonetic = False
        self._markup = Markup("a sheet", limits)
        self._markup.parser.StartElementHandler = self.start
        self._markup.parser.EndElementHandler = self.end
        self._markup.parser.CharacterDataHandler = self.text

    def feed(self, piece: bytes, *, last: bool = False) -> None:
        self._markup.feed(piece, last=last)

    def start(self, name: str, attributes: Attributes) -> None:
        self._depth += 1
        if self._depth > self._limits.max_depth:
            raise errors.hostile(f"elements nested over {self._limits.max_depth} deep in a sheet")
        name = local(name)
        if name == "c" and self._in_data:
            self._start_cell(attributes)
        elif name == "row" and self._in_data:
            given = attributes.get("r", "").strip().removeprefix("+")
            self._unnumbered = not (given.isascii() and given.isdecimal() and len(given) < 12)
            self._column = 0
            self._start_row(self.row + 1 if self._unnumbered else int(given))
        elif name == "sheetData":
            self._in_data = True
        elif name == "f":
            self._formula = True
        elif name in ("v", "t"):
            self._keep = not self._phonetic
            self._strip = name == "t" and attributes.get("xml:space") != "preserve"
            self._text = []
        elif name == "rPh":
            self._phonetic = True

    def _start_row(self, row: int) -> None:
        self.row = row
        self._builder.next_row(row)
        self.numbers.append(row)

    def _start_cell(self, attributes: Attributes) -> None:
        row, column = cell(attributes.get("r", ""))
        if self._unnumbered:  # its first cell may tell the row
            self._unnumbered = False
            if row and row != self.row:
                self.numbers.pop()
                self._start_row(row)
        self._column = column or self._column + 1
        self._kind = attributes.get("t", "")
        self._style = number(attributes, "s")
        self._formula = False
        self._held = self._inline = None

    def text(self, data: str) -> None:
        if self._keep:
            self._text.append(data)

    def end(self, name: str) -> None:
        self._depth -= 1
        name = local(name)
        if name in ("v", "t"):
            if self._keep:
                text = "".join(self._text)
                if name == "v":
                    self._held = text
                else:
                    self._inline = (self._inline or "") + (text.strip(XML_BLANKS) if self._strip else text)
            self._keep = False
        elif name == "c" and self._in_data:
            inline = self._kind == "inlineStr" or self._held is None
            stored = self._inline if inline and self._inline is not None else self._held
            value = self._cells.value(self._kind, self._style, stored, formula=self._formula)
            self._builder.put(self._column, value)
        elif name == "row" and self._in_data:
            if (done := self._builder.done()) is not None:
                self.done.append(done)
        elif name == "rPh":
            self._phonetic = False
        elif name == "sheetData":
            self._in_data = False


def careful_rows(pieces: Iterable[bytes], cells: CellReader, limits: ReadLimits, *, after: int = 0) -> Iterator[Row]:
    """Rows in the order of the part, which may not be ascending; unnumbered ones count on from ``after``."""
    data = SheetData(cells, limits, after)
    for piece in pieces:
        data.feed(piece)
        yield from data.done
        data.done.clear()
        data.numbers.clear()
    data.feed(b"", last=True)
    yield from data.done
