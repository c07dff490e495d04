"""A fleet without AWS in a storm: PostgreSQL as table and queue, SeaweedFS as the store, and everything fails.

Processes are killed, the store answers 503 or not at all, connections to the database are cut, messages come twice, the
database is killed with SIGKILL and comes back, and the store has an outage. Every drop must have one result.
"""

import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from core.errors import StoreUnavailable
from core.settings import Settings
from infra.aws.provision import provision
from infra.deploy import local_cloud
from infra.deploy.local_cloud import Hook, free_port
from infra.postgres.schema import init_databases
from infra.wiring import Stack, open_stack
from tests.acceptance.test_cloud_storm import (
    ENV,
    check_published_once,
    drop,
    redeliver,
)
from tests.contract import servers
from tests.support.crew import JANITOR, LISTEN, RUN, Crew, call, check_outcome, ended
from tests.support.fault_proxy import Faults, fault_proxy
from tests.support.postgres_server import Cluster, cluster
from tests.support.wire_cutter import WireCutter, wire_cutter

DROPS = int(os.environ.get("ADE_TEST_STORM_DROPS", "15"))
OUTAGE_SECONDS = float(os.environ.get("ADE_TEST_STORM_OUTAGE", "6"))
PATIENCE_SECONDS = 300 + 10 * DROPS
TOKEN = "a token of some length"


@pytest.fixture(scope="session", autouse=True)
def _servers() -> Iterator[None]:
    yield
    servers.stop_all()


def work_through(stack: Stack, crew: Crew, faults: Faults, wire: WireCutter, database: Cluster) -> int:
    """Drop while everything goes wrong, and wait for the end; how many messages were sent twice."""
    began = time.monotonic()
    next_kill, next_cut, down, crashed, dropped, again = began + 4, began + 3, False, False, 0, 0
    while (done := ended(stack)) < DROPS:
        late = time.monotonic() > began + PATIENCE_SECONDS
        assert not late, f"not done in {PATIENCE_SECONDS} s: {stack.table.counts()}\n{crew.said()}"
        for n in range(dropped, min(DROPS, dropped + 5)):
            drop(stack, n)
        dropped = min(DROPS, dropped + 5)
        stack.table.wait(0.5)
        crew.restart_the_dead()
        if time.monotonic() > next_cut:
            wire.cut_all()
            next_cut = time.monotonic() + random.uniform(1, 5)
        if time.monotonic() > next_kill:
            crew.kill_one()
            again += redeliver(stack)
            next_kill = time.monotonic() + random.uniform(4, 10)
        if not crashed and done >= DROPS // 3:
            database.kill()
            time.sleep(2)  # an outage of the database, not only a restart
            database.start()
            crashed = True
        if not down and done >= DROPS // 5:
            faults.outage(OUTAGE_SECONDS)
            down = True
    assert crashed
    return again


@pytest.mark.slow
@pytest.mark.timeout(PATIENCE_SECONDS + 120)
def test_every_drop_has_one_result_though_processes_store_and_database_fail(tmp_path: Path, capsys):
    faults, port = Faults(busy=0.03, cut=0.02, lost=0.02), free_port()
    with ExitStack() as opened:
        try:
            database = opened.enter_context(cluster())
            hook = Hook(f"http://127.0.0.1:{port}/events", TOKEN)
            store = opened.enter_context(local_cloud.seaweedfs(servers.VENVS, tmp_path / "weed", hook=hook))
        except StoreUnavailable as error:
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(f"{error}")
        opened.enter_context(servers.credentials(store))
        bucket = f"storm-{port}"
        direct = (
            ENV
            | store.environment
            | {
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
        began = time.monotonic()
        with Crew([RUN, RUN, JANITOR, LISTEN], env, tmp_path / "crew.log") as crew:
            again = work_through(stack, crew, faults, wire, database)
            took = time.monotonic() - began
        call(direct | {"ADE_STORAGE_DATA_DIR": env["ADE_STORAGE_DATA_DIR"]}, "janitor", "run-once")
        check_outcome(stack, DROPS)
        copied = check_published_once(servers.admin("s3", store.endpoint), bucket)
        assert stack.queue.stats().dead == 0
    assert crew.kills > 0
    assert wire.counted["cut"] > 0
    with capsys.disabled():
        print(
            f"\npostgres storm: {DROPS} drops in {took:.0f} s, {OUTAGE_SECONDS:g} s outage of the store, database killed "
            f"and started again, {wire.counted['cut']} connections cut, {crew.kills} kills, {again} messages twice, "
            f"faults {dict(faults.injected)}, {copied} files copied twice, 0 results twice"
        )
