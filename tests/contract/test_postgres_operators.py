"""What operators do to a PostgreSQL server while a fleet works on it: the fleet waits, says why, and goes on by itself."""

import itertools
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
import pytest

from core.errors import CallRefused, StoreUnavailable
from core.jobs import Job
from core.ports import JobQuery
from infra.postgres import schema
from infra.postgres.connections import SCHEMA_VERSION, Connections, parse_database
from infra.postgres.schema import init_database
from tests.contract import postgres_adapters, servers
from tests.contract.jobs import NOW, a_job
from tests.contract.postgres_workload import FREE, Workload, linked, starting
from tests.support.pgbouncer import pgbouncer
from tests.support.postgres_server import Cluster, cluster
from tests.support.wire_cutter import wire_cutter

pytestmark = pytest.mark.slow
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    """A server whose settings the tests change, with few connections."""
    try:
        with cluster("max_connections = 20\nsuperuser_reserved_connections = 1\nwal_level = replica\n") as made:
            yield made
    except StoreUnavailable as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"{error}")


@pytest.fixture
def url(own: Cluster) -> str:
    """A schema of the test's own."""
    made = f"{own.url}?schema=s{next(_NUMBERS)}"
    init_database(parse_database(made), apply=True)
    return made


def configure(server: Cluster, **settings: str | None) -> None:
    """Change the settings of a running server."""
    with psycopg.connect(server.url, autocommit=True) as db:
        for name, value in settings.items():
            db.execute(f"ALTER SYSTEM SET {name} = '{value}'" if value is not None else f"ALTER SYSTEM RESET {name}")
        db.execute("SELECT pg_reload_conf()")


def wait_for(what: Callable[[], Any], seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, f"it did not come in {seconds} s"
        time.sleep(0.02)


def test_a_fleet_that_gets_no_connection_waits_and_says_why_and_goes_on(own: Cluster, url: str):
    with (
        wire_cutter("127.0.0.1", own.port) as wire,
        linked(url.replace(f":{own.port}/", f":{wire.port}/"), wire) as link,
        ExitStack() as hogs,
    ):
        job, _ = link.table.add(a_job("hog"))
        asking: list[threading.Thread] = []

        def ask() -> None:
            with suppress(StoreUnavailable):  # whoever waited longest has given up
                link.table.get("warm")

        for _ in range(60):  # others take every connection, also those that ours leave behind
            wire.cut_all()
            try:
                hogs.enter_context(closing(psycopg.connect(own.url, autocommit=True)))
            except psycopg.OperationalError:
                if link.told:
                    break
                asking.append(threading.Thread(target=ask))
                asking[-1].start()
                time.sleep(0.1)
        wait_for(lambda: any("too many clients" in why or "remaining connection" in why for why in link.told))
        waiting = threading.Thread(target=link.table.replace, args=(job, replace(job, reason="after all")))
        waiting.start()
        hogs.close()
        for thread in (waiting, *asking):
            thread.join(60)
        found = link.table.get(job.job_id)
        assert found is not None
        assert found.reason == "after all"


def test_a_server_that_turns_read_only_stops_the_work_and_loses_nothing(own: Cluster, url: str):
    """As an old primary does after a failover, or a managed one whose disk is full."""
    with Workload(url, threads=2) as work:
        work.after(5)
        configure(own, default_transaction_read_only="on")
        done = len(work.done)
        time.sleep(0.5)
        assert len(work.done) <= done + 2
        with psycopg.connect(own.url, autocommit=True) as db:
            db.execute("SET default_transaction_read_only = off")
            db.execute("ALTER SYSTEM RESET default_transaction_read_only")
            db.execute("SELECT pg_reload_conf()")
        work.after(5)
    work.check(url)


def test_a_server_that_comes_back_with_other_settings_changes_nothing(own: Cluster, url: str):
    with Workload(url, threads=2) as work:
        work.after(5)
        configure(
            own,
            timezone="Pacific/Chatham",
            log_timezone="Asia/Kathmandu",
            datestyle="German",
            intervalstyle="iso_8601",
            lc_time="C",
            lc_numeric="C",
            extra_float_digits="-5",
            bytea_output="escape",
            idle_in_transaction_session_timeout="50ms",
            idle_session_timeout="200ms",
            lock_timeout="20ms",
            default_transaction_isolation="serializable",
        )
        own.stop()
        own.start()
        work.after(10)
    work.check(url)
    with linked(url) as link:  # pages hold on to times that a rounding server would change
        ids = [link.table.add(a_job(f"p{n}", created_at=NOW + 0.1 + n * 3e-7))[0].job_id for n in range(9)]
        found, cursor = [], None
        while True:
            page = link.table.page(JobQuery(created_from=NOW + 0.05, created_to=NOW + 0.2), limit=1, cursor=cursor)
            found += [job.job_id for job in page.jobs]
            if (cursor := page.cursor) is None:
                break
    configure(own, **dict.fromkeys(["extra_float_digits", "default_transaction_isolation", "lock_timeout", "timezone"]))
    assert found == ids[::-1]


def test_a_server_that_is_killed_behind_pgbouncer_loses_nothing(own: Cluster, url: str):
    with ExitStack() as opened:
        with servers.or_skip():
            through = url.replace(own.url, opened.enter_context(pgbouncer(own.url)))
        work = opened.enter_context(Workload(through, threads=2))
        work.after(5)
        own.kill()
        own.start()
        work.after(5)
    work.check(url)


def test_behind_a_pooler_a_server_that_rounds_is_refused_with_the_remedy():
    url = postgres_adapters.emptied(options=quote("-c extra_float_digits=0"), pooler="transaction")
    with (
        postgres_adapters.postgres_table(url, NOW) as table,
        pytest.raises(CallRefused, match="extra_float_digits = 1"),
    ):
        table.get("a")


def test_two_fleets_share_a_database_and_see_nothing_of_each_other(own: Cluster, url: str):
    other = f"{own.url}?schema=other"
    init_database(parse_database(other), apply=True)
    with Workload(other, threads=2) as there, Workload(url, threads=2) as here:  # with the same tenants and jobs
        there.after(10)
        here.after(10)
    there.check(other)
    here.check(url)


def test_a_fleet_follows_a_failover_to_a_standby_that_has_everything(own: Cluster, url: str):
    standby = own.standby()
    try:
        standby.start()
        configure(own, synchronous_standby_names="*")
        both = url.replace(f":{own.port}/", f":{standby.port},127.0.0.1:{own.port}/")
        with Workload(both, threads=2) as work:
            work.after(10)
            own.kill()
            time.sleep(0.5)  # while there is only a standby, which takes no writes
            with psycopg.connect(standby.url, autocommit=True) as db:
                db.execute("SELECT pg_promote()")
            work.after(10)
        work.check(both)
    finally:
        standby.remove()
        (own.data / "postgresql.auto.conf").write_text("")
        if own.ended():
            own.start()


def test_a_migration_whose_process_is_killed_leaves_nothing_and_the_next_one_makes_it():
    url = f"{servers.postgres().endpoint}?schema=killed"
    first = multiprocessing.get_context("fork").Process(target=_migrate_slowly, args=(url,))
    first.start()
    with psycopg.connect(servers.postgres().endpoint, autocommit=True) as db:
        try:
            asleep = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
            wait_for(lambda: db.execute(asleep).fetchone() != (0,))
        finally:
            first.kill()
            first.join()
        steps = init_database(parse_database(url), apply=True)  # waits for what is left of the first, not an hour
        assert [(step.action, step.detail) for step in steps if step.kind == "schema"] == [
            ("create", f"version {SCHEMA_VERSION}")
        ]
        assert init_database(parse_database(url), apply=True)[0].action == "keep"
        with closing(Connections(parse_database(url))) as connections:
            assert connections.run("count", "counts") == []
        db.execute("DROP SCHEMA killed CASCADE")


def _migrate_slowly(url: str) -> None:
    made = schema.migrations()
    schema.migrations = lambda: made | {1: made[1] + "; SELECT pg_sleep(3600)"}
    init_database(parse_database(url), apply=True)


def test_a_start_that_is_the_victim_of_a_deadlock_is_tried_again():
    """Somebody with psql holds the row, and then wants what a start holds."""
    url = postgres_adapters.emptied(options=quote("-c deadlock_timeout=300ms"))
    name = parse_database(url).schema
    with linked(url) as link, psycopg.connect(servers.postgres().endpoint) as other:
        job, _ = link.table.add(a_job("a"))
        other.execute("SET deadlock_timeout = '60s'")
        other.execute(f"SELECT 1 FROM {name}.jobs FOR UPDATE")
        got: list[Any] = []
        starter = threading.Thread(target=lambda: got.append(link.table.admit(job, starting(job), FREE)))
        starter.start()
        with psycopg.connect(servers.postgres().endpoint, autocommit=True) as db:
            blocked = "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))"
            wait_for(lambda: db.execute(blocked, (other.info.backend_pid,)).fetchone() != (0,))
        other.execute(f"""SELECT pg_advisory_xact_lock(hashtextextended('"{name}".pauses', 0))""")
        other.rollback()
        starter.join(30)
        assert any("DeadlockDetected" in why for why in link.told)
        assert isinstance(got[0], Job)


@pytest.mark.parametrize(
    "limit", ["statement_timeout=50ms", "lock_timeout=10ms", "idle_in_transaction_session_timeout=10ms"]
)
def test_a_migration_takes_its_time_whatever_limits_the_role_has(limit: str):
    where = urlsplit(servers.postgres().endpoint)
    url = where._replace(query=f"schema=limited&options={quote(f'-c {limit}')}").geturl()
    with psycopg.connect(servers.postgres().endpoint, autocommit=True) as db:
        db.execute(f"SELECT pg_advisory_lock({schema._LOCK})")
        threading.Timer(0.2, lambda: db.execute(f"SELECT pg_advisory_unlock({schema._LOCK})")).start()
        assert init_database(parse_database(url), apply=True)[0].action == "create"
        db.execute("DROP SCHEMA limited CASCADE")
