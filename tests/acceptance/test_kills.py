"""Real processes, really killed: runners and janitor die by SIGKILL at random moments, again and again."""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core.jobs import ENDED, State
from core.keys import OUTPUTS, WORK
from core.settings import Settings
from infra.wiring import open_stack

DROPS = int(os.environ.get("ADE_TEST_KILL_DROPS", "200"))
PATIENCE_SECONDS = 240
MANIFEST = {
    "manifest": 1,
    "name": "members",
    "fields": [{"name": "id", "type": "integer", "required": True}, {"name": "name"}],
}
ENV = {
    "ADE_LEASE_SECONDS": "6",
    "ADE_MAX_ATTEMPTS": "100",  # every kill is our own fault and costs an attempt; here there are very many
    "ADE_RETRY_BACKOFF_SECONDS": "0.1",
    "ADE_TENANT_CONCURRENCY": "0",
    "ADE_WORKFLOW_CONCURRENCY": "0",
    "ADE_LOG_LEVEL": "error",
}


class Crew:
    """Runners and a janitor as processes of their own, on one data folder."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("ADE_")}
        self.env |= ENV | {"ADE_STORAGE_DATA_DIR": str(data)}
        self.jobs = [["run"], ["run"], ["run"], ["janitor", "run"]]
        self.processes = [self.start(job) for job in self.jobs]
        self.kills = 0

    def start(self, words: list[str]) -> subprocess.Popen[bytes]:
        with (self.data / "crew.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "console", *words], env=self.env, stdout=log, stderr=log, start_new_session=True
            )

    def kill_one(self) -> None:
        n = random.randrange(len(self.processes))
        self.processes[n].send_signal(signal.SIGKILL)
        self.processes[n].wait()
        self.processes[n] = self.start(self.jobs[n])
        self.kills += 1

    def end(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(60)


def drop_many(data: Path) -> Settings:
    settings = Settings.from_env(ENV | {"ADE_STORAGE_DATA_DIR": str(data)})
    with open_stack(settings) as stack:
        for n in range(DROPS):
            folder = f"inbox/t{n % 4}/d{n}"
            stack.store.put(f"{folder}/m.csv", f"id;name\n{n};a\n{n + 1};b\n".encode())
            stack.store.put(f"{folder}/manifest.json", json.dumps(MANIFEST).encode())
    subprocess.run(
        [sys.executable, "-m", "console", "sweep"],
        env=os.environ | ENV | {"ADE_STORAGE_DATA_DIR": str(data)},
        check=True,
        capture_output=True,
    )
    return settings


def work_through(data: Path, *, killing: bool) -> tuple[float, int]:
    """Seconds until every drop has ended, and how many processes were killed meanwhile."""
    settings = drop_many(data)
    began, crew = time.monotonic(), Crew(data)
    next_kill = began + 1.5
    try:
        with open_stack(settings) as stack:
            while time.monotonic() < began + PATIENCE_SECONDS:
                counts = stack.table.counts()
                if sum(n for state, n in counts.items() if state in ENDED) == DROPS:
                    break
                stack.table.wait(0.1)
                if killing and time.monotonic() > next_kill:
                    crew.kill_one()
                    next_kill = time.monotonic() + random.uniform(0.5, 3.0)
            else:
                log = (data / "crew.log").read_text()[-2000:]
                raise AssertionError(f"not done in {PATIENCE_SECONDS} s: {stack.table.counts()}\n{log}")
    finally:
        took = time.monotonic() - began
        crew.end()
    return took, crew.kills


def check(data: Path) -> None:
    settings = Settings.from_env(ENV | {"ADE_STORAGE_DATA_DIR": str(data)})
    with open_stack(settings) as stack:
        # A process killed between a job's end and its ack leaves a message that the next runner drops.
        for words in (["janitor", "run-once"], ["run", "--drain"]):
            subprocess.run(
                [sys.executable, "-m", "console", *words],
                env=os.environ | ENV | {"ADE_STORAGE_DATA_DIR": str(data)},
                check=True,
                capture_output=True,
            )
        assert stack.table.counts() == {State.SUCCEEDED: DROPS}
        results = [k for k in stack.store.keys(OUTPUTS) if k.endswith("/result.json")]
        assert len(results) == DROPS
        assert len({k.rsplit("/", 3)[0] for k in results}) == DROPS, "a drop has two results"
        for key in results:
            told = json.loads(stack.store.read(key, limit=1 << 20))
            assert told["status"] == "SUCCEEDED"
            for file in told["files"]:
                body = stack.store.read(key.replace("result.json", file["name"]), limit=1 << 26)
                assert hashlib.sha256(body).hexdigest() == file["sha256"]
        assert not list(stack.store.keys(WORK)), "work/ is not empty"
        stats = stack.queue.stats()
        assert (stats.ready, stats.in_flight, stats.delayed, stats.dead) == (0, 0, 0, 0)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_drop_has_one_result_however_often_the_crew_is_killed(tmp_path, capsys):
    quiet, storm = tmp_path / "quiet", tmp_path / "storm"
    quiet.mkdir()
    storm.mkdir()
    quiet_seconds, _ = work_through(quiet, killing=False)
    storm_seconds, kills = work_through(storm, killing=True)
    check(quiet)
    check(storm)
    assert kills > 0, "nothing was killed: this test tested nothing"
    with capsys.disabled():
        print(
            f"\nkill test: {DROPS} drops, quiet {quiet_seconds:.1f} s, under {kills} kills {storm_seconds:.1f} s: "
            f"{quiet_seconds / storm_seconds:.0%} of the throughput kept"
        )
