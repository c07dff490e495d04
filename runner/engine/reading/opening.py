"""From a path to a book: what the file is decides, its name only helps."""

from pathlib import Path
from typing import BinaryIO

from runner.engine.reading import containers, errors, sniffing
from runner.engine.reading.books import Book, ReadLimits, TextOptions
from runner.engine.reading.containers import ZipArchive
from runner.engine.reading.delimited import open_delimited
from runner.engine.reading.ods import is_opendocument, open_ods
from runner.engine.reading.webpages import open_page
from runner.engine.reading.xls import open_xls
from runner.engine.reading.xlsb import open_xlsb
from runner.engine.reading.xlsx.markup import OoxmlPackage
from runner.engine.reading.xlsx.workbooks import open_xlsx

_DEFAULTS = ReadLimits()
_FOUND_OUT = TextOptions()
_HEAD = 8192
_TEXT_NAMES = (".csv", ".tsv", ".tab", ".txt")


def open_book(
    path: str | Path, *, name: str, limits: ReadLimits = _DEFAULTS, options: TextOptions = _FOUND_OUT
) -> Book:
    """Open a spreadsheet of any known format; InputUnreadable says why a file cannot be."""
    file = Path(path).open("rb")  # noqa: SIM115  # the book holds it open and closes it
    try:
        return _open(file, name, limits, options)
    except BaseException:
        file.close()
        raise


def _open(file: BinaryIO, name: str, limits: ReadLimits, options: TextOptions) -> Book:
    head = file.read(_HEAD)
    file.seek(0, 2)
    size = file.tell()
    if size > limits.max_file_bytes:
        raise errors.too_large(f"{size} bytes, {limits.max_file_bytes} are allowed")
    if head.startswith(containers.MAGIC):
        return _open_container(file, limits, options)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _open_zip(file, limits)
    if not head and not name.lower().endswith(_TEXT_NAMES):
        raise errors.empty()  # an empty text file is a table with no rows, an empty workbook is none
    if sniffing.is_page(head):
        return open_page(file, limits, declared=options.encoding)
    declared = options.encoding is not None or options.delimiter is not None
    if (refused := sniffing.refusal(head, size, is_text=declared)) is not None:
        raise refused
    return open_delimited(file, name=name, limits=limits, options=options)


def _open_zip(file: BinaryIO, limits: ReadLimits) -> Book:
    archive = ZipArchive(file, limits, what="a zip-based workbook")
    if is_opendocument(archive):
        return open_ods(file, archive, limits)
    package = OoxmlPackage(archive, limits)
    part = package.workbook_part()
    return open_xlsb(file, package, part) if part.endswith(".bin") else open_xlsx(file, package, part)


def _open_container(file: BinaryIO, limits: ReadLimits, options: TextOptions) -> Book:
    container = containers.Container(file, limits)
    if (refused := containers.refusal(container)) is not None:
        raise refused
    return open_xls(file, container, limits, declared=options.encoding)
