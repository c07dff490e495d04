"""Runs the simulator: `python -m tests.sim --seeds 20000` for many seeds, `--seed 41 -v` for one and its whole trace."""

import argparse
import functools
import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator

from tests.sim import mutants
from tests.sim.world import Outcome
from tests.support.postgres_server import cluster

Run = Callable[[tuple[int, str | None]], Outcome]

_SHOWN = 60  # last lines of a trace that are shown without -v
_TOLD_SECONDS = 30.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds to run")
    parser.add_argument("--start", type=int, default=0, help="the first of them")
    parser.add_argument("--fresh", action="store_true", help="start at a seed that nobody has tried")
    parser.add_argument("--seed", type=int, help="run this one seed")
    parser.add_argument("--without", choices=sorted(mutants.MUTANTS), help="undo a fix: a bug that must be found")
    parser.add_argument("--first", action="store_true", help="stop at the first seed that finds something")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes to run side by side")
    parser.add_argument("-v", action="store_true", dest="verbose", help="show the whole trace of what is found")
    parser.add_argument("--postgres", action="store_true", help="table and queue on a PostgreSQL server of its own")
    parser.add_argument("--crowd", action="store_true", help="tenants that sleep in every slot, and no faults")
    parser.add_argument("--shared", action="store_true", help="one workflow for two tenants, and its authors")
    parser.add_argument("--withdrawn", action="store_true", help="the same workflow, taken away and put back")
    asked = parser.parse_args()
    if asked.fresh:
        asked.start = random.SystemRandom().randrange(1 << 40)
    if not asked.postgres:
        modes = {"crowd": asked.crowd, "shared": asked.shared, "withdrawn": asked.withdrawn}
        return _run(asked, functools.partial(mutants.run, **modes))
    with cluster(config="fsync = off\n") as server:
        return _run(asked, functools.partial(mutants.run, database=server.url))


def _run(asked: argparse.Namespace, run: Run) -> int:
    if asked.seed is not None:
        outcome = run((asked.seed, asked.without))
        print("\n".join(outcome.lines if asked.verbose else outcome.lines[-_SHOWN:]))
        print(f"seed {asked.seed}: {outcome.steps} steps, digest {outcome.digest[:16]}")
        _show(outcome, lines=0)
        return bool(outcome.broken)
    return _many(asked, run)


def _many(asked: argparse.Namespace, run: Run) -> int:
    began = told = time.monotonic()
    met: Counter[str] = Counter()
    found, done = list[int](), 0
    print(f"seeds {asked.start} to {asked.start + asked.seeds - 1}", flush=True)
    for outcome in _outcomes(asked, run):
        done += 1
        met.update(outcome.met)
        if outcome.broken:
            found.append(outcome.seed)
            _show(outcome, lines=len(outcome.lines) if asked.verbose else 0)
            if asked.first:
                break
        if time.monotonic() - told > _TOLD_SECONDS:
            told = time.monotonic()
            print(f"{done} of {asked.seeds}, {done / (told - began):.0f} a second, {len(found)} found", flush=True)
    print(", ".join(f"{name} {n}" for name, n in met.most_common()))
    print(f"{done} seeds in {time.monotonic() - began:.0f} s, found: {found or 'nothing'}")
    return bool(found)


def _outcomes(asked: argparse.Namespace, run: Run) -> Iterator[Outcome]:
    work = [(seed, asked.without) for seed in range(asked.start, asked.start + asked.seeds)]
    if asked.jobs == 1:
        yield from map(run, work)
        return
    with multiprocessing.get_context("spawn").Pool(asked.jobs) as pool:
        yield from pool.imap_unordered(run, work, chunksize=8)


def _show(outcome: Outcome, *, lines: int) -> None:
    if outcome.broken:
        print("\n".join(outcome.lines[len(outcome.lines) - lines :]))
        print(f"seed {outcome.seed} found:", *outcome.broken[:10], sep="\n  ")
        print(
            f"  its whole story: python -m tests.sim --seed {outcome.seed} -v (and --postgres, --shared or --withdrawn, if there)",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
