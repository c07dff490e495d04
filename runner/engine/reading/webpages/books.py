"""A web page opened as a book: many programs export an HTML table and call the file .xls."""

import codecs
import re
from collections.abc import Iterator
from typing import BinaryIO

from runner.engine.reading import errors
from runner.engine.reading.books import Book, Layout, Sheet, Visibility
from runner.engine.reading.delimited.books import encoding_choice
from runner.engine.reading.delimited.encodings import detect
from runner.engine.reading.limits import ReadLimits
from runner.engine.reading.values import Row
from runner.engine.reading.webpages.tables import PageTable, read_tables
from runner.engine.reading.webpages.tags import tokens

_HEAD = 16 * 1024
_CHARSET = re.compile(rb"""<(?:meta\b[^>]*?charset|\?xml\b[^>]*?encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)


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


def open_page(file: BinaryIO, limits: ReadLimits, *, declared: str | None = None) -> Book:
    """Each table of the page is a sheet; a table inside another one is a sheet of its own."""
    file.seek(0, 2)
    if file.tell() > limits.max_page_bytes:
        raise errors.too_large(f"a web page of {file.tell()} bytes, {limits.max_page_bytes} are allowed")
    encoding = detect(file, declared=declared or _named(file))
    file.seek(0)
    page = file.read().decode(encoding.name, "replace")
    tables = read_tables(tokens(page.removeprefix("\ufeff")), limits)
    if not tables:
        raise errors.not_a_spreadsheet("an HTML page with no table in it")
    sheets: list[Sheet] = [PageSheet(table, index) for index, table in enumerate(tables)]
    notes: dict[str, object] = {"encoding": encoding.name, "encoding_sure": encoding.sure}
    choices = list(encoding_choice(encoding))
    return Book(file_format="html", reader="own", sheets=sheets, notes=notes, choices=choices, source=file)


def _named(file: BinaryIO) -> str | None:
    """The encoding that the page names; one that it cannot be in, since the name was read, is none."""
    file.seek(0)
    if (found := _CHARSET.search(file.read(_HEAD))) is None:
        return None
    try:
        name = codecs.lookup(found[1].decode("ascii")).name
    except (LookupError, UnicodeDecodeError):
        return None
    if name in ("iso8859-1", "ascii"):
        return "cp1252"  # as browsers have it
    return name if _is_text(name) and not name.startswith(("utf-16", "utf-32")) else None


def _is_text(name: str) -> bool:
    """Whether it is an encoding of texts: Python knows others by name, too."""
    try:
        return isinstance(b"a".decode(name), str)
    except (LookupError, ValueError):
        return False
