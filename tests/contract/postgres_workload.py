"""Table and queue of a PostgreSQL database, and threads that work on them while something befalls the server."""

import contextlib
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Self

from core.jobs import Job, State, move, start
from core.ports import Caps, Message
from infra.postgres.connections import Connections, parse_database
from infra.postgres.listening import PostgresBells
from infra.postgres.pg_queue import PostgresWorkQueue
from infra.postgres.pg_table import PostgresJobTable
from tests.contract.embedded import job_wake_at
from tests.contract.jobs import NOW, a_job
from tests.support.wire_cutter import WireCutter

FREE = Caps(tenant=0, workflow=0)


@dataclass
class Link:
    table: PostgresJobTable
    queue: PostgresWorkQueue
    wire: WireCutter | None
    told: list[str]


@contextlib.contextmanager
def linked(
    url: str, wire: WireCutter | None = None, *, deadline: float = 30.0, try_seconds: float = 15.0
) -> Iterator[Link]:
    told: list[str] = []
    connections = Connections(
        parse_database(url),
        deadline=deadline,
        try_seconds=try_seconds,
        on_retry=lambda what, why: told.append(f"{what}: {why}"),
    )
    with closing(connections), closing(PostgresBells(connections)) as bells:
        table = PostgresJobTable(connections, bells, job_wake_at)
        yield Link(table, PostgresWorkQueue(connections, bells), wire, told)


def starting(job: Job) -> Job:
    return start(job, owner="r1", now=NOW, lease_seconds=30)


class Workload:
    """Threads that take drops through their states by the ports alone, and remember what they were promised."""

    def __init__(self, url: str, threads: int = 3) -> None:
        self._url = url
        self.added: dict[str, int] = {}
        self.done: set[str] = set()
        self.commits: dict[str, int] = {}
        self.errors: list[BaseException] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(n,)) for n in range(threads)]

    def __enter__(self) -> Self:
        for one in self._threads:
            one.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for one in self._threads:
            one.join(120)

    def after(self, more: int, seconds: float = 60) -> None:
        """Wait until so many more jobs have ended."""
        wanted, until = len(self.done) + more, time.monotonic() + seconds
        while len(self.done) < wanted and not self.errors:
            assert time.monotonic() < until, f"{wanted - len(self.done)} jobs did not end in {seconds} s"
            time.sleep(0.02)

    def _work(self, thread: int) -> None:
        try:
            with contextlib.ExitStack() as opened:
                connections = opened.enter_context(closing(Connections(parse_database(self._url), deadline=60)))
                bells = opened.enter_context(closing(PostgresBells(connections)))
                table = PostgresJobTable(connections, bells, job_wake_at)
                queue = PostgresWorkQueue(connections, bells)
                n = 0
                while not self._stop.is_set():
                    n += 1
                    job, made = table.add(a_job(f"{thread}-{n}", tenant=f"t{thread}"))
                    assert made, "a row was there before it was added"
                    self.added[job.job_id] = job.rev
                    queue.send(Message.of(job))
                    self._one(table, queue)
        except BaseException as error:  # noqa: BLE001 - told by the test
            self.errors.append(error)

    def _one(self, table: PostgresJobTable, queue: PostgresWorkQueue) -> None:
        for delivery in queue.receive(most=1, wait=0, visibility=5):
            job = table.get(delivery.message.job_id)
            assert job is not None, f"{delivery.message.job_id} was promised and is lost"
            if job.state is State.QUEUED:
                started = table.admit(job, starting(job), FREE)
                if isinstance(started, Job):
                    # Only who holds the fence gets here: two commits of one job would be two publications.
                    ended = table.replace(started, move(started, State.FAILED, now=NOW))
                    if ended is not None:
                        self.commits[job.job_id] = self.commits.get(job.job_id, 0) + 1
                        self.done.add(job.job_id)
            queue.ack(delivery.receipt)

    def check(self, url: str) -> None:
        assert self.errors == []
        with linked(url) as link:
            rows = link.table.get_all(list(self.added))
            assert set(rows) == set(self.added), "jobs were lost"
            assert {i for i, n in self.commits.items() if n > 1} == set(), "jobs were committed twice"
            assert {i for i in self.done if rows[i].state is not State.FAILED} == set(), "an end was forgotten"
            counted: dict[State, int] = {}
            for job in rows.values():
                counted[job.state] = counted.get(job.state, 0) + 1
            assert link.table.counts() == counted, "the tallies differ from the rows"
