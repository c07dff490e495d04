"""`ade move`: a table in all states goes to PostgreSQL, nothing is lost and nothing runs twice."""

import json
import os
import secrets
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest

from core.jobs import ENDED, JobError, Lease, State
from core.ports import JobQuery, Message, Pause
from core.settings import Settings
from core.verdicts import Verdict
from infra.postgres import moving
from infra.wiring import open_stack
from tests.acceptance.ade import ADE, Ade
from tests.contract import postgres_adapters, servers
from tests.contract.jobs import a_job
from tests.support.crew import RUN as RUNNER
from tests.support.crew import Crew
from tests.support.effort import FULL

JOBS = 1000
RUN = 40 if FULL else 4  # of the waiting ones have an input


@pytest.fixture(scope="session", autouse=True)
def _servers() -> Iterator[None]:
    yield
    servers.stop_all()


@pytest.fixture
def ade(tmp_path):
    return Ade(tmp_path, {"ADE_SANDBOX_MIN_LEVEL": "limits"}, within=True)


@pytest.fixture
def url() -> Iterator[str]:
    schema, server = f"moved_{secrets.token_hex(4)}", servers.postgres().endpoint
    yield postgres_adapters.url_of(server, schema)
    with psycopg.connect(server, autocommit=True) as db:
        db.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


def fill(ade: Ade) -> dict[str, str]:
    """A thousand jobs in all states, and some that can really run; the states by id."""
    for n in range(RUN):
        ade.dropped(tenant=f"real{n}", csv=f"Member #,Gross Pay\nM{n:06},{n}\n")
    with open_stack(Settings.from_env(ade.environment())) as stack:
        now = stack.clock.now()
        for n in range(JOBS - RUN):
            state = list(State)[n % len(State)]
            changes = {"state": state, "fence": n % 7, "created_at": now - n, "updated_at": now, "reason": "é\t'\"\\N"}
            if state is State.RUNNING:
                changes["lease"] = Lease(owner="gone", expires=now + 3600)
            if state in ENDED - {State.SUCCEEDED}:
                changes["error"] = JobError(verdict=Verdict.INPUT_UNREADABLE, message="ß∑")
            job = replace(a_job(f"j{n}"), **changes)
            stack.table.add(job)
        stack.queue.send(Message(job_id="acme-members-j0", tenant="acme"), delay=3600)
        stack.queue.bury(Message(job_id="acme-members-j1", tenant="acme"), "because \0")
        stack.table.pause(Pause(tenant="acme", workflow=None, since=now, by="ops\0"))
        gone = stack.table.get("acme-members-j5")
        assert stack.table.remove(gone)
    ade("quarantine", "somebody")
    with sqlite3.connect(ade.data / "ade.sqlite") as db:
        return dict(db.execute("SELECT job_id, doc FROM jobs"))


@pytest.mark.slow
def test_a_thousand_jobs_in_all_states_move_once_and_nothing_runs_twice(ade: Ade, url):
    before = fill(ade)
    done = [job_id for job_id, doc in before.items() if json.loads(doc).get("state") in ENDED]
    ade("infra", "init", ADE_TABLE_URL=url)
    moved = ade("move", url, "--json").json["moved"]
    assert moved["jobs"]["rows"] == len(before) == JOBS - 1
    assert (moved["messages"]["rows"], moved["dead_letters"]["rows"], moved["pauses"]["rows"]) == (RUN + 1, 1, 3)
    assert "ADE_TABLE_URL" in ade("jobs", expect=5).err, "nobody works on the old table"
    assert "ADE_TABLE_URL" in ade("up", expect=5).err
    assert "were moved" in ade("move", url, expect=5).err
    schema = url.split("schema=")[1].split("&")[0]
    with psycopg.connect(servers.postgres().endpoint) as db:
        after = dict(db.execute(f"SELECT job_id, doc FROM {schema}.jobs").fetchall())
    assert after == before
    ade.env["ADE_TABLE_URL"] = url
    ade("sweep")  # plans nothing that is there
    with (
        Crew([RUNNER], ade.environment(), ade.home / "crew.log") as crew,
        open_stack(Settings.from_env(ade.environment())) as stack,
    ):
        until = time.monotonic() + 120
        names = [f"real{n}" for n in range(RUN)]
        while any(stack.table.tally(name).tenants[name] != {State.SUCCEEDED: 1} for name in names):
            assert time.monotonic() < until, crew.said()
            stack.table.wait(0.2)
    with open_stack(Settings.from_env(ade.environment())) as stack:
        assert sum(stack.table.counts().values()) == JOBS - 1
        real = [job for name in names for job in stack.table.page(JobQuery(tenant=name), limit=100).jobs]
        assert [[state for state, _ in job.history].count("SUCCEEDED") for job in real] == [1] * RUN
        assert [job.state for job in real] == [State.SUCCEEDED] * RUN
        with psycopg.connect(servers.postgres().endpoint) as db:
            rows = dict(db.execute(f"SELECT job_id, doc FROM {schema}.jobs").fetchall())
        changed = [job_id for job_id in done if rows[job_id] != before[job_id]]
        fences = [
            json.loads(rows[job_id]).get("fence", 0) - json.loads(before[job_id]).get("fence", 0) for job_id in done
        ]
        assert set(fences) == {0}, "nothing that had ended ran again"
        assert all(json.loads(rows[job_id])["state"] == json.loads(before[job_id])["state"] for job_id in changed)
        again, created = stack.table.add(replace(a_job("j5"), fence=0))
        assert created
        assert again.fence >= 5, "fences go on above those of rows that were removed before the move"


@pytest.mark.slow
def test_what_a_move_refuses_and_what_a_kill_leaves(ade: Ade, url, tmp_path, monkeypatch):
    ade.dropped()
    ade("infra", "init", ADE_TABLE_URL=url)
    assert "postgresql" in ade("move", "mysql://x", expect=2).err
    assert "is set" in ade("move", url, expect=2, ADE_TABLE_URL=url).err
    assert "no ade.sqlite" in ade("move", url, expect=2, ADE_STORAGE_DATA_DIR=str(tmp_path / "none")).err
    with ade.up():
        assert "works on" in ade("move", url, expect=2).err
    for name in ("_copy", "_there", "_digest"):
        if os.fork() == 0:
            monkeypatch.setattr(moving, name, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            ade("move", url)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.wait()[1]) == -signal.SIGKILL
        assert len(ade("jobs", "--json").json) == 1, "the old table is the table still"
    with sqlite3.connect(ade.data / "ade.sqlite") as db:
        (doc,) = db.execute("SELECT doc FROM jobs").fetchone()
        db.execute("UPDATE jobs SET doc = '{'")
    db.close()
    assert "cannot be read" in ade("move", url, expect=2).err
    with sqlite3.connect(ade.data / "ade.sqlite") as db:
        db.execute("UPDATE jobs SET doc = ?", (doc,))
    db.close()
    done = subprocess.run(
        [ADE, "move", url, "--json"], env=ade.environment(), capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["before"] is False
    with sqlite3.connect(ade.data / "ade.sqlite") as db:
        db.execute("PRAGMA user_version = 1")  # as if it had died between the two commits
    db.close()
    assert ade("move", url, "--json").json["before"] is True
    other = Ade(tmp_path / "other", ade.env, within=True)
    other.home.mkdir()
    # No jobs yet, and the same kill: what was moved is known again.
    schema = f"moved_{secrets.token_hex(4)}"
    quiet = postgres_adapters.url_of(servers.postgres().endpoint, schema)
    other("infra", "init", ADE_TABLE_URL=quiet)
    other("quarantine", "somebody")
    for before in (False, True):
        assert other("move", quiet, "--json").json["before"] is before
        with sqlite3.connect(other.data / "ade.sqlite") as db:
            db.execute("PRAGMA user_version = 1")
        db.close()
    with psycopg.connect(servers.postgres().endpoint, autocommit=True) as server:
        server.execute(f"DROP SCHEMA {schema} CASCADE")
    other.dropped(tenant="else")
    assert "not empty" in other("move", url, expect=2).err
