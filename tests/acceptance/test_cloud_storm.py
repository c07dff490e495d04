"""Kills, throttling, lost answers and an outage at once, over S3, SQS and DynamoDB: every drop one result, none lost."""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from core.jobs import ENDED, State
from core.keys import OUTPUTS, WORK
from core.settings import Settings
from infra.local_cloud import free_port
from infra.provision import provision
from infra.wiring import Stack, open_stack
from tests.contract import servers
from tests.support.fault_proxy import Faults, fault_proxy

DROPS = int(os.environ.get("ADE_TEST_STORM_DROPS", "12"))
OUTAGE_SECONDS = float(os.environ.get("ADE_TEST_STORM_OUTAGE", "5"))
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
PARTS = [["run"], ["run"], ["janitor", "run"], ["listen"]]


@pytest.fixture(scope="session", autouse=True)
def _servers() -> Iterator[None]:
    yield
    servers.stop_all()


class Crew:
    def __init__(self, env: dict[str, str], log: Path) -> None:
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("ADE_")} | env
        self.log = log
        self.processes = [self.start(words) for words in PARTS]
        self.kills = 0

    def start(self, words: list[str]) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "console", *words], env=self.env, stdout=log, stderr=log, start_new_session=True
            )

    def kill_one(self) -> None:
        n = random.randrange(len(self.processes))
        self.processes[n].send_signal(signal.SIGKILL)
        self.processes[n].wait()
        self.processes[n] = self.start(PARTS[n])
        self.kills += 1

    def restart_the_dead(self) -> None:
        """What a service manager does with a process that gave up."""
        for n, process in enumerate(self.processes):
            if process.poll() is not None:
                self.processes[n] = self.start(PARTS[n])

    def end(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


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


def work_through(stack: Stack, crew: Crew, faults: Faults) -> None:
    began = time.monotonic()
    next_kill, outage = began + 8, began + 20
    dropped = 0
    while time.monotonic() < began + PATIENCE_SECONDS:
        for n in range(dropped, min(DROPS, dropped + 5)):
            drop(stack, n)
        dropped = min(DROPS, dropped + 5)
        counts = stack.table.counts()
        if dropped == DROPS and sum(n for s, n in counts.items() if s in ENDED) == DROPS:
            return
        stack.table.wait(0.5)
        crew.restart_the_dead()
        if time.monotonic() > next_kill:
            crew.kill_one()
            next_kill = time.monotonic() + random.uniform(3, 8)
        if time.monotonic() > outage:
            faults.outage(OUTAGE_SECONDS)
            outage = float("inf")
    raise AssertionError(f"not done in {PATIENCE_SECONDS} s: {stack.table.counts()}\n{crew.log.read_text()[-3000:]}")


def check(stack: Stack) -> None:
    assert stack.table.counts() == {State.SUCCEEDED: DROPS}
    results = [k for k in stack.store.keys(OUTPUTS) if k.endswith("/result.json")]
    assert len({k.rsplit("/", 3)[0] for k in results}) == len(results) == DROPS
    for key in results:
        told = json.loads(stack.store.read(key, limit=1 << 20))
        assert told["status"] == "SUCCEEDED"
        for file in told["files"]:
            body = stack.store.read(key.replace("result.json", file["name"]), limit=1 << 26)
            assert hashlib.sha256(body).hexdigest() == file["sha256"]
    assert not list(stack.store.keys(WORK)), "work/ is not empty"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_drop_has_one_result_through_kills_faults_and_an_outage(tmp_path: Path, capsys):
    server, name = servers.ministack(), f"storm-{free_port()}"
    faults = Faults(busy=0.03, cut=0.02, lost=0.02)
    with ExitStack() as opened:
        opened.enter_context(servers.credentials(server))
        calm = Settings.from_env(ENV | urls(server.endpoint, name) | {"ADE_STORAGE_DATA_DIR": str(tmp_path)})
        provision(calm, apply=True)
        stack = opened.enter_context(open_stack(calm))
        proxy = opened.enter_context(fault_proxy(server.endpoint, faults))
        env = ENV | server.environment | urls(proxy, name) | {"ADE_STORAGE_DATA_DIR": str(tmp_path / "crew")}
        (tmp_path / "crew").mkdir()
        began, crew = time.monotonic(), Crew(env, tmp_path / "crew.log")
        try:
            work_through(stack, crew, faults)
        finally:
            crew.end()
        took = time.monotonic() - began
        quiet = {**os.environ, **env, **urls(server.endpoint, name)}
        subprocess.run(
            [sys.executable, "-m", "console", "janitor", "run-once"], env=quiet, check=True, capture_output=True
        )
        check(stack)
    assert crew.kills > 0
    assert faults.injected["lost"] > 0
    with capsys.disabled():
        print(f"\ncloud storm: {DROPS} drops in {took:.0f} s, {crew.kills} kills, faults {dict(faults.injected)}")
