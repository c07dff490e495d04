"""The parts that only some commands need: an intake, and boxes."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from core.settings import Settings
from handlers.intake import Intake
from infra.wiring import Stack
from runner.attempt import Boxes
from runner.sandbox.drivers import make_layers, make_sandbox


def make_intake(stack: Stack) -> Intake:
    return Intake.over(stack)


@contextlib.contextmanager
def boxes(settings: Settings, run_dir: Path) -> Iterator[Boxes]:
    """The sandbox that the settings name and its layers, closed at the end."""
    name, level = settings.sandbox, settings.sandbox_min_level
    sandbox = make_sandbox(name, min_level=level, run_dir=run_dir)
    layers = make_layers(
        name, min_level=level, run_dir=run_dir, cache=run_dir.parent / "layers", wheelhouse=settings.wheelhouse
    )
    try:
        yield Boxes(sandbox, layers)
    finally:
        layers.close()
        sandbox.close()
