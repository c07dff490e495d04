"""A zip file written once from front to back, but for a few bytes that are known only at the end.

An entry may open with a *head*: bytes of fixed length stored as one uncompressed deflate block in front of the
compressed rest. Its place in the file is known, so it can be written again when the entry is complete; its
checksum is joined with that of the rest. That is how a sheet gets its true dimension and widths while streaming.
"""

import struct
from typing import IO, Final

from isal import isal_zlib

LOCAL: Final = struct.Struct("<4s5H3I2H")
CENTRAL: Final = struct.Struct("<4s6H3I5H2I")
END: Final = struct.Struct("<4s4H2IH")
DATE_1980: Final = 0x21  # the same bytes for the same job, whenever it runs
DEFLATED: Final = 8
_LEVEL: Final = 1
MAX_HEAD: Final = 0xFFFF
MAX_ENTRY: Final = 0xFFFF_FFFF


class Archive:
    """Entries one after the other into a seekable file."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self._directory: list[bytes] = []

    def entry(self, name: str, head: bytes = b"") -> "Entry":
        return Entry(self, name, head)

    def put(self, name: str, text: str) -> None:
        entry = self.entry(name)
        entry.write(text.encode())
        entry.close()

    def listed(self, record: bytes) -> None:
        self._directory.append(record)

    def close(self) -> None:
        at = self.file.tell()
        listing = b"".join(self._directory)
        count = len(self._directory)
        self.file.write(listing)
        self.file.write(END.pack(b"PK\5\6", 0, 0, count, count, len(listing), at, 0))
        self.file.flush()


class Entry:
    """One file of the archive, open for writing."""

    def __init__(self, archive: Archive, name: str, head: bytes) -> None:
        self._archive = archive
        self._file = archive.file
        self._name = name.encode()
        self._start = self._file.tell()
        self._file.write(LOCAL.pack(b"PK\3\4", 20, 0, DEFLATED, 0, DATE_1980, 0, 0, 0, len(self._name), 0))
        self._file.write(self._name)
        self._data_at = self._file.tell()
        self._head = head
        if head:
            self._file.write(struct.pack("<BHH", 0, len(head), len(head) ^ 0xFFFF) + head)
        self._pack = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, -15)
        self._crc = 0
        self.size = 0  # bytes after the head

    def write(self, data: bytes) -> None:
        self._crc = isal_zlib.crc32(data, self._crc)
        self.size += len(data)
        self._file.write(self._pack.compress(data))

    def close(self, head: bytes | None = None) -> None:
        """Finish the entry; `head`, of the length given at the start, replaces what stood there."""
        self._file.write(self._pack.flush())
        end = self._file.tell()
        if head is not None:
            if len(head) != len(self._head):
                raise ValueError("a head keeps its length")
            self._file.seek(self._data_at + 5)
            self._file.write(head)
            self._head = head
        crc = isal_zlib.crc32_combine(isal_zlib.crc32(self._head), self._crc, self.size)
        size, packed = self.size + len(self._head), end - self._data_at
        self._file.seek(self._start)
        self._file.write(LOCAL.pack(b"PK\3\4", 20, 0, DEFLATED, 0, DATE_1980, crc, packed, size, len(self._name), 0))
        self._file.seek(end)
        sizes = (crc, packed, size, len(self._name))
        record = CENTRAL.pack(b"PK\1\2", 20, 20, 0, DEFLATED, 0, DATE_1980, *sizes, 0, 0, 0, 0, 0, self._start)
        self._archive.listed(record + self._name)
