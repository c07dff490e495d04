"""Where our packages are, which version they are, and how to start one of their modules in a new interpreter."""

import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]  # a checkout, the folder `ade_drop` of a wheel, or a function's task
COMMIT: Final = "COMMIT"  # the file that a build leaves in ROOT (hatch_build.py)
# The modules that an extra of pyproject.toml brings, by the first part of their names.
EXTRAS: Final = {
    "jinja2": "console",
    "python_multipart": "console",
    "starlette": "console",
    "uvicorn": "console",
    "psycopg": "postgres",
    "psycopg_pool": "postgres",
    "opentelemetry": "telemetry",
}
_GIT_SECONDS: Final = 5.0
_RUN: Final = """\
import runpy, sys
sys.path.insert(0, sys.argv.pop(1))
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


def command(module: str, *words: str, options: Sequence[str] = ("-I", "-B")) -> list[str]:
    """The command that runs one of our modules as a program, whatever else the environment has under its name."""
    return [sys.executable, *options, "-c", _RUN, str(ROOT), module, *words]


def missing_extra(error: ImportError) -> str | None:
    """Which extra to install for a module that is missing, in words; None if it belongs to none."""
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        return None
    return f"{module} is not installed; this needs the extra `{EXTRAS[module]}`: {install_line(EXTRAS[module])}"


def has_extra(extra: str) -> bool:
    return all(find_spec(module) is not None for module, brings in EXTRAS.items() if brings == extra)


def install_line(extra: str) -> str:
    return f"pip install 'ade-drop[{extra}]'"


@cache
def version() -> str:
    """The installed version; "unknown" where ade-drop was copied, not installed."""
    from importlib.metadata import PackageNotFoundError  # noqa: PLC0415 - takes longer than most commands have
    from importlib.metadata import version as version_of  # noqa: PLC0415 - as above

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
