"""Makes docs/explanation/scale/measurements.json: what the simulation has to know and this machine can measure.

python -m tests.bench.measure [--out FILE]

Boxes of every size class run through the real runner; requests and units per job are counted as bench_cloud does.
"""

import argparse
import csv
import io
import json
import os
import platform
import time
from pathlib import Path

from core.ports import JobQuery
from tests.bench import prices
from tests.bench.bench_cloud import per_job, server
from tests.bench.cloud_rig import MANIFEST, Rig, rig

FILE = Path(__file__).parents[2] / "docs" / "explanation" / "scale" / "measurements.json"
PRICES = ("FARGATE_VCPU_HOUR", "FARGATE_GB_HOUR", "SQS_REQUEST", "DYNAMODB_READ", "LAMBDA_REQUEST", "LAMBDA_GB_SECOND")
CLASSES = {50: 12, 1_000: 8, 10_000: 5, 50_000: 2}  # rows of a file: how many of them are run


def _sheet(rows: int) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=";")
    writer.writerow(["id", "name", "start", "amount"])
    for n in range(rows):
        writer.writerow([n, f"name {n % 997}", f"2026-{n % 12 + 1:02d}-{n % 28 + 1:02d}", f"{n % 1000}.50"])
    return out.getvalue().encode()


def box_seconds(made: Rig) -> dict[str, list[dict[str, float]]]:
    """Wall clock, CPU and memory of the box by rows of the file."""
    found: dict[str, list[dict[str, float]]] = {}
    for rows, times in CLASSES.items():
        body = _sheet(rows)
        for n in range(times):
            folder = f"inbox/size{rows}/d{n}"
            made.stack.store.put(f"{folder}/m.csv", body.replace(b"name 1;", b"name %d;" % (n + 1000), 1))
            made.stack.store.put(f"{folder}/manifest.json", json.dumps(MANIFEST).encode())
        made.handle(2 * times)
        made.work(times)
        jobs = made.stack.table.page(JobQuery(tenant=f"size{rows}")).jobs
        found[str(rows)] = [{k: j.summary[k] for k in ("wall_seconds", "cpu_seconds", "peak_mb")} for j in jobs]
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FILE)
    asked = parser.parse_args(arguments)
    with server() as started, rig(started, scripted=False, ADE_SANDBOX="jail") as made:
        per_job(made, 4)
        cost, _, _ = per_job(made, 20, first=4)
        boxes = box_seconds(made)
    told = {
        "made": time.strftime("%Y-%m-%d", time.gmtime()),
        "by": "python -m tests.bench.measure",
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs shared with other work, the jail, MiniStack",
        "requests_per_job": {k: round(v, 2) for k, v in sorted(cost.requests.items())},
        "write_units_per_job": {k: round(v, 2) for k, v in sorted(cost.writes.items())},
        "read_units_per_job": round(cost.reads, 2),
        "dollars_per_job": round(cost.dollars, 9),
        "prices": {name: getattr(prices, name) for name in PRICES},
        "box": boxes,
    }
    asked.out.write_text(json.dumps(told, indent=1) + "\n")
    print(f"wrote {asked.out}")


if __name__ == "__main__":
    main()
