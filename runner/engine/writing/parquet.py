"""normalized.parquet: row groups of one page per column, plain values, gzip.

A layout this simple needs no library, can be streamed, and can be verified completely: `verifying/parquet_check.py`
reads exactly this layout and nothing else. The metadata is Thrift's compact protocol, of which a few lines are needed.

    PAR1 | row group: a page for each column | … | metadata | its length | PAR1
    page: header | gzip of: definition levels (which rows have a value) | the values
"""

import struct
from array import array
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time, timedelta
from itertools import chain
from typing import IO, Any, Final, NamedTuple

from isal import isal_zlib

from runner.engine.writing.typed import PRECISION, ColumnType, TypedColumn

MAGIC: Final = b"PAR1"
CREATED_BY: Final = "ade-drop"
GROUP_ROWS: Final = 65_536
GROUP_BYTES: Final = 16 * 1024 * 1024  # of texts in a row group: memory does not grow with long ones
_LEVEL: Final = 1
_GZIP_WINDOW: Final = 31  # window bits that ask zlib for gzip's header and checksum
_LENGTH: Final = struct.Struct("<I")
UNIX_DAY: Final = date(1970, 1, 1).toordinal()
_UNIX_START: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - the engine's times have no zone
_MICROSECOND: Final = timedelta(microseconds=1)

# Thrift's compact protocol: types of fields and elements.
_I32, _I64, _BINARY, _LIST, _STRUCT, _TRUE, _FALSE = 5, 6, 8, 9, 12, 1, 2
# Enumerations of the format: physical types, codecs, encodings, converted types.
BOOLEAN, INT32, INT64, DOUBLE, BYTE_ARRAY = 0, 1, 2, 5, 6
_OPTIONAL, _PLAIN, _RLE, _GZIP = 1, 0, 3, 2
_UTF8, _DECIMAL, _DATE = 0, 5, 6


class Physical(NamedTuple):
    """How a type is stored."""

    type: int
    width: int  # bytes of a value; 0: as many as it takes; a boolean takes a bit
    encode: Callable[[list[Any]], bytes]


def _encode_texts(values: list[str]) -> bytes:
    """Encode texts, each after its length in bytes."""
    encoded = [value.encode(errors="replace") for value in values]
    return b"".join(chain.from_iterable(zip(map(_LENGTH.pack, map(len, encoded)), encoded, strict=True)))


def _encode_numbers(code: str) -> Callable[[list[Any]], bytes]:
    """Return a function that encodes numbers as `array` stores those of a type code."""
    return lambda values: array(code, values).tobytes()


def _encode_days(values: list[date]) -> bytes:
    """Encode dates as days since 1970."""
    return array("i", [day.toordinal() - UNIX_DAY for day in values]).tobytes()


def _encode_moments(values: list[datetime]) -> bytes:
    """Encode moments as microseconds since 1970."""
    return array("q", [(moment - _UNIX_START) // _MICROSECOND for moment in values]).tobytes()


def _encode_times(values: list[time]) -> bytes:
    """Encode times of day as microseconds since midnight."""
    return array(
        "q", [((t.hour * 60 + t.minute) * 60 + t.second) * 1_000_000 + t.microsecond for t in values]
    ).tobytes()


def bits(flags: Sequence[bool]) -> bytes:
    """Encode one bit for each flag, the first one lowest, in whole bytes."""
    digits = "".join("1" if flag else "0" for flag in reversed(flags))
    return int(digits or "0", 2).to_bytes((len(flags) + 7) // 8, "little")


PHYSICAL: Final = {
    ColumnType.TEXT: Physical(BYTE_ARRAY, 0, _encode_texts),
    ColumnType.INTEGER: Physical(INT64, 8, _encode_numbers("q")),
    ColumnType.NUMBER: Physical(DOUBLE, 8, _encode_numbers("d")),
    ColumnType.DECIMAL: Physical(INT64, 8, _encode_numbers("q")),
    ColumnType.BOOLEAN: Physical(BOOLEAN, 0, bits),
    ColumnType.DATE: Physical(INT32, 4, _encode_days),
    ColumnType.DATETIME: Physical(INT64, 8, _encode_moments),
    ColumnType.TIME: Physical(INT64, 8, _encode_times),
}


class PageFacts(NamedTuple):
    """A page of one column in one row group, as the metadata lists it."""

    at: int  # where it begins in the file, in bytes
    values: int  # blanks included
    size: int  # before compression, header included
    packed: int  # in the file, header included


class ParquetFile:
    """Writes normalized.parquet chunk by chunk; holds the rows of one row group."""

    def __init__(self, file: IO[bytes], columns: Sequence[TypedColumn], among: int = 1) -> None:
        """`among`: so many files together hold what one file may hold, so their row groups are smaller."""
        self._file = file
        self._group_rows, self._group_bytes = GROUP_ROWS // among, GROUP_BYTES // among
        self._columns = columns
        self._held: list[list[Any]] = [[] for _ in columns]  # by column: values of the open row group
        self._held_bytes = 0  # of the texts among them
        self._groups: list[list[PageFacts]] = []  # of the row groups in the file, a page for each column
        self._texts = [n for n, column in enumerate(columns) if column.type is ColumnType.TEXT]
        file.write(MAGIC)

    def write(self, columns: Sequence[list[Any]]) -> None:
        """Append rows, given as one list of fitted values per column."""
        for pending, values in zip(self._held, columns, strict=True):
            pending.extend(values)
        self._held_bytes += sum(sum(map(len, filter(None, columns[n]))) for n in self._texts)
        if self._columns and (len(self._held[0]) >= self._group_rows or self._held_bytes >= self._group_bytes):
            self._flush()

    def _flush(self) -> None:
        """Write the rows in memory as a row group, if there are any, and forget them."""
        if self._columns and self._held[0]:
            pages = zip(self._columns, self._held, strict=True)
            self._groups.append([self._write_page(column, values) for column, values in pages])
        self._held = [[] for _ in self._columns]
        self._held_bytes = 0

    def _write_page(self, column: TypedColumn, values: list[Any]) -> PageFacts:
        """Write the values of a column as one page; returns where it is and how large."""
        body = page_body(column, values)
        packed = gzipped(body)
        head = page_header(len(body), len(packed), len(values))
        at = self._file.tell()
        self._file.write(head + packed)
        return PageFacts(at, len(values), len(head) + len(body), len(head) + len(packed))

    def close(self) -> None:
        """Write the remaining rows and the metadata at the end of the file."""
        self._flush()
        described = metadata(self._columns, self._groups)
        self._file.write(described + _LENGTH.pack(len(described)) + MAGIC)
        self._file.flush()


def gzipped(body: bytes) -> bytes:
    """Compress the body of a page."""
    pack = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, _GZIP_WINDOW)
    packed: bytes = pack.compress(body) + pack.flush()
    return packed


GZIP_HEAD: Final = gzipped(b"")[:10]  # the header without options, the same for every page


def page_body(column: TypedColumn, values: list[Any]) -> bytes:
    """Encode a page before compression: which rows have a value, then the values."""
    present = [value for value in values if value is not None]
    count = len(values)
    if len(present) == count:
        levels = varint(count << 1) + b"\1"  # a run of ones
    else:
        packed = bits([value is not None for value in values])
        levels = varint(len(packed) << 1 | 1) + packed
    return _LENGTH.pack(len(levels)) + levels + PHYSICAL[column.type].encode(present)


def varint(number: int) -> bytes:
    """Encode a number in as few bytes as it needs, seven bits each."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def zigzag(number: int) -> bytes:
    """Encode a number of either sign as a varint: 0, -1, 1, -2 as 0, 1, 2, 3."""
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def _encode_struct(fields: Iterable[tuple[int, int, bytes]]) -> bytes:
    """Encode a struct of its fields: number, type and encoded value, in the order of their numbers."""
    out, last_number = b"", 0
    for number, kind, value in fields:
        out += bytes([number - last_number << 4 | kind]) + value
        last_number = number
    return out + b"\0"


def _encode_list(kind: int, elements: Sequence[bytes]) -> bytes:
    """Encode a list of elements of one kind, which are encoded already."""
    count = len(elements)
    head = bytes([count << 4 | kind]) if count < 15 else bytes([0xF0 | kind]) + varint(count)
    return head + b"".join(elements)


def _encode_text(text: str) -> bytes:
    """Encode a text in UTF-8 after its length in bytes."""
    raw = text.encode(errors="replace")
    return varint(len(raw)) + raw


PAGE_HEADER_PARTS: Final = (b"\x15\x00\x15", b"\x15", b"\x2c\x15", b"\x15\x00\x15\x06\x15\x06\x00\x00")


def page_header(size: int, packed: int, values: int) -> bytes:
    """Encode a data page's header: its sizes before and after compression, and the number of its values, blanks
    included."""
    first, second, third, last = PAGE_HEADER_PARTS
    return first + zigzag(size) + second + zigzag(packed) + third + zigzag(values) + last


class _ReadAs(NamedTuple):
    """As what a reader finds the stored values of a column."""

    converted: int | None  # as the older format names it, if it does
    logical: bytes  # as the newer one does, encoded; empty: as they are stored


def _logical_type(column: TypedColumn) -> _ReadAs:
    """Return the types that a column has for readers."""
    empty = _encode_struct(())
    # Times are not adjusted to UTC, and count microseconds.
    local = _encode_struct([(1, _FALSE, b""), (2, _STRUCT, _encode_struct([(2, _STRUCT, empty)]))])
    match column.type:
        case ColumnType.TEXT:
            return _ReadAs(_UTF8, _encode_struct([(1, _STRUCT, empty)]))
        case ColumnType.DECIMAL:
            digits = _encode_struct([(1, _I32, zigzag(column.scale)), (2, _I32, zigzag(PRECISION))])
            return _ReadAs(_DECIMAL, _encode_struct([(5, _STRUCT, digits)]))
        case ColumnType.DATE:
            return _ReadAs(_DATE, _encode_struct([(6, _STRUCT, empty)]))
        case ColumnType.TIME:
            return _ReadAs(None, _encode_struct([(7, _STRUCT, local)]))
        case ColumnType.DATETIME:
            return _ReadAs(None, _encode_struct([(8, _STRUCT, local)]))
        case _:
            return _ReadAs(None, b"")


def _schema_element(column: TypedColumn) -> bytes:
    """Encode a column of the schema."""
    converted, logical = _logical_type(column)
    is_decimal = column.type is ColumnType.DECIMAL
    return _encode_struct(
        [
            (1, _I32, zigzag(PHYSICAL[column.type].type)),
            (3, _I32, zigzag(_OPTIONAL)),
            (4, _BINARY, _encode_text(column.name)),
            *([(6, _I32, zigzag(converted))] if converted is not None else []),
            *([(7, _I32, zigzag(column.scale)), (8, _I32, zigzag(PRECISION))] if is_decimal else []),
            *([(10, _STRUCT, logical)] if logical else []),
        ]
    )


def _column_chunk(column: TypedColumn, page: PageFacts) -> bytes:
    """Encode the metadata of a column in a row group."""
    facts = _encode_struct(
        [
            (1, _I32, zigzag(PHYSICAL[column.type].type)),
            (2, _LIST, _encode_list(_I32, [zigzag(_PLAIN), zigzag(_RLE)])),
            (3, _LIST, _encode_list(_BINARY, [_encode_text(column.name)])),
            (4, _I32, zigzag(_GZIP)),
            (5, _I64, zigzag(page.values)),
            (6, _I64, zigzag(page.size)),
            (7, _I64, zigzag(page.packed)),
            (9, _I64, zigzag(page.at)),
        ]
    )
    return _encode_struct([(2, _I64, zigzag(page.at)), (3, _STRUCT, facts)])


def _row_group(columns: Sequence[TypedColumn], pages: Sequence[PageFacts]) -> bytes:
    """Encode the metadata of a row group."""
    chunks = [_column_chunk(column, page) for column, page in zip(columns, pages, strict=True)]
    return _encode_struct(
        [
            (1, _LIST, _encode_list(_STRUCT, chunks)),
            (2, _I64, zigzag(sum(page.size for page in pages))),
            (3, _I64, zigzag(pages[0].values)),
        ]
    )


def metadata(columns: Sequence[TypedColumn], groups: Sequence[Sequence[PageFacts]]) -> bytes:
    """Encode the description at the end of the file; a function of the columns and the pages, so it can be made
    again."""
    root = _encode_struct([(4, _BINARY, _encode_text("schema")), (5, _I32, zigzag(len(columns)))])
    return _encode_struct(
        [
            (1, _I32, zigzag(1)),
            (2, _LIST, _encode_list(_STRUCT, [root, *map(_schema_element, columns)])),
            (3, _I64, zigzag(sum(pages[0].values for pages in groups))),
            (4, _LIST, _encode_list(_STRUCT, [_row_group(columns, pages) for pages in groups])),
            (6, _BINARY, _encode_text(CREATED_BY)),
        ]
    )
