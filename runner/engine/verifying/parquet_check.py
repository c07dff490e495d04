"""Checks that normalized.parquet is exactly what our own writer writes.

Pages are read one after the other from the first byte, each is unpacked within bounds and its values are counted; then
the metadata is made again from the columns and the pages, and has to be identical. So there is no second reading: no
bytes between pages, no other codec, encoding or nesting, and no column that is not in the schema.
"""

import re
import struct
from array import array
from collections.abc import Callable
from datetime import date
from math import isfinite
from typing import IO, Any, Final, NamedTuple

from isal import isal_zlib

from runner.engine.options import DataOptions
from runner.engine.protocol import BadOutput
from runner.engine.verifying.split_column import WRONG_FILE, SplitColumn
from runner.engine.writing.parquet import (
    GZIP_HEAD,
    MAGIC,
    PAGE_HEADER_PARTS,
    PHYSICAL,
    UNIX_DAY,
    PageFacts,
    metadata,
    page_header,
    varint,
)
from runner.engine.writing.typed import PRECISION, ColumnType, TypedColumn

MAX_METADATA: Final = 64 * 1024 * 1024
MAX_PAGE: Final = 1024 * 1024 * 1024  # uncompressed: the box's own memory limit is lower
_VARINT: Final = rb"([\x80-\xff]{0,4}+[\x00-\x7f])"
_HEADER: Final = re.compile(_VARINT.join(map(re.escape, PAGE_HEADER_PARTS)), re.DOTALL)
_LONGEST_HEADER: Final = 64
_GZIP_WINDOW: Final = 31
_DAY: Final = 24 * 60 * 60 * 1_000_000  # in microseconds
_LENGTH: Final = struct.Struct("<I")
_NOT_OURS: Final = "normalized.parquet was not written by the engine's writer"
_UNPACKING_FAILED: Final[Any] = (isal_zlib.error, OSError)  # isal's types call its error an instance


class _Range(NamedTuple):
    """The numbers that stand for a value of a type, and how they are stored."""

    code: str  # of `array`
    least: int
    most: int


class _Metadata(NamedTuple):
    """The metadata at the end of a file."""

    begins_at: int  # in the file, in bytes
    body: bytes


class _StoredValues(NamedTuple):
    """The values of a page, checked."""

    body: bytes
    number: int  # blanks are not stored


class _Page(NamedTuple):
    """A page of a column, decompressed."""

    facts: PageFacts
    body: bytes


def count_parquet_rows(
    file: IO[bytes], columns: list[TypedColumn], _: DataOptions, split: SplitColumn | None = None
) -> int:
    """Count the rows of normalized.parquet; raises BadOutput unless every byte is as the engine writes it.

    `split`: what one column must hold.
    """
    end, stored_metadata = _read_metadata(file)
    groups: list[list[PageFacts]] = []
    at = len(MAGIC)
    while at < end:
        group: list[PageFacts] = []
        for n, column in enumerate(columns):
            page = _read_page(file, at, end)
            stored = _check_values(column, page)
            if split is not None and split.at == n:
                _check_split(split, stored, page.facts.values - stored.number)
            group.append(page.facts)
            at += page.facts.packed
        if len({facts.values for facts in group}) != 1 or not group[0].values:
            raise BadOutput("normalized.parquet has columns of different lengths")
        groups.append(group)
    if at != end or metadata(columns, groups) != stored_metadata:
        raise BadOutput(_NOT_OURS)
    return sum(group[0].values for group in groups)


def _read_metadata(file: IO[bytes]) -> _Metadata:
    """Read the metadata; raises BadOutput if the file does not begin and end as ours do."""
    size = file.seek(0, 2)
    tail = _LENGTH.size + len(MAGIC)
    if size < len(MAGIC) + tail:
        raise BadOutput(_NOT_OURS)
    file.seek(0)
    head = file.read(len(MAGIC))
    file.seek(size - tail)
    (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
    end = size - tail - length
    if head != MAGIC or file.read() != MAGIC or end < len(MAGIC) or length > MAX_METADATA:
        raise BadOutput(_NOT_OURS)
    file.seek(end)
    return _Metadata(end, file.read(length))


def _read_page(file: IO[bytes], at: int, end: int) -> _Page:
    """Read the page that begins at byte `at` and decompress it; raises BadOutput if it is not as ours are, or goes
    beyond byte `end`."""
    file.seek(at)
    header = _HEADER.match(file.read(_LONGEST_HEADER))
    if header is None:
        raise BadOutput(_NOT_OURS)
    size, packed, values = (_parse_varint(part) for part in header.groups())
    head = header.end()
    if header.group() != page_header(size, packed, values) or size > MAX_PAGE or at + head + packed > end:
        raise BadOutput(_NOT_OURS)
    file.seek(at + head)
    body = _unpack_page(file.read(packed), size)
    return _Page(PageFacts(at, values, head + size, head + packed), body)


def _unpack_page(raw: bytes, size: int) -> bytes:
    """Decompress a page; raises BadOutput unless it has exactly the size of its header."""
    unpack = isal_zlib.decompressobj(_GZIP_WINDOW)
    try:
        body = unpack.decompress(raw, size + 1)
    except _UNPACKING_FAILED:
        raise BadOutput("normalized.parquet has a page that cannot be decompressed") from None
    if len(body) != size or not unpack.eof or unpack.unused_data or not raw.startswith(GZIP_HEAD):
        raise BadOutput("normalized.parquet has a page that differs from its header")
    return body


def _parse_varint(raw: bytes) -> int:
    """Parse a zigzag varint; raises BadOutput for a negative number."""
    number = sum((byte & 0x7F) << 7 * n for n, byte in enumerate(raw))
    if number & 1:
        raise BadOutput(_NOT_OURS)
    return number >> 1


def _check_split(split: SplitColumn, stored: _StoredValues, blanks: int) -> None:
    """Check that the rows of a page belong to the file; raises BadOutput. `blanks`: rows without a value."""
    if not split.holds(_parse_texts(stored)) or (blanks and not split.holds([None])):
        raise BadOutput(WRONG_FILE)


def _parse_texts(stored: _StoredValues) -> list[str]:
    """Parse the texts of a page that was checked."""
    texts, at, body = [], 0, stored.body
    for _ in range(stored.number):
        (length,) = _LENGTH.unpack_from(body, at)
        at += _LENGTH.size + length
        texts.append(body[at - length : at].decode())
    return texts


def _check_values(column: TypedColumn, page: _Page) -> _StoredValues:
    """Check that a page has as many values as its levels say, each of its column's type; raises BadOutput."""
    body, values = page.body, page.facts.values
    if len(body) < _LENGTH.size:
        raise BadOutput(_NOT_OURS)
    (length,) = _LENGTH.unpack_from(body)
    levels, stored = body[_LENGTH.size : _LENGTH.size + length], body[_LENGTH.size + length :]
    present = _count_present(levels, values)
    fits = _FITS.get(column.type)
    width = PHYSICAL[column.type].width
    if not (len(stored) == present * width if fits is None else fits(stored, present)) or not _are_in_range(
        column, stored
    ):
        raise BadOutput("normalized.parquet has a page with other values than its column's type")
    return _StoredValues(stored, present)


def _count_present(levels: bytes, values: int) -> int:
    """Count the rows that have a value, by the levels: a run of ones, or a bit for each row; raises BadOutput."""
    head = re.match(_VARINT, levels, re.DOTALL)
    if head is None:
        raise BadOutput(_NOT_OURS)
    number = sum((byte & 0x7F) << 7 * n for n, byte in enumerate(head.group()))
    rest = levels[head.end() :]
    if head.group() != varint(number):
        raise BadOutput(_NOT_OURS)
    if not number & 1:
        if number >> 1 != values or rest != b"\1":
            raise BadOutput(_NOT_OURS)
        return values
    flags = int.from_bytes(rest, "little")
    if number >> 1 != len(rest) or len(rest) != (values + 7) // 8 or flags >> values:
        raise BadOutput(_NOT_OURS)
    return flags.bit_count()


def _texts_fit(stored: bytes, present: int) -> bool:
    """Whether bytes are so many texts in UTF-8, each after its length."""
    at, end = 0, len(stored)
    for _ in range(present):
        if at + _LENGTH.size > end:
            return False
        (length,) = _LENGTH.unpack_from(stored, at)
        at += _LENGTH.size
        try:
            stored[at : at + length].decode()
        except UnicodeDecodeError:
            return False
        at += length
    return at == end


def _are_in_range(column: TypedColumn, stored: bytes) -> bool:
    """Whether the numbers of a page are such that a reader can make values of the column's type of them."""
    if column.type is ColumnType.NUMBER:
        numbers = array("d", stored)
        return isfinite(sum(numbers)) or all(map(isfinite, numbers))  # a sum of large ones may overflow
    limits = _RANGES.get(column.type)
    if limits is None or not stored:
        return True
    counts = array(limits.code, stored)
    return limits.least <= min(counts) and max(counts) <= limits.most


def _bits_fit(stored: bytes, present: int) -> bool:
    """Whether bytes are so many bits, with zeros behind the last."""
    return len(stored) == (present + 7) // 8 and int.from_bytes(stored, "little") >> present == 0


_DAYS: Final = (date.min.toordinal() - UNIX_DAY, date.max.toordinal() - UNIX_DAY)
_RANGES: Final = {
    ColumnType.INTEGER: _Range("q", 1 - 2**63, 2**63 - 1),
    ColumnType.DECIMAL: _Range("q", 1 - 10**PRECISION, 10**PRECISION - 1),
    ColumnType.DATE: _Range("i", *_DAYS),
    ColumnType.DATETIME: _Range("q", _DAYS[0] * _DAY, (_DAYS[1] + 1) * _DAY - 1),
    ColumnType.TIME: _Range("q", 0, _DAY - 1),
}
_FITS: Final[dict[ColumnType, Callable[[bytes, int], bool]]] = {
    ColumnType.TEXT: _texts_fit,
    ColumnType.BOOLEAN: _bits_fit,
}
