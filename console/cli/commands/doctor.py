"""`ade doctor`: check this machine and say how to fix problems."""

import argparse
import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from console.cli import checks
from console.cli.checks import WARNING, WRONG, Check, guarded
from console.cli.guard import Exit
from console.cli.output import Printer
from console.desk.boxes import boxes
from console.job_facts import plural
from core.settings import Settings
from infra.addresses import is_postgres
from infra.wiring import open_stack

_PATIENCE_SECONDS = 3.0  # for a service that does not answer; a person is waiting
_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "wrong": ("✗", "red")}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--deep", action="store_true", help="compare every ended job with its outputs, and heal what can be healed"
    )


def run(args: argparse.Namespace, out: Printer) -> int:
    found = []
    for check in _all(deep=args.deep):
        found.append(check)
        if not out.as_json:
            _print(check, out)
    wrong = sum(check.level == WRONG for check in found)
    warned = sum(check.level == WARNING for check in found)
    if out.as_json:
        shown = [{"name": c.name, "level": c.level, "said": c.message, "remedy": c.remedy or None} for c in found]
        out.emit({"ok": not wrong, "wrong": wrong, "warnings": warned, "checks": shown})
    else:
        out.line()
        out.line(f"{plural(wrong, 'problem')}, {plural(warned, 'warning')}" if wrong or warned else "no problems found")
    return Exit.FAILED if wrong else Exit.OK


def _all(*, deep: bool) -> Iterator[Check]:
    yield from checks.check_python()
    yield from checks.check_settings()
    settings = checks.usable_settings()
    folder = settings.storage_data_dir
    usable = True
    for check in guarded("data folder", checks.check_folder(folder)):
        usable = usable and not (check.name == "data folder" and check.level == WRONG)
        yield check
    newest: list[float] = []
    remote = bool(settings.store_url or settings.table_url or settings.queue_url)
    if usable and (remote or (folder / "ade.sqlite").exists()):
        yield from guarded("table", _of_stack(settings, newest, deep=deep))
    yield from guarded("change notice", checks.check_watch(folder))
    yield from guarded("configs", checks.check_links(folder))
    yield from guarded("sandbox", _sandbox(settings))
    yield from checks.check_network(settings)
    yield from checks.check_wheelhouse(settings)
    yield from guarded("clock", checks.check_clock(folder, newest[0] if newest else None))


def _of_stack(settings: Settings, newest: list[float], *, deep: bool) -> Iterator[Check]:
    with open_stack(settings, patience=_PATIENCE_SECONDS) as stack:
        usable = True
        if is_postgres(settings.table_url) or is_postgres(settings.queue_url):
            from console.cli.database_checks import check_databases  # noqa: PLC0415 - psycopg is slow to import

            for found in guarded("database", check_databases(stack)):
                usable = usable and found.level != WRONG
                yield found
        if not usable:  # every check of table and queue would say the same again
            yield from guarded("store", checks.check_store(stack))
            return
        for check in (
            checks.check_store,
            checks.check_writes,
            checks.check_table,
            checks.check_queue,
            checks.check_dead,
            checks.check_quarantine,
            checks.check_engine,
            checks.check_orphans,
            checks.check_stuck,
            checks.check_rows,
            checks.check_inbox,
            checks.check_clocks,
        ):
            yield from guarded("table", check(stack))
        if deep:
            yield from guarded("results", checks.check_results(stack))
        if (at := checks.newest_change(stack)) is not None:
            newest.append(at)


def _sandbox(settings: Settings) -> Iterator[Check]:
    with contextlib.ExitStack() as cleanup:
        scratch = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="ade-doctor-"))
        found = cleanup.enter_context(boxes(settings, Path(scratch), rehearses=False))
        yield from checks.check_sandbox(found.sandbox.isolation(), settings)


def _print(check: Check, out: Printer) -> None:
    mark, colour = _MARKS[check.level]
    if not _prints_marks():
        mark = check.level
    print(f"{out.paint(mark, colour)} ", end="")
    out.line(f"{check.name}: {check.message}")
    if check.remedy:
        out.line(f"    fix: {check.remedy}")


def _prints_marks() -> bool:
    return "UTF" in (os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or "").upper()
