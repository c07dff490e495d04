"""The drivers by name."""

from pathlib import Path

from core.errors import SettingsError
from core.ports import Sandbox
from runner.sandbox.jail import JailSandbox
from runner.sandbox.levels import LEVELS, require
from runner.sandbox.process import ProcessSandbox

__all__ = ["DRIVERS", "make_sandbox", "require"]

DRIVERS = ("jail", "process", "docker")


def make_sandbox(name: str, *, min_level: str, run_dir: Path) -> Sandbox:
    """The sandbox that ADE_SANDBOX names. What it can do here is found out by trying, at the first question."""
    if min_level not in LEVELS:
        raise SettingsError(f"ADE_SANDBOX_MIN_LEVEL is {min_level!r}; it can be {', '.join(LEVELS)}")
    if name == "jail":
        return JailSandbox(run_dir=run_dir, min_level=min_level)
    if name == "process":
        return ProcessSandbox(run_dir=run_dir, min_level=min_level)
    raise SettingsError(f"ADE_SANDBOX is {name!r}; it can be {', '.join(DRIVERS)}")
