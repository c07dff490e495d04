"""CPU and memory of a command and everything that it starts, as the kernel counts them.

CPU: of all processes that ended below this one; those that lose their parent become children of this process, so none
is missed. Memory: every 20 ms, the proportional set sizes (PSS) of all live processes, added up: a page that several
share counts once. Where PSS may not be read, resident sizes.
"""

import contextlib
import ctypes
import os
import resource
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_SAMPLE_SECONDS = 0.02
_PR_SET_CHILD_SUBREAPER = 36
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024


class Usage(NamedTuple):
    cpu_s: float
    wall_s: float
    peak_mb: float


def run(
    command: Sequence[str | Path], *, folder: Path, env: Mapping[str, str] | None = None, cores: int | None = None
) -> Usage:
    """Run a command to its end. `cores`: on how many it may run, all unless said. Raises SystemExit if it fails."""
    adopt_orphans()
    said = folder / "said"
    before, began = _ended_cpu(), time.perf_counter()
    with said.open("wb") as output, contextlib.ExitStack() as opened:
        process = subprocess.Popen(
            [str(part) for part in command],
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        if cores is not None:
            os.sched_setaffinity(process.pid, sorted(os.sched_getaffinity(0))[:cores])
        peak = opened.enter_context(peak_of(process.pid))
        status = process.wait()
        wall = time.perf_counter() - began
    _reap()
    if status:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {status}:\n{said.read_text()[-4000:]}")
    return Usage(_ended_cpu() - before, wall, peak[0])


@contextlib.contextmanager
def peak_of(pid: int) -> Iterator[list[float]]:
    """A list whose one value is the highest memory of a process tree so far, in MB."""
    peak, ended = [0.0], threading.Event()

    def sample() -> None:
        while not ended.wait(_SAMPLE_SECONDS):
            peak[0] = max(peak[0], memory_mb(pid))

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    try:
        yield peak
    finally:
        ended.set()
        sampler.join()


def memory_mb(pid: int) -> float:
    return sum(map(_memory_kb, tree(pid))) / 1024


def cpu_seconds(pid: int) -> float:
    """Of a live tree so far: of each of its processes, and of those that they waited for."""
    total = 0
    for one in tree(pid):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15]))
    return total / _TICKS


def cpu_by_process(pid: int) -> dict[int, tuple[str, float]]:
    """Of each live process of a tree: its name, and the seconds of CPU that it used itself."""
    found = {}
    for one in tree(pid):
        with contextlib.suppress(OSError):
            name, _, rest = Path(f"/proc/{one}/stat").read_text().partition("(")[2].rpartition(")")
            found[one] = (name, sum(map(int, rest.split()[11:13])) / _TICKS)
    return found


def memory_of(pid: int) -> float:
    """Of one process, in MB."""
    return _memory_kb(pid) / 1024


def tree(pid: int) -> list[int]:
    """A process and its live descendants."""
    found, left = [], [pid]
    while left:
        found.append(one := left.pop())
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{one}/task").iterdir():
                left += map(int, (task / "children").read_text().split())
    return found


def adopt_orphans() -> None:
    """Processes that lose their parent below this one become children of this process, so that they are counted."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _memory_kb(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_KB
    return 0


def _ended_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
