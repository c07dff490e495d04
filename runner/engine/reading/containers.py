"""The containers of workbooks, read defensively: zip archives, and OLE compound files for .xls.

A zip's directory is checked before any part is inflated, and every inflated byte is counted. The standard library's
reader trusts declared sizes, accepts any number of entries and lets parts overlap: no workbook needs that, and every
zip bomb does.
"""

import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from isal import isal_zlib

from runner.engine.reading import errors
from runner.engine.reading.books import ReadLimits

_END_MARK = b"PK\x05\x06"
_DIRECTORY_MARK = b"PK\x01\x02"
_LOCAL_MARK = b"PK\x03\x04"
_END_SEARCH = 66_000  # the end record and its longest comment
_READ_BYTES = 64 * 1024
_INFLATE_BYTES = 256 * 1024
_MAX_DIRECTORY = 16 * 1024 * 1024
_STORED, _DEFLATED = 0, 8
_INFLATE_ERROR: Any = isal_zlib.error  # its stub calls it an instance
_HUGE32, _HUGE16 = 0xFFFFFFFF, 0xFFFF


class Entry(NamedTuple):
    """A part of a zip, as its directory has it."""

    name: str
    offset: int  # of the local header
    stored: int
    size: int  # as declared
    method: int
    crc: int
    locked: bool


class ZipArchive:
    """The parts of one zip by name; ``what`` names the file in errors."""

    def __init__(self, file: BinaryIO, limits: ReadLimits, *, what: str) -> None:
        """Read the zip's directory; raises InputUnreadable for one that is broken, or that no workbook has."""
        self._file = file
        self._limits = limits
        self.what = what
        file.seek(0, 2)
        self._length = file.tell()
        entries = self._read_entries()
        self._refuse_overlaps(entries)
        total = sum(entry.size for entry in entries)
        if total > 8 * limits.ratio_floor and total > self._length * limits.max_ratio:
            raise errors.hostile(f"a zip of {self._length} bytes declares {total} bytes of content")
        self.entries = {entry.name: entry for entry in entries}
        self._folded = {name.casefold(): name for name in self.entries}

    def find(self, name: str) -> Entry | None:
        """Return the entry with this name, ignoring case; None if there is none."""
        name = name.lstrip("/")
        entry = self.entries.get(name)
        if entry is None and (real := self._folded.get(name.casefold())) is not None:
            entry = self.entries[real]
        return entry

    def read(self, entry: Entry, *, at_most: int | None = None) -> bytes:
        """Return the whole part; refuses one that inflates to more than ``at_most`` bytes."""
        cap = self._limits.max_part_bytes if at_most is None else at_most
        if entry.size > cap:
            raise errors.too_large(f"its part {_printable(entry.name)} has {entry.size} bytes; the limit is {cap}")
        parts: list[bytes] = []
        total = 0
        for piece in self.stream(entry):
            total += len(piece)
            if total > cap:
                raise errors.hostile(f"its part {_printable(entry.name)} is larger than it declares")
            parts.append(piece)
        return b"".join(parts)

    def stream(self, entry: Entry) -> Iterator[bytes]:
        """Yield the part in pieces of at most 256 KiB, counted against the limits; its CRC is checked at the end."""
        limits = self._limits
        if entry.locked:
            raise errors.encrypted("a zip with parts")
        if entry.method not in (_STORED, _DEFLATED):
            raise errors.unsupported(f"a zip with compression method {entry.method}")
        if entry.size > limits.max_entry_bytes:
            raise errors.too_large(f"its part {_printable(entry.name)} declares {entry.size} bytes")
        if entry.size > limits.ratio_floor and entry.size > entry.stored * limits.max_ratio:
            raise errors.hostile(f"its part {_printable(entry.name)} is compressed more than {limits.max_ratio} to 1")
        total, crc = 0, 0
        for piece in self._inflate(entry):
            total += len(piece)
            if total > entry.size:
                raise errors.hostile(f"its part {_printable(entry.name)} is larger than it declares")
            crc = isal_zlib.crc32(piece, crc)
            yield piece
        if total < entry.size:
            raise errors.truncated(self.what)
        if crc != entry.crc:
            raise errors.damaged(f"the checksum of its part {_printable(entry.name)} does not match")

    def _inflate(self, entry: Entry) -> Iterator[bytes]:
        """Yield the part's bytes in pieces, as they are inflated."""
        position = self._data_offset(entry)
        left = entry.stored
        inflate: Any = isal_zlib.decompressobj(-15) if entry.method == _DEFLATED else None
        while left > 0:
            self._file.seek(position)
            raw = self._file.read(min(_READ_BYTES, left))
            if not raw:
                raise errors.truncated(self.what)
            position += len(raw)
            left -= len(raw)
            if inflate is None:
                yield raw
                continue
            while raw:
                try:
                    piece = inflate.decompress(raw, _INFLATE_BYTES)
                except _INFLATE_ERROR as error:
                    raise errors.damaged(f"its part {_printable(entry.name)} cannot be decompressed") from error
                if piece:
                    yield piece
                if inflate.eof:
                    return
                raw = inflate.unconsumed_tail
        if inflate is not None:
            yield from _drain_decompressor(inflate, entry)

    def _data_offset(self, entry: Entry) -> int:
        """Return where a part's bytes start: behind its local header."""
        self._file.seek(entry.offset)
        header = self._file.read(30)
        if len(header) < 30:
            raise errors.truncated(self.what)
        if header[:4] != _LOCAL_MARK:
            raise errors.damaged(f"its part {_printable(entry.name)} is not at the offset in the zip directory")
        name_length, extra_length = struct.unpack_from("<HH", header, 26)
        return entry.offset + 30 + int(name_length) + int(extra_length)

    def _read_entries(self) -> list[Entry]:
        """Read the entries of the zip's directory, which is found from the end of the file."""
        start = max(0, self._length - _END_SEARCH)
        self._file.seek(start)
        tail = self._file.read(_END_SEARCH)
        end_record = tail.rfind(_END_MARK)
        if end_record < 0 or len(tail) - end_record < 22:
            raise errors.truncated(self.what)
        count, size, offset = struct.unpack_from("<10xHII", tail, end_record)
        end_at = start + end_record
        if count == _HUGE16 or _HUGE32 in (size, offset):
            count, size, offset, end_at = self._find_directory(end_at, (count, size, offset))
        if count > self._limits.max_entries or size > _MAX_DIRECTORY:
            raise errors.hostile(f"a zip with {count} parts")
        shift = end_at - size - offset  # bytes before the zip, as in self-extracting archives
        if shift < 0:
            raise errors.truncated(self.what)
        self._file.seek(offset + shift)
        return list(self._parse_directory(self._file.read(size), count, shift))

    def _find_directory(self, end_at: int, small: tuple[int, int, int]) -> tuple[int, int, int, int]:
        """Return count, size and offset of a directory with 64-bit numbers, and where its end record is; without one
        the `small` numbers, and `end_at`."""
        self._file.seek(max(0, end_at - 20))
        locator = self._file.read(20)
        if len(locator) < 20 or locator[:4] != b"PK\x06\x07":
            return (*small, end_at)
        (end_record,) = struct.unpack_from("<8xQ", locator)
        if end_record > self._length - 56:
            raise errors.damaged("its zip directory points outside the file")
        self._file.seek(end_record)
        record = self._file.read(56)
        if record[:4] != b"PK\x06\x06":
            raise errors.damaged("its zip directory cannot be found")
        count, size, offset = struct.unpack_from("<32xQQQ", record)
        return count, size, offset, end_record

    def _parse_directory(self, raw: bytes, count: int, shift: int) -> Iterator[Entry]:
        """Yield the entries of the central directory. `shift`: bytes before the zip."""
        position = 0
        for _ in range(count):
            if raw[position : position + 4] != _DIRECTORY_MARK or len(raw) - position < 46:
                raise errors.damaged("its zip directory is broken")
            flags, method, crc, stored, size, name_len, extra_len, note_len, offset = struct.unpack_from(
                "<8xHH4xIIIHHH8xI", raw, position
            )
            name = raw[position + 46 : position + 46 + name_len]
            extra = raw[position + 46 + name_len : position + 46 + name_len + extra_len]
            if _HUGE32 in (stored, size, offset):
                size, stored, offset = _wide_sizes(extra, size, stored, offset)
            position += 46 + name_len + extra_len + note_len
            offset += shift
            if offset + 30 + stored > self._length:
                raise errors.truncated(self.what)
            yield Entry(
                name=name.decode("utf-8" if flags & 0x800 else "cp437", "replace").replace("\\", "/").lstrip("/"),
                offset=offset,
                stored=stored,
                size=size,
                method=method,
                crc=crc,
                locked=bool(flags & 1),
            )

    def _refuse_overlaps(self, entries: list[Entry]) -> None:
        """Raise InputUnreadable if two parts share bytes, as those of zip bombs do."""
        end = 0
        for entry in sorted(entries, key=lambda part: part.offset):
            if entry.offset < end:
                raise errors.hostile("a zip whose parts overlap")
            end = entry.offset + 30 + entry.stored


def _wide_sizes(extra: bytes, size: int, stored: int, offset: int) -> tuple[int, int, int]:
    """Return the size, the stored size and the offset of a part, those that need more than 32 bits from its extra
    field, which holds them in this order."""
    position = 0
    while position + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, position)
        body = extra[position + 4 : position + 4 + length]
        if kind == 1:
            wide = [int.from_bytes(body[start : start + 8], "little") for start in range(0, len(body) - 7, 8)]
            values = [wide.pop(0) if value == _HUGE32 and wide else value for value in (size, stored, offset)]
            return values[0], values[1], values[2]
        position += 4 + length
    return size, stored, offset


def _drain_decompressor(inflate: Any, entry: Entry) -> Iterator[bytes]:
    """Yield what the decompressor still holds after the last byte of a part."""
    while not inflate.eof:
        try:
            piece = inflate.decompress(b"", _INFLATE_BYTES)
        except _INFLATE_ERROR as error:
            raise errors.damaged(f"its part {_printable(entry.name)} cannot be decompressed") from error
        if not piece:
            return
        yield piece


def _printable(name: str) -> str:
    """Return a part's name for a message: short and printable."""
    return "".join(char if char.isprintable() else "?" for char in name[-60:])


OPENDOCUMENT = "application/vnd.oasis.opendocument."  # how the type of such a file begins


def is_opendocument(archive: ZipArchive) -> bool:
    """Whether a zip says that it is an OpenDocument file."""
    entry = archive.find("mimetype")
    return entry is not None and entry.size < 200 and archive.read(entry).startswith(OPENDOCUMENT.encode())


MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_FREE_SECTOR = 0xFFFFFFFA  # this and above are marks, not sectors
_MAX_ENTRIES = 20_000
_MINI_SECTOR_BYTES = 64
_HEADER_BYTES = 512
_ENTRY_BYTES = 128  # of the directory
_STORAGE, _STREAM, _ROOT = 1, 2, 5  # kinds of entries


class Container:
    """``streams``: name -> (first sector, size) of the root's streams; embedded objects have their own storages.

    A chain that leads outside the file means that the file is truncated.
    """

    def __init__(self, file: BinaryIO, limits: ReadLimits) -> None:
        """Read the container's header, tables and directory; raises InputUnreadable for one that is broken."""
        self._file = file
        file.seek(0, 2)
        self._length = file.tell()
        if self._length > limits.max_loaded_bytes:
            raise errors.too_large(f"it has {self._length} bytes; the limit for .xls is {limits.max_loaded_bytes}")
        file.seek(0)
        header = file.read(_HEADER_BYTES)
        if len(header) < _HEADER_BYTES:
            raise errors.truncated("an OLE container")
        # Logarithms of the sizes of sectors; the first sector of the directory; then, of small streams, the size from
        # which they are not small, the first sector of their table, its count, and the first sector of further tables.
        shift, mini_shift = struct.unpack_from("<HH", header, 30)
        if shift not in (9, 12) or mini_shift != 6:
            raise errors.damaged("its container's header is broken")
        self._sector = 1 << shift
        self._per_sector = self._sector // 4
        (first_directory,) = struct.unpack_from("<I", header, 48)
        self._smallest_in_sectors, first_mini, _, first_more, _ = struct.unpack_from("<IIIII", header, 56)
        self._next_sectors = self._read_fat(header, first_more)
        self._next_mini_sectors = self._numbers_of(self._chain_bytes(first_mini)) if first_mini < _FREE_SECTOR else []
        self.streams: dict[str, tuple[int, int]] = {}
        self._mini_stream = b""
        self._read_directory(self._chain_bytes(first_directory))

    def find(self, name: str) -> str | None:
        """Return the name of a stream as stored; the search ignores case."""
        return next((stream for stream in self.streams if stream.lower() == name.lower()), None)

    def read(self, name: str) -> bytes:
        """Return the whole stream with this name."""
        first, size = self.streams[name]
        raw = self._mini_bytes(first) if size < self._smallest_in_sectors else self._chain_bytes(first)
        if len(raw) < size:
            raise errors.truncated("an OLE container")
        return raw[:size]

    def _sector_bytes(self, number: int) -> bytes:
        """Return the bytes of one sector."""
        self._file.seek((number + 1) * self._sector)
        raw = self._file.read(self._sector)
        if not raw:
            raise errors.truncated("an OLE container")
        return raw.ljust(self._sector, b"\x00")  # the last sector may be short

    def _read_fat(self, header: bytes, next_table: int) -> list[int]:
        """Read the table of all sectors: for each the next one of its chain."""
        fat_sectors = [sector for sector in struct.unpack_from("<109I", header, 76) if sector < _FREE_SECTOR]
        tables = 0
        while next_table < _FREE_SECTOR:
            entries = struct.unpack(f"<{self._per_sector}I", self._sector_bytes(next_table))
            fat_sectors += [sector for sector in entries[:-1] if sector < _FREE_SECTOR]
            next_table = entries[-1]
            tables += 1
            if tables * self._sector > self._length:
                raise errors.damaged("its container's tables are circular")
        if len(fat_sectors) * self._sector > self._length:
            raise errors.truncated("an OLE container")
        return self._numbers_of(b"".join(self._sector_bytes(sector) for sector in fat_sectors))

    def _numbers_of(self, raw: bytes) -> list[int]:
        """Decode bytes as 32-bit numbers; a rest of fewer bytes is left out."""
        count = len(raw) // 4
        return list(struct.unpack(f"<{count}I", raw[: count * 4]))

    def _follow_chain(self, sector: int, table: list[int]) -> Iterator[int]:
        """Yield the sectors of a chain in order; raises if it leads outside the file or in a circle."""
        steps_left = len(table)
        while sector < _FREE_SECTOR:
            if sector >= len(table):
                raise errors.truncated("an OLE container")
            if steps_left <= 0:
                raise errors.damaged("its container's tables are circular")
            steps_left -= 1
            yield sector
            sector = table[sector]

    def _chain_bytes(self, first: int) -> bytes:
        """Read the chain; consecutive sectors are read at once."""
        parts: list[bytes] = []
        start = end = -1
        for sector in self._follow_chain(first, self._next_sectors):
            if sector != end:
                parts.append(self._read_sectors(start, end))
                start = sector
            end = sector + 1
        parts.append(self._read_sectors(start, end))
        return b"".join(parts)

    def _read_sectors(self, start: int, end: int) -> bytes:
        """Read consecutive sectors, `start` included and `end` not."""
        if start < 0:
            return b""
        self._file.seek((start + 1) * self._sector)
        size = (end - start) * self._sector
        raw = self._file.read(size)
        if len(raw) <= size - self._sector:
            raise errors.truncated("an OLE container")
        return raw.ljust(size, b"\x00")  # the last sector may be short

    def _mini_bytes(self, first: int) -> bytes:
        """Return the bytes of a chain of mini sectors, in which small streams are stored."""
        stream = self._mini_stream
        return b"".join(
            stream[sector * _MINI_SECTOR_BYTES : (sector + 1) * _MINI_SECTOR_BYTES]
            for sector in self._follow_chain(first, self._next_mini_sectors)
        )

    def _read_directory(self, raw: bytes) -> None:
        """Remember the streams of the root, and the stream that holds the mini sectors."""
        count = min(len(raw) // _ENTRY_BYTES, _MAX_ENTRIES)
        at_root = self._entries_at_root(raw, count)
        for number in range(count):
            offset = number * _ENTRY_BYTES
            (length,) = struct.unpack_from("<H", raw, offset + 64)
            kind = raw[offset + 66]
            first, size = struct.unpack_from("<II", raw, offset + 116)
            name = raw[offset : offset + max(min(length, 64) - 2, 0)].decode("utf-16-le", "replace")
            if kind == _ROOT:
                self._mini_stream = self._chain_bytes(first) if first < _FREE_SECTOR else b""
            elif at_root and number not in at_root:
                continue
            elif kind == _STREAM:
                self.streams.setdefault(name, (first, size))
            elif kind == _STORAGE:
                self.streams.setdefault(name + "/", (_FREE_SECTOR, 0))

    def _entries_at_root(self, raw: bytes, count: int) -> set[int]:
        """Return the entries directly below the root, a tree of siblings; empty if the tree is broken."""
        entries: set[int] = set()
        pending = [struct.unpack_from("<I", raw, 76)[0]] if count and raw[66] == _ROOT else []
        while pending:
            number = pending.pop()
            if number < count and number not in entries:
                entries.add(number)
                pending += struct.unpack_from("<II", raw, number * _ENTRY_BYTES + 68)
        return entries


def refusal(container: Container) -> errors.InputUnreadable | None:
    """Explain why a container is not an .xls workbook; None if it may be one."""
    names = container.streams
    if "EncryptedPackage" in names or "EncryptionInfo" in names:
        return errors.encrypted("an Office document (most likely an .xlsx workbook)")
    if workbook_stream(container) is not None:
        return None
    for name, what in (
        ("WordDocument", "a Word document (.doc)"),
        ("PowerPoint Document", "a PowerPoint presentation (.ppt)"),
        ("__properties_version1.0", "an Outlook message (.msg)"),
        ("VisioDocument", "a Visio drawing"),
        ("Contents", "a Microsoft Publisher or Works document"),
    ):
        if name in names:
            return errors.not_a_spreadsheet(what)
    return errors.not_a_spreadsheet("an OLE container without a workbook")


def workbook_stream(container: Container) -> str | None:
    """Return the name of the workbook stream, of Excel 97 and later or of Excel 5."""
    return container.find("Workbook") or container.find("Book")
