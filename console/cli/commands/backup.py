"""`ade backup DEST`: copy the data folder while jobs run."""

import argparse
from pathlib import Path

from console.cli import wire
from console.cli.backups import BackupReport, make_backup
from console.cli.guard import Exit
from console.cli.output import Printer
from console.job_facts import plural
from core.jobs import stamp_text

_SHOWN = 10


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dest", metavar="DEST", type=Path, help="a new folder outside the data folder")


def run(args: argparse.Namespace, out: Printer) -> int:
    return report(make_backup(wire.load_settings(), args.dest), "copied", out)


def report(made: BackupReport, done: str, out: Printer) -> int:
    """Print what was copied, and what was left out."""
    if out.as_json:
        shown = {"backup": str(made.place), "made_at": stamp_text(made.made_at), "jobs": made.jobs}
        out.emit(shown | {"files": made.files, "bytes": made.bytes, "left_out": made.left_out})
        return Exit.OK
    out.line(f"{done} {plural(made.jobs, 'job')} and {plural(made.files, 'file')}, {made.bytes:,} bytes: {made.place}")
    for path, why in list(made.left_out.items())[:_SHOWN]:
        out.note(f"left out: {path}: {why}")
    if len(made.left_out) > _SHOWN:
        out.note(f"… and {len(made.left_out) - _SHOWN} more; backup.json lists them")
    return Exit.OK
