"""Who is alive on this machine: a runner holds a lock that the kernel frees when it dies, however it dies.

Beside it, a sign of life for whoever runs this process: a file whose time is that of the last round of its loop.
"""

import contextlib
import fcntl
import os
import secrets
import socket
import time
from collections.abc import Callable
from pathlib import Path

from infra.local.disk import make_private_folder

_EVERY_SECONDS = 5.0


class Pulse:
    def __init__(self, path: Path, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._now = monotonic
        self._due = 0.0

    def beat(self) -> None:
        """Call at the start of a round. Never raises; writes at most once in five seconds."""
        now = self._now()
        if now < self._due:
            return
        self._due = now + _EVERY_SECONDS
        with contextlib.suppress(OSError):  # a full disk is reported elsewhere
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch()


def alive_file(run_dir: Path, role: str) -> Path:
    """The file that processes of a role touch; several on one data folder share it."""
    return run_dir / f"{role}.alive"


def new_owner(role: str) -> str:
    """A readable, unique name for one process."""
    host = socket.gethostname().split(".")[0][:20] or "host"
    return f"{role}-{host}-{os.getpid()}-{secrets.token_hex(6)}"


class Presence:
    """Holds this process's lock below `folder` and checks whether other owners still hold theirs."""

    def __init__(self, folder: Path, owner: str) -> None:
        make_private_folder(folder.parent)
        make_private_folder(folder)
        self.owner = owner
        self._folder = folder
        self._path = folder / f"{owner}.lock"
        self._lock = os.fdopen(os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600), "rb")
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def alive(self, owner: str) -> bool:
        """False only if the owner's lock is known to be free: proof of death, never a guess.

        An owner of another machine left no lock here, so its lease alone decides.
        """
        return owner == self.owner or not _free(self._folder / f"{owner}.lock")

    def others(self, role: str) -> list[str]:
        """Owners of a role that are alive on this machine."""
        names = [p.stem for p in self._folder.glob(f"{role}-*.lock")]
        return [n for n in names if n != self.owner and self.alive(n)]

    def set_note(self, note: str) -> None:
        """Leave a note for operators of this machine; empty: none. Never raises."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._lock.fileno(), 0)
            os.pwrite(self._lock.fileno(), note.encode(errors="replace"), 0)

    def note(self, owner: str) -> str:
        """The note of another owner."""
        try:
            return (self._folder / f"{owner}.lock").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def sweep(self) -> list[str]:
        """Owners that died without cleaning up; keeps their locks, so that `alive` still works."""
        return [p.stem for p in self._folder.glob("*.lock") if p != self._path and _free(p)]

    def forget(self, owner: str) -> None:
        """Remove a dead owner's lock once no row names it."""
        (self._folder / f"{owner}.lock").unlink(missing_ok=True)

    def close(self) -> None:
        """A second call does nothing: by then the descriptor's number may be in use for another file."""
        self._path.unlink(missing_ok=True)
        self._lock.close()


def _free(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


def alive_owners(folder: Path) -> list[str]:
    """Every process of this machine that holds its lock below `folder`."""
    return sorted(path.stem for path in folder.glob("*.lock") if not _free(path))


def open_below(folder: Path) -> list[int]:
    """Other processes that have a file below `folder` open, also one that is deleted by now; as far as we may know."""
    found = set()
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if link.readlink().is_relative_to(folder):
                found.add(int(link.parts[2]))
    return sorted(found - {os.getpid()})
