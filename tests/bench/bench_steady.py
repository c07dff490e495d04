"""What `ade up` does over a long time: how its memory grows with drops, and how often it wakes while nothing happens.

    python -m tests.bench steady [--drops 5000] [--idle 60]

Memory: the PSS of all its processes, after each fiftieth of the drops, which come in small groups; the slope is that of the
straight line through the second half, when caches are full and every zygote is warm, for all together and for each kind of
process. Wake-ups: voluntary context switches of every thread over the idle seconds, as the kernel counts them.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.bench.bench_drops import ROWS, AdeUp, ade_up, distinct, wait_for
from tests.bench.bench_engine import workbook
from tests.bench.harness.process_trees import adopt_orphans, memory_of, tree

_GROUP = 10  # drops at once
_POINTS = 50


def wake_ups(pid: int) -> Counter[str]:
    """Voluntary context switches so far, by process and thread of a tree."""
    found: Counter[str] = Counter()
    for one in tree(pid):
        process = _field(Path(f"/proc/{one}/comm"))
        for task in Path(f"/proc/{one}/task").glob("*"):
            for line in _field(task / "status").splitlines():
                if line.startswith("voluntary_ctxt_switches:"):
                    found[f"{process} {one}: thread {_field(task / 'comm')} {task.name}"] = int(line.split()[1])
    return found


def _field(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:  # it has ended in between
        return ""


def memory_by_name(pid: int) -> Counter[str]:
    """Kilobytes of a tree's processes, by their names."""
    found: Counter[str] = Counter()
    for one in tree(pid):
        found[_field(Path(f"/proc/{one}/comm"))] += round(memory_of(one) * 1024)
    return found


def measure_memory(service: AdeUp, source: Path, folder: Path, drops: int) -> list[tuple[int, Counter[str]]]:
    """Kilobytes by process after so many drops."""
    points = []
    for first in range(0, drops, _GROUP):
        numbers = range(first, min(drops, first + _GROUP))
        for n in numbers:
            service.send(distinct(source, folder / "one.xlsx", n), n)
        wait_for(service, numbers)
        done = numbers.stop
        if done * _POINTS // drops > first * _POINTS // drops:
            points.append((done, memory_by_name(service.pid)))
    return points


def print_memory(points: list[tuple[int, Counter[str]]]) -> None:
    for done, by_name in points[:: max(1, len(points) // 10)]:
        print(
            f"after {done:,} drops {by_name.total() / 1024:.1f} MB:",
            *(f"{n} {kb / 1024:.1f}" for n, kb in by_name.items()),
        )
    late = points[len(points) // 2 :]
    print(
        f"slope from {late[0][0]:,} to {late[-1][0]:,} drops: {slope([(n, kb.total()) for n, kb in late]):+.2f} KB a drop"
    )
    for name in late[-1][1]:
        print(f"  {name}: {slope([(n, kb[name]) for n, kb in late]):+.2f} KB a drop", flush=True)


def slope(points: list[tuple[int, int]]) -> float:
    """Of the straight line through them."""
    return statistics.linear_regression([n for n, _ in points], [kb for _, kb in points]).slope


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="steady", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--drops", type=int, default=5000)
    parser.add_argument("--idle", type=float, default=60.0)
    asked = parser.parse_args(words)
    adopt_orphans()
    source = workbook(ROWS, Path(sys.executable))
    with tempfile.TemporaryDirectory(prefix="ade-bench-") as name, ade_up(Path(name)) as service:
        if asked.drops:
            print_memory(measure_memory(service, source, Path(name), asked.drops))
        time.sleep(5.0)  # what follows a drop is over
        before, cpu = wake_ups(service.pid), service.cpu()
        time.sleep(asked.idle)
        woken, used = wake_ups(service.pid) - before, service.cpu() - cpu
    print(f"idle: {woken.total() / asked.idle:.2f} wake-ups and {used / asked.idle * 1000:.2f} ms of CPU a second")
    for thread, count in woken.most_common(12):
        print(f"  {count / asked.idle:6.2f} a second: {thread}")


if __name__ == "__main__":
    main(sys.argv[1:])
