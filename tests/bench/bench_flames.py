"""Flame graphs of the other benchmarks, into docs/bench/: the box with a big file and with small ones, intake and runner
with small ones, and a runner of the queue benchmark, over PostgreSQL and with a stand-in for the box.

python -m tests.bench flames
"""

import contextlib
import io
import json
import os
import tempfile
from pathlib import Path

from console.desk.boxes import boxes
from core.manifests import parse_manifest
from core.settings import Settings
from handlers.intake import Intake
from infra.logs import Log
from infra.wiring import open_stack
from runner.assembly import assemble
from runner.engine import job
from runner.sandbox.box.zygote import rehearse
from runner.sandbox.jail import rehearsal
from tests.bench import queue_worker
from tests.bench.bench_drops import ROWS, distinct
from tests.bench.bench_engine import MANIFEST, workbook
from tests.bench.harness.environments import python_of
from tests.bench.harness.figures import FOLDER
from tests.bench.harness.flames import Stacks, draw, sampled
from tests.support.postgres_server import cluster

SMALL, BIG, QUEUED = 60, 100_000, 300


def engine(source: Path, times: int) -> Stacks:
    """The engine on one file, as a warm box runs it."""
    rehearse(job, rehearsal())
    manifest = parse_manifest(json.dumps(MANIFEST).encode()).model_dump(mode="json")
    given = {"role": "primary", "name": source.name, "path": str(source), "size": source.stat().st_size}
    with tempfile.TemporaryDirectory() as folder, Path(os.devnull).open("w") as channel:
        outputs = {name: f"{folder}/{name}" for name in ("normalized.xlsx", "artifact.json")}
        facts = {"job_id": "bench", "tenant": "bench", "workflow": "bench", "attempt": 1}
        order = {"order": 1, "job": facts, "manifest": manifest, "params": {}, "inputs": [given]}
        order |= {"config": {"path": None}, "outputs": outputs}
        with sampled() as stacks:
            for _ in range(times):
                job.run(order, channel)
    return stacks


def runner(source: Path, times: int) -> Stacks:
    """Intake and runner of one process; the boxes are other processes."""
    with contextlib.ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        settings = Settings.from_env({"ADE_STORAGE_DATA_DIR": str(folder / "data")})
        stack = opened.enter_context(open_stack(settings))
        found = opened.enter_context(boxes(settings, folder / "run"))
        made = assemble(stack, found, Log(stream=io.StringIO()))
        opened.callback(made.close)
        intake = Intake.over(stack)
        with sampled() as stacks:
            for n in range(times):
                drop = folder / "data" / "bucket" / f"inbox/t/d{n}"
                drop.mkdir(parents=True)
                distinct(source, drop / "m.xlsx", n)
                (drop / "manifest.json").write_text(json.dumps(MANIFEST))
                intake.changed([f"inbox/t/d{n}/m.xlsx", f"inbox/t/d{n}/manifest.json"])
                for delivery in stack.queue.receive(most=1, wait=1, visibility=60):
                    made.worker.handle(delivery)
    return stacks


def queue(times: int) -> Stacks:
    """A runner as `queue` has two of them, all in one thread."""
    with contextlib.ExitStack() as opened:
        folder = opened.enter_context(tempfile.TemporaryDirectory())
        server = opened.enter_context(cluster())
        os.environ |= {"BENCH_FOLDER": folder, "BENCH_DONE": f"{folder}/done"}
        queue_worker.init(server.url)
        settings = Settings.from_env(queue_worker.environment(server.url))
        stack = opened.enter_context(open_stack(settings))
        found = opened.enter_context(queue_worker.stand_ins(settings, stack.run_dir))
        made = assemble(stack, found, Log(stream=io.StringIO()))
        opened.callback(made.close)
        queue_worker.send(server.url, 0, times)
        with sampled() as stacks:
            for _ in range(times):
                for delivery in stack.queue.receive(most=1, wait=1, visibility=60):
                    made.worker.handle(delivery)
    return stacks


def main(words: list[str]) -> None:
    del words
    python = python_of("frames")
    small, big = workbook(ROWS, python), workbook(BIG, python)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, title, stacks in (
        ("engine", f"The box with {BIG:,} rows", engine(big, 1)),
        ("box", f"The box with {ROWS} rows", engine(small, SMALL)),
        ("runner", f"Intake and runner with drops of {ROWS} rows", runner(small, SMALL)),
        ("queue", f"A runner over PostgreSQL, {QUEUED} jobs without a box", queue(QUEUED)),
    ):
        (FOLDER / f"flame-{name}.svg").write_text(draw(title, stacks))
        print(f"wrote {FOLDER.name}/flame-{name}.svg: {sum(stacks.values()):,} samples", flush=True)
