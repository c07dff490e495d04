"""What a job costs in table and queue, with 1,000 and with 100,000 jobs there, and how long a drop takes end to end.

python -m tests.bench.bench_spine [--small N] [--large N] [--drops N]
"""

import argparse
import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from core.chores import Timings, wake_at
from core.jobs import Job, ObjectRef, State, start
from core.ports import Caps, JobQuery, Message
from infra.clocks import SystemClock
from infra.local.sqlite import Database
from infra.local.sqlite_queue import SqliteWorkQueue
from infra.local.sqlite_table import SqliteJobTable

CAPS = Caps(tenant=0, workflow=0)
ROUNDS = 400


def job(n: int) -> Job:
    ref = ObjectRef(key=f"inbox/t{n % 20}/d{n}/manifest.json", version="0" * 64, digest="0" * 64, size=300)
    now = time.time()
    return Job(
        job_id=f"t{n % 20}-members-{n:08d}",
        identity=f"{n:064d}",
        tenant=f"t{n % 20}",
        workflow="members",
        subject=f"d{n}/m.xlsx",
        state=State.QUEUED,
        manifest=ref,
        created_at=now,
        updated_at=now,
        enqueued_at=now,
    )


class Measure:
    """Median cost of an operation, in microseconds of wall clock and of CPU."""

    def __init__(self) -> None:
        self.wall: dict[str, list[float]] = {}
        self.cpu: dict[str, list[float]] = {}

    @contextlib.contextmanager
    def of(self, name: str):
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall.setdefault(name, []).append((time.perf_counter() - wall) * 1e6)
        self.cpu.setdefault(name, []).append((time.process_time() - cpu) * 1e6)

    def median(self, name: str) -> tuple[float, float]:
        return statistics.median(self.wall[name]), statistics.median(self.cpu[name])


def fill(database: Database, table: SqliteJobTable, queue: SqliteWorkQueue, size: int) -> None:
    """Rows and messages in bulk: only what comes after is measured."""
    now = time.time()
    with database.write() as db:
        for n in range(size):
            one = replace(job(n), rev=1)
            db.execute(
                "INSERT INTO jobs (job_id, tenant, workflow, line, created_at, state, wake_at, resting, rev, doc)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (one.job_id, one.tenant, one.workflow, one.line, one.created_at, *table._written(one)),
            )
            db.execute(
                "INSERT INTO messages (job_id, tenant, priority, rank, ready, visible_at, sent_at)"
                " VALUES (?, ?, 0, ?, 1, ?, ?)",
                (one.job_id, one.tenant, now, now, now),
            )
        for n in range(20):
            db.execute("INSERT OR IGNORE INTO lanes (tenant, served) VALUES (?, 0)", (f"t{n}",))


def measure(size: int) -> Measure:
    found = Measure()
    with tempfile.TemporaryDirectory() as folder:
        clock, timings = SystemClock(), Timings()
        database = Database(Path(folder) / "ade.sqlite")
        table = SqliteJobTable(database, clock, lambda j: wake_at(j, timings))
        queue = SqliteWorkQueue(database, clock)
        fill(database, table, queue, size)
        for n in range(size, size + ROUNDS):
            with found.of("record"):
                table.add(job(n))
            with found.of("enqueue"):
                queue.send(Message(job_id=job(n).job_id, tenant=job(n).tenant))
        for _ in range(ROUNDS):
            with found.of("receive"):
                (delivery,) = queue.receive(most=1, wait=0, visibility=60)
            with found.of("lease"):
                old = table.get(delivery.message.job_id)
                table.admit(old, start(old, owner="bench", now=clock.now(), lease_seconds=30), CAPS)
            with found.of("ack"):
                queue.ack(delivery.receipt)
        for _ in range(20):
            with found.of("ade jobs (100 rows)"):
                table.page(JobQuery(), limit=100)
            with found.of("ade jobs --state RUNNING"):
                table.page(JobQuery(states=frozenset({State.RUNNING})), limit=100)
            with found.of("janitor look"):
                table.attention(0.0)
        queue.close()
        database.close()
    return found


def end_to_end(drops: int) -> None:
    """Drops through one runner process with two slots, from the sweep to the last result.json."""
    manifest = {"manifest": 1, "name": "m", "fields": [{"name": "id", "type": "integer", "required": True}]}
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"ADE_STORAGE_DATA_DIR": folder, "ADE_LOG_LEVEL": "error"}
        for n in range(drops):
            drop = Path(folder) / f"bucket/inbox/t{n % 4}/d{n}"
            drop.mkdir(parents=True)
            (drop / "m.csv").write_text(f"id;name\n{n};a\n")
            (drop / "manifest.json").write_text(json.dumps(manifest))
        subprocess.run([sys.executable, "-m", "console", "sweep"], env=env, check=True, capture_output=True)
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([sys.executable, "-m", "console", "run", "--drain"], env=env, check=True, capture_output=True)
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        done = len(list(Path(folder).glob("bucket/outputs/**/result.json")))
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"\nEnd to end, one runner, jail: {done} of {drops} drops in {wall:.1f} s, {drops / wall:.0f} drops/s,")
    print(f"{cpu / drops * 1000:.0f} ms of CPU per drop, start-up, zygotes and boxes included")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=1_000)
    parser.add_argument("--large", type=int, default=100_000)
    parser.add_argument("--drops", type=int, default=200)
    asked = parser.parse_args(arguments)
    small, large = measure(asked.small), measure(asked.large)
    print(f"\nTable and queue (SQLite, synced): median microseconds per operation, {ROUNDS} operations")
    print(f"{'operation':26} {asked.small:>9,} wall/CPU   {asked.large:>9,} wall/CPU   CPU ratio")
    for name in small.wall:
        (sw, sc), (lw, lc) = small.median(name), large.median(name)
        print(f"{name:26} {sw:9.0f} {sc:7.0f}   {lw:11.0f} {lc:7.0f}   {lc / sc:9.2f}")
    end_to_end(asked.drops)


if __name__ == "__main__":
    main()
