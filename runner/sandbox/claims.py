"""Checks everything that comes out of a box: its log, its events and its files. None of it is trusted.

The log may contain data, so it is stored separately, capped, and escaped when shown. Events are checked for form, size
and numbers. The runner names the files and opens them defensively: never a link, never beyond the limit.
"""

import json
import math
import os
import stat
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CUT = "\n[log cut here: the limit is {} bytes]\n"
FLOOD = 64  # how many times its limit a log may reach before the box is killed
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


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


def printable(line: str) -> str:
    """A log line that is safe to show on a terminal or a page: control characters become visible escapes."""
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


MAX_LINE = 64 * 1024
MAX_DEPTH = 16
MAX_TOTAL = 8 * 1024 * 1024
MAX_LINES = 20_000
MAX_DIGITS = 30
MAX_MESSAGE = 2000

PASSES = frozenset({"structure", "mapping", "transform", "validate", "write"})
CODES = frozenset(
    {
        "input_unreadable",
        "nothing_mapped",
        "empty_input",
        "rows_rejected",
        "drifted",
        "mends",
        "needs_review",
        "rule_error",
        "config_refused",
        "out_of_memory",
        "bad_output",
        "engine_error",
    }
)
WHERE = frozenset(
    {"input", "sheet", "table", "cell", "field", "rule", "file", "line", "reason", "remedy", "pass", "job"}
    | {"exception", "trace"}
)


class ChannelViolation(Exception):
    """The box broke the protocol of the result channel."""


@dataclass(slots=True)
class Channel:
    """Turns bytes into checked events; buffers at most one unfinished line."""

    end: dict[str, Any] | None = None
    verified: dict[str, Any] | None = None  # the final event of a verification that the engine does itself
    _rest: bytes = b""
    _total: int = 0
    _lines: int = 0

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The complete events up to the end of `data`; raises ChannelViolation."""
        self._total += len(data)
        if self._total > MAX_TOTAL:
            raise ChannelViolation(f"more than {MAX_TOTAL} bytes on the result channel")
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE:
            raise ChannelViolation(f"a line of more than {MAX_LINE} bytes")
        return [event for line in lines if (event := self._take(line)) is not None]

    def close(self) -> None:
        """End of the channel: no unfinished line may remain."""
        if self._rest:
            raise ChannelViolation("the last line has no end")

    def _take(self, line: bytes) -> dict[str, Any] | None:
        self._lines += 1
        if self._lines > MAX_LINES:
            raise ChannelViolation(f"more than {MAX_LINES} lines on the result channel")
        if self.end is not None:
            raise ChannelViolation("a line after the final one")
        event = checked_event(parse_line(line))
        if event is not None and event["event"] == "end":
            self.end = event
        if event is not None and event["event"] == "verified":
            if self.verified is not None:
                raise ChannelViolation("a second verification")
            self.verified = event
        return event


def parse_line(line: bytes) -> dict[str, Any]:
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


def checked_event(raw: dict[str, Any]) -> dict[str, Any] | None:
    """The event reduced to its known fields; None for an unknown event."""
    match raw.get("event"):
        case "progress":
            if not _one_of(raw.get("pass"), PASSES):
                raise ChannelViolation("progress of an unknown pass")
            return {
                "event": "progress",
                "pass": raw["pass"],
                "done": _count(raw, "done"),
                "total": None if raw.get("total") is None else _count(raw, "total"),
                "table": None if raw.get("table") is None else _text(raw["table"], 200),
            }
        case "log":
            fields = raw.get("fields", {})
            if not isinstance(fields, dict):
                raise ChannelViolation("log fields that are not an object")
            return {
                "event": "log",
                "level": _text(raw.get("level", "info"), 20),
                "name": _text(raw.get("name", ""), 200),
                "fields": fields,
            }
        case "end" | "verified" as last:
            return {**_end(raw), "event": last}
        case str():
            return None
        case _:
            raise ChannelViolation("a line without an event")


def _end(raw: dict[str, Any]) -> dict[str, Any]:
    ok = raw.get("ok")
    if ok is True:
        summary = raw.get("summary", {})
        if not isinstance(summary, dict):
            raise ChannelViolation("a summary that is not an object")
        return {"ok": True, "summary": summary}
    error = raw.get("error")
    if ok is not False or not isinstance(error, dict) or not _one_of(error.get("code"), CODES):
        raise ChannelViolation("a final line with neither success nor a known error")
    where = error.get("where", {})
    if not isinstance(where, dict):
        raise ChannelViolation("a place that is not an object")
    return {
        "ok": False,
        "error": {
            "code": error["code"],
            "message": _text(error.get("message", ""), MAX_MESSAGE),
            "where": {
                key: value if isinstance(value, int) else _text(value, 500)
                for key, value in where.items()
                if key in WHERE and value is not None
            },
        },
    }


def _one_of(value: object, known: frozenset[str]) -> bool:
    """Whether a value is one of the words; the value may be unhashable."""
    return isinstance(value, str) and value in known


def _count(raw: dict[str, Any], key: str) -> int:
    value = raw.get(key, 0)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**53:
        raise ChannelViolation(f"{key} is not a count")
    return value


def _text(value: object, most: int) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    text = text if len(text) <= most else text[: most - 1] + "…"
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
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
    kept: dict[str, Path] = {}
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
            kept[name] = path
    return kept, None


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
