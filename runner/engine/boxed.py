"""Entry point inside the box: takes one order, writes its outputs and a final event."""

import gc
import sys
from pathlib import Path
from typing import Any, Final, TextIO

from runner.engine.job import EngineJob
from runner.engine.protocol import EXPLAINED, EngineStop, EventWriter, place_of, read_order

SAID: Final = 0  # the final event was written, whatever it says
UNSAID: Final = 70
Problem = tuple[str, str, dict[str, str | int]]  # code, message, where


def run(order: dict[str, Any], channel: TextIO | None, *, folder: Path | None = None) -> int:
    """Carry out an order and write its final event. Relative paths are below `folder` (default: here)."""
    # A box lives for one job and rows form no cycles; garbage collection would take a tenth of the time.
    gc.set_threshold(100_000, 50, 100)
    try:
        return _run(order, channel, folder or Path.cwd())
    except Exception:  # noqa: BLE001  # the channel itself is gone; the exit code is all that is left
        return UNSAID


def _run(order: dict[str, Any], channel: TextIO | None, folder: Path) -> int:
    voice = EventWriter(channel)
    if "verify" in order:
        _verify(order, voice, folder)
        return SAID
    summary, problem = _work(order, voice, folder)
    asked = order.get("verification")
    code = None if problem is None else problem[0]
    if asked is not None and (code is None or code in EXPLAINED):
        ended = {"audit": code is not None, "review": code == "needs_review"}
        asked = {**asked, "verify": {**asked["verify"], **ended}}
        _verify(asked, EventWriter(channel, last="verified"), folder)
    if problem is None:
        voice.succeed(summary)
    else:
        voice.fail(*problem)
    sys.stdout.flush()
    sys.stderr.flush()
    return SAID


def _work(order: dict[str, Any], voice: EventWriter, folder: Path) -> tuple[dict[str, Any], Problem | None]:
    """Write the outputs; returns the summary, or the problem."""
    try:
        return EngineJob(read_order(order, folder), voice).run(), None
    except EngineStop as stop:
        return {}, (stop.code, stop.message, stop.where)
    except MemoryError:
        remedy = "raise limits.memory_mb in the manifest, or split the file"
        return {}, ("out_of_memory", "the job exceeded its memory limit", {"remedy": remedy})
    except Exception as error:  # noqa: BLE001  # the last line: say what broke, never on which value
        return {}, ("engine_error", f"the engine failed: {type(error).__name__}", place_of(error))


def _verify(order: dict[str, Any], voice: EventWriter, folder: Path) -> None:
    from runner.engine.verifying import carry_out  # noqa: PLC0415  # a box that starts cold may do without

    carry_out(order, voice, folder)
