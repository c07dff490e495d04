"""Files on their way to a client: a folder of each server, which another process of the machine may empty."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_hex

SPOOL_PREFIX = "console-"
_SPOOL_BYTES = 2 * 1024**3
_IN_USE_SECONDS = 60.0
_LIFETIME_SECONDS = 3600.0  # of a file that nobody asks for any more: what it is of may have been erased


class Spool:
    """A folder of files that were fetched or made, by what they hold; the oldest go when there are too many bytes."""

    def __init__(self, folder: Path, *, most: int = _SPOOL_BYTES) -> None:
        self.folder = folder
        self._most = most
        self._stored: OrderedDict[str, tuple[int, float]] = OrderedDict()  # size, and when it was asked for last
        self._making: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        folder.mkdir(parents=True)
        self._held = contextlib.ExitStack()
        self._held.callback(os.close, _locked(folder))
        _remove_those_of_the_dead(folder)

    def get(self, name: str, make: Callable[[Path], None]) -> Path:
        """The file of a name, made where it is not there; made once, however many ask."""
        path = self.folder / hashlib.sha256(name.encode()).hexdigest()
        with self._once(name):
            if not path.exists():
                half = self.folder / f"half-{token_hex(8)}"
                try:
                    make(half)
                    half.replace(path)
                finally:
                    half.unlink(missing_ok=True)
            self._store(path)
        return path

    def tidy(self) -> None:
        """Delete what nobody has asked for in the last hour."""
        with self._lock:
            since = time.monotonic() - _LIFETIME_SECONDS
            for name in [name for name, (_, asked) in self._stored.items() if asked < since]:
                (self.folder / name).unlink(missing_ok=True)
                del self._stored[name]

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self._held.close()

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder of one request."""
        folder = self.folder / f"request-{token_hex(8)}"
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextlib.contextmanager
    def _once(self, name: str) -> Iterator[None]:
        with self._lock:
            lock = self._making.setdefault(name, threading.Lock())
        with lock:
            yield
        with self._lock:
            self._making.pop(name, None)

    def _store(self, path: Path) -> None:
        with self._lock:
            now = time.monotonic()
            self._stored[path.name] = (path.stat().st_size, now)
            self._stored.move_to_end(path.name)
            left = sum(size for size, _ in self._stored.values())
            for name, (size, asked) in list(self._stored.items()):
                if left <= self._most or now - asked < _IN_USE_SECONDS:
                    break
                # Whoever reads it now reads on; whoever is about to open it asked a moment ago.
                (self.folder / name).unlink(missing_ok=True)
                del self._stored[name]
                left -= size


def _locked(folder: Path) -> int:
    """A lock that the kernel frees when this process dies, however it dies."""
    while True:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(held, fcntl.LOCK_EX)
        if folder.exists():
            return held
        os.close(held)  # somebody took it for a dead one's before it was locked
        folder.mkdir(parents=True)


def forget_spooled(run_dir: Path) -> int:
    """Delete the files that the servers of this machine, alive or not, made for downloads; returns how many.

    Whoever reads one now reads on, and one that is asked for again is made again.
    """
    _remove_those_of_the_dead(run_dir / SPOOL_PREFIX)
    files = [path for path in run_dir.glob(f"{SPOOL_PREFIX}*/*") if path.is_file()]
    for path in files:
        path.unlink(missing_ok=True)
    return len(files)


def _remove_those_of_the_dead(mine: Path) -> None:
    """Folders beside ours that a server left behind which was killed."""
    for folder in mine.parent.glob(f"{SPOOL_PREFIX}*"):
        if folder == mine:
            continue
        with contextlib.suppress(OSError):  # it is locked, so alive; or gone by now
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(held)
