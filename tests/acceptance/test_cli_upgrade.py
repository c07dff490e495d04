"""Old commands on what newer ones wrote: nothing crashes, nothing is lost, and each says what to do."""

import json
import sqlite3
from contextlib import closing

import pytest

from core.jobs import RECORD_VERSION
from infra.local.sqlite import SCHEMA_VERSION
from tests.acceptance.ade import Ade


@pytest.fixture
def ade(tmp_path):
    return Ade(tmp_path, {"ADE_SANDBOX": "process", "ADE_SANDBOX_MIN_LEVEL": "limits"}, within=True)


def rewrite(ade: Ade, job_id: str, version: int, state: str) -> None:
    with closing(sqlite3.connect(ade.data / "ade.sqlite", isolation_level=None)) as db:
        doc = json.loads(db.execute("SELECT doc FROM jobs WHERE job_id = ?", (job_id,)).fetchone()[0])
        doc |= {"v": version, "state": state, "rev": doc["rev"] + 1, "lane": "slow"}
        db.execute(
            "UPDATE jobs SET doc = ?, state = ?, rev = ? WHERE job_id = ?",
            (json.dumps(doc), state, doc["rev"], job_id),
        )


def test_a_drain_ends_beside_a_newer_row_and_a_rollback_lets_it_finish(ade: Ade):
    newer = ade.dropped()
    other = ade.dropped(tenant="globex")
    rewrite(ade, newer, RECORD_VERSION + 1, "PARKED")
    events = ade("run", "--drain", "--json").lines
    assert [e["job_id"] for e in events if e["event"] == "job_left_alone"] == [newer]
    assert ade.state(other) == "SUCCEEDED"

    listed = {one["job_id"]: one for one in ade("jobs", "--json").json}
    assert (listed[newer]["state"], listed[newer]["newer"]["version"]) == ("PARKED", RECORD_VERSION + 1)
    assert "upgrade this process" in ade("jobs").out
    done = ade("doctor", "--json", expect=None)
    (said,) = [c for c in done.json["checks"] if c["name"] == "rows"]
    assert (said["level"], newer in said["said"]) == ("warning", True)
    for command in ("status", "retry", "cancel", "reset", "remove", "logs"):
        assert "upgrade this process" in ade(command, newer, expect=2).err
    assert ade("queue", "dead", "--json").json == []
    ade("janitor", "run-once")

    rewrite(ade, newer, RECORD_VERSION, "QUEUED")
    with closing(sqlite3.connect(ade.data / "ade.sqlite", isolation_level=None)) as db:
        db.execute("UPDATE messages SET visible_at = 0")  # its minute is over
    ade("run", "--drain")
    record = ade("status", newer, "--json").json
    assert (record["state"], record["attempts_total"]) == ("SUCCEEDED", 1)


def test_a_newer_database_is_refused_in_words(ade: Ade):
    ade.dropped()
    with closing(sqlite3.connect(ade.data / "ade.sqlite", isolation_level=None)) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    for words in (("jobs",), ("run", "--drain"), ("sweep",), ("janitor", "run-once")):
        assert "upgrade this process" in ade(*words, expect=5).err
    done = ade("doctor", "--json", expect=1)
    assert any("upgrade this process" in check["said"] for check in done.json["checks"])
