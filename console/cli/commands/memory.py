"""`ade memory show | forget | export`: what a workflow has learnt."""

import argparse
import sys
from pathlib import Path
from typing import Final

from console.cli.guard import Exit
from console.cli.memory_place import MemoryPlace, add_arguments, place_of
from console.cli.output import Printer
from core.errors import UsageError
from core.memories import Memory, MemoryInvalid, ShapeEntry, forget, serialized
from runner.engine.common.spelling import joined

EPILOG = """\
examples:
  ade memory show --tenant acme --workflow members
  ade memory forget --tenant acme --workflow members --header CALLE
  ade memory export --memory members.memory.json --to copy.memory.json
"""
_SHOWN: Final = 60  # characters of a table's headers


def arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_subparsers(dest="what", required=True, metavar="show | forget | export")
    show = what.add_parser("show", help="its headers with field, count, date and who said so")
    show.add_argument("--field", metavar="F", help="only those of a field")
    show.add_argument("--shapes", action="store_true", help="the senders' confirmed tables instead of headers")
    gone = what.add_parser("forget", help="take entries out that fit every condition given")
    gone.add_argument("--header", metavar="H")
    gone.add_argument("--field", metavar="F")
    gone.add_argument("--sender", metavar="FOLDER")
    export = what.add_parser("export", help="the memory itself, as it is in the bucket")
    export.add_argument("--to", metavar="FILE", type=Path, help="a file instead of standard output")
    for one in (show, gone, export):
        add_arguments(one, workflow=True)
    parser.epilog = EPILOG


def run(args: argparse.Namespace, out: Printer) -> int:
    place = place_of(args, args.workflow)
    try:
        match args.what:
            case "show":
                return _show_shapes(place, out) if args.shapes else _show(place, args.field, out)
            case "forget":
                return _forget(place, args, out)
            case _:
                return _export(place, args.to, out)
    except MemoryInvalid as error:
        raise UsageError(f"memory {place.name} was refused: {error}") from None


def _spelled(header: str) -> str:
    """What headers have in common that are one to jobs: `START_DATE` and `Start date`."""
    return joined(header) or header.casefold()


def _show(place: MemoryPlace, field: str | None, out: Printer) -> int:
    memory = place.read()
    entries = [e for e in memory.headers if field is None or e.field == field]
    decisive = memory.deciding_headers(_spelled)
    if out.as_json:
        for entry in entries:
            out.emit(entry.model_dump(mode="json"))
        return Exit.OK
    counts = decisive.values()
    rows = [
        (
            e.header,
            e.field or "no field",
            str(e.count),
            f"{e.at:%Y-%m-%d}",
            e.by or "",
            "" if any(e is s for s in counts) else "outvoted",
        )
        for e in entries
    ]
    out.table(("HEADER", "FIELD", "COUNT", "LAST", "BY", ""), rows)
    out.note(f"{place.name}: {len(memory.headers)} headers, {len(memory.values)} values, {len(memory.shapes)} shapes")
    return Exit.OK


def _about(entry: ShapeEntry) -> str:
    """What a shape says: about its sheet, or the headers of its table."""
    if entry.left_out:
        return "sheet left out"
    return f"tables of the sheet: {entry.cut}" if entry.cut else ", ".join(filter(None, entry.headers))[:_SHOWN]


def _show_shapes(place: MemoryPlace, out: Printer) -> int:
    shapes = place.read().shapes
    if out.as_json:
        for shape in shapes:
            out.emit(shape.model_dump(mode="json"))
        return Exit.OK
    rows = [
        (
            e.sender or "(top)",
            e.sheet or "(only sheet)",
            ", ".join(map(str, e.header_rows)) or "none",
            str(len(e.headers)),
            _about(e),
            e.by,
        )
        for e in shapes
    ]
    out.table(("SENDER", "SHEET", "HEADER ROWS", "COLUMNS", "HEADERS", "BY"), rows)
    return Exit.OK


def _forget(place: MemoryPlace, args: argparse.Namespace, out: Printer) -> int:
    conditions = {name: getattr(args, name) for name in ("header", "field", "sender")}
    if not any(conditions.values()):
        raise UsageError("what is to be forgotten? give --header, --field or --sender")
    gone = 0

    def without(memory: Memory) -> Memory:
        nonlocal gone
        left, gone = forget(memory, **conditions, spelled=_spelled)
        return left

    place.change(without)
    if out.as_json:
        out.emit({"memory": place.name, "forgotten": gone})
    else:
        out.line(f"{place.name}: {gone} forgotten")
    return Exit.OK


def _export(place: MemoryPlace, to: Path | None, out: Printer) -> int:
    body = serialized(place.read())
    if to is None:
        sys.stdout.write(body.decode())
    else:
        to.write_bytes(body)
        out.note(f"written to {to}")
    return Exit.OK
