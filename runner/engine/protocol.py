"""The engine's protocol (docs/reference/engine-order.md): orders in, events out, and early ends."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, TextIO

from runner.engine.contract import (
    MAX_LINE,
    ContractBroken,
    EndCode,
    EndError,
    Event,
    FinalEvent,
    InspectOrder,
    Json,
    Order,
    OtherVersion,
    Place,
    VerifyOrder,
    Where,
)

_DEEP: Final = 12  # frames of a traceback that are reported


class EngineStop(Exception):
    """The job cannot go on: `code` of the protocol, a message for people, and where.

    None of the three may hold a cell's value.
    """

    def __init__(self, code: EndCode, message: str, **where: str | int | None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.where: Where = {key: value for key, value in where.items() if value is not None}

    @property
    def end(self) -> FinalEvent:
        return FinalEvent(error=EndError(self.code, self.message, self.where))


def place_of(error: Exception) -> Where:
    """Return the exception's type and its frames in the engine, innermost last; names and lines, never values."""
    places: list[tuple[str, int]] = []
    trace = error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if "runner/engine/" in file.as_posix():
            places.append(("/".join(file.parts[-2:]), trace.tb_lineno))
        trace = trace.tb_next
    where: Where = {
        "remedy": "this is a bug in ade-drop; please report it with the job's artifact",
        "exception": type(error).__name__,
        "trace": " ".join(f"{file}:{line}" for file, line in places[-_DEEP:]),
    }
    if places:
        where |= {"file": places[-1][0], "line": places[-1][1]}
    return where


def open_target(target: Place) -> IO[bytes]:
    """Open an output at a path, or that of a file descriptor."""
    if isinstance(target, int):
        return os.fdopen(target, "w+b", closefd=False)
    return target.open("w+b")


def open_output(order: Order, name: str) -> IO[bytes] | None:
    """Open an output for writing; None if the order does not ask for it."""
    target = order.outputs.get(name)
    return None if target is None else open_target(target)


def read_order(raw: Json, folder: Path) -> Order:
    """Decode an order whose paths are below `folder`. An invalid one is the runner's fault: an engine error."""
    with _runner_at_fault():
        return Order.decode(raw).below(folder)


def read_verify_order(raw: Json, folder: Path) -> VerifyOrder:
    """Like `read_order`, for an order to verify."""
    with _runner_at_fault():
        return VerifyOrder.decode(raw).below(folder)


def read_inspect_order(raw: Json, folder: Path) -> InspectOrder:
    """Like `read_order`, for an order to inspect results."""
    with _runner_at_fault():
        return InspectOrder.decode(raw).below(folder)


@contextmanager
def _runner_at_fault() -> Iterator[None]:
    """Turn a broken contract into an engine error."""
    try:
        yield
    except OtherVersion:
        what = "this engine does not support the order's version"
        raise EngineStop(EndCode.ENGINE_ERROR, what, remedy="update ade") from None
    except ContractBroken as broken:
        what = f"the order lacks or misuses a key ({broken})"
        raise EngineStop(EndCode.ENGINE_ERROR, what, remedy="see docs/reference/engine-order.md") from None


class EventWriter:
    """Writes events as JSON lines. A line over MAX_LINE loses its details, never its meaning."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def write(self, event: Event) -> None:
        """Write an event as a line."""
        if self._stream is None:
            return
        parts = event.encode()
        line = json.dumps(parts, ensure_ascii=True, allow_nan=False)
        if len(line) >= MAX_LINE:
            parts = {key: value for key, value in parts.items() if key not in ("fields", "table", "summary")}
            line = json.dumps(parts | {"cut": True}, ensure_ascii=True)
        self._stream.write(line + "\n")
        self._stream.flush()


class BadOutput(Exception):
    """The box wrote something that must not be published. The message contains no text from the box."""
