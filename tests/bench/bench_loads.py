"""CPU of a load into PostgreSQL, compared with psycopg's COPY of the same file: `python -m tests.bench.bench_loads`.

Ours does more: it looks for apostrophes and NULs, numbers the rows, indexes them by job and notes them in a ledger, in
one transaction. Both take turns, three rounds each; the least CPU counts.
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
ROUNDS = 3
_TICK = 1 / os.sysconf("SC_CLK_TCK")


class Spent(NamedTuple):
    """CPU seconds."""

    ours: float
    server: float
    wall: float


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

        def load(n: int) -> None:
            rule = LoadRule(connection="warehouse", table=f"members_{n}")
            columns = columns_of({"fields": FIELDS})
            without_nuls(file)
            batch = LoadBatch(job_id="j", line="l", stamp=1.0, rule=rule, columns=columns, digest=digest)
            assert tables.load(batch, file) == rows

        def copy(n: int) -> None:
            with psycopg.connect(database.url) as connection, connection.cursor() as cursor, file.open("rb") as source:
                cursor.execute(f"CREATE TABLE plain_{n} ({PLAIN})")
                with cursor.copy(f"COPY plain_{n} FROM STDIN WITH (FORMAT csv, HEADER true)") as stream:
                    while block := source.read(256 * 1024):
                        stream.write(block)

        found: dict[str, list[Spent]] = {"ade-drop": [], "psycopg COPY": []}
        for n in range(ROUNDS):
            found["psycopg COPY"].append(measured(database, lambda n=n: copy(n)))
            found["ade-drop"].append(measured(database, lambda n=n: load(n)))
        print(f"{rows:,} rows, {file.stat().st_size / 1e6:.0f} MB; least CPU seconds of {ROUNDS} rounds")
        least = {name: Spent(*(min(column) for column in zip(*spent, strict=True))) for name, spent in found.items()}
        for name, spent in least.items():
            print(f"{name:>13}: this process {spent.ours:6.2f}   server {spent.server:6.2f}   wall {spent.wall:6.1f}")
        ours, theirs = least["ade-drop"], least["psycopg COPY"]
        print(f"this process: {ours.ours / theirs.ours:.2f} times; server: {ours.server / theirs.server:.2f} times")


if __name__ == "__main__":
    main()
