"""Opens a file as a book. Its content decides the format, whatever its name; other files are refused by kind.

Readers are loaded when a file needs them: together they take a tenth of the time in which a box starts.
"""

import re
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from runner.engine.reading import containers, errors
from runner.engine.reading.books import Book, ReadLimits, TextOptions
from runner.engine.reading.containers import ZipArchive, is_opendocument

_DEFAULTS = ReadLimits()
_DETECT_ALL = TextOptions()
_HEAD_BYTES = 8192
_TEXT_NAMES = (".csv", ".tsv", ".tab", ".txt")


def open_book(
    path: str | Path, *, name: str, limits: ReadLimits = _DEFAULTS, options: TextOptions = _DETECT_ALL
) -> Book:
    """Open a spreadsheet of any supported format; raises InputUnreadable for other files."""
    file = Path(path).open("rb")  # noqa: SIM115  # the book holds it open and closes it
    try:
        return _open_by_content(file, name, limits, options)
    except BaseException:
        file.close()
        raise


def load_readers() -> None:
    """Load the readers of all formats: a warm process does it once for all of its boxes."""
    for name in ("delimited", "ods", "webpages", "xls", "xlsb", "xlsx.workbooks"):
        import_module(f"runner.engine.reading.{name}")


def _open_by_content(file: BinaryIO, name: str, limits: ReadLimits, options: TextOptions) -> Book:
    """Open a file by its first bytes; raises InputUnreadable for what is not a spreadsheet."""
    head = file.read(_HEAD_BYTES)
    file.seek(0, 2)
    size = file.tell()
    if size > limits.max_file_bytes:
        raise errors.too_large(f"it has {size} bytes; the limit is {limits.max_file_bytes}")
    if head.startswith(containers.MAGIC):
        return _open_container(file, limits, options)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _open_zip(file, limits)
    if not head and not name.lower().endswith(_TEXT_NAMES):
        raise errors.empty()  # an empty text file is a table without rows; an empty workbook is an error
    if is_page(head):
        from runner.engine.reading.webpages import open_page  # noqa: PLC0415

        return open_page(file, limits, declared=options.encoding)
    declared = options.encoding is not None or options.delimiter is not None
    if (reason := refusal(head, size, is_text=declared)) is not None:
        raise reason
    from runner.engine.reading.delimited import open_delimited  # noqa: PLC0415

    return open_delimited(file, name=name, limits=limits, options=options)


def _open_zip(file: BinaryIO, limits: ReadLimits) -> Book:
    """Open a zip by what it contains: .ods, .xlsb or .xlsx."""
    archive = ZipArchive(file, limits, what="a zip-based workbook")
    if is_opendocument(archive):
        from runner.engine.reading.ods import open_ods  # noqa: PLC0415

        return open_ods(file, archive, limits)
    from runner.engine.reading.xlsx.markup import OoxmlPackage  # noqa: PLC0415

    package = OoxmlPackage(archive, limits)
    part = package.workbook_part()
    if part.endswith(".bin"):
        from runner.engine.reading.xlsb import open_xlsb  # noqa: PLC0415

        return open_xlsb(file, package, part)
    from runner.engine.reading.xlsx.workbooks import open_xlsx  # noqa: PLC0415

    return open_xlsx(file, package, part)


def _open_container(file: BinaryIO, limits: ReadLimits, options: TextOptions) -> Book:
    """Open an OLE container as .xls; raises InputUnreadable for other documents."""
    container = containers.Container(file, limits)
    if (reason := containers.refusal(container)) is not None:
        raise reason
    from runner.engine.reading.xls import open_xls  # noqa: PLC0415

    return open_xls(file, container, limits, declared=options.encoding)


_UNPACK = "Unpack it and drop the spreadsheet inside."
_EXPORT = "Export the data as .xlsx or .csv and drop that."
_OTHER_KINDS: tuple[tuple[bytes, str, str], ...] = (
    (b"%PDF", "a PDF document", _EXPORT),
    (b"%!PS", "a PostScript document", _EXPORT),
    (b"{\\rtf", "an RTF text document", _EXPORT),
    (b"\x89PNG\r\n\x1a\n", "a PNG image", _EXPORT),
    (b"\xff\xd8\xff", "a JPEG image", _EXPORT),
    (b"GIF8", "a GIF image", _EXPORT),
    (b"II*\x00", "a TIFF image", _EXPORT),
    (b"MM\x00*", "a TIFF image", _EXPORT),
    (b"\x1f\x8b", "a gzip archive", _UNPACK),
    (b"BZh", "a bzip2 archive", _UNPACK),
    (b"\xfd7zXZ\x00", "an xz archive", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", _UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive", _UNPACK),
    (b"\x7fELF", "a program (ELF)", _EXPORT),
    (b"MZ", "a Windows program", _EXPORT),
    (b"SQLite format 3\x00", "an SQLite database", _EXPORT),
    (b"PAR1", "a Parquet file", _EXPORT),
    (b"ARROW1", "an Arrow file", _EXPORT),
    (b"Obj\x01", "an Avro file", _EXPORT),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", _EXPORT),
    (b"\x00\x01\x00\x00Standard", "an Access database", _EXPORT),
    (b"RIFF", "an audio or video file", _EXPORT),
    (b"ID3", "an audio file", _EXPORT),
    (
        b"version https://git-lfs",
        "a Git LFS pointer, which only names the real file",
        "Fetch the file itself.",
    ),
    (b"-----BEGIN ", "a key or certificate", _EXPORT),
)
_OLD_SHEETS: tuple[tuple[bytes, str], ...] = (
    (b"\x09\x00\x04\x00", "an Excel 2 worksheet"),
    (b"\x09\x02\x06\x00", "an Excel 3 worksheet"),
    (b"\x09\x04\x06\x00", "an Excel 4 worksheet"),
    (b"\x00\x00\x02\x00", "a Lotus 1-2-3 worksheet"),
    (b"\x00\x00\x1a\x00", "a Lotus 1-2-3 worksheet"),
    (b"ID;P", "a SYLK sheet"),
)
_TAR_MARK_OFFSET, _MP4_MARK_OFFSET = 257, 4  # bytes from the start of such a file
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body|table|meta)\b", re.IGNORECASE)
_JSON = re.compile(rb"""\{\s*(?:"[^"\n]{0,200}"\s*:|\})|\[\s*(?:\{\s*"|\[|\])""")
_PAGE = errors.not_a_spreadsheet("an HTML page")
_CONTROL_BYTES = bytes(set(range(28)) - {9, 10, 11, 12, 13, 26, 27} | {127})  # 28 to 31 separate fields and records
_LOCK_FILES = (165, 171)  # sizes of Excel's lock files


def refusal(head: bytes, size: int, *, is_text: bool = False) -> errors.InputUnreadable | None:
    """Explain why a file that is neither a zip nor an OLE container is not a spreadsheet; None if it may be text.

    ``is_text``: the manifest declares its encoding or delimiter, so unusual bytes are no reason to refuse it.
    """
    for magic, what, remedy in _OTHER_KINDS:
        if head.startswith(magic):
            return errors.not_a_spreadsheet(what, remedy)
    for magic, what in _OLD_SHEETS:
        if head.startswith(magic):
            return errors.unsupported(what)
    if head.startswith(b"ustar", _TAR_MARK_OFFSET):
        return errors.not_a_spreadsheet("a tar archive", _UNPACK)
    if head.startswith(b"ftyp", _MP4_MARK_OFFSET):
        return errors.not_a_spreadsheet("a video or audio file", _EXPORT)
    return _explain_text(head) or (None if is_text else _explain_binary(head, size))


def _explain_text(head: bytes) -> errors.InputUnreadable | None:  # one line per kind of text
    """Explain why a file that begins with text is not a spreadsheet; None if it may be one."""
    text = head.removeprefix(b"\xef\xbb\xbf")
    if text[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = text.replace(b"\x00", b"")[2:]
    text = text.lstrip()
    if text.startswith((b"<?xml", b"<Workbook")):
        if b"schemas-microsoft-com:office:spreadsheet" in text:
            return errors.unsupported("an Excel 2003 XML spreadsheet")
        if b"opendocument" in text:
            return errors.unsupported("a flat OpenDocument file")
        if _HTML.search(text) is None:
            return errors.not_a_spreadsheet("an XML document", _EXPORT)
    if _HTML.match(text) or (text.startswith(b"<") and _HTML.search(text)):
        return _PAGE
    if text.startswith(b"MIME-Version:"):
        return errors.not_a_spreadsheet("a web archive (MHTML)")
    if _JSON.match(text):
        return errors.not_a_spreadsheet("JSON text", _EXPORT)
    return None


def is_page(head: bytes) -> bool:
    """Whether a file is a web page: many programs export tables as HTML and name the file .xls."""
    reason = _explain_text(head)
    return reason is not None and reason.message == _PAGE.message


def _explain_binary(head: bytes, size: int) -> errors.InputUnreadable | None:
    """Explain why a file whose bytes are not text is not a spreadsheet; None if they may be text."""
    if head and not head.strip(b"\x00"):
        return errors.no_content()
    if size in _LOCK_FILES and b"\x00" in head and head[0] < 55 and head[55:56] in (b"\x00", bytes([head[0]])):
        return errors.not_a_spreadsheet(
            "the lock file that Excel keeps while a workbook is open (~$…)", "Drop the workbook itself."
        )
    from runner.engine.reading.encodings import is_wide  # noqa: PLC0415

    if head[:2] in (b"\xff\xfe", b"\xfe\xff") or is_wide(head):
        return None
    controls = len(head) - len(head.translate(None, _CONTROL_BYTES))
    if controls > max(2, len(head) // 100):  # text has hardly any
        return errors.not_a_spreadsheet("binary data of an unknown kind")
    return None
