"""What an operator does to jobs, queue and pauses; no runner is alive unless a test starts one.

The commands run in this process: the same code from the first word on, without the start of an interpreter each.
"""

import json
import zipfile

import pytest

from tests.acceptance.ade import MEMBERS, Ade


@pytest.fixture
def ade(tmp_path):
    return Ade(tmp_path, {"ADE_SANDBOX_MIN_LEVEL": "limits"}, within=True)


def test_a_waiting_job_is_cancelled_at_once_and_says_so(ade):
    job = ade.dropped()
    assert ade("cancel", job, "--json").json[0]["state"] == "CANCELLED"
    result = json.loads((ade.bucket / ade("outputs", job, "--json").json["outputs"] / "result.json").read_text())
    assert result["status"] == "CANCELLED"


def test_a_cancelled_job_can_be_retried_and_then_succeeds(ade):
    job = ade.dropped()
    ade("cancel", job)
    assert ade("retry", job, "--json").json[0]["state"] == "QUEUED"
    ade("run", "--drain")
    assert ade.state(job) == "SUCCEEDED"


def test_waiting_for_a_job_that_was_cancelled_exits_4(ade):
    job = ade.dropped()
    ade("cancel", job)
    assert ade("logs", job, "-f", expect=None).code == 4


def test_reset_runs_again_and_keeps_what_was_published_until_then(ade):
    job = ade.dropped()
    ade("run", "--drain")
    (result,) = ade.bucket.rglob("result.json")
    ade("reset", job)
    assert ade.state(job) == "QUEUED"
    assert json.loads(result.read_text())["attempts"] == 1
    ade("run", "--drain")
    assert json.loads(result.read_text())["attempts"] == 2


def test_retry_uses_the_standing_manifest_that_was_corrected(ade):
    folder = ade.bucket / "configs/acme/members"
    folder.mkdir(parents=True)
    ade.write("m.csv", "id\n1\n")
    for field, again in (("amount", False), ("id", True)):
        manifest = {
            "manifest": 1,
            "name": "members",
            "subscribe": ["*.csv"],
            "fields": [{"name": field, "required": True}],
        }
        (folder / "manifest.json").write_text(json.dumps(manifest))
        if not again:
            (job,) = ade("drop", "m.csv", "--tenant", "acme", "--json").json["jobs"]
        else:
            (job,) = ade("retry", job["job_id"], "--json").json
        ade("run", "--drain")
        assert ade.state(job["job_id"]) == ("SUCCEEDED" if again else "FAILED")


def test_remove_takes_row_outputs_and_input(ade):
    job = ade.dropped()
    ade("run", "--drain")
    assert "nothing was removed" in ade("remove", job, expect=2).err
    assert ade.state(job) == "SUCCEEDED"
    ade("remove", job, "--yes")
    ade("status", job, expect=2)
    assert not list((ade.bucket / "inbox").rglob("*.csv"))
    assert not list((ade.bucket / "outputs").rglob("normalized.xlsx"))


def test_one_job_that_cannot_be_changed_stops_none_of_the_others(ade):
    job = ade.dropped()
    done = ade("cancel", "acme-nothing-00000000", job, "--json", expect=2)
    assert [("refused" in one, one.get("state")) for one in done.json] == [(True, None), (False, "CANCELLED")]


def test_a_paused_tenant_waits_and_a_drain_does_not_wait_for_it(ade):
    ade("pause", "tenant", "acme")
    job = ade.dropped()
    ade("run", "--drain")
    assert ade.state(job) == "QUEUED"
    assert ade("resume", "tenant", "acme", "--json").json == {"resumed": True, "pauses": []}
    ade("run", "--drain")
    assert ade.state(job) == "SUCCEEDED"


def test_pauses_are_listed(ade):
    ade("pause", "all")
    ade("pause", "workflow", "acme", "members")
    scopes = [(p["tenant"], p["workflow"]) for p in ade("pause", "--json").json]
    assert scopes == [(None, None), ("acme", "members")]


def test_retry_failed_lists_before_it_acts(ade):
    ade.write("manifest.json", MEMBERS)
    (ade.home / "broken.xlsx").write_bytes(b"PK\x03\x04 no workbook")
    words = ("broken.xlsx", "--manifest", "manifest.json", "--tenant", "acme", "--json")
    job = ade("drop", *words).json["jobs"][0]["job_id"]
    ade("run", "--drain")
    assert [j["job_id"] for j in ade("retry-failed", "--dry-run", "--json").json] == [job]
    assert ade.state(job) == "FAILED"
    assert ade("retry-failed", "--tenant", "globex", "--json").json == []
    ade("retry-failed", "--tenant", "acme")
    assert ade.state(job) == "QUEUED"


def test_jobs_are_filtered_and_limited(ade):
    mine = ade.dropped(tenant="acme")
    ade.dropped(tenant="globex")
    assert [j["job_id"] for j in ade("jobs", "--tenant", "acme", "--json").json] == [mine]
    assert len(ade("jobs", "--limit", "1", "--json").json) == 1
    assert ade("jobs", "--state", "running", "--json").json == []


def test_outputs_are_downloaded_whole_as_files_or_as_a_zip(ade):
    job = ade.dropped()
    ade("run", "--drain")
    ade("outputs", job, "--to", "got")
    ade("outputs", job, "--zip", "got.zip")
    names = sorted(path.name for path in (ade.home / "got").iterdir())
    with zipfile.ZipFile(ade.home / "got.zip") as archive:
        assert sorted(archive.namelist()) == [f"{job}/{name}" for name in names]
        assert archive.testzip() is None
    assert {"normalized.xlsx", "artifact.json", "result.json"} <= set(names)


def test_queue_stats_count_what_waits(ade):
    ade.dropped()
    stats = ade("queue", "stats", "--json").json
    assert (stats["ready"], stats["in_flight"], stats["dead"], stats["runners"]) == (1, 0, 0, [])
    assert stats["states"] == {"QUEUED": 1}


def test_an_import_accounts_for_every_line(ade):
    job = ade.dropped()
    key = "inbox/acme/members/members.csv"
    lines = [
        json.dumps({"job_id": job}),
        json.dumps({"key": key}),
        "",
        "no json",
        json.dumps({"job_id": "acme-nothing-00000000"}),
        json.dumps({"key": "outputs/acme/x.csv"}),
        json.dumps({"key": "inbox/acme/gone.csv"}),
        json.dumps({"key": "inbox/acme/../globex/m.csv"}),
        json.dumps({"what": 1}),
    ]
    done = ade("queue", "import", "-", "--json", stdin="\n".join(lines), expect=2)
    assert done.json["sent"] == [job]
    assert done.json["recorded"] == [job]
    assert [bad["line"] for bad in sorted(done.json["bad"], key=lambda b: b["line"])] == [4, 5, 6, 7, 8, 9]


def test_janitor_run_once_does_the_sweep(ade):
    ade("sweep")
    folder = ade.bucket / "inbox" / "acme"
    folder.mkdir(parents=True)
    (folder / "m.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    assert ade("janitor", "run-once", "--json").json["sweeps"] == 1
    (job,) = ade("jobs", "--json").json
    assert (job["state"], job["workflow"]) == ("AWAITING", "-")


def test_a_file_that_the_manifest_does_not_select_is_not_dropped(ade):
    ade.write("notes.txt", "x")
    ade.write("manifest.json", MEMBERS)
    done = ade("drop", "notes.txt", "--manifest", "manifest.json", "--tenant", "acme", expect=2)
    assert "*.xlsx, *.csv" in done.err
    assert not ade.bucket.exists()


def test_the_data_time_of_a_drop_selects_by_schedule(ade):
    ade.write("members.csv", "Member #,Gross Pay\nM1,1\n")
    ade.write("manifest.json", {**MEMBERS, "schedule": {"start_time": "2026-01-01T00:00:00Z"}})
    words = ("members.csv", "--manifest", "manifest.json", "--tenant", "acme", "--json")
    (job,) = ade("drop", *words, "--data-time", "2025-06-01").json["jobs"]
    assert job["state"] == "SKIPPED"


def test_a_tenant_that_is_no_name_is_refused(ade):
    assert "tenant" in ade.drop(tenant="../x", expect=2).err
