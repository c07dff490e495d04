"""The engine against what people use today: one workbook, the same work, one after the other on one machine.

python -m tests.bench.bench_engine [--rows 100000] [--repeat 3] [--only engine]
"""

import argparse
import compileall
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PEERS = HERE / "peers"
CACHE = ROOT / "bench-results" / "engine"
PACKAGES = ("openpyxl", "pandas", "python-calamine", "xlsxwriter", "isal")
SCRIPTS = ("openpyxl_plain", "pandas_openpyxl", "pandas_calamine_xlsxwriter")
PROMISE = {"openpyxl_plain": 10.0, "pandas_openpyxl": 10.0, "pandas_calamine_xlsxwriter": 6.0}
FIELDS = [
    {"name": "member_id", "required": True, "unique": True, "pattern": "M[0-9]{7}", "clean": ["strip", "upper"]},
    {"name": "first_name"},
    {"name": "last_name", "required": True},
    {"name": "email", "type": "email"},
    {"name": "start_date", "type": "date", "required": True},
    {"name": "birth_date", "type": "date"},
    {"name": "gross_pay", "type": "money"},
    {"name": "hours", "type": "decimal"},
    {"name": "plan", "type": "enum", "allowed": ["Gold", "Silver", "Bronze"]},
    {"name": "active", "type": "boolean"},
]
MANIFEST = {"manifest": 1, "name": "bench", "fields": FIELDS}


class Run(NamedTuple):
    cpu: float
    wall: float
    peak_mb: float


def peers_python() -> Path:
    """A virtual environment of the peers' own, made once."""
    home = CACHE / "venv"
    python = home / "bin" / "python"
    if not (home / ".done").exists():
        venv.create(home, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        (home / ".done").touch()
    return python


def workbook(rows: int) -> Path:
    path = CACHE / f"members-{rows}.xlsx"
    if not path.exists():
        print(f"making a workbook of {rows} rows ...", flush=True)
        subprocess.run([peers_python(), PEERS / "make_workbook.py", path, str(rows)], check=True)
    return path


def measure(command: list[str | Path], cwd: Path) -> Run:
    """CPU seconds and peak memory of a command and its children, as the kernel counted them."""
    start = time.perf_counter()
    pid = os.posix_spawn(
        str(command[0]),
        [str(c) for c in command],
        {**os.environ, "PYTHONPATH": str(ROOT)},
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, str(cwd / "said"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)],
    )
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - start
    if status:
        raise SystemExit(f"{command} failed: {status}\n{(cwd / 'said').read_text()}")
    return Run(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)


def engine_command(source: Path, folder: Path) -> list[str | Path]:
    order = {
        "order": 1,
        "job": {"job_id": "bench", "tenant": "bench", "workflow": "bench", "attempt": 1},
        "manifest": MANIFEST,
        "params": {},
        "inputs": [{"role": "primary", "name": source.name, "path": str(source), "size": source.stat().st_size}],
        "config": {"path": None},
        "outputs": {n: str(folder / n) for n in ("normalized.xlsx", "artifact.json")},
    }
    (folder / "order.json").write_text(json.dumps(order))
    return [sys.executable, "-B", "-m", "runner.engine", folder / "order.json", "--channel", "1"]


def try_command(source: Path, folder: Path) -> list[str | Path] | None:
    ade = Path(sys.executable).with_name("ade")
    if not ade.exists() or not (ROOT / "console" / "main.py").exists():
        return None
    (folder / "manifest.json").write_text(json.dumps(MANIFEST))
    return [ade, "try", source, "--manifest", folder / "manifest.json", "--out", folder / "out"]


def commands(source: Path, folder: Path, only: list[str]) -> dict[str, list[str | Path]]:
    found: dict[str, list[str | Path]] = {"engine": engine_command(source, folder)}
    if tried := try_command(source, folder):
        found["ade try"] = tried
    for name in SCRIPTS:
        if not only or name in only:
            found[name] = [peers_python(), PEERS / f"{name}.py", source, folder / f"{name}.xlsx"]
    return {k: v for k, v in found.items() if not only or k in only}


def table(rows: int, medians: dict[str, Run]) -> str:
    ours = medians.get("ade try") or medians["engine"]
    lines = [f"{rows} x 10", f"{'way':<28}{'CPU s':>9}{'wall s':>9}{'peak MB':>9}{'us/row':>9}{'ratio':>8}  promise"]
    for name, run in medians.items():
        ratio = run.cpu / ours.cpu
        want = f">= {PROMISE[name]:g}: {'held' if ratio >= PROMISE[name] else 'BROKEN'}" if name in PROMISE else ""
        each = run.cpu / rows * 1e6
        lines.append(f"{name:<28}{run.cpu:>9.2f}{run.wall:>9.2f}{run.peak_mb:>9.0f}{each:>9.1f}{ratio:>8.1f}  {want}")
    return "\n".join(lines)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[], help="engine, 'ade try' or names of peers")
    options = parser.parse_args(words)
    CACHE.mkdir(parents=True, exist_ok=True)
    source = workbook(options.rows)
    compileall.compile_dir(ROOT / "runner", quiet=1)  # as an installed package is, the peers' included
    with tempfile.TemporaryDirectory(prefix="ade-bench-") as name:
        folder = Path(name)
        runs: dict[str, list[Run]] = {}
        todo = commands(source, folder, options.only)
        for _ in range(options.repeat):
            for way, command in todo.items():  # in turn, so that a busy moment hits all alike
                runs.setdefault(way, []).append(measure(command, folder))
    medians = {way: Run(*(statistics.median(v) for v in zip(*r, strict=True))) for way, r in runs.items()}
    print(table(options.rows, medians))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
