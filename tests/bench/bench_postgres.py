"""What a job costs in PostgreSQL, ours beside procrastinate's, on one server in one run.

python -m tests.bench.bench_postgres [--sizes 1000,100000,1000000] [--rounds N] [--drain N]

Both keep their jobs in the same database, filled in bulk to each size: nine of ten are done, one waits. Then rounds of
both alternate, and the median round counts. CPU is the measure (of this process, and of all processes of the server);
wall clock depends on who else uses the machine and its disk.

Each goes through the calls that its own processes make. Ours: a row with its message, a message and its job's start,
the commit of a result and the end of its message; the write after publication, for which procrastinate has no
counterpart, stands in a line of its own. Procrastinate: `defer` of a task, then `fetch_job` and `finish_job` of the
JobManager as its worker awaits them.
"""

import argparse
import asyncio
import contextlib
import logging
import multiprocessing
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import psycopg
from procrastinate import App, PsycopgConnector, SyncPsycopgConnector
from procrastinate.jobs import Status

from core.chores import Timings, wake_at
from core.jobs import Job, OutputFile, State, dump_job, load_job, move, start
from core.ports import Caps
from infra.clocks import SystemClock
from infra.postgres.connections import Connections, parse_database
from infra.postgres.listening import PostgresBells
from infra.postgres.pg_queue import PostgresWorkQueue
from infra.postgres.pg_table import PostgresJobTable
from infra.postgres.schema import init_database
from infra.queueing import add
from tests.bench.bench_spine import job
from tests.support.postgres_server import Cluster, cluster

CAPS = Caps(tenant=500, workflow=500)
SIZES = (1_000, 100_000, 1_000_000)
BATCH = 100  # jobs of one round
TENANTS = 20
logging.getLogger("procrastinate").setLevel(logging.ERROR)  # an app in a script is what we want
RUNNERS = 4
DRAINS = 5
OPERATIONS = ("enqueue", "lease + start", "finish")
PUBLISH = "published"
_SERVER = "shared_buffers = 512MB\nmax_wal_size = 4GB\ncheckpoint_timeout = 30min\n"


class Side(Protocol):
    """One of the two, in one process."""

    name: str

    def enqueue(self, numbers: Sequence[int]) -> None: ...
    def lease(self, count: int) -> list[Any]: ...
    def finish(self, leased: list[Any]) -> None: ...
    def publish(self, leased: list[Any]) -> None: ...
    def close(self) -> None: ...


class Ours:
    """Table and queue of this program."""

    name = "ade-drop"

    def __init__(self, url: str) -> None:
        timings = Timings()
        self._opened = contextlib.ExitStack()
        connections = self._opened.enter_context(contextlib.closing(Connections(parse_database(url))))
        bells = self._opened.enter_context(contextlib.closing(PostgresBells(connections)))
        self._clock = SystemClock()
        self._table = PostgresJobTable(connections, bells, lambda j: wake_at(j, timings))
        self._queue = PostgresWorkQueue(connections, bells)
        self._committed: list[Job] = []

    def enqueue(self, numbers: Sequence[int]) -> None:
        for n in numbers:
            _, made = add(self._table, self._queue, self._clock, replace(job(n), enqueued_at=None))
            assert made

    def lease(self, count: int) -> list[Any]:
        leased = []
        for _ in range(count):
            (got,) = self._queue.receive(most=1, wait=0, visibility=60)
            assert got.record is not None
            old = load_job(got.record, got.message.job_id)
            started = self._table.admit(old, start(old, owner="bench", now=self._clock.now(), lease_seconds=30), CAPS)
            assert isinstance(started, Job), started
            leased.append((started, got.receipt))
        return leased

    def finish(self, leased: list[Any]) -> None:
        self._committed = []
        for started, receipt in leased:
            committed = self._table.replace(started, commit(started))
            assert committed is not None
            self._queue.ack(receipt)
            self._committed.append(committed)

    def publish(self, leased: list[Any]) -> None:
        del leased
        for one in self._committed:
            assert self._table.replace(one, move(one, State.SUCCEEDED, now=self._clock.now())) is not None

    def close(self) -> None:
        self._opened.close()


class Theirs:
    """procrastinate, by its public calls."""

    name = "procrastinate"

    def __init__(self, url: str) -> None:
        self._sender = App(connector=SyncPsycopgConnector(conninfo=url))
        self._sender.open()
        self._task = self._sender.task(name="normalize")(str)
        self._loop = asyncio.new_event_loop()
        self._app = App(connector=PsycopgConnector(conninfo=url))
        self._await(self._app.open_async())
        self._worker = self._await(self._app.job_manager.register_worker())

    def enqueue(self, numbers: Sequence[int]) -> None:
        for n in numbers:
            self._task.configure(queue=f"t{n % TENANTS}").defer(job_id=f"t{n % TENANTS}-members-{n:08d}")

    def lease(self, count: int) -> list[Any]:
        async def run() -> list[Any]:
            return [await self._app.job_manager.fetch_job(queues=None, worker_id=self._worker) for _ in range(count)]

        leased: list[Any] = self._await(run())
        assert all(leased)
        return leased

    def finish(self, leased: list[Any]) -> None:
        async def run() -> None:
            for one in leased:
                await self._app.job_manager.finish_job(one, status=Status.SUCCEEDED, delete_job=False)

        self._await(run())

    def publish(self, leased: list[Any]) -> None:
        """It has nothing of the kind."""

    def close(self) -> None:
        self._sender.close()
        self._await(self._app.close_async())
        self._loop.close()

    def _await(self, work: Any) -> Any:
        return self._loop.run_until_complete(work)


def commit(started: Job) -> Job:
    files = tuple(OutputFile(name=name, size=9000, sha256="0" * 64) for name in ("normalized.xlsx", "artifact.json"))
    return move(started, State.PUBLISHING, now=time.time(), files=files)


SIDES: tuple[Callable[[str], Side], ...] = (Ours, Theirs)


def fill(url: str, already: int, size: int) -> None:
    """Rows in bulk up to `size`: only what comes after is measured."""
    waiting = replace(job(0), rev=1)
    started = start(waiting, owner="bench", now=time.time(), lease_seconds=30)
    ended = replace(move(commit(started), State.SUCCEEDED, now=time.time()), rev=4)
    values = {"first": already, "last": size - 1, "tenants": TENANTS, "waiting": 10}
    values |= {"queued": _pattern(waiting), "ended": _pattern(ended), "wake": wake_at(ended, Timings())}
    with psycopg.connect(url) as db:
        db.execute("SET session_replication_role = replica")  # no triggers: what they write is written here, too
        for statement in _FILL:
            db.execute(statement, values)
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("VACUUM ANALYZE")
        db.execute("CHECKPOINT")


def _pattern(of: Job) -> str:
    """A record with marks for what differs between two jobs."""
    text = dump_job(of).replace(f"{0:064d}", "<64>").replace(f"{0:08d}", "<8>").replace("d0/", "d<n>/")
    return text.replace('"t0', '"t<t>').replace("inbox/t0", "inbox/t<t>")


_NUMBERS = """
SELECT n, n %% %(tenants)s AS t, n %% %(waiting)s = 0 AS waits, extract(epoch FROM now()) - 1000000 + n / 1e3 AS at
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n
"""
_FILL = (
    f"""
    INSERT INTO ade.jobs (job_id, tenant, workflow, line, state, created_at, wake_at, resting, rev, writer, doc)
    SELECT 't' || t || '-members-' || lpad(n::text, 8, '0'), 't' || t, 'members', 'line' || n,
      CASE WHEN waits THEN 'QUEUED' ELSE 'SUCCEEDED' END, at, CASE WHEN waits THEN at + 1e9 ELSE %(wake)s::float8 END,
      NOT waits, CASE WHEN waits THEN 1 ELSE 4 END, n,
      replace(replace(replace(replace(CASE WHEN waits THEN %(queued)s ELSE %(ended)s END,
        '<64>', lpad(n::text, 64, '0')), '<8>', lpad(n::text, 8, '0')), '<n>', n::text), '<t>', t::text)
    FROM ({_NUMBERS}) AS numbers
    """,
    """
    INSERT INTO ade.tallies AS t (tenant, state, slot, n)
    SELECT tenant, state, 0, count(*) FROM ade.jobs WHERE writer BETWEEN %(first)s AND %(last)s GROUP BY 1, 2
    ON CONFLICT (tenant, state, slot) DO UPDATE SET n = t.n + excluded.n
    """,
    f"""
    INSERT INTO ade.messages (job_id, tenant, priority, rank, ready, visible_at, sent_at)
    SELECT 't' || t || '-members-' || lpad(n::text, 8, '0'), 't' || t, 0, at, true, at, at
    FROM ({_NUMBERS}) AS numbers WHERE waits
    """,
    "INSERT INTO ade.lanes (tenant, served) SELECT DISTINCT tenant, 0 FROM ade.messages ON CONFLICT DO NOTHING",
    f"""
    WITH made AS (
      INSERT INTO procrastinate_jobs (queue_name, task_name, priority, args, status, attempts)
      SELECT 't' || t, 'normalize', 0, jsonb_build_object('job_id', 't' || t || '-members-' || lpad(n::text, 8, '0')),
        (CASE WHEN waits THEN 'todo' ELSE 'succeeded' END)::procrastinate_job_status, CASE WHEN waits THEN 0 ELSE 1 END
      FROM ({_NUMBERS}) AS numbers RETURNING id, status
    )
    INSERT INTO procrastinate_events (job_id, type, at)
    SELECT id, v.type::procrastinate_job_event_type, now() FROM made, (VALUES ('deferred'), ('started'), ('succeeded'))
      AS v (type) WHERE status = 'succeeded' OR v.type = 'deferred'
    """,
)


class ServerCpu:
    """CPU seconds of the server: its live processes to the nanosecond, and those that ended."""

    def __init__(self, server: Cluster) -> None:
        self._pid = server.pid

    def __call__(self) -> float:
        own = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        total = sum(map(int, own[11:15])) / 100  # its own, and of the children that it waited for
        children = Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text().split()
        for pid in children:
            with contextlib.suppress(OSError):
                total += int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
        return total


class Costs:
    """Per job of each round: client CPU, server CPU, wall clock, in microseconds; and bytes of the server's log."""

    def __init__(self, server: ServerCpu, db: "psycopg.Connection[Any]") -> None:
        self._server = server
        self._db = db
        self.found: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
        self.logged: dict[tuple[str, str], list[float]] = {}

    @contextlib.contextmanager
    def of(self, side: str, operation: str) -> Iterator[None]:
        logged = self._written()
        before = time.process_time(), self._server(), time.perf_counter()
        yield
        after = time.process_time(), self._server(), time.perf_counter()
        per_job = tuple((b - a) / BATCH * 1e6 for a, b in zip(before, after, strict=True))
        self.found.setdefault((side, operation), []).append(per_job)  # type: ignore[arg-type]
        self.logged.setdefault((side, operation), []).append((self._written() - logged) / BATCH)

    def median(self, side: str, operation: str) -> tuple[float, float, float]:
        rounds = self.found[side, operation]
        client, server, wall = (statistics.median(values) for values in zip(*rounds, strict=True))
        return client, server, wall

    def _written(self) -> int:
        ((position,),) = self._db.execute("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").fetchall()
        return int(position)


def measure(url: str, server: ServerCpu, first: int, rounds: int) -> Costs:
    db = psycopg.connect(url, autocommit=True)
    costs = Costs(server, db)
    sides = [make(url) for make in SIDES]
    try:
        for turn in range(rounds + 1):
            if turn == 1:
                costs.found.clear()  # connections, prepared statements and caches are there now
            for side in sides if turn % 2 else reversed(sides):
                numbers = range(first + turn * BATCH, first + (turn + 1) * BATCH)
                with costs.of(side.name, OPERATIONS[0]):
                    side.enqueue(numbers)
                with costs.of(side.name, OPERATIONS[1]):
                    leased = side.lease(BATCH)
                with costs.of(side.name, OPERATIONS[2]):
                    side.finish(leased)
                with costs.of(side.name, PUBLISH):
                    side.publish(leased)
    finally:
        for side in sides:
            side.close()
        db.close()
    return costs


def _runner(side: int, url: str, jobs: int, go: Any, out: Any) -> None:
    made = SIDES[side](url)
    go.wait()
    cpu = time.process_time()
    for _ in range(jobs):
        made.finish(made.lease(1))
    out.put(time.process_time() - cpu)
    made.close()


def drain(url: str, server: ServerCpu, side: int, runners: int, jobs: int) -> tuple[float, float, float, Counter[str]]:
    """Runner processes lease and finish at once: jobs/s, client and server CPU per job (µs), what sessions waited for."""
    context = multiprocessing.get_context("spawn")
    out, go = context.Queue(), context.Barrier(runners + 1)
    started = [context.Process(target=_runner, args=(side, url, jobs // runners, go, out)) for _ in range(runners)]
    for process in started:
        process.start()
    waits: Counter[str] = Counter()
    with psycopg.connect(url, autocommit=True) as db:
        go.wait()
        began, cpu = time.perf_counter(), server()
        while any(process.is_alive() for process in started) and out.qsize() < runners:
            for kind, n in db.execute(_WAITS).fetchall():
                waits[kind] += n
            time.sleep(0.01)
        took, served = time.perf_counter() - began, server() - cpu
    used = sum(out.get() for _ in started)
    for process in started:
        process.join()
    count = jobs // runners * runners
    return count / took, used / count * 1e6, served / count * 1e6, waits


def drain_both(url: str, server: ServerCpu, jobs: int) -> None:
    """In turn, several times; the median counts, and the waits are added up."""
    found: dict[tuple[int, int], list[tuple[float, float, float]]] = {}
    waits: dict[tuple[int, int], Counter[str]] = {}
    for _ in range(DRAINS):
        for runners in (1, RUNNERS):
            for side in range(len(SIDES)):
                *costs, waited = drain(url, server, side, runners, jobs // DRAINS)
                found.setdefault((side, runners), []).append((costs[0], costs[1], costs[2]))
                waits.setdefault((side, runners), Counter()).update(waited)
    for (side, runners), costs in sorted(found.items()):
        rate, client, served = (statistics.median(values) for values in zip(*costs, strict=True))
        active = {kind: n for kind, n in waits[side, runners].most_common() if kind != "idle"}
        locked = sum(n for kind, n in active.items() if kind.startswith("Lock ")) / (sum(active.values()) or 1)
        print(
            f"{(Ours, Theirs)[side].name:14} {runners} runners: {rate:4.0f} jobs/s, CPU per job {client:.0f} µs client, "
            f"{served:.0f} µs server; {locked:.1%} of active sessions wait for a lock ("
            + ", ".join(f"{kind} {n}" for kind, n in active.items())
            + ")"
        )


_WAITS = """
SELECT CASE WHEN state <> 'active' THEN 'idle' WHEN wait_event_type IS NULL THEN 'on CPU'
  ELSE wait_event_type || ' ' || wait_event END, count(*)
FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND query NOT LIKE 'LISTEN%'
  AND query NOT LIKE '%pg_notify%' GROUP BY 1
"""


def _row(name: str, cells: list[str]) -> None:
    print(f"{name:26} " + " ".join(f"{cell:>21}" for cell in cells), flush=True)


def report(found: dict[int, Costs]) -> None:
    print("\nmedian microseconds per job: client CPU / server CPU / wall clock")
    _row("", [f"{size:,} jobs" for size in found])
    total: dict[str, list[float]] = {}
    for operation in OPERATIONS:
        for side in (Ours.name, Theirs.name):
            cells = [costs.median(side, operation) for costs in found.values()]
            _row(f"{operation}, {side}", ["{:.0f} / {:.0f} / {:.0f}".format(*cell) for cell in cells])
    _row(
        f"{PUBLISH}, {Ours.name}",
        ["{:.0f} / {:.0f} / {:.0f}".format(*c.median(Ours.name, PUBLISH)) for c in found.values()],
    )
    for side in (Ours.name, Theirs.name):
        total[side] = [
            sum(sum(costs.median(side, operation)[:2]) for operation in OPERATIONS) for costs in found.values()
        ]
        _row(f"all CPU, {side}", [f"{cpu:.0f}" for cpu in total[side]])
    ratio = [ours / theirs for ours, theirs in zip(total[Ours.name], total[Theirs.name], strict=True)]
    _row("ours / theirs, CPU", [f"{r:.2f}" for r in ratio])
    walls = [
        [sum(costs.median(side, operation)[2] for operation in OPERATIONS) for costs in found.values()]
        for side in (Ours.name, Theirs.name)
    ]
    _row("ours / theirs, wall clock", [f"{ours / theirs:.2f}" for ours, theirs in zip(*walls, strict=True)])
    for side in (Ours.name, Theirs.name):
        logged = [sum(statistics.median(costs.logged[side, op]) for op in OPERATIONS) for costs in found.values()]
        _row(f"bytes of log, {side}", [f"{size:,.0f}" for size in logged])
    for side in (Ours.name, Theirs.name):
        _row(f"against the smallest, {side}", [f"{cpu / total[side][0]:.2f}" for cpu in total[side]])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--drain", type=int, default=4000, help="jobs for one and for four runner processes")
    asked = parser.parse_args(arguments)
    found: dict[int, Costs] = {}
    with cluster(_SERVER) as server:
        cpu, there = ServerCpu(server), 0
        init_database(parse_database(server.url), apply=True)
        with psycopg.connect(server.url) as db:
            print(db.execute("SELECT version()").fetchone()[0])  # type: ignore[index]
        with App(connector=SyncPsycopgConnector(conninfo=server.url)).open() as app:
            app.schema_manager.apply_schema()
        for size in (int(text) for text in asked.sizes.split(",")):
            fill(server.url, there, size)
            found[size] = measure(server.url, cpu, size, asked.rounds)
            there = size + (asked.rounds + 1) * BATCH
        report(found)
        if asked.drain:
            print(
                f"\nlease + start + finish of {asked.drain} jobs by runner processes, {max(found):,} jobs in the table"
            )
            fill(server.url, there, there + 20 * asked.drain + 1000)
            drain_both(server.url, cpu, asked.drain)


if __name__ == "__main__":
    main()
