"""The composition root of the ports. In: settings. Out: adapters. Nothing else builds an adapter."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from core.chores import wake_at
from core.errors import StoreUnavailable
from core.jobs import Job, job_codec
from core.ports import Clock, Hasty, JobTable, Marks, ObjectStore, WorkQueue
from core.settings import Settings
from infra.addresses import Address, is_postgres, parse_address
from infra.clocks import SystemClock
from infra.local.disk import RESTORING, make_private_folder
from infra.local.folder import FolderStore
from infra.local.sqlite import Database
from infra.local.sqlite_queue import SqliteWorkQueue
from infra.local.sqlite_table import SqliteJobTable
from infra.logs import Log
from infra.marks import ProcessMarks
from infra.telemetry import Telemetry

if TYPE_CHECKING:
    from infra.aws.calls import Caller
    from infra.postgres.connections import Connections
    from infra.postgres.listening import PostgresBells

PATIENCE_SECONDS = 30.0
_LEAST_CALL_SECONDS = 2.0  # a healthy service needs up to this

Calls = Callable[[Address], "Caller"]
Ports = tuple[JobTable, WorkQueue]
H = TypeVar("H", bound=Hasty)


class CalledService(Protocol):
    """What makes the calls to a service, as far as others need to know."""

    service: str
    ahead: float | None  # by how much our clock is ahead of the service's


@dataclass(frozen=True, slots=True)
class Stack:
    """The ports of one process."""

    settings: Settings
    clock: Clock
    store: ObjectStore
    table: JobTable
    queue: WorkQueue
    callers: tuple[CalledService, ...] = ()  # make the calls to cloud services
    renewing: Callable[[], Ports] | None = None  # table and queue, with calls that end well within a lease
    telemetry: Telemetry = field(default_factory=Telemetry)
    marks: Marks | None = None  # None: every sweep plans everything

    def for_leases(self) -> Ports:
        """Table and queue for heartbeats: a call that hangs must not use up a lease."""
        return self.renewing() if self.renewing is not None else (self.table, self.queue)

    @property
    def run_dir(self) -> Path:
        """The locks and scratch folders of this machine's processes."""
        return self.settings.storage_data_dir.absolute() / "run"


@contextlib.contextmanager
def open_stack(
    settings: Settings,
    clock: Clock | None = None,
    log: Log | None = None,
    *,
    patience: float = PATIENCE_SECONDS,
    telemetry: Telemetry | None = None,
) -> Iterator[Stack]:
    """The ports that the settings name: a folder and one SQLite file, or cloud services, or a mix of both.

    `patience`: for how many seconds a call is retried while its service does not answer.
    """
    refuse_unfinished(settings.storage_data_dir)
    simulated, clock = clock, clock or SystemClock()
    timings = settings.timings

    def wake(job: Job) -> float | None:
        return wake_at(job, timings)

    callers: list[CalledService] = []
    links: dict[str, tuple[Connections, PostgresBells]] = {}

    def call(address: Address) -> "Caller":
        caller = _caller(address, log=log, patience=patience)
        callers.append(caller)
        return caller

    def link(url: str) -> tuple["Connections", "PostgresBells"]:
        """One pool and one listener for all ports of a database."""
        if url not in links:
            links[url] = _postgres(url, log=log, patience=patience, opened=opened)
            callers.append(links[url][0])
        return links[url]

    with contextlib.ExitStack() as opened:
        store = _store(settings, call, opened)
        if is_postgres(settings.table_url):
            table = _postgres_table(link(settings.table_url), wake, simulated)
        else:
            table = _table(settings, clock, wake, call, opened)
        if is_postgres(settings.queue_url):
            queue = _postgres_queue(link(settings.queue_url), simulated)
        else:
            queue = _queue(settings, clock, call, opened)

        def renewing() -> Ports:
            return _renewing(settings, clock, wake, opened, (table, queue))

        marks = table if isinstance(table, SqliteJobTable) else ProcessMarks(table, clock)
        yield Stack(settings, clock, store, table, queue, tuple(callers), renewing, telemetry or Telemetry(), marks)


def refuse_unfinished(data_dir: Path) -> None:
    """A restore that was broken off left part of a bucket: whoever worked on that would lose the rest."""
    if (data_dir / RESTORING).exists():
        raise StoreUnavailable(f"a restore into {data_dir} is not finished; run the same `ade restore` again")


def load_adapters(settings: Settings) -> None:
    """Import what `open_stack` would, and open nothing: for a process that forks others which then open their own."""
    job_codec()
    if settings.store_url:
        import infra.aws.s3  # noqa: PLC0415 - as below
    if is_postgres(settings.table_url) or is_postgres(settings.queue_url):
        import infra.postgres.connections  # noqa: PLC0415 - as below
        import infra.postgres.listening  # noqa: PLC0415 - as below
        import infra.postgres.pg_queue  # noqa: PLC0415 - as below
        import infra.postgres.pg_table  # noqa: PLC0415 - as below
    if settings.table_url and not is_postgres(settings.table_url):
        import infra.aws.dynamodb  # noqa: PLC0415 - as below
    if settings.queue_url and not is_postgres(settings.queue_url):
        import infra.aws.sqs  # noqa: F401, PLC0415 - as below


@contextlib.contextmanager
def open_table_of(folder: Path, settings: Settings) -> Iterator[JobTable]:
    """The table of a copy of a data folder, which no process uses."""
    timings = settings.timings
    with contextlib.closing(Database(folder / "ade.sqlite")) as database:
        yield SqliteJobTable(database, SystemClock(), lambda job: wake_at(job, timings))


def _store(settings: Settings, call: Calls, opened: contextlib.ExitStack) -> ObjectStore:
    if settings.store_url:
        from infra.aws.s3 import S3Store  # noqa: PLC0415 - boto3 is slow to import, and the embedded mode does not need it

        address = parse_address(settings.store_url)
        return opened.enter_context(contextlib.closing(S3Store(address, caller=call(address))))
    with _data_folder(settings):
        largest = settings.worker_fsize_mb * 1024 * 1024
        store = FolderStore(settings.storage_data_dir, largest=largest)
        make_private_folder(settings.storage_data_dir.absolute() / "run")
        return opened.enter_context(contextlib.closing(store))


def _table(
    settings: Settings,
    clock: Clock,
    wake: Callable[[Job], float | None],
    call: Calls,
    opened: contextlib.ExitStack,
) -> JobTable:
    if settings.table_url:
        from infra.aws.dynamodb import DynamoJobTable  # noqa: PLC0415 - as above

        address = parse_address(settings.table_url)
        table = DynamoJobTable(address, clock, wake, caller=call(address))
        return opened.enter_context(contextlib.closing(table))
    return SqliteJobTable(_database(settings, opened), clock, wake)


def _queue(settings: Settings, clock: Clock, call: Calls, opened: contextlib.ExitStack) -> WorkQueue:
    if settings.queue_url:
        from infra.aws.sqs import SqsWorkQueue  # noqa: PLC0415 - as above

        address = parse_address(settings.queue_url)
        return opened.enter_context(contextlib.closing(SqsWorkQueue(address, clock, caller=call(address))))
    return opened.enter_context(contextlib.closing(SqliteWorkQueue(_database(settings, opened), clock)))


def _postgres(
    url: str, *, log: Log | None, patience: float, opened: contextlib.ExitStack
) -> tuple["Connections", "PostgresBells"]:
    from infra.postgres.connections import Connections, parse_database  # noqa: PLC0415 - as above
    from infra.postgres.listening import PostgresBells  # noqa: PLC0415 - as above

    database = parse_database(url)

    def report(what: str, why: str) -> None:
        if log is not None:
            log.warning("call_retried", service=str(database), call=what, why=why)

    def note(text: str) -> None:
        if log is not None:
            log.warning("postgres_note", note=text)

    connections = opened.enter_context(
        contextlib.closing(Connections(database, deadline=patience, on_retry=report, on_note=note))
    )
    return connections, opened.enter_context(contextlib.closing(PostgresBells(connections)))


def _postgres_table(
    link: tuple["Connections", "PostgresBells"], wake: Callable[[Job], float | None], clock: Clock | None
) -> JobTable:
    from infra.postgres.pg_table import PostgresJobTable  # noqa: PLC0415 - as above

    return PostgresJobTable(*link, wake, clock=clock)


def _postgres_queue(link: tuple["Connections", "PostgresBells"], clock: Clock | None) -> WorkQueue:
    from infra.postgres.pg_queue import PostgresWorkQueue  # noqa: PLC0415 - as above

    return PostgresWorkQueue(*link, clock=clock)


def _renewing(
    settings: Settings, clock: Clock, wake: Callable[[Job], float | None], opened: contextlib.ExitStack, ports: Ports
) -> Ports:
    """A beat is at most two calls unless another process writes the row, so each call gets a sixth of the lease."""
    seconds = max(settings.lease_seconds / 6, _LEAST_CALL_SECONDS)
    table, queue = ports
    renewed_table: JobTable | None = _within(table, seconds, opened) if isinstance(table, Hasty) else None
    renewed_queue: WorkQueue | None = _within(queue, seconds, opened) if isinstance(queue, Hasty) else None
    if renewed_table is not None and renewed_queue is not None:
        return renewed_table, renewed_queue
    database = _database(settings, opened, busy_seconds=seconds)
    return renewed_table or SqliteJobTable(database, clock, wake), renewed_queue or SqliteWorkQueue(database, clock)


def _within(port: H, seconds: float, opened: contextlib.ExitStack) -> H:
    """A cloud adapter with calls that end in time."""
    return opened.enter_context(contextlib.closing(port.within(seconds)))


def _database(settings: Settings, opened: contextlib.ExitStack, *, busy_seconds: float = 30.0) -> Database:
    with _data_folder(settings):
        database = Database(settings.storage_data_dir.absolute() / "ade.sqlite", busy_seconds=busy_seconds)
        return opened.enter_context(contextlib.closing(database))


def _caller(address: Address, *, log: Log | None, patience: float) -> "Caller":
    from infra.aws.calls import Caller  # noqa: PLC0415 - as above

    def report(what: str, why: str) -> None:
        if log is not None:
            log.warning("call_retried", service=str(address), call=what, why=why)

    return Caller(str(address), deadline=patience, on_retry=report)


@contextlib.contextmanager
def _data_folder(settings: Settings) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(
            f"data folder {settings.storage_data_dir} cannot be used: {error.strerror}; "
            "make it writable or set ADE_STORAGE_DATA_DIR to another folder"
        ) from error
