"""Opens .xlsx and .xlsm: the shared parts (strings, styles, declared tables), then each sheet's rows."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import BinaryIO, TypeVar

from runner.engine.reading import errors
from runner.engine.reading.books import (
    Block,
    Book,
    DeclaredTable,
    Format,
    Layout,
    ListedSheet,
    OutOfOrder,
    ReadLimits,
    Remark,
    Row,
    SharedStrings,
    Sheet,
    Visibility,
    ascending,
    join_blocks,
    rows_of,
    turned,
)
from runner.engine.reading.number_formats import CellStyle, NumberFormat, Styles, format_of
from runner.engine.reading.runs import CellNotes, Run, RunStyle, may_be_twice, noted_twice, shown
from runner.engine.reading.xlsx.careful import CellReader, careful_rows, run_style
from runner.engine.reading.xlsx.markup import (
    XML_BLANKS,
    Attributes,
    Chunks,
    Event,
    OoxmlPackage,
    Opened,
    Relation,
    area,
    attribute,
    drain,
    events,
    is_odd,
    number,
    unescaped,
    without_entities,
)
from runner.engine.reading.xlsx.quick import quick_blocks
from runner.engine.reading.xlsx.surveys import NotPlain, Survey, Surveyor, parsed_survey, survey

_WHAT = "sharedStrings.xml"
_OPEN, _CLOSE = "<si><t>", "</t>"
_PRESERVED = '<si><t xml:space="preserve">'
_MARK = "\x01"  # never in XML text; precedes texts whose blanks are kept
_MARKED = _OPEN + _MARK


def read_strings(pieces: Iterable[bytes], limits: ReadLimits) -> SharedStrings:
    """Read all shared strings in order, without phonetic guides; runs of rich text are joined."""
    strings = SharedStrings(limits)
    opened = Opened(pieces, b"si", closing=b"sst")
    batches = _split_strings(opened, limits) if opened.plain else _parsed_strings(opened.whole(), limits)
    for batch in batches:
        strings.extend(batch)
    return strings


def _split_strings(opened: Opened, limits: ReadLimits) -> Iterator[list[str | None]]:
    """Yield the strings of the part in batches, None for empty ones: split as text, by the parser where that is not
    plain."""
    source = Chunks(opened, ending=b"si", what=_WHAT, limits=limits)
    for chunk in source:
        if is_odd(chunk, ":si"):
            yield from _parsed_strings(chain([opened.root], source.again()), limits)
            return
        done, end, tail = chunk.rpartition("</si>")
        batch = _plain_strings(done)
        if batch is None:
            yield from _parsed_strings([b"<sst>", (done + end).encode(), b"</sst>"], limits)
        else:
            yield batch
        if "<si" in tail:  # an empty <si/> after the last text
            yield from _parsed_strings([b"<sst>", tail[: tail.rfind("</")].encode(), b"</sst>"], limits)
    drain(source.rest())


def _plain_strings(chunk: str) -> list[str | None] | None:
    """Return the strings of a chunk if each is one plain text; None if any is not."""
    if not chunk:
        return []
    chunk = chunk.replace(_PRESERVED, _MARKED)
    if not chunk.startswith(_OPEN) or not chunk.endswith(_CLOSE):
        return None
    texts = chunk[len(_OPEN) : -len(_CLOSE)].split(_CLOSE + "</si>" + _OPEN)
    if chunk.count("<") != 4 * len(texts) - 1:
        return None
    strings = [(text[1:] if text.startswith(_MARK) else text.strip(XML_BLANKS)) or None for text in texts]
    if "&" in chunk:
        strings = [without_entities(text) if text and "&" in text else text for text in strings]
    if "_x" in chunk:
        strings = [unescaped(text) if text and "_x" in text else text for text in strings]
    return noted_twice(strings) if may_be_twice(chunk) else strings


def _parsed_strings(pieces: Iterable[bytes], limits: ReadLimits) -> Iterator[list[str | None]]:
    """Yield the strings of these pieces by the parser, in batches, None for empty ones."""
    runs: list[Run] = []
    batch: list[str | None] = []
    phonetic = keeps_blanks = False
    style: RunStyle = ""
    for event in events(pieces, what=_WHAT, limits=limits):
        name = event[1]
        if event[0] == "start":
            if name == "si":
                runs.clear()
                style = ""
            elif name == "r":
                style = ""
            elif name == "rPh":
                phonetic = True
            elif name == "t":
                keeps_blanks = event[2].get("xml:space") == "preserve"
            else:
                style = run_style(name, event[2]) or style
        elif name == "t":
            if not phonetic:
                runs.append(Run(unescaped(event[2] if keeps_blanks else event[2].strip(XML_BLANKS)), style))
        elif name == "rPh":
            phonetic = False
        elif name == "si":
            batch.append(shown(runs) or None)
            if len(batch) >= 1024:
                yield noted_twice(batch)
                batch = []
    yield noted_twice(batch)


_T = TypeVar("_T")
_FONT_MARKS = {"b": "bold", "strike": "struck"}


class StylesReader:
    """Reads a styles part, event by event: fonts, fills and number formats first, then the cell styles made of them."""

    def __init__(self) -> None:
        self._formats: dict[int, NumberFormat] = {}  # by number
        self._fonts: list[CellStyle] = []
        self._fills: list[bool] = []  # whether each shows
        self._section = ""  # the open element below the root
        self._path: list[str] = []  # open elements
        self.styles = Styles()

    def read(self, events: Iterable[Event], limits: ReadLimits) -> Styles:
        """Read the styles of a part, from its events; raises InputUnreadable if there are too many."""
        for event in events:
            if len(self.styles.kinds) > limits.max_styles:
                raise errors.hostile(f"more than {limits.max_styles} cell styles")
            if event[0] == "start":
                self._path.append(event[1])
                self._start(event[1], event[2])
            else:
                self._path.pop()
                if len(self._path) == 1:
                    self._section = ""
        return self.styles

    def _start(self, name: str, attributes: Attributes) -> None:
        """Add what an opening tag says to the section that it is in."""
        depth = len(self._path)
        if depth == 2:
            self._section = name
        elif self._section == "numFmts" and name == "numFmt":
            self._formats[number(attributes, "numFmtId")] = format_of(attributes.get("formatCode", ""))
        elif self._section == "fonts":
            self._add_font(name, attributes, depth)
        elif self._section == "fills":
            self._add_fill(name, attributes, depth)
        elif self._section == "cellXfs":
            self._add_cell_style(name, attributes)

    def _add_font(self, name: str, attributes: Attributes, depth: int) -> None:
        """Add a font, or set a property of the last one."""
        if depth == 3:
            self._fonts.append(CellStyle())
        elif name in _FONT_MARKS and self._fonts and attributes.get("val", "1") not in ("0", "false"):
            setattr(self._fonts[-1], _FONT_MARKS[name], True)

    def _add_fill(self, name: str, attributes: Attributes, depth: int) -> None:
        """Add a fill, or set whether the last one shows."""
        if depth == 3:
            self._fills.append(False)
        elif name == "patternFill" and self._fills:
            self._fills[-1] = attributes.get("patternType", "none") not in ("none", "gray125")
        elif name == "gradientFill" and self._fills:
            self._fills[-1] = True

    def _add_cell_style(self, name: str, attributes: Attributes) -> None:
        """Add a cell style: its number format, font and fill."""
        if name == "xf":
            identity = number(attributes, "numFmtId")
            font = _at(self._fonts, number(attributes, "fontId"), CellStyle())
            cell_style = replace(font, filled=_at(self._fills, number(attributes, "fillId"), False))
            self.styles.add(identity, self._formats, cell_style)


def _at(items: list[_T], index: int, otherwise: _T) -> _T:
    """Return the item at an index; another one if there is none."""
    return items[index] if index < len(items) else otherwise


_MAX_TABLES = 1_000
_PRINT_TITLES, _FILTER = "_xlnm.Print_Titles", "_xlnm._FilterDatabase"
NAMED_AREAS = (_PRINT_TITLES, _FILTER)


def declared_tables(package: OoxmlPackage, sheet_part: str, identities: list[str]) -> list[DeclaredTable]:
    """Return the ListObjects of a sheet, in its order; missing parts are skipped."""
    if not identities:
        return []
    relations = package.relations(sheet_part)
    tables = []
    for identity in identities[:_MAX_TABLES]:
        relation = relations.get(identity)
        entry = package.archive.find(relation.part) if relation else None
        if entry is None:
            continue
        for event in package.events(entry):
            if event[0] == "start" and event[1] == "table" and (where := area(event[2].get("ref", ""))):
                attributes = event[2]
                tables.append(
                    DeclaredTable(
                        name=attributes.get("displayName") or attributes.get("name", ""),
                        area=where,
                        header_rows=number(attributes, "headerRowCount") if "headerRowCount" in attributes else 1,
                        totals_rows=number(attributes, "totalsRowCount"),
                    )
                )
    return tables


def name_areas(layout: Layout, names: list[tuple[str, int | None, str]], position: int) -> None:
    """Add print titles and the filter's area, which are defined names of the sheet."""
    for name, sheet, formula in names:
        if sheet != position:
            continue
        if name == _PRINT_TITLES:
            layout.print_title_rows = _parse_title_rows(formula)
        elif name == _FILTER and layout.autofilter is None:
            layout.autofilter = area(formula.rpartition("!")[2])


def _parse_title_rows(formula: str) -> tuple[int, int] | None:
    """Return the first and last row that ``Sheet1!$A:$A,Sheet1!$3:$4`` names; None if it names only columns."""
    for reference in formula.split(","):
        first, _, last = reference.rpartition("!")[2].replace("$", "").partition(":")
        if _is_row(first) and _is_row(last):
            return int(first), int(last)
    return None


def _is_row(text: str) -> bool:
    """Whether a text is the number of a row."""
    return text.isascii() and text.isdecimal() and len(text) < 9


_VISIBILITY: dict[str, Visibility] = {"hidden": "hidden", "veryHidden": "very_hidden"}


class Workbook:
    """The parts that sheets share. Strings and styles are read on first use."""

    def __init__(self, package: OoxmlPackage, part: str, file: BinaryIO) -> None:
        self._file = file
        self.package = package
        self.part = part
        self.relations = package.relations(self.part)
        self.epoch_1904 = False
        self.names: list[tuple[str, int | None, str]] = []  # defined names: name, sheet position, formula
        self.listed: list[ListedSheet] = []
        self._read_workbook_part()

    def _read_workbook_part(self) -> None:
        """Read the workbook part: the epoch, defined names and sheets."""
        entry = self.package.archive.find(self.part)
        if entry is None:
            raise errors.damaged("its workbook part is missing")
        name, sheet = "", None
        position = 0
        for event in self.package.events(entry):
            if event[0] == "end":
                if event[1] == "definedName" and name in NAMED_AREAS:
                    self.names.append((name, sheet, event[2]))
                continue
            _, tag, attributes = event
            if tag == "workbookPr" and "date1904" in attributes:  # an extension element of this name lacks it
                self.epoch_1904 = attributes["date1904"] in ("1", "true", "on")
            elif tag == "definedName":
                name = attributes.get("name", "")
                sheet = number(attributes, "localSheetId") if "localSheetId" in attributes else None
            elif tag == "sheet":
                position += 1
                self._list_sheet(attribute(attributes, "name") or f"Sheet{position}", attributes, position)

    def _list_sheet(self, name: str, attributes: dict[str, str], position: int) -> None:
        """Add a sheet to `listed` if it holds cells; raises InputUnreadable if there are too many."""
        if position > self.package.limits.max_sheets:
            raise errors.too_large(f"it has more than {self.package.limits.max_sheets} sheets")
        relation = self.relations.get(attribute(attributes, "id") or "")
        if relation is None and not self.relations:
            relation = self._guess_part(attributes.get("sheetId", ""), position)
        if relation is None or relation.kind != "worksheet":
            return  # charts, dialogs, modules and macro sheets contain no data
        visibility = _VISIBILITY.get(attributes.get("state", ""), "visible")
        self.listed.append(ListedSheet(name=name, part=relation.part, position=position - 1, visibility=visibility))

    def _guess_part(self, sheet_id: str, position: int) -> Relation | None:
        """Guess the part of a sheet, by its number, in a workbook without relations; None if there is no such part."""
        for digits in (sheet_id, str(position)):
            part = f"xl/worksheets/sheet{digits}.xml"
            if self.package.archive.find(part) is not None:
                return Relation(kind="worksheet", part=part)
        return None

    @property
    def has_macros(self) -> bool:
        return any(relation.kind == "vbaProject" for relation in self.relations.values())

    @cached_property
    def styles(self) -> Styles:
        entry = self.package.related(self.relations, "styles") or self.package.archive.find("xl/styles.xml")
        return Styles() if entry is None else StylesReader().read(self.package.events(entry), self.package.limits)

    def strings(self) -> SharedStrings:
        return self._strings

    def close(self) -> None:
        """Close the file, and free the strings, which take more memory than all else that is known of the workbook."""
        self._file.close()
        if (strings := self.__dict__.pop("_strings", None)) is not None:
            strings.clear()  # readers of cells may refer to them until the next collection of cycles

    @cached_property
    def _strings(self) -> SharedStrings:
        """Return the texts that cells share; raises InputUnreadable if their part is missing."""
        entry = self.package.related(self.relations, "sharedStrings") or self.package.archive.find(
            "xl/sharedStrings.xml"
        )
        if entry is None:
            raise errors.damaged("the part with its shared strings is missing")
        return read_strings(self.package.archive.stream(entry), self.package.limits)


class XlsxSheet:
    """A worksheet of an .xlsx; it is surveyed while its rows are read for the first time."""

    def __init__(self, workbook: Workbook, listed: ListedSheet, index: int) -> None:
        self.name = listed.name
        self.index = index
        self.visibility = listed.visibility
        self._workbook = workbook
        self._listed = listed
        self._notes = CellNotes()

    @property
    def workbook(self) -> Workbook:
        return self._workbook

    @property
    def part(self) -> str:
        """The name of the part that holds its cells."""
        return self._listed.part

    def rows(self) -> Iterator[Row]:
        _ = self._survey  # `rows` must return them in order the first time
        return rows_of(self.blocks())

    def blocks(self) -> Iterator[Block]:
        """Yield the rows in blocks of columns, without the marks of notes."""
        book = self._workbook
        self._notes = CellNotes()
        cells = CellReader(book.strings, book.styles, epoch_1904=book.epoch_1904, notes=self._notes)
        return self._notes.plain_blocks(self._read_blocks(cells), are_expected=cells.are_notes_expected)

    def remarks(self) -> list[Remark]:
        """Return what the cells of the last reading show besides their values."""
        return self._notes.remarks()

    def _read_blocks(self, cells: CellReader) -> Iterator[Block]:
        """Read the rows by column, in order: quickly where the part is plain text, sorted where they do not ascend."""
        limits, notes = self._workbook.package.limits, self._notes
        opened = self._open_part()
        if not opened.plain:
            rows = careful_rows(opened.whole(), cells, limits)
            return turned(rows if self._survey.ordered else ascending(rows, limits, notes.add_twice))
        if "_survey" not in self.__dict__:
            return join_blocks(self._survey_while_reading(opened, cells))
        blocks = quick_blocks(opened, cells, limits)
        return (
            join_blocks(blocks) if self._survey.ordered else turned(ascending(rows_of(blocks), limits, notes.add_twice))
        )

    def _survey_while_reading(self, opened: Opened, cells: CellReader) -> Iterator[Block]:
        """Yield the blocks of a sheet that is surveyed while it is read; OutOfOrder if it has to be read once more."""
        surveyor = Surveyor(opened.head, self._workbook.styles, self._workbook.package.limits)
        try:
            yield from quick_blocks(opened, cells, self._workbook.package.limits, surveyor)
        except (OutOfOrder, NotPlain):
            _ = self._survey  # remembered: the next reading sorts
            raise OutOfOrder from None
        self._survey = surveyor.survey

    def layout(self) -> Layout:
        return self._layout

    def stored_bytes(self) -> int:
        """Bytes of its part, not compressed."""
        entry = self._workbook.package.archive.find(self._listed.part)
        return 0 if entry is None else entry.size

    def _open_part(self) -> Opened:
        """Open the sheet's part, and read it up to its cells."""
        archive = self._workbook.package.archive
        entry = archive.find(self._listed.part)
        if entry is None:
            raise errors.damaged("the part with a sheet's cells is missing")
        return Opened(archive.stream(entry), b"sheetData")

    @cached_property
    def _survey(self) -> Survey:
        """Survey the sheet in a first pass; by a parser where its markup is not plain."""
        styles, limits = self._workbook.styles, self._workbook.package.limits
        try:
            return survey(self._open_part(), styles, limits)
        except NotPlain:
            return parsed_survey(self._open_part(), styles, limits)

    @cached_property
    def _layout(self) -> Layout:
        """Return what is known of the sheet besides its values, with its declared tables and names."""
        layout = self._survey.layout
        layout.declared_tables = declared_tables(self._workbook.package, self._listed.part, self._survey.table_ids)
        name_areas(layout, self._workbook.names, self._listed.position)
        return layout


def open_xlsx(file: BinaryIO, package: OoxmlPackage, part: str) -> Book:
    """Open a workbook whose worksheets are in their order; `part`: its workbook part."""
    workbook = Workbook(package, part, file)
    sheets: list[Sheet] = [XlsxSheet(workbook, listed, index) for index, listed in enumerate(workbook.listed)]
    kind: Format = "xlsm" if workbook.has_macros else "xlsx"
    notes: dict[str, object] = {"epoch": 1904 if workbook.epoch_1904 else 1900}
    return Book(file_format=kind, reader="own", sheets=sheets, notes=notes, source=workbook)
