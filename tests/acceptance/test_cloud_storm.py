"""Kills, throttling, lost answers, duplicate messages and an outage at once, over S3, SQS and DynamoDB.

Every drop must have one result, none may be lost, and none published twice: the bucket keeps every version of every
object, so a second publication would stand there to be counted.
"""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from secrets import token_hex

import pytest

from core.settings import Settings
from infra.aws.provision import provision
from infra.wiring import open_stack
from tests.contract import servers
from tests.support.crew import JANITOR, LISTEN, RUN, Crew, call, check_outcome
from tests.support.effort import FULL
from tests.support.fault_proxy import Faults, fault_proxy
from tests.support.storm import ENV, Storm, check_published_once

DROPS = int(os.environ.get("ADE_TEST_STORM_DROPS", "24" if FULL else "8"))
OUTAGE_SECONDS = float(os.environ.get("ADE_TEST_STORM_OUTAGE", "15" if FULL else "8"))
PATIENCE_SECONDS = 300 + 10 * DROPS


@pytest.fixture(scope="session", autouse=True)
def _servers() -> Iterator[None]:
    yield
    servers.stop_all()


def urls(endpoint: str, name: str) -> dict[str, str]:
    return {
        "ADE_STORE_URL": f"s3://{name}?endpoint={endpoint}",
        "ADE_TABLE_URL": f"dynamodb://{name}?endpoint={endpoint}",
        "ADE_QUEUE_URL": f"sqs://{name}-work?endpoint={endpoint}",
        "ADE_EVENTS_URL": f"sqs://{name}-events?endpoint={endpoint}",
    }


@pytest.mark.slow
@pytest.mark.timeout(PATIENCE_SECONDS + 120)
def test_every_drop_has_one_result_through_kills_faults_and_an_outage(tmp_path: Path, capsys):
    server, name = servers.ministack(), f"storm-{token_hex(4)}"
    faults = Faults(busy=0.03, cut=0.02, lost=0.02)
    with ExitStack() as opened:
        opened.enter_context(servers.credentials(server))
        direct = ENV | server.environment | urls(server.endpoint, name) | {"ADE_STORAGE_DATA_DIR": str(tmp_path)}
        calm = Settings.from_env(direct)
        provision(calm, apply=True)
        stack = opened.enter_context(open_stack(calm))
        proxy = opened.enter_context(fault_proxy(server.endpoint, faults))
        env = direct | urls(proxy, name) | {"ADE_STORAGE_DATA_DIR": str(tmp_path / "crew")}
        (tmp_path / "crew").mkdir()
        began = time.monotonic()
        with Crew([RUN, RUN, JANITOR, LISTEN, LISTEN], env, tmp_path / "crew.log") as crew:
            outage = (0.2, lambda: faults.outage(OUTAGE_SECONDS))
            storm = Storm(stack, crew, DROPS, PATIENCE_SECONDS, strikes=[outage], most_kills=DROPS // 2)
            storm.rage()
            took = time.monotonic() - began
        call(direct | {"ADE_STORAGE_DATA_DIR": env["ADE_STORAGE_DATA_DIR"]}, "janitor", "run-once")
        check_outcome(stack, DROPS)
        copied = check_published_once(servers.admin("s3", server.endpoint), name)
        assert stack.queue.stats().dead == 0
    assert crew.kills > 0
    assert all(faults.injected[fault] > 0 for fault in ("busy", "cut", "lost", "down")), faults.injected
    with capsys.disabled():
        print(
            f"\ncloud storm: {DROPS} drops in {took:.0f} s, {OUTAGE_SECONDS:g} s outage, {crew.kills} kills, "
            f"{storm.again} messages twice, faults {dict(faults.injected)}, {copied} files copied twice, 0 results twice"
        )
