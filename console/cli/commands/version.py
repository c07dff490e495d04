"""`ade version`."""

import argparse
import platform

from console.cli.guard import Exit
from console.cli.output import Printer
from infra import own_code


def arguments(_parser: argparse.ArgumentParser) -> None:
    pass


def run(_args: argparse.Namespace, out: Printer) -> int:
    version, commit, python = own_code.version(), own_code.commit(), platform.python_version()
    if out.as_json:
        out.emit({"version": version, "commit": commit, "python": python})
    else:
        out.line(f"ade-drop {version}{f', commit {commit}' if commit else ''} (Python {python})")
    return Exit.OK
