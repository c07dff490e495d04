"""The engine's protocol (docs/reference/engine-order.md): orders in, events out, and early ends."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, TextIO

from runner.engine.fields import Field

# Ends without a workbook whose artifact says why.
EXPLAINED: Final = frozenset({"nothing_mapped", "empty_input", "rows_rejected", "drifted", "needs_review"})
_DEEP: Final = 12  # frames of a traceback that are reported


class EngineStop(Exception):
    """The job cannot go on: `code` of the protocol, a message for people, and where.

    None of the three may hold a cell's value.
    """

    def __init__(self, code: str, message: str, **where: str | int | None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.where = {k: v for k, v in where.items() if v is not None}


def place_of(error: Exception) -> dict[str, str | int]:
    """The exception's type and its frames in the engine, innermost last; names and lines, never values."""
    places: list[tuple[str, int]] = []
    trace = error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if "engine" in file.parts:
            places.append(("/".join(file.parts[-2:]), trace.tb_lineno))
        trace = trace.tb_next
    where: dict[str, str | int] = {
        "remedy": "this is a bug in ade-drop; please report it with the job's artifact",
        "exception": type(error).__name__,
        "trace": " ".join(f"{file}:{line}" for file, line in places[-_DEEP:]),
    }
    if places:
        where |= {"file": places[-1][0], "line": places[-1][1]}
    return where


class MendedJob(NamedTuple):
    """The job whose rejects a file corrects, and the names of that job's inputs, by which keys number them."""

    job: str
    inputs: tuple[str, ...]
    knows: tuple[int, ...] = ()  # which of the corrected files before it that job's result had, by number
    earlier: bool = False  # of an earlier drop than this one
    key: str = ""  # where it was dropped; a later file with the same key replaces the rows that it corrects


class InputFile(NamedTuple):
    role: str
    name: str
    file: str  # the file's own name; a hint for the format
    path: Path
    size: int
    sha256: str
    mends: MendedJob | None = None


class PreviousProfile(NamedTuple):
    """The profile of the sender's last drop (see drift.py)."""

    path: Path
    key: str
    sha256: str


class MemoryFile(NamedTuple):
    """What was learnt: a file, and the object that it is a copy of."""

    path: Path
    key: str
    version: str
    sha256: str


class Order(NamedTuple):
    job: dict[str, Any]
    manifest: dict[str, Any]
    params: dict[str, Any]
    primary: list[InputFile]
    auxiliary: list[InputFile]
    mended: list[InputFile]  # files whose rows replace rows of the primary inputs, from the oldest to the newest
    config: Path | None
    config_digest: str
    outputs: dict[str, Path | int]
    sandbox: dict[str, Any]
    fields: list[Field]
    previous: "PreviousProfile | None" = None
    decision: dict[str, Any] | None = None  # a person's: key, version, sha256, by and, as `body`, what it says
    accept: bool = False  # nobody decided in time: ask nothing
    memories: tuple[MemoryFile, ...] = ()  # the most specific last
    headers: Path | None = None  # those of all memories, indexed; the memories' files then have none
    refused: tuple[tuple[str, str], ...] = ()  # memories that cannot be used, and why
    sender: str | None = None  # whose habits the memories are asked for
    answer_to: str | None = None  # where a decision on it is expected
    lost: tuple[str, ...] = ()  # names of corrected files of earlier drops that are gone

    def open_output(self, name: str) -> IO[bytes] | None:
        """Open an output for writing; None if the order does not ask for it."""
        target = self.outputs.get(name)
        if target is None:
            return None
        return open_target(target)


def open_target(target: Path | int, folder: Path | None = None) -> IO[bytes]:
    """Open an output given by a path, relative to `folder`, or by a file descriptor."""
    if isinstance(target, int):
        return os.fdopen(target, "w+b", closefd=False)
    return (target if folder is None else folder / target).open("w+b")


def read_order(raw: Mapping[str, Any], folder: Path) -> Order:
    """Decode an order. An invalid one is the runner's fault, so it raises an engine error."""
    try:
        return _decoded(raw, folder)
    except (KeyError, TypeError, AttributeError) as error:
        what = f"the order lacks or misuses a key ({type(error).__name__})"
        raise EngineStop("engine_error", what, remedy="see docs/reference/engine-order.md") from None


def _decoded(raw: Mapping[str, Any], folder: Path) -> Order:
    if raw["order"] != 1:
        raise EngineStop("engine_error", "this engine does not support the order's version", remedy="update ade")
    inputs = [
        InputFile(
            i["role"],
            i["name"],
            i.get("file") or i["name"],
            folder / i["path"],
            int(i.get("size") or 0),
            i.get("sha256") or "",
            _mended(i["mends"]) if i.get("mends") else None,
        )
        for i in raw["inputs"]
    ]
    config = raw.get("config") or {}
    manifest = dict(raw["manifest"])
    return Order(
        job=dict(raw.get("job") or {}),
        manifest=manifest,
        params=dict(raw.get("params") or {}),
        primary=[i for i in inputs if i.role == "primary"],
        auxiliary=[i for i in inputs if i.role == "auxiliary"],
        mended=[i for i in inputs if i.role == "mended"],
        config=folder / config["path"] if config.get("path") else None,
        config_digest=config.get("digest") or "",
        outputs={n: t if isinstance(t, int) else folder / t for n, t in raw["outputs"].items()},
        sandbox=dict(raw.get("sandbox") or {}),
        fields=[Field(f) for f in manifest.get("fields") or ()],
        previous=PreviousProfile(folder / given["path"], given.get("key") or "", given.get("sha256") or "")
        if (given := raw.get("previous"))
        else None,
        decision=_decision(raw.get("decision"), folder),
        accept=raw.get("review") == "accept",
        memories=tuple(
            MemoryFile(folder / m["path"], m.get("key") or m["path"], m.get("version") or "", m.get("sha256") or "")
            for m in raw.get("memories") or ()
        ),
        headers=folder / raw["headers"]["path"] if raw.get("headers") else None,
        refused=tuple((str(one["key"]), str(one["why"])) for one in raw.get("refused") or ()),
        sender=raw.get("sender"),
        answer_to=raw.get("answer_to"),
        lost=tuple(raw.get("lost") or ()),
    )


def _mended(raw: Mapping[str, Any]) -> MendedJob:
    knows, earlier = tuple(raw.get("knows") or ()), raw.get("earlier") is True
    return MendedJob(raw["job"], tuple(raw["inputs"]), knows, earlier, raw.get("key") or "")


def _decision(raw: Mapping[str, Any] | None, folder: Path) -> dict[str, Any] | None:
    return None if raw is None else {**raw, "body": json.loads((folder / raw["path"]).read_bytes())}


MAX_LINE = 64 * 1024


class EventWriter:
    """Writes events as JSON lines. A line over MAX_LINE loses its details, never its meaning."""

    def __init__(self, stream: TextIO | None, *, last: str = "end") -> None:
        """`last`: the name of the final event."""
        self._stream = stream
        self._last = last

    def progress(self, step: str, *, done: int, total: int | None = None, table: str | None = None) -> None:
        self._write({"event": "progress", "pass": step, "done": done, "total": total, "table": table})

    def log(self, level: str, name: str, **fields: object) -> None:
        self._write({"event": "log", "level": level, "name": name, "fields": fields})

    def succeed(self, summary: dict[str, object]) -> None:
        self._write({"event": self._last, "ok": True, "summary": summary})

    def fail(self, code: str, message: str, where: dict[str, str | int]) -> None:
        self._write({"event": self._last, "ok": False, "error": {"code": code, "message": message, "where": where}})

    def _write(self, event: dict[str, object]) -> None:
        if self._stream is None:
            return
        line = json.dumps(event, ensure_ascii=True, allow_nan=False)
        if len(line) >= MAX_LINE:
            event = {k: v for k, v in event.items() if k not in ("fields", "table", "summary")}
            line = json.dumps(event | {"cut": True}, ensure_ascii=True)
        self._stream.write(line + "\n")
        self._stream.flush()


class BadOutput(Exception):
    """The box wrote something that must not be published. The message contains no text from the box."""
