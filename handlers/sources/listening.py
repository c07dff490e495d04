"""All that a process listens to, as its settings say: the folder watch, the events queue, the webhook.

Comes in: changes of the bucket. Goes out: calls of the intake, and a log of what it recorded.
"""

import contextlib
import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from core.errors import AdeError
from handlers.arrivals import Arrivals
from handlers.intake import Intake, Report, report_dict
from handlers.sources.event_queue import Poller
from handlers.sources.webhook import Webhook
from infra.addresses import parse_address
from infra.local.folder import FolderStore
from infra.local.folder_watch import FolderWatch
from infra.local.presence import Pulse, alive_file
from infra.logs import Log
from infra.wiring import Stack

_QUIET_SECONDS = 3600.0
_TENANTS_AT_ONCE = 4
_EVERYTHING = ""
_ERROR_PAUSE_SECONDS = 1.0
_LINES = 20
_REMEMBERED = 10_000


class EventSource(Protocol):
    def run(self) -> None: ...

    def stop(self) -> None: ...


def make_sources(stack: Stack, log: Log, opened: contextlib.ExitStack) -> dict[str, EventSource]:
    """All that `ade up` listens to; the watcher also does the sweep at the start, whatever the bucket is."""
    return {"watch": Watcher(stack, log), **event_sources(stack, log, opened)}


def event_sources(stack: Stack, log: Log, opened: contextlib.ExitStack) -> dict[str, EventSource]:
    """Where events of a bucket that is no folder come from, as the settings say."""
    settings = stack.settings
    sources: dict[str, EventSource] = {}
    if settings.store_url and settings.events_url:
        from infra.aws.sqs_events import EventsQueue  # noqa: PLC0415 - boto3 takes a moment that the folder need not wait

        events = opened.enter_context(contextlib.closing(EventsQueue(parse_address(settings.events_url))))
        pulse = Pulse(alive_file(stack.run_dir, "listener"))
        sources["events"] = Poller(events, _arrivals(stack, log), log, pulse=pulse.beat)
    if settings.store_url and settings.webhook_token:
        sources["webhook"] = Served(
            Webhook(settings.webhook_listen, settings.webhook_token, _arrivals(stack, log), log)
        )
    return sources


def _arrivals(stack: Stack, log: Log) -> Arrivals:
    bucket = parse_address(stack.settings.store_url).name
    return Arrivals(Intake.over(stack), bucket, on_report=ReportLog(log))


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
    """Turns changes of a folder bucket into jobs as they come.

    Each tenant's changes are looked at in their order, and several tenants' side by side: nobody's drop waits for the
    ten thousand files of another. What comes while a tenant's look is under way is the next one's.
    """

    def __init__(self, stack: Stack, log: Log) -> None:
        self._intake = Intake.over(stack)
        self._log = log
        self._tell = ReportLog(log)
        # Watching starts before the first sweep, so that nothing falls between the two.
        self._watch = FolderWatch(stack.store) if isinstance(stack.store, FolderStore) else None
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._waiting: dict[str, set[str]] = {}
        self._under_way: set[str] = set()

    def run(self) -> None:
        with ThreadPoolExecutor(_TENANTS_AT_ONCE, thread_name_prefix="intake") as pool:
            self._take({None}, pool)
            if self._watch is None:
                return
            for batch in self._watch.batches(_QUIET_SECONDS):
                self._take(batch, pool)
        self._watch.close()

    def _take(self, batch: Iterable[str | None], pool: ThreadPoolExecutor) -> None:
        with self._lock:
            for key in batch:
                self._waiting.setdefault(_EVERYTHING if key is None else _tenant(key), set()).add(key or "")
            for whose in self._waiting.keys() - self._under_way:
                self._under_way.add(whose)
                pool.submit(self._work_off, whose)

    def _work_off(self, whose: str) -> None:
        """Look at all that came for one tenant, until nothing more has."""
        while True:
            with self._lock:
                keys = self._waiting.pop(whose, None)
                if keys is None:
                    self._under_way.discard(whose)
                    return
            self._look(self._intake.sweep if whose == _EVERYTHING else functools.partial(self._intake.changed, keys))

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
            except Exception as error:  # noqa: BLE001 - a drop that breaks the look must not end the service
                # Nothing that trying again at once would mend; the janitor's sweep comes by in any case.
                self._log.error("intake_failed", error=f"{type(error).__name__}: {error}")
                return
            self._tell(report)
            return


def _tenant(key: str) -> str:
    """The folder below inbox/ or configs/ that a key lies in."""
    return key.partition("/")[2].partition("/")[0] or key


class ReportLog:
    """Logs what looks at the bucket changed; what is refused or failed is told once, not at every sweep."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._told: OrderedDict[str, None] = OrderedDict()

    def __call__(self, report: Report) -> None:
        told = report_dict(report) | {"met": [], "failed": []}
        for name in ("rejected", "refused"):
            told[name] = self._fresh(told[name])
        if any(told.values()):
            self._log.info("drops_recorded", **{name: found for name, found in told.items() if found})
        for line in self._fresh(report.failed):
            self._log.warning("drop_set_aside", what=line)

    def _fresh(self, lines: list[str]) -> list[str]:
        """Those that were not told yet, not too many of them: `ade sweep` lists them all."""
        with self._lock:
            fresh = [line for line in lines if line not in self._told]
            self._told |= dict.fromkeys(fresh)
            while len(self._told) > _REMEMBERED:
                self._told.popitem(last=False)
        more = [f"and {len(fresh) - _LINES} more; `ade sweep` lists them"] if len(fresh) > _LINES else []
        return fresh[:_LINES] + more
