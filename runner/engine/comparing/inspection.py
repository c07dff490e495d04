"""Carries out an order to inspect results: takes their files, writes one small document about them."""

import io
import json
import re
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Final

from runner.engine.comparing.cell_history import explain_cell
from runner.engine.comparing.comparison import compare
from runner.engine.comparing.result_sides import SOURCE, ResultSide
from runner.engine.comparing.shown_cells import shown_cells
from runner.engine.contract import (
    COMPARE,
    DESCRIBE,
    EXPLAIN,
    SHOW,
    EndCode,
    EndError,
    FinalEvent,
    InspectName,
    InspectOrder,
)
from runner.engine.protocol import BadOutput, open_target, place_of
from runner.engine.reading import InputUnreadable

_QUOTED: Final = re.compile(r'[,"\n\r]')


def carry_out(order: InspectOrder) -> FinalEvent:
    """Inspect results and write the document that the order asks for; whatever the files hold, it returns an event,
    which says what went wrong."""
    try:
        _ACTIONS[order.what](order)
    except BadOutput as refused:
        problem = EndError(EndCode.BAD_OUTPUT, str(refused))
    except InputUnreadable as error:
        problem = EndError(EndCode.BAD_OUTPUT, f"normalized.xlsx cannot be read: {error.code}")
    except MemoryError:
        problem = EndError(EndCode.OUT_OF_MEMORY, "reading the results exceeded the memory limit")
    except Exception as error:  # noqa: BLE001  # whatever it was, these bytes brought it about
        problem = EndError(
            EndCode.ENGINE_ERROR, f"the results broke their reader: {type(error).__name__}", place_of(error)
        )
    else:
        return FinalEvent()
    return FinalEvent(error=problem)


def _compare(order: InspectOrder) -> None:
    """Compare two results and write comparison.json; what was spooled on the way is emptied."""
    left, right = map(ResultSide, order.results)
    place = order.outputs.get(InspectName.SPOOL)
    with nullcontext() if place is None else open_target(place) as spool:
        comparison = compare(left, right, by=order.by, show_values=order.values, spool=spool)
        if spool is not None:
            spool.truncate(0)
    _write(order, InspectName.COMPARISON, json.dumps(comparison, ensure_ascii=False, indent=1))


def _describe(order: InspectOrder) -> None:
    """Write a result as the expected files of a test."""
    side = ResultSide(order.results[0])
    _write(order, InspectName.EXPECTED, json.dumps(side.facts.encode(), ensure_ascii=False, indent=2) + "\n")
    with (
        open_target(order.outputs[InspectName.EXPECTED_ROWS]) as file,
        io.TextIOWrapper(file, "utf-8", "replace", newline="") as text,
    ):
        text.write(_csv_line([SOURCE, *side.facts.columns]))
        text.writelines(_csv_line([row.source, *row.cells]) for row in side.rows())


def _csv_line(cells: Iterable[str]) -> str:
    """Write a line of RFC 4180 that ends in a line feed; csv.writer would not quote a lone carriage return then."""
    return ",".join('"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text for text in cells) + "\n"


def _explain(order: InspectOrder) -> None:
    """Explain a cell of a result and write explanation.json."""
    explanation = explain_cell(ResultSide(order.results[0]), order.cell)
    _write(order, InspectName.EXPLANATION, json.dumps(explanation, ensure_ascii=False))


def _show(order: InspectOrder) -> None:
    """Write the cells of an input that the order asks for to cells.json; nothing if the order has no such file."""
    path = order.results[0].rows
    if path is not None:
        cells = shown_cells(path, json.loads(order.request))
        _write(order, InspectName.CELLS, json.dumps(cells, ensure_ascii=False))


_ACTIONS: Final[dict[str, Callable[[InspectOrder], None]]] = {
    COMPARE: _compare,
    DESCRIBE: _describe,
    EXPLAIN: _explain,
    SHOW: _show,
}


def _write(order: InspectOrder, name: InspectName, text: str) -> None:
    """Write an output of the order."""
    with open_target(order.outputs[name]) as file:
        file.write(text.encode(errors="replace"))
