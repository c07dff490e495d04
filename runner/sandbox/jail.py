"""The `jail` driver: hostile rules run without harm, and start in milliseconds.

Theory of operation
-------------------
A *zygote* (box/zygote.py) is exec'ed with a clean environment, one per tenant. It enters namespaces of its own, imports
the engine once and waits. For each job it forks a *box*, which gives up every right it has (box/lockdown.py) and only
then hears what its job is:

  1. a pid namespace whose process 1 is ours, so that its death is the death of everything in the box;
  2. a mount namespace whose root holds the interpreter, the engine and the job's inputs, all read-only: there is no
     folder to write to, no /proc, no socket, nothing of another job;
  3. a user that is nobody outside (where the runner is root), and no capabilities;
  4. Landlock, which says the same about files once more, and holds where namespaces cannot be had;
  5. rlimits and, where they can be made, a control group;
  6. seccomp: a list of the system calls that computing needs.

Outputs leave through descriptors of files that the runner opened: the runner never follows a path that a box chose.
What the box says comes through a pipe and is checked (channel.py). Between lock-down and the go the runner looks at
/proc/<pid>/status from outside and lets nothing run that is not locked down. Process 1 is the *warden*: it forks the
engine before either hears of the job, outlives it, kills what it left behind, and then verifies the outputs.

Which rungs hold on a host is found out by running a canary (box/canary.py) through this same code, weakest promise
last (probe.py). The order of the rungs above matters: capabilities go after the mounts that need them, Landlock after
the root it speaks about, rlimits after what has to be opened, and seccomp last because it forbids all the rest.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import SandboxUnavailable
from core.ports import BoxOrder, BoxReport, Isolation
from core.verdicts import Verdict
from runner.sandbox import probe
from runner.sandbox.builds import Build, candidates
from runner.sandbox.cgroups import Cgroups
from runner.sandbox.jailer import Jailer
from runner.sandbox.levels import require
from runner.sandbox.registry import Registry
from runner.sandbox.session import Engine

RECYCLE_AFTER = 500  # jobs of one zygote
STALE_SECONDS = 60.0  # a group that is still empty after this long belongs to nobody


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """How to build boxes; tests ask for less than the host could give."""

    warm: bool = True
    recycle_after: int = RECYCLE_AFTER
    builds: tuple[Build, ...] | None = None  # which to try, strongest first; None: every one
    cgroups: bool = True


class JailSandbox:
    """Boxes for code that nobody has read. Safe to use from several threads."""

    def __init__(
        self, *, run_dir: Path, min_level: str, engine: Engine | None = None, options: Options | None = None
    ) -> None:
        self._run_dir = run_dir
        self._min_level = min_level
        self._engine = engine or Engine()
        self._options = options or Options()
        self._registry = Registry(run_dir)
        cgroups = Cgroups.find() if self._options.cgroups else None
        self._cgroups = cgroups if cgroups is not None and cgroups.usable() else None
        self._lock = threading.Lock()
        self._found: probe.Found | None = None

    def isolation(self) -> Isolation:
        try:
            return self._probed().isolation
        except SandboxUnavailable as error:
            return Isolation(driver="jail", level="none", rungs={}, gaps=(str(error),))

    def run(
        self,
        order: BoxOrder,
        *,
        killed: Callable[[], Verdict | None],
        on_event: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> BoxReport:
        found = self._probed()
        if not order.trusted:
            require(found.isolation, self._min_level)
        return found.jailer.run(order, found.isolation, killed=killed, on_event=on_event)

    def reap(self, alive: Callable[[str], bool]) -> int:
        reaped = self._registry.reap(alive)
        if self._cgroups is not None:
            for label in reaped:
                self._cgroups.remove(label)
            self._cgroups.sweep(STALE_SECONDS)
        return len(reaped)

    def close(self) -> None:
        with self._lock:
            if self._found is not None:
                self._found.jailer.close()

    def _probed(self) -> probe.Found:
        with self._lock:
            if self._found is None:
                builds = candidates() if self._options.builds is None else self._options.builds
                self._found = probe.strongest(builds, self._jailer, self._run_dir)
            return self._found

    def _jailer(self, build: Build) -> Jailer:
        return Jailer(
            build,
            engine=self._engine,
            run_dir=self._run_dir,
            cgroups=self._cgroups,
            warm=self._options.warm,
            recycle_after=self._options.recycle_after,
        )
