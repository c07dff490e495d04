"""Kills, throttling, lost answers, duplicate messages and an outage at once, over S3, SQS and DynamoDB.

Every drop must have one result, none may be lost, and none published twice: the bucket keeps every version of every
object, so a second publication would stand there to be counted.
"""

import json
import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from core.keys import OUTPUTS
from core.ports import JobQuery, Message
from core.settings import Settings
from infra.aws.provision import provision
from infra.deploy.local_cloud import free_port
from infra.wiring import Stack, open_stack
from tests.contract import servers
from tests.support.crew import JANITOR, LISTEN, RUN, Crew, call, check_outcome, ended
from tests.support.effort import FULL
from tests.support.fault_proxy import Faults, fault_proxy

DROPS = int(os.environ.get("ADE_TEST_STORM_DROPS", "24" if FULL else "15"))
OUTAGE_SECONDS = float(os.environ.get("ADE_TEST_STORM_OUTAGE", "15" if FULL else "8"))
PATIENCE_SECONDS = 300 + 10 * DROPS
MANIFEST = {"manifest": 1, "name": "members", "fields": [{"name": "id", "type": "integer"}, {"name": "name"}]}
ENV = {
    "ADE_LEASE_SECONDS": "8",
    "ADE_MAX_ATTEMPTS": "100",
    "ADE_RETRY_BACKOFF_SECONDS": "0.1",
    "ADE_TENANT_CONCURRENCY": "3",
    "ADE_LOG_LEVEL": "error",
    "ADE_SANDBOX": "process",
    "ADE_SANDBOX_MIN_LEVEL": "limits",
    "ADE_SWEEP_SECONDS": "20",
}


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


def drop(stack: Stack, n: int) -> None:
    folder = f"inbox/t{n % 4}/d{n}"
    stack.store.put(f"{folder}/m.csv", f"id;name\n{n};a\n{n + 1};b\n".encode())
    stack.store.put(f"{folder}/manifest.json", json.dumps(MANIFEST).encode())


def redeliver(stack: Stack) -> int:
    """Messages that come a second time, for jobs in whatever state they are."""
    jobs = stack.table.page(JobQuery(), limit=20).jobs
    for job in random.sample(jobs, min(2, len(jobs))):
        stack.queue.send(Message(job_id=job.job_id, tenant=job.tenant))
    return min(2, len(jobs))


def work_through(stack: Stack, crew: Crew, faults: Faults) -> int:
    """Drop while everything goes wrong, and wait for the end; how many messages were sent twice."""
    began = time.monotonic()
    next_kill, down, dropped, again = began + 4, False, 0, 0
    while (done := ended(stack)) < DROPS:
        late = time.monotonic() > began + PATIENCE_SECONDS
        assert not late, f"not done in {PATIENCE_SECONDS} s: {stack.table.counts()}\n{crew.said()}"
        for n in range(dropped, min(DROPS, dropped + 5)):
            drop(stack, n)
        dropped = min(DROPS, dropped + 5)
        stack.table.wait(0.5)
        crew.restart_the_dead()
        if time.monotonic() > next_kill:
            crew.kill_one()
            again += redeliver(stack)
            next_kill = time.monotonic() + random.uniform(4, 10)
        if not down and done >= DROPS // 5:
            faults.outage(OUTAGE_SECONDS)
            down = True
    return again


def versions(s3: Any, bucket: str) -> dict[str, list[str]]:
    """The ETags of every version that each output ever had; deletions are told as "deleted"."""
    found: dict[str, list[str]] = {}
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=OUTPUTS):
        for version in page.get("Versions", ()):
            found.setdefault(version["Key"], []).append(version["ETag"])
        for marker in page.get("DeleteMarkers", ()):
            found.setdefault(marker["Key"], []).append("deleted")
    return found


def check_published_once(s3: Any, bucket: str) -> int:
    """A result is written once. A file may be copied again by whoever finishes for another, and is the same then.

    `status.json` is no output: it is there only while something waits, as a drop does during an outage.
    """
    found = {key: etags for key, etags in versions(s3, bucket).items() if not key.endswith("/status.json")}
    results = {key: etags for key, etags in found.items() if key.endswith("/result.json")}
    assert {key: n for key, etags in results.items() if (n := len(etags)) != 1} == {}, "published more than once"
    assert {key: etags for key, etags in found.items() if len(set(etags)) != 1} == {}, "an output changed"
    return sum(len(etags) for etags in found.values()) - len(found)


@pytest.mark.slow
@pytest.mark.timeout(PATIENCE_SECONDS + 120)
def test_every_drop_has_one_result_through_kills_faults_and_an_outage(tmp_path: Path, capsys):
    server, name = servers.ministack(), f"storm-{free_port()}"
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
            again = work_through(stack, crew, faults)
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
            f"{again} messages twice, faults {dict(faults.injected)}, {copied} files copied twice, 0 results twice"
        )
