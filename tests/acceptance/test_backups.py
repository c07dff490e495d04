"""Backups of the embedded mode: taken while jobs run, restored, and worked on to the end."""

import json
import os
import secrets
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from console.cli import backups
from core.jobs import ENDED, Job, State
from core.keys import INBOX, result_key
from core.ports import JobQuery
from core.settings import Settings
from infra.clocks import SystemClock
from infra.logs import Log
from infra.wiring import Stack, open_stack
from runner.audit import Audit
from tests.acceptance.ade import Ade
from tests.contract import postgres_adapters, servers
from tests.support.crew import RUN, Crew, check_outcome, ended
from tests.support.effort import FULL

DROPS = 200 if FULL else 6
MOST = 1000 if FULL else 2  # backups
ENV = {"ADE_SANDBOX_MIN_LEVEL": "limits", "ADE_LOG_LEVEL": "error", "ADE_LEASE_SECONDS": "6"}
MANIFEST = {"manifest": 1, "name": "members", "fields": [{"name": "id", "type": "integer"}, {"name": "name"}]}


@pytest.fixture(scope="session", autouse=True)
def _servers() -> Iterator[None]:
    yield
    servers.stop_all()


def environment(data: Path) -> dict[str, str]:
    return ENV | {"ADE_STORAGE_DATA_DIR": str(data), "ADE_TENANT_CONCURRENCY": "0"}


def put_drop(stack: Stack, n: int) -> None:
    stack.store.put(f"inbox/t{n % 4}/d{n}/m.csv", f"id;name\n{n};a\n{n + 1};b\n".encode())
    stack.store.put(f"inbox/t{n % 4}/d{n}/manifest.json", json.dumps(MANIFEST).encode())


def jobs(stack: Stack) -> list[Job]:
    found, cursor = list[Job](), None
    while True:
        page = stack.table.page(JobQuery(), cursor=cursor)
        found += page.jobs
        if (cursor := page.cursor) is None:
            return found


def restored(tmp_path: Path, backup: Path) -> Settings:
    settings = Settings.from_env(environment(tmp_path / f"of-{backup.name}"))
    backups.restore(settings, backup)
    return settings


def check_rows(stack: Stack) -> dict[str, bytes]:
    """Every result that a row names is there, and every job that is to run has its input; the results by key."""
    audit = Audit(stack.store, stack.table, SystemClock(), Log(level="error"))
    published = {}
    for job in jobs(stack):
        if job.state is State.SUCCEEDED or (job.ended and not job.unpublished):
            assert not audit.missing(job), f"{job.job_id} is {job.state} without its files"
            published[result_key(job)] = stack.store.read(result_key(job), limit=1 << 20)
        elif job.state not in ENDED:
            refs = [*(item.ref for item in job.inputs), *([job.manifest] if job.manifest else [])]
            assert all(stack.store.head(ref.key) for ref in refs), f"{job.job_id} is {job.state} without its input"
    return published


def check_restored(settings: Settings) -> None:
    """Work on a restored folder to the end: every drop has one result, and none that was there was made again."""
    with open_stack(settings) as stack:
        files = [key for key in stack.store.keys(INBOX) if key.endswith("/m.csv")]
        for file in files:  # the sender finishes a drop that the copy has the first half of
            if stack.store.head(key := file.replace("m.csv", "manifest.json")) is None:
                stack.store.put(key, json.dumps(MANIFEST).encode())
        published = check_rows(stack)
        before = {job.job_id: job.fence for job in jobs(stack) if job.state is State.SUCCEEDED}
    env = environment(settings.storage_data_dir)
    for words in (("sweep",), ("run", "--drain"), *([("janitor", "run-once")] if FULL else [])):
        Ade(settings.storage_data_dir.parent, env, within=True)(*words)
    with open_stack(settings) as stack:
        if files:
            check_outcome(stack, len(files))
        for key, body in published.items():
            assert stack.store.read(key, limit=1 << 20) == body, f"{key} was published twice"
        after = {job.job_id: job.fence for job in jobs(stack)}
        assert {job_id: after[job_id] for job_id in before} == before, "a job with a result ran again"
        for key in [key for key in stack.store.keys("outputs/") if key.endswith("/m.csv/members/latest.json")]:
            assert stack.store.head(key.replace("latest.json", _named(stack, key)) + "/result.json"), key


def _named(stack: Stack, key: str) -> str:
    return str(json.loads(stack.store.read(key, limit=1 << 20))["job_id"])


@pytest.mark.slow
@pytest.mark.timeout(3600 if FULL else 300)
def test_every_backup_of_a_storm_is_whole_when_it_is_restored(tmp_path, capsys):
    data = tmp_path / "data"
    settings, made = Settings.from_env(environment(data)), list[Path]()
    with open_stack(settings) as stack:
        put_drop(stack, 0)
        stop = threading.Event()

        def drop_all() -> None:
            for n in range(1, DROPS):
                put_drop(stack, n)
                if stop.wait(0.15):
                    return

        with Crew(
            [*([RUN] if FULL else []), ("up",)], environment(data) | {"ADE_CONSOLE_LISTEN": ""}, tmp_path / "crew.log"
        ) as crew:
            dropping = threading.Thread(target=drop_all)
            dropping.start()
            late, due = time.monotonic() + 600, 0.0
            while ended(stack) < DROPS:
                if len(made) < MOST and time.monotonic() >= due:
                    due = time.monotonic() + 1.0
                    made.append(tmp_path / f"backup-{len(made)}")
                    backups.make_backup(settings, made[-1])
                assert time.monotonic() < late, crew.said()
                stack.table.wait(0.2)
            stop.set()
            dropping.join()
    backups.make_backup(settings, last := tmp_path / "backup-last")
    chosen = [*made[::10], last] if FULL else [made[-1]]
    for backup in made:
        with open_stack(restored(tmp_path, backup)) as stack:
            check_rows(stack)
    for backup in chosen:
        folder = tmp_path / f"of-{backup.name}"
        check_restored(Settings.from_env(environment(folder)) if folder.exists() else restored(tmp_path, backup))
    with capsys.disabled():
        print(f"\n{DROPS} drops, {len(made) + 1} backups restored, {len(chosen)} of them worked to the end")


def test_what_failed_or_ran_before_a_backup_is_not_dropped_again_by_a_restore(ade: Ade, tmp_path):
    ade.within = True
    job = ade.dropped(csv="nothing that fits\n1\n")
    ade("run", "--drain")
    assert ade.state(job) == "FAILED"
    ade("backup", tmp_path / "copy")
    (ade.data).rename(tmp_path / "lost")
    ade("restore", tmp_path / "copy")
    ade("sweep")
    assert ade.state(job) == "FAILED", "its input is as old as it was, so nobody dropped it again"
    ade("backup", tmp_path / "second")  # of what was restored
    (ade.data).rename(tmp_path / "lost again")
    ade("restore", tmp_path / "second")
    ade("sweep")
    assert ade.state(job) == "FAILED"
    os.utime(next(ade.bucket.glob("inbox/acme/**/members.csv")))
    ade("sweep")
    assert ade.state(job) == "QUEUED", "touched after the restore: dropped again"


def died_at(step: int, act: Callable[[], object], monkeypatch) -> bool:
    """Run `act` in a process that dies at its nth rename, sync or write; False: it ended before."""
    left = [step]

    def counted(real):
        def called(*args, **named):
            left[0] -= 1
            if left[0] == 0:
                os._exit(9)
            return real(*args, **named)

        return called

    pid = os.fork()
    if pid == 0:
        places = ((Path, "rename"), (Path, "write_text"), (backups, "sync_all"), (os, "chown"), (Path, "unlink"))
        for place, name in places:
            monkeypatch.setattr(place, name, counted(getattr(place, name)))
        try:
            act()
        except BaseException:  # noqa: BLE001 - the test sees its code
            os._exit(3)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in (0, 9), f"at step {step} it ended with {code}"
    return code == 9


def test_a_backup_that_is_killed_at_any_step_is_not_there_or_whole(ade: Ade, tmp_path, monkeypatch):
    ade.within = True
    ade.dropped()
    ade("run", "--drain")
    settings, step = Settings.from_env(ade.environment()), 1
    while True:
        place = tmp_path / f"copy-{step}"
        died = died_at(step, lambda place=place: backups.make_backup(settings, place), monkeypatch)
        if not place.exists():
            backups.make_backup(settings, place)  # over what the dead one left
        target = Settings.from_env(environment(tmp_path / f"of-{step}"))
        backups.restore(target, place)
        with open_stack(target) as stack:
            assert check_rows(stack)
        step += 1
        if not died:
            break
    assert step > 4
    assert not list(tmp_path.glob("*.partial"))


def test_a_restore_that_is_killed_at_any_step_blocks_every_command_until_it_is_repeated(ade, tmp_path, monkeypatch):
    ade.within = True
    ade.dropped()
    ade("run", "--drain")
    ade("backup", tmp_path / "copy")
    step, blocked = 1, 0
    while True:
        settings = Settings.from_env(environment(tmp_path / f"of-{step}"))
        died = died_at(step, lambda settings=settings: backups.restore(settings, tmp_path / "copy"), monkeypatch)
        folder = str(settings.storage_data_dir)
        if died and (settings.storage_data_dir / ".restoring").exists():
            blocked += 1
            assert "ade restore" in ade("jobs", expect=5, ADE_STORAGE_DATA_DIR=folder).err
            ade("restore", tmp_path / "copy", ADE_STORAGE_DATA_DIR=folder)
        with open_stack(settings) as stack:
            assert check_rows(stack)
        step += 1
        if not died:
            break
    assert blocked > 4


def test_what_a_backup_refuses_and_leaves_out(ade: Ade, tmp_path):
    ade.within = True
    ade.dropped()
    (ade.bucket / "inbox/acme/link.csv").symlink_to("/etc/passwd")
    (ade.bucket / "inbox/acme/away").symlink_to(tmp_path)
    for name, size in (("holes.csv", 101 << 20), ("few.csv", 16 << 20)):  # of no cost to their sender
        (ade.bucket / "inbox/acme" / name).touch()
        os.truncate(ade.bucket / "inbox/acme" / name, size)
    with (ade.bucket / "inbox/acme/half.csv").open("w") as half:
        half.write("id\n1\n")
        half.flush()
        done = ade("backup", tmp_path / "copy", "--json").json
    assert set(done["left_out"]) == {
        f"bucket/inbox/acme/{name}" for name in ("link.csv", "away", "half.csv", "holes.csv")
    }
    assert "somebody is writing it" in done["left_out"]["bucket/inbox/acme/half.csv"]
    assert "nearly all holes" in done["left_out"]["bucket/inbox/acme/holes.csv"]
    ade("restore", tmp_path / "copy", ADE_STORAGE_DATA_DIR=str(tmp_path / "back"))
    for folder in (tmp_path / "copy/bucket", tmp_path / "back/bucket"):
        few = (folder / "inbox/acme/few.csv").stat()
        assert few.st_size == 16 << 20
        assert few.st_blocks * 512 < 1 << 20, "holes stay holes"
    assert "exists" in ade("backup", tmp_path / "copy", expect=2).err
    assert "in the data folder" in ade("backup", ade.data / "copy", expect=2).err
    assert "in the data folder" in ade("backup", ade.bucket / "inbox/acme/away" / ".." / "copy", expect=2).err
    assert "no ade.sqlite" in ade("backup", tmp_path / "other", expect=2, ADE_STORAGE_DATA_DIR=str(tmp_path)).err
    assert "backups.md" in ade("backup", tmp_path / "other", expect=2, ADE_TABLE_URL="postgresql://h/d").err
    assert not (tmp_path / "other").exists()


@pytest.mark.slow
def test_what_a_restore_refuses(ade: Ade, tmp_path):
    ade.within = True
    ade.dropped()
    ade("backup", tmp_path / "copy")
    assert "not empty" in ade("restore", tmp_path / "copy", expect=2).err
    with ade.up() as running:
        assert running.events[0]["owner"] in ade("restore", tmp_path / "copy", expect=2).err
        (ade.data).rename(tmp_path / "pulled away")
        other = str(tmp_path / "pulled away")
        assert "works on" in ade("restore", tmp_path / "copy", expect=2, ADE_STORAGE_DATA_DIR=other).err
    fresh = str(tmp_path / "fresh")
    assert "not a finished backup" in ade("restore", tmp_path / "fresh", expect=2, ADE_STORAGE_DATA_DIR=fresh).err
    dropped = next((tmp_path / "copy/bucket/inbox/acme").glob("**/members.csv"))
    dropped.write_text("other")
    assert "members.csv" in ade("restore", tmp_path / "copy", expect=2, ADE_STORAGE_DATA_DIR=fresh).err
    for spoil in (dropped.unlink, lambda: dropped.symlink_to("/etc/passwd")):
        spoil()
        refused = ade("restore", tmp_path / "copy", expect=2, ADE_STORAGE_DATA_DIR=fresh).err
        assert "members.csv of the backup cannot be read" in refused
    assert not (tmp_path / "fresh/bucket").exists()


@pytest.mark.slow
def test_a_dump_that_is_older_than_its_bucket_runs_only_what_it_does_not_know(ade: Ade, tmp_path):
    """As docs/guides/backups.md says: pg_dump, more work, pg_restore over the bucket as it is."""
    ade.within, schema = True, f"dumped_{secrets.token_hex(4)}"
    server = servers.postgres().endpoint
    ade.env["ADE_TABLE_URL"] = postgres_adapters.url_of(server, schema)
    try:
        ade("infra", "init")
        known = ade.dropped()
        waiting = ade.dropped(tenant="late")
        ade("cancel", waiting)
        ade("run", "--drain")
        subprocess.run(["pg_dump", "-Fc", f"--schema={schema}", f"--file={tmp_path / 'dump'}", server], check=True)
        later = ade.dropped(tenant="new")
        ade("run", "--drain")
        results = {key: key.read_bytes() for key in ade.bucket.glob("outputs/**/result.json")}
        assert len(results) == 3
        subprocess.run(["pg_restore", "--clean", "--if-exists", f"--dbname={server}", tmp_path / "dump"], check=True)
        ade("status", later, expect=2)  # the dump does not know it
        ade("sweep")
        ade("run", "--drain")
        states = {job["job_id"]: job["state"] for job in ade("jobs", "--json").json}
        assert states == {known: "SUCCEEDED", waiting: "CANCELLED", later: "SUCCEEDED"}
        again = {key.parent.name for key, body in results.items() if key.read_bytes() != body}
        assert again <= {later}, "only what the dump did not know was published again, under its own id"
        assert ade("doctor", "--deep", "--json").json["wrong"] == 0
    finally:
        with psycopg.connect(server, autocommit=True) as db:
            db.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
