"""Cells of an input, for those who may see values: read in a box each time, cut, and kept nowhere.

Who sees what is in the action log before anything is read, without the values. Everything else that the API and the
pages show has none.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

from console.api import models
from console.api.access import Permission
from console.api.operations import Answer, Call
from console.api.problems import ProblemError
from console.desk.boxes import boxes
from core.errors import AdeError, ObjectMissing, SandboxUnavailable
from core.jobs import InputRef, Job
from runner.boxes import BoxLimits
from runner.comparisons import Inspections, ResultUnreadable
from runner.engine.pages import drawing

LARGEST = 16 * 1024 * 1024  # bytes of an input whose cells are shown
_SECONDS = 20
_MEMORY_MB = 512
_WAIT_SECONDS = 25.0
_LONGEST = 80
_BOXES = threading.BoundedSemaphore(1)  # they run beside the console
_MOST_ROWS = 400


@dataclass(frozen=True, slots=True)
class WantedCells:
    """Which cells of one input somebody wants to see: rows, and samples of columns between two rows, by sheet."""

    rows: dict[str, set[int]] = field(default_factory=dict)
    samples: dict[str, list[tuple[str, int, int]]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"rows": {sheet: sorted(rows) for sheet, rows in self.rows.items()}, "samples": self.samples}


@dataclass(frozen=True, slots=True)
class ShownCells:
    """Texts of cells, harmless to show: cut, and without marks that turn or hide text."""

    rows: dict[str, dict[int, list[str]]]
    samples: dict[str, dict[str, list[str]]]

    def cell(self, sheet: str, row: int, column: int) -> str:
        """The text of one cell, columns counted from 1; empty: blank, or not asked for."""
        cells = self.rows.get(sheet, {}).get(row, [])
        return cells[column - 1] if 0 < column <= len(cells) else ""


def see_cells(call: Call, job: Job, name: str | None, wanted: WantedCells, *, on: str) -> ShownCells:
    """The wanted cells of an input of a job, for the caller. `on`: which page or route shows them, for the action log.

    Raises ProblemError where the caller may not see them, the input is too large or gone, or no box has room.
    """
    if not call.principal.may(Permission.VALUES) or not call.principal.sees(job.tenant):
        raise ProblemError(
            HTTPStatus.FORBIDDEN, "values are for tokens with the scope `values`; an operator makes them"
        )
    chosen = _input(job, name)
    store = call.context.stack.store
    info = store.head(chosen.ref.key)
    if info is None or info.version != chosen.ref.version:
        raise ObjectMissing(f"{chosen.ref.key} is no longer as the job read it; it was replaced or removed since")
    if info.size > LARGEST:
        raise ProblemError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"the file has {info.size} bytes and values are shown of files up to {LARGEST}; download it instead",
        )
    call.context.actions.note(
        call.principal, "see_values", tenant=job.tenant, job=job.job_id, key=chosen.ref.key, on=on
    )
    with _turn(), call.context.spool.scratch() as scratch:
        file = scratch / f"input.{_ending(chosen.ref.key)}"
        store.fetch(chosen.ref.key, file, version=chosen.ref.version, limit=LARGEST)
        settings = replace(call.context.stack.settings, worker_mem_mb=_MEMORY_MB)
        limits = BoxLimits(wall_seconds=_SECONDS, cpu_seconds=_SECONDS, memory_mb=_MEMORY_MB, file_mb=16)
        try:
            with boxes(settings, scratch / "run") as made:
                answer = Inspections(made.sandbox, limits, scratch / "show").show(file, wanted.as_json())
        except (SandboxUnavailable, ResultUnreadable) as error:
            # Never the box's own words: what it says of a file may hold what is in it.
            raise ProblemError(
                HTTPStatus.UNPROCESSABLE_ENTITY, f"the cells of {job.job_id} cannot be shown ({type(error).__name__})"
            ) from None
    return harmless(answer)


def cells_or_trouble(call: Call, job: Job, name: str | None, wanted: WantedCells, *, on: str) -> tuple[ShownCells, str]:
    """The same for a page that is of use without values, too: what there is of them, and why there are none."""
    try:
        return see_cells(call, job, name, wanted, on=on), ""
    except ProblemError as problem:
        return ShownCells({}, {}), str(problem)
    except AdeError as error:
        return ShownCells({}, {}), str(error)


@contextmanager
def _turn() -> Iterator[None]:
    if not _BOXES.acquire(timeout=_WAIT_SECONDS):
        raise ProblemError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "others are reading values; try again in a moment",
            headers={"Retry-After": "10"},
        )
    try:
        yield
    finally:
        _BOXES.release()


def _input(job: Job, name: str | None) -> InputRef:
    primaries = [one for one in job.inputs if one.role == "primary"]
    found = next((one for one in primaries if name in (None, one.name)), None)
    if found is None:
        raise ObjectMissing(f"job {job.job_id} has no input of that name")
    return found


def _ending(key: str) -> str:
    ending = key.rpartition(".")[2].lower()
    return ending if ending.isascii() and ending.isalnum() and len(ending) <= 8 else "bin"


def harmless(answer: Mapping[str, Any]) -> ShownCells:
    """The answer of a box, which is believed in nothing."""
    rows: dict[str, dict[int, list[str]]] = {}
    for sheet, found in _mapping(answer.get("rows")).items():
        numbered = {int(n): texts for n, texts in _mapping(found).items() if str(n).isdecimal() and len(str(n)) < 8}
        rows[sheet] = {n: _texts(texts) for n, texts in numbered.items()}
    samples = {
        sheet: {str(column): _texts(texts)[:5] for column, texts in _mapping(found).items()}
        for sheet, found in _mapping(answer.get("samples")).items()
    }
    return ShownCells(rows, samples)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> list[str]:
    return [shown_text(one) for one in value if isinstance(one, str)] if isinstance(value, list) else []


def shown_text(text: str) -> str:
    """A cell's text on one line, cut, without marks that nobody sees."""
    cut = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return drawing.without_hidden(" ".join(cut.split()))


def show_values(call: Call) -> Answer:
    """Rows of a sheet, and samples of columns, as texts."""
    query: models.ValuesQuery = call.query
    job = call.context.seen(call.job_id, call.principal)
    wanted = WantedCells()
    if query.rows:
        wanted.rows[query.sheet] = _numbers(query.rows)
    columns = [one for one in (query.columns or "").split(",") if one]
    if columns:
        wanted.samples[query.sheet] = [(letters, query.first, query.last) for letters in columns]
    shown = see_cells(call, job, query.input, wanted, on="api")
    return {
        "job_id": job.job_id,
        "sheet": query.sheet,
        "rows": [{"row": n, "cells": cells} for n, cells in sorted(shown.rows.get(query.sheet, {}).items())],
        "samples": shown.samples.get(query.sheet, {}),
    }


def _numbers(text: str) -> set[int]:
    """The rows that `4-8,12` names, as many as are shown at once."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        begin, end = int(first), int(last or first)
        found |= set(range(begin, min(end, begin + _MOST_ROWS) + 1))
    return set(sorted(found)[:_MOST_ROWS])
