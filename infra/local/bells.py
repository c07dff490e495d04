"""Doorbells: a file per topic; touching it wakes every listener, in any process of the machine."""

import contextlib
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from infra.local import folder_watch

_FALLBACK_POLL_SECONDS = 0.25


def ring(bell: Path) -> None:
    """Wake every listener of this bell. Cheap enough for every commit."""
    try:
        os.utime(bell)
    except FileNotFoundError:
        bell.parent.mkdir(parents=True, exist_ok=True)
        bell.touch()


class Listener:
    """Waits for a bell. A ring between two waits is not lost: create the listener before looking for work."""

    def __init__(self, bell: Path) -> None:
        self._bell = bell
        ring(bell)
        self._wake_r, self._wake_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._inotify: folder_watch.Inotify | None = None
        with contextlib.suppress(OSError):
            self._inotify = folder_watch.Inotify()
            self._inotify.add(bell, folder_watch.ATTRIB)
        self._seen = self._mtime()

    def wait(self, seconds: float) -> None:
        """Return at the next ring or `wake`, or after `seconds`."""
        if self._inotify is not None:
            if folder_watch.wait_readable([self._inotify.fd, self._wake_r], seconds):
                self._inotify.read()
        else:
            self._poll(seconds)
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_r, 4096)

    def wake(self) -> None:
        """Make this listener's `wait` return; safe from a signal handler or another thread."""
        with contextlib.suppress(BlockingIOError, OSError):
            os.write(self._wake_w, b"w")

    def close(self) -> None:
        if self._inotify is not None:
            self._inotify.close()
        for fd in (self._wake_r, self._wake_w):
            if fd >= 0:
                os.close(fd)
        self._wake_r = self._wake_w = -1

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _poll(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if folder_watch.wait_readable([self._wake_r], min(left, _FALLBACK_POLL_SECONDS)):
                return
            if (at := self._mtime()) != self._seen:
                self._seen = at
                return

    def _mtime(self) -> int:
        try:
            return self._bell.stat().st_mtime_ns
        except FileNotFoundError:
            return 0
