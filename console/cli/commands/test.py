"""`ade test [DIR]`: run the cases of a config package and compare them with what is expected."""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree as ET

from console.cli.guard import Exit
from console.cli.output import Printer, Progress
from console.cli.signals import Signals
from console.desk.cases import Case, CaseRun, CaseRunner, CaseVerdict, case_runner, find_cases
from console.desk.differences import Sides, lines, summary
from console.desk.files import find_manifest
from console.job_facts import plural
from core.settings import Settings
from core.verdicts import Verdict
from runner.engine.contract import escape_controls

EPILOG = """\
examples:
  ade test                                        all cases of the package in this folder
  ade test members --case 'totals*'               some cases of another one
  ade test --update                               show what changed and ask; then expect it
  ade test --junit report.xml                     for CI

A case is a folder tests/<case>/ beside the manifest: input.xlsx (or .csv …), expected.csv, expected.json.
"""
_LINES = 20  # of each kind of difference
_SIDES = Sides("expected", "got")
_AT_ONCE = 2
_COLOURS = {
    CaseVerdict.PASSED: "green",
    CaseVerdict.FAILED: "red",
    CaseVerdict.BROKEN: "red",
    CaseVerdict.NEW: "yellow",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    here = Path()
    parser.add_argument("dir", metavar="DIR", nargs="?", type=Path, default=here, help="the package, or its manifest")
    parser.add_argument("--case", metavar="NAME", action="append", default=[], help="only these; * and ? are allowed")
    parser.add_argument("--update", action="store_true", help="expect what comes out now; shows it and asks first")
    parser.add_argument("--yes", action="store_true", help="with --update: do not ask")
    parser.add_argument("--junit", metavar="FILE", type=Path, help="write a report as JUnit XML")
    parser.epilog = EPILOG


def run(args: argparse.Namespace, out: Printer) -> int:
    manifest = find_manifest(args.dir)
    cases = find_cases(manifest, args.case)
    began = time.monotonic()
    runs: list[CaseRun] = []
    with Signals() as signals:
        stopped = lambda: Verdict.CANCELLED if signals.asked else None  # noqa: E731
        with case_runner(manifest, Settings.from_env(os.environ), killed=stopped) as runner:
            for one in _each(runner, cases):
                runs.append(one)
                if not out.as_json:
                    _print(one, out)
            box, workflow = runner.isolation, runner.workflow
        if signals.asked:
            return Exit.INTERRUPTED
    seconds = time.monotonic() - began
    if args.junit is not None:
        args.junit.write_bytes(junit(workflow, runs, seconds))
    if args.update:
        return _update(runs, out, is_sure=args.yes)
    if out.as_json:
        out.emit({"seconds": round(seconds, 3), "box": f"{box.driver}, {box.level}", "cases": _documents(runs)})
    else:
        out.line(f"{_totals(runs)} ({seconds:.1f} s; box: {box.driver}, {box.level})")
    return Exit.OK if all(one.verdict is CaseVerdict.PASSED for one in runs) else Exit.FAILED


def _each(runner: CaseRunner, cases: Sequence[Case]) -> Iterator[CaseRun]:
    """The runs in the order of the cases, two at a time."""
    progress = Progress()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        waiting = [pool.submit(runner.run, case) for case in cases]
        for n, one in enumerate(waiting):
            progress.show(f"{n} of {len(cases)} cases")
            texts = one.result()
            progress.clear()
            yield from texts


def _totals(runs: Sequence[CaseRun]) -> str:
    counts = {verdict: sum(one.verdict is verdict for one in runs) for verdict in CaseVerdict}
    return f"{plural(len(runs), 'case')}: " + ", ".join(f"{n} {verdict}" for verdict, n in counts.items() if n)


def _print(one: CaseRun, out: Printer) -> None:
    out.line(f"{out.paint(one.verdict.ljust(6), _COLOURS.get(one.verdict, 'red'))}  {one.name}")
    for line in _lines(one):
        out.line(f"        {line}")


def _lines(one: CaseRun) -> list[str]:
    if one.verdict is CaseVerdict.BROKEN:
        return [one.message]
    if one.verdict is CaseVerdict.NEW:
        return [f"ends {one.status}; nothing is expected of it yet: `ade test --update` shows it and asks"]
    if one.comparison is None or one.verdict is CaseVerdict.PASSED:
        return []
    return [*([one.message] if one.message else []), *lines(one.comparison, _SIDES, _LINES)]


def _documents(runs: Sequence[CaseRun]) -> list[dict[str, object]]:
    return [
        {
            "case": one.case.name,
            "params": one.params or None,
            "verdict": str(one.verdict),
            "status": one.status,
            "seconds": round(one.seconds, 3),
            "message": one.message or None,
            "differences": None if one.verdict is CaseVerdict.PASSED else one.comparison,
        }
        for one in runs
    ]


def _update(runs: Sequence[CaseRun], out: Printer, *, is_sure: bool) -> int:
    """Show what would be expected, ask, and write it."""
    updates = [one for one in runs if one.is_changed]
    broken = [one for one in runs if one.verdict is CaseVerdict.BROKEN]
    paths: list[Path] = []
    if updates and not is_sure:
        _preview(updates, out)
        is_sure = _is_confirmed(updates, out)
    if updates and is_sure:
        paths = [path for one in updates for path in one.write()]
    if out.as_json:
        names = [one.name for one in updates]
        out.emit({"changed": names, "written": [str(path) for path in paths], "cases": _documents(runs)})
    else:
        for path in paths:
            out.line(f"wrote {path}")
        if not updates:
            out.line("nothing to update")
    if broken:
        return Exit.FAILED
    return Exit.OK if is_sure or not updates else Exit.USAGE


def _preview(updates: Sequence[CaseRun], out: Printer) -> None:
    """Show new cases whole, as far as they are small; what differs in the others was printed with their verdicts."""
    for one in updates:
        if one.verdict is CaseVerdict.NEW and not out.as_json:
            out.heading(f"{one.name}: {one.status}")
            rows = one.expected_rows.decode().splitlines()
            for line in rows[: _LINES + 1]:
                out.line(f"  {line}")
            if len(rows) > _LINES + 1:
                out.line(f"  … and {len(rows) - _LINES - 1:,} more rows")
        elif one.comparison is not None and not out.as_json:
            changes = ", ".join(
                f"{words}{' (breaking)' if breaking else ''}" for words, breaking in summary(one.comparison)
            )
            out.line(f"{one.name}: {changes}")


def _is_confirmed(updates: Sequence[CaseRun], out: Printer) -> bool:
    if not (out.terminal and sys.stdin.isatty()):
        out.note(f"nothing was written; to expect this of {len(updates)} cases: ade test --update --yes")
        return False
    answer = input(f"Expect this of {len(updates)} {'case' if len(updates) == 1 else 'cases'} from now on? [y/N] ")
    return answer.strip().lower() in ("y", "yes")


def junit(workflow: str, runs: Sequence[CaseRun], seconds: float) -> bytes:
    """The runs as JUnit XML, as CI services read it."""
    failed = sum(one.verdict in (CaseVerdict.FAILED, CaseVerdict.NEW) for one in runs)
    broken = sum(one.verdict is CaseVerdict.BROKEN for one in runs)
    suite = ET.Element(
        "testsuite",
        name=workflow,
        tests=str(len(runs)),
        failures=str(failed),
        errors=str(broken),
        skipped="0",
        time=f"{seconds:.3f}",
    )
    for one in runs:
        case = ET.SubElement(
            suite, "testcase", classname=workflow, name=escape_controls(one.name), time=f"{one.seconds:.3f}"
        )
        if one.verdict is not CaseVerdict.PASSED:
            kind = "error" if one.verdict is CaseVerdict.BROKEN else "failure"
            texts = [escape_controls(line) for line in _lines(one)]
            part = ET.SubElement(case, kind, message=texts[0] if texts else str(one.verdict))
            part.text = "\n".join(texts)
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    body: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return body + b"\n"
