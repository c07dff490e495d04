"""How strong a box is, in four words, and what is asked before code of strangers runs in it."""

from core.errors import SandboxUnavailable
from core.ports import Isolation

LEVELS = ("none", "limits", "confined", "isolated")  # weakest first

_GAPS = {
    "namespaces": "a box can ask for names, sizes and times of files outside (stat), not for their content; "
    "install bubblewrap or allow user namespaces",
    "landlock": "files are held back by namespaces alone; use Linux 5.13 or newer with Landlock",
    "seccomp": "every system call of the kernel can be tried; use x86_64 or aarch64",
    "cgroup": "memory is bounded by address space only; delegate a control group",
    "own_user": "boxes run as the runner's user, without its rights",
}


def level_of(rungs: dict[str, bool]) -> str:
    """The word for what holds."""
    if not rungs.get("rlimits"):
        return "none"
    if not rungs.get("seccomp"):
        return "limits"
    if rungs.get("namespaces"):
        return "isolated"
    return "confined" if rungs.get("landlock") else "limits"


def gaps_of(rungs: dict[str, bool]) -> tuple[str, ...]:
    """What is known to be open, for people."""
    return tuple(text for rung, text in _GAPS.items() if not rungs.get(rung))


def at_least(isolation: Isolation, level: str) -> bool:
    """Whether what holds here is no weaker than `level`."""
    return LEVELS.index(isolation.level) >= LEVELS.index(level)


def require(isolation: Isolation, level: str) -> None:
    """Raise SandboxUnavailable, with what to do about it, where the host gives less than `level`."""
    if not at_least(isolation, level):
        missing = ", ".join(name for name, holds in isolation.rungs.items() if not holds) or "isolation"
        raise SandboxUnavailable(
            f"untrusted rules need a box of level {level!r} and the {isolation.driver} driver gives "
            f"{isolation.level!r} here (missing: {missing}); docs/sandbox.md says what to install or allow; "
            f"where every config is trusted, set ADE_SANDBOX_MIN_LEVEL={isolation.level}"
        )
