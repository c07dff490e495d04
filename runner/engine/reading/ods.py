"""Reads .ods: cell values, the tables of content.xml as rows, and the book."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import time, timedelta
from functools import cached_property
from types import MappingProxyType
from typing import BinaryIO, Final

from runner.engine.reading import errors, number_formats
from runner.engine.reading.books import (
    NO_CACHED_VALUE,
    Book,
    CellError,
    Layout,
    ReadLimits,
    Remark,
    Row,
    Sheet,
    Value,
    Visibility,
)
from runner.engine.reading.containers import OPENDOCUMENT, Entry, ZipArchive
from runner.engine.reading.number_formats import MOST_CHARACTERS, Shower
from runner.engine.reading.runs import CellNotes, Noted, Run, RunStyle, may_be_twice, shown
from runner.engine.reading.xlsx.markup import Attributes, Markup, events, local

_DURATION = re.compile(
    r"(?P<sign>-)?P(?:(?P<days>\d+)D)?"
    r"(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)(?:[.,](?P<fraction>\d{1,40}))?S)?)?"
)
_ERROR = re.compile(r"#[A-Z/0]{3,12}[!?]?|Err:\d{3}")

_DIGITS = re.compile("[0-9]+")
_AMOUNT_SIGN = re.compile(r"[.,%\u2019'\u00a0\u202f$\u00a2-\u00a5\u20a0-\u20cf]|[0-9]E[+-]|[0-9]/[0-9]")
_GROUPED = re.compile("[-+(]?[1-9][0-9]{0,2}(?: [0-9]{3})+[-)]?")
_ERROR_BY_NUMBER = {  # LibreOffice numbers errors that Excel has no name for
    "Err:503": "#NUM!",
    "Err:521": "#NULL!",
    "Err:524": "#REF!",
    "Err:525": "#NAME?",
    "Err:532": "#DIV/0!",
}


def value_of(attributes: dict[str, str], text: str) -> Value:
    """Convert a cell: ``attributes`` by local name, ``text`` is what the cell shows."""
    if attributes.get("calcext") == "error":
        return _error(text)
    kind = attributes.get("value-type", "")
    if (read := _BY_TYPE.get(kind)) is not None:
        return read(attributes, text)
    if "formula" in attributes:
        if not kind and not text:
            return NO_CACHED_VALUE
        if _ERROR.fullmatch(text):
            return _error(text)
    return attributes.get("string-value") or text or None


def _number_or_text(attributes: dict[str, str], text: str) -> Value:
    """Return the value of a cell that stores a number; its text if it stores none."""
    if not attributes.get("value"):
        return text or None
    number = number_formats.number_from_text(attributes["value"])
    is_whole = attributes["value-type"] == "float" and type(number) is int
    return number_formats.shown(_shower_from(text), number) if is_whole else number


_BY_TYPE: Final[dict[str, Callable[[dict[str, str], str], Value]]] = {
    "float": _number_or_text,
    "percentage": _number_or_text,
    "currency": _number_or_text,
    "date": lambda attributes, text: number_formats.iso_value(attributes.get("date-value", "")) or text or None,
    "time": lambda attributes, text: _time_or_duration(attributes.get("time-value", "")) or text or None,
    "boolean": lambda attributes, text: attributes.get("boolean-value", text).strip().lower() == "true",
}


_NUMERAL = re.compile(r"[-+(]?[\d.,' \u00a0\u202f]*\d\)?")


def _unit_shown(number: float, text: str) -> str:
    """Return the unit that a cell shows beside its number; a comma for a number that is shown divided by a thousand."""
    if (numeral := _NUMERAL.search(text)) is None:
        return ""
    unit = "" if len(numeral[0]) == len(text) else " ".join(_WORD.findall(text.replace(numeral[0], " ", 1)))
    if abs(number) < 1000 or unit[:1] in ("E", "e"):  # too small to be divided, or written with an exponent
        return unit
    shown_digits = sum(map(str.isdecimal, numeral[0]))
    hidden_digits = len(str(int(abs(number)))) - shown_digits
    return "," * (hidden_digits // 3) + unit if hidden_digits >= 3 else unit


_WORD = re.compile(r"[^\W\d_]+\.?|[$%\u00a2-\u00a5\u20a0-\u20cf]")


def _shower_from(text: str) -> Shower:
    """Make a renderer from the cell's own text: the cell stores what it shows, but not its format."""
    bare = " ".join(text.split())

    def show(number: int) -> str | None:
        """None for an amount: grouped digits, or digits that differ from the number's."""
        digits = "".join(_DIGITS.findall(bare))
        if _AMOUNT_SIGN.search(bare) or _GROUPED.fullmatch(bare) or (digits and int(digits) != abs(number)):
            return None
        return bare if bare and bare != str(number) else None

    return show if len(bare) <= MOST_CHARACTERS else lambda _: None


def _error(text: str) -> CellError:
    """Return a spreadsheet error by the name that Excel has for it."""
    return CellError(_ERROR_BY_NUMBER.get(text.strip(), text))


def _time_or_duration(text: str) -> Value:
    """Parse a duration: a time of day below 24 hours, else a duration, since ODS stores both the same way; None for
    another text, the text itself for one that is too long."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        return None
    sign, days, hours, minutes, seconds, fraction = match.groups()
    try:
        span = timedelta(
            days=int(days or 0),
            hours=int(hours or 0),
            minutes=int(minutes or 0),
            seconds=int(seconds or 0),
        )
        span += number_formats.fraction_of(fraction)
    except (OverflowError, ValueError):
        return text
    if sign:
        return -span
    if span < timedelta(days=1):
        whole, microsecond = span.seconds, span.microseconds
        return time(whole // 3600, whole // 60 % 60, whole % 60, microsecond)
    return span


_HIDDEN_STATES = ("collapse", "filter")
_LONGEST_UNIT = 20  # characters
_PARAGRAPHS = ("p", "h")
_ELEMENTS_ASIDE = ("annotation", "ruby-text", "tracked-changes", "shapes", "forms")
_COPIES_OF_TABLES = ("table:dde-links", "table:tracked-changes")  # tables in them are copies of other tables
_CELL_ATTRIBUTES = {
    "office:value-type": "value-type",
    "office:value": "value",
    "office:currency": "currency",
    "office:date-value": "date-value",
    "office:time-value": "time-value",
    "office:boolean-value": "boolean-value",
    "office:string-value": "string-value",
    "table:formula": "formula",
    "calcext:value-type": "calcext",
}


@dataclass(kw_only=True)
class TablePlace:
    """A table's byte range in the part, from the start of its tag to the end of its closing tag."""

    name: str
    style: str
    start: int
    end: int = 0


@dataclass(kw_only=True)
class Places:
    """What one scan of content.xml finds: its tables, and the styles that matter for reading them."""

    tables: list[TablePlace] = field(default_factory=list)
    hidden_styles: set[str] = field(default_factory=set)
    styles: dict[str, RunStyle] = field(default_factory=dict)  # of texts in a style
    epoch: int = 1900  # the epoch of day numbers


def find_tables(pieces: Iterable[bytes], limits: ReadLimits) -> Places:
    """Scan the whole part once, and remember where each table is, so that each sheet can be read separately later."""
    places = Places()
    markup = Markup("content.xml", limits)
    parser = markup.parser
    style, depth, levels, aside = "", 0, 0, 0

    def start(name: str, attributes: Attributes) -> None:
        """Note where a table starts and which styles hide sheets or strike texts."""
        nonlocal style, depth, levels, aside
        levels += 1
        if levels > limits.max_depth:
            raise errors.hostile(f"elements nested more than {limits.max_depth} deep in content.xml")
        if aside or name in _COPIES_OF_TABLES:
            aside += 1
        elif name == "table:table":
            depth += 1
            if depth == 1:
                if len(places.tables) >= limits.max_sheets:
                    raise errors.too_large(f"it has more than {limits.max_sheets} sheets")
                table_name = attributes.get("table:name") or f"Sheet{len(places.tables) + 1}"
                offset = parser.CurrentByteIndex
                table_style = attributes.get("table:style-name", "")
                places.tables.append(TablePlace(name=table_name, style=table_style, start=offset))
        elif name == "table:null-date" and attributes.get("table:date-value", "").startswith("1904"):
            places.epoch = 1904
        elif name == "style:style":
            style = attributes.get("style:name", "")
        elif name == "style:table-properties" and attributes.get("table:display") == "false":
            places.hidden_styles.add(style)
        elif name == "style:text-properties" and (run_style := _run_style(attributes)):
            places.styles[style] = run_style

    def end(name: str) -> None:
        """Note where a table ends."""
        nonlocal depth, levels, aside
        levels -= 1
        if aside:
            aside -= 1
        elif name == "table:table":
            depth -= 1
            if depth == 0:
                places.tables[-1].end = parser.CurrentByteIndex

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    for piece in pieces:
        markup.feed(piece)
    markup.feed(b"", last=True)
    return places


def _run_style(attributes: Attributes) -> RunStyle:
    """Return how the properties of a style make a text look."""
    if (
        attributes.get("style:text-line-through-style", attributes.get("style:text-line-through-type", "none"))
        != "none"
    ):
        return "struck"
    position = attributes.get("style:text-position", "").split(" ")[0]
    if position in ("super", "sub"):
        return "raised" if position == "super" else "lowered"
    shift = position.removesuffix("%").removeprefix("-")
    if not shift.isdecimal() or int(shift) == 0:
        return ""
    return "lowered" if position[0] == "-" else "raised"


class TableReader:
    """XML handlers for one table."""

    def __init__(self, limits: ReadLimits, styles: Mapping[str, RunStyle] = MappingProxyType({})) -> None:
        """Begin above the first row; feed `markup` with the table. `styles`: how styles of the file make texts look, by
        name."""
        self.rows: list[Row] = []
        self.layout = Layout()
        self.notes = CellNotes()
        self._styles = styles
        self._open_spans: list[RunStyle] = []  # of the open spans
        self._run_starts: list[tuple[int, RunStyle]] = []  # where the look of the text changes
        self._limits = limits
        self._row = 0
        self._row_repeat = 1
        self._column = 0
        self._columns_declared = 0
        self._values: list[Value] = []
        self._cell: dict[str, str] | None = None
        self._cell_repeat = 1
        self._depth_aside = 0
        self._text: list[str] = []
        self._paragraphs = 0
        self._depth = 0
        self._in_paragraph = 0
        self._cells_so_far = 0
        self.markup = Markup("content.xml", limits)
        self.markup.parser.StartElementHandler = self._start
        self.markup.parser.EndElementHandler = self._end
        self.markup.parser.CharacterDataHandler = self._data

    def _start(self, name: str, attributes: Attributes) -> None:
        """Begin what an element is: a cell, a row, a column or a part of a cell."""
        self._depth += 1
        if self._depth > self._limits.max_depth:
            raise errors.hostile(f"elements nested more than {self._limits.max_depth} deep in content.xml")
        kind = local(name)
        if self._depth_aside or kind in _ELEMENTS_ASIDE or name.startswith("draw:"):
            self._depth_aside += 1
        elif self._cell is not None:
            self._start_inside_cell(kind, attributes)
        elif kind in ("table-cell", "covered-table-cell"):
            self._cell_repeat = _count(attributes, "table:number-columns-repeated")
            self._cell = {_CELL_ATTRIBUTES[key]: value for key, value in attributes.items() if key in _CELL_ATTRIBUTES}
            self._remember_merged(attributes)
            if self._styles and self._styles.get(attributes.get("table:style-name", "")) == "struck":
                self.layout.struck.setdefault(self._row + 1, set()).add(self._column + 1)
        elif kind == "table-row":
            self._row_repeat = _count(attributes, "table:number-rows-repeated")
            self._column, self._values = 0, []
            if attributes.get("table:visibility") in _HIDDEN_STATES:
                last = min(self._row + self._row_repeat, self._limits.max_rows)
                self.layout.hidden_rows.update(range(self._row + 1, last + 1))
        elif kind == "table-column":
            repeat = _count(attributes, "table:number-columns-repeated")
            if attributes.get("table:visibility") in _HIDDEN_STATES:
                last = min(self._columns_declared + repeat, self._limits.max_columns)
                self.layout.hidden_columns.update(range(self._columns_declared + 1, last + 1))
            self._columns_declared += repeat
        elif kind == "table-header-rows":
            self.layout.print_title_rows = (self._row + 1, self._row + 1)

    def _start_inside_cell(self, kind: str, attributes: Attributes) -> None:
        """Process an element inside a cell: a paragraph, a blank, a line break or a span of text."""
        if kind in _PARAGRAPHS:
            if self._paragraphs:
                self._text.append("\n")
            self._paragraphs += 1
            self._in_paragraph += 1
        elif kind == "s":
            self._text.append(" " * min(_count(attributes, "text:c"), 1024))
        elif kind == "tab":
            self._text.append("\t")
        elif kind == "line-break":
            self._text.append("\n")
        elif kind == "span" and self._styles:
            self._open_spans.append(self._styles.get(attributes.get("text:style-name", ""), ""))
            self._start_run()

    def _start_run(self) -> None:
        """Start a run of the text with the style of the open spans."""
        styles = [style for style in self._open_spans if style]
        self._run_starts.append((len(self._text), "struck" if "struck" in styles else styles[-1] if styles else ""))

    def _text_of_cell(self) -> str:
        """Return the text of the open cell as a person reads it."""
        if not any(style for _, style in self._run_starts):
            return "".join(self._text)
        ends = [start for start, _ in self._run_starts[1:]]
        parts = zip(self._run_starts, [*ends, len(self._text)], strict=True)
        runs = [Run("".join(self._text[start:end]), style) for (start, style), end in parts]
        return shown([Run("".join(self._text[: self._run_starts[0][0]])), *runs])

    def _data(self, data: str) -> None:
        """Collect text of a paragraph."""
        if self._in_paragraph and not self._depth_aside:
            self._text.append(data)

    def _end(self, name: str) -> None:
        """End what an element is, and add finished cells and rows."""
        self._depth -= 1
        kind = local(name)
        if self._depth_aside:
            self._depth_aside -= 1
        elif kind in ("table-cell", "covered-table-cell"):
            self._end_cell()
        elif kind in _PARAGRAPHS and self._cell is not None:
            self._in_paragraph -= 1
        elif kind == "span" and self._open_spans:
            self._open_spans.pop()
            self._start_run()
        elif kind == "table-row":
            self._end_row()
        elif kind == "table-header-rows" and self.layout.print_title_rows:
            self.layout.print_title_rows = (self.layout.print_title_rows[0], self._row)

    def _end_cell(self) -> None:
        """Add the value of the open cell to the row, as often as it is repeated, and its unit to the layout."""
        if self._cell is None:
            return
        text = self._text_of_cell() if self._run_starts else "".join(self._text)
        value = value_of(self._cell, text)
        unit = "%" if self._cell.get("value-type") == "percentage" else self._cell.get("currency", "")
        if not unit and isinstance(value, int | float) and not isinstance(value, bool):
            unit = _unit_shown(value, text[:MOST_CHARACTERS])
        self._cell, self._text, self._paragraphs, self._in_paragraph = None, [], 0, 0
        self._run_starts, self._open_spans = [], []
        if isinstance(value, str):
            value = self._plain_and_note(value)
        start, self._column = self._column, self._column + self._cell_repeat
        if value is None:
            return
        if self._column > self._limits.max_columns:
            raise errors.damaged(f"a cell beyond column {self._limits.max_columns}, the limit of a sheet")
        self._values += [None] * (start - len(self._values))
        self._values += [value] * self._cell_repeat
        for column in range(start + 1, self._column + 1) if unit else ():
            self.layout.add_unit(column, unit[:_LONGEST_UNIT], self._row + 1, self._row + self._row_repeat)

    def _plain_and_note(self, text: str) -> str:
        """Return the text of the open cell as a plain one; adds to `notes` what is to be reported about it."""
        if isinstance(text, Noted):
            self.notes.add(text.note, self._row + 1, self._column + 1)
            return str(text)
        if may_be_twice(text):
            self.notes.add("encoded_twice", self._row + 1, self._column + 1)
        return text

    def _end_row(self) -> None:
        """Add the open row, as often as it is repeated."""
        first, self._row = self._row + 1, self._row + self._row_repeat
        if not self._values:
            return
        self._cells_so_far += len(self._values) * self._row_repeat
        if self._row > self._limits.max_rows or self._cells_so_far > self._limits.max_cells:
            raise errors.too_large(f"a sheet has values down to row {self._row}")
        if self._row_repeat > 1 and self._cells_so_far > self._limits.max_sorted_cells:
            raise errors.hostile("rows repeated into millions of cells")
        self.rows += [(number, list(self._values)) for number in range(first, self._row + 1)]

    def _remember_merged(self, attributes: Attributes) -> None:
        """Remember the area of a cell that spans several rows or columns."""
        across = _count(attributes, "table:number-columns-spanned")
        down = _count(attributes, "table:number-rows-spanned")
        if (across > 1 or down > 1) and len(self.layout.merged) < self._limits.max_merged:
            row, column = self._row + 1, self._column + 1
            self.layout.merged.append((row, column, row + down - 1, column + across - 1))


def read_table(pieces: Iterable[bytes], reader: TableReader) -> Iterator[Row]:
    """Yield the rows of a table, from the bytes of its range; each is then gone from the reader."""
    reader.markup.feed(b"<sheet>")
    for piece in pieces:
        reader.markup.feed(piece)
        yield from reader.rows
        reader.rows.clear()


def _count(attributes: Attributes, name: str) -> int:
    """Return a count in an attribute; 1 if it is absent or invalid."""
    text = attributes.get(name, "1")
    return max(int(text), 1) if text.isascii() and text.isdecimal() and len(text) < 9 else 1


_OTHER_DOCUMENTS = {
    "text": "an OpenDocument text (.odt)",
    "presentation": "an OpenDocument presentation (.odp)",
    "graphics": "an OpenDocument drawing (.odg)",
}


class OdsSheet:
    """A table of content.xml, by its byte range."""

    def __init__(
        self,
        archive: ZipArchive,
        entry: Entry,
        place: TablePlace,
        index: int,
        limits: ReadLimits,
        *,
        styles: Mapping[str, RunStyle],
    ) -> None:
        """Prepare to read a table of `entry`; `styles` as for `TableReader`."""
        self.name = place.name
        self.index = index
        self.visibility: Visibility = "visible"
        self._archive = archive
        self._entry = entry
        self._place = place
        self._limits = limits
        self._styles = styles
        self._notes = CellNotes()

    def rows(self) -> Iterator[Row]:
        reader = TableReader(self._limits, self._styles)
        self._notes = reader.notes
        return read_table(self._table_bytes(), reader)

    def remarks(self) -> list[Remark]:
        """Return what the cells of the last reading show besides their values."""
        return self._notes.remarks()

    def layout(self) -> Layout:
        return self._layout

    @cached_property
    def _layout(self) -> Layout:
        """What is known of the sheet besides its values; reads it once."""
        reader = TableReader(self._limits, self._styles)
        for _ in read_table(self._table_bytes(), reader):
            pass
        return reader.layout

    def _table_bytes(self) -> Iterator[bytes]:
        """Yield the bytes of the table's part of content.xml."""
        offset = 0
        for piece in self._archive.stream(self._entry):
            start, end = max(self._place.start - offset, 0), self._place.end - offset
            offset += len(piece)
            if start < len(piece) and end > 0:
                yield piece[start:end]
            if offset >= self._place.end:
                return


def open_ods(file: BinaryIO, archive: ZipArchive, limits: ReadLimits) -> Book:
    """Open a spreadsheet, each table as a sheet; raises InputUnreadable for other OpenDocument files."""
    _refuse_others(archive, limits)
    entry = archive.find("content.xml")
    if entry is None:
        raise errors.damaged("its content.xml is missing")
    places = find_tables(archive.stream(entry), limits)
    sheets: list[Sheet] = []
    for place in places.tables:
        sheet = OdsSheet(archive, entry, place, len(sheets), limits, styles=places.styles)
        sheet.visibility = "hidden" if place.style in places.hidden_styles else "visible"
        sheets.append(sheet)
    return Book(file_format="ods", reader="own", sheets=sheets, notes={"epoch": places.epoch}, source=file)


def _refuse_others(archive: ZipArchive, limits: ReadLimits) -> None:
    """Raise InputUnreadable for texts, presentations, drawings and encrypted spreadsheets."""
    mimetype = archive.find("mimetype")
    kind = archive.read(mimetype).decode("ascii", "replace").strip() if mimetype else ""
    for word, what in _OTHER_DOCUMENTS.items():
        if kind.startswith(OPENDOCUMENT + word):
            raise errors.not_a_spreadsheet(what)
    manifest = archive.find("META-INF/manifest.xml")
    if manifest is None:
        return
    for event in events([archive.read(manifest)], what="manifest.xml", limits=limits):
        if event[0] == "start" and local(event[1]) == "encryption-data":
            raise errors.encrypted("an OpenDocument spreadsheet")
