"""The log of a box: what rules print. It may hold data, so it is kept apart, capped, and shown with care."""

import os
import unicodedata
from pathlib import Path

CUT = "\n[log cut here: the limit is {} bytes]\n"
FLOOD = 64  # how often over its limit a log may go before the box is ended
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


class CappedLog:
    """Writes the first `limit` bytes to a file as they come, and counts the rest."""

    def __init__(self, path: Path, limit: int) -> None:
        self.path = path
        self.seen = 0
        self._limit = limit
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o640)

    @property
    def flooded(self) -> bool:
        return self.seen > FLOOD * self._limit

    def write(self, data: bytes) -> None:
        room = self._limit - self.seen
        self.seen += len(data)
        if room > 0:
            _write_all(self._fd, data[:room])
        if room >= 0 and len(data) > room:
            _write_all(self._fd, CUT.format(self._limit).encode())

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def printable(line: str) -> str:
    """A line of a log as it may be shown on a terminal or a page: control characters become visible escapes."""
    return "".join(
        char if char == "\t" or unicodedata.category(char) not in _HIDDEN else _escaped(char) for char in line
    )


def _escaped(char: str) -> str:
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
