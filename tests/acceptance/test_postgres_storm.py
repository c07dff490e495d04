"""A fleet without AWS in a storm: PostgreSQL as table and queue, SeaweedFS as the store, and everything fails.

Processes are killed, the store answers 503 or not at all, connections to the database are cut, messages come twice, the
database is killed with SIGKILL and comes back, the store has an outage, and an operator empties the queue. Every drop
must have one result.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from core.errors import StoreUnavailable
from core.settings import Settings
from infra.aws.provision import provision
from infra.deploy import local_cloud
from infra.deploy.local_cloud import Hook, Server, free_port
from infra.postgres.schema import init_databases
from infra.wiring import open_stack
from tests.contract import servers
from tests.support.crew import JANITOR, LISTEN, RUN, Crew, call, check_outcome
from tests.support.fault_proxy import Faults, fault_proxy
from tests.support.postgres_server import Cluster, cluster
from tests.support.storm import ENV, Storm, check_published_once
from tests.support.wire_cutter import wire_cutter

DROPS = int(os.environ.get("ADE_TEST_STORM_DROPS", "8"))
OUTAGE_SECONDS = float(os.environ.get("ADE_TEST_STORM_OUTAGE", "3"))
DOWN_SECONDS = 1.0
PURGE_SECONDS = 5.0
START_SECONDS = 60.0  # a busy machine has not recorded a drop before
PATIENCE_SECONDS = 300 + 10 * DROPS
TOKEN = "a token of some length"


@pytest.fixture(scope="session", autouse=True)
def _servers() -> Iterator[None]:
    yield
    servers.stop_all()


def crash(database: Cluster) -> None:
    """An outage of the database, not only a restart."""
    database.kill()
    time.sleep(DOWN_SECONDS)
    database.start()


@contextlib.contextmanager
def servers_of(folder: Path, hook: Hook) -> Iterator[tuple[Cluster, Server]]:
    """Both at once, since each takes seconds to start."""
    with ExitStack() as opened, ThreadPoolExecutor() as pool:
        try:
            started = pool.submit(opened.enter_context, cluster())
            store = opened.enter_context(local_cloud.seaweedfs(servers.VENVS, folder, hook=hook))
            database = started.result()
        except StoreUnavailable as error:
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(f"{error}")
        yield database, store


@pytest.mark.slow
@pytest.mark.timeout(PATIENCE_SECONDS + 120)
def test_every_drop_has_one_result_though_processes_store_and_database_fail(tmp_path: Path, capsys):
    faults, port = Faults(busy=0.03, cut=0.02, lost=0.02), free_port()
    with ExitStack() as opened:
        hook = Hook(f"http://127.0.0.1:{port}/events", TOKEN)
        database, store = opened.enter_context(servers_of(tmp_path / "weed", hook))
        opened.enter_context(servers.credentials(store))
        bucket = f"storm-{port}"
        direct = (
            ENV
            | store.environment
            | {
                "ADE_LEASE_SECONDS": "5",
                "ADE_SWEEP_SECONDS": "3",  # and with it how soon purged messages are sent again
                "ADE_STORE_URL": f"s3://{bucket}?endpoint={store.endpoint}",
                "ADE_TABLE_URL": database.url,
                "ADE_STORAGE_DATA_DIR": str(tmp_path / "calm"),
                "ADE_WEBHOOK_LISTEN": f"127.0.0.1:{port}",
                "ADE_WEBHOOK_TOKEN": TOKEN,
            }
        )
        calm = Settings.from_env(direct)
        provision(calm, apply=True)
        init_databases(calm, apply=True)
        stack = opened.enter_context(open_stack(calm))
        proxy = opened.enter_context(fault_proxy(store.endpoint, faults))
        wire = opened.enter_context(wire_cutter("127.0.0.1", urlsplit(database.url).port or 0))
        (tmp_path / "crew").mkdir()
        env = direct | {
            "ADE_STORE_URL": f"s3://{bucket}?endpoint={proxy}",
            "ADE_TABLE_URL": database.url.replace(f":{database.port}/", f":{wire.port}/"),
            "ADE_STORAGE_DATA_DIR": str(tmp_path / "crew"),
        }
        purged: list[int] = []

        def purge() -> None:
            """An operator empties the queue once there is something in it."""
            until = time.monotonic() + (PURGE_SECONDS if purged else START_SECONDS)
            with psycopg.connect(database.url, autocommit=True) as db:
                while not (gone := db.execute("DELETE FROM ade.messages").rowcount) and time.monotonic() < until:
                    stack.table.wait(0.05)
            purged.append(gone)

        began = time.monotonic()
        with Crew([RUN, RUN, JANITOR, LISTEN], env, tmp_path / "crew.log") as crew:
            strikes = [
                (0.0, purge),
                (0.2, lambda: faults.outage(OUTAGE_SECONDS)),
                (0.4, lambda: crash(database)),
                (0.6, purge),
            ]
            storm = Storm(stack, crew, DROPS, PATIENCE_SECONDS, strikes)
            storm.gusts, storm.calm, storm.most_kills = [wire.cut_all], (2.0, 5.0), DROPS // 2
            storm.rage()
            took = time.monotonic() - began
        assert sum(purged) > 0
        call(direct | {"ADE_STORAGE_DATA_DIR": env["ADE_STORAGE_DATA_DIR"]}, "janitor", "run-once")
        check_outcome(stack, DROPS)
        copied = check_published_once(servers.admin("s3", store.endpoint), bucket)
        assert stack.queue.stats().dead == 0
    assert crew.kills > 0
    assert wire.counted["cut"] > 0
    with capsys.disabled():
        print(
            f"\npostgres storm: {DROPS} drops in {took:.0f} s, {OUTAGE_SECONDS:g} s outage of the store, database killed "
            f"and started again, {sum(purged)} messages purged, {wire.counted['cut']} connections cut, {crew.kills} kills, {storm.again} messages twice, "
            f"faults {dict(faults.injected)}, {copied} files copied twice, 0 results twice"
        )
