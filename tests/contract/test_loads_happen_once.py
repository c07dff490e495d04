"""Every job's rows are in its tables once, though loaders and the server are killed, and the columns keep changing.

Two loaders work on the same jobs at once, each in an order of its own, as two janitors would. ADE_TEST_FULL=1 runs 200
jobs with more kills.
"""

import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter

import psycopg
import pytest

from core.errors import StoreUnavailable
from infra.loads import open_tables
from infra.own_code import ROOT
from tests.support.effort import FULL
from tests.support.postgres_server import cluster

JOBS, KILLS, CRASHES = (200, 40, 6) if FULL else (20, 3, 1)
ROWS = 40
SCHEMA = "ade_acme"
PATIENCE_SECONDS = 480.0

LOADER = """
import json, random, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from core.loads import LoadBatch, LoadFailed, LoadRule, columns_of
from infra.loads import open_tables
told = json.loads(sys.argv[2])
tables = open_tables(told["url"], told["schema"])
order = list(range(told["jobs"]))
random.Random(told["seed"]).shuffle(order)

def fields_of(job):
    kind = [{"type": "integer"}, {"type": "number", "scale": 4}, {"type": "string"}][job % 9 // 3 if job % 2 else 0]
    more = [{"name": f"extra_{job % 4}", "type": "date"}] if job % 3 == 0 else []
    return [{"name": "id", "type": "string"}, {"name": "n", **kind}, *more]

for job in order:
    fields = fields_of(job)
    more = ",2026-01-02" if len(fields) > 2 else ""
    file = Path(told["folder"]) / f"{told['seed']}.csv"
    header = ",".join(field["name"] for field in fields)
    file.write_text(header + "\\r\\n" + "".join(f"j{job}-{i},{i}{more}\\r\\n" for i in range(told["rows"])))
    for table, mode, key in (("events", "append", ()), ("members", "upsert", ("id",))):
        rule = LoadRule(connection="local", table=table, mode=mode, columns=key)
        batch = LoadBatch(job_id=f"j{job}", line=f"l{job}", stamp=1.0, rule=rule, columns=columns_of({"fields": fields}),
                          digest="d")
        while True:
            try:
                tables.load(batch, file)
                break
            except LoadFailed:
                time.sleep(0.1)  # the server is away
"""


class Loaders:
    """Two processes that load every job, started again whenever they are killed."""

    def __init__(self, url, folder):
        self._orders = [
            json.dumps({"url": url, "schema": SCHEMA, "folder": str(folder), "jobs": JOBS, "rows": ROWS, "seed": seed})
            for seed in (1, 2)
        ]
        self._running = [self._start(order) for order in self._orders]

    def _start(self, order):
        return subprocess.Popen([sys.executable, "-c", LOADER, str(ROOT), order])

    def kill(self, which):
        self._running[which].kill()
        self._running[which].wait()
        self._running[which] = self._start(self._orders[which])

    def finish(self):
        assert [one.wait(PATIENCE_SECONDS) for one in self._running] == [0, 0]

    def close(self):
        for one in self._running:
            if one.poll() is None:
                one.kill()
            one.wait()


@pytest.fixture
def database():
    try:
        with cluster() as made:
            yield made
    except StoreUnavailable as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"{error}")


def counted(url, table):
    with psycopg.connect(url) as connection:
        found = connection.execute(f'SELECT _ade_job, count(*) FROM {SCHEMA}."{table}" GROUP BY 1')
        return Counter(dict(found.fetchall()))


@pytest.mark.slow
@pytest.mark.timeout(PATIENCE_SECONDS + 120)
def test_rows_of_every_job_are_in_once_whoever_is_killed(database, tmp_path, capsys):
    draw, began = random.Random(7), time.monotonic()
    with contextlib.closing(Loaders(database.url, tmp_path)) as loaders:
        faults = ["loader"] * KILLS + ["server"] * CRASHES
        draw.shuffle(faults)
        for fault in faults:
            time.sleep(draw.uniform(0.5, 1.5))
            if fault == "server":
                database.kill()
                time.sleep(0.5)
                database.start()
            else:
                loaders.kill(draw.randrange(2))
        loaders.finish()
    once = Counter({f"j{job}": ROWS for job in range(JOBS)})
    for table in ("events", "members"):
        assert counted(database.url, table) == once
        with psycopg.connect(database.url) as connection:
            found = connection.execute(f'SELECT count(*), count(DISTINCT id) FROM {SCHEMA}."{table}"').fetchone()
        assert found == (JOBS * ROWS, JOBS * ROWS), f"{table} has rows twice"
    tables = open_tables(database.url, SCHEMA)
    undone = [f"j{job}" for job in range(0, JOBS, 10)]
    assert [tables.unload(job) for job in undone] == [2 * ROWS] * len(undone)
    assert [tables.unload(job) for job in undone] == [0] * len(undone)
    left = Counter({job: count for job, count in once.items() if job not in undone})
    assert (counted(database.url, "events"), counted(database.url, "members")) == (left, left)
    with capsys.disabled():
        print(
            f"\n{JOBS} jobs in 2 tables, {KILLS} loaders and {CRASHES} servers killed, {time.monotonic() - began:.0f} s: "
            f"{JOBS * ROWS} rows once in each; {len(undone)} jobs undone"
        )
