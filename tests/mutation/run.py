"""The command: which mutants, what became of them, what it says."""

import argparse
import functools
import hashlib
import json
import os
import random
import sys
import time
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

from tests.mutation import judge
from tests.mutation.mutants import Mutant, mutants_of

ROOT = judge.ROOT
KEPT = ROOT / ".mutation"
EXPLAINED = Path(__file__).with_name("survivors.toml")
WANTED = 0.85
MODULES = (
    "core/jobs.py", "core/verdicts.py", "core/chores.py", "core/drops.py",
    "handlers/intake.py", "handlers/planning.py", "handlers/workflows.py", "handlers/recording.py",
    "runner/worker.py", "runner/leases.py", "runner/publish.py", "runner/latest.py", "runner/documents.py",
    "runner/profiles.py", "runner/janitor.py",
    "runner/control.py", "infra/queueing.py",
)  # fmt: skip
# Quick tests of the spine on real adapters, embedded; the state machine and the cloud's servers take too long for this.
TESTS = (
    "tests/spine/test_*.py", "tests/contract/test_job_table.py", "tests/unit/runner/test_beats*.py", "tests/unit/core/test_core_drops.py",
    "tests/unit/core/test_core_jobs.py", "tests/unit/core/test_core_tables.py",
    "tests/unit/runner/test_fleet*.py", "tests/unit/handlers/test_handlers_*.py", "tests/unit/runner/test_janitor*.py",
    "tests/unit/runner/test_results.py", "tests/unit/runner/test_surroundings.py", "tests/unit/runner/test_worker*.py",
)  # fmt: skip
_SLOW_SECONDS = 2.0  # a test that took longer is not timed again before it changes
_LEFT_OUT = ("cloud", "dynamodb", "memory", "test_machine.py", "seaweedfs")


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="such as core/jobs.py; without: the whole spine")
    parser.add_argument("--sample", type=int, metavar="N", help="at most N mutants of each module")
    parser.add_argument("--seed", type=int, default=1, help="which sample (1)")
    parser.add_argument(
        "--resume", action="store_true", help="keep the verdicts of the last run where the code is the same"
    )
    parser.add_argument(
        "--survivors", action="store_true", help="only those that the last runs left, with all tests anew"
    )
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time (2)")
    parser.add_argument("--test-seconds", type=float, default=1.0, help="leave slower tests out (1)")
    parser.add_argument("--mutant-seconds", type=float, default=8.0, help="time for the tests of one mutant (8)")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    parser.add_argument("--list", action="store_true", help="list the mutants and judge none")
    args = parser.parse_args(words)
    modules = [m if m.endswith(".py") else f"{m.replace('.', '/')}.py" for m in args.modules] or list(MODULES)
    chosen = [m for module in modules for m in _sample(mutants_in(module), args.sample, args.seed)]
    if args.list:
        for m in chosen:
            print(f"{m.module}:{m.line} {m.function or '(module)'}: {m.mutation}")
        return 0
    results = Results(KEPT / "results.jsonl", resume=args.resume or args.survivors)
    every = [m for module in modules for m in mutants_in(module)]
    if args.survivors:
        chosen = [m for m in every if (known := results.of(m)) is not None and not known["killed"]]
    judge_all(chosen, results, judge.Limits(args.test_seconds, args.mutant_seconds, args.jobs))
    summary = summarize(every, results, load_explained())
    if args.json:
        print(json.dumps(summary, indent=2, ensure_ascii=False))
    else:
        show(summary, args)
    return 0 if summary["score_explained"] >= WANTED else 1


@functools.cache
def mutants_in(module: str) -> list[Mutant]:
    return mutants_of(module, (ROOT / module).read_bytes())


def _sample(mutants: list[Mutant], most: int | None, seed: int) -> list[Mutant]:
    """Some of the mutants in their order; a smaller sample of one seed is part of a larger one."""
    taken = set(random.Random(seed).sample(range(len(mutants)), len(mutants))[:most])
    return [m for n, m in enumerate(mutants) if n in taken]


def judge_all(mutants: list[Mutant], results: "Results", limits: judge.Limits) -> None:
    files = sorted(str(file.relative_to(ROOT)) for pattern in TESTS for file in ROOT.glob(pattern))
    paths = [path for path in files if not any(word in path for word in _LEFT_OUT)]
    judge.prepare()
    base = _baseline(paths)
    tests = f"{_digest([ROOT / p for p in paths])}:{limits.test_seconds}:{limits.mutant_seconds}"
    todo = [m for m in mutants if not results.has(m, tests) and m.compiles((ROOT / m.module).read_bytes())]
    started, done, killed = time.monotonic(), 0, 0

    def report(mutant: Mutant, verdict: judge.Verdict) -> None:
        nonlocal done, killed
        done, killed = done + 1, killed + verdict.killed
        results.add(mutant, verdict, tests)
        left = (time.monotonic() - started) / done * (len(todo) - done)
        judge._show(f"{done}/{len(todo)} mutants, {killed} killed, about {left / 60:.0f} minutes left  {mutant.module}")

    judge.judge(todo, base, paths, limits, report)
    judge._show("")


def _baseline(paths: list[str]) -> judge.Baseline:
    """What each test reaches; remembered for each file of tests while neither it nor the product changes."""
    product = _digest(
        sorted(
            f for top in ("core", "infra", "handlers", "runner", "tests/support") for f in (ROOT / top).rglob("*.py")
        )
    )
    kept = KEPT / "baseline.json"
    known: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    if known.get("product") != product or known.get("modules") != list(MODULES):
        known = {"product": product, "modules": list(MODULES), "files": {}, "slow": known.get("slow", {})}
    digests = {path: _digest([ROOT / path]) for path in paths}
    slow = {t for path in paths for t in known["slow"].get(digests[path], ())}
    changed = [p for p in paths if known["files"].get(p, {}).get("digest") != digests[p]]
    if changed:
        fresh = judge.baseline(
            changed, list(MODULES), lambda name: name in slow or any(word in name for word in _LEFT_OUT)
        )
        for path in changed:
            here = f"{path}::"
            known["files"][path] = {
                "digest": digests[path],
                "seconds": {t: s for t, s in fresh.seconds.items() if t.startswith(here)},
                "reached": {m: {t: n for t, n in by.items() if t.startswith(here)} for m, by in fresh.reached.items()},
            }
            found = [t for t, s in fresh.seconds.items() if t.startswith(here) and s > _SLOW_SECONDS]
            known["slow"].setdefault(digests[path], []).extend(found)
            if any(t.startswith(here) for t in fresh.failed):
                del known["files"][path]
        KEPT.mkdir(exist_ok=True)
        kept.write_text(json.dumps(known))
        if fresh.failed:
            sys.exit(f"these tests fail without any mutation: {', '.join(fresh.failed)}")
    seconds: dict[str, float] = {}
    reached: dict[str, dict[str, list[int]]] = defaultdict(dict)
    for path in paths:
        seconds |= known["files"][path]["seconds"]
        for module, tests in known["files"][path]["reached"].items():
            reached[module] |= tests
    return judge.Baseline(seconds, reached, [])


def _digest(files: list[Path]) -> str:
    whole = hashlib.sha256()
    for file in files:
        whole.update(file.read_bytes())
    return whole.hexdigest()[:16]


class Results:
    """Verdicts by mutant, each written down at once, so that a run that is broken off can be resumed."""

    def __init__(self, file: Path, *, resume: bool) -> None:
        self._file = file
        self._known: dict[str, dict[str, Any]] = {}
        self._modules: dict[str, str] = {}
        file.parent.mkdir(exist_ok=True)
        if not resume:
            file.unlink(missing_ok=True)
        if file.exists():
            for line in file.read_text().splitlines():
                one = json.loads(line)
                self._known[one["key"]] = one

    def has(self, mutant: Mutant, tests: str) -> bool:
        """A mutant of the same module that some test noticed, or that these very tests did not."""
        known = self.of(mutant)
        return known is not None and (known["killed"] or known["with"] == tests)

    def of(self, mutant: Mutant) -> dict[str, Any] | None:
        known = self._known.get(mutant.key)
        return known if known is not None and known["module"] == self._module(mutant.module) else None

    def add(self, mutant: Mutant, verdict: judge.Verdict, tests: str) -> None:
        one = {"key": mutant.key, "module": self._module(mutant.module), "with": tests,
               "killed": verdict.killed, "how": verdict.how}  # fmt: skip
        self._known[mutant.key] = one
        with self._file.open("a") as out:
            out.write(json.dumps(one) + "\n")

    def _module(self, module: str) -> str:
        if module not in self._modules:
            self._modules[module] = _digest([ROOT / module])
        return self._modules[module]


def load_explained() -> dict[tuple[str, str, str], str]:
    """Why a mutant may live, by module, function and mutation."""
    listed = tomllib.loads(EXPLAINED.read_text())["survivor"] if EXPLAINED.exists() else []
    return {(one["module"], one["function"], one["mutation"]): one["why"] for one in listed}


def summarize(mutants: list[Mutant], results: Results, explained: dict[tuple[str, str, str], str]) -> dict[str, Any]:
    modules: dict[str, dict[str, Any]] = {}
    survivors = []
    for mutant in mutants:
        row = modules.setdefault(mutant.module, {"made": 0, "mutants": 0, "killed": 0, "timeouts": 0, "explained": 0})
        row["made"] += 1
        known = results.of(mutant)
        if known is None:
            continue
        row["mutants"] += 1
        row["killed"] += known["killed"]
        row["timeouts"] += known["killed"] and known["how"].startswith("timeout")
        if not known["killed"]:
            why = explained.get((mutant.module, mutant.function, mutant.mutation))
            row["explained"] += why is not None
            survivors.append({
                "module": mutant.module, "line": mutant.line, "function": mutant.function,
                "mutation": mutant.mutation, "how": known["how"], "why": why,
            })  # fmt: skip
    for row in (whole := {"made": 0, "mutants": 0, "killed": 0, "timeouts": 0, "explained": 0}, *modules.values()):
        if row is whole:
            for name in whole:
                whole[name] = sum(r[name] for r in modules.values())
        row["score"], row["score_explained"] = _scores(row)
    return {"modules": modules, **whole, "survivors": survivors}


def _scores(row: dict[str, Any]) -> tuple[float, float]:
    """Of all mutants, and of those that nobody has explained."""
    raw = row["killed"] / max(1, row["mutants"])
    return round(raw, 4), round(row["killed"] / max(1, row["mutants"] - row["explained"]), 4)


def show(summary: dict[str, Any], args: argparse.Namespace) -> None:
    for one in summary["survivors"]:
        if one["why"] is None:
            before, _, after = one["mutation"].partition(" → ")
            print(
                f"{one['module']}:{one['line']} {one['function'] or '(module)'}  [{one['how']}]\n  - {before}\n  + {after}"
            )
    if args.sample:
        print(f"\na sample of at most {args.sample} mutants a module, seed {args.seed}")
    print(
        f"\n{'module':<24}{'mutants':>8}{'killed':>8}{'timeout':>8}{'explained':>10}{'left':>6}{'raw':>8}{'score':>8}"
    )
    for name, row in (*summary["modules"].items(), ("all", summary)):
        left = row["mutants"] - row["killed"] - row["explained"]
        print(
            f"{name:<24}{row['mutants']:>8}{row['killed']:>8}{row['timeouts']:>8}{row['explained']:>10}{left:>6}"
            f"{row['score']:>8.1%}{row['score_explained']:>8.1%}"
        )
    print(f"\nraw: killed of all; score: killed of those without an explanation in {os.path.relpath(EXPLAINED)}")
    if summary["score_explained"] < WANTED:
        print(f"below {WANTED:.0%}", file=sys.stderr)
