"""The output of a command: text for people, JSON for programs, colours only on a terminal."""

import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from runner.engine.contract import escape_controls

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
STATE_COLOURS = {
    "AWAITING": "yellow",
    "SCHEDULED": "blue",
    "QUEUED": "blue",
    "RUNNING": "cyan",
    "REVIEW": "yellow",
    "PUBLISHING": "cyan",
    "SUCCEEDED": "green",
    "FAILED": "red",
    "TIMED_OUT": "red",
}
_GAP = "  "


def use_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Printer:
    """The output of one command. Results go to standard output, everything else to standard error."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.colour = use_colour(sys.stdout)

    @property
    def terminal(self) -> bool:
        """Whether a person is watching."""
        return sys.stdout.isatty() and not self.as_json

    def emit(self, document: Any) -> None:
        """One JSON document, on one line."""
        plain = (sys.stdout.encoding or "").lower() not in ("utf-8", "utf8")
        sys.stdout.write(json.dumps(document, ensure_ascii=plain, default=str) + "\n")
        sys.stdout.flush()

    def line(self, text: str = "") -> None:
        print(escape_controls(text), flush=True)

    def note(self, text: str) -> None:
        """For people only, and never mixed into a result."""
        sys.stdout.flush()
        print("\n".join(escape_controls(part) for part in text.splitlines()), file=sys.stderr, flush=True)

    def paint(self, text: str, *styles: str) -> str:
        codes = ";".join(_CODES[s] for s in styles if s in _CODES)
        return f"\x1b[{codes}m{text}\x1b[0m" if self.colour and codes else text

    def state(self, state: str) -> str:
        return self.paint(state, STATE_COLOURS.get(state, "dim"))

    def heading(self, text: str) -> None:
        print(self.paint(escape_controls(text), "bold"), flush=True)

    def pairs(self, facts: Iterable[tuple[str, str]]) -> None:
        """Names and values, one pair per line; empty values are left out."""
        shown = [(name, value) for name, value in facts if value]
        width = max((len(name) for name, _ in shown), default=0)
        for name, value in shown:
            print(f"{self.paint(name.ljust(width), 'dim')}  {self._value(name, escape_controls(value))}", flush=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Columns aligned; on a terminal the last one is cut to its width, in a pipe nothing is."""
        cells = [[escape_controls(cell) for cell in row] for row in rows]
        widths = [max([len(name), *(len(row[n]) for row in cells)]) for n, name in enumerate(columns)]
        room = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        self._row(columns, widths, columns, room, heading=True)
        for row in cells:
            self._row(columns, widths, row, room, heading=False)

    def _row(
        self, columns: Sequence[str], widths: list[int], row: Sequence[str], room: int | None, *, heading: bool
    ) -> None:
        *first, last = row
        left = _GAP.join(cell.ljust(width) for cell, width in zip(first, widths, strict=False))
        if room is not None:
            last = _cut(last, max(12, room - len(left) - len(_GAP)))
        if heading:
            print(self.paint(f"{left}{_GAP}{last}".rstrip(), "dim"))
            return
        painted = [
            self._value(name, cell) + " " * (width - len(cell))
            for name, cell, width in zip(columns, first, widths, strict=False)
        ]
        print(_GAP.join([*painted, self._value(columns[-1], last)]).rstrip())

    def _value(self, name: str, text: str) -> str:
        return self.state(text) if name.lower() == "state" else text


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


class Progress:
    """One line on standard error that is overwritten; silent if nobody is watching."""

    def __init__(self) -> None:
        self._shown = 0
        self._on = sys.stderr.isatty()

    def show(self, text: str) -> None:
        if self._on:
            text = _cut(escape_controls(text), shutil.get_terminal_size().columns - 1)
            sys.stderr.write("\r" + text.ljust(self._shown))
            sys.stderr.flush()
            self._shown = len(text)

    def clear(self) -> None:
        if self._on and self._shown:
            sys.stderr.write("\r" + " " * self._shown + "\r")
            sys.stderr.flush()
            self._shown = 0
