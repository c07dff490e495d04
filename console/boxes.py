"""The boxes that a command runs jobs in. Loads nothing of the stores, which `ade try` does without."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from core.settings import Settings
from runner.attempt import Boxes
from runner.sandbox.drivers import make_layers, make_sandbox


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
