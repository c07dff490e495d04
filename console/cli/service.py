"""Watch, fleet and janitor of one process, each in its own thread, stopped together.

The first Ctrl-C or SIGTERM drains, the second ends at once. The signal handler only sets a flag. A drain that takes
much longer than it may, because a service hangs, ends as by a second signal.
"""

import contextlib
import gc
import shutil
import threading
from collections.abc import Callable, Iterator

from console.cli.wire import metrics_shown
from console.desk.boxes import boxes, require_asked_level
from handlers.intake import Intake
from handlers.sources.listening import ReportLog, make_sources
from infra.logs import Log
from infra.wiring import Stack
from runner.assembly import Runner, assemble
from runner.attempt import Boxes
from runner.janitor import CHORES_SECONDS


class Service:
    """The service behind `ade up`, `ade demo` and `ade run`."""

    def __init__(self, stack: Stack, boxes: Boxes, log: Log, *, role: str, everything: bool) -> None:
        self._log = log
        self._log_report = ReportLog(log)
        self._grace_seconds = stack.settings.drain_seconds
        self._sweeper: Intake | None = Intake.over(stack) if everything else None
        self.runner: Runner = assemble(stack, boxes, log, role=role, sweep=self._sweep if everything else None)
        self._scratch = stack.run_dir / self.runner.presence.owner
        self._opened = contextlib.ExitStack()
        self._sources = make_sources(stack, log, self._opened) if everything else {}
        self._scheduler = self.runner.janitor.scheduler() if everything else None
        if everything:
            stack.telemetry.watch(self.runner.janitor.gauges)
        self._threads: list[threading.Thread] = []
        self.failed: BaseException | None = None

    def start(self, *, drain: Callable[[], bool] | None = None, on_end: Callable[[], None] = lambda: None) -> None:
        """Start. `on_end` is called when the fleet has ended, or when a part failed and all must end."""
        gc.freeze()  # what a start makes stays: no collection visits it again
        log_chores(self._log, self.runner)
        if self._scheduler is not None:
            self._scheduler.start()
        for name, source in self._sources.items():
            self._spawn(name, source.run, on_end)

        def work() -> None:
            self.runner.fleet.run(drain=drain, grace_seconds=self._grace_seconds)
            on_end()

        self._spawn("fleet", work, on_end)

    def stop(self) -> None:
        """Start no more jobs; running ones may end. A second call does nothing."""
        for source in self._sources.values():
            source.stop()
        if self._sweeper is not None:
            self._sweeper.stop()
        self.runner.fleet.stop()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()
        if self._scheduler is not None and self._scheduler.running:
            self._scheduler.shutdown(wait=True)
        self._opened.close()
        shutil.rmtree(self._scratch, ignore_errors=True)
        self.runner.close()

    def _spawn(self, name: str, target: Callable[[], None], on_end: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                target()
            except BaseException as error:  # noqa: BLE001 - a failed part must not leave a half-dead service
                self.failed = error
                self._log.error("service_failed", part=name, error=f"{type(error).__name__}: {error}")
                on_end()

        thread = threading.Thread(target=guarded, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _sweep(self) -> None:
        if self._sweeper is not None:
            self._log_report(self._sweeper.sweep())


def log_chores(log: Log, runner: Runner, *, notices: bool = False) -> None:
    """Do the urgent chores once, even without a janitor: those that dead processes of this machine left.

    For no longer than a round of the janitor: expired jobs can wait. Notices and loads only where somebody waits for
    them: their receivers may be slow.
    """
    done = {name: n for name, n in runner.janitor.urgent(CHORES_SECONDS, notices=notices).items() if n}
    if done:
        log.info("chores_done", **done)


@contextlib.contextmanager
def service(stack: Stack, log: Log, *, role: str, everything: bool) -> Iterator[Service]:
    """A service with its sandbox; drains on exit."""
    with boxes(stack.settings, stack.run_dir) as sandbox:
        require_asked_level(stack.settings, sandbox)
        made = Service(stack, sandbox, log, role=role, everything=everything)
        with metrics_shown(stack, made.runner.presence.owner):
            try:
                yield made
            finally:
                made.stop()
                made.join()
