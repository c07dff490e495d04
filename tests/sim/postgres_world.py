"""The simulated fleet over a real PostgreSQL server: its table and its queue are the product's adapters.

The scheduler lets one actor run at a time, so every call of a simulated process is one statement on the server, in the
order that the seed decides. The table's answers are compared with those of the table in memory (parts.py), call by
call, and at the end its rows and tallies too. Faults come at two levels: those of the simulator, above the adapter (a
process dies, a call is refused, its answer is lost), and below it broken connections, before a statement and after
it, which the adapter has to see through by itself. The database's clock is ahead or behind, and is set once in a
while. Somebody empties the queue.

What does not apply: one actor at a time means that no statement waits for another's lock (the contract suites and the
storm have that), and nobody listens (the simulator wakes who waits).
"""

import functools
import os
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import psycopg

from core.jobs import Job, State, dump_job
from core.ports import Message, Page, Refused
from infra.postgres.connections import Act, Connections, Link, PostgresAddress, parse_database
from infra.postgres.pg_queue import PostgresWorkQueue
from infra.postgres.pg_table import PostgresJobTable
from infra.postgres.schema import init_database
from tests.sim.parts import SimTable
from tests.sim.scheduler import Process, Scheduler
from tests.sim.wires import Network, WiredQueue, WiredTable
from tests.sim.world import Outcome, World, simulate
from tests.support.postgres_server import TABLES

T = TypeVar("T")
# A generation only has to grow, and does so twice where the answer to the first try was lost. Who repeats the removal of
# a row or the lifting of a pause is told that it is gone, whoever did it.
_NOT_COMPARED = {"generation", "advance", "remove", "resume", "recount", "close"}


class BrokenWires(Connections):
    """Connections that break before or after a statement, as the seed draws it."""

    rng = random.Random(0)
    share = 0.0
    broken: Callable[[str], None] = staticmethod(lambda _how: None)

    def __call__(self, what: str, act: Act[T]) -> T:
        fate = self.rng.random() if self.share else 1.0

        def on_the_wire(link: Link, retried: bool) -> T:
            if retried or fate >= self.share:
                return act(link, retried)
            if fate < self.share / 2:
                act(link, retried)
            self.broken("answer_cut" if fate < self.share / 2 else "call_cut")
            link.close()
            raise psycopg.OperationalError("the connection broke")

        return super().__call__(what, on_the_wire)


class NoBells:
    """Nobody listens: the simulator wakes who waits."""

    def ring(self, _bell: str) -> None: ...
    def ring_here(self, _bell: str) -> None: ...
    def wait(self, _bell: str, _seen: int, _seconds: float) -> None: ...

    def count(self, _bell: str) -> int:
        return 0


class Database:
    """One schema of a server, emptied for each seed."""

    def __init__(self, url: str) -> None:
        schema = f"sim{os.getpid()}"
        given = f"schema={schema}&pool=2&pooler=none&options=-csynchronous_commit%3Doff"
        self.address = parse_database(f"{url}?{given}")
        init_database(self.address, apply=True)
        self.connections = BrokenWires(self.address)
        self.admin = psycopg.connect(url, autocommit=True)
        self._empty = ";".join(f"DELETE FROM {schema}.{name}" for name in TABLES)
        self.admin.execute(f"SET search_path = {schema}; SET synchronous_commit = off")

    def empty(self) -> None:
        self.admin.execute(self._empty)

    def close(self) -> None:
        self.connections.close()
        self.admin.execute(f'DROP SCHEMA "{self.address.schema}" CASCADE')
        for role in ("runner", "handler", "reader"):
            self.admin.execute(f'DROP ROLE IF EXISTS "{self.address.schema}_{role}"')
        self.admin.close()


class DatabaseClock:
    """The server's own: somewhat off, and set by hand or by a failover to another machine now and then."""

    def __init__(self, scheduler: Scheduler, rng: random.Random, length: float) -> None:
        self._scheduler = scheduler
        steps = [(0.0, rng.uniform(-5.0, 5.0))]
        if rng.random() < 0.3:
            steps.append((scheduler.now + rng.uniform(0, length), rng.uniform(-60.0, 60.0)))
        self.is_set = len(steps) > 1
        self._steps = steps

    @property
    def ahead(self) -> float:
        return sum(by for at, by in self._steps if at <= self._scheduler.now)

    def now(self) -> float:
        return self._scheduler.now + self.ahead

    def steady(self) -> float:
        return self._scheduler.now


class QueueState:
    """What the queue holds, as `Messages` tells it of the one in memory."""

    def __init__(self, database: Database, clock: DatabaseClock, hidden_for: Callable[[float], float]) -> None:
        self._db = database.admin
        self.clock = clock
        self.hidden_for = hidden_for
        self.on_send: Callable[[], None] = lambda: None
        self._soonest: float | None = None
        self._known = False

    @property
    def copies(self) -> list[SimpleNamespace]:
        found = self._db.execute("SELECT job_id, tenant, priority FROM messages ORDER BY job_id").fetchall()
        return [SimpleNamespace(message=Message(job_id=i, tenant=t, priority=p)) for i, t, p in found]

    @property
    def letters(self) -> dict[str, str]:
        return dict(self._db.execute("SELECT job_id, reason FROM dead_letters").fetchall())

    def soonest(self) -> float | None:
        if not self._known:
            asked = "SELECT min(CASE WHEN ready THEN 0 ELSE visible_at END) FROM messages"
            ((self._soonest,),) = self._db.execute(asked).fetchall()
            self._known = True
        return None if self._soonest is None else self._soonest - self.clock.ahead

    def changed(self) -> None:
        self._known = False
        self.on_send()

    def lose_all(self) -> int:
        self._known = False
        return self._db.execute("DELETE FROM messages").rowcount


class TwinTable:
    """The product's adapter, and beside it the table in memory, which has to give the same answers."""

    def __init__(self, real: PostgresJobTable, model: SimTable, world: "PostgresWorld") -> None:
        self._real, self._model, self._world = real, model, world
        self.database = real.database

    def add_sent(self, job: Job, delay: float) -> tuple[Job, bool]:
        got = self._real.add_sent(job, delay)
        self._world.messages.changed()
        return self._same("add_sent", got, self._model.add(job))

    def without_message(self, cursor: str | None) -> tuple[tuple[Job, ...], str | None]:
        return self._real.without_message(cursor)

    def __getattr__(self, name: str) -> Any:
        real, model = getattr(self._real, name), getattr(self._model, name)
        return lambda *args, **more: self._same(name, real(*args, **more), model(*args, **more))

    def _same(self, name: str, got: Any, wanted: Any) -> Any:
        if name not in _NOT_COMPARED and got != wanted and _plain(got) != _plain(wanted):
            self._world.checks._breaks(f"table.{name}: PostgreSQL says {got}, and the table in memory {wanted}")
        return got


class PostgresSimQueue:
    """The product's adapter; where the simulator delivers a message twice at once, it is hidden for a moment only."""

    chooses_tenants = True

    def __init__(self, real: PostgresWorkQueue, state: QueueState) -> None:
        self._real, self._m = real, state
        self.database = real.database

    def receive(self, *, most: int, wait: float, visibility: float, avoid: frozenset[str] = frozenset()) -> Any:
        hidden = self._m.hidden_for(visibility)
        got = self._real.receive(most=most, wait=wait, visibility=hidden, avoid=avoid)
        self._m._known = False
        return got

    def __getattr__(self, name: str) -> Any:
        act = getattr(self._real, name)

        def acted(*args: Any, **more: Any) -> Any:
            done = act(*args, **more)
            self._m.changed()
            return done

        return acted


class OneDatabaseTable(WiredTable):
    """A table that sends a job's message with its row."""

    def __init__(self, network: Network, process: Process, table: TwinTable) -> None:
        super().__init__(network, process, table)  # type: ignore[arg-type]
        self.database: PostgresAddress = table.database

    def add_sent(self, job: Job, delay: float) -> tuple[Job, bool]:
        return self._call("add_sent", lambda: self._t.add_sent(job, delay), job)

    def without_message(self, cursor: str | None) -> tuple[tuple[Job, ...], str | None]:
        return self._call("without_message", lambda: self._t.without_message(cursor))


class OneDatabaseQueue(WiredQueue):
    chooses_tenants = True

    def __init__(self, network: Network, process: Process, queue: PostgresSimQueue, coming: Any) -> None:
        super().__init__(network, process, queue, coming)  # type: ignore[arg-type]
        self.database: PostgresAddress = queue.database

    def _call(self, name: str, act: Callable[[], Any], *about: Any) -> Any:
        if name in ("hide", "ack"):  # the number of a receipt is the server's own draw, and no part of the story
            about = tuple(receipt.partition(".")[2] for receipt in about)
        return super()._call(name, act, *about)


class PostgresWorld(World):
    messages: Any

    def __init__(self, database: Database, seed: int, folder: Path) -> None:
        self._database = database
        self._wires = random.Random(f"wires {seed}")
        database.empty()
        super().__init__(seed, folder)
        self._clock: DatabaseClock = self.messages.clock
        self.met["database_clock_set"] += self._clock.is_set
        wires = database.connections
        wires.rng = self._wires
        wires.share = self._wires.choice([0.0, 0.01, 0.05])
        wires.broken = self._broken

    def make_messages(self) -> Any:
        clock = DatabaseClock(self.scheduler, self._wires, self.length)
        return QueueState(self._database, clock, self.network.hidden_for)

    def table(self, process: Process) -> Any:
        real = PostgresJobTable(self._database.connections, NoBells(), self.rows.wake_at, clock=self._clock)  # type: ignore[arg-type]
        return TwinTable(real, SimTable(self.rows, self._clock), self)

    def wired_table(self, process: Process) -> WiredTable:
        return OneDatabaseTable(self.network, process, self.table(process))

    def wired_queue(self, process: Process) -> WiredQueue:
        real = PostgresWorkQueue(self._database.connections, NoBells(), clock=self._clock)  # type: ignore[arg-type]
        return OneDatabaseQueue(self.network, process, PostgresSimQueue(real, self.messages), self.message_came)

    def _assembled(self, process: Process, **more: Any) -> Any:
        made = super()._assembled(process, **more)
        if more["role"] == "janitor":
            self.scheduler.spawn(process, "replenish", lambda: self._replenish(made.janitor))
        return made

    def _replenish(self, janitor: Any) -> None:
        while True:
            while not any(job.state is State.QUEUED for job in self.rows.jobs.values()):
                self.row_changed.wait(self.scheduler.now + 1e6)
            self.scheduler.sleep(30.0)
            janitor._led(janitor.replenish)

    def run(self) -> list[str]:
        if self._wires.random() < 0.4:
            people = Process("careless", self.scheduler)
            self.scheduler.spawn(people, "purge", self._purge, after=self._wires.uniform(0, self.length))
        return super().run()

    def _purge(self) -> None:
        """An operator deletes every message, once or twice, when there are some."""
        for _ in range(self._wires.choice([1, 2])):
            while self.messages.soonest() is None:
                self.message_came.wait(self.scheduler.now + 1e6)
            self.scheduler.sleep(self._wires.choice([0.0, 0.01, 1.0, 20.0]))
            if self.network.on:
                self.met["messages_purged"] += self.messages.lose_all()
                self.scheduler.trace("empties the queue")

    def _broken(self, how: str) -> None:
        self.met[how] += 1
        self.scheduler.trace(how)

    def calm(self) -> None:
        super().calm()
        self._database.connections.share = 0.0

    def at_rest(self) -> list[str]:
        """What the rows and the tallies of the server are, beside those that were written to the table in memory."""
        found = super().at_rest()
        table = PostgresJobTable(self._database.connections, NoBells(), self.rows.wake_at)  # type: ignore[arg-type]
        if _plain(table.get_all(list(self.rows.jobs))) != _plain(self.rows.jobs):
            found.append("the rows of the server are not those that were written")
        if table.counts() != SimTable(self.rows, self._clock).counts():
            found.append(f"the tallies say {table.counts()}")
        return found


def _plain(answer: Any) -> Any:
    match answer:
        case Job():
            return answer.rev, dump_job(answer)  # what comes back from JSON has lists for tuples
        case Refused():
            return answer.scope
        case Page():
            return _plain(answer.jobs), answer.cursor
        case tuple():
            return [_plain(one) for one in answer]
        case dict():
            return {name: _plain(one) for name, one in answer.items()}
        case _:
            return answer


def simulate_on(database: Database, seed: int) -> Outcome:
    """One run; the same seed gives the same run."""
    return simulate(seed, functools.partial(PostgresWorld, database))


@functools.cache
def kept(url: str) -> Database:
    """This process's database, for as long as the server runs."""
    return Database(url)
