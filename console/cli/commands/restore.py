"""`ade restore SRC`: put a backup into an empty data folder."""

import argparse
from pathlib import Path

from console.cli import wire
from console.cli.backups import restore
from console.cli.commands.backup import report
from console.cli.output import Printer


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("src", metavar="SRC", type=Path, help="a backup that `ade backup` made")


def run(args: argparse.Namespace, out: Printer) -> int:
    return report(restore(wire.load_settings(), args.src), "restored", out)
