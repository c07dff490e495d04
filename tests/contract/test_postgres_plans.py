"""How PostgreSQL carries out every call of the adapters among many rows: by an index, whatever it knows of the tables.

auto_explain sends the plan of each statement, also of those within functions, to the client that runs it.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from core.jobs import Outcome, State, dump_job, move
from core.ports import Caps, JobQuery, Message, Pause
from infra.postgres.connections import Connections, Link, parse_database
from infra.postgres.listening import PostgresBells
from infra.postgres.pg_queue import PostgresWorkQueue
from infra.postgres.pg_table import PostgresJobTable
from tests.contract import postgres_adapters, servers
from tests.contract.embedded import job_wake_at
from tests.contract.jobs import NOW, a_job
from tests.contract.postgres_workload import starting

pytestmark = pytest.mark.slow

ROWS = int(os.environ.get("ADE_TEST_PLAN_ROWS", "8000"))
CAPS = Caps(tenant=5000, workflow=5000)
_SCAN = re.compile(r"Seq Scan on (?:public\.)?(jobs|messages)\b")
_EXPLAINED = "-c session_preload_libraries=auto_explain -c auto_explain.log_min_duration=0 " + " ".join(
    f"-c auto_explain.{name}=on" for name in ("log_nested_statements",)
)


class Explained(Connections):
    """Connections whose statements send their plans."""

    def __init__(self, url: str) -> None:
        super().__init__(parse_database(url))
        self.plans: list[str] = []

    def _configure(self, link: Link) -> bool:
        pooled = super()._configure(link)
        link.execute("SET client_min_messages = log")
        link.add_notice_handler(lambda notice: self.plans.append(notice.message_primary or ""))
        return pooled


def fill(schema: str, rows: int) -> None:
    """Of ten jobs nine have succeeded; of the others half wait and have a message, the rest run, failed or expired.

    As many messages are due much later: a queue of a few pages is rightly read as a whole.
    """
    job = a_job("template")
    old = {state: json.dumps(_record(state)) for state in ("SUCCEEDED", "QUEUED", "RUNNING", "FAILED", "EXPIRED")}
    with psycopg.connect(servers.postgres().endpoint, autocommit=True) as db:
        db.execute(f"SET search_path = {schema}; SET synchronous_commit = off; SET session_replication_role = replica")
        for state, doc in old.items():
            share = {"SUCCEEDED": "mod(n, 10) > 0", "QUEUED": "mod(n, 20) = 0", "RUNNING": "mod(n, 80) = 10"}.get(
                state, "mod(n, 80) = 30" if state == "FAILED" else "mod(n, 80) IN (50, 70)"
            )
            db.execute(
                f"""INSERT INTO jobs (job_id, tenant, workflow, line, state, created_at, wake_at, resting, rev, writer, doc)
                SELECT 'j' || n, 't' || mod(n, 50), 'members', 'line' || n, '{state}', {NOW} + n, {NOW} + n + 1e6,
                '{state}' IN ('SUCCEEDED', 'FAILED', 'EXPIRED'), 1, n, replace(%s, '{job.job_id}', 'j' || n)
                FROM generate_series(1, {rows}) AS n WHERE {share}""",
                (doc,),
            )
        db.execute(
            """INSERT INTO messages (job_id, tenant, priority, rank, ready, visible_at, sent_at)
            SELECT job_id, tenant, 0, created_at, right(job_id, 2) <> '00', created_at, created_at FROM jobs
            WHERE state = 'QUEUED';
            INSERT INTO messages (job_id, tenant, priority, rank, ready, visible_at, sent_at)
            SELECT 'later' || job_id, tenant, 0, created_at, false, 1e11, created_at FROM jobs;
            INSERT INTO lanes SELECT DISTINCT tenant, 0 FROM messages;
            INSERT INTO tallies SELECT tenant, state, 0, count(*) FROM jobs GROUP BY 1, 2;
            INSERT INTO dead_letters SELECT job_id, tenant, 0, '', created_at FROM jobs WHERE state = 'FAILED'"""
        )


def _record(state: str) -> dict[str, Any]:
    return json.loads(dump_job(a_job("template"))) | {"state": state}


@pytest.fixture(scope="module", params=["analyzed", "not yet analyzed"])
def filled(request: pytest.FixtureRequest) -> Iterator[Explained]:
    url = postgres_adapters.emptied(options=quote(_EXPLAINED))
    schema = parse_database(url).schema
    with psycopg.connect(servers.postgres().endpoint, autocommit=True) as db:
        db.execute(f"VACUUM FULL {schema}.jobs, {schema}.messages")
        db.execute(f"VACUUM ANALYZE {schema}.jobs, {schema}.messages")  # of nothing: what is known is wrong soon
        fill(schema, ROWS)
        if request.param == "analyzed":
            db.execute(f"VACUUM ANALYZE {schema}.jobs, {schema}.messages, {schema}.dead_letters, {schema}.tallies")
    with closing(Explained(url)) as connections:
        yield connections


QUEUED, ENDED = frozenset({State.QUEUED}), frozenset({State.SUCCEEDED, State.FAILED})
TABLE: dict[str, Callable[[PostgresJobTable], object]] = {
    "get": lambda t: t.get("j20"),
    "get all": lambda t: t.get_all(["j20", "j40"]),
    "page": lambda t: t.page(JobQuery(), limit=20),
    "page of a tenant": lambda t: t.page(JobQuery(tenant="t7"), limit=20),
    "page of a workflow": lambda t: t.page(JobQuery(workflow="members"), limit=20),
    "page of a state": lambda t: t.page(JobQuery(states=QUEUED), limit=20),
    "page of an outcome": lambda t: t.page(JobQuery(outcome=Outcome.ERRORS), limit=20),
    "page of a tenant's outcome": lambda t: t.page(JobQuery(outcome=Outcome.WARNINGS, tenant="t0"), limit=20),
    "page of clean results": lambda t: t.page(JobQuery(outcome=Outcome.CLEAN), limit=20),
    "page of states": lambda t: t.page(JobQuery(states=ENDED), limit=20),
    "page of a tenant's state": lambda t: t.page(JobQuery(states=QUEUED, tenant="t0"), limit=20),
    "page of some days": lambda t: t.page(JobQuery(created_from=NOW + 9, created_to=NOW + 99), limit=20),
    "second page": lambda t: t.page(JobQuery(), limit=20, cursor=t.page(JobQuery(), limit=20).cursor),
    "line": lambda t: t.line("line20"),
    "attention": lambda t: t.attention(NOW + 1e6 + 200),
    "outdated": lambda t: t.outdated(NOW + 1e6 + 200),
    "counts": lambda t: (t.counts(), t.tally("t7"), t.tally()),
    "count of waiting ones": lambda t: t.count(QUEUED, before=NOW + 1000),
    "without a message": lambda t: t.without_message(None),
    "recount": lambda t: t.recount(),
    "pauses": lambda t: (t.pause(Pause(tenant="x", workflow=None, since=NOW, by="x")), t.pauses(), t.resume("x", None)),
    "holds": lambda t: (
        t.hold("janitor", "a", 30),
        t.let_go("janitor", "a"),
        t.advance("g"),
        t.generations(["g", "h"]),
    ),
}


@pytest.mark.parametrize("call", TABLE)
def test_a_call_of_the_table_reads_no_whole_table(filled: Explained, call: str):
    with closing(PostgresBells(filled)) as bells:
        table = PostgresJobTable(filled, bells, job_wake_at)
        check(filled, lambda: TABLE[call](table))


def test_a_job_goes_its_way_without_reading_whole_tables(filled: Explained):
    with closing(PostgresBells(filled)) as bells:
        table, queue = PostgresJobTable(filled, bells, job_wake_at), PostgresWorkQueue(filled, bells)

        def work() -> None:
            job, _ = table.add_sent(a_job(f"way{len(filled.plans)}", tenant="t0"), 0.0)
            (delivery,) = queue.receive(most=1, wait=0, visibility=30)
            queue.hide(delivery.receipt, 60)
            started = table.admit(job, starting(job), CAPS)
            ended = table.replace(started, move(started, State.FAILED, now=NOW))
            queue.ack(delivery.receipt)
            table.remove(ended)
            queue.send_all([(Message(job_id=f"m{n}", tenant="t1"), n * 60.0) for n in range(3)])
            queue.missing(["j20", "j40"], lambda: 0)
            queue.bury(Message(job_id="j20", tenant="t0"), "why")
            queue.dead(limit=5)
            queue.redrive("j20")

        check(filled, work)


def check(filled: Explained, act: Callable[[], object]) -> None:
    for _ in range(7):  # the first calls of a session are planned for their values, later ones for any
        filled.plans.clear()
        act()
        assert filled.plans, "no plan came"
        assert [plan for plan in filled.plans if _SCAN.search(plan)] == []
