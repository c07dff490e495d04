"""An .xlsx or .xlsm opened: its sheets, styles, strings and epoch."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO

from runner.engine.reading import errors
from runner.engine.reading.archives import Entry
from runner.engine.reading.books import Book, Format, Layout, Sheet, Visibility
from runner.engine.reading.rows import OutOfOrder, ascending, gathered, rows_of, turned
from runner.engine.reading.strings import SharedStrings
from runner.engine.reading.styles import Styles
from runner.engine.reading.values import Block, Row
from runner.engine.reading.xlsx.careful import careful_rows
from runner.engine.reading.xlsx.cells import CellReader
from runner.engine.reading.xlsx.chunks import Opened
from runner.engine.reading.xlsx.markup import attribute
from runner.engine.reading.xlsx.packages import Package, Relation
from runner.engine.reading.xlsx.quick import quick_blocks
from runner.engine.reading.xlsx.shared_strings import read_strings
from runner.engine.reading.xlsx.style_parts import StylesReader, number
from runner.engine.reading.xlsx.surveys import NotPlain, Survey, Surveyor, parsed_survey, survey
from runner.engine.reading.xlsx.tables import NAMED_AREAS, declared_tables, name_areas

_VISIBILITY: dict[str, Visibility] = {"hidden": "hidden", "veryHidden": "very_hidden"}


@dataclass(frozen=True, kw_only=True)
class _Listed:
    """A sheet as the workbook part lists it."""

    name: str
    part: str
    position: int  # 0-based among all sheets, charts included: defined names count so
    visibility: Visibility


class Workbook:
    """The parts that sheets share. Strings and styles are read when the first cell asks."""

    def __init__(self, package: Package, part: str) -> None:
        self.package = package
        self.part = part
        self.relations = package.relations(self.part)
        self.epoch_1904 = False
        self.names: list[tuple[str, int | None, str]] = []  # defined names: name, sheet position, formula
        self.listed: list[_Listed] = []
        self._read()

    def _read(self) -> None:
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
            if tag == "workbookPr" and "date1904" in attributes:  # an extension of the same name has none
                self.epoch_1904 = attributes["date1904"] in ("1", "true", "on")
            elif tag == "definedName":
                name = attributes.get("name", "")
                sheet = number(attributes, "localSheetId") if "localSheetId" in attributes else None
            elif tag == "sheet":
                position += 1
                self._list(attribute(attributes, "name") or f"Sheet{position}", attributes, position)

    def _list(self, name: str, attributes: dict[str, str], position: int) -> None:
        if position > self.package.limits.max_sheets:
            raise errors.too_large(f"more than {self.package.limits.max_sheets} sheets")
        relation = self.relations.get(attribute(attributes, "id") or "")
        if relation is None and not self.relations:
            relation = self._guess(attributes.get("sheetId", ""), position)
        if relation is None or relation.kind != "worksheet":
            return  # charts, dialogs, modules and macro sheets hold no cells of data
        visibility = _VISIBILITY.get(attributes.get("state", ""), "visible")
        self.listed.append(_Listed(name=name, part=relation.part, position=position - 1, visibility=visibility))

    def _guess(self, sheet_id: str, position: int) -> Relation | None:
        """Where the relations are lost: take the part that the number suggests."""
        for digits in (sheet_id, str(position)):
            part = f"xl/worksheets/sheet{digits}.xml"
            if self.package.archive.find(part) is not None:
                return Relation(kind="worksheet", part=part)
        return None

    @property
    def has_macros(self) -> bool:
        return any(relation.kind == "vbaProject" for relation in self.relations.values())

    def related(self, kind: str) -> Entry | None:
        for relation in self.relations.values():
            if relation.kind == kind and (entry := self.package.archive.find(relation.part)):
                return entry
        return None

    @cached_property
    def styles(self) -> Styles:
        entry = self.related("styles") or self.package.archive.find("xl/styles.xml")
        return Styles() if entry is None else StylesReader().read(self.package.events(entry), self.package.limits)

    def strings(self) -> SharedStrings:
        return self._strings

    @cached_property
    def _strings(self) -> SharedStrings:
        entry = self.related("sharedStrings") or self.package.archive.find("xl/sharedStrings.xml")
        if entry is None:
            raise errors.damaged("its cells refer to shared strings, and that part is missing")
        return read_strings(self.package.archive.stream(entry), self.package.limits)


class XlsxSheet:
    def __init__(self, workbook: Workbook, listed: _Listed, index: int) -> None:
        self.name = listed.name
        self.index = index
        self.visibility = listed.visibility
        self._workbook = workbook
        self._listed = listed

    def rows(self) -> Iterator[Row]:
        _ = self._survey  # what comes one by one must come in order at once
        return rows_of(self.blocks())

    def blocks(self) -> Iterator[Block]:
        book, limits = self._workbook, self._workbook.package.limits
        cells = CellReader(book.strings, book.styles, epoch_1904=book.epoch_1904)
        opened = self._opened()
        if not opened.plain:
            rows = careful_rows(opened.whole(), cells, limits)
            return turned(rows if self._survey.ordered else ascending(rows, limits))
        if "_survey" not in self.__dict__:
            return gathered(self._surveyed(opened, cells))
        blocks = quick_blocks(opened, cells, limits)
        return gathered(blocks) if self._survey.ordered else turned(ascending(rows_of(blocks), limits))

    def _surveyed(self, opened: Opened, cells: CellReader) -> Iterator[Block]:
        """Read and survey in one go."""
        surveyor = Surveyor(opened.head, self._workbook.styles, self._workbook.package.limits)
        try:
            yield from quick_blocks(opened, cells, self._workbook.package.limits, surveyor)
        except (OutOfOrder, NotPlain):
            _ = self._survey  # known from now on: the next reading is a sorted one
            raise OutOfOrder from None
        self._survey = surveyor.survey

    def layout(self) -> Layout:
        return self._layout

    def _opened(self) -> Opened:
        archive = self._workbook.package.archive
        entry = archive.find(self._listed.part)
        if entry is None:
            raise errors.damaged("the part of a sheet is missing")
        return Opened(archive.stream(entry), b"sheetData")

    @cached_property
    def _survey(self) -> Survey:
        styles, limits = self._workbook.styles, self._workbook.package.limits
        try:
            return survey(self._opened(), styles, limits)
        except NotPlain:
            return parsed_survey(self._opened(), styles, limits)

    @cached_property
    def _layout(self) -> Layout:
        layout = self._survey.layout
        layout.declared_tables = declared_tables(self._workbook.package, self._listed.part, self._survey.table_ids)
        name_areas(layout, self._workbook.names, self._listed.position)
        return layout


def open_xlsx(file: BinaryIO, package: Package, part: str) -> Book:
    workbook = Workbook(package, part)
    sheets: list[Sheet] = [XlsxSheet(workbook, one, index) for index, one in enumerate(workbook.listed)]
    kind: Format = "xlsm" if workbook.has_macros else "xlsx"
    notes: dict[str, object] = {"epoch": 1904 if workbook.epoch_1904 else 1900}
    return Book(file_format=kind, reader="own", sheets=sheets, notes=notes, source=file)
