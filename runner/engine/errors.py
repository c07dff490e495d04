"""How the engine ends a job early: on purpose, or because it broke."""

from pathlib import Path
from typing import Final

_DEEP: Final = 12  # places of a trace that are told


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
    """What broke and the way there through our own code, innermost last; names and lines, never values."""
    places: list[tuple[str, int]] = []
    trace = error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if "engine" in file.parts:
            places.append(("/".join(file.parts[-2:]), trace.tb_lineno))
        trace = trace.tb_next
    where: dict[str, str | int] = {
        "remedy": "report this with the artifact of the job; it is a bug of ade-drop",
        "exception": type(error).__name__,
        "trace": " ".join(f"{file}:{line}" for file, line in places[-_DEEP:]),
    }
    if places:
        where |= {"file": places[-1][0], "line": places[-1][1]}
    return where
