"""How `ade up` hears of drops: a watched folder, a queue of bucket events, a webhook. Each runs until it is stopped."""

import contextlib
import threading
from collections.abc import Callable
from typing import Protocol

from console.commands.sweep import report_dict
from core.errors import AdeError
from handlers.arrivals import Arrivals
from handlers.intake import Intake, Report
from handlers.poller import Poller
from handlers.webhook import Webhook
from infra.addresses import parse_address
from infra.folder import FolderStore
from infra.logs import Log
from infra.watch import FolderWatch
from infra.wiring import Stack

_QUIET_SECONDS = 3600.0
_ERROR_PAUSE_SECONDS = 1.0


class Source(Protocol):
    def run(self) -> None: ...

    def stop(self) -> None: ...


def make_sources(stack: Stack, log: Log, opened: contextlib.ExitStack) -> dict[str, Source]:
    """All that `ade up` listens to; the watcher also does the sweep at the start, whatever the bucket is."""
    return {"watch": Watcher(stack, log), **event_sources(stack, log, opened)}


def event_sources(stack: Stack, log: Log, opened: contextlib.ExitStack) -> dict[str, Source]:
    """Where events of a bucket that is no folder come from, as the settings say."""
    settings = stack.settings
    sources: dict[str, Source] = {}
    if settings.store_url and settings.events_url:
        from infra.sqs_events import EventsQueue  # noqa: PLC0415 - boto3 takes a moment that the folder need not wait

        events = opened.enter_context(contextlib.closing(EventsQueue(parse_address(settings.events_url))))
        sources["events"] = Poller(events, _arrivals(stack, log), log)
    if settings.store_url and settings.webhook_token:
        sources["webhook"] = Served(
            Webhook(settings.webhook_listen, settings.webhook_token, _arrivals(stack, log), log)
        )
    return sources


def _arrivals(stack: Stack, log: Log) -> Arrivals:
    bucket = parse_address(stack.settings.store_url).name
    return Arrivals(Intake.over(stack), bucket, on_report=lambda report: log_report(log, report))


class Served:
    """A webhook as a source."""

    def __init__(self, webhook: Webhook) -> None:
        self._webhook = webhook
        self._begun = False

    def run(self) -> None:
        self._begun = True
        self._webhook.serve()

    def stop(self) -> None:
        if self._begun:  # a server that never served would be waited for without end
            self._webhook.stop()


class Watcher:
    """Turns changes of a folder bucket into jobs as they come."""

    def __init__(self, stack: Stack, log: Log) -> None:
        self._intake = Intake.over(stack)
        self._log = log
        # Watching starts before the first sweep, so that nothing falls between the two.
        self._watch = FolderWatch(stack.store) if isinstance(stack.store, FolderStore) else None
        self._stopped = threading.Event()

    def run(self) -> None:
        self._look(self._intake.sweep)
        if self._watch is None:
            return
        for batch in self._watch.batches(_QUIET_SECONDS):
            keys = [key for key in batch if key is not None]
            if len(keys) < len(batch):
                self._look(self._intake.sweep)
            elif keys:
                self._look(lambda: self._intake.changed(keys))  # noqa: B023 - called before the loop goes on
        self._watch.close()

    def stop(self) -> None:
        self._stopped.set()
        if self._watch is not None:
            self._watch.stop()

    def _look(self, look: Callable[[], Report]) -> None:
        """A look that fails is repeated as a sweep: the events that led to it are used up."""
        while not self._stopped.is_set():
            try:
                report = look()
            except (AdeError, OSError) as error:
                self._log.error("intake_failed", error=f"{type(error).__name__}: {error}")
                self._stopped.wait(_ERROR_PAUSE_SECONDS)
                look = self._intake.sweep
                continue
            log_report(self._log, report)
            return


def log_report(log: Log, report: Report) -> None:
    """Log what a look at the bucket changed; nothing where it changed nothing."""
    told = {name: found for name, found in report_dict(report).items() if found and name != "met"}
    if told:
        log.info("drops_recorded", **told)
