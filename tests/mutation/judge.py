"""Runs the tests against mutants: which of them notices.

Theory of operation. One process imports pytest and what the product needs, and forks. A first child runs the tests
once with a tracer and writes down which lines each of them reaches, and how long it takes. A second child lets pytest
collect the tests and then forks for every mutant of a function: the grandchild swaps the code of that one function and
runs the tests that reach the changed line, the quickest and the most successful first, until one fails. A mutant
outside of every function (a constant, a table, a default) gets a child of its own that loads the changed module when
the tests import it. A test that takes far longer than it should is ended by an alarm, which counts as noticed.
"""

import contextlib
import dataclasses
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from _pytest.warnings import catch_warnings_for_item

from tests.mutation.mutants import Mutant

ROOT = Path(__file__).parents[2]
_HEAVY = ("apscheduler.schedulers.background", "boto3", "hypothesis", "jsonschema_rs", "minio", "openpyxl", "pydantic")
_PYTEST = [
    "-q", "--no-header", "--no-summary", "--tb=no", "--assert=plain", "--import-mode=importlib", "--strict-markers",
    "-p", "no:cacheprovider", "-o", "addopts=", "-o", "timeout=0",
]  # fmt: skip
_HANGS_SECONDS = 90.0


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    test_seconds: float  # a test that takes longer than this against the real code is left out
    mutant_seconds: float  # so much of tests for one mutant, the quickest first
    jobs: int


@dataclasses.dataclass(frozen=True, slots=True)
class Baseline:
    """What the tests do against the code as it is."""

    seconds: dict[str, float]  # by test
    reached: dict[str, dict[str, list[int]]]  # module, test: lines
    failed: list[str]

    def tests_for(self, mutant: Mutant, last_line: int, limits: Limits, kills: Counter[str]) -> list[str]:
        """Those that reach a mutant, in the order in which they are to be tried."""
        reached = self.reached.get(mutant.module, {})
        lines = set(range(mutant.line, last_line + 1))
        found = [t for t, seen in reached.items() if lines.intersection(seen)]
        if not mutant.function:  # a table or constant is read by whoever reaches its module, or any other one
            found = list(reached or {t: () for tests in self.reached.values() for t in tests})
        found = [t for t in found if self.seconds[t] <= limits.test_seconds]
        found.sort(key=lambda t: (self.seconds[t] + 0.02) / (1 + kills[t]))
        taken, spent = [], 0.0
        for test in found:
            spent += self.seconds[test]
            if spent > limits.mutant_seconds and taken:
                break
            taken.append(test)
        return taken


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    key: str
    killed: bool
    how: str  # the test that failed, "timeout of …", or why nothing did
    tests: int  # how many were there to try


def prepare() -> None:
    """Import what every child needs, and nothing of the product."""
    for name in _HEAVY:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def baseline(paths: list[str], modules: list[str], deselect: Callable[[str], bool]) -> Baseline:
    """Run the tests once against the code as it is."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "baseline.json"
        pid = os.fork()
        if pid == 0:
            _child(lambda: _pytest(paths, _Tracing(modules, deselect, out, Path(folder) / "tmp")))
        os.waitpid(pid, 0)
        told = json.loads(out.read_text()) if out.exists() else {}
    if "seconds" not in told:
        sys.exit("the tests do not run without any mutation either")
    return Baseline(**told)


def judge(
    mutants: list[Mutant],
    base: Baseline,
    paths: list[str],
    limits: Limits,
    report: Callable[[Mutant, Verdict], None],
) -> None:
    """Judge mutants, each in a process of its own; `report` is called in this process or in a child of it."""
    inside = [m for m in mutants if m.function]
    outside = [m for m in mutants if not m.function]
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        _child(lambda: _pytest(paths, _Serving(inside, base, limits, write)))
    os.close(write)
    by_key = {m.key: m for m in mutants}
    with os.fdopen(read) as lines:
        for line in lines:
            verdict = Verdict(**json.loads(line))
            report(by_key[verdict.key], verdict)
    os.waitpid(pid, 0)

    def fresh(mutant: Mutant, tests: list[str], folder: Path) -> Callable[[], None]:
        def run() -> None:
            sys.meta_path.insert(0, _Finder(mutant))
            _pytest(sorted({t.split("::")[0] for t in tests}), _Chosen(tests, base, folder))

        return run

    _pool(outside, base, limits, fresh, report)


class _Tracing:
    """Notes which lines of the modules each test reaches."""

    def __init__(self, modules: list[str], deselect: Callable[[str], bool], out: Path, tmp: Path) -> None:
        self._files = {str(ROOT / module): module for module in modules}
        self._deselect = deselect
        self._out = out
        self._tmp = tmp
        self._lines: dict[str, set[int]] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if not self._deselect(item.nodeid)]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        _use_folder(session.config, self._tmp)
        seconds: dict[str, float] = {}
        reached: dict[str, dict[str, list[int]]] = {module: {} for module in self._files.values()}
        failed = []
        for n, item in enumerate(session.items):
            self._lines = {}
            threading.settrace(self._called)
            sys.settrace(self._called)
            # CPU seconds of this process: a busy machine must not change which tests count as quick.
            start = time.process_time()
            reports = _run(item, session.items[n + 1 :])
            seconds[item.nodeid] = time.process_time() - start
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            for name, lines in self._lines.items():
                reached[self._files[name]][item.nodeid] = sorted(lines)
            if any(r.failed for r in reports):
                failed.append(item.nodeid)
            _show(f"baseline {n + 1}/{len(session.items)}")
        self._out.write_text(json.dumps({"seconds": seconds, "reached": reached, "failed": failed}))
        return True

    def _called(self, frame: FrameType, event: str, arg: Any) -> Any:
        name = frame.f_code.co_filename
        if name not in self._files:
            return None
        lines = self._lines.setdefault(name, set())
        lines.add(frame.f_lineno)

        def reached(frame: FrameType, event: str, arg: Any) -> Any:
            lines.add(frame.f_lineno)
            return reached

        return reached


class _Serving:
    """Forks from a collected session for every mutant of a function."""

    def __init__(self, mutants: list[Mutant], base: Baseline, limits: Limits, out: int) -> None:
        self._mutants = mutants
        self._base = base
        self._limits = limits
        self._out = out

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        functions = _functions({str(ROOT / m.module) for m in self._mutants})
        gc.collect()
        gc.freeze()

        def swapped(mutant: Mutant, tests: list[str], folder: Path) -> Callable[[], None]:
            def run() -> None:
                _swap(mutant, functions)
                _try_out([items[t] for t in tests], self._base, folder)

            return run

        def report(_: Mutant, verdict: Verdict) -> None:
            os.write(self._out, (json.dumps(dataclasses.asdict(verdict)) + "\n").encode())

        _pool(self._mutants, self._base, self._limits, swapped, report)
        return True


class _Chosen:
    """Runs chosen tests in the chosen order until one fails."""

    def __init__(self, tests: list[str], base: Baseline, folder: Path) -> None:
        self._tests = tests
        self._base = base
        self._folder = folder

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        _try_out([items[t] for t in self._tests if t in items], self._base, self._folder)
        return True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            _end(self._folder, "failed", "the collection of the tests")  # the changed module does not load


def _pool(
    mutants: list[Mutant],
    base: Baseline,
    limits: Limits,
    prepare_child: Callable[[Mutant, list[str], Path], Callable[[], None]],
    report: Callable[[Mutant, Verdict], None],
) -> None:
    """A child for each mutant, a few at a time."""
    kills: dict[tuple[str, str], Counter[str]] = {}
    running: dict[int, tuple[Mutant, int, Path]] = {}
    waiting = list(reversed(mutants))
    while waiting or running:
        while waiting and len(running) < limits.jobs:
            mutant = waiting.pop()
            place = (mutant.module, mutant.function)
            tests = base.tests_for(mutant, _last_line(mutant), limits, kills.setdefault(place, Counter()))
            if not tests:
                report(mutant, Verdict(mutant.key, killed=False, how="no test reaches it", tests=0))
                continue
            folder = Path(tempfile.mkdtemp(prefix="mutant-"))
            pid = os.fork()
            if pid == 0:
                os.setpgid(0, 0)
                _child(prepare_child(mutant, tests, folder), silent=True)
            running[pid] = (mutant, len(tests), folder)
        if not running:
            continue
        pid, status = os.waitpid(-1, 0)
        if pid not in running:
            continue
        mutant, count, folder = running.pop(pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        verdict = _verdict(mutant, count, folder, status)
        shutil.rmtree(folder, ignore_errors=True)
        if verdict.killed:
            kills[(mutant.module, mutant.function)][verdict.how] += 1
        report(mutant, verdict)


def _verdict(mutant: Mutant, count: int, folder: Path, status: int) -> Verdict:
    """What a child wrote down, or how it ended without a word."""
    said = (folder / "said").read_text() if (folder / "said").exists() else ""
    end, _, test = said.partition("\n")
    if end == "survived":
        return Verdict(mutant.key, killed=False, how=f"{count} tests pass", tests=count)
    if end == "failed":
        return Verdict(mutant.key, killed=True, how=test, tests=count)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGALRM, signal.SIGPROF):
        return Verdict(mutant.key, killed=True, how=f"timeout of {test}", tests=count)
    return Verdict(mutant.key, killed=True, how=f"end of the process ({status}) in {test or 'the import'}", tests=count)


def _child(work: Callable[[], object], *, silent: bool = False) -> None:
    """Do the work of a child and end it without a word."""
    code = 3
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2) if silent else (0, 1):
            os.dup2(null, descriptor)
        work()
        code = 0
    finally:
        os._exit(code)


def _pytest(paths: list[str], plugin: object) -> None:
    os.chdir(ROOT)
    pytest.main([*_PYTEST, *paths], plugins=[plugin])


def _try_out(items: list[pytest.Item], base: Baseline, folder: Path) -> None:
    """Run tests until one fails; what runs and how it ended is written down in the child's folder."""
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _use_folder(items[0].config, folder / "tmp")
    for kind in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(kind, signal.SIG_DFL)
    for n, item in enumerate(items):
        (folder / "said").write_text(f"runs\n{item.nodeid}")
        # CPU time ends what loops; the wall clock only what hangs, for the machine may be busy.
        signal.setitimer(signal.ITIMER_PROF, 10 + 10 * base.seconds[item.nodeid])
        signal.setitimer(signal.ITIMER_REAL, _HANGS_SECONDS)
        reports = _run(item, items[n + 1 :])
        for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
            signal.setitimer(timer, 0)
        if any(r.failed for r in reports):
            _end(folder, "failed", item.nodeid)
    _end(folder, "survived", "")


def _end(folder: Path, how: str, test: str) -> None:
    (folder / "said").write_text(f"{how}\n{test}")
    os._exit(0)


def _run(item: pytest.Item, rest: list[pytest.Item]) -> list[pytest.TestReport]:
    with catch_warnings_for_item(item.config, item.ihook, when="runtest", item=item):  # its own filters count
        return runtestprotocol(item, log=False, nextitem=rest[0] if rest else None)


def _use_folder(config: pytest.Config, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    config._tmp_path_factory._basetemp = folder.resolve()  # type: ignore[attr-defined]


def _functions(files: set[str]) -> dict[tuple[str, str], list[FunctionType]]:
    """The functions of files by file and qualified name, as they are in memory."""
    found: dict[tuple[str, str], list[FunctionType]] = {}
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename in files:
            found.setdefault((thing.__code__.co_filename, thing.__code__.co_qualname), []).append(thing)
    return found


def _swap(mutant: Mutant, functions: dict[tuple[str, str], list[FunctionType]]) -> None:
    """Give a function the code of its mutant, wherever the function is bound."""
    path = ROOT / mutant.module
    changed = mutant.code(path.read_bytes(), path)
    there = functions[str(path), mutant.function]
    codes = {c.co_firstlineno: c for c in _codes(changed) if c.co_qualname == mutant.function}
    for function in there:
        code = codes[function.__code__.co_firstlineno]
        function.__code__ = code


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _last_line(mutant: Mutant) -> int:
    return mutant.line + (ROOT / mutant.module).read_bytes()[mutant.start : mutant.end].count(b"\n")


class _Finder(importlib.abc.MetaPathFinder):
    """Loads a module as its mutant."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant
        self._name = mutant.module.removesuffix(".py").replace("/", ".")

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        file = ROOT / self._mutant.module
        return importlib.util.spec_from_file_location(fullname, file, loader=_Loader(fullname, str(file), self._mutant))


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, mutant: Mutant) -> None:
        super().__init__(fullname, path)
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        return self._mutant.code(Path(self.path).read_bytes(), Path(self.path))


def _show(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()
