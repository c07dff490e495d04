"""An .ods opened."""

from collections.abc import Iterator
from functools import cached_property
from typing import BinaryIO

from runner.engine.reading import errors
from runner.engine.reading.archives import Archive, Entry
from runner.engine.reading.books import Book, Layout, Sheet, Visibility
from runner.engine.reading.limits import ReadLimits
from runner.engine.reading.opendocument.sheets import Place, TableReader, find_tables, read_table
from runner.engine.reading.values import Row
from runner.engine.reading.xlsx.markup import events, local

_KIND = "application/vnd.oasis.opendocument."
_OTHERS = {
    "text": "an OpenDocument text (.odt)",
    "presentation": "an OpenDocument presentation (.odp)",
    "graphics": "an OpenDocument drawing (.odg)",
}


def is_opendocument(archive: Archive) -> bool:
    entry = archive.find("mimetype")
    return entry is not None and entry.size < 200 and archive.read(entry).startswith(_KIND.encode())


class OdsSheet:
    def __init__(self, archive: Archive, entry: Entry, place: Place, index: int, limits: ReadLimits) -> None:
        self.name = place.name
        self.index = index
        self.visibility: Visibility = "visible"
        self._archive = archive
        self._entry = entry
        self._place = place
        self._limits = limits

    def rows(self) -> Iterator[Row]:
        return read_table(self._pieces(), TableReader(self._limits))

    def layout(self) -> Layout:
        return self._layout

    @cached_property
    def _layout(self) -> Layout:
        reader = TableReader(self._limits)
        for _ in read_table(self._pieces(), reader):
            pass
        return reader.layout

    def _pieces(self) -> Iterator[bytes]:
        at = 0
        for piece in self._archive.stream(self._entry):
            start, end = max(self._place.start - at, 0), self._place.end - at
            at += len(piece)
            if start < len(piece) and end > 0:
                yield piece[start:end]
            if at >= self._place.end:
                return


def open_ods(file: BinaryIO, archive: Archive, limits: ReadLimits) -> Book:
    _refuse_others(archive, limits)
    entry = archive.find("content.xml")
    if entry is None:
        raise errors.damaged("its content.xml is missing")
    places = find_tables(archive.stream(entry), limits)
    sheets: list[Sheet] = []
    for place in places.tables:
        sheet = OdsSheet(archive, entry, place, len(sheets), limits)
        sheet.visibility = "hidden" if place.style in places.hidden_styles else "visible"
        sheets.append(sheet)
    return Book(file_format="ods", reader="own", sheets=sheets, notes={"epoch": places.epoch}, source=file)


def _refuse_others(archive: Archive, limits: ReadLimits) -> None:
    mimetype = archive.find("mimetype")
    kind = archive.read(mimetype).decode("ascii", "replace").strip() if mimetype else ""
    for word, what in _OTHERS.items():
        if kind.startswith(_KIND + word):
            raise errors.not_a_spreadsheet(what)
    manifest = archive.find("META-INF/manifest.xml")
    if manifest is None:
        return
    for event in events([archive.read(manifest)], what="manifest.xml", limits=limits):
        if event[0] == "start" and local(event[1]) == "encryption-data":
            raise errors.encrypted("an OpenDocument spreadsheet")
