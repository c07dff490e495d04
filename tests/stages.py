"""Runs the tests stage by stage, each under its name, and lists the slowest tests at the end.

    python -m tests.stages [--quick] [STAGE ...]

Two stages run at a time: tests of servers and real processes mostly wait, and others use the cores meanwhile. What a
stage prints is shown when it has ended. A stage that fails does not keep the others from running. Folders of tests that
no stage names run as stages of their own.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from core.errors import StoreUnavailable
from infra.deploy.local_cloud import MINISTACK, SEAWEEDFS, install
from tests.support.clients import CLIENTS, READERS
from tests.support.keeper import VENVS, run_folder
from tests.support.minio_gateway import MINIO

TESTS = Path(__file__).parent
# In the order in which they start: the longest, which mostly waits, then those that are most often broken.
STAGES = {
    "acceptance": ("acceptance",),
    "unit": ("unit", "events", "bench", "../docs/explanation/scale"),
    "spine": ("spine", "sim", "power"),
    "contract": ("contract",),
    "truth": ("truth", "corpus"),
    "abuse": ("abuse",),
}
QUICK = ("unit", "spine")
# Whose modules start a server, a stack or a browser for their tests: all tests of a module in one process.
WHOLE_MODULES = ("acceptance", "browser")
AT_A_TIME = 2
SLOWEST = 20
NO_TESTS = 5  # pytest's exit code where nothing was selected


def stages() -> dict[str, tuple[str, ...]]:
    """Every folder that holds tests, in one stage or another."""
    named = {folder for folders in STAGES.values() for folder in folders}
    found = {path.relative_to(TESTS).parts[0] for path in TESTS.rglob("test_*.py")}
    return STAGES | {folder: (folder,) for folder in sorted(found - named)}


def run(name: str, folders: tuple[str, ...], options: list[str], report: Path, *, live: bool) -> bool:
    """Whether the stage passed; how long its tests took is in the report. `live`: show its output as it comes."""
    print(f"── {name} ──" if live else f"{name}: started", flush=True)
    paths = [str(TESTS / folder) for folder in folders]
    spread = ["--dist=loadscope", "--no-loadscope-reorder"] if name in WHOLE_MODULES else []
    # A folder of its own: pytest empties the folders of sessions it takes for dead, also of the stage beside it.
    own = [f"--basetemp={report.with_suffix('')}", f"--junitxml={report}"]
    command = [sys.executable, "-m", "pytest", *own, *options, *spread, *paths]
    began = time.monotonic()
    with tempfile.TemporaryFile() as output:
        printed = None if live else output
        stage = subprocess.Popen(command, cwd=TESTS.parent, stdout=printed, stderr=printed)
        _, status, used = os.wait4(stage.pid, 0)
        stage.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        shown = output.read().decode(errors="replace")
    passed = stage.returncode in (0, NO_TESTS)
    # Of processes that have ended; servers that go on for the next stages are not among them.
    cpu = used.ru_utime + used.ru_stime
    took = f"{time.monotonic() - began:.0f} s, {cpu:.0f} s of CPU"
    title = "" if live else f"── {name} ──\n"
    print(f"{title}{shown}{name}: {'passed' if passed else 'FAILED'} in {took}", flush=True)
    return passed


def fetch_servers() -> None:
    """Install what the later stages need while the first ones run; what cannot be had is theirs to report."""
    for name, requirements in {
        "ministack": MINISTACK,
        "seaweedfs": SEAWEEDFS,
        "minio": MINIO,
        "clients": CLIENTS,
        "readers": READERS,
    }.items():
        with contextlib.suppress(StoreUnavailable):
            install(VENVS, name, requirements)


def slowest(reports: list[Path]) -> list[tuple[float, str]]:
    took = [
        (float(case.get("time", 0)), f"{case.get('classname')}::{case.get('name')}")
        for report in reports
        if report.exists()
        for case in ET.parse(report).iter("testcase")
    ]
    return sorted(took, reverse=True)[:SLOWEST]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", nargs="*", help=f"of {', '.join(stages())}; all of them unless named")
    parser.add_argument("--quick", action="store_true", help=f"only {' and '.join(QUICK)}, without slow tests")
    args = parser.parse_args()
    if unknown := set(args.stage) - stages().keys():
        parser.error(f"no stage {', '.join(sorted(unknown))}; there are {', '.join(stages())}")
    wanted = args.stage or (QUICK if args.quick else stages())
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or every process compiles every module again
    options = [f"--numprocesses={os.cpu_count() or 1}"]
    live = len(wanted) == 1
    if args.quick:
        os.environ["ADE_TEST_QUICK"] = "1"
        options += ["-m", "not slow"]
    else:
        threading.Thread(target=fetch_servers, daemon=True).start()
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="ade-stages-") as folder,
        run_folder(),
        ThreadPoolExecutor(1 if live else AT_A_TIME) as pool,
    ):
        reports = {name: Path(folder) / f"{name}.xml" for name in wanted}
        passed = pool.map(lambda name: run(name, stages()[name], options, reports[name], live=live), wanted)
        failed = [name for name, fine in zip(wanted, passed, strict=True) if not fine]
        print(f"── the slowest {SLOWEST} tests, in seconds ──")
        for seconds, test in slowest(list(reports.values())):
            print(f"{seconds:7.1f}  {test}")
    print(f"{'FAILED: ' + ', '.join(failed) if failed else 'all passed'} in {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
