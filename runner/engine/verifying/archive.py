"""Reads the zip file of a workbook strictly as our own writer lays it out.

A zip stores everything twice, and readers disagree about conflicts: two members with one name, a member in only one of
the listings, bytes between members or after the end, sizes beyond 32 bits. Here only one reading is accepted: members
follow each other without gaps from the first byte, every header is as our writer writes it, and the file ends with
the listing.
"""

from collections.abc import Iterator
from typing import IO, Any, Final, NamedTuple

from isal import isal_zlib

from runner.engine.protocol import BadOutput
from runner.engine.writing.book import CENTRAL, DATE_1980, DEFLATED, END, LOCAL

MAX_LISTING: Final = 8 * 1024 * 1024
MAX_TOTAL: Final = 4 * 1024 * 1024 * 1024  # uncompressed bytes of all members
_PACKED: Final = 64 * 1024
_BLOCK: Final = 256 * 1024
_UNPACKING_FAILED: Final[Any] = (isal_zlib.error, OSError)  # isal's types call its error an instance
_NO_WORKBOOK: Final = "normalized.xlsx was not written by the engine's writer"


class Member(NamedTuple):
    """A part of the workbook."""

    name: str
    offset: int  # of its compressed bytes
    packed: int
    size: int
    crc: int


class Archive:
    """The members in order."""

    def __init__(self, file: IO[bytes]) -> None:
        """Read and check the listing; raises BadOutput for any file that our writer would not write."""
        self._file = file
        self.members = list(self._checked_members())
        if len({member.name for member in self.members}) != len(self.members):
            raise BadOutput("normalized.xlsx has a part twice")
        if sum(member.size for member in self.members) > MAX_TOTAL:
            raise BadOutput(f"normalized.xlsx unpacks to more than {MAX_TOTAL} bytes")

    def _checked_members(self) -> Iterator[Member]:
        """Yield the members as both the listing and their own headers have them; raises BadOutput where these
        differ."""
        count, listing, listing_offset = self._read_listing()
        offset = position = 0  # of a member in the file, and of its record in the listing
        for _ in range(count):
            if len(listing) - position < CENTRAL.size:
                raise BadOutput(_NO_WORKBOOK)
            fields = CENTRAL.unpack_from(listing, position)
            crc, packed, size, length = fields[7:11]
            name = listing[position + CENTRAL.size : position + CENTRAL.size + length]
            sizes = (crc, packed, size, length)
            if fields != (b"PK\1\2", 20, 20, 0, DEFLATED, 0, DATE_1980, *sizes, 0, 0, 0, 0, 0, offset):
                raise BadOutput(_NO_WORKBOOK)
            header = LOCAL.pack(b"PK\3\4", 20, 0, DEFLATED, 0, DATE_1980, *sizes, 0) + name
            self._file.seek(offset)
            if self._file.read(len(header)) != header or not name.isascii():
                raise BadOutput(_NO_WORKBOOK)
            yield Member(name.decode(), offset + len(header), packed, size, crc)
            offset += len(header) + packed
            position += CENTRAL.size + length
        if position != len(listing) or offset != listing_offset:
            raise BadOutput(_NO_WORKBOOK)

    def _read_listing(self) -> tuple[int, bytes, int]:
        """Return the number of members, their listing, and its offset; raises BadOutput if the file does not end as
        ours do."""
        size = self._file.seek(0, 2)
        if size < END.size:
            raise BadOutput(_NO_WORKBOOK)
        self._file.seek(size - END.size)
        fields = END.unpack(self._file.read(END.size))
        count, length, offset = fields[4:7]
        if fields != (b"PK\5\6", 0, 0, count, count, length, offset, 0) or offset + length + END.size != size:
            raise BadOutput(_NO_WORKBOOK)
        if length > MAX_LISTING:
            raise BadOutput("normalized.xlsx has too many parts")
        self._file.seek(offset)
        return count, self._file.read(length), offset

    def blocks(self, member: Member) -> Iterator[bytes]:
        """Decompress a member piece by piece; at the end its size and checksum are verified."""
        unpack = isal_zlib.decompressobj(-15)
        left, size, crc = member.packed, 0, 0
        self._file.seek(member.offset)
        try:
            while not unpack.eof:
                data = unpack.unconsumed_tail
                if not data:
                    data = self._file.read(min(_PACKED, left))
                    left -= len(data)
                piece = unpack.decompress(data, _BLOCK)
                if not data and not piece:
                    break
                size += len(piece)
                if size > member.size:
                    break
                crc = isal_zlib.crc32(piece, crc)
                if piece:
                    yield piece
        except _UNPACKING_FAILED:
            raise BadOutput("normalized.xlsx has a part that cannot be decompressed") from None
        whole = unpack.eof and not unpack.unused_data and left == 0
        if not whole or size != member.size or crc != member.crc:
            raise BadOutput("normalized.xlsx has a part that differs from its listing")

    def text(self, member: Member, most: int) -> str:
        """Return a small part as text; raises BadOutput if it has more than `most` bytes or is not UTF-8."""
        if member.size > most:
            raise BadOutput("normalized.xlsx has a part that is too large")
        try:
            return b"".join(self.blocks(member)).decode()
        except UnicodeDecodeError:
            raise BadOutput("normalized.xlsx has a part that is not UTF-8") from None
