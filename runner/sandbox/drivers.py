"""The drivers by name."""

from pathlib import Path

from core.errors import SettingsError
from core.ports import Sandbox
from runner.sandbox.docker import DockerSandbox
from runner.sandbox.jail import JailSandbox
from runner.sandbox.layers import Layers
from runner.sandbox.levels import LEVELS, require
from runner.sandbox.process import ProcessSandbox
from runner.sandbox.session import Engine

__all__ = ["DRIVERS", "make_layers", "make_sandbox", "require"]

DRIVERS = ("jail", "process", "docker")


def make_sandbox(name: str, *, min_level: str, run_dir: Path, engine: Engine | None = None) -> Sandbox:
    """The sandbox that ADE_SANDBOX names. What it can do here is found out by trying, at the first question."""
    if min_level not in LEVELS:
        raise SettingsError(f"ADE_SANDBOX_MIN_LEVEL is {min_level!r}; it can be {', '.join(LEVELS)}")
    if name == "jail":
        return JailSandbox(run_dir=run_dir, min_level=min_level, engine=engine)
    if name == "process":
        return ProcessSandbox(run_dir=run_dir, min_level=min_level, engine=engine)
    if name == "docker":
        return DockerSandbox(min_level=min_level, engine=engine)
    raise SettingsError(f"ADE_SANDBOX is {name!r}; it can be {', '.join(DRIVERS)}")


def make_layers(name: str, *, min_level: str, run_dir: Path, cache: Path, wheelhouse: Path | None) -> Layers:
    """The keeper of installed requirements; installations run in boxes of the same driver."""
    installer = Engine(package="runner.sandbox.install", rehearses=False)
    sandbox = make_sandbox(name, min_level=min_level, run_dir=run_dir / "install", engine=installer)
    return Layers(cache=cache, wheelhouse=wheelhouse, sandbox=sandbox)
