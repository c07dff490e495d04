"""The adapters that the contract suites run over. A new adapter names itself in one of the three tables below.

A factory gets an empty folder and a hand-moved clock and gives a Rig for as long as its context lasts.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from core.chores import Timings, wake_at
from core.jobs import Job
from core.ports import JobTable, ObjectStore, WorkQueue
from infra.clocks import HandClock
from infra.folder import FolderStore
from infra.sqlite import Database
from infra.sqlite_queue import SqliteWorkQueue
from infra.sqlite_table import SqliteJobTable

P = TypeVar("P")
TIMINGS = Timings()


@dataclass(frozen=True, kw_only=True)
class Rig(Generic[P]):
    """An adapter under test, and what the suites must know about the service behind it."""

    port: P
    clock: HandClock
    another: Callable[[], AbstractContextManager[P]]  # one more client of the same data; can be pickled
    moves_time: bool = True  # False: the server's own clock decides, so suites ask for short times and wait
    keeps_metadata: bool = True
    orders: bool = True  # a queue that serves priorities and tenants in turn, where others only lean that way

    def later(self, seconds: float) -> None:
        """Let time pass where it can be moved; elsewhere the next `receive` has to wait for it."""
        self.clock.move(seconds)


Factory = Callable[[Path, HandClock], AbstractContextManager[Rig[P]]]


def job_wake_at(job: Job) -> float | None:
    return wake_at(job, TIMINGS)


@contextmanager
def folder_store(where: Path) -> Iterator[ObjectStore]:
    with closing(FolderStore(where)) as store:
        yield store


@contextmanager
def sqlite_table(where: Path, at: float | HandClock) -> Iterator[JobTable]:
    clock = at if isinstance(at, HandClock) else HandClock(at)
    with closing(Database(where / "ade.sqlite")) as database:
        yield SqliteJobTable(database, clock, job_wake_at)


@contextmanager
def sqlite_queue(where: Path, at: float | HandClock) -> Iterator[WorkQueue]:
    clock = at if isinstance(at, HandClock) else HandClock(at)
    with closing(Database(where / "ade.sqlite")) as database, closing(SqliteWorkQueue(database, clock)) as queue:
        yield queue


@contextmanager
def _folder(where: Path, clock: HandClock) -> Iterator[Rig[ObjectStore]]:
    with folder_store(where.with_name("probe")) as probe:
        probe.put("inbox/probe/x", b"", metadata={"probe": "1"})
        found = probe.head("inbox/probe/x")
        keeps = found is not None and found.metadata == {"probe": "1"}
    with folder_store(where) as store:
        yield Rig(port=store, clock=clock, another=partial(folder_store, where), keeps_metadata=keeps)


@contextmanager
def _sqlite_table(where: Path, clock: HandClock) -> Iterator[Rig[JobTable]]:
    with sqlite_table(where, clock) as table:
        yield Rig(port=table, clock=clock, another=partial(sqlite_table, where, clock.at))


@contextmanager
def _sqlite_queue(where: Path, clock: HandClock) -> Iterator[Rig[WorkQueue]]:
    with sqlite_queue(where, clock) as queue:
        yield Rig(port=queue, clock=clock, another=partial(sqlite_queue, where, clock.at))


STORES: Mapping[str, Factory[ObjectStore]] = {"folder": _folder}
TABLES: Mapping[str, Factory[JobTable]] = {"sqlite": _sqlite_table}
QUEUES: Mapping[str, Factory[WorkQueue]] = {"sqlite": _sqlite_queue}
