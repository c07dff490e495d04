"""What runs in the box: one order in, outputs and one closing word out."""

import gc
import sys
from pathlib import Path
from typing import Any, Final, TextIO

from runner.engine.job import EngineJob
from runner.engine.protocol import EngineStop, EventWriter, place_of, read_order

SAID: Final = 0  # the end was said, whatever it was
UNSAID: Final = 70


def run(order: dict[str, Any], channel: TextIO | None, *, folder: Path | None = None) -> int:
    """Carry out an order and say how it ended. Relative paths are below `folder` (default: here)."""
    voice = EventWriter(channel)
    # A box lives for one job and rows form no cycles: looking for some all the time is a tenth of the work.
    gc.set_threshold(100_000, 50, 100)
    try:
        return _run(order, voice, folder or Path.cwd())
    except Exception:  # noqa: BLE001  # the channel itself is gone; the exit code is all that is left
        return UNSAID


def _run(order: dict[str, Any], voice: EventWriter, folder: Path) -> int:
    if "verify" in order:
        from runner.engine.verifying import carry_out  # noqa: PLC0415  # a box that starts cold does one or the other

        carry_out(order, voice, folder)
        return SAID
    try:
        summary = EngineJob(read_order(order, folder), voice).run()
    except EngineStop as stop:
        voice.fail(stop.code, stop.message, stop.where)
    except MemoryError:
        remedy = "raise limits.memory_mb in the manifest, or split the file"
        voice.fail("out_of_memory", "the job needed more memory than it may use", {"remedy": remedy})
    except Exception as error:  # noqa: BLE001  # the last line: say what broke, never on which value
        voice.fail("engine_error", f"the engine broke: {type(error).__name__}", place_of(error))
    else:
        voice.succeed(summary)
    sys.stdout.flush()
    sys.stderr.flush()
    return SAID
