"""PostgreSQL over a wire and a server that fail: lost answers, cuts, silence, a time limit, a full disk, a kill."""

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from core.errors import CallRefused, StoreUnavailable
from core.jobs import Job
from core.ports import Caps, JobQuery, Message, Pause, Refused
from infra.postgres import refusals
from infra.postgres.connections import Connections, parse_database
from infra.postgres.schema import init_database
from tests.contract import postgres_adapters, servers
from tests.contract.jobs import NOW, a_job, with_reason
from tests.contract.postgres_workload import Link, Workload, linked, starting
from tests.support.postgres_server import Cluster, cluster
from tests.support.wire_cutter import wire_cutter

pytestmark = pytest.mark.slow

ONE = Caps(tenant=1, workflow=1)


@pytest.fixture
def link() -> Iterator[Link]:
    """Table and queue over a wire that fails on demand. Nothing is prepared, so that each call is one request."""
    url = postgres_adapters.emptied(pooler="transaction")
    where = urlsplit(url)
    with wire_cutter("127.0.0.1", where.port or 0) as wire:
        through = url.replace(f":{where.port}/", f":{wire.port}/")
        with linked(through, wire) as made:
            made.table.get("warm")
            yield made


class TestLostAnswers:
    """A call that took effect though its answer was lost: the retry must not take its own work for another's."""

    def test_an_added_job_was_made_by_this_call(self, link: Link):
        link.wire.lose_answer_to(b"add_job")
        job, made = link.table.add(a_job("a"))
        assert made
        assert link.table.line(job.line) == (job,)
        assert link.wire.counted["lost"] == 1

    def test_a_replaced_row_was_written_by_this_call(self, link: Link):
        old, _ = link.table.add(a_job("a"))
        link.wire.lose_answer_to(b"SET state")
        new = link.table.replace(old, with_reason(old, "new"))
        assert new is not None
        assert link.table.get(old.job_id) == new
        assert link.wire.counted["lost"] == 1

    def test_another_writers_work_is_not_taken_for_ones_own(self, link: Link):
        old, _ = link.table.add(a_job("a"))
        link.table.replace(old, with_reason(old, "theirs"))
        link.wire.lose_answer_to(b"SET state")
        assert link.table.replace(old, with_reason(old, "ours")) is None

    def test_a_start_takes_one_slot_and_is_not_refused_by_it(self, link: Link):
        old, _ = link.table.add(a_job("a"))
        link.wire.lose_answer_to(b"admit_job")
        assert isinstance(link.table.admit(old, starting(old), ONE), Job)
        assert link.wire.counted["lost"] == 1
        other, _ = link.table.add(a_job("b"))
        assert isinstance(link.table.admit(other, starting(other), ONE), Refused)

    def test_a_removed_row_was_removed_by_this_call(self, link: Link):
        old, _ = link.table.add(a_job("a"))
        link.wire.lose_answer_to(b"remove_job")
        assert link.table.remove(old)
        assert link.table.get(old.job_id) is None

    def test_a_pause_that_was_lifted_was_lifted_by_this_call(self, link: Link):
        link.table.pause(Pause(tenant="acme", workflow=None, since=NOW, by="ops"))
        link.wire.lose_answer_to(b"DELETE FROM")
        assert link.table.resume("acme", None)

    def test_a_lease_that_was_taken_is_held(self, link: Link):
        link.wire.lose_answer_to(b".leases")
        assert link.table.hold("janitor", "one", 30)
        assert not link.table.hold("janitor", "two", 30)

    def test_a_sent_message_is_there_once(self, link: Link):
        link.wire.lose_answer_to(b"send_messages")
        link.queue.send(Message(job_id="a", tenant="acme"))
        assert [d.message.job_id for d in link.queue.receive(most=9, wait=0, visibility=30)] == ["a"]

    def test_a_delivery_that_was_lost_comes_again(self, link: Link):
        link.queue.send(Message(job_id="a", tenant="acme"))
        link.wire.lose_answer_to(b"take_messages")
        (again,) = link.queue.receive(most=1, wait=20, visibility=1)
        assert again.receives == 2


class TestConnections:
    def test_calls_go_on_after_every_connection_was_cut(self, link: Link):
        for n in range(5):
            link.wire.cut_all()
            assert link.table.add(a_job(f"j{n}"))[1]

    def test_a_receiver_that_waits_hears_again_after_a_cut(self, link: Link):
        url = postgres_adapters.url_of(servers.postgres().endpoint, f"t{os.getpid()}")
        where = urlsplit(url)
        got: list[str] = []
        with (
            wire_cutter("127.0.0.1", where.port or 0) as wire,
            linked(url.replace(f":{where.port}/", f":{wire.port}/"), wire) as listening,
        ):
            assert listening.queue.receive(most=1, wait=0.3, visibility=30) == ()
            wire.cut_all()
            waiting = threading.Thread(
                target=lambda: got.extend(
                    d.message.job_id for d in listening.queue.receive(most=1, wait=30, visibility=30)
                )
            )
            waiting.start()
            link.queue.send(Message(job_id="a", tenant="acme"))
            waiting.join(40)
        assert got == ["a"]

    def test_a_silent_wire_ends_a_call_in_time(self):
        url = postgres_adapters.emptied()
        where = urlsplit(url)
        with wire_cutter("127.0.0.1", where.port or 0) as wire:
            through = url.replace(f":{where.port}/", f":{wire.port}/")
            with linked(through, wire, deadline=2, try_seconds=1) as link:
                link.table.get("warm")
                wire.silent = True
                with pytest.raises(StoreUnavailable):
                    link.table.get("x")
                wire.silent = False
                assert link.table.get("x") is None

    def test_a_server_that_is_not_there_is_named_without_its_secrets(self):
        database = parse_database("postgresql://ade:sesame-4711@127.0.0.1:9/ade")
        with (
            closing(Connections(database, deadline=0.5)) as connections,
            pytest.raises(StoreUnavailable, match=r"postgresql://127\.0\.0\.1:9/ade did not answer get x") as caught,
        ):
            connections.run("get x", "get_job", job_id="x")
        assert "sesame" not in f"{caught.value}{database}{database!r}{connections.__dict__}"

    @pytest.mark.parametrize("words", [refusals._WORDS, ()], ids=["in English", "in a language that we do not know"])
    def test_a_role_that_is_unknown_is_refused_at_once(self, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]):
        monkeypatch.setattr(refusals, "_WORDS", words)
        url = servers.postgres().endpoint.replace("ade@", "nobody-knows@")
        with (
            closing(Connections(parse_database(url), deadline=60)) as connections,
            pytest.raises(CallRefused, match="nobody-knows"),
        ):
            connections.run("get x", "get_job", job_id="x")

    def test_a_role_that_is_connected_too_often_is_not_refused_for_good(self):
        server, role = servers.postgres().endpoint, f"crowded{os.getpid()}"
        with psycopg.connect(server, autocommit=True) as db:
            db.execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 0")
        with (
            closing(Connections(parse_database(server.replace("ade@", f"{role}@")), deadline=0.5)) as connections,
            pytest.raises(StoreUnavailable, match="too many connections"),
        ):
            connections.run("get x", "get_job", job_id="x")
        with psycopg.connect(server, autocommit=True) as db:
            db.execute(f"DROP ROLE {role}")

    def test_a_database_without_our_schema_says_how_to_make_it(self):
        url = postgres_adapters.url_of(servers.postgres().endpoint, "elsewhere")
        with (
            closing(Connections(parse_database(url), deadline=60)) as connections,
            pytest.raises(CallRefused, match="ade infra init"),
        ):
            connections.run("get x", "get_job", job_id="x")


def test_a_statement_that_takes_too_long_is_tried_again_and_leaves_nothing_half_done(link: Link):
    """Somebody holds the row for longer than statement_timeout allows."""
    old, _ = link.table.add(a_job("a"))
    url = postgres_adapters.url_of(servers.postgres().endpoint, f"t{os.getpid()}")
    with (
        linked(url, link.wire, deadline=30, try_seconds=1) as hasty,
        psycopg.connect(servers.postgres().endpoint) as other,
    ):
        other.execute(f"SELECT 1 FROM t{os.getpid()}.jobs FOR UPDATE")
        timer = threading.Timer(3, other.rollback)
        timer.start()
        new = hasty.table.replace(old, with_reason(old, "new"))
        timer.join()
    assert hasty.told, "no try ran into its time limit"
    assert "QueryCanceled" in "".join(hasty.told)
    assert link.table.get(old.job_id) == new


@pytest.fixture
def own() -> Iterator[Cluster]:
    try:
        with cluster() as made:
            init_database(parse_database(made.url), apply=True)
            yield made
    except StoreUnavailable as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"{error}")


def test_a_server_that_is_killed_and_started_again_loses_nothing_and_doubles_nothing(own: Cluster):
    with Workload(own.url) as work:
        for _ in range(3):
            work.after(15)
            own.kill()
            own.start()
        work.after(15)
    work.check(own.url)


def test_connections_that_are_cut_again_and_again_lose_nothing_and_double_nothing():
    url = postgres_adapters.emptied()
    where = urlsplit(url)
    with (
        wire_cutter("127.0.0.1", where.port or 0) as wire,
        Workload(url.replace(f":{where.port}/", f":{wire.port}/")) as work,
    ):
        for _ in range(10):
            work.after(5)
            wire.cut_all()
        work.after(5)
    work.check(url)
    assert wire.counted["cut"] > 0


def test_a_full_disk_stops_the_work_and_loses_nothing(tmp_path: Path):
    """The table space is a small file system that fills up and is emptied again, as by an operator."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m,mode=0777", "tmpfs", small], check=False).returncode:
        pytest.skip("this host lets nobody mount a file system")
    with ExitStack() as opened:
        opened.callback(subprocess.run, ["umount", "-l", str(small)], check=False)
        for folder in (tmp_path, *tmp_path.parents):
            if folder.stat().st_uid == os.geteuid() and str(folder).startswith("/tmp/"):
                folder.chmod(0o755)
        made = Cluster(small, config="max_wal_size = 32MB\nmin_wal_size = 32MB\nwal_keep_size = 0\n")
        opened.callback(made.stop)
        made.start()
        init_database(parse_database(made.url), apply=True)
        with Workload(made.url) as work:
            work.after(10)
            ballast = small / "ballast"
            with contextlib.suppress(OSError), ballast.open("wb") as file:
                while True:
                    file.write(bytes(1 << 20))
                    file.flush()
            time.sleep(3)  # while nothing can be written
            ballast.unlink()
            if made.ended():  # where the log itself could not be written, the server stops, as it must
                made.start()
            work.after(10)
        work.check(made.url)
        with linked(made.url) as link:
            assert link.table.page(JobQuery(), limit=1).jobs
