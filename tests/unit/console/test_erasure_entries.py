"""What `ade erase` finds of a tenant by its name: its log entries and staged files, whatever it is called."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from console.api.access import LOCAL
from console.api.actions import ActionLog
from console.erasure import erase_tenant
from core.jobs import OutputFile, State, job_id
from core.settings import Settings
from infra.logs import Log
from infra.wiring import open_stack
from runner.control import Control
from tests.support.console import api_rig


@pytest.mark.parametrize("tenant", ["local", "retry", "members", "jobs"])
def test_entries_of_others_stay_that_name_something_as_the_tenant_is_called(tmp_path: Path, tenant: str):
    with open_stack(Settings(storage_data_dir=tmp_path)) as stack:
        actions = ActionLog(stack.store, stack.clock, Log(level="error"))
        actions.note(LOCAL, "retry", tenant="acme", workflow="members", jobs=["acme-members-1"], on="jobs")
        actions.note(LOCAL, "pause", tenant=tenant, workflow=None)
        actions.note(LOCAL, "retry", filter={"tenant": tenant}, jobs=[])
        control = Control(stack.store, stack.table, stack.queue, stack.clock)
        report = erase_tenant(stack, control, tenant, by="ops", wait_seconds=1, note=lambda _: None)
        assert report.erased["action log and answers"] == 2
        assert [one["tenant"] for one in actions.latest(10)] == ["acme"]


@pytest.mark.parametrize("tenant", ["acme", "Acme.North Ltd", "a-name-of-more-than-twenty-four-letters"])
def test_staged_files_of_a_job_that_was_removed_go_with_their_tenant(tmp_path: Path, tenant: str):
    with open_stack(Settings(storage_data_dir=tmp_path)) as stack:
        staged = f"work/{job_id(tenant, 'members', 'f' * 64)}/1/normalized.csv"
        stack.store.put(staged, b"x")
        stack.store.put("work/globex-members-1/1/normalized.csv", b"x")
        control = Control(stack.store, stack.table, stack.queue, stack.clock)
        erase_tenant(stack, control, tenant, by="ops", wait_seconds=1, note=lambda _: None)
        assert list(stack.store.keys("work/")) == ["work/globex-members-1/1/normalized.csv"]


def test_copies_that_a_console_made_for_downloads_go_too(tmp_path: Path):
    with api_rig(tmp_path) as rig:
        canary = b"Kanarienvogel"
        files = (OutputFile(name="normalized.csv", size=len(canary), sha256=sha256(canary).hexdigest()),)
        job = rig.job("a", state=State.SUCCEEDED, ended_at=1.0, files={"normalized.csv": canary})
        rig.stack.table.replace(job, replace(job, files=files))
        for path in (f"/jobs/{job.job_id}/output?name=normalized.csv", f"/jobs/{job.job_id}/outputs.zip"):
            assert rig.client.get(path).status_code in (200, 404)
        control = Control(rig.stack.store, rig.stack.table, rig.stack.queue, rig.stack.clock)
        erase_tenant(rig.stack, control, "acme", by="ops", wait_seconds=1, note=lambda _: None)
        left = [path for path in tmp_path.rglob("*") if path.is_file() and canary in path.read_bytes()]
        assert left == []
        assert rig.client.get("/jobs").status_code == 200
