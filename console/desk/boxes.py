"""The boxes that a command runs jobs in. Does not import the stores, which `ade try` does not need."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from core.errors import SandboxUnavailable
from core.settings import Settings
from runner.attempt import Boxes
from runner.sandbox.drivers import make_layers, make_sandbox, require
from runner.sandbox.session import Engine


@contextlib.contextmanager
def boxes(settings: Settings, run_dir: Path, *, rehearses: bool = True) -> Iterator[Boxes]:
    """The sandbox that the settings name and its layers, closed at the end.

    `rehearses`: warm the engine up for many boxes; a command that needs one or two is done sooner without.
    """
    name, level = settings.sandbox, settings.sandbox_min_level
    sandbox = make_sandbox(name, min_level=level, run_dir=run_dir, engine=Engine(rehearses=rehearses))
    layers = make_layers(
        name, min_level=level, run_dir=run_dir, cache=run_dir.parent / "layers", wheelhouse=settings.wheelhouse
    )
    try:
        yield Boxes(sandbox, layers)
    finally:
        layers.close()
        sandbox.close()


def require_asked_level(settings: Settings, boxes: Boxes) -> None:
    """Raise SandboxUnavailable if an operator set a level explicitly and this host cannot give it.

    A runner that started anyway would use up the attempts of its jobs. The default level is not checked at the start:
    jobs without Python in their config run at every level.
    """
    if not os.environ.get("ADE_SANDBOX_MIN_LEVEL", "").strip():
        return
    try:
        require(boxes.sandbox.isolation(), settings.sandbox_min_level)
    except SandboxUnavailable as error:
        raise SandboxUnavailable(f"this runner does not start: {error}") from None
