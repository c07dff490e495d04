"""The records of the workbook stream of an .xls (BIFF5 and BIFF8), and the texts in them."""

import struct
from collections.abc import Iterator
from itertools import pairwise

from runner.engine.reading import errors
from runner.engine.reading.limits import ReadLimits

BOF, EOF, CONTINUE = 0x0809, 0x000A, 0x003C
BIFF5, BIFF8 = 0x0500, 0x0600
_HEADER = struct.Struct("<HH")


def records(stream: bytes, start: int = 0) -> Iterator[tuple[int, int, bytes]]:
    """(type, position, body) from a position to the end of that substream; charts inside it are skipped."""
    at = start
    depth = 0
    while at + 4 <= len(stream):
        kind, length = _HEADER.unpack_from(stream, at)
        body = stream[at + 4 : at + 4 + length]
        if len(body) < length:
            raise errors.truncated("an Excel 97-2003 workbook")
        if kind == BOF:
            depth += 1
        if depth <= 1:
            yield kind, at, body
        if kind == EOF:
            depth -= 1
            if depth <= 0:
                return
        at += 4 + length
    raise errors.truncated("an Excel 97-2003 workbook")


def u16(body: bytes, at: int) -> int:
    """A 16-bit number; a body too short for it is a damaged record."""
    if at + 2 > len(body):
        raise errors.damaged("a record is too short")
    return body[at] | body[at + 1] << 8


def short_text(body: bytes, at: int, count: int, *, wide: bool, codepage: str) -> str:
    """Characters of one record: UTF-16, Latin-1 halves of it (BIFF8) or the book's code page (BIFF5)."""
    if wide:
        return body[at : at + 2 * count].decode("utf-16-le", "replace")
    return body[at : at + count].decode(codepage, "replace")


def text8(body: bytes, at: int, *, wide_count: bool) -> str:
    """A BIFF8 text with its count and flags in front."""
    count = u16(body, at) if wide_count else (body[at] if at < len(body) else 0)
    at += 2 if wide_count else 1
    flags = body[at] if at < len(body) else 0
    at += 1 + (2 if flags & 8 else 0) + (4 if flags & 4 else 0)
    return short_text(body, at, count, wide=bool(flags & 1), codepage="latin-1")


def continued_text(bodies: list[bytes]) -> str:
    """A BIFF8 text that goes on in the records after it; each of them says anew how wide its characters are."""
    count = u16(bodies[0], 0)
    parts: list[str] = []
    for number, body in enumerate(bodies):
        at = 2 if number == 0 else 0
        wide = bool(body[at] & 1) if at < len(body) else False
        taken = min(count, (len(body) - at - 1) // 2 if wide else len(body) - at - 1)
        if taken <= 0:
            continue
        parts.append(short_text(body, at + 1, taken, wide=wide, codepage="latin-1"))
        count -= taken
    return "".join(parts)


class SharedTexts:
    """The shared strings record and its continuations.

    A text may be cut by a record's end anywhere; where its characters are cut, the next record starts with a
    flag that says anew how wide they are.
    """

    def __init__(self, bodies: list[bytes], limits: ReadLimits) -> None:
        self._stream = b"".join(bodies)
        self._limits = limits
        ends = [0]
        for body in bodies:
            ends.append(ends[-1] + len(body))
        self._ends = [end for start, end in pairwise(ends) if end > start]
        self._next = 0  # index of the end of the record that holds the position
        self._at = 8  # two counts stand in front

    def read(self) -> list[str | None]:
        found: list[str | None] = []
        while self._at + 3 <= len(self._stream):
            found.append(self._text() or None)
            if len(found) > self._limits.max_strings:
                raise errors.too_large(f"more than {self._limits.max_strings} shared strings")
        return found

    def _text(self) -> str:
        while self._next < len(self._ends) and self._ends[self._next] <= self._at:
            self._next += 1
        count = u16(self._stream, self._at)
        flags = self._stream[self._at + 2]
        self._at += 3
        runs = extra = 0
        if flags & 8:
            runs = u16(self._stream, self._at)
            self._at += 2
        if flags & 4:
            extra = u16(self._stream, self._at) | u16(self._stream, self._at + 2) << 16
            self._at += 4
        characters = self._characters(count, wide=bool(flags & 1))
        self._at += 4 * runs + extra
        return characters

    def _characters(self, count: int, *, wide: bool) -> str:
        parts: list[str] = []
        while count > 0:
            while self._next < len(self._ends) and self._ends[self._next] < self._at:
                self._next += 1
            if self._next >= len(self._ends):
                break
            room = self._ends[self._next] - self._at
            take = min(count, room // 2 if wide else room)
            parts.append(short_text(self._stream, self._at, take, wide=wide, codepage="latin-1"))
            self._at += take * (2 if wide else 1)
            count -= take
            if count > 0:  # goes on in the next record, after its flag
                self._at = self._ends[self._next]
                if self._at >= len(self._stream):
                    break
                wide = bool(self._stream[self._at] & 1)
                self._at += 1
        return "".join(parts)
