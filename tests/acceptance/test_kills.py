"""Real processes, really killed: runners and janitor die by SIGKILL at random moments, again and again."""

import json
import os
import random
import time
from pathlib import Path

import pytest

from core.settings import Settings
from infra.wiring import open_stack
from tests.support.crew import JANITOR, RUN, Crew, call, check_outcome, ended
from tests.support.effort import FULL

DROPS = int(os.environ.get("ADE_TEST_KILL_DROPS", "80" if FULL else "12"))
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


def environment(data: Path) -> dict[str, str]:
    return ENV | {"ADE_STORAGE_DATA_DIR": str(data)}


def drop_many(data: Path) -> Settings:
    settings = Settings.from_env(environment(data))
    with open_stack(settings) as stack:
        for n in range(DROPS):
            folder = f"inbox/t{n % 4}/d{n}"
            stack.store.put(f"{folder}/m.csv", f"id;name\n{n};a\n{n + 1};b\n".encode())
            stack.store.put(f"{folder}/manifest.json", json.dumps(MANIFEST).encode())
    call(environment(data), "sweep")
    return settings


def work_through(data: Path, *, killing: bool) -> tuple[float, int]:
    """Seconds until every drop has ended, and how many processes were killed meanwhile."""
    settings = drop_many(data)
    began = time.monotonic()
    next_kill = began
    with Crew([RUN, RUN, RUN, JANITOR], environment(data), data / "crew.log") as crew, open_stack(settings) as stack:
        while (done := ended(stack)) < DROPS:
            late = time.monotonic() > began + PATIENCE_SECONDS
            assert not late, f"not done in {PATIENCE_SECONDS} s: {stack.table.counts()}\n{crew.said()}"
            stack.table.wait(0.1)
            if killing and done and time.monotonic() > next_kill:
                crew.kill_one()
                next_kill = time.monotonic() + random.uniform(0.5, 3.0)
        took = time.monotonic() - began
    return took, crew.kills


def check(data: Path) -> None:
    # A process killed between a job's end and its ack leaves a message that the next runner drops.
    call(environment(data), "janitor", "run-once")
    call(environment(data), "run", "--drain")
    with open_stack(Settings.from_env(environment(data))) as stack:
        check_outcome(stack, DROPS)
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
