"""The boxes running on this host, by label: one small file each, so that any runner can end those of a dead one."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path


class Registry:
    """One file per running box, below the run folder. Safe across processes: file names are unique."""

    def __init__(self, run_dir: Path) -> None:
        self._folder = run_dir / "boxes"

    @contextmanager
    def entry(self, label: str, pid: int) -> Iterator[None]:
        """Record that the box `label` is the process `pid`, while the context lasts."""
        if not self._folder.is_dir():
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._path(label)
        half = path.with_suffix(f".{os.getpid()}.tmp")
        record = {"label": label, "pid": pid, "started": _started(pid), "boot": _boot_id()}
        half.write_text(json.dumps(record), encoding="utf-8")
        half.replace(path)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)

    def reap(self, alive: Callable[[str], bool]) -> list[str]:
        """Kill every recorded box whose label is not `alive`; returns the labels removed."""
        cleared = []
        for path in sorted(self._folder.glob("*.json")):
            try:
                record = json.loads(path.read_text(encoding="utf-8"))
                label, pid, started = str(record["label"]), int(record["pid"]), record["started"]
            except (OSError, ValueError, KeyError, TypeError):
                path.unlink(missing_ok=True)
                continue
            if alive(label):
                continue
            if record.get("boot") == _boot_id() and started is not None and _started(pid) == started:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            path.unlink(missing_ok=True)
            cleared.append(label)
        return cleared

    def _path(self, label: str) -> Path:
        return self._folder / f"{sha256(label.encode()).hexdigest()[:32]}.json"


def _started(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; together with the pid this is unique."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    return int(stat.rpartition(b")")[2].split()[19])


@cache
def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "unknown"
