"""The drivers by name, and the least isolation that code of strangers may run under."""

from pathlib import Path

from core.errors import SandboxUnavailable, SettingsError
from core.ports import Isolation, Sandbox
from runner.sandbox.process import ProcessSandbox

LEVELS = ("none", "limits", "confined", "isolated")  # weakest first
DRIVERS = ("jail", "process", "docker")


def make_sandbox(name: str, *, min_level: str, run_dir: Path) -> Sandbox:
    """The sandbox that ADE_SANDBOX names. What it can do here is found out by trying, at the first question."""
    if min_level not in LEVELS:
        raise SettingsError(f"ADE_SANDBOX_MIN_LEVEL is {min_level!r}; it can be {', '.join(LEVELS)}")
    if name == "process":
        return ProcessSandbox(run_dir=run_dir)
    raise SettingsError(f"ADE_SANDBOX is {name!r}; it can be {', '.join(DRIVERS)}")


def at_least(isolation: Isolation, level: str) -> bool:
    """Whether what holds here is no weaker than `level`."""
    return LEVELS.index(isolation.level) >= LEVELS.index(level)


def require(isolation: Isolation, level: str) -> None:
    """Raise SandboxUnavailable, with what to do about it, where the host gives less than `level`."""
    if not at_least(isolation, level):
        missing = ", ".join(name for name, holds in isolation.rungs.items() if not holds) or "isolation"
        raise SandboxUnavailable(
            f"untrusted rules need a box of level {level!r} and {isolation.driver} gives "
            f"{isolation.level!r} here (missing: {missing}); see docs/sandbox.md, or set "
            f"ADE_SANDBOX_MIN_LEVEL={isolation.level} if every config is trusted"
        )
