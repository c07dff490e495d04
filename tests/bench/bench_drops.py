"""Many small files: from the moment that a file is there until its result is, and what each costs.

    python -m tests.bench drops [--burst 60] [--single 15] [--only WAY ...]

A workbook of 20 rows of the ten columns of `engine`. `single`: one file at a time on an idle service, from the rename to
result.json. `burst`: all at once. CPU is that of the whole service, after a first few files, per file. Ours reads the
manifest, runs the engine in a sandbox, checks what comes out of it, writes an audit and a report beside the workbook, and
keeps every step on disk; the peers only convert the file, with the openpyxl script, and keep their queue on disk.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from tests.bench.bench_engine import MANIFEST, workbook
from tests.bench.harness.cells import assert_equal
from tests.bench.harness.environments import PEERS, ROOT, own_environment, own_versions, python_of, versions_of
from tests.bench.harness.figures import Figure, Report, Section
from tests.bench.harness.process_trees import adopt_orphans, cpu_seconds, memory_mb

NAME = "drops"
TITLE = "Many small files"
OURS = "ade up"
ROWS = 20
BURST, SINGLE = 60, 15
RULES = {
    "columns/last_name.py": "def transform(*, value):\n    return value\n",
    "columns/gross_pay.py": "def validate(*, value):\n    return None\n",
}
_LOOK = 0.001
_LONGEST = 300.0
_WARM = 6


class Service(Protocol):
    """Something that turns files into results until it is stopped."""

    def send(self, source: Path, n: int) -> None: ...
    def result(self, n: int) -> Path: ...
    def is_done(self, n: int) -> bool: ...
    def cpu(self) -> float: ...
    def memory(self) -> float: ...


class AdeUp:
    """The embedded service: a folder as bucket, SQLite as table and queue."""

    def __init__(self, folder: Path, process: "subprocess.Popen[str]", rules: dict[str, str]) -> None:
        self._folder, self._process, self._rules = folder, process, rules

    def send(self, source: Path, n: int) -> None:
        drop = self._folder / "outside" / f"d{n}"
        (drop / "config").mkdir(parents=True)
        shutil.copy(source, drop / "m.xlsx")
        for name, body in self._rules.items():
            (drop / "config" / name).parent.mkdir(parents=True, exist_ok=True)
            (drop / "config" / name).write_text(body)
        manifest = MANIFEST | ({"config": "./config"} if self._rules else {})
        (drop / "manifest.json").write_text(json.dumps(manifest))
        if not self._rules:
            (drop / "config").rmdir()
        inbox = self._folder / "data" / "bucket" / "inbox" / f"t{n % 4}"
        inbox.mkdir(parents=True, exist_ok=True)
        drop.rename(inbox / f"d{n}")

    def result(self, n: int) -> Path:
        (found,) = self._results(n)
        said = json.loads(found.read_text())
        if said["status"] != "SUCCEEDED":
            raise SystemExit(f"drop {n} ended as {said['status']}: {said.get('error')}")
        return found.with_name("normalized.xlsx")

    def is_done(self, n: int) -> bool:
        return bool(self._results(n))

    @property
    def pid(self) -> int:
        return self._process.pid

    def cpu(self) -> float:
        return cpu_seconds(self._process.pid)

    def memory(self) -> float:
        return memory_mb(self._process.pid)

    def _results(self, n: int) -> list[Path]:
        place = self._folder / "data" / "bucket" / "outputs" / f"t{n % 4}" / f"d{n}" / "m.xlsx" / "bench"
        try:
            return [path for job in os.scandir(place) if (path := Path(job.path) / "result.json").exists()]
        except (FileNotFoundError, NotADirectoryError):
            return []


@contextlib.contextmanager
def ade_up(folder: Path, rules: dict[str, str] | None = None, **settings: str) -> Iterator[AdeUp]:
    env = own_environment(ADE_STORAGE_DATA_DIR=str(folder / "data"), PYTHONPATH=str(ROOT), **settings)
    command = [Path(sys.executable).with_name("ade"), "up", "--json"]
    with (
        (folder / "said").open("w") as said,
        subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=said, text=True) as process,
    ):
        assert process.stdout is not None
        # Who does not read a full pipe stops the one that writes.
        reader = threading.Thread(target=deque, args=(process.stdout, 0), daemon=True)
        try:
            for line in process.stdout:
                if '"up"' in line:
                    break
            else:
                raise SystemExit(f"ade up did not start: {(folder / 'said').read_text()[-2000:]}")
            reader.start()
            yield AdeUp(folder, process, rules or {})
        finally:
            process.terminate()
            if reader.ident is not None:
                reader.join()  # to the end of the pipe, which is closed after it


class Workers:
    """A peer: processes that were started, and a way to hand them a file."""

    def __init__(
        self, folder: Path, started: list["subprocess.Popen[str]"], hand: Callable[[Path, Path], None]
    ) -> None:
        self._folder, self._started, self._hand = folder, started, hand

    def send(self, source: Path, n: int) -> None:
        self._hand(source, self.result(n))

    def result(self, n: int) -> Path:
        return self._folder / f"{n}.xlsx"

    def is_done(self, n: int) -> bool:
        return self.result(n).exists()

    def cpu(self) -> float:
        return sum(cpu_seconds(process.pid) for process in self._started)

    def memory(self) -> float:
        return sum(memory_mb(process.pid) for process in self._started)


@contextlib.contextmanager
def workers(folder: Path, module: str, command: list[str]) -> Iterator[Workers]:
    python = python_of("tasks")
    here = PEERS / "tasks"
    env = own_environment(BENCH_FOLDER=str(folder), PYTHONPATH=str(here))
    with (folder / "said").open("w") as said, contextlib.ExitStack() as opened:

        def start(words: list[str | Path], **more: object) -> "subprocess.Popen[str]":
            process = subprocess.Popen(words, env=env, cwd=folder, stdout=said, stderr=said, text=True, **more)  # type: ignore[call-overload]
            opened.callback(process.wait)
            opened.callback(process.terminate)
            return process

        service = start([python, *command])
        sender = start([python, here / "send.py", module], stdin=subprocess.PIPE)

        def hand(source: Path, target: Path) -> None:
            sender.stdin.write(f"{source} {target}\n")
            sender.stdin.flush()

        yield Workers(folder, [service, sender], hand)


def celery(folder: Path) -> contextlib.AbstractContextManager[Workers]:
    words = "-m celery -A celery_tasks worker --concurrency 2 --without-gossip --without-mingle --loglevel error"
    return workers(folder, "celery_tasks", words.split())


def huey(folder: Path) -> contextlib.AbstractContextManager[Workers]:
    words = "-m huey.bin.huey_consumer huey_tasks.huey --workers 2 --worker-type process"
    words += " --delay 0.005 --max-delay 0.005 --quiet"
    return workers(folder, "huey_tasks", words.split())


@contextlib.contextmanager
def interpreters(folder: Path) -> Iterator[Workers]:
    """One process per file, two at a time: a shell loop with xargs -P 2."""
    command = f"xargs -L 1 -P 2 {python_of('tasks')} {PEERS / 'tasks' / 'one_file.py'}"
    with (folder / "said").open("w") as said:
        process = subprocess.Popen(command.split(), stdin=subprocess.PIPE, stdout=said, stderr=said, text=True)

        def hand(source: Path, target: Path) -> None:
            process.stdin.write(f"{source} {target}\n")
            process.stdin.flush()

        yield Workers(folder, [process], hand)
        process.stdin.close()
        process.wait()


WAYS: dict[str, Callable[[Path], contextlib.AbstractContextManager[Service]]] = {
    OURS: ade_up,
    "ade up, with rules": lambda folder: ade_up(folder, RULES),
    "one interpreter per file": interpreters,
    "Celery, no sandbox": celery,
    "huey, no sandbox": huey,
}


def wait_for(service: Service, numbers: range) -> None:
    until, left = time.perf_counter() + _LONGEST, list(numbers)
    while left:
        left = [n for n in left if not service.is_done(n)]
        if time.perf_counter() > until:
            raise TimeoutError(f"{len(left)} files are not done after {_LONGEST:g} s")
        time.sleep(_LOOK)


def measure(way: str, folder: Path, sources: list[Path], single: int, burst: int) -> tuple[dict[str, Figure], Path]:
    """Figures of one way, and its result of the first file."""
    with WAYS[way](folder) as service:
        for n in range(_WARM):
            service.send(sources[n], n)
            wait_for(service, range(n, n + 1))
        took = []
        for n in range(_WARM, _WARM + single):
            time.sleep(0.02)
            began = time.perf_counter()
            service.send(sources[n], n)
            wait_for(service, range(n, n + 1))
            took.append((time.perf_counter() - began) * 1000)
        first = _WARM + single
        cpu, began = service.cpu(), time.perf_counter()
        for n in range(first, first + burst):
            service.send(sources[n], n)
        wait_for(service, range(first, first + burst))
        seconds = time.perf_counter() - began
        used = service.cpu() - cpu
        memory = service.memory()
        kept = folder.with_name(f"{folder.name}.xlsx")
        shutil.copy(service.result(0), kept)
    figures = {
        "CPU ms per file": used / burst * 1000,
        "files/s in a burst": burst / seconds,
        "p50 ms, one at a time": statistics.median(took),
        "p95 ms": sorted(took)[int(len(took) * 0.95)],
        "MB after it": memory,
    }
    return {name: Figure.of([value]) for name, value in figures.items()}, kept


def compare(
    ways: list[str], python: Path, *, single: int, burst: int, repeat: int
) -> tuple[dict[str, dict[str, Figure]], str]:
    adopt_orphans()
    source = workbook(ROWS, python)
    runs: dict[str, list[dict[str, Figure]]] = {}
    cells = 0
    with tempfile.TemporaryDirectory(prefix="ade-bench-") as name:
        # Files that differ, as files do: the same bytes would be the same job.
        sources = [distinct(source, Path(name) / f"in{n}.xlsx", n) for n in range(_WARM + single + burst)]
        for turn in range(repeat):
            ours = None
            for number, way in enumerate(ways):
                folder = Path(name) / f"{turn}-{number}"
                folder.mkdir()
                try:
                    figures, kept = measure(way, folder, sources, single, burst)
                except TimeoutError as error:
                    raise SystemExit(f"{way}: {error}\n{(folder / 'said').read_text()[-2000:]}") from error
                ours = ours or kept
                cells += assert_equal(ours, kept, way)
                runs.setdefault(way, []).append(figures)
                shutil.rmtree(folder, ignore_errors=True)
    merged = {
        way: {key: Figure.of([found[key].median for found in all_of]) for key in all_of[0]}
        for way, all_of in runs.items()
    }
    return merged, f"Compared in each run: {cells:,} cells, none different."


def distinct(source: Path, target: Path, n: int) -> Path:
    """The same workbook with a comment of its own at the end of the zip file."""
    body, comment = source.read_bytes(), f"{n:08d}".encode()
    target.write_bytes(body[:-2] + len(comment).to_bytes(2, "little") + comment)
    return target


def section(
    ways: list[str], python: Path, *, single: int, burst: int, repeat: int, title: str, command: str
) -> Section:
    found, compared = compare(ways, python, single=single, burst=burst, repeat=repeat)
    return Section(
        title=title,
        command=command,
        ways=found,
        repeats=repeat,
        ours=OURS,
        ratio_of="CPU ms per file",
        compared=compared,
    )


QUICK_TITLE = "Ten files, as CI checks them"


def quick() -> list[Section]:
    python = Path(sys.executable)
    ways = [OURS, "ade up, with rules"]
    command = "make bench ARGS='drops --quick'"
    return [section(ways, python, single=2, burst=10, repeat=1, title=QUICK_TITLE, command=command)]


def main(words: list[str]) -> Report:
    parser = argparse.ArgumentParser(
        prog="drops", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--burst", type=int, default=BURST)
    parser.add_argument("--single", type=int, default=SINGLE)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=list(WAYS))
    asked = parser.parse_args(words)
    title = f"{asked.burst} files of {ROWS} rows"
    found = section(
        asked.only or list(WAYS),
        python_of("frames"),
        single=asked.single,
        burst=asked.burst,
        repeat=asked.repeat,
        title=title,
        command="make bench ARGS=drops",
    )
    whole = (asked.burst, asked.single, asked.only) == (BURST, SINGLE, None)
    sections = [found, *(quick() if whole else ())]
    versions = own_versions() | versions_of("tasks")
    return Report(name=NAME, title=TITLE, sections=sections, versions=versions, whole=whole)
