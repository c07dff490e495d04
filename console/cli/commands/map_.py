"""`ade map FILE… --manifest M`: which column would become which field, with scores, runners-up and reasons."""

import argparse
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from console.cli.commands.scan import MappedColumn, ScannedFile, scanned, show_each
from console.cli.output import Printer
from console.desk.files import find_manifest, inbox_folder, lay_out, read_manifest
from core.settings import Settings

EPILOG = """\
examples:
  ade map members.xlsx --manifest manifest.json
  ade map june/*.csv --manifest manifest.json --json
  ade map june/*.csv --manifest manifest.json --memory members.memory.json

Structure and mapping only: nothing is converted, checked or written, and no Python of the config runs.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+")
    parser.add_argument("--manifest", metavar="M", required=True, type=Path)
    parser.add_argument(
        "--memory",
        metavar="FILE",
        action="append",
        default=[],
        type=Path,
        help="what was learnt; the most specific last",
    )
    parser.add_argument(
        "--sender", metavar="FOLDER", help="whose files these are, where a memory knows the shapes of a sender's tables"
    )
    parser.epilog = EPILOG


def run(args: argparse.Namespace, out: Printer) -> int:
    sender = {} if args.sender is None else {"sender": args.sender.rstrip("/")}
    found = scanned(args.files, order_of(find_manifest(args.manifest), args.memory) | sender)
    return show_each(found, out, lambda one: _show(one, out))


def order_of(path: Path, memories: Sequence[Path] = ()) -> dict[str, object]:
    """What the engine is asked: the manifest, the memories, and the lookup tables that exist."""
    manifest = read_manifest(path).model_copy(update={"subscribe": (), "tenants": ()})
    bucket = Settings.from_env(os.environ).storage_data_dir / "bucket"
    desk = lay_out(path, manifest, folder=inbox_folder("desk", ""), bucket=bucket)
    lookups = [
        {"role": "auxiliary", "name": name, "file": desk.files[key].name, "path": str(desk.files[key].absolute())}
        for key, name in desk.workflow.auxiliary_keys().items()
        if key in desk.files
    ]
    learnt = [{"path": str(memory.absolute()), "key": str(memory)} for memory in memories]
    return {"manifest": manifest.model_dump(mode="json"), "inputs": lookups, "memories": learnt}


_NEXT: Final = 3  # runners-up that the table has room for; `--json` lists ten


def _why(column: MappedColumn, used: Collection[str | None]) -> str:
    """The reasons for a column's field, or for the nearest one that is not `used`."""
    near = next((r["reasons"] for r in column["runners_up"] if r["field"] not in used), [])
    reasons = column["reasons"] if column["field"] is not None else near
    parts = ", ".join(f"{r['rule']} {r['weight']:+.1f}" for r in reasons)
    return ": ".join(part for part in (column["note"], parts) if part)


def _show(found: ScannedFile, out: Printer) -> None:
    for table in found["tables"]:
        out.heading(f"{found['file']}: {table['sheet']} {table['range']}")
        used = {column["field"] for column in table["columns"]}
        rows = [
            (
                column["column"],
                column["header"] or "",
                column["field"] or "-",
                f"{column['probability']:.2f}",
                ", ".join(f"{r['field']} {r['probability']:.2f}" for r in column["runners_up"][:_NEXT]),
                _why(column, used),
            )
            for column in table["columns"]
        ]
        out.table(("COLUMN", "HEADER", "FIELD", "PROBABILITY", "NEXT", "WHY"), rows)
    if not found["tables"]:
        out.note(f"{found['file']}: no table with data was found")
