"""`ade contract export`: a manifest's fields as a contract of another tool."""

import argparse
from pathlib import Path

from console.cli.guard import Exit
from console.cli.output import Printer
from console.desk.files import find_manifest, read_manifest

_FORMATS = ("jsonschema", "odcs", "frictionless", "postgres")


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    export = actions.add_parser("export", help="write it as JSON Schema, ODCS, Frictionless or CREATE TABLE")
    export.add_argument("manifest", metavar="MANIFEST", type=Path)
    export.add_argument("--to", choices=_FORMATS, required=True)
    export.add_argument("--out", metavar="FILE", type=Path, help="write it to a file instead")


def run(args: argparse.Namespace, out: Printer) -> int:
    from console.contracts import exported  # noqa: PLC0415  # only after the arguments are checked

    text = exported(read_manifest(find_manifest(args.manifest)), args.to)
    if args.out is not None:
        args.out.write_text(text, encoding="utf-8")
    if out.as_json:
        out.emit({"to": args.to, "file": None if args.out is None else str(args.out), "text": text})
    elif args.out is not None:
        out.note(f"written to {args.out}")
    else:
        print(text, end="")
    return Exit.OK
