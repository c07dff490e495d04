"""`ade manifest-schema`: the JSON Schema that editors check a manifest against."""

import argparse
import json
from pathlib import Path

from console.cli.guard import Exit
from console.cli.output import Printer
from core.manifests import manifest_schema


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", metavar="FILE", type=Path, help="write it to a file instead")


def run(args: argparse.Namespace, out: Printer) -> int:
    text = json.dumps(manifest_schema(), indent=2, ensure_ascii=False) + "\n"
    if args.to is None:
        print(text, end="")
    else:
        args.to.write_text(text, encoding="utf-8")
        out.note(f"written to {args.to}")
    return Exit.OK
