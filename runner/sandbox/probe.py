"""Finds out what holds on this host: a canary runs through the real driver, and only what it met counts."""

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import SandboxUnavailable
from core.ports import BoxLimits, BoxOrder, Isolation
from core.verdicts import Verdict
from runner.sandbox.builds import Build
from runner.sandbox.jailer import Jailer
from runner.sandbox.levels import gaps_of, level_of

_LIMITS = BoxLimits(wall_seconds=20, cpu_seconds=7, memory_mb=256, file_mb=1)
_TENANT = "_canary"
_UNKNOWN = Isolation(driver="jail", level="none", rungs={}, gaps=())


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """The build to use, what it gives, and why stronger ones were passed over."""

    jailer: Jailer
    isolation: Isolation
    refused: tuple[str, ...]


def strongest(builds: Sequence[Build], make: Callable[[Build], Jailer], run_dir: Path) -> Found:
    """The first build whose canary meets what the build promises; raises SandboxUnavailable where none does."""
    refused: list[str] = []
    for build in builds:
        jailer = make(build)
        try:
            answers = send_canary(jailer, run_dir)
            rungs = rungs_met(jailer, answers)
            missing = _broken_promises(build, rungs)
            if not missing:
                level = level_of(rungs)
                gaps = (*gaps_of(rungs), *(f"passed over: {reason}" for reason in refused))
                isolation = Isolation(driver="jail", level=level, rungs=rungs, gaps=gaps)
                jailer.hand_over(_TENANT)
                return Found(jailer=jailer, isolation=isolation, refused=tuple(refused))
            reason = f"the canary got past {', '.join(missing)}"
        except SandboxUnavailable as error:
            reason = str(error)
        jailer.close()
        refused.append(f"{_name(build)}: {reason}")
    raise SandboxUnavailable(
        f"no jail can be had on this host ({'; '.join(refused)}); docs/sandbox.md says what to install or allow"
    )


def send_canary(jailer: Jailer, run_dir: Path) -> dict[str, Any]:
    """What a box of this build could do."""
    scratch = run_dir.resolve() / f"canary-{os.getpid()}-{os.urandom(4).hex()}"
    (scratch / "in").mkdir(parents=True)
    try:
        (scratch / "in" / "0").write_bytes(b"tweet")
        forbidden = scratch / "forbidden"
        forbidden.write_bytes(b"not for the box")
        order = BoxOrder(
            label=scratch.name,
            tenant=_TENANT,
            scratch=scratch,
            job={"inputs": [{"path": "in/0"}]},
            outputs=(),
            limits=_LIMITS,
        )
        told = {"forbidden": str(forbidden)}
        report = jailer.run(order, _UNKNOWN, killed=lambda: None, canary=told)
        if report.verdict is not Verdict.OK:
            raise SandboxUnavailable(f"the canary died: {report.message or report.verdict}")
        return dict(report.claim["summary"])
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def rungs_met(jailer: Jailer, answers: dict[str, Any]) -> dict[str, bool]:
    """Which rungs the canary ran into."""
    if answers["read_input"] != "done" or answers["imports"] != "done":
        raise SandboxUnavailable("a box of this build cannot read its own job")
    limits = answers["cpu_limit"] == _LIMITS.cpu_seconds and answers["core_limit"] == 0
    return {
        "namespaces": answers["stat_outside"] == "ENOENT",  # and the jailer has compared every one from outside
        "landlock": jailer.build.landlock and answers["list_root"] == "EACCES",
        "seccomp": answers["socket"] == "EPERM" and answers["fork"] == "EAGAIN",
        "rlimits": limits,
        "cgroup": jailer.cgroups is not None,
        "own_user": jailer.build.own_user,
        "warm": jailer.warm,
        "sealed": answers["read_outside"] != "done"
        and answers["write_input"] != "done"
        and answers["make_file"] != "done",
    }


def _broken_promises(build: Build, rungs: dict[str, bool]) -> list[str]:
    promised = {
        "namespaces": build.namespaces != "none",
        "landlock": build.landlock,
        "seccomp": build.seccomp,
        "rlimits": True,
        "sealed": build.landlock or build.namespaces != "none",
    }
    return [name for name, wanted in promised.items() if wanted and not rungs[name]]


def _name(build: Build) -> str:
    user = " with a user of its own" if build.own_user else ""
    return f"namespaces={build.namespaces}{user}"
