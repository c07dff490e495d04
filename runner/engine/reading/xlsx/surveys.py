"""Surveys a sheet: whether its rows are in order, what is hidden, and its layout."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from operator import lt

from runner.engine.common.a1 import column_number
from runner.engine.reading import errors
from runner.engine.reading.books import Layout, ReadLimits
from runner.engine.reading.number_formats import Marker, Styles
from runner.engine.reading.xlsx.markup import (
    Attributes,
    Chunks,
    Opened,
    area,
    attribute,
    cell,
    events,
    is_odd,
    number,
    without_entities,
)

_MAX_TAIL = 64 * 1024 * 1024
_ROW_NUMBER = re.compile(r'<row r="([0-9]{1,10})"')
_QUOTED = r"""\s*=\s*(?:"[^"<]*"|'[^'<]*')"""
_ROW = re.compile(rf"<row((?:\s+[\w:.-]+{_QUOTED})*)\s*/?>")
_ATTRIBUTE = re.compile(rf"\s([\w:.-]+)({_QUOTED})")
_REFERENCE = re.compile(r"\sr\s*=")
_PLACED = re.compile(r'\sr="[A-Z]{1,3}([0-9]{1,10})"')
_CELL_STYLE = re.compile(
    r"""<c(?=[^<>]*\ss\s*=\s*["']([0-9]{1,6})["'])[^<>]*\sr\s*=\s*["']([A-Z]{1,3})([0-9]{1,7})["']"""
)
_STYLED_CELL = re.compile(r"<c\s(?:[^<>]*\s)?s\s*=")
_TRUE = ("1", "true")


@dataclass(kw_only=True)
class Survey:
    """What is known of a sheet before its rows are used."""

    layout: Layout
    ordered: bool = True  # row numbers ascend: rows can be streamed
    table_ids: list[str] = field(default_factory=list)  # the sheet's relations to tables


class NotPlain(Exception):  # an event, not an error
    """The sheet is written in a way that only the parser can read."""


def survey(opened: Opened, styles: Styles, limits: ReadLimits) -> Survey:
    """Survey the part as text. If it raises ``NotPlain``, open the part again for ``parsed_survey``."""
    if not opened.plain:
        raise NotPlain
    return Surveyor(opened.head, styles, limits).read(opened)


def parsed_survey(opened: Opened, styles: Styles, limits: ReadLimits) -> Survey:
    """Survey a part with the parser."""
    return _ParsedSurvey(styles, limits).read(opened.whole())


class _LayoutSurvey:
    """What both ways to survey a sheet share."""

    def __init__(self, styles: Styles, limits: ReadLimits) -> None:
        self.marker = Marker(styles, limits)
        self.layout = self.marker.layout
        self.survey = Survey(layout=self.layout)
        self.limits = limits
        self._last = 0

    def furniture(self, name: str, attributes: Attributes) -> None:
        """Note elements before and after the cells: columns, panes, merges, filters, tables."""
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


class Surveyor(_LayoutSurvey):
    """Surveys the part as text, by itself or fed by a reader of its rows."""

    def __init__(self, head: bytes, styles: Styles, limits: ReadLimits) -> None:
        super().__init__(styles, limits)
        for event in events([head], what="a sheet", limits=limits, whole=False):
            if event[0] == "start":
                self.furniture(event[1], event[2])

    def read(self, opened: Opened) -> Survey:
        """Survey the whole part as text; raises NotPlain if that cannot show it."""
        if opened.is_empty_element():
            self.tail(chain([opened.head], opened.rest))
            return self.survey
        source = Chunks(opened, ending=b"row", what="a sheet", limits=self.limits)
        for chunk in source:
            if is_odd(chunk, ":row"):
                raise NotPlain
            self.rows(chunk)
        self.tail(chain([opened.root], source.rest()))
        return self.survey

    def rows(self, chunk: str, numbers: list[int] | None = None, *, are_units_known: bool = False) -> None:
        """Survey the next rows, with their numbers if known. Raises NotPlain if the text does not show them."""
        if numbers is None:
            numbers = list(map(int, _ROW_NUMBER.findall(chunk)))
            if len(numbers) != chunk.count("<row"):
                numbers = self._stored_numbers(chunk) if numbers else self._number_consecutively(chunk)
        if numbers and (numbers[0] <= self._last or not all(map(lt, numbers, numbers[1:]))):
            self.survey.ordered = False
        first, self._last = self._last, numbers[-1] if numbers else self._last
        if "h" in chunk and "hidden" in chunk:  # searching one character first is many times faster
            for row, tag in zip(numbers, _attributes_of_rows(chunk), strict=True):
                if tag.get("hidden") in _TRUE and row <= self.limits.max_rows:
                    self.layout.hidden_rows.add(row)
        styled = first < self.limits.layout_rows
        if styled:
            self.layout.styled_rows = min(self._last, self.limits.layout_rows)
        marker = self.marker
        if (styled and marker.marked_styles) or marker.is_any_struck or (marker.units and not are_units_known):
            self._survey_styles(chunk, are_units_known=are_units_known)

    def _stored_numbers(self, chunk: str) -> list[int]:
        """Return the numbers that all rows of a chunk have; raises NotPlain if one has none."""
        numbers = [number(tag, "r") for tag in _attributes_of_rows(chunk)]
        if all(numbers):
            return numbers
        raise NotPlain  # a row's cells may have its number

    def _number_consecutively(self, chunk: str) -> list[int]:
        """Number the rows of a chunk from the last one on. If the first reference in a row disagrees, return the stored
        numbers, which raises NotPlain if they are not plain."""
        rows = chunk.split("<row")[1:]
        numbers = list(range(self._last + 1, self._last + 1 + len(rows)))
        for counted, row in zip(numbers, rows, strict=True):
            if reference := _REFERENCE.search(row):
                address = _PLACED.match(row, reference.start())
                if address is None or int(address[1]) != counted:
                    return self._stored_numbers(chunk)
        return numbers

    def _survey_styles(self, chunk: str, *, are_units_known: bool) -> None:
        """Add what the styles of a chunk's cells show to the layout; raises NotPlain for cells without an address."""
        marker = self.marker
        styles_to_mark = set(marker.marked_styles)
        if not are_units_known:
            styles_to_mark |= marker.units.keys()
        cells = _CELL_STYLE.findall(chunk)
        if not are_units_known and marker.units and len(cells) != len(_STYLED_CELL.findall(chunk)):
            raise NotPlain  # cells without an address
        for style, letters, row in cells:
            if int(style) in styles_to_mark:
                marker.mark(int(row), column_number(letters), int(style), unit=not are_units_known)

    def tail(self, pieces: Iterator[bytes]) -> None:
        """Read merges, filter and tables after the cells; they are hints, so a broken tail loses only them."""
        try:
            tail = events(_at_most(pieces, _MAX_TAIL), what="a sheet", limits=self.limits, whole=False)
            for event in tail:
                if event[0] == "start":
                    self.furniture(event[1], event[2])
        except errors.InputUnreadable as error:
            if error.code != "damaged":
                raise


class _ParsedSurvey(_LayoutSurvey):
    """Surveys with the parser, for sheets that are not plain text."""

    def read(self, pieces: Iterator[bytes]) -> Survey:
        """Survey the whole part with the parser, whatever its form."""
        row = column = 0
        in_data = lacks_number = hidden = False
        for event in events(pieces, what="a sheet", limits=self.limits):
            _, name, attributes = event
            if name == "sheetData":
                in_data = event[0] == "start"
            if isinstance(attributes, str):  # an end event
                if name == "row" and in_data:
                    self._survey_row(row, hidden=hidden)
            elif name == "row" and in_data:
                row_number = number(attributes, "r")
                lacks_number, hidden, row, column = (
                    not row_number,
                    attributes.get("hidden", "").strip() in _TRUE,
                    row_number or row + 1,
                    0,
                )
            elif name == "c" and in_data:
                row_in_cell, column_in_cell = cell(attributes.get("r", ""))
                if lacks_number and row_in_cell:
                    row = row_in_cell
                lacks_number, column = False, column_in_cell or column + 1
                self.marker.mark(row, column, number(attributes, "s"))
            elif not in_data:
                self.furniture(name, attributes)
        return self.survey

    def _survey_row(self, row: int, *, hidden: bool) -> None:
        """Add a row that is complete to the survey: whether it is in order, and whether it is hidden."""
        self.survey.ordered = self.survey.ordered and row > self._last
        self._last = row
        self.marker.row(row, hidden=hidden)


def _attributes_of_rows(chunk: str) -> list[Attributes]:
    """Return the attributes of every row. Raises NotPlain if a tag has an unusual form."""
    tags = _ROW.findall(chunk)
    if len(tags) != chunk.count("<row"):
        raise NotPlain
    return [
        {name: without_entities(value.lstrip("= \t\n")[1:-1]).strip() for name, value in _ATTRIBUTE.findall(tag)}
        for tag in tags
    ]


def _split(attributes: Attributes, name: str) -> int:
    """Return a number of frozen rows or columns; 0 if it makes no sense."""
    text = attributes.get(name, "").partition(".")[0]
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 8 else 0


def _at_most(pieces: Iterator[bytes], bytes_left: int) -> Iterator[bytes]:
    """Yield the pieces, up to the one with which they would be more than so many bytes."""
    for piece in pieces:
        bytes_left -= len(piece)
        if bytes_left < 0:
            return
        yield piece
