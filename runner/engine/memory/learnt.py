"""What the job's memories hold, read once and checked: headers for the matcher, spellings and readings for values,
and the shapes of tables for the structure pass.

A memory is data from outside. A wrong one ends the job with words that name it (docs/explanation/mapping.md has the
format, core/memories.py writes it).
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, Final, NamedTuple

from runner.engine.common.instants import instant
from runner.engine.contract import EndCode
from runner.engine.memory.confirmed import ConfirmedHeaders, Entry, IndexedHeaders, StoredShape
from runner.engine.protocol import EngineStop
from runner.engine.values.convert import fold

MAX_BYTES: Final = 8 * 1024 * 1024
MAX_ENTRIES: Final = 20_000
_MAX_TEXT: Final = 500
_MAX_COUNT: Final = 10**9  # times that something was said
_MAX_COLUMNS: Final = 2_000  # of a remembered table
_MAX_HEADER_ROWS: Final = 20
_LAST_ROW: Final = 1_048_576

_TEXT_OR_NONE: Final = (str, type(None))


class LearntEntries(NamedTuple):
    """The entries of all memories, the most specific last."""

    headers: ConfirmedHeaders
    values: list[Entry]
    readings: list[Entry]
    shapes: Sequence[StoredShape] = ()

    def readings_of(self, sender: str | None) -> tuple[tuple[str, str], ...]:
        """Return header and reading of each column of which it is known how a sender writes dates and numbers; none
        for a drop without a sender."""
        of_sender = (entry for entry in self.readings if entry["sender"] == sender) if sender is not None else ()
        return tuple((entry["header"], entry["reading"]) for entry in of_sender)

    def spellings(self, field: str, allowed: Iterable[Any]) -> dict[str, Any]:
        """Map folded texts to the allowed value that they mean: what a person said last, else what was said most often.

        Where two values were said equally often, the text means neither. An allowed value means itself.
        """
        allowed_by_text = {fold(value): value for value in allowed}
        counts: dict[str, Counter[str]] = {}
        by_person: dict[str, tuple[datetime, str]] = {}  # folded text -> when a person said what it means, and that
        for entry in self.values:
            if entry["field"] != field:
                continue
            text, means = fold(entry["value"]), fold(entry["means"])
            if means not in allowed_by_text or text in allowed_by_text:
                continue
            counts.setdefault(text, Counter())[means] += entry.get("count", 1)
            moment = instant(entry.get("said_at"))
            if moment is not None and (text not in by_person or moment >= by_person[text][0]):
                by_person[text] = (moment, means)
        meanings = {}
        for text, counts_of_text in counts.items():
            (likeliest, most), *others = counts_of_text.most_common(2)
            if text in by_person:
                _, meaning = by_person[text]
                meanings[text] = allowed_by_text[meaning]
            elif all(count < most for _, count in others):
                meanings[text] = allowed_by_text[likeliest]
        return meanings


def read_memories(
    paths: Sequence[tuple[Path, str]], versions: Sequence[str] = (), indexed: Path | None = None
) -> LearntEntries:
    """Read all memories; each path comes with the name that a message calls it by. Raises EngineStop for one that is
    not valid.

    `versions`: of the memories, as far as they have one. `indexed`: a file of our own with the headers of all of them,
    which those files then lack.
    """
    headers: list[Entry] = []
    values: list[Entry] = []
    readings: list[Entry] = []
    shapes: list[StoredShape] = []
    for index, (path, name) in enumerate(paths):
        body = _load_memory(path, name)
        headers.extend(_check_entries(body, "headers", _is_header, name))
        values.extend(_check_entries(body, "values", _is_spelling, name))
        readings.extend(_check_entries(body, "readings", _is_reading, name))
        version = versions[index] if index < len(versions) else ""
        shapes.extend(StoredShape(entry, name, version) for entry in _check_entries(body, "shapes", _is_shape, name))
    confirmed = ConfirmedHeaders(headers) if indexed is None else IndexedHeaders(_map_file(indexed))
    return LearntEntries(confirmed, values, readings, shapes)


def _map_file(path: Path) -> mmap:
    """Map a file into memory: only those pages are read that something is looked up in."""
    with path.open("rb") as file:
        return mmap(file.fileno(), 0, access=ACCESS_READ)


def _load_memory(path: Path, name: str) -> dict[str, Any]:
    """Read the JSON of a memory; raises EngineStop if it is not one."""
    try:
        with path.open("rb") as file:
            body = file.read(MAX_BYTES + 1)
        if len(body) > MAX_BYTES:
            raise _refuse(name, f"it has more than {MAX_BYTES} bytes")
        raw = json.loads(body)
    except OSError as error:
        raise _refuse(name, f"it cannot be read: {error.strerror}") from None
    except RecursionError:
        raise _refuse(name, "it is nested too deep") from None
    except ValueError:
        raise _refuse(name, "it is not JSON") from None
    if not isinstance(raw, dict) or raw.get("memory") != 1:
        raise _refuse(name, "it is no memory of version 1")
    return raw


def _check_entries(body: Mapping[str, Any], kind: str, is_valid: Callable[[Any], bool], name: str) -> list[Entry]:
    """Return the entries of one kind, empty without any; raises EngineStop if one is not valid, or they are too
    many. `name`: of the memory, for the message."""
    entries = body.get(kind) or []
    if not isinstance(entries, list) or len(entries) > MAX_ENTRIES:
        raise _refuse(name, f"its {kind} are no list of at most {MAX_ENTRIES}")
    if not all(map(is_valid, entries)):
        index = next(number for number, entry in enumerate(entries) if not is_valid(entry))
        raise _refuse(name, f"entry {index} of its {kind} is not one")
    return entries


def _is_header(entry: Any) -> bool:
    """Whether an entry says which field a header is. Called for every header of a large memory: each part is checked in
    place."""
    if type(entry) is not dict:
        return False
    header, field, count = entry.get("header"), entry.get("field"), entry.get("count", 1)
    return (
        type(header) is str
        and 0 < len(header) <= _MAX_TEXT
        and (field is None or (type(field) is str and 0 < len(field) <= _MAX_TEXT))
        and type(count) is int
        and 0 < count <= _MAX_COUNT
        and type(entry.get("said_at", "")) in _TEXT_OR_NONE
    )


def _is_spelling(entry: Any) -> bool:
    """Whether an entry says which allowed value a text means."""
    return (
        type(entry) is dict
        and _is_label(entry.get("field"))
        and _is_label(entry.get("value"))
        and _is_label(entry.get("means"))
        and _is_counted(entry)
    )


def _is_reading(entry: Any) -> bool:
    """Whether an entry says how a sender writes a column."""
    return (
        type(entry) is dict
        and isinstance(entry.get("sender"), str)
        and _is_label(entry.get("header"))
        and _is_label(entry.get("reading"))
    )


def _is_shape(entry: Any) -> bool:
    """Whether an entry describes a confirmed table."""
    return (
        type(entry) is dict
        and isinstance(entry.get("sender"), str)
        and isinstance(entry.get("sheet"), str)
        and _is_list(entry.get("header_rows", []), {int}, _MAX_HEADER_ROWS)
        and all(0 < row <= _LAST_ROW for row in entry.get("header_rows", ()))
        and _is_list(entry.get("headers", []), {str}, _MAX_COLUMNS)
        and max(map(len, entry.get("headers", ())), default=0) <= _MAX_TEXT
        and _is_list(entry.get("fields", []), {str, type(None)}, _MAX_COLUMNS)
        and isinstance(entry.get("by", ""), str)
        and isinstance(entry.get("file", ""), str)
        and isinstance(entry.get("cut") or "", str)
        and _is_counted(entry)
    )


def _is_list(value: Any, kinds: set[type], most: int) -> bool:
    """Whether a value is a list of at most so many items, of these types only."""
    return type(value) is list and len(value) <= most and set(map(type, value)) <= kinds


def _is_label(text: Any) -> bool:
    """Whether a value is a text that is neither empty nor too long."""
    return type(text) is str and 0 < len(text) <= _MAX_TEXT


def _is_counted(entry: Entry) -> bool:
    """Whether an entry says how often it was said, and when."""
    count = entry.get("count", 1)
    return type(count) is int and 0 < count <= _MAX_COUNT and isinstance(entry.get("said_at", ""), (str, type(None)))


def _refuse(name: str, why: str) -> EngineStop:
    """Make the end of a job with a memory that is not valid."""
    return EngineStop(
        EndCode.CONFIG_REFUSED,
        f"the memory {name} was refused: {why}",
        remedy="put back a version that `ade memory show` reads, or take it away; without it the job runs as before",
    )
