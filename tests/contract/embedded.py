"""Clients of the embedded adapters. A process of its own opens them too, so nothing here imports more than it needs."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from core.chores import Timings, wake_at
from core.jobs import Job
from core.ports import Clock, JobTable, ObjectStore, WorkQueue
from infra.clocks import HandClock
from infra.local.folder import FolderStore
from infra.local.sqlite import Database
from infra.local.sqlite_queue import SqliteWorkQueue
from infra.local.sqlite_table import SqliteJobTable

_TIMINGS = Timings()


def job_wake_at(job: Job) -> float | None:
    return wake_at(job, _TIMINGS)


@contextmanager
def folder_store(where: Path) -> Iterator[ObjectStore]:
    with closing(FolderStore(where)) as store:
        yield store


@contextmanager
def sqlite_table(where: Path, at: float | Clock) -> Iterator[JobTable]:
    clock = HandClock(at) if isinstance(at, float) else at
    with closing(Database(where / "ade.sqlite")) as database:
        yield SqliteJobTable(database, clock, job_wake_at)


@contextmanager
def sqlite_queue(where: Path, at: float | Clock) -> Iterator[WorkQueue]:
    clock = HandClock(at) if isinstance(at, float) else at
    with closing(Database(where / "ade.sqlite")) as database, closing(SqliteWorkQueue(database, clock)) as queue:
        yield queue
