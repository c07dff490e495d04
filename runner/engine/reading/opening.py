"""From a path to a book: what the file is decides, its name only helps."""

from pathlib import Path
from typing import BinaryIO

from runner.engine.reading import errors
from runner.engine.reading.archives import Archive
from runner.engine.reading.books import Book
from runner.engine.reading.delimited import open_delimited
from runner.engine.reading.limits import ReadLimits
from runner.engine.reading.xlsx.workbooks import open_xlsx

_DEFAULTS = ReadLimits()


def open_book(path: str | Path, *, name: str, limits: ReadLimits = _DEFAULTS) -> Book:
    """Open a spreadsheet of any known format; InputUnreadable says why a file cannot be."""
    file = Path(path).open("rb")  # noqa: SIM115  # the book holds it open and closes it
    try:
        return _open(file, name, limits)
    except BaseException:
        file.close()
        raise


def _open(file: BinaryIO, name: str, limits: ReadLimits) -> Book:
    head = file.read(4096)
    if not head:
        raise errors.empty()
    if head[:8] == b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":
        raise errors.encrypted("a workbook")
    if head[:2] == b"PK":
        archive = Archive(file, limits, what="a zip-based workbook")
        return open_xlsx(file, archive, limits, lambda: "xl/vbaProject.bin" in archive.entries)
    return open_delimited(file, name=name, limits=limits)
