"""The console's composition root: settings, stack, sandbox, intake and log for the commands."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from core.errors import SettingsError
from core.ports import Sandbox
from core.settings import Settings, unknown_variables
from handlers.intake import Intake
from infra.logs import Log
from infra.presence import Presence, new_owner
from infra.wiring import Stack, open_stack
from runner.control import Control
from runner.sandbox.drivers import make_sandbox

RUNNING_ROLES = ("up", "runner")


def load_settings() -> Settings:
    return Settings.from_env(os.environ)


@contextlib.contextmanager
def opened(settings: Settings | None = None) -> Iterator[Stack]:
    with open_stack(settings or load_settings()) as stack:
        yield stack


def make_log(settings: Settings, *, stream: TextIO | None = None, level: str | None = None) -> Log:
    log = Log(level=level or settings.log_level, stream=stream)
    for variable in unknown_variables(os.environ):
        log.warning("unknown_variable", variable=variable, remedy="check its spelling against docs/settings.md")
    return log


def make_intake(stack: Stack) -> Intake:
    """One per thread: it remembers parsed manifests without a lock."""
    return Intake(stack.store, stack.table, stack.queue, stack.clock, settle_seconds=stack.settings.settle_seconds)


def make_control(stack: Stack) -> Control:
    return Control(stack.store, stack.table, stack.queue, stack.clock)


@contextlib.contextmanager
def boxes(settings: Settings, run_dir: Path) -> Iterator[Sandbox]:
    """The sandbox that the settings name. A build without the jail falls back to `process`, and says so:
    its level is weaker, so configs with Python in them are refused unless the operator allows that level."""
    try:
        sandbox = make_sandbox(settings.sandbox, min_level=settings.sandbox_min_level, run_dir=run_dir)
    except SettingsError:
        if settings.sandbox != "jail":
            raise
        print("ade: this build has no jail; jobs run with the process driver", file=sys.stderr)
        sandbox = make_sandbox("process", min_level=settings.sandbox_min_level, run_dir=run_dir)
    try:
        yield sandbox
    finally:
        sandbox.close()


def runners(stack: Stack) -> list[str]:
    """Processes of this machine that work on jobs now."""
    presence = Presence(stack.run_dir, new_owner("console"))
    try:
        return [owner for role in RUNNING_ROLES for owner in presence.others(role)]
    finally:
        presence.close()
