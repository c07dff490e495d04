"""CPU of a load into PostgreSQL, compared with psycopg's COPY of the same file: `python -m tests.bench.bench_loads`.

Ours does more: it looks for apostrophes and NULs, writes the job's id into each row, numbers the rows, indexes them by
job and notes them in a ledger, in one transaction. A load makes its table, a later one finds a table with its index and
as many rows of another job. All take turns, three rounds each; the least CPU counts.
"""

import argparse
import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psycopg

from core.loads import LoadBatch, LoadRule, columns_of
from infra.loads import open_tables, without_nuls
from tests.support.postgres_server import Cluster, cluster

FIELDS = [
    {"name": "member_id", "type": "string"},
    {"name": "name", "type": "string"},
    {"name": "start", "type": "date"},
    {"name": "pay", "type": "number", "scale": 4},
    {"name": "hours", "type": "integer"},
    {"name": "region", "type": "string"},
    {"name": "source_file", "type": "string"},
    {"name": "source_row", "type": "integer"},
]
PLAIN = (
    "member_id text, name text, start date, pay numeric, hours bigint, region text, source_file text, source_row bigint"
)
JOB = "acme-members-7f3k9q{n:02}"  # as long as those of real jobs
ROUNDS = 3
_TICK = 1 / os.sysconf("SC_CLK_TCK")


class Spent(NamedTuple):
    """CPU seconds."""

    ours: float
    server: float
    wall: float

    @property
    def both(self) -> float:
        return self.ours + self.server


def server_cpu(database: Cluster) -> float:
    """CPU seconds of the server's processes, those that have ended included."""
    total = 0.0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(entry.name) == database.pid:
            total += sum(map(int, fields[11:15])) * _TICK  # with its children that have ended
        elif int(fields[1]) == database.pid:
            total += sum(map(int, fields[11:13])) * _TICK
    return total


def measured(database: Cluster, act: Callable[[], None]) -> Spent:
    server, ours, wall = server_cpu(database), time.process_time(), time.monotonic()
    act()
    spent_here, took = time.process_time() - ours, time.monotonic() - wall
    time.sleep(0.3)  # a server process that ends is counted by its parent a moment later
    return Spent(spent_here, server_cpu(database) - server, took)


def write_rows(file: Path, rows: int) -> None:
    with file.open("w", newline="") as out:
        out.write(",".join(field["name"] for field in FIELDS) + "\r\n")
        for n in range(rows):
            day = f"2026-{n % 12 + 1:02}-{n % 28 + 1:02}"
            out.write(
                f"M{n:07},Name {n % 977} of {n % 31},{day},{n % 9973}.{n % 100:02},{n % 60},North,members.xlsx,{n + 2}\r\n"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    with cluster() as database, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "normalized.csv"
        write_rows(file, rows)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        tables = open_tables(database.url, "ade_acme")

        def load(n: int, job: int) -> None:
            rule = LoadRule(connection="warehouse", table=f"members_{n}")
            columns, job_id = columns_of({"fields": FIELDS}), JOB.format(n=job)
            without_nuls(file)
            batch = LoadBatch(job_id=job_id, line=job_id, stamp=1.0, rule=rule, columns=columns, digest=digest)
            assert tables.load(batch, file) == rows

        def copy(n: int) -> None:
            with psycopg.connect(database.url) as connection, connection.cursor() as cursor, file.open("rb") as source:
                cursor.execute(f"CREATE TABLE plain_{n} ({PLAIN})")
                with cursor.copy(f"COPY plain_{n} FROM STDIN WITH (FORMAT csv, HEADER true)") as stream:
                    while block := source.read(256 * 1024):
                        stream.write(block)

        found: dict[str, list[Spent]] = {"psycopg COPY": [], "a load": [], "a later load": []}
        for n in range(ROUNDS):
            found["psycopg COPY"].append(measured(database, lambda n=n: copy(n)))
            found["a load"].append(measured(database, lambda n=n: load(n, 1)))
            found["a later load"].append(measured(database, lambda n=n: load(n, 2)))
        print(f"{rows:,} rows, {file.stat().st_size / 1e6:.0f} MB; least CPU seconds of {ROUNDS} rounds")
        theirs = least(found["psycopg COPY"])
        for name, spent in found.items():
            ours = least(spent)
            print(
                f"{name:>13}: this process {ours.ours:5.2f}   server {ours.server:5.2f} ({ours.server / theirs.server:.2f}"
                f" times)   both {ours.both:5.2f} ({ours.both / theirs.both:.2f} times)   wall {ours.wall:5.1f}"
            )


def least(spent: list[Spent]) -> Spent:
    """The least of each kind over all rounds."""
    return Spent(*(min(column) for column in zip(*spent, strict=True)))


if __name__ == "__main__":
    main()
