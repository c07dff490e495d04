"""The console's composition root: settings, stack, log and control."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

from core.jobs import Job
from core.settings import Settings, unknown_variables
from infra.local.presence import Presence, new_owner
from infra.logs import Log
from infra.meters import SNAPSHOT
from infra.telemetry import exporting
from infra.wiring import PATIENCE_SECONDS, Stack, open_stack
from runner.engine.contract import escape_controls

if TYPE_CHECKING:
    from console.again import Act
    from runner.control import Control

RUNNING_ROLES = ("up", "runner")


def load_settings() -> Settings:
    return Settings.from_env(os.environ)


class OutageNote(Log):
    """The log of a command for people: a service that does not answer is named at once, in one line."""

    def __init__(self) -> None:
        super().__init__(level="warning")
        self._named: set[str] = set()

    def warning(self, event: str, **fields: Any) -> None:
        service = str(fields.get("service", ""))
        if event == "call_retried" and service not in self._named:
            self._named.add(service)
            name, why = service.partition("?")[0], fields.get("why")
            note = f"ade: {name} does not answer ({why}); trying for {PATIENCE_SECONDS:.0f} s"
            print(escape_controls(note), file=sys.stderr, flush=True)


@contextlib.contextmanager
def opened(
    settings: Settings | None = None, log: Log | None = None, *, role: str = "", patience: float = PATIENCE_SECONDS
) -> Iterator[Stack]:
    """The ports; with a log, retried calls are logged. `role`: of a process that stays, whose telemetry is exported."""
    settings = settings or load_settings()
    log = log or OutageNote()
    with (
        exporting(on=bool(role) and settings.telemetry, role=role) as telemetry,
        open_stack(settings, log=log, telemetry=telemetry, patience=patience) as stack,
    ):
        yield stack


@contextlib.contextmanager
def metrics_shown(stack: Stack, owner: str = "") -> Iterator[None]:
    """Show the metrics of this process while the context lasts.

    To the console of this machine, by a file in the folder of the `owner`; to Prometheus, where ADE_METRICS_LISTEN
    says so.
    """
    with contextlib.ExitStack() as shown:
        if stack.settings.metrics_listen:
            from infra.metrics_server import MetricsServer  # noqa: PLC0415 - only where there is something to serve

            server = MetricsServer(stack.settings.metrics_listen, stack.telemetry.meters)
            shown.callback(server.close)
        if owner:
            shown.callback(stack.telemetry.meters.write_to(stack.run_dir / owner / SNAPSHOT))
        yield


def make_log(settings: Settings, *, stream: TextIO | None = None, level: str | None = None) -> Log:
    log = Log(level=level or settings.log_level, stream=stream)
    for variable in unknown_variables(os.environ):
        log.warning(
            "unknown_variable", variable=variable, remedy="check its spelling against docs/reference/settings.md"
        )
    return log


def make_control(stack: Stack) -> "Control":
    from runner.control import Control  # noqa: PLC0415 - a third of the start of a command that only shows something

    return Control(stack.store, stack.table, stack.queue, stack.clock)


def again(stack: Stack, act: "Act") -> Callable[[str], Job]:
    """What runs a job again, by its id."""
    from console.again import run_again  # noqa: PLC0415 - as above
    from handlers.intake import Intake  # noqa: PLC0415 - as above

    return partial(run_again, Intake.over(stack), make_control(stack), act)


def runners(stack: Stack) -> dict[str, str]:
    """The runner processes of this machine, each with the reason why it takes no jobs, or an empty text."""
    presence = Presence(stack.run_dir, new_owner("console"))
    try:
        return {owner: presence.note(owner) for role in RUNNING_ROLES for owner in presence.others(role)}
    finally:
        presence.close()
