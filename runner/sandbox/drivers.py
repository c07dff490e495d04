"""The drivers by name, and the levels of isolation: what a host offers, and what untrusted code requires."""

from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import SandboxUnavailable, SettingsError
from runner.boxes import Isolation, Sandbox

if TYPE_CHECKING:
    from runner.sandbox.install.layers import Layers
    from runner.sandbox.session import Engine

DRIVERS = ("jail", "process", "docker")
LEVELS = ("none", "limits", "confined", "isolated")  # weakest first

_GAPS = {
    "namespaces": "a box can read names, sizes and times of files outside (stat), but not their content; "
    "install bubblewrap or allow user namespaces",
    "landlock": "only namespaces protect files; use Linux 5.13 or newer with Landlock",
    "seccomp": "boxes can try every system call; use x86_64 or aarch64",
    "cgroup": "memory is limited only by address space; delegate a control group",
    "own_user": "boxes run as the runner's user, without its privileges",
}


def level_of(rungs: dict[str, bool]) -> str:
    """The level that these rungs reach."""
    if not rungs.get("rlimits"):
        return "none"
    if not rungs.get("seccomp"):
        return "limits"
    if rungs.get("namespaces"):
        return "isolated"
    return "confined" if rungs.get("landlock") else "limits"


def gaps_of(rungs: dict[str, bool]) -> tuple[str, ...]:
    """The known gaps, in words for people."""
    return tuple(text for rung, text in _GAPS.items() if not rungs.get(rung))


def at_least(isolation: Isolation, level: str) -> bool:
    """Whether the isolation is at least as strong as `level`."""
    return LEVELS.index(isolation.level) >= LEVELS.index(level)


def require(isolation: Isolation, level: str) -> None:
    """Raise SandboxUnavailable, with the remedy, if the host offers less than `level`."""
    if not at_least(isolation, level):
        missing = ", ".join(name for name, holds in isolation.rungs.items() if not holds) or "isolation"
        raise SandboxUnavailable(
            f"untrusted rules need isolation of level {level!r}, but the {isolation.driver} driver reaches only "
            f"{isolation.level!r} on this host (missing: {missing}); see docs/explanation/sandbox.md for what to "
            f"install or allow; if every config is trusted, set ADE_SANDBOX_MIN_LEVEL={isolation.level}"
        )


def make_sandbox(name: str, *, min_level: str, run_dir: Path, engine: "Engine | None" = None) -> Sandbox:
    """The sandbox that ADE_SANDBOX names. What it can do on this host is probed on first use."""
    if min_level not in LEVELS:
        raise SettingsError(f"ADE_SANDBOX_MIN_LEVEL is {min_level!r}; it can be {', '.join(LEVELS)}")
    # The drivers import the levels above, and only the one in use is loaded.
    if name == "jail":
        from runner.sandbox.jail import JailSandbox  # noqa: PLC0415

        return JailSandbox(run_dir=run_dir, min_level=min_level, engine=engine)
    if name == "process":
        from runner.sandbox.process import ProcessSandbox  # noqa: PLC0415

        return ProcessSandbox(run_dir=run_dir, min_level=min_level, engine=engine)
    if name == "docker":
        from runner.sandbox.docker import DockerSandbox  # noqa: PLC0415

        return DockerSandbox(run_dir=run_dir, min_level=min_level, engine=engine)
    raise SettingsError(f"ADE_SANDBOX is {name!r}; it can be {', '.join(DRIVERS)}")


def make_layers(name: str, *, min_level: str, run_dir: Path, cache: Path, wheelhouse: Path | None) -> "Layers":
    """The cache of installed requirements; installations run in boxes of the same driver."""
    from runner.sandbox.install.layers import Layers  # noqa: PLC0415  # as above
    from runner.sandbox.session import Engine  # noqa: PLC0415

    installer = Engine(package="runner.sandbox.install", rehearses=False)
    sandbox = make_sandbox(name, min_level=min_level, run_dir=run_dir / "install", engine=installer)
    return Layers(cache=cache, wheelhouse=wheelhouse, sandbox=sandbox)
