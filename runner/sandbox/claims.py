"""Checks everything that comes out of a box: its log, its events and its files. None of it is trusted.

The log may contain data, so it is stored separately, capped, and escaped when shown. Events are checked for form, size
and numbers. The runner names the files and opens them defensively: never a link, never beyond the limit.
"""

import json
import math
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from runner.engine.contract import MAX_LINE, ContractBroken, Event, FinalEvent, Json, decode_event

CUT = "\n[log cut here: the limit is {} bytes]\n"
FLOOD = 64  # how many times its limit a log may reach before the box is killed


class CappedLog:
    """Writes the first `limit` bytes to a file, and counts the rest."""

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


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


MAX_DEPTH = 16
MAX_TOTAL = 8 * 1024 * 1024
MAX_LINES = 20_000
MAX_DIGITS = 30


class ChannelViolation(Exception):
    """The box broke the protocol of the result channel."""


@dataclass(slots=True)
class Channel:
    """Turns bytes into checked events; buffers at most one unfinished line."""

    end: FinalEvent | None = None
    verified: FinalEvent | None = None  # the final event of a verification that the engine does itself
    _rest: bytes = b""
    _total: int = 0
    _lines: int = 0

    def feed(self, data: bytes) -> list[Event]:
        """The complete events up to the end of `data`; raises ChannelViolation."""
        self._total += len(data)
        if self._total > MAX_TOTAL:
            raise ChannelViolation(f"more than {MAX_TOTAL} bytes on the result channel")
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE:
            raise ChannelViolation(f"a line of more than {MAX_LINE} bytes")
        return [event for line in lines if (event := self._receive(line)) is not None]

    def close(self) -> None:
        """FinalEvent of the channel: no unfinished line may remain."""
        if self._rest:
            raise ChannelViolation("the last line has no end")

    def _receive(self, line: bytes) -> Event | None:
        self._lines += 1
        if self._lines > MAX_LINES:
            raise ChannelViolation(f"more than {MAX_LINES} lines on the result channel")
        if self.end is not None:
            raise ChannelViolation("a line after the final one")
        try:
            event = decode_event(parse_line(line))
        except ContractBroken as broken:
            raise ChannelViolation(str(broken)) from None
        if isinstance(event, FinalEvent):
            self._finish(event)
        return event

    def _finish(self, end: FinalEvent) -> None:
        if not end.verified:
            self.end = end
        elif self.verified is not None:
            raise ChannelViolation("a second verification")
        else:
            self.verified = end


def parse_line(line: bytes) -> Json:
    """Parse one unambiguous JSON object."""
    if len(line) > MAX_LINE:
        raise ChannelViolation(f"a line of more than {MAX_LINE} bytes")
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ChannelViolation("a line that is not UTF-8") from error
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise ChannelViolation(f"more than {MAX_DEPTH} levels deep")
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float, parse_int=_int
        )
    except (ValueError, RecursionError) as error:
        raise ChannelViolation("a line that is not JSON") from error
    if not isinstance(value, dict):
        raise ChannelViolation("a line that is not a JSON object")
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise ChannelViolation("a lone surrogate in a string") from error
    return value


def _depth(text: str) -> int:
    deepest = depth = 0
    in_string = escaped = False
    for char in text:
        if in_string:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                in_string = False
        elif char == '"':
            in_string = True
        elif char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
    return deepest


def _object(pairs: list[tuple[str, object]]) -> Json:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ChannelViolation("the same key twice in one object")
    return made


def _constant(name: str) -> None:
    raise ChannelViolation(f"{name} is not a JSON number")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ChannelViolation("a number out of the range of a double")
    return value


def _int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ChannelViolation(f"a number of more than {MAX_DIGITS} digits")
    return int(text)


MIB = 1024 * 1024


def plain_name(name: str) -> str:
    """Return `name` if it is a plain file name; raises ValueError otherwise."""
    if not name or name in {".", ".."} or "/" in name or "\0" in name or len(name) > 255:
        raise ValueError(f"{name!r} is not the name of an output file")
    return name


def open_outputs(folder: Path, names: Iterable[str]) -> dict[str, int]:
    """Create empty files, open for reading and writing; the box gets only the descriptors."""
    folder.mkdir(mode=0o700, exist_ok=True)
    opened: dict[str, int] = {}
    try:
        for name in names:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            opened[name] = os.open(folder / plain_name(name), flags, 0o640)
    except BaseException:
        close_all(opened.values())
        raise
    return opened


def collect(folder: Path, names: Iterable[str], limit_mb: int) -> tuple[dict[str, Path], str | None]:
    """The non-empty outputs, and a problem with one of them, if any."""
    collected: dict[str, Path] = {}
    for name in names:
        path = folder / plain_name(name)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        except OSError:
            return {}, f"output {name} is not a regular file"
        try:
            found = os.fstat(fd)
        finally:
            os.close(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            return {}, f"output {name} is not a regular file of its own"
        if found.st_size > limit_mb * MIB:
            return {}, f"output {name} is larger than {limit_mb} MiB"
        if found.st_size:
            collected[name] = path
    return collected, None


def at_limit(folder: Path, names: Iterable[str], limit_mb: int) -> str | None:
    """The name of an output that has reached its limit, where writes began to fail."""
    for name in names:
        try:
            if os.lstat(folder / name).st_size >= limit_mb * MIB:
                return name
        except FileNotFoundError:
            continue
    return None


def close_all(fds: Iterable[int]) -> None:
    for fd in fds:
        os.close(fd)
