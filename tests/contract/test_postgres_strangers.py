"""PostgreSQL and what strangers bring: texts that it cannot hold, settings of its owner, clients that freeze."""

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace
from urllib.parse import quote, urlsplit

import psycopg
import pytest

from core.errors import CallRefused
from core.jobs import State, start
from core.ports import Caps, JobQuery, Message, Pause
from infra.postgres import listening
from infra.postgres.connections import Connections, parse_database
from infra.postgres.listening import QUEUE, PostgresBells
from infra.postgres.schema import init_database
from tests.contract import postgres_adapters, servers
from tests.contract.jobs import NOW, a_job
from tests.support.wire_cutter import wire_cutter

pytestmark = pytest.mark.slow

FREE = Caps(tenant=0, workflow=0)


def _waiting(db: psycopg.Connection) -> int:
    """How many wait for an advisory lock."""
    found = db.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").fetchone()
    return found[0] if found else 0


@pytest.mark.parametrize("odd", ["a\0b", "a\ud800b"])
class TestTextsThatPostgresCannotHold:
    def test_nothing_is_found_by_them(self, odd: str):
        with postgres_adapters.postgres_table(postgres_adapters.emptied(), NOW) as table:
            table.add(a_job("a"))
            assert table.get(odd) is None
            assert table.get_all([odd]) == {}
            assert table.line(odd) == ()
            assert table.tally(odd).tenants == {}
            assert table.page(JobQuery(tenant=odd)).jobs == ()
            assert table.page(JobQuery(), cursor=f"0.0|{odd}").jobs == ()
            assert table.resume(odd, None) is False

    def test_a_queue_goes_on_with_the_rest(self, odd: str):
        with postgres_adapters.postgres_queue(postgres_adapters.emptied(), NOW) as queue:
            queue.send(Message(job_id="a", tenant="acme"))
            assert queue.missing([odd, "a"], lambda: 1) == (odd,)
            assert queue.hide(f"1.{odd}", 5) is False
            assert queue.redrive(odd) == 0
            assert len(queue.receive(most=5, wait=0, visibility=30, avoid=frozenset({odd}))) == 1

    def test_a_reason_is_kept_with_a_sign_in_their_place(self, odd: str):
        with postgres_adapters.postgres_queue(postgres_adapters.emptied(), NOW) as queue:
            queue.bury(Message(job_id="a", tenant="acme"), f"because of 日本 {odd}")
            assert queue.dead()[0].reason == "because of 日本 a\ufffdb"

    def test_a_write_to_a_job_of_such_a_name_is_refused(self, odd: str):
        with postgres_adapters.postgres_table(postgres_adapters.emptied(), NOW) as table, pytest.raises(CallRefused):
            table.remove(replace(a_job("a"), job_id=odd))


def test_a_name_too_long_for_an_index_is_refused_at_once_and_not_taken_for_a_server_that_is_down():
    told: list[str] = []
    database = parse_database(postgres_adapters.emptied())
    with closing(Connections(database, on_retry=lambda what, _why: told.append(what))) as connections:
        long = "".join(f"{n:x}" for n in range(8000))
        with pytest.raises(CallRefused, match="index row"):
            connections.change("pause", "add_pause", tenant=long, workflow="", since=NOW, by="x")
    assert told == []


@pytest.mark.parametrize("receipt", ["99999999999999999999.a", "9" * 5000 + ".a", "²3.a", ""])
def test_a_receipt_that_nobody_gave_is_stale(receipt: str):
    with postgres_adapters.postgres_queue(postgres_adapters.emptied(), NOW) as queue:
        assert queue.hide(receipt, 5) is False


STRICTER = quote(r"-c default_transaction_isolation=repeatable\ read")


class TestSettingsOfTheOwner:
    def test_caps_hold_where_transactions_begin_stricter(self):
        """Each start then sees the table as it was before it waited for the others."""
        url = postgres_adapters.emptied(options=STRICTER)
        permit = "hashtextextended('acme', 1)"
        with (
            postgres_adapters.postgres_table(url, NOW) as table,
            psycopg.connect(servers.postgres().endpoint, autocommit=True) as db,
            ThreadPoolExecutor(4) as threads,
        ):
            jobs = [table.add(a_job(f"{n}"))[0] for n in range(4)]
            db.execute(f"SELECT pg_advisory_lock({permit})")
            for job in jobs:
                starting = start(job, owner="r", now=NOW, lease_seconds=30)
                threads.submit(table.admit, job, starting, Caps(tenant=2, workflow=0))
            while _waiting(db) < 4:
                pass
            db.execute(f"SELECT pg_advisory_unlock({permit})")
            threads.shutdown()
            assert table.counts()[State.RUNNING] == 2

    def test_behind_a_pooler_stricter_transactions_are_refused_with_the_remedy(self):
        url = postgres_adapters.emptied(options=STRICTER, pooler="transaction")
        with (
            postgres_adapters.postgres_table(url, NOW) as table,
            pytest.raises(CallRefused, match="default_transaction_isolation = 'read committed'"),
        ):
            table.get("a")

    def test_names_of_any_script_pass_whatever_encoding_the_environment_asks_for(self, monkeypatch: pytest.MonkeyPatch):
        url = postgres_adapters.emptied()
        monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
        with postgres_adapters.postgres_table(url, NOW) as table:
            job, _ = table.add(a_job("a", tenant="日本"))
            assert table.page(JobQuery(tenant="日本")).jobs == (job,)

    def test_a_database_that_cannot_hold_every_script_is_refused(self):
        server = servers.postgres().endpoint
        with psycopg.connect(server, autocommit=True) as db:
            db.execute("CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
            try:
                with pytest.raises(CallRefused, match="LATIN1; make a database with ENCODING 'UTF8'"):
                    init_database(parse_database(server.replace("/postgres", "/latin")), apply=True)
            finally:
                db.execute("DROP DATABASE latin")


def test_a_client_that_freezes_while_it_pauses_holds_up_no_start():
    url = postgres_adapters.emptied()
    where = urlsplit(url)
    schema = parse_database(url).schema
    name = f"""hashtextextended('"{schema}".pauses', 0)"""
    with (
        wire_cutter("127.0.0.1", where.port or 0) as wire,
        psycopg.connect(servers.postgres().endpoint, autocommit=True) as db,
        postgres_adapters.postgres_table(url, NOW) as table,
        postgres_adapters.postgres_table(url.replace(f":{where.port}/", f":{wire.port}/"), NOW) as frozen,
    ):
        job, _ = table.add(a_job("a"))
        db.execute(f"SELECT pg_advisory_lock_shared({name})")  # a start that is under way
        pausing = threading.Thread(
            target=frozen.pause, args=(Pause(tenant="other", workflow=None, since=NOW, by="x"),), daemon=True
        )
        pausing.start()
        while not _waiting(db):
            pass
        wire.silent = True
        db.execute(f"SELECT pg_advisory_unlock_shared({name})")
        db.execute("SET statement_timeout = '5s'")
        db.execute(f"SELECT pg_advisory_lock_shared({name})")
        assert table.admit(job, start(job, owner="r", now=NOW, lease_seconds=30), FREE) is not None
        wire.silent = False
        wire.cut_all()
        db.execute(f"SELECT pg_advisory_unlock_shared({name})")
        pausing.join(30)
    assert not pausing.is_alive()


@pytest.mark.parametrize("delay", [0.0, 600.0])
def test_a_flood_that_no_statistics_know_yet_is_not_read_through_for_each_message(delay: float):
    url = postgres_adapters.emptied()
    schema = parse_database(url).schema
    messages = f"'{schema}.messages'::regclass"
    with (
        postgres_adapters.postgres_queue(url, NOW) as queue,
        psycopg.connect(servers.postgres().endpoint) as db,
    ):
        queue.send_all([(Message(job_id=f"j{n}", tenant="acme"), delay) for n in range(5000)])
        queue.send(Message(job_id="z", tenant="other"))
        for _ in range(8):  # the first calls of a session are planned for their values, later ones for any
            db.execute(f"SELECT {schema}.take_messages({NOW}, 1, 30, '{{}}')")
        assert db.execute(f"SELECT pg_stat_get_xact_numscans({messages})").fetchone() == (0,)


def test_who_listens_notices_a_wire_that_went_silent_and_listens_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(listening, "_ALIVE_SECONDS", 0.1)
    url = postgres_adapters.emptied()
    where = urlsplit(url)
    with wire_cutter("127.0.0.1", where.port or 0) as wire:
        database = parse_database(url.replace(f":{where.port}/", f":{wire.port}/"))
        with (
            closing(Connections(database, try_seconds=0.5)) as connections,
            closing(PostgresBells(connections)) as bells,
        ):
            for silent in (False, True, False):
                wire.silent = silent
                until = time.monotonic() + 20
                while bells.listens is silent and time.monotonic() < until:
                    bells.wait(QUEUE, bells.count(QUEUE), 0.05)
                assert bells.listens is not silent


def test_very_many_messages_are_not_counted_all_the_time(monkeypatch: pytest.MonkeyPatch):
    """Counting takes a second by this clock, which moves on by one each time that it is read."""
    monkeypatch.setattr("infra.postgres.pg_queue._MANY", 3)
    monkeypatch.setattr("infra.postgres.pg_queue.time", SimpleNamespace(monotonic=itertools.count().__next__))
    with postgres_adapters.postgres_queue(postgres_adapters.emptied(), NOW) as queue:
        for n in range(3):
            queue.send(Message(job_id=f"j{n}", tenant="acme"))
            assert queue.stats().ready == n + 1
        for n in range(3, 40):
            queue.send(Message(job_id=f"j{n}", tenant="acme"))
            assert queue.stats().ready == (4 if n < 23 else 24)


def test_a_lane_that_somebody_deleted_is_opened_again():
    url = postgres_adapters.emptied()
    schema = parse_database(url).schema
    with (
        postgres_adapters.postgres_queue(url, NOW) as queue,
        postgres_adapters.postgres_table(url, NOW) as table,
        psycopg.connect(servers.postgres().endpoint, autocommit=True) as db,
    ):
        for n in range(6):
            queue.send(Message(job_id=f"j{n}", tenant=f"t{n % 3}"))
        db.execute(f"DELETE FROM {schema}.lanes WHERE tenant <> 't1'")
        assert {d.message.tenant for d in queue.receive(most=2, wait=0, visibility=30)} == {"t1"}
        table.recount()
        assert sorted(d.message.tenant for d in queue.receive(most=9, wait=0, visibility=30)) == [
            "t0",
            "t0",
            "t2",
            "t2",
        ]
