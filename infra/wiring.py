"""The composition root of the ports: settings in, adapters out. Nothing else builds an adapter."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from core.chores import wake_at
from core.errors import StoreUnavailable
from core.jobs import Job
from core.ports import Clock, JobTable, ObjectStore, WorkQueue
from core.settings import Settings
from infra.clocks import SystemClock
from infra.folder import FolderStore
from infra.sqlite import Database
from infra.sqlite_queue import SqliteWorkQueue
from infra.sqlite_table import SqliteJobTable


@dataclass(frozen=True, slots=True)
class Stack:
    """The ports that a process works with."""

    settings: Settings
    clock: Clock
    store: ObjectStore
    table: JobTable
    queue: WorkQueue

    @property
    def run_dir(self) -> Path:
        """Locks and scratch folders of this machine's processes."""
        return self.settings.storage_data_dir.absolute() / "run"


@contextlib.contextmanager
def open_stack(settings: Settings, clock: Clock | None = None) -> Iterator[Stack]:
    """The embedded stack: a folder as bucket, one SQLite file as table and queue."""
    clock = clock or SystemClock()
    timings = settings.timings

    def wake(job: Job) -> float | None:
        return wake_at(job, timings)

    try:
        store = FolderStore(settings.storage_data_dir)
        database = Database(settings.storage_data_dir.absolute() / "ade.sqlite")
    except OSError as error:
        raise StoreUnavailable(
            f"data folder {settings.storage_data_dir} cannot be used: {error.strerror}; "
            "make it writable or set ADE_STORAGE_DATA_DIR to another folder"
        ) from error
    queue = SqliteWorkQueue(database, clock)
    try:
        yield Stack(settings, clock, store, SqliteJobTable(database, clock, wake), queue)
    finally:
        queue.close()
        database.close()
        store.close()
