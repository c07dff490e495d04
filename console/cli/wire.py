"""The console's composition root: settings, stack, log and control."""

import contextlib
import os
from collections.abc import Iterator
from typing import TextIO

from core.settings import Settings, unknown_variables
from infra.local.presence import Presence, new_owner
from infra.logs import Log
from infra.wiring import Stack, open_stack
from runner.control import Control

RUNNING_ROLES = ("up", "runner")


def load_settings() -> Settings:
    return Settings.from_env(os.environ)


@contextlib.contextmanager
def opened(settings: Settings | None = None, log: Log | None = None) -> Iterator[Stack]:
    """The ports; with a log, retried calls are logged."""
    with open_stack(settings or load_settings(), log=log) as stack:
        yield stack


def make_log(settings: Settings, *, stream: TextIO | None = None, level: str | None = None) -> Log:
    log = Log(level=level or settings.log_level, stream=stream)
    for variable in unknown_variables(os.environ):
        log.warning("unknown_variable", variable=variable, remedy="check its spelling against docs/settings.md")
    return log


def make_control(stack: Stack) -> Control:
    return Control(stack.store, stack.table, stack.queue, stack.clock)


def runners(stack: Stack) -> dict[str, str]:
    """The runner processes of this machine, each with the reason why it takes no jobs, or an empty text."""
    presence = Presence(stack.run_dir, new_owner("console"))
    try:
        return {owner: presence.note(owner) for role in RUNNING_ROLES for owner in presence.others(role)}
    finally:
        presence.close()
