"""Log events: snake_case verbs with fields, one JSON object a line on standard error. Never a cell's value."""

import contextlib
import json
import sys
import threading
import time
from typing import Any, TextIO

LEVELS = ("debug", "info", "warning", "error")


class Log:
    """A sink for events; the composition root makes one and hands it on."""

    def __init__(self, *, level: str = "info", stream: TextIO | None = None, **fields: Any) -> None:
        self._least = LEVELS.index(level)
        self._stream = stream
        self._fields = fields
        self._lock = threading.Lock()

    def bind(self, **fields: Any) -> "Log":
        return Log(level=LEVELS[self._least], stream=self._stream, **(self._fields | fields))

    def debug(self, event: str, **fields: Any) -> None:
        self._write("debug", event, fields)

    def info(self, event: str, **fields: Any) -> None:
        self._write("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._write("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        self._write("error", event, fields)

    def _write(self, level: str, event: str, fields: dict[str, object]) -> None:
        if LEVELS.index(level) < self._least:
            return
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
        line = json.dumps({"at": at + "Z", "level": level, "event": event, **self._fields, **fields}, default=str)
        stream = self._stream or sys.stderr
        # A closed log stream must not stop the work.
        with self._lock, contextlib.suppress(OSError, ValueError):
            stream.write(line + "\n")
            stream.flush()

    def pass_on(self, line: str) -> None:
        """Write a line that another process's log made."""
        stream = self._stream or sys.stderr
        with self._lock, contextlib.suppress(OSError, ValueError):
            stream.write(line)
            stream.flush()
