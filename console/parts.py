"""The parts that only some commands need: an intake, and boxes."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from core.ports import Sandbox
from core.settings import Settings
from handlers.intake import Intake
from infra.wiring import Stack
from runner.sandbox.drivers import make_sandbox


def make_intake(stack: Stack) -> Intake:
    """One per thread: it remembers parsed manifests without a lock."""
    return Intake(stack.store, stack.table, stack.queue, stack.clock, settle_seconds=stack.settings.settle_seconds)


@contextlib.contextmanager
def boxes(settings: Settings, run_dir: Path) -> Iterator[Sandbox]:
    """The sandbox that the settings name, closed at the end."""
    sandbox = make_sandbox(settings.sandbox, min_level=settings.sandbox_min_level, run_dir=run_dir)
    try:
        yield sandbox
    finally:
        sandbox.close()
