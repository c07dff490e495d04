"""A web page opened as a book: many programs export an HTML table and call the file .xls."""

import codecs
import re
from collections.abc import Iterator
from typing import BinaryIO

from runner.engine.reading import errors
from runner.engine.reading.books import Book, Layout, Sheet, Visibility
from runner.engine.reading.delimited.encodings import detect
from runner.engine.reading.limits import ReadLimits
from runner.engine.reading.values import Row
from runner.engine.reading.webpages.tables import PageTable, read_tables
from runner.engine.reading.webpages.tags import tokens

_HEAD = 16 * 1024
_CHARSET = re.compile(rb"""<(?:meta\b[^>]*?charset|\?xml\b[^>]*?encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


class PageSheet:
    """One table of the page."""

    def __init__(self, table: PageTable, index: int) -> None:
        self.name = table.name or f"Table {index + 1}"
        self.index = index
        self.visibility: Visibility = "visible"
        self._table = table

    def rows(self) -> Iterator[Row]:
        return ((number, list(values)) for number, values in self._table.rows)

    def layout(self) -> Layout:
        return self._table.layout


def open_page(file: BinaryIO, limits: ReadLimits) -> Book:
    """Each table of the page is a sheet; a table inside another one is a sheet of its own."""
    file.seek(0, 2)
    if file.tell() > limits.max_page_bytes:
        raise errors.too_large(f"a web page of {file.tell()} bytes, {limits.max_page_bytes} are allowed")
    name, sure = _encoding(file)
    file.seek(0)
    page = file.read().decode(name, "replace")
    tables = read_tables(tokens(page.removeprefix("\ufeff")), limits)
    if not tables:
        raise errors.not_a_spreadsheet("an HTML page with no table in it")
    sheets: list[Sheet] = [PageSheet(table, index) for index, table in enumerate(tables)]
    notes: dict[str, object] = {"encoding": name, "encoding_sure": sure}
    return Book(file_format="html", reader="own", sheets=sheets, notes=notes, source=file)


def _encoding(file: BinaryIO) -> tuple[str, bool]:
    """What a mark says, else what the page says, else what its bytes look like."""
    file.seek(0)
    head = file.read(_HEAD)
    if not head.startswith(_MARKS) and (declared := _CHARSET.search(head)):
        try:
            name = codecs.lookup(declared[1].decode("ascii")).name
        except (LookupError, UnicodeDecodeError):
            name = ""
        if name in ("iso8859-1", "ascii"):
            name = "cp1252"  # as browsers have it
        if name and not name.startswith("utf-16") and _is_text(name):
            return name, True
    found = detect(file)
    return found.name, found.sure


def _is_text(name: str) -> bool:
    """Whether it is an encoding of texts: Python knows others by name, too."""
    try:
        return isinstance(b"a".decode(name), str)
    except (LookupError, ValueError):
        return False
