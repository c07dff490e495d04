"""A file that an older program made gets what this one needs, and the older one can still use it."""

import sqlite3

from core.chores import Timings, wake_at
from core.jobs import State
from infra.clocks import HandClock
from infra.local.sqlite import SCHEMA, Database
from infra.local.sqlite_table import SqliteJobTable
from tests.contract.jobs import NOW, a_job

OLD = SCHEMA.replace("  resting    INTEGER NOT NULL DEFAULT 0, -- 1: only to expire or to forget it\n", "").replace(
    "CREATE INDEX IF NOT EXISTS jobs_due ON jobs (resting, wake_at)", "CREATE INDEX jobs_wake ON jobs (wake_at)"
)


def table(path) -> SqliteJobTable:
    return SqliteJobTable(Database(path), HandClock(), lambda job: wake_at(job, Timings()))


def test_rows_of_before_are_scanned_in_time(tmp_path):
    path = tmp_path / "ade.sqlite"
    with sqlite3.connect(path) as db:
        assert "resting" not in OLD
        db.executescript(OLD)
    for _ in range(2):
        made = table(path)
        job, _ = made.add(a_job("a", state=State.SUCCEEDED, ended_at=NOW))
    assert [j.job_id for j in made.outdated(NOW + 1e6)] == [job.job_id]
    with made._db.write() as db:
        db.execute("UPDATE jobs SET resting = 0")  # what a row has that an older program wrote
    assert [j.job_id for j in table(path).attention(NOW + 1e6)] == [job.job_id]
