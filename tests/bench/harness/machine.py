"""Where and with what a figure was measured: nothing that names a host, a person or a path."""

import os
import platform
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).parents[3]


def described() -> dict[str, object]:
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30),
        "kernel": platform.release().partition("-")[0],
        "load_at_start": round(os.getloadavg()[0], 1),
    }


def stamp() -> dict[str, str]:
    return {"made": time.strftime("%Y-%m-%d", time.gmtime()), "commit": _commit()}


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _commit() -> str:
    """The commit that was measured; a plus: with changes of the program that are not committed."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    head = git("rev-parse", "--short=10", "HEAD") or "unknown"
    rooms = ("ade_drop", "core", "infra", "handlers", "runner", "console")
    return head + ("+" if git("status", "--porcelain", "--", *rooms) else "")
