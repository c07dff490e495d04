"""`ade erase`: nothing of a tenant is left in bucket, table and data folder, and nobody else loses anything."""

import json
import os
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from console import erasure
from console.api.access import LOCAL, Access, Scope
from console.api.actions import ActionLog
from core.jobs import Lease, State
from core.ports import JobQuery, Message
from core.settings import Settings
from infra.logs import Log
from infra.wiring import open_stack
from tests.acceptance.ade import Ade

CANARY = "Kanarienvogel"
LOADED = {
    "manifest": 1,
    "name": "members",
    "fields": [{"name": "member_id", "required": True, "synonyms": ["member #"]}, {"name": "gross_pay"}],
    "output": {"formats": ["xlsx", "csv"], "load": {"connection": "local", "table": "members"}},
}


@pytest.fixture
def ade(tmp_path):
    return Ade(tmp_path, {"ADE_SANDBOX_MIN_LEVEL": "limits"}, within=True)


def files_with(folder: Path, text: str) -> list[str]:
    """Every file that has a text in its path or in any of its bytes."""
    found = [str(p) for p in folder.rglob("*") if text.lower() in str(p.relative_to(folder)).lower()]
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and text.encode().lower() in path.read_bytes().lower():
            found.append(str(path))
    return found


def drop_all(ade: Ade, tenant: str, mark: str) -> None:
    csv = f"Member #,Gross Pay\n{mark}-1,1\n{mark}-2,2\n"
    for name, manifest in (
        (f"{mark}.csv", LOADED),
        (f"{mark}-broken.csv", LOADED | {"name": f"{mark.lower()}-broken"}),
    ):
        body = csv if manifest is LOADED else "nothing\n1\n"
        ade.write(name, body)
        ade.write("manifest.json", manifest)
        ade("drop", name, "--manifest", "manifest.json", "--tenant", tenant, "--path", name)


def furnish(ade: Ade, tenant: str, mark: str) -> None:
    """A tenant with all that one may have, `mark` in every part of it."""
    configs = ade.bucket / "configs" / tenant
    for path in (f"{mark}/.versions/abc/manifest.json", f"{mark}.memory.json", f"{mark}/.draft/manifest.json"):
        (configs / path).parent.mkdir(parents=True, exist_ok=True)
        (configs / path).write_text(mark)
    inbox = ade.bucket / "inbox" / tenant
    (inbox / f".{mark}.part").write_text(mark)
    (inbox / "link").symlink_to(ade.home)
    with open_stack(Settings.from_env(ade.environment())) as stack:
        job = stack.table.page(JobQuery(tenant=tenant)).jobs[0]
        stack.store.put(f"work/{job.job_id}/9/x", mark.encode())
        stack.store.put(f"work/{tenant}-{mark.lower()}-zzzzzzzz/1/x", mark.encode())
        stack.store.put(f"replays/r1/{tenant}/{mark}.csv/members/j/result.json", mark.encode())
        stack.queue.send(Message(job_id=job.job_id, tenant=tenant), delay=9999)
        stack.queue.bury(Message(job_id=job.job_id, tenant=tenant), f"{mark} reason")
        actions = ActionLog(stack.store, stack.clock, Log(level="error"))
        actions.note(LOCAL, "retry", tenant=tenant, job_id=job.job_id, why=mark)
        actions.note(LOCAL, "retry-many", jobs=[job.job_id], why=mark)
        Access(stack.store, stack.clock).new(f"{mark} token", Scope.SENDER, tenant=tenant)
        report = {"differences": [{"tenant": tenant, "job_id": job.job_id, "subject": mark}]}
        there = stack.store.head("replays/r1/report.json")
        before = json.loads(stack.store.read("replays/r1/report.json", limit=9999))["differences"] if there else []
        stack.store.put("replays/r1/report.json", json.dumps({"differences": before + report["differences"]}).encode())


def facts(ade: Ade, tenant: str) -> dict[str, bytes]:
    """Everything of a tenant that must stay: objects, rows, loaded rows."""
    found = {str(p): p.read_bytes() for p in ade.bucket.rglob(f"*/{tenant}/**/*") if p.is_file() and not p.is_symlink()}
    with sqlite3.connect(ade.data / "ade.sqlite") as db:
        for name in ("jobs", "messages", "dead_letters"):
            rows = db.execute(f"SELECT * FROM {name} WHERE tenant = ? ORDER BY job_id", (tenant,)).fetchall()
            found[name] = repr(rows).encode()
    with sqlite3.connect(ade.data / "loaded.sqlite") as db:
        (table,) = db.execute("SELECT name FROM ade_loads WHERE line LIKE ?", (f"{tenant}/%",)).fetchone()
        found["loaded"] = repr(db.execute(f'SELECT * FROM "{table}"').fetchall()).encode()
    return found


@pytest.mark.slow
def test_no_byte_of_a_tenant_is_left_and_neighbours_keep_everything(ade: Ade):
    tenants = {"acme": CANARY, "acme-2": "Nachbar"}
    for tenant, mark in tenants.items():
        drop_all(ade, tenant, mark)
    ade("run", "--drain")
    ade("janitor", "run-once")  # loads the results
    for tenant, mark in tenants.items():
        furnish(ade, tenant, mark)
    before = facts(ade, "acme-2")
    assert len(files_with(ade.data, CANARY)) > 10
    os.truncate(ade.home / "manifest.json", 0)
    done = ade("erase", "acme", "--yes", "--json").json
    assert done["found"] == []
    assert done["searched"]["bytes"] > 10_000
    gone = done["erased"]
    assert (gone["jobs"], gone["tokens"], gone["rows loaded into local"]) == (2, 1, 2)
    assert all(gone[name] for name in ("inbox", "configs", "outputs", "work", "replays", "action log and answers"))
    assert files_with(ade.data, CANARY) == []
    assert facts(ade, "acme-2") == before
    assert len(files_with(ade.data, "Nachbar")) > 10
    again = ade("erase", "acme", "--yes", "--json").json
    assert not again["found"]
    assert not any(count for name, count in again["erased"].items() if name != "action log and answers")
    # Nothing comes back, and nothing is accepted, until somebody ends the quarantine.
    (ade.bucket / "inbox/acme").mkdir()
    (ade.bucket / "inbox/acme/members.csv").write_text("Member #,Gross Pay\nM1,1\n")
    (ade.bucket / "inbox/acme/manifest.json").write_text(json.dumps(LOADED))
    ade("janitor", "run-once")
    assert ade("jobs", "--tenant", "acme", "--json").json == []
    assert "quarantine" in ade("resume", "tenant", "acme", expect=2).err
    ade("quarantine", "acme", "--end")
    ade("sweep")
    assert [job["state"] for job in ade("jobs", "--tenant", "acme", "--json").json] == ["QUEUED"]


def test_an_erasure_that_is_killed_at_any_step_is_finished_by_the_next(ade: Ade, monkeypatch):
    steps = ("_stop_jobs", "_remove_rows", "_remove_files", "_revoke", "_clear_machine", "_search")
    for step in steps:
        ade.write("members.csv", f"Member #,Gross Pay\n{CANARY},1\n")
        ade.write("manifest.json", LOADED)
        ade("drop", "members.csv", "--manifest", "manifest.json", "--tenant", "acme", "--path", CANARY)
        if os.fork() == 0:
            monkeypatch.setattr(erasure, step, lambda *_: os._exit(0))
            ade("erase", "acme", "--yes")
            os._exit(1)
        assert os.wait()[1] == 0
        assert ade("erase", "acme", "--yes", "--json").json["found"] == []
        assert files_with(ade.data, CANARY) == [], f"killed at {step}"
        ade("quarantine", "acme", "--end")


def test_nobody_is_erased_by_mistake(ade: Ade):
    job = ade.dropped()
    assert "--yes" in ade("erase", "acme", expect=2).err
    assert "not a tenant name" in ade("erase", "../acme", "--yes", expect=2).err
    assert "not a tenant name" in ade("erase", "acme/members", "--yes", expect=2).err
    assert "nothing of a tenant acm;" in ade("erase", "acm", "--yes", expect=2).err
    assert ade.state(job) == "QUEUED"
    assert ade("quarantine", "--json").json == {"quarantine": [], "cancelled": []}


def test_a_running_job_is_waited_for_and_nothing_is_erased_before_it_ends(ade: Ade):
    job_id = ade.dropped()
    with open_stack(Settings.from_env(ade.environment())) as stack:
        job = stack.table.get(job_id)
        lease = Lease(owner="elsewhere", expires=stack.clock.now() + 600)
        stack.table.replace(job, replace(job, state=State.RUNNING, lease=lease, fence=job.fence + 1))
    done = ade("erase", "acme", "--yes", "--wait", "0.1", expect=5)
    assert "nothing was erased yet" in done.err
    assert next((ade.bucket / "inbox/acme").rglob("members.csv"))
    assert "cancel_requested_at" in ade("status", job_id, "--json").out
