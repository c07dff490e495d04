"""A SQLite file whose jobs were moved: nobody writes to it any more, whoever has it open."""

from pathlib import Path

import pytest

from core.errors import StoreUnavailable
from core.ports import Message, Pause
from core.settings import Settings
from infra.local.sqlite import leaving
from infra.wiring import open_stack
from tests.contract.jobs import a_job


def test_a_process_that_the_move_did_not_see_writes_nothing(tmp_path: Path):
    with open_stack(Settings(storage_data_dir=tmp_path)) as stack:
        stack.table.add(a_job("before"))
        with leaving(tmp_path / "ade.sqlite"):
            pass
        for write in (
            lambda: stack.table.add(a_job("after")),
            lambda: stack.table.pause(Pause(tenant=None, workflow=None, since=1.0, by="ops")),
            lambda: stack.queue.send(Message(job_id="acme-members-before", tenant="acme")),
        ):
            with pytest.raises(StoreUnavailable, match="ADE_TABLE_URL"):
                write()
