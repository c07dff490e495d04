"""Control groups, if the runner may create them: limits on memory and tasks that a box cannot evade.

Version 2 needs a delegated group whose processes are one level down (systemd: Delegate=yes with
DelegateSubgroup=runner); version 1 needs write access to the memory and pids hierarchies.
"""

import errno
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from runner.sandbox.session import Kernel

MIB = 1024 * 1024
THREADS = 64
OVERHEAD_MB = 16  # pages that a fork copies before the job starts, and kernel memory
_MOUNT = Path("/sys/fs/cgroup")
_REMOVE_TRIES = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class _Names:
    """The file names of one version."""

    memory_max: str
    memory_peak: str
    memory_events: str
    at_limit: tuple[str, str]  # the file and the name of what counts how often the group was at its own limit


_V1 = _Names(
    memory_max="memory.limit_in_bytes",
    memory_peak="memory.max_usage_in_bytes",
    memory_events="memory.oom_control",
    at_limit=("memory.failcnt", ""),
)
_V2 = _Names(
    memory_max="memory.max",
    memory_peak="memory.peak",
    memory_events="memory.events",
    at_limit=("memory.events", "oom"),
)


class Cgroups:
    """Creates one group per box below the given folders: one for all (version 2), or memory and pids."""

    def __init__(self, memory: Path, pids: Path, names: _Names) -> None:
        self._memory, self._pids, self._names = memory, pids, names

    @classmethod
    def find(cls, mount: Path = _MOUNT, own: str | None = None) -> "Cgroups | None":
        """The place where boxes can have their own groups; None if there is none."""
        lines = (own or Path("/proc/self/cgroup").read_text(encoding="utf-8")).splitlines()
        places = {line.split(":", 2)[1]: line.split(":", 2)[2].lstrip("/") for line in lines if line}
        if "memory" in places and "pids" in places:
            memory, pids = mount / "memory" / places["memory"], mount / "pids" / places["pids"]
            return cls(memory, pids, _V1) if _writable(memory) and _writable(pids) else None
        if "" in places and (mount / "cgroup.controllers").exists():
            above = (mount / places[""]).parent
            if above.is_relative_to(mount) and _writable(above) and _delegates(above):
                return cls(above, above, _V2)
        return None

    @contextmanager
    def group(self, label: str, *, memory_mb: int, processes: int) -> Iterator["Group"]:
        """A group for one box; removed after the box has ended."""
        memory, pids = self._memory / _name(label), self._pids / _name(label)
        try:
            for folder in {memory, pids}:
                folder.mkdir(exist_ok=True)
            (memory / self._names.memory_max).write_text(str((memory_mb + OVERHEAD_MB) * MIB))
            with suppress(OSError):  # only if swap is accounted
                (memory / "memory.swap.max").write_text("0")
            (pids / "pids.max").write_text(str(processes + THREADS))
            yield Group(memory, pids, self._names)
        finally:
            self.remove(label)

    def holds(self, label: str) -> bool:
        """Whether there is a group for this box."""
        return any((folder / _name(label)).exists() for folder in (self._memory, self._pids))

    def sweep(self, older_than: float) -> None:
        """Remove groups without processes, left by a killed runner."""
        before = time.time() - older_than
        for folder in {*self._memory.glob("ade-*"), *self._pids.glob("ade-*")}:
            with suppress(OSError):
                if folder.stat().st_mtime < before:
                    folder.rmdir()  # refused by the kernel while it has processes

    def usable(self) -> bool:
        """Whether a group can be made, bounded and removed, found out by doing it."""
        try:
            with self.group(f"trial-{os.getpid()}", memory_mb=64, processes=0):
                return True
        except OSError:
            return False

    def remove(self, label: str) -> None:
        """Remove a box's group; absent is fine."""
        for folder in {self._memory / _name(label), self._pids / _name(label)}:
            for _ in range(_REMOVE_TRIES):
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    break
                except OSError as error:
                    if error.errno != errno.EBUSY:
                        break
                    time.sleep(0.002)  # the kernel is still letting go of the last process
                else:
                    break


class Group:
    """One box's group, while it is there."""

    def __init__(self, memory: Path, pids: Path, names: _Names) -> None:
        self._memory, self._pids, self._names = memory, pids, names

    def add(self, pid: int) -> None:
        """Move a process here, unless it is here."""
        for folder in {self._memory, self._pids}:
            processes = folder / "cgroup.procs"
            if str(pid) not in processes.read_text().split():
                processes.write_text(str(pid))

    @contextmanager
    def entries(self) -> Iterator[list[int]]:
        """What a process of one thread writes 0 to in order to move here; nothing in version 2, which has no such way.

        While one process moves another, the kernel lets no process of the host begin or end, for some milliseconds.
        """
        files = [folder / "tasks" for folder in (self._memory, self._pids) if self._names is _V1]
        with ExitStack() as opened:
            yield [opened.enter_context(file.open("wb", buffering=0)).fileno() for file in files]

    def seen(self) -> Kernel:
        """What the kernel counted. It also kills processes of a group for want of memory above it, or on the host."""
        killed = _counter(self._memory / self._names.memory_events, "oom_kill") > 0
        file, name = self._names.at_limit
        own = _counter(self._memory / file, name) > 0
        return Kernel(
            out_of_memory=killed and own,
            host_out_of_memory=killed and not own,
            too_many_processes=_counter(self._pids / "pids.events", "max") > 0,
            peak_mb=_number(self._memory / self._names.memory_peak),
        )


def _name(label: str) -> str:
    return f"ade-{sha256(label.encode()).hexdigest()[:24]}"


def _writable(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _delegates(folder: Path) -> bool:
    try:
        words = set((folder / "cgroup.subtree_control").read_text().split())
        if not {"memory", "pids"} <= words:
            (folder / "cgroup.subtree_control").write_text("+memory +pids")
    except OSError:
        return False
    return True


def _counter(path: Path, name: str) -> int:
    try:
        for line in path.read_text().splitlines():
            key, _, value = line.rpartition(" ")
            if key == name:
                return int(value)
    except (OSError, ValueError):
        return 0
    return 0


def _number(path: Path) -> float | None:
    try:
        return int(path.read_text()) / MIB
    except (OSError, ValueError):
        return None
