"""The port to a sandbox: one job, one box. Drivers are in `runner/sandbox`, orders in `engine/contract`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from core.verdicts import Verdict
from runner.engine.contract import Event, InspectOrder, Json, Order, VerifyOrder, Where

OPEN_FILES: Final = 64  # that a box may have at a time


@dataclass(frozen=True, kw_only=True, slots=True)
class BoxLimits:
    wall_seconds: float
    cpu_seconds: int
    memory_mb: int
    file_mb: int
    log_bytes: int = 1024 * 1024
    open_files: int = OPEN_FILES
    processes: int = 0  # further processes that rules may start


@dataclass(frozen=True, kw_only=True, slots=True)
class Verification:
    """How a process that never ran a rule checks a box's outputs, once nothing can change them any more."""

    job: VerifyOrder  # the driver adds the places
    outputs: tuple[str, ...]
    limits: BoxLimits
    least_seconds: float  # for outputs written at the last moment


@dataclass(frozen=True, kw_only=True, slots=True)
class BoxOrder:
    """One run of the engine. Paths are the host's; a driver shows them to the box as it sees fit.

    The paths of `job` are below `scratch`, which holds `in/` and, if there is one, `config/`; the driver fills in where
    the box finds them and where its outputs go.
    """

    label: str  # job and attempt; names processes, folders and orphans
    tenant: str
    scratch: Path
    job: Order | VerifyOrder | InspectOrder
    outputs: tuple[str, ...]  # file names the box may write, at most
    limits: BoxLimits
    network: bool = False
    trusted: bool = False  # contains no Python of the sender's
    layer: Path | None = None  # installed requirements, read-only
    grouped: bool = True  # in its own control group, where the host allows it; our own code can do without
    verification: Verification | None = None  # runs in the same box if the driver has a safe place for it
    retention_seconds: float = 0.0  # how long its results are kept at least, as the report says; 0: nobody knows


@dataclass(frozen=True, kw_only=True, slots=True)
class BoxReport:
    """What the runner observed, and what the box claims."""

    verdict: Verdict
    message: str
    where: Where = field(default_factory=dict)
    claim: Json = field(default_factory=dict)  # what the box says that it counted, until that is verified
    outputs: dict[str, Path] = field(default_factory=dict)  # regular files, within limits, by name
    log: Path | None = None  # what rules printed; may hold data
    wall_seconds: float = 0.0
    start_seconds: float = 0.0  # until the box began to work
    passes: dict[str, float] = field(default_factory=dict)  # seconds by pass; the verified audit says so
    cpu_seconds: float = 0.0
    peak_mb: float = 0.0
    verification: "BoxReport | None" = None  # how it ended; None: the box had no safe place for it
    suspicion: str = ""  # signs of a fault in the engine itself, whatever the verdict
    by_host: bool = False  # the host ended it, and neither its contents nor its limits did


@dataclass(frozen=True, kw_only=True, slots=True)
class Isolation:
    """What this host provides, as probed."""

    driver: str
    level: str  # "none", "limits", "confined" or "isolated"
    rungs: dict[str, bool]
    gaps: tuple[str, ...]


Killed = Callable[[], Verdict | None]  # asked while a box runs: the reason to end it now, if any
OnEvent = Callable[[Event], None]  # gets each checked event of a box


def ignore_event(_: Event) -> None:
    """For callers that need no events."""


class Sandbox(Protocol):
    """One job, one box. `run` returns once every process of the box has ended, whatever happened in it."""

    def isolation(self) -> Isolation: ...

    def run(self, order: BoxOrder, *, killed: Killed, on_event: OnEvent = ignore_event) -> BoxReport:
        """Run the engine. `killed` is polled often; once it returns a verdict, the box is ended at once.

        Never raises for what the box does; raises SandboxUnavailable if no box can be started.
        """
        ...

    def reap(self, alive: Callable[[str], bool]) -> int:
        """End boxes whose runner is gone (whose label is not `alive`); returns how many."""
        ...

    def close(self) -> None:
        """End helpers of this sandbox (zygotes, caches' locks); a second call does nothing."""
        ...
