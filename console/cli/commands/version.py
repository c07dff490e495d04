"""`ade version`."""

import argparse
import platform

from console.cli.guard import Exit
from console.cli.output import Printer
from console.release import installed


def arguments(_parser: argparse.ArgumentParser) -> None:
    pass


def run(_args: argparse.Namespace, out: Printer) -> int:
    found = installed()
    if out.as_json:
        out.emit({"version": found, "python": platform.python_version()})
    else:
        out.line(f"ade-drop {found} (Python {platform.python_version()})")
    return Exit.OK
