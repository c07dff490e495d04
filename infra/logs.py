"""Log events: snake_case verbs with fields, one JSON object a line on standard error. Never a cell's value."""

import contextlib
import json
import logging
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


class ForeignLogs(logging.Handler):
    """What a library logs, as our events; nothing of it reaches standard error by itself."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    @classmethod
    def capture(cls, library: str, log: Log) -> None:
        """Write its records to `log` from now on; a second call replaces the first."""
        logger = logging.getLogger(library)
        logger.handlers[:] = [cls(log)]
        logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        write = self._log.error if record.levelno >= logging.ERROR else self._log.warning
        failed = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else None
        write("library_logged", library=record.name, message=record.getMessage(), error=failed)
