"""In: the settings. Out: the sources a process runs (folder watch, events queue, webhook), each feeding the intake."""

import contextlib
import functools
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

from core.caches import BoundedCache
from core.errors import AdeError
from handlers.intake import Intake
from handlers.planning import Report, report_dict
from handlers.sources.arrivals import Arrivals
from handlers.sources.event_queue import Poller
from infra.addresses import parse_address
from infra.local.folder import FolderStore
from infra.local.folder_watch import FolderWatch
from infra.local.presence import Pulse, alive_file
from infra.logs import Log
from infra.wiring import Stack

if TYPE_CHECKING:
    from handlers.sources.webhook import Webhook

_IDLE_SECONDS = 3600.0
_TENANTS_AT_ONCE = 4
_EVERYTHING = ""
_ERROR_PAUSE_SECONDS = 1.0
_LINES = 20
_REMEMBERED = 10_000


class EventSource(Protocol):
    def run(self) -> None: ...

    def stop(self) -> None: ...


def make_sources(stack: Stack, log: Log, opened: contextlib.ExitStack) -> dict[str, EventSource]:
    """Every source of `ade up`; the watcher also sweeps at the start, whatever the bucket is."""
    return {"watch": Watcher(stack, log), **event_sources(stack, log, opened)}


def event_sources(stack: Stack, log: Log, opened: contextlib.ExitStack) -> dict[str, EventSource]:
    """The sources for a bucket in an object store, as the settings say."""
    settings = stack.settings
    sources: dict[str, EventSource] = {}
    if settings.store_url and settings.events_url:
        from infra.aws.sqs_events import EventsQueue  # noqa: PLC0415 - boto3 is slow to import, and a folder bucket does not need it

        events = opened.enter_context(contextlib.closing(EventsQueue(parse_address(settings.events_url))))
        pulse = Pulse(alive_file(stack.run_dir, "listener"))
        sources["events"] = Poller(events, _arrivals(stack, log), log, pulse=pulse.beat)
    if settings.store_url and settings.webhook_token:
        from handlers.sources.webhook import Webhook  # noqa: PLC0415 - asyncio is slow to import

        sources["webhook"] = WebhookSource(
            Webhook(settings.webhook_listen, settings.webhook_token, _arrivals(stack, log), log)
        )
    return sources


def _arrivals(stack: Stack, log: Log) -> Arrivals:
    bucket = parse_address(stack.settings.store_url).name
    return Arrivals(Intake.over(stack), bucket, on_report=ReportLog(log))


class WebhookSource:
    """Runs a webhook as a source."""

    def __init__(self, webhook: "Webhook") -> None:
        self._webhook = webhook
        self._begun = False

    def run(self) -> None:
        self._begun = True
        self._webhook.serve()

    def stop(self) -> None:
        if self._begun:  # stopping a server that never served would wait forever
            self._webhook.stop()


class Watcher:
    """Turns changes of a folder bucket into jobs as they happen.

    Each tenant's changes are scanned in order, and tenants in parallel, so no drop waits for the ten thousand files of
    another tenant. Changes that arrive during a tenant's scan go into the next one.
    """

    def __init__(self, stack: Stack, log: Log) -> None:
        self._intake = Intake.over(stack)
        self._store = stack.store
        self._log = log
        self._log_report = ReportLog(log)
        # Start watching before the first sweep, so that no change is missed in between.
        self._watch = FolderWatch(stack.store) if isinstance(stack.store, FolderStore) else None
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._waiting: dict[str, set[str]] = {}
        self._busy: set[str] = set()

    def run(self) -> None:
        with ThreadPoolExecutor(_TENANTS_AT_ONCE, thread_name_prefix="intake") as pool:
            self._scan_batch({None}, pool)
            if self._watch is None:
                return
            for batch in self._watch.batches(_IDLE_SECONDS):
                self._scan_batch(batch, pool)
        self._watch.close()

    def _scan_batch(self, batch: Iterable[str | None], pool: ThreadPoolExecutor) -> None:
        with self._lock:
            for key in batch:
                self._waiting.setdefault(_EVERYTHING if key is None else _tenant(key), set()).add(key or "")
            for tenant in self._waiting.keys() - self._busy:
                self._busy.add(tenant)
                pool.submit(self._scan_tenant, tenant)

    def _scan_tenant(self, tenant: str) -> None:
        """Scan all changes of one tenant, until no more arrive."""
        while True:
            with self._lock:
                keys = self._waiting.pop(tenant, None)
                if keys is None:
                    self._busy.discard(tenant)
                    return
            self._scan(self._intake.sweep if tenant == _EVERYTHING else functools.partial(self._intake.changed, keys))

    def stop(self) -> None:
        self._stopped.set()
        self._intake.stop()
        if isinstance(self._store, FolderStore):
            self._store.interrupt()
        if self._watch is not None:
            self._watch.stop()

    def _scan(self, scan: Callable[[], Report]) -> None:
        """Retry a failed scan as a sweep: its events are gone."""
        while not self._stopped.is_set():
            try:
                report = scan()
            except (AdeError, OSError) as error:
                self._log.error("intake_failed", error=f"{type(error).__name__}: {error}")
                self._stopped.wait(_ERROR_PAUSE_SECONDS)
                scan = self._intake.sweep
                continue
            except Exception as error:  # noqa: BLE001 - a drop that breaks the scan must not end the service
                # Retrying at once would not help; the janitor's sweep retries later.
                self._log.error("intake_failed", error=f"{type(error).__name__}: {error}")
                return
            self._log_report(report)
            return


def _tenant(key: str) -> str:
    """The folder below inbox/ or configs/ that contains a key."""
    return key.partition("/")[2].partition("/")[0] or key


class ReportLog:
    """Logs what scans changed; each refusal or failure is logged once, not at every sweep."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._logged = BoundedCache[str, None](_REMEMBERED)

    def __call__(self, report: Report) -> None:
        fields = report_dict(report) | {"met": [], "failed": []}
        for name in ("rejected", "refused"):
            fields[name] = self._fresh(fields[name])
        if any(fields.values()):
            self._log.info("drops_recorded", **{name: found for name, found in fields.items() if found})
        for line in self._fresh(report.failed):
            self._log.warning("drop_set_aside", what=line)

    def _fresh(self, lines: list[str]) -> list[str]:
        """The lines that were not logged before, up to a limit: `ade sweep` lists them all."""
        with self._lock:
            fresh = [line for line in lines if line not in self._logged]
            for line in fresh:
                self._logged.put(line, None)
        more = [f"and {len(fresh) - _LINES} more; `ade sweep` lists them"] if len(fresh) > _LINES else []
        return fresh[:_LINES] + more
