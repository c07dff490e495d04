"""The CPU that a page of results by outcome takes among few and many jobs: `python -m tests.bench.outcome_pages`.

Fills SQLite and PostgreSQL with so many jobs, a tenth of them with errors, and reads pages of twenty in turns; the
server's CPU counts too. Of DynamoDB no emulator tells the cost: tests/contract/test_outcomes_are_indexed.py counts the items that it evaluates.
"""

import argparse
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median

import psycopg

from core.jobs import Outcome, State, dump_job
from core.ports import JobQuery, JobTable
from infra.clocks import HandClock
from infra.local.sqlite import Database
from infra.local.sqlite_table import SqliteJobTable
from infra.postgres.connections import parse_database
from infra.postgres.schema import init_database
from tests.bench.bench_loads import server_cpu
from tests.contract.embedded import job_wake_at
from tests.contract.jobs import NOW, a_job
from tests.contract.postgres_adapters import postgres_table
from tests.support.postgres_server import Cluster, cluster

TURNS, PAGES, LIMIT = 6, 200, 20
QUERIES = {
    "errors": JobQuery(outcome=Outcome.ERRORS),
    "errors of a tenant": JobQuery(outcome=Outcome.ERRORS, tenant="t7"),
    "clean": JobQuery(outcome=Outcome.CLEAN),
}
_COLUMNS = "job_id, tenant, workflow, line, state, created_at, wake_at, resting, rev"


def record(errors: int) -> str:
    summary = {"rows_in": 9, "findings": {"error": errors, "warning": 0, "info": 1}}
    made = a_job("template", state=State.SUCCEEDED, ended_at=NOW, summary=summary)
    return dump_job(replace(made, tenant="t7"))  # as the rows of the tenant that is asked for say


def values(yes: str, mark: str) -> str:
    """The columns of job n, in the SQL of both databases."""
    doc = f"replace(CASE n % 10 WHEN 7 THEN {mark} ELSE {mark} END, 'acme-members-template', 'j' || n)"
    return (
        f"'j' || n, 't' || (n % 50), 'members', 'line' || n, 'SUCCEEDED', {NOW} + n, {NOW} + n + 1e6, {yes}, 1, {doc}"
    )


@contextmanager
def in_sqlite(file: Path, jobs: int) -> Iterator[JobTable]:
    with closing(Database(file)) as database:
        table = SqliteJobTable(database, HandClock(), job_wake_at)
        numbers = f"WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {jobs})"
        with closing(sqlite3.connect(file)) as own:
            own.execute(
                f"{numbers} INSERT INTO jobs ({_COLUMNS}, doc) SELECT {values('1', '?')} FROM s", (record(2), record(0))
            )
            own.commit()
        yield table


@contextmanager
def in_postgres(url: str, jobs: int) -> Iterator[JobTable]:
    init_database(parse_database(url), apply=True)
    listed = values("true", "%s").replace("n % ", "n %% ")
    with psycopg.connect(url, autocommit=True) as db:
        # Without the triggers, which count jobs one by one; what they note of outcomes is written here.
        db.execute("SET search_path = ade; SET synchronous_commit = off; SET session_replication_role = replica")
        db.execute(
            f"INSERT INTO jobs ({_COLUMNS}, doc, writer, outcome)"
            f" SELECT {listed}, n, CASE n %% 10 WHEN 7 THEN 'errors' END FROM generate_series(1, {jobs}) AS n",
            (record(2), record(0)),
        )
        db.execute("VACUUM ANALYZE jobs")
    with postgres_table(url, NOW) as table:
        yield table


def spent(table: JobTable, query: JobQuery, database: Cluster | None) -> float:
    """CPU milliseconds of a page, ours and the server's."""
    began = time.process_time() + (server_cpu(database) if database else 0)
    for _ in range(PAGES):
        assert len(table.page(query, limit=LIMIT).jobs) == LIMIT, "every page is full"
    return 1000 * (time.process_time() + (server_cpu(database) if database else 0) - began) / PAGES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, nargs=2, default=[1000, 1_000_000])
    few, many = parser.parse_args().jobs
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        tables: dict[tuple[str, int], tuple[JobTable, Cluster | None]] = {}
        for jobs in (few, many):
            tables["SQLite", jobs] = opened.enter_context(in_sqlite(folder / f"{jobs}.sqlite", jobs)), None
            server = opened.enter_context(cluster())
            tables["PostgreSQL", jobs] = opened.enter_context(in_postgres(server.url, jobs)), server
        print(f"pages of {LIMIT} among {few:,} and {many:,} jobs, {TURNS} turns of {PAGES}; CPU milliseconds of a page")
        for kind in ("SQLite", "PostgreSQL"):
            for name, query in QUERIES.items():
                times: dict[int, list[float]] = {few: [], many: []}
                for _ in range(TURNS):
                    for jobs, taken in times.items():
                        table, database = tables[kind, jobs]
                        taken.append(spent(table, query, database))
                least = {jobs: min(taken) for jobs, taken in times.items()}
                middle = {jobs: median(taken) for jobs, taken in times.items()}
                print(
                    f"{kind:>10} {name:>18}: least {least[few]:.2f} and {least[many]:.2f} ({least[many] / least[few]:.2f} times),"
                    f" median {middle[few]:.2f} and {middle[many]:.2f} ({middle[many] / middle[few]:.2f} times)"
                )


if __name__ == "__main__":
    main()
