"""What one small job costs in a warm box, and what each process of `ade try` costs: for comparing two versions.

    python -m tests.bench box [--times 40] [--rows 20]

A fork of a rehearsed process runs the engine once, as a box does. On a busy machine the lowest of many runs says most. Page
faults are pages that the fork had to copy or get: they are most of the system's share.
"""

import argparse
import gc
import json
import os
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from core.manifests import parse_manifest
from runner.engine import job
from runner.sandbox.box.zygote import rehearse
from runner.sandbox.jail import rehearsal
from tests.bench.bench_engine import MANIFEST, our_command, workbook
from tests.bench.harness.environments import own_environment, python_of
from tests.bench.harness.process_trees import cpu_by_process, memory_of


class Spent(NamedTuple):
    user_ms: float
    system_ms: float
    faults: float


def small_job(source: Path, folder: Path) -> Spent:
    """One run of the engine in a fork."""
    manifest = parse_manifest(json.dumps(MANIFEST).encode()).model_dump(mode="json")
    given = {"role": "primary", "name": source.name, "path": str(source), "size": source.stat().st_size}
    outputs = {name: str(folder / name) for name in ("normalized.xlsx", "artifact.json")}
    facts = {"job_id": "bench", "tenant": "bench", "workflow": "bench", "attempt": 1}
    order = {"order": 1, "job": facts, "manifest": manifest, "params": {}, "inputs": [given]}
    order |= {"config": {"path": None}, "outputs": outputs}
    ours, theirs = os.pipe()
    if os.fork() == 0:
        before = resource.getrusage(resource.RUSAGE_SELF)
        with Path(os.devnull).open("w") as channel:
            assert job.run(order, channel) == 0
        after = resource.getrusage(resource.RUSAGE_SELF)
        spent = [(after.ru_utime - before.ru_utime) * 1000, (after.ru_stime - before.ru_stime) * 1000]
        os.write(theirs, json.dumps([*spent, after.ru_minflt - before.ru_minflt]).encode())
        os._exit(0)
    os.wait()
    said = Spent(*json.loads(os.read(ours, 1000)))
    os.close(ours)
    os.close(theirs)
    return said


def try_by_process(source: Path, folder: Path) -> dict[str, tuple[float, float]]:
    """Name of each process of `ade try`: its seconds of CPU, and its highest memory in MB."""
    command = [str(word) for word in our_command(source, folder)]
    started = subprocess.Popen(command, env=own_environment(), stdout=subprocess.DEVNULL)
    found: dict[int, tuple[str, float, float]] = {}
    while started.poll() is None:
        for pid, (name, cpu) in cpu_by_process(started.pid).items():
            found[pid] = (name, cpu, max(memory_of(pid), found.get(pid, ("", 0.0, 0.0))[2]))
        time.sleep(0.02)
    out: dict[str, tuple[float, float]] = {}
    for name, cpu, memory in found.values():
        before = out.get(name, (0.0, 0.0))
        out[name] = (before[0] + cpu, max(before[1], memory))
    return out


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="box", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--rows", type=int, default=20)
    asked = parser.parse_args(words)
    source = workbook(asked.rows, python_of("frames"))
    rehearse(job, rehearsal())
    gc.collect()
    gc.freeze()
    with tempfile.TemporaryDirectory() as folder:
        runs = [small_job(source, Path(folder)) for _ in range(asked.times)]
        both = [run.user_ms + run.system_ms for run in runs]
        print(
            f"a job of {asked.rows} rows in a warm box: CPU {min(both):.1f} ms at least, {statistics.median(both):.1f} ms in "
            f"the median ({statistics.median(r.system_ms for r in runs):.1f} ms of it the system's), "
            f"{statistics.median(r.faults for r in runs):,.0f} page faults"
        )
        for name, (cpu, memory) in try_by_process(source, Path(folder)).items():
            print(f"ade try, process {name:12} {cpu:5.2f} s of CPU, {memory:5.0f} MB")
