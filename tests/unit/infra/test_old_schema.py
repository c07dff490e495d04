"""A file that an older program made gets what this one needs, and the older one can still use it."""

import sqlite3

from core.chores import Timings, wake_at
from core.jobs import Outcome, State, dump_job
from core.ports import JobQuery
from infra.clocks import HandClock
from infra.local.sqlite import OUTCOME, SCHEMA, Database
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


def test_results_of_before_are_found_by_their_outcome_and_the_older_program_still_writes(tmp_path):
    path = tmp_path / "ade.sqlite"
    column = f",   -- the whole record, JSON\n  outcome    TEXT GENERATED ALWAYS AS ({OUTCOME}) VIRTUAL\n"
    before = "\n".join(line for line in SCHEMA.replace(column, "\n").splitlines() if "_outcome ON" not in line)
    assert "outcome" not in before
    job = a_job("a", state=State.SUCCEEDED, summary={"findings": {"error": 1}})
    row = (job.job_id, job.tenant, job.workflow, job.line, str(job.state), job.created_at, 1, dump_job(job))
    insert = "INSERT INTO jobs (job_id, tenant, workflow, line, state, created_at, rev, doc) VALUES (?,?,?,?,?,?,?,?)"
    with sqlite3.connect(path) as db:
        db.executescript(before)
        db.execute(insert, row)
    made = table(path)
    assert [j.job_id for j in made.page(JobQuery(outcome=Outcome.ERRORS)).jobs] == [job.job_id]
    with sqlite3.connect(path) as db:
        db.execute(insert, ("another", *row[1:]))
    assert len(made.page(JobQuery(outcome=Outcome.ERRORS)).jobs) == 2
