"""One quick look over a sheet before its rows are read: is it in order, what is hidden, what stands out."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from operator import lt

from runner.engine.reading import errors
from runner.engine.reading.books import Layout
from runner.engine.reading.layouts import Marker
from runner.engine.reading.limits import ReadLimits
from runner.engine.reading.styles import Styles
from runner.engine.reading.xlsx.chunks import Chunks, Opened, is_odd
from runner.engine.reading.xlsx.coordinates import area, column_number
from runner.engine.reading.xlsx.markup import Attributes, attribute, events
from runner.engine.reading.xlsx.style_parts import number

_MAX_TAIL = 64 * 1024 * 1024
_ROW_NUMBER = re.compile(r'<row r="([0-9]{1,10})"')
_ROW = re.compile(r"<row\b([^<>]*)>")
_CELL_STYLE = re.compile(r'<c r="([A-Z]{1,3})([0-9]{1,7})" s="([0-9]{1,6})"')
_NUMBERED = re.compile(r'\sr="([0-9]{1,10})"')
_HIDDEN = re.compile(r'\shidden="(?:1|true)"')
_TRUE = ("1", "true")


@dataclass(kw_only=True)
class Survey:
    layout: Layout
    ordered: bool = True  # row numbers only grow: rows can be streamed as they come
    table_ids: list[str] = field(default_factory=list)  # relations of the sheet that lead to tables


def survey(opened: Opened, styles: Styles, limits: ReadLimits) -> Survey:
    if not opened.plain:
        return _Parsed(styles, limits).read(opened.whole())
    return Surveyor(opened.head, styles, limits).read(opened)


class _Looks:
    """What both ways of looking share."""

    def __init__(self, styles: Styles, limits: ReadLimits) -> None:
        self.marker = Marker(styles, limits)
        self.layout = self.marker.layout
        self.survey = Survey(layout=self.layout)
        self.limits = limits
        self._last = 0

    def furniture(self, name: str, attributes: Attributes) -> None:
        """Elements before and after the cells."""
        layout = self.layout
        if name == "col" and attributes.get("hidden") in _TRUE:
            self.marker.hide_columns(number(attributes, "min"), number(attributes, "max"))
        elif name == "pane" and attributes.get("state", "").startswith("frozen"):
            layout.frozen_rows = _split(attributes, "ySplit")
            layout.frozen_columns = _split(attributes, "xSplit")
        elif name == "mergeCell" and (merged := area(attributes.get("ref", ""))):
            self.marker.merge(merged)
        elif name == "autoFilter":
            layout.autofilter = area(attributes.get("ref", ""))
        elif name == "tablePart" and (identity := attribute(attributes, "id")):
            self.survey.table_ids.append(identity)


class Surveyor(_Looks):
    """Looks at the part as text: on its own, or told by someone who reads its rows anyway."""

    def __init__(self, head: bytes, styles: Styles, limits: ReadLimits) -> None:
        super().__init__(styles, limits)
        for event in events([head], what="a sheet", limits=limits, whole=False):
            if event[0] == "start":
                self.furniture(event[1], event[2])

    def read(self, opened: Opened) -> Survey:
        if opened.is_empty_element():
            self.tail(chain([opened.head], opened.rest))
            return self.survey
        source = Chunks(opened, ending=b"row", what="a sheet", limits=self.limits)
        for chunk in source:
            if is_odd(chunk):
                self.survey.ordered = False  # cannot be told from the text: the rows are sorted when read
                break
            self.rows(chunk)
        else:
            self.tail(chain([b"<" + opened.prefix + b"worksheet>"], source.rest()))
        return self.survey

    def rows(self, chunk: str, numbers: list[int] | None = None) -> None:
        """The next rows; their numbers if they are known."""
        if numbers is None:
            numbers = list(map(int, _ROW_NUMBER.findall(chunk)))
            if len(numbers) != chunk.count("<row"):
                numbers = self._unnumbered(chunk)
        if numbers and (numbers[0] <= self._last or not all(map(lt, numbers, numbers[1:]))):
            self.survey.ordered = False
        first, self._last = self._last, numbers[-1] if numbers else self._last
        if "hidden" in chunk:
            self._hidden(chunk, first)
        if first < self.limits.layout_rows:
            self.layout.styled_rows = min(self._last, self.limits.layout_rows)
            if self.marker.marked:
                self._styles(chunk)

    def _unnumbered(self, chunk: str) -> list[int]:
        numbers = []
        last = self._last
        for match in _ROW.finditer(chunk):
            given = _NUMBERED.search(match[1])
            last = int(given[1]) if given else last + 1
            numbers.append(last)
        return numbers

    def _hidden(self, chunk: str, last: int) -> None:
        for match in _ROW.finditer(chunk):
            given = _NUMBERED.search(match[1])
            last = int(given[1]) if given else last + 1
            if _HIDDEN.search(match[1]) and last <= self.limits.max_rows:
                self.layout.hidden_rows.add(last)

    def _styles(self, chunk: str) -> None:
        for letters, row, style in _CELL_STYLE.findall(chunk):
            if int(style) in self.marker.marked and int(row) <= self.limits.layout_rows:
                self.marker.mark(int(row), column_number(letters), int(style))

    def tail(self, pieces: Iterator[bytes]) -> None:
        """Merges, filter and tables follow the cells; they are hints, so a broken tail costs only them."""
        try:
            tail = events(_at_most(pieces, _MAX_TAIL), what="a sheet", limits=self.limits, whole=False)
            for event in tail:
                if event[0] == "start":
                    self.furniture(event[1], event[2])
        except errors.InputUnreadable as error:
            if error.code != "damaged":
                raise


class _Parsed(_Looks):
    """Looks through the parser: for dialects that are not plain text."""

    def read(self, pieces: Iterator[bytes]) -> Survey:
        row = column = 0
        self.survey.ordered = False
        for event in events(pieces, what="a sheet", limits=self.limits):
            if event[0] == "end":
                continue
            _, name, attributes = event
            if name == "row":
                row, column = number(attributes, "r") or row + 1, 0
                self.marker.row(row, hidden=attributes.get("hidden") in _TRUE)
            elif name == "c":
                column = column_number(attributes.get("r", "").rstrip("0123456789")) or column + 1
                self.marker.mark(row, column, number(attributes, "s"))
            else:
                self.furniture(name, attributes)
        return self.survey


def _split(attributes: Attributes, name: str) -> int:
    text = attributes.get(name, "").partition(".")[0]
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 8 else 0


def _at_most(pieces: Iterator[bytes], most: int) -> Iterator[bytes]:
    for piece in pieces:
        most -= len(piece)
        if most < 0:
            return
        yield piece
