"""Shows whoever runs this process that its loop goes round: a file whose time is that of the last round.

Orchestrators look with `find <file> -mmin -3` (docs/cloud.md). A service that does not answer is no reason to be
restarted, so a round counts whether or not it got anything done.
"""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

_EVERY_SECONDS = 5.0


class Pulse:
    def __init__(self, path: Path, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._now = monotonic
        self._due = 0.0

    def beat(self) -> None:
        """A round has begun. Never raises; writes at most once in five seconds."""
        now = self._now()
        if now < self._due:
            return
        self._due = now + _EVERY_SECONDS
        with contextlib.suppress(OSError):  # a full disk is not for this to report
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch()


def alive_file(run_dir: Path, role: str) -> Path:
    """Where processes of a role leave their pulse; several on one data folder share it."""
    return run_dir / f"{role}.alive"
