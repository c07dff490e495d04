"""A drop becomes a published result: `ade up`, `ade run` and `ade drop` as real processes."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.acceptance.ade import ADE, CSV, MEMBERS, Terminal


def published(ade, job_id: str) -> dict[str, Path]:
    """The files of a job by name, as the downstream system sees them."""
    folder = ade.bucket / ade("outputs", job_id, "--json").json["outputs"]
    return {path.name: path for path in folder.iterdir()}


def test_a_drop_that_is_waited_for_ends_published(ade):
    with ade.up():
        done = ade.drop("--wait", "--json")
    (job,) = done.json["jobs"]
    files = published(ade, job["job_id"])
    assert job["state"] == "SUCCEEDED"
    assert {"normalized.xlsx", "artifact.json", "report.html", "result.json"} <= files.keys()
    assert json.loads(files["result.json"].read_text())["status"] == "SUCCEEDED"


def test_plain_copies_are_taken_in_any_order(ade):
    with ade.up() as up:
        for tenant, order in {"first": ("manifest.json", "m.csv"), "last": ("m.csv", "manifest.json")}.items():
            folder = ade.bucket / "inbox" / tenant / "2026"
            folder.mkdir(parents=True)
            for name in order:
                text = CSV if name == "m.csv" else json.dumps(MEMBERS)
                (folder / name).write_text(text, encoding="utf-8")
        ends = {tenant: up.ended(tenant)["state"] for tenant in ("first", "last")}
    assert ends == {"first": "SUCCEEDED", "last": "SUCCEEDED"}


def test_what_was_dropped_while_nothing_ran_is_found_at_start(ade):
    ade("sweep")
    folder = ade.bucket / "inbox" / "acme"
    folder.mkdir(parents=True)
    (folder / "m.csv").write_text(CSV, encoding="utf-8")
    (folder / "manifest.json").write_text(json.dumps(MEMBERS), encoding="utf-8")
    with ade.up() as up:
        assert up.ended("acme")["state"] == "SUCCEEDED"


def test_a_manifest_that_does_not_validate_is_rejected_where_its_outputs_would_be(ade):
    wrong = {**MEMBERS, "feilds": []}
    ade.write("members.csv", CSV)
    ade.write("manifest.json", wrong)
    done = ade("drop", "members.csv", "--manifest", "manifest.json", "--tenant", "acme", "--path", "in", expect=2)
    rejected = json.loads((ade.bucket / "outputs/acme/in/rejected.json").read_text())
    (problem,) = rejected["problems"]
    assert (problem["manifest"], problem["path"]) == ("inbox/acme/in/manifest.json", "$.feilds")
    assert problem["problem"] == "is not a known key; did you mean fields?"
    assert problem["allowed"].startswith("known keys here: manifest, name, inputs")
    assert "$.feilds" in done.err


def test_an_unreadable_input_fails_the_job_and_the_command(ade):
    with ade.up():
        ade.write("manifest.json", MEMBERS)
        (ade.home / "broken.xlsx").write_bytes(b"PK\x03\x04 this is no workbook")
        words = ("broken.xlsx", "--manifest", "manifest.json", "--tenant", "acme")
        done = ade("drop", *words, "--wait", "--json", expect=1)
    (job,) = done.json["jobs"]
    assert (job["state"], job["error"]["fault"]) == ("FAILED", "input")
    assert "result.json" in published(ade, job["job_id"])


def test_waiting_without_a_runner_says_so_and_keeps_to_its_time(ade):
    done = ade.drop("--wait", "--timeout", "0.2", expect=3)
    assert "no runner is alive" in done.err


def test_a_run_that_drains_ends_when_nothing_is_left(ade):
    jobs = [ade.dropped(tenant=tenant) for tenant in ("acme", "globex")]
    ade("run", "--drain")
    assert [ade.state(job) for job in jobs] == ["SUCCEEDED", "SUCCEEDED"]


def test_a_drain_does_not_wait_for_jobs_of_a_later_time(ade):
    ade.write("members.csv", CSV)
    ade.write("manifest.json", {**MEMBERS, "not_before": "2999-01-01T00:00:00Z"})
    ade("drop", "members.csv", "--manifest", "manifest.json", "--tenant", "acme")
    ade("run", "--drain")
    assert [job["state"] for job in ade("jobs", "--json").json] == ["SCHEDULED"]


@pytest.mark.parametrize("signals", [(signal.SIGKILL,), (signal.SIGTERM, signal.SIGTERM)], ids=["killed", "hurried"])
def test_a_lone_runner_takes_over_from_one_that_went_without_notice(ade, signals):
    """A rule that sleeps keeps the first runner busy; killed, or asked twice to end, it leaves its job behind."""
    ade.write("members.csv", CSV)
    ade.write("manifest.json", {**MEMBERS, "config": "./config"})
    slow = "import os, time\ndef on_job_start(*, log):\n    time.sleep(0.0 if os.path.exists({!r}) else 60)\n"
    ade.write("config/hooks/slow.py", slow.format(str(ade.home / "go")))
    with ade.up("run", "--json", ADE_SANDBOX="process") as first:
        words = ("members.csv", "--manifest", "manifest.json", "--tenant", "acme", "--json")
        (job,) = ade("drop", *words).json["jobs"]
        first.wait_for(lambda e: e["event"] == "job_started")
        first.end(*signals)
    assert ade.state(job["job_id"]) == "RUNNING"
    (ade.home / "go").touch()
    ade("run", "--drain", ADE_SANDBOX="process", ADE_RETRY_BACKOFF_SECONDS="0")
    assert ade.state(job["job_id"]) == "SUCCEEDED"


def test_logs_are_followed_while_the_job_runs(ade):
    ade.write("members.csv", CSV)
    ade.write("manifest.json", MEMBERS)
    rule = "import os, time\ndef on_job_start(*, log):\n    print('begun', flush=True)\n"
    rule += f"    while not os.path.exists({str(ade.home / 'go')!r}): time.sleep(0.05)\n    print('done')\n"
    ade.write("config/hooks/slow.py", rule)
    with ade.up(ADE_SANDBOX="process") as up:
        words = ("members.csv", "--manifest", "manifest.json", "--tenant", "acme", "--json")
        (job,) = ade("drop", *words).json["jobs"]
        up.wait_for(lambda e: e["event"] == "job_started")
        with subprocess.Popen(
            [str(ADE), "logs", job["job_id"], "-f"], env=ade.environment(), stdout=subprocess.PIPE, text=True
        ) as logs:
            first = logs.stdout.readline()
            (ade.home / "go").touch()
            rest = logs.stdout.read()
    assert (first, rest, logs.returncode) == ("begun\n", "done\n", 0)


def test_on_a_terminal_up_shows_the_jobs_and_ctrl_c_ends_it(ade):
    with Terminal(ade, "up") as screen:
        screen.until("no jobs yet")
        ade.drop("--wait")
        screen.until("SUCCEEDED")
        screen.type("\x03")
        assert screen.end() == 0
    assert "Ctrl-C" in screen.said


def test_sigterm_drains_and_leaves_nothing_behind(ade):
    with ade.up() as up:
        ade.drop("--wait")
        code = up.end(signal.SIGTERM)
    assert code == 0
    assert up.events[-1]["event"] == "down"
    assert not list((ade.data / "run").glob("*.lock"))
    assert not list((ade.bucket / "work").glob("*/*"))


def test_ctrl_c_ends_as_sigterm_does(ade):
    with ade.up() as up:
        assert up.end(signal.SIGINT) == 0


def test_nothing_to_do_costs_next_to_nothing(ade):
    """Well below one percent of a core; the bound is three times that, for machines that are busy otherwise."""
    with ade.up() as up:
        ade.drop("--wait")
        before, began = cpu_seconds(up.process.pid), time.monotonic()
        time.sleep(8)
        share = (cpu_seconds(up.process.pid) - before) / (time.monotonic() - began)
    assert share < 0.03


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads, in nanosecond steps."""
    tasks = Path(f"/proc/{pid}/task")
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9


def test_a_read_only_home_is_an_error_in_words(ade, tmp_path):
    (tmp_path / "file").touch()
    done = ade("jobs", expect=5, ADE_STORAGE_DATA_DIR=str(tmp_path / "file"))
    assert "ADE_STORAGE_DATA_DIR" in done.err


def test_the_demo_runs_without_a_terminal_leaves_results_and_says_what_was_decided(ade):
    said = ade("demo").out
    results = list((ade.home / "demo").rglob("outputs/**/result.json"))
    assert [json.loads(path.read_text())["status"] for path in results] == ["SUCCEEDED"] * 3
    assert all((path.parent / name).exists() for path in results for name in ("normalized.xlsx", "artifact.json"))
    assert "“Member #” is member_id" in said
    assert said.count("Findings:") == 3


def test_a_drop_without_a_manifest_goes_to_the_workflow_that_all_share(ade):
    shared = ade.bucket / "configs" / "_shared" / "members"
    shared.mkdir(parents=True)
    (shared / "manifest.json").write_text(json.dumps({**MEMBERS, "tenants": ["*"], "subscribe": ["in/*.csv"]}))
    ade.write("members.csv", CSV)
    with ade.up():
        done = ade("drop", "members.csv", "--tenant", "acme", "--path", "in", "--wait", "--json")
    (job,) = done.json["jobs"]
    assert (job["state"], job["subject"]) == ("SUCCEEDED", "in/members.csv")
    overlay = {"overlay": 1, "reading": {"delimiter": ";"}}
    (ade.bucket / "configs/acme").mkdir(parents=True)
    (ade.bucket / "configs/acme/members.overlay.json").write_text(json.dumps(overlay))
    ade.write("semicolons.csv", CSV.replace(",", ";"))
    with ade.up():
        (job,) = ade("drop", "semicolons.csv", "--tenant", "acme", "--path", "in", "--wait", "--json").json["jobs"]
    artifact = json.loads(published(ade, job["job_id"])["artifact.json"].read_text())
    assert [one["changes"] for one in artifact["config"]["overlays"]] == [["reading.delimiter"]]
    refused = ade("drop", "members.csv", "--tenant", "acme", expect=2)
    assert "no standing workflow selects inbox/acme/members.csv" in refused.err
    assert not (ade.bucket / "inbox/acme/members.csv").exists()
