"""What `ade erase` finds of a tenant by its name: its log entries and staged files, whatever it is called."""

from pathlib import Path

import pytest

from console.api.access import LOCAL
from console.api.actions import ActionLog
from console.erasure import erase_tenant
from core.jobs import job_id
from core.settings import Settings
from infra.logs import Log
from infra.wiring import open_stack
from runner.control import Control


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
