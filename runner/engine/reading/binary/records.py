"""The records of .xlsb parts: a type, a length, bytes."""

import struct
from collections.abc import Iterable, Iterator

from runner.engine.reading import errors
from runner.engine.reading.limits import ReadLimits

_U32 = struct.Struct("<I")


def records(pieces: Iterable[bytes], limits: ReadLimits) -> Iterator[tuple[int, bytes]]:
    """Every record of a part; a part that ends inside one was cut off."""
    held = b""
    for piece in pieces:
        held += piece
        at = 0
        while (found := _header(held, at)) is not None:
            kind, start, length = found
            if length > limits.max_token_bytes:
                raise errors.hostile(f"a record of {length} bytes")
            if start + length > len(held):
                break
            yield kind, held[start : start + length]
            at = start + length
        held = held[at:]
    if held:
        raise errors.truncated("a workbook")


def _header(raw: bytes, at: int) -> tuple[int, int, int] | None:
    """(type, where the body starts, its length); None where the bytes do not reach."""
    end = len(raw)
    if at >= end:
        return None
    kind = raw[at]
    at += 1
    if kind & 0x80:
        if at >= end:
            return None
        kind = (kind & 0x7F) | (raw[at] & 0x7F) << 7
        at += 1
    length = 0
    for shift in (0, 7, 14, 21):
        if at >= end:
            return None
        byte = raw[at]
        at += 1
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    return kind, at, length


def u32(body: bytes, at: int) -> int:
    """A 32-bit number; a body too short for it is a damaged record."""
    try:
        return int(_U32.unpack_from(body, at)[0])
    except struct.error as error:
        raise errors.damaged("a record is too short") from error


def text(body: bytes, at: int) -> tuple[str, int]:
    """A counted UTF-16 text and where it ends."""
    count = u32(body, at)
    if count == 0xFFFFFFFF:  # null
        return "", at + 4
    end = at + 4 + 2 * count
    if end > len(body):
        raise errors.damaged("a text is longer than its record")
    return body[at + 4 : end].decode("utf-16-le", "replace"), end
