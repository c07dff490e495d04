"""From drop to result with a runner that idles in another process: SQLite on this machine beside PostgreSQL.

python -m tests.bench.bench_idle [--drops N]

Both have the same folder as their store and a runner process of their own; drops go to them in turn, so that the load of
the machine is the same for both. The clock starts when the files are written and stops when result.json is there.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from core.keys import result_key
from core.settings import Settings
from handlers.intake import Intake
from infra.postgres.connections import parse_database
from infra.postgres.schema import init_database
from infra.wiring import Stack, open_stack
from tests.support.postgres_server import cluster

_MANIFEST = {"manifest": 1, "name": "m", "fields": [{"name": "id", "type": "integer", "required": True}]}
_LONGEST = 20.0
_LOOK = 0.0005


@contextlib.contextmanager
def runner(folder: Path, **more: str) -> Iterator[Stack]:
    """A runner in a process of its own that idles, and the ports of the process that hears of drops."""
    env = os.environ | {"ADE_STORAGE_DATA_DIR": str(folder), "ADE_LOG_LEVEL": "info"} | more
    with subprocess.Popen(
        [sys.executable, "-m", "console", "run", "--json"], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if b"runner_started" in line:
                    break
            os.set_blocking(process.stdout.fileno(), False)
            with open_stack(Settings.from_env(env)) as stack:
                yield stack
        finally:
            process.terminate()
            process.stdout.close()


def drop(stack: Stack, n: int) -> float:
    """Milliseconds from the drop to its result."""
    bucket = stack.settings.storage_data_dir / "bucket"
    folder = bucket / f"inbox/t/d{n}"
    folder.mkdir(parents=True)
    began = time.perf_counter()
    (folder / "m.csv").write_text(f"id;name\n{n};a\n")
    (folder / "manifest.json").write_text(json.dumps(_MANIFEST))
    (job,) = Intake.over(stack).changed([f"inbox/t/d{n}/m.csv", f"inbox/t/d{n}/manifest.json"]).recorded.created
    until, result = began + _LONGEST, bucket / result_key(job)
    while not result.exists():
        if time.perf_counter() > until:
            raise AssertionError(f"no {result} after {_LONGEST:g} s")
        time.sleep(_LOOK)
    return (time.perf_counter() - began) * 1000


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drops", type=int, default=60)
    asked = parser.parse_args(arguments)
    with cluster() as server, tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as opened:
        init_database(parse_database(server.url), apply=True)
        embedded = opened.enter_context(runner(Path(folder) / "embedded"))
        postgres = opened.enter_context(runner(Path(folder) / "postgres", ADE_TABLE_URL=server.url))
        took: dict[str, list[float]] = {"SQLite": [], "PostgreSQL": []}
        for n in range(asked.drops + 5):
            for name, stack in zip(took, (embedded, postgres), strict=True):
                took[name].append(drop(stack, n))
    for name, all_of in took.items():
        kept = sorted(all_of[5:])  # the first ones start boxes and connections
        p50, p90 = statistics.median(kept), kept[int(len(kept) * 0.9)]
        print(
            f"{name:12} drop to result: p50 {p50:6.1f} ms, p90 {p90:6.1f} ms, least {kept[0]:6.1f} ms ({len(kept)} drops)"
        )
    print(
        f"difference of p50: {statistics.median(took['PostgreSQL'][5:]) - statistics.median(took['SQLite'][5:]):+.1f} ms"
    )


if __name__ == "__main__":
    main()
