"""What the engine says while it works: one JSON object a line (docs/engine-order.md)."""

import json
from typing import TextIO

MAX_LINE = 64 * 1024


class Channel:
    """Writes events. A line that would be too long loses its details, never its meaning."""

    def __init__(self, stream: TextIO | None, *, last: str = "end") -> None:
        """`last`: what its closing event is called."""
        self._stream = stream
        self._last = last

    def progress(self, step: str, *, done: int, total: int | None = None, table: str | None = None) -> None:
        self._say({"event": "progress", "pass": step, "done": done, "total": total, "table": table})

    def log(self, level: str, name: str, **fields: object) -> None:
        self._say({"event": "log", "level": level, "name": name, "fields": fields})

    def succeed(self, summary: dict[str, object]) -> None:
        self._say({"event": self._last, "ok": True, "summary": summary})

    def fail(self, code: str, message: str, where: dict[str, str | int]) -> None:
        self._say({"event": self._last, "ok": False, "error": {"code": code, "message": message, "where": where}})

    def _say(self, event: dict[str, object]) -> None:
        if self._stream is None:
            return
        line = json.dumps(event, ensure_ascii=True, allow_nan=False)
        if len(line) >= MAX_LINE:
            event = {k: v for k, v in event.items() if k not in ("fields", "table", "summary")}
            line = json.dumps(event | {"cut": True}, ensure_ascii=True)
        self._stream.write(line + "\n")
        self._stream.flush()
