"""Behind pgbouncer in transaction mode: recognised, nothing prepared, the queue polled instead of listened to."""

import time
from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace

import pytest

from console.cli.checks import WARNING
from console.cli.database_checks import check_health
from core.jobs import Job, start
from core.ports import Caps, Message, Pause
from infra.postgres.connections import Connections, parse_database
from infra.postgres.health import examine
from infra.postgres.listening import PostgresBells
from infra.postgres.pg_queue import PostgresWorkQueue
from infra.postgres.pg_table import PostgresJobTable
from tests.contract import postgres_adapters
from tests.contract.embedded import job_wake_at
from tests.contract.jobs import NOW, a_job, with_reason

pytestmark = pytest.mark.slow


@pytest.fixture
def pooled() -> Iterator[SimpleNamespace]:
    database, notes = parse_database(postgres_adapters.pooled()), list[str]()
    with (
        closing(Connections(database, deadline=10, on_note=notes.append)) as links,
        closing(PostgresBells(links)) as bells,
    ):
        table = PostgresJobTable(links, bells, job_wake_at)
        yield SimpleNamespace(table=table, queue=PostgresWorkQueue(links, bells), bells=bells, notes=notes, links=links)


def test_jobs_go_their_way_though_every_transaction_has_another_session(pooled: SimpleNamespace):
    table, queue = pooled.table, pooled.queue
    for n in range(20):
        job, made = table.add(a_job(f"j{n}"))
        assert made
        queue.send(Message.of(job))
        (got,) = queue.receive(most=1, wait=5, visibility=30)
        running = table.admit(job, start(job, owner="r", now=NOW, lease_seconds=30), Caps(tenant=50, workflow=50))
        assert isinstance(running, Job)
        assert table.replace(running, with_reason(running, "on")) is not None
        queue.ack(got.receipt)
    table.pause(Pause(tenant="acme", workflow=None, since=NOW, by="ops"))
    assert table.resume("acme", None)


def test_nothing_is_left_behind_in_a_session_that_others_get(pooled: SimpleNamespace):
    pooled.table.get("x")
    for _ in range(6):  # its sessions take turns
        seen = pooled.links("look", lambda db, _: db.execute("SHOW statement_timeout", prepare=False).fetchall())
        assert seen == [("0",)]


def test_doctor_says_that_the_queue_is_polled(pooled: SimpleNamespace):
    found = [check for check in check_health(examine(pooled.links)) if "pooler" in check.message]
    assert [check.level for check in found] == [WARNING]
    assert "twice a second" in found[0].message


def test_who_waits_learns_that_it_looks_and_finds_the_message(pooled: SimpleNamespace):
    assert pooled.queue.receive(most=1, wait=0.2, visibility=30) == ()
    pooled.queue.send(Message(job_id="a", tenant="acme"), delay=0.5)
    assert [d.message.job_id for d in pooled.queue.receive(most=1, wait=20, visibility=30)] == ["a"]
    until = time.monotonic() + 20
    while not pooled.notes and time.monotonic() < until:
        pooled.bells.wait("queue", pooled.bells.count("queue"), 0.1)
    assert "pooler" in pooled.notes[0]
    assert not pooled.bells.listens
