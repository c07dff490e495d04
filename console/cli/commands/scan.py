"""`ade scan FILE…`: the tables that the engine finds, read in a separate process."""

import argparse
import contextlib
import json
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Required, TypedDict

from console.cli.guard import Exit
from console.cli.output import Printer
from infra import own_code


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+")


def run(args: argparse.Namespace, out: Printer) -> int:
    rows: list[tuple[str, ...]] = []
    code = show_each(scanned(args.files), out, lambda found: rows.extend(_rows(found)))
    if rows:
        out.table(("FILE", "SHEET", "TABLE", "HEADER ROWS", "CONFIDENCE", "WHY"), rows)
    return code


class Reason(TypedDict):
    rule: str
    weight: float


class NextField(TypedDict):
    """A field that a column is less likely to hold."""

    field: str
    probability: float
    reasons: list[Reason]


class MappedColumn(TypedDict):
    column: str  # its letters
    header: str | None
    field: str | None
    probability: float
    note: str
    reasons: list[Reason]
    runners_up: list[NextField]


class FoundTable(TypedDict, total=False):
    sheet: str
    range: str
    header_rows: list[int]
    confidence: float
    why: list[str]
    columns: list[MappedColumn]


class FoundSheet(TypedDict):
    name: str
    tables: list[FoundTable]


class ScannedFile(TypedDict, total=False):
    """What the engine found in a file, as it writes it: sheets, tables with their columns, or an error."""

    file: Required[str]
    sheets: list[FoundSheet]
    tables: list[FoundTable]
    error: str
    code: str


def show_each(outcomes: Iterable[ScannedFile], out: Printer, show: Callable[[ScannedFile], None]) -> int:
    """Print what was found in each file, with `show` unless as JSON; FAILED if any could not be read."""
    failed = False
    for found in outcomes:
        failed = failed or "error" in found
        if out.as_json:
            out.emit(found)
        elif "error" in found:
            out.note(f"{found['file']}: {found['error']}")
        else:
            show(found)
    return Exit.FAILED if failed else Exit.OK


def scanned(files: list[str], order: Mapping[str, object] | None = None) -> Iterator[ScannedFile]:
    """One object per file, in order: its structure, and with an `order` also its columns' fields.

    A file that kills the child process is reported, and a new process reads the rest.
    """
    left = list(files)
    mapping = [] if order is None else ["--map"]
    while left:
        with subprocess.Popen(
            own_code.command("runner.engine.scan", *mapping, *left),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for this process, which ends it
        ) as child:
            try:
                if child.stdin is not None:
                    with contextlib.suppress(BrokenPipeError), child.stdin:
                        child.stdin.write("" if order is None else json.dumps(order))
                for line in child.stdout or ():
                    yield json.loads(line)
                    del left[:1]
            except BaseException:
                child.kill()
                raise
        if left:
            yield {"file": left[0], "error": f"the reader ended with code {child.returncode}", "code": "reader_ended"}
            del left[:1]


def _rows(found: ScannedFile) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for sheet in found["sheets"]:
        for table in sheet["tables"]:
            head = ", ".join(str(n) for n in table.get("header_rows", ())) or "none"
            confidence = table.get("confidence")
            rows.append(
                (
                    found["file"],
                    sheet["name"],
                    str(table.get("range", "")),
                    head,
                    f"{confidence:.2f}" if isinstance(confidence, float | int) else "",
                    "; ".join(str(w) for w in table.get("why", ())),
                )
            )
        if not sheet["tables"]:
            rows.append((found["file"], sheet["name"], "none found", "", "", ""))
    return rows
