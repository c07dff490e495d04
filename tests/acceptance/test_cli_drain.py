"""A runner that is told to end: what it works on may finish, or goes back at once with nothing lost."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.acceptance.ade import CSV, MEMBERS, Ade

BUSY = """
import os, time
def on_job_start(*, log):
    while not os.path.exists({go!r}): time.sleep(0.05)
"""


@pytest.fixture
def ade(tmp_path: Path) -> Ade:
    """With a drop whose job runs until the file `go` is there."""
    made = Ade(tmp_path, {"ADE_SANDBOX": "process", "ADE_SANDBOX_MIN_LEVEL": "limits"})
    made.write("members.csv", CSV)
    made.write("manifest.json", {**MEMBERS, "config": "./config"})
    made.write("config/hooks/busy.py", BUSY.format(go=str(tmp_path / "go")))
    return made


def dropped(ade: Ade) -> str:
    words = ("members.csv", "--manifest", "manifest.json", "--tenant", "acme", "--json")
    return str(ade("drop", *words).json["jobs"][0]["job_id"])


def test_a_job_that_runs_is_finished_within_the_drain_time(ade: Ade):
    job_id = dropped(ade)
    with ade.up("run", "--json", ADE_DRAIN_SECONDS="60") as runner:
        runner.wait_for(lambda e: e["event"] == "job_started")
        runner.process.send_signal(signal.SIGTERM)
        (ade.home / "go").touch()
        assert runner.process.wait(60) == 0
    assert ade.state(job_id) == "SUCCEEDED"


def test_a_job_that_cannot_finish_in_time_goes_back_with_no_attempt_lost(ade: Ade):
    job_id = dropped(ade)
    with ade.up("run", "--json", ADE_DRAIN_SECONDS="0") as runner:
        runner.wait_for(lambda e: e["event"] == "job_started")
        assert runner.end() == 0
    job = ade("status", job_id, "--json").json
    assert (job["state"], job["attempt"], job["attempts_total"]) == ("QUEUED", 0, 1)
    (ade.home / "go").touch()
    ade("run", "--drain")
    assert ade.state(job_id) == "SUCCEEDED"


def test_a_drain_loads_what_it_published_and_ends(tmp_path: Path):
    ade = Ade(tmp_path, {"ADE_SANDBOX": "process", "ADE_SANDBOX_MIN_LEVEL": "limits"})
    load = {"connection": "local", "table": "members"}
    ade.write("members.csv", CSV)
    ade.write("manifest.json", {**MEMBERS, "output": {"formats": ["csv"], "load": load}})
    job_id = dropped(ade)
    ade("run", "--drain")
    (noted,) = ade.bucket.glob(f"outputs/**/{job_id}/load.json")
    assert json.loads(noted.read_text())["status"] == "loaded"


def test_a_drain_does_not_wait_for_a_receiver_that_is_away(tmp_path: Path):
    """The notice stays in its row: a janitor delivers it later."""
    ade = Ade(tmp_path, {"ADE_SANDBOX": "process", "ADE_SANDBOX_MIN_LEVEL": "limits"})
    away = tmp_path / "loads.json"
    away.write_text(json.dumps({"warehouse": {"url": "postgresql://nobody@127.0.0.1:9/none"}}))
    load = {"connection": "warehouse", "table": "members"}
    ade.write("members.csv", CSV)
    ade.write("manifest.json", {**MEMBERS, "output": {"formats": ["csv"], "load": load}})
    job_id = dropped(ade)
    drained = ade("run", "--drain", "--json", ADE_LOAD_FILE=str(away))
    assert "notice_failed" in drained.err + drained.out
    assert ade.state(job_id) == "SUCCEEDED"


def test_a_runner_of_several_that_is_killed_is_replaced_and_its_job_runs_again(ade: Ade):
    job_id = dropped(ade)
    with ade.up("run", "--processes", "2", "--json") as runner:
        runner.wait_for(lambda e: e["event"] == "job_started")
        owner = ade("status", job_id, "--json").json["lease"]["owner"]
        os.kill(int(owner.split("-")[-2]), signal.SIGKILL)
        runner.wait_for(lambda e: e["event"] == "runner_replaced")
        (ade.home / "go").touch()
        runner.wait_for(lambda e: e["event"] == "job_ended" and e["job_id"] == job_id)
        assert runner.end() == 0
    assert ade("status", job_id, "--json").json["attempts_total"] == 2
    assert ade.state(job_id) == "SUCCEEDED"


def test_processes_of_one_command_cannot_share_a_port_for_metrics(ade: Ade):
    done = ade("run", "--processes", "2", expect=2, ADE_METRICS_LISTEN="127.0.0.1:0")
    assert "ADE_METRICS_LISTEN" in done.err
