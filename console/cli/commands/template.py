"""`ade template`: a blank workbook for senders, made of a manifest."""

import argparse
from pathlib import Path

from console.cli.guard import Exit
from console.cli.output import Printer
from console.desk.files import find_manifest, read_manifest
from core.errors import UsageError


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("manifest", metavar="MANIFEST", type=Path)
    parser.add_argument("--out", metavar="FILE", type=Path, help="where to write it; NAME-template.xlsx if absent")


def run(args: argparse.Namespace, out: Printer) -> int:
    from console.desk.templates import write_template  # noqa: PLC0415  # openpyxl takes a while to load

    manifest = read_manifest(find_manifest(args.manifest))
    path: Path = args.out or Path(f"{manifest.name}-template.xlsx")
    if path.suffix.lower() != ".xlsx":
        raise UsageError(f"{path}: a template is an .xlsx workbook; give a name that ends in .xlsx")
    columns = write_template(manifest, path)
    if out.as_json:
        out.emit({"file": str(path), "columns": columns})
    else:
        out.line(f"{path}: {columns} columns; senders fill it in and drop it")
    return Exit.OK
