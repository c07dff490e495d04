"""What a box costs: an empty rule on a tiny file, warm against cold, in CPU and in time; memory; and 1,000 in a row.

CPU is that of the runner, the zygote and the box together, by the kernel's own accounts. The overhead is measured with
an engine that is imported and does nothing, so that nothing has to be subtracted; the whole job is given beside it.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from core.verdicts import Verdict
from runner.sandbox.box.keeper import descendants
from runner.sandbox.jail import JailSandbox, Options
from runner.sandbox.session import Engine
from tests.abuse.boxes import alive, never
from tests.abuse.jobs import job

RULES = {"hooks/nothing.py": "def on_job_start(**_):\n    return None\n"}


IDLE = Engine(package="idle_engine", root=Path(__file__).parent / "engines", rehearses=False)


@contextmanager
def sandbox(folder: Path, *, warm: bool, engine: Engine | None = None) -> Iterator[JailSandbox]:
    options = Options(warm=warm)
    made = JailSandbox(run_dir=folder / "run", min_level="confined", engine=engine, options=options)
    made.isolation()
    try:
        yield made
    finally:
        made.close()


def own_cpu() -> float:
    """Seconds of CPU of this process and its ended children."""
    own, ended = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime


def zygote_cpu() -> float:
    """Seconds of CPU of the living processes below this one, by the scheduler's account."""
    total = 0.0
    for pid in descendants(os.getpid()):
        try:
            total += int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
        except OSError:
            continue
    return total


def one(box: JailSandbox, folder: Path, *, warm: bool = True) -> tuple[float, float]:
    """Milliseconds of CPU (runner, zygote and box) and of time that one job took.

    A warm zygote lives on, so its boxes are added by what they report; a cold one is an ended child of ours.
    """
    given = job(folder, RULES)
    others = zygote_cpu() if warm else 0.0
    cpu, clock = own_cpu(), time.perf_counter()
    report = box.run(given, killed=never)
    took, used = time.perf_counter() - clock, own_cpu() - cpu
    if warm:
        used += zygote_cpu() - others + report.cpu_seconds
    assert report.verdict is Verdict.OK, report.message
    shutil.rmtree(given.scratch)
    return used * 1000, took * 1000


def compare(folder: Path, *, warm_jobs: int, cold_jobs: int) -> dict[str, float]:
    """Medians in milliseconds: the box alone, and the whole job, warm and cold."""
    found: dict[str, float] = {}
    for what, engine in (("overhead", IDLE), ("job", None)):
        for start, jobs in (("warm", warm_jobs), ("cold", cold_jobs)):
            with sandbox(folder, warm=start == "warm", engine=engine) as box:
                one(box, folder, warm=start == "warm")
                runs = [one(box, folder, warm=start == "warm") for _ in range(jobs)]
            found[f"{start}_{what}_cpu_ms"] = statistics.median(cpu for cpu, _ in runs)
            found[f"{start}_{what}_cpu_ms_best"] = min(cpu for cpu, _ in runs)
            found[f"{start}_{what}_wall_ms"] = statistics.median(took for _, took in runs)
    found["ratio"] = found["warm_overhead_cpu_ms"] / found["cold_overhead_cpu_ms"]
    return found


def memory(folder: Path) -> dict[str, float]:
    """MiB of a zygote and, private to it, of a box that runs a rule which only waits."""
    rules = {"hooks/wait.py": "import time\ndef on_job_start(**_):\n    time.sleep(60)\n"}
    sizes: dict[str, float] = {}
    with sandbox(folder, warm=True) as box:
        one(box, folder)
        zygotes = [pid for pid in descendants(os.getpid()) if comm(pid) == "ade-zygote"]
        sizes["zygote_mb"] = max(rollup(pid)["Pss"] for pid in zygotes)

        def looked() -> Verdict | None:
            boxes = [pid for pid in descendants(os.getpid()) if comm(pid) == "ade-box"]
            if boxes and time.monotonic() > until:
                found = rollup(boxes[0])
                sizes["box_private_mb"] = found["Private_Dirty"] + found["Private_Clean"]
                return Verdict.CANCELLED
            return None

        until = time.monotonic() + 0.5
        box.run(job(folder, rules), killed=looked)
    return sizes


def rollup(pid: int) -> dict[str, float]:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines}


def comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def state() -> dict[str, Any]:
    """What could grow."""
    below = descendants(os.getpid())
    return {
        "rss_mb": int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20,
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "processes": sum(alive(pid) for pid in below),
        "zombies": sum(not alive(pid) for pid in below),
        "mounts": Path("/proc/self/mounts").read_text().count("\n"),
        "zygote_rss_mb": max((rollup(pid)["Rss"] for pid in below if comm(pid) == "ade-zygote"), default=0.0),
    }


def endurance(folder: Path, jobs: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same sandbox before and after so many jobs, a tenth of them warm-up."""
    with sandbox(folder, warm=True) as box:
        for _ in range(max(jobs // 10, 1)):
            one(box, folder)
        before = state()
        for _ in range(jobs):
            one(box, folder)
        return before, state()


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=1000, help="how many in a row")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = compare(folder, warm_jobs=20 if args.quick else 60, cold_jobs=3 if args.quick else 8)
        print(
            json.dumps(
                {
                    "bench": "sandbox",
                    "load": os.getloadavg()[0],
                    **{key: round(value, 3) for key, value in found.items()},
                }
            )
        )
        print(json.dumps({"bench": "sandbox_memory", **{k: round(v, 1) for k, v in memory(folder).items()}}))
        jobs = 50 if args.quick else args.jobs
        before, after = endurance(folder, jobs)
        print(json.dumps({"bench": "sandbox_endurance", "jobs": jobs, "before": before, "after": after}))


if __name__ == "__main__":
    main()
