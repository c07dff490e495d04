"""Rows through a full XML parser: slower, and right for every dialect."""

from collections.abc import Iterable, Iterator
from itertools import zip_longest

from runner.engine.reading import errors
from runner.engine.reading.limits import ReadLimits
from runner.engine.reading.texts import XML_BLANKS
from runner.engine.reading.values import Row, Value
from runner.engine.reading.xlsx.cells import CellReader
from runner.engine.reading.xlsx.coordinates import cell
from runner.engine.reading.xlsx.markup import Attributes, Markup, local


class SheetData:
    """One pass of the parser over a sheet part, or over rows cut from one."""

    def __init__(self, cells: CellReader, limits: ReadLimits, after: int) -> None:
        self.done: list[Row] = []  # rows that are complete
        self._cells = cells
        self._limits = limits
        self._depth = 0
        self._in_data = False
        self.row = after
        self._column = 0
        self._values: dict[int, Value] = {}
        self._kind = ""
        self._style = 0
        self._formula = False
        self._held: str | None = None
        self._text: list[str] = []
        self._keep = False
        self._strip = False
        self._phonetic = False
        self._slots = 0
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
            given = attributes.get("r", "")
            self.row = int(given) if given.isdecimal() and len(given) < 12 else self.row + 1
            self._column = 0
            self._values = {}
            if not 0 < self.row <= self._limits.max_rows:
                raise errors.damaged(f"a row numbered {self.row}, where {self._limits.max_rows} is the last")
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

    def _start_cell(self, attributes: Attributes) -> None:
        reference = attributes.get("r")
        column = cell(reference)[1] if reference else 0
        self._column = column or self._column + 1
        if self._column > self._limits.max_columns:
            raise errors.damaged(f"a cell past column {self._limits.max_columns}, the last there is")
        self._kind = attributes.get("t", "")
        style = attributes.get("s", "")
        self._style = int(style) if style.isdecimal() and len(style) < 9 else 0
        self._formula = False
        self._held = None

    def text(self, data: str) -> None:
        if self._keep:
            self._text.append(data)

    def end(self, name: str) -> None:
        self._depth -= 1
        name = local(name)
        if name in ("v", "t"):
            if self._keep:
                text = "".join(self._text)
                self._held = (self._held or "") + (text.strip(XML_BLANKS) if self._strip else text)
            self._keep = False
        elif name == "c" and self._in_data:
            value = self._cells.value(self._kind, self._style, self._held, formula=self._formula)
            if value is not None:
                self._values[self._column] = value
        elif name == "row" and self._in_data:
            self._end_row()
        elif name == "rPh":
            self._phonetic = False
        elif name == "sheetData":
            self._in_data = False

    def _end_row(self) -> None:
        if not self._values:
            return
        width = max(self._values)
        self._slots += width
        if self._slots > self._limits.max_cells:
            raise errors.too_large(f"a sheet of over {self._limits.max_cells} cells, blanks counted")
        values: list[Value] = [None] * width
        for column, value in self._values.items():
            values[column - 1] = value
        self.done.append((self.row, values))


def careful_rows(pieces: Iterable[bytes], cells: CellReader, limits: ReadLimits, *, after: int = 0) -> Iterator[Row]:
    """Rows in the order of the part, which may not be ascending; unnumbered ones count on from ``after``."""
    data = SheetData(cells, limits, after)
    for piece in pieces:
        data.feed(piece)
        yield from data.done
        data.done.clear()
    data.feed(b"", last=True)
    yield from data.done


def ascending(rows: Iterable[Row], limits: ReadLimits) -> Iterator[Row]:
    """The same rows in order, those of one number joined, for sheets that are written out of order."""
    held: dict[int, list[Value]] = {}
    slots = 0
    for number, values in rows:
        slots += len(values)
        if slots > limits.max_cells // 20:
            raise errors.too_large("a sheet whose rows are out of order is too large to be sorted")
        before = held.get(number)
        held[number] = values if before is None else _joined(before, values)
    yield from sorted(held.items())


def _joined(before: list[Value], after: list[Value]) -> list[Value]:
    return [old if new is None else new for old, new in zip_longest(before, after)]
