"""What `ade erase` takes out of the action log: the entries of one tenant, whatever else is called as it is."""

from pathlib import Path

import pytest

from console.api.access import LOCAL
from console.api.actions import ActionLog
from console.erasure import erase_tenant
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
