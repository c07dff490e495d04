"""OLE containers (compound files): which streams they hold, and the bytes of one."""

import struct
from collections.abc import Iterator
from typing import BinaryIO

from runner.engine.reading import errors
from runner.engine.reading.limits import ReadLimits

MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_FREE = 0xFFFFFFFA  # this and above are marks, not sectors
_MAX_ENTRIES = 20_000
_MINI = 64


class Container:
    """``streams``: names to (first sector, size), those of the root; what is embedded has storages of its own.

    A chain that leaves the file was cut off.
    """

    def __init__(self, file: BinaryIO, limits: ReadLimits) -> None:
        self._file = file
        file.seek(0, 2)
        self._length = file.tell()
        if self._length > limits.max_loaded_bytes:
            raise errors.too_large(f"{self._length} bytes, where {limits.max_loaded_bytes} can be read whole")
        file.seek(0)
        header = file.read(512)
        if len(header) < 512:
            raise errors.truncated("an OLE container")
        shift, mini_shift = struct.unpack_from("<HH", header, 30)
        if shift not in (9, 12) or mini_shift != 6:
            raise errors.damaged("its container's header is broken")
        self._sector = 1 << shift
        self._per_sector = self._sector // 4
        (first_directory,) = struct.unpack_from("<I", header, 48)
        self._cutoff, first_mini, _, first_more, _ = struct.unpack_from("<IIIII", header, 56)
        self._fat = self._read_fat(header, first_more)
        self._mini_fat = self._table(self._chain_bytes(first_mini)) if first_mini < _FREE else []
        self.streams: dict[str, tuple[int, int]] = {}
        self._mini_stream = b""
        self._read_directory(self._chain_bytes(first_directory))

    def find(self, name: str) -> str | None:
        """The name of a stream as it is written: names that differ in case alone are one name."""
        return next((one for one in self.streams if one.lower() == name.lower()), None)

    def read(self, name: str) -> bytes:
        """The whole stream."""
        first, size = self.streams[name]
        raw = self._mini_bytes(first) if size < self._cutoff else self._chain_bytes(first)
        if len(raw) < size:
            raise errors.truncated("an OLE container")
        return raw[:size]

    def _sector_bytes(self, number: int) -> bytes:
        self._file.seek((number + 1) * self._sector)
        raw = self._file.read(self._sector)
        if not raw:
            raise errors.truncated("an OLE container")
        return raw.ljust(self._sector, b"\x00")  # the last sector may be short

    def _read_fat(self, header: bytes, more: int) -> list[int]:
        places = [one for one in struct.unpack_from("<109I", header, 76) if one < _FREE]
        seen = 0
        while more < _FREE:
            entries = struct.unpack(f"<{self._per_sector}I", self._sector_bytes(more))
            places += [one for one in entries[:-1] if one < _FREE]
            more = entries[-1]
            seen += 1
            if seen * self._sector > self._length:
                raise errors.damaged("its container's tables run in a circle")
        if len(places) * self._sector > self._length:
            raise errors.truncated("an OLE container")
        return self._table(b"".join(self._sector_bytes(one) for one in places))

    def _table(self, raw: bytes) -> list[int]:
        count = len(raw) // 4
        return list(struct.unpack(f"<{count}I", raw[: count * 4]))

    def _chain(self, first: int, table: list[int]) -> Iterator[int]:
        left = len(table)
        while first < _FREE:
            if first >= len(table):
                raise errors.truncated("an OLE container")
            if left <= 0:
                raise errors.damaged("its container's tables run in a circle")
            left -= 1
            yield first
            first = table[first]

    def _chain_bytes(self, first: int) -> bytes:
        """Sectors that follow each other are read at once."""
        parts: list[bytes] = []
        start = end = -1
        for sector in self._chain(first, self._fat):
            if sector != end:
                parts.append(self._run(start, end))
                start = sector
            end = sector + 1
        parts.append(self._run(start, end))
        return b"".join(parts)

    def _run(self, start: int, end: int) -> bytes:
        if start < 0:
            return b""
        self._file.seek((start + 1) * self._sector)
        wanted = (end - start) * self._sector
        raw = self._file.read(wanted)
        if len(raw) <= wanted - self._sector:
            raise errors.truncated("an OLE container")
        return raw.ljust(wanted, b"\x00")  # the last sector may be short

    def _mini_bytes(self, first: int) -> bytes:
        stream = self._mini_stream
        return b"".join(stream[one * _MINI : (one + 1) * _MINI] for one in self._chain(first, self._mini_fat))

    def _read_directory(self, raw: bytes) -> None:
        count = min(len(raw) // 128, _MAX_ENTRIES)
        at_root = self._at_root(raw, count)
        for number in range(count):
            at = number * 128
            (length,) = struct.unpack_from("<H", raw, at + 64)
            kind = raw[at + 66]
            first, size = struct.unpack_from("<II", raw, at + 116)
            name = raw[at : at + max(min(length, 64) - 2, 0)].decode("utf-16-le", "replace")
            if kind == 5:
                self._mini_stream = self._chain_bytes(first) if first < _FREE else b""
            elif at_root and number not in at_root:
                continue
            elif kind == 2:
                self.streams.setdefault(name, (first, size))
            elif kind == 1:
                self.streams.setdefault(name + "/", (_FREE, 0))

    def _at_root(self, raw: bytes, count: int) -> set[int]:
        """The entries right below the root, a tree of siblings; none where the tree is broken."""
        found: set[int] = set()
        todo = [struct.unpack_from("<I", raw, 76)[0]] if count and raw[66] == 5 else []
        while todo:
            number = todo.pop()
            if number < count and number not in found:
                found.add(number)
                todo += struct.unpack_from("<II", raw, number * 128 + 68)
        return found


def refusal(container: Container) -> errors.InputUnreadable | None:
    """Why a container is no .xls workbook; None where it may be one."""
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
    return errors.not_a_spreadsheet("an OLE container with no workbook in it")


def workbook_stream(container: Container) -> str | None:
    """The name of the stream that holds the workbook: of Excel 97 and later, or of Excel 5."""
    return container.find("Workbook") or container.find("Book")
