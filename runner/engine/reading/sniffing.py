"""What a file really is, from its first bytes."""

import re
import unicodedata

from runner.engine.reading import errors
from runner.engine.reading.errors import InputUnreadable

_UNPACK = "Unpack it and drop the spreadsheet inside."
_EXPORT = "Export the data as .xlsx or .csv and drop that."
_MAGIC: tuple[tuple[bytes, str, str], ...] = (
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
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body|table|meta)\b", re.IGNORECASE)
_JSON = re.compile(rb"""\{\s*(?:"[^"\n]{0,200}"\s*:|\})|\[\s*(?:\{\s*"|\[|\])""")
_PAGE = errors.not_a_spreadsheet("an HTML page")
_CONTROL = bytes(set(range(28)) - {9, 10, 11, 12, 13, 26, 27} | {127})  # 28 to 31 separate fields and records
_LOCK_FILES = (165, 171)  # sizes of the owner files that Excel leaves beside an open workbook


def refusal(head: bytes, size: int, *, is_text: bool = False) -> InputUnreadable | None:
    """Why a file that is neither zip nor OLE container is no spreadsheet; None where it may be text.

    ``is_text``: the manifest names its encoding or its delimiter, so odd bytes are no reason to refuse it.
    """
    for magic, what, remedy in _MAGIC:
        if head.startswith(magic):
            return errors.not_a_spreadsheet(what, remedy)
    for magic, what in _OLD_SHEETS:
        if head.startswith(magic):
            return errors.unsupported(what)
    if head[257:262] == b"ustar":
        return errors.not_a_spreadsheet("a tar archive", _UNPACK)
    if head[4:8] == b"ftyp":
        return errors.not_a_spreadsheet("a video or audio file", _EXPORT)
    return _text_refusal(head) or (None if is_text else _binary_refusal(head, size))


def _text_refusal(head: bytes) -> InputUnreadable | None:  # one line per kind of text
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
    """Whether a file is a web page: programs export tables so and call the file .xls."""
    refused = _text_refusal(head)
    return refused is not None and refused.message == _PAGE.message


def _binary_refusal(head: bytes, size: int) -> InputUnreadable | None:
    if head and not head.strip(b"\x00"):
        return errors.no_content()
    if size in _LOCK_FILES and b"\x00" in head and head[0] < 55 and head[55:56] in (b"\x00", bytes([head[0]])):
        return errors.not_a_spreadsheet(
            "the lock file that Excel keeps while a workbook is open (~$…)", "Drop the workbook itself."
        )
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") or is_wide(head):
        return None
    controls = len(head) - len(head.translate(None, _CONTROL))
    if controls > max(2, len(head) // 100):  # text has next to none
        return errors.not_a_spreadsheet("binary data of an unknown kind")
    return None


def is_wide(head: bytes) -> str:
    """The byte order of UTF-16 text without a mark, which has its zero bytes at every other place; else nothing.

    Digits, blanks and delimiters give each text some, whatever its script; other text has none.
    """
    pairs = len(head) // 2
    if pairs < 2:
        return ""
    even = head[0 : 2 * pairs : 2].count(0)
    odd = head[1 : 2 * pairs : 2].count(0)
    order, many, few = ("utf-16-le", odd, even) if odd > even else ("utf-16-be", even, odd)
    if many > pairs * 0.7 and few < pairs * 0.05:
        return order
    if many < max(4, pairs * 0.04) or few > many / 8:
        return ""
    text = head[: 2 * pairs].decode(order, "replace").rstrip("\ufffd")
    strange = sum(unicodedata.category(one) in ("Cc", "Cn", "Co", "Cs") for one in set(text) - set("\t\r\n\x1a"))
    return order if ("\n" in text or "\r" in text) and not strange else ""
