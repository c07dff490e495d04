"""The events that a box writes: progress, log lines and its end. The runner trusts none of them."""

import json
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from runner.engine.contract.decoding import ContractBroken, Json, Where, require
from runner.engine.contract.names import REPORTED_PASSES, EndCode

MAX_LINE: Final = 64 * 1024  # bytes of an event
MAX_MESSAGE: Final = 2000
_MAX_NAME: Final = 200
_MAX_LEVEL: Final = 20
_MAX_PLACE: Final = 500
_MAX_COUNT: Final = 2**53
_HIDDEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
WHERE_KEYS: Final = frozenset(
    {"input", "sheet", "table", "cell", "field", "rule", "file", "line", "reason", "remedy", "pass", "job"}
    | {"exception", "trace"}
)


@dataclass(frozen=True)
class PassProgress:
    """How far a pass has come."""

    step: str  # the pass
    done: int
    total: int | None = None
    table: str | None = None

    def __post_init__(self) -> None:
        """Check that the pass is one of those that report."""
        require(self.step in REPORTED_PASSES, "progress of an unknown pass")

    def encode(self) -> Json:
        """Return the JSON form of this `PassProgress`, which `decode` reads back."""
        return {"event": "progress", "pass": self.step, "done": self.done, "total": self.total, "table": self.table}

    @classmethod
    def decode(cls, raw: Json) -> Self:
        """Check and read the JSON form of a `PassProgress`; raises ContractBroken if a part is missing or of another
        type."""
        step, total, table = raw.get("pass"), raw.get("total"), raw.get("table")
        return cls(
            step if isinstance(step, str) else "",
            _count(raw.get("done", 0), "done"),
            None if total is None else _count(total, "total"),
            None if table is None else cut_printable(table, _MAX_NAME),
        )


@dataclass(frozen=True)
class LogLine:
    """A line of the engine's own log; never a cell's value."""

    level: str
    name: str
    fields: Json

    def encode(self) -> Json:
        """Return the JSON form of this `LogLine`, which `decode` reads back."""
        return {"event": "log", "level": self.level, "name": self.name, "fields": self.fields}

    @classmethod
    def decode(cls, raw: Json) -> Self:
        """Check and read the JSON form of a `LogLine`; raises ContractBroken if a part is missing or of another
        type."""
        fields = raw.get("fields", {})
        if not isinstance(fields, dict):
            raise ContractBroken("log fields that are not an object")
        return cls(
            cut_printable(raw.get("level", "info"), _MAX_LEVEL), cut_printable(raw.get("name", ""), _MAX_NAME), fields
        )


@dataclass(frozen=True)
class EndError:
    """Why a job ended without its workbook. Nothing in it may hold a cell's value."""

    code: EndCode
    message: str
    where: Where = field(default_factory=dict)

    def encode(self) -> Json:
        """Return the JSON form of this `EndError`, which `decode` reads back."""
        return {"code": str(self.code), "message": self.message, "where": self.where}

    @classmethod
    def decode(cls, raw: Json) -> Self:
        """Check and read the JSON form of an `EndError`; raises ContractBroken if a part is missing or of another
        type."""
        where = raw.get("where", {})
        if not isinstance(where, dict):
            raise ContractBroken("a place that is not an object")
        return cls(
            EndCode(str(raw["code"])),
            cut_printable(raw.get("message", ""), MAX_MESSAGE),
            {
                key: value if isinstance(value, int) else cut_printable(value, _MAX_PLACE)
                for key, value in where.items()
                if key in WHERE_KEYS and value is not None
            },
        )


@dataclass(frozen=True)
class FinalEvent:
    """The last event of a job, or (`verified`, right before it) of the verification of its own outputs."""

    summary: Json = field(default_factory=dict)  # of a success, as the box claims it
    error: EndError | None = None
    verified: bool = False

    def encode(self) -> Json:
        """Return the JSON form of this `FinalEvent`, which `decode` reads back."""
        outcome: Json = {"ok": True, "summary": self.summary}
        if self.error is not None:
            outcome = {"ok": False, "error": self.error.encode()}
        return {"event": "verified" if self.verified else "end", **outcome}

    @classmethod
    def decode(cls, raw: Json) -> Self:
        """Check and read the JSON form of a `FinalEvent`; raises ContractBroken if a part is missing or of another
        type."""
        ok, verified = raw.get("ok"), raw.get("event") == "verified"
        if ok is True:
            summary = raw.get("summary", {})
            if not isinstance(summary, dict):
                raise ContractBroken("a summary that is not an object")
            return cls(summary, verified=verified)
        error = raw.get("error")
        if ok is not False or not isinstance(error, dict) or error.get("code") not in tuple(EndCode):
            raise ContractBroken("a final line with neither success nor a known error")
        return cls(error=EndError.decode(error), verified=verified)


Event = PassProgress | LogLine | FinalEvent
_EVENTS: Final[Mapping[str, Callable[[Json], Event]]] = {
    "progress": PassProgress.decode,
    "log": LogLine.decode,
    "end": FinalEvent.decode,
    "verified": FinalEvent.decode,
}


def decode_event(raw: Json) -> Event | None:
    """Return an event of a box, reduced to its known parts; None for an unknown one. Raises ContractBroken."""
    name = raw.get("event")
    if not isinstance(name, str):
        raise ContractBroken("a line without an event")
    decode = _EVENTS.get(name)
    return None if decode is None else decode(raw)


def _count(value: object, key: str) -> int:
    """Return a value that is a whole number, 0 or more, which JSON keeps exactly; raises ContractBroken for others."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MAX_COUNT:
        raise ContractBroken(f"{key} is not a count")
    return value


def cut_printable(value: object, most: int) -> str:
    """Cut a box's text to so many characters, and replace control characters by visible escapes; line feeds stay. Any
    other value is written as JSON first."""
    text = value if isinstance(value, str) else json.dumps(value)
    text = text if len(text) <= most else text[: most - 1] + "…"
    return text if text.isprintable() else "\n".join(map(escape_controls, text.split("\n")))


def escape_controls(line: str) -> str:
    """Replace control characters of a line by visible escapes, so that a terminal or a page can show it."""
    return "".join(
        char if char == "\t" or unicodedata.category(char) not in _HIDDEN_CATEGORIES else _escape_char(char)
        for char in line
    )


def _escape_char(char: str) -> str:
    """Write a character as a visible escape."""
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
