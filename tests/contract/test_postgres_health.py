"""What a PostgreSQL database says about itself, and what the whole of it makes possible."""

import os
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import yaml

from console.cli.main import main
from core.jobs import State, move
from infra.clocks import HandClock
from infra.postgres.connections import SCHEMA_VERSION, Connections, parse_database
from infra.postgres.health import examine
from infra.postgres.listening import PostgresBells
from infra.postgres.pg_queue import PostgresWorkQueue
from infra.postgres.pg_table import PostgresJobTable
from infra.queueing import add
from tests.contract import postgres_adapters, servers
from tests.contract.embedded import job_wake_at
from tests.contract.jobs import NOW, a_job
from tests.support.postgres_server import Cluster

pytestmark = pytest.mark.slow
MANIFEST = Path(__file__).parents[2] / "infra/deploy/kubernetes/ade-drop-postgres.yaml"


@pytest.fixture
def url() -> str:
    return postgres_adapters.emptied()


@pytest.fixture
def ports(url: str) -> Iterator[tuple[PostgresJobTable, PostgresWorkQueue]]:
    clock = HandClock(NOW)
    with postgres_adapters.opened(url) as link:
        yield PostgresJobTable(*link, job_wake_at, clock=clock), PostgresWorkQueue(*link, clock=clock)


class TestHealth:
    @pytest.mark.parametrize(("role", "may"), [("runner", "run"), ("handler", "record"), ("reader", "read"), ("", "")])
    def test_says_what_a_user_may_do(self, url: str, role: str, may: str):
        database = parse_database(url)
        user = f"u{os.getpid()}"
        with psycopg.connect(servers.postgres().endpoint, autocommit=True) as db:
            db.execute(f"CREATE ROLE {user} LOGIN")
            if role:
                db.execute(f"GRANT {database.schema}_{role} TO {user}")
            else:  # may see the version, and nothing else
                db.execute(f"GRANT USAGE ON SCHEMA {database.schema} TO {user}")
                db.execute(f"GRANT SELECT ON {database.schema}.versions TO {user}")
            try:
                with closing(Connections(parse_database(url.replace("//ade@", f"//{user}@")))) as connections:
                    assert examine(connections).may == may
            finally:
                db.execute(f"DROP OWNED BY {user}")
                db.execute(f"DROP ROLE {user}")

    def test_says_version_connections_and_size(self, url: str):
        with closing(Connections(parse_database(url))) as connections:
            found = examine(connections)
        assert (found.version, found.may, found.pooled, found.standby, found.fsync) == (
            *(SCHEMA_VERSION, "own", False, False),
            True,
        )
        assert 1 <= found.connections < found.most_connections == 197
        assert {"jobs", "messages", "lanes"} <= found.dead.keys()
        assert found.bytes > 0

    def test_knows_a_pooler(self, url: str):
        with closing(Connections(parse_database(url + "&pooler=transaction"))) as connections:
            assert examine(connections).pooled


class TestOneDatabase:
    """Where table and queue are one, a job and its message are, too."""

    def test_a_job_comes_with_its_message_and_its_row_says_so(self, ports: tuple[PostgresJobTable, PostgresWorkQueue]):
        table, queue = ports
        job, made = add(table, queue, HandClock(NOW), a_job("one", state=State.QUEUED))
        assert made
        assert job.enqueued_at == NOW
        (got,) = queue.receive(most=1, wait=0, visibility=30)
        assert got.message.job_id == job.job_id
        assert table.get(job.job_id) == job

    def test_a_job_that_was_there_gets_no_second_message(self, ports: tuple[PostgresJobTable, PostgresWorkQueue]):
        table, queue = ports
        table.add(a_job("one", state=State.QUEUED))
        _, made = add(table, queue, HandClock(NOW), a_job("one", state=State.QUEUED))
        assert not made
        assert queue.stats().ready == 0

    def test_a_job_that_waits_for_a_file_gets_none(self, ports: tuple[PostgresJobTable, PostgresWorkQueue]):
        table, queue = ports
        add(table, queue, HandClock(NOW), a_job("one", state=State.AWAITING))
        assert queue.stats().ready == 0

    def test_a_delayed_one_is_hidden_until_then(self, ports: tuple[PostgresJobTable, PostgresWorkQueue]):
        table, queue = ports
        add(table, queue, HandClock(NOW), a_job("one", state=State.QUEUED), delay=30)
        assert (queue.stats().ready, queue.stats().delayed) == (0, 1)

    def test_in_two_databases_the_message_follows_later(self, url: str):
        other = parse_database(url.replace("pool=4", "pool=5"))
        with (
            postgres_adapters.opened(url) as link,
            closing(Connections(other)) as connections,
            closing(PostgresBells(connections)) as bells,
        ):
            table, queue = PostgresJobTable(*link, job_wake_at), PostgresWorkQueue(connections, bells)
            job, made = add(table, queue, HandClock(NOW), a_job("one", state=State.QUEUED))
            assert (made, job.enqueued_at) == (True, None)
            assert queue.stats().ready == 0

    def test_a_delivery_carries_the_row_as_it_is_now(self, ports: tuple[PostgresJobTable, PostgresWorkQueue]):
        table, queue = ports
        job, _ = add(table, queue, HandClock(NOW), a_job("one", state=State.QUEUED))
        moved = table.replace(job, move(job, State.CANCELLED, now=NOW))
        assert moved is not None
        (got,) = queue.receive(most=1, wait=0, visibility=30)
        assert got.record is not None
        assert '"CANCELLED"' in got.record


def test_the_query_of_the_scaler_counts_what_waits_and_what_runs(
    url: str, ports: tuple[PostgresJobTable, PostgresWorkQueue]
):
    table, queue = ports
    for n in range(4):
        one = a_job(f"j{n}", state=State.QUEUED)
        add(table, queue, HandClock(NOW), one, delay=1e9 if n == 3 else 0)
    assert queue.receive(most=1, wait=0, visibility=1e9)
    (scaled,) = [doc for doc in yaml.safe_load_all(MANIFEST.read_text()) if doc["kind"] == "ScaledObject"]
    query = scaled["spec"]["triggers"][0]["metadata"]["query"]
    schema = parse_database(url).schema
    with psycopg.connect(servers.postgres().endpoint, autocommit=True) as db:
        db.execute(f"SET ROLE {schema}_reader")
        assert db.execute(query.replace("ade.", f"{schema}.")).fetchone() == (3,)


def test_init_waits_for_a_server_that_starts_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made = Cluster()
    starting = threading.Thread(target=made.start)
    monkeypatch.setenv("ADE_TABLE_URL", made.url)
    monkeypatch.setenv("ADE_STORAGE_DATA_DIR", str(tmp_path))
    try:
        assert main(["infra", "init"]) != 0
        starting.start()
        assert main(["infra", "init", "--wait", "60"]) == 0
        starting.join()
    finally:
        made.remove()
