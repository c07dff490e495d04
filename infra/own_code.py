"""Where our packages are, which version they are, and how to start one of their modules in a new interpreter."""

import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]  # a checkout, the folder `ade_drop` of a wheel, or a function's task
COMMIT: Final = "COMMIT"  # the file that a build leaves in ROOT (hatch_build.py)
_GIT_SECONDS: Final = 5.0
_RUN: Final = """\
import runpy, sys
sys.path.insert(0, sys.argv.pop(1))
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


def command(module: str, *words: str, options: Sequence[str] = ("-I", "-B")) -> list[str]:
    """The command that runs one of our modules as a program, whatever else the environment has under its name."""
    return [sys.executable, *options, "-c", _RUN, str(ROOT), module, *words]


@cache
def version() -> str:
    """The installed version; "unknown" where ade-drop was copied, not installed."""
    try:
        return version_of("ade-drop")
    except PackageNotFoundError:
        return "unknown"


@cache
def commit() -> str | None:
    """The commit that this code was built from, or that is checked out; None if neither is known."""
    try:
        return (ROOT / COMMIT).read_text(encoding="ascii").strip() or None
    except (OSError, ValueError):
        return _checked_out()


def _checked_out() -> str | None:
    if not (ROOT / ".git").exists():
        return None
    try:
        asked = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
        return subprocess.run(asked, capture_output=True, text=True, check=True, timeout=_GIT_SECONDS).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
