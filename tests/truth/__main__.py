"""Run the truth suite by hand: python -m tests.truth --files 3000 [--strangers] [--seed N] [--family X] [--keep DIR] [--json FILE]"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.truth import families as _families
from tests.truth.cases import FAMILIES, Case
from tests.truth.checking import check
from tests.truth.judge import Verdict
from tests.truth.running import manifest_of, run_case, try_case
from tests.truth.strangers import every as _strangers

assert _families
assert _strangers


@dataclass
class Tally:
    files: int = 0
    right: int = 0
    told: int = 0
    silent: int = 0
    noisy: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    cells: int = 0

    def add(self, verdict: Verdict) -> None:
        self.files += 1
        self.cells += verdict.right
        self.right += verdict.word == "right"
        self.told += verdict.word == "told"
        self.silent += verdict.word == "silent"
        self.noisy += bool(verdict.warnings)
        self.codes += verdict.told


def table(tallies: dict[str, Tally]) -> str:
    lines = [f"{'family':36}{'files':>6}{'right':>7}{'told':>6}{'silent':>7}{'noisy':>6}  told by code"]
    whole = Tally()
    for name, t in tallies.items():
        codes = ", ".join(f"{c} {n}" for c, n in t.codes.most_common(4))
        mark = "*" if FAMILIES[name].plain else "?" if not FAMILIES[name].mostly_right else " "
        lines.append(f"{name:35}{mark}{t.files:6}{t.right:7}{t.told:6}{t.silent:7}{t.noisy:6}  {codes}")
        for key in ("files", "right", "told", "silent", "noisy", "cells"):
            setattr(whole, key, getattr(whole, key) + getattr(t, key))
        whole.codes += t.codes
    lines.append(
        f"{'all':36}{whole.files:6}{whole.right:7}{whole.told:6}{whole.silent:7}{whole.noisy:6}  {whole.cells:,} cells right"
    )
    lines.append("told, by code: " + (", ".join(f"{c} {n}" for c, n in whole.codes.most_common()) or "nothing"))
    for who, stranger in (("our", False), ("strangers' (s_)", True)):
        mine = {n: t for n, t in tallies.items() if FAMILIES[n].stranger is stranger}
        if mine:
            lines.append(group_line(who, mine))
    return "\n".join(lines)


def group_line(who: str, tallies: dict[str, Tally]) -> str:
    files, right, told, silent = (
        sum(getattr(t, k) for t in tallies.values()) for k in ("files", "right", "told", "silent")
    )
    plain = [t for n, t in tallies.items() if FAMILIES[n].plain]
    quiet, noisy = sum(t.files for t in plain), sum(t.noisy for t in plain)
    share = f" ({noisy / quiet:.1%})" if quiet else ""
    return (
        f"{who} families: {files} files, {right} right, {told} told, {silent} silent in "
        f"{sum(bool(t.silent) for t in tallies.values())} of {len(tallies)} families; "
        f"plain files (*) with a warning: {noisy} of {quiet}{share}"
    )


def counts(tallies: dict[str, Tally]) -> dict[str, dict[str, object]]:
    """The table for programs."""
    return {
        name: {
            **{key: getattr(t, key) for key in ("files", "right", "told", "silent", "noisy")},
            "codes": dict(t.codes),
            "plain": FAMILIES[name].plain,
            "stranger": FAMILIES[name].stranger,
            "right_expected": FAMILIES[name].mostly_right,
        }
        for name, t in tallies.items()
    }


def keep(case: Case, verdict: Verdict, folder: Path) -> None:
    """The file, its manifest, what should come out and what differs, for those who look at it."""
    place = folder / case.family / str(case.seed)
    if place.parent.exists() and len(list(place.parent.iterdir())) >= 3:
        return
    place.mkdir(parents=True, exist_ok=True)
    (place / case.name).write_bytes(case.body)
    (place / "manifest.json").write_text(json.dumps(manifest_of(case), indent=1, ensure_ascii=False))
    wants = [{"sheet": t.sheet, "row": r.number, **r.wants} for t in case.tables for r in t.rows]
    (place / "expected.json").write_text(json.dumps(wants, indent=0, ensure_ascii=False, default=str))
    tells = [f"to be told: field {t.field}, row {t.row} {sorted(t.codes)}" for t in case.tells]
    warned = f"warnings: {dict(verdict.warnings)}"
    (place / "differences.txt").write_text("\n".join([case.note, warned, *tells, *map(str, verdict.differences[:200])]))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.truth", description=__doc__)
    parser.add_argument("--files", type=int, default=300, help="how many files, spread over the families")
    parser.add_argument("--seed", type=int, default=0, help="the first seed of each family")
    parser.add_argument("--family", action="append", help="only families whose name begins so")
    parser.add_argument("--strangers", action="store_true", help="only the strangers' families")
    parser.add_argument("--json", type=Path, help="write the counts of each family here")
    parser.add_argument(
        "--keep",
        type=Path,
        help="keep up to three files of each family here that differ in silence, or are plain and warn",
    )
    parser.add_argument("--show", type=int, default=3, help="print so many silent files of each family")
    parser.add_argument("--told", action="store_true", help="show the told ones too")
    parser.add_argument("--try", dest="desk", action="store_true", help="through `ade try`, in its sandbox")
    args = parser.parse_args()
    chosen = [
        f
        for n, f in FAMILIES.items()
        if (n.startswith(tuple(args.family)) if args.family else not f.by_hand) and (f.stranger or not args.strangers)
    ]
    each = -(-args.files // len(chosen))
    tallies = {f.name: Tally() for f in chosen}
    began = time.monotonic()
    done = 0
    print(f"seeds {args.seed} to {args.seed + each - 1} of {len(chosen)} families", flush=True)
    with tempfile.TemporaryDirectory() as work:
        for f in chosen:
            shown = 0
            for seed in range(args.seed, args.seed + each):
                case = f.case(seed)
                verdict = check(
                    case, Path(work) / f"{done}" if args.desk else Path(work), try_case if args.desk else run_case
                )
                tallies[f.name].add(verdict)
                done += 1
                bad = verdict.differences if args.told else verdict.silent
                noisy = f.plain and verdict.warnings
                if (bad or noisy) and shown < args.show:
                    shown += 1
                    print(f"\n{case.title} ({case.name}, {case.note}) warnings {dict(verdict.warnings)}")
                    for d in bad[:4]:
                        print(
                            f"    {d.verdict}: {d.kind} at {d.place}: wanted {str(d.want)[:90]!r}, got {str(d.got)[:90]!r} {d.code}"
                        )
                if args.keep and (verdict.silent or noisy):
                    keep(case, verdict, args.keep)
            if sys.stderr.isatty():
                print(f"{done} files, {time.monotonic() - began:.0f} s", file=sys.stderr, end="\r", flush=True)
    print()
    print(table(tallies))
    if args.json:
        args.json.write_text(json.dumps(counts(tallies), indent=1))
    print(f"{done} files in {time.monotonic() - began:.0f} s; again with: --seed {args.seed} --files {args.files}")
    return 1 if any(t.silent for t in tallies.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
