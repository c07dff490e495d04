"""docs/reference/rows.md and what is written: the same items, attributes and columns, and queries that run."""

import base64
import random
import re
import sqlite3
from functools import partial
from pathlib import Path

import pytest

from core.chores import Timings, wake_at
from core.jobs import InputRef, Job, JobError, Lease, ObjectRef, State, load_job, start
from core.verdicts import Verdict
from infra.aws import dynamodb_items as items
from infra.clocks import HandClock
from infra.local.sqlite import Database
from infra.local.sqlite_table import SqliteJobTable
from tests.bench.meter import item_bytes
from tests.contract.jobs import NOW, a_job

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "rows.md").read_text()
WAKE = partial(wake_at, timings=Timings())
ERROR = JobError(verdict=Verdict.RULE_ERROR, message="rule net: line 12 " + "x" * 500, where={"line": 12})
SAMPLE = load_job((Path(__file__).parents[2] / "records" / "job-v1.json").read_text())
CASES = {
    "waits": a_job("a", state=State.AWAITING, reason=""),
    "queued": a_job("b", reason="to be tried again", error=ERROR),
    "runs": a_job("c", state=State.RUNNING, lease=Lease(owner="runner-2", expires=NOW + 30)),
    "failed": a_job("d", state=State.FAILED, error=ERROR, attempts_total=3),
    "with errors": a_job("f", state=State.SUCCEEDED, summary={"findings": {"error": 1}}),
    "no input": a_job("e", inputs=()),
    "all": SAMPLE,
}


def rows_of(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading."""
    section = PAGE[PAGE.index(heading) :]
    table = section[section.index("\n|") :].lstrip("\n").split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]


def names(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


def attributes() -> dict[str, str]:
    """Each documented attribute of a job's item, and when it is there."""
    return {name: row[2] for row in rows_of("### The item of a job") for name in names(row[0])}


def made(job: Job) -> items.Item:
    return items.job_item(job, "w", WAKE, 8)


def test_every_attribute_that_is_written_stands_on_the_page_and_the_other_way_round():
    assert {name for job in CASES.values() for name in made(job)} == set(attributes())


@pytest.mark.parametrize("case", CASES)
def test_what_is_always_there_is_always_there(case):
    always = {name for name, when in attributes().items() if when == "always"}
    assert always <= made(CASES[case]).keys()


def test_types_are_those_of_the_page():
    told = {name: row[1] for row in rows_of("### The item of a job") for name in names(row[0])}
    assert {name: kind for job in CASES.values() for name, value in made(job).items() for kind in value} == told


def test_people_find_what_they_look_for_in_plain_words():
    found = {name: next(iter(value.values())) for name, value in made(CASES["queued"]).items()}
    assert (found["error_verdict"], found["error_fault"], found["reason"]) == (
        "rule_error",
        "config",
        "to be tried again",
    )
    assert found["error_message"] == ERROR.message[:200]
    assert (found["input_key"], found["inputs"]) == ("inbox/acme/b é.csv", "1")
    running = made(CASES["runs"])
    assert running["lease_owner"] == {"S": "runner-2"}
    assert running["lease_expires"]["S"].startswith("2025-06-15T15:07:10")
    assert "error_message" not in running


def test_a_job_at_work_takes_one_write_unit():
    """With digests and versions as random as a cloud's: they are most of what does not compress."""
    dice = random.Random(1)

    def ref(name: str) -> ObjectRef:
        version = base64.b64encode(dice.randbytes(24)).decode()
        return ObjectRef(key=f"inbox/acme/2026-04/{name}", version=version, digest=dice.randbytes(16).hex(), size=8123)

    queued = Job(
        job_id="acme-members-7f3k9q2d", identity=dice.randbytes(32).hex(), tenant="acme", workflow="members",
        subject="2026-04/members.xlsx", state=State.QUEUED, manifest=ref("manifest.json"), stamp=NOW,
        config_digest=dice.randbytes(32).hex(), created_at=NOW + 0.123456, updated_at=NOW + 0.123456,
        enqueued_at=NOW + 0.234567, history=(("QUEUED", NOW + 0.123456),), rev=2,
        inputs=(InputRef(role="primary", name="members.xlsx", ref=ref("members.xlsx")),),
    )  # fmt: skip
    running = start(queued, owner="run-ip-10-0-1-7-4711-a1b2", now=NOW + 0.345678, lease_seconds=30)
    for job in (queued, running):
        assert item_bytes(items.job_item(job, dice.randbytes(16).hex(), WAKE, 8)) <= 1024, job.state


def test_the_plain_attributes_stand_in_no_index():
    projected = {
        name
        for index in items.table_definition("t")["GlobalSecondaryIndexes"]
        for name in index["Projection"]["NonKeyAttributes"]
    }
    assert projected == {"job_id", "tenant", "workflow", "state"}


def test_the_indexes_of_the_page_are_those_of_the_table():
    told = {names(row[0])[0]: (row[1].strip("`"), names(row[2])[0]) for row in rows_of("Four indexes")}
    keys = {"by_time": "", "by_tenant": "<tenant>", "by_state": "<state>", "by_wake": ""}
    assert {name: pattern for name, (pattern, _) in told.items()} == {
        name: items.partition_of(name, 0, value).replace("#0#", "#<shard>#") for name, value in keys.items()
    }
    assert {name: sort for name, (_, sort) in told.items()} == {
        index["IndexName"]: index["KeySchema"][1]["AttributeName"]
        for index in items.table_definition("t")["GlobalSecondaryIndexes"]
    }


@pytest.fixture
def shell(tmp_path):
    """A SQLite shell on a table with a job of each case."""
    database = Database(tmp_path / "ade.sqlite")
    table = SqliteJobTable(database, HandClock(), WAKE)
    for job in CASES.values():
        table.add(job)
    yield database.read()
    database.close()


def test_the_columns_of_the_view_are_those_of_the_page(shell):
    told = [name for row in rows_of("## Rows in SQLite") for name in names(row[0])]
    assert [column["name"] for column in shell.execute("PRAGMA table_info(jobs_view)")] == told


def test_the_view_says_what_the_item_says(shell):
    for job in CASES.values():
        row = shell.execute("SELECT * FROM jobs_view WHERE job_id = ?", (job.job_id,)).fetchone()
        item = {name: next(iter(value.values())) for name, value in made(job).items()}
        for name in (
            "tenant",
            "workflow",
            "state",
            "reason",
            "error_verdict",
            "error_fault",
            "lease_owner",
            "input_key",
        ):
            assert (row[name] or None) == item.get(name), name
        assert (row["attempts"], row["inputs"], row["v"]) == (int(item["attempts"]), int(item["inputs"]), 1)
        assert (row["error_message"] or "")[:200] == item.get("error_message", "")
        assert (row["lease_expires"] or "")[:19] == item.get("lease_expires", "")[:19]


def test_the_queries_of_the_page_run(shell):
    (block,) = re.findall(r"```sql\n(.*?)```", PAGE, flags=re.DOTALL)
    found = [shell.execute(query).fetchall() for query in block.strip().split(";") if query.strip()]
    assert len(found) == 4
    assert all(found), "each of them finds something among the cases"


def test_a_row_that_cannot_be_read_spoils_no_query(shell):
    shell.execute("UPDATE jobs SET doc = 'no job' WHERE job_id = ?", (CASES["queued"].job_id,))
    shown = {row["job_id"]: row["reason"] for row in shell.execute("SELECT * FROM jobs_view")}
    assert len(shown) == len(CASES)
    assert shown[CASES["queued"].job_id] == "the record cannot be read"


def test_a_view_of_another_version_is_made_anew_and_ours_is_left_as_it_is(tmp_path):
    path = tmp_path / "ade.sqlite"
    Database(path).close()
    with sqlite3.connect(path) as db:
        db.execute("DROP VIEW jobs_view")
        db.execute("CREATE VIEW jobs_view AS SELECT 1 AS one")
    Database(path).close()
    with sqlite3.connect(path) as db:
        version = db.execute("PRAGMA schema_version").fetchone()
        assert "job_id" in {row[1] for row in db.execute("PRAGMA table_info(jobs_view)")}
    Database(path).close()
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA schema_version").fetchone() == version
