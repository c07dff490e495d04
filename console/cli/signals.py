"""Signals that end a command: the first one politely. Imports little: `ade try` needs it, and no service."""

import os
import select
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

from console.cli.guard import Exit

LAST_SECONDS = 10.0  # after a drain's time is up: jobs are given back, publications end, or the process does


class Signals:
    """While entered, the first signal makes `wait` return; the second ends the process."""

    def __init__(self) -> None:
        self.asked = False
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._before: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}
        self._wakeup = -1

    def __enter__(self) -> Self:
        # The interpreter's own handler writes the pipe: a signal just before `select` would otherwise be missed, since
        # our handler only runs between two bytecodes.
        self._wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        signal.set_wakeup_fd(self._wakeup)
        os.close(self._read)
        os.close(self._write)

    def wait(self, seconds: float | None = None) -> bool:
        """Sleep until a signal, a `wake` or the timeout; returns whether a stop was requested."""
        select.select([self._read], [], [], seconds)
        self._clear()
        return self.asked

    def end_within(self, seconds: float) -> None:
        """If a stop was requested, end the process after so long, whatever still hangs: a call, a chore, a thread.

        As safe as a second signal, and nobody has to send it.
        """
        if self.asked:
            timer = threading.Timer(seconds, os._exit, (Exit.UNAVAILABLE,))
            timer.daemon = True
            timer.start()

    def wake(self) -> None:
        """Make `wait` return; from any thread."""
        os.write(self._write, b"w")

    def _clear(self) -> None:
        try:
            os.read(self._read, 4096)
        except BlockingIOError:
            return

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked:
            # Boxes die with this process, and other runners take over the leases.
            os._exit(Exit.INTERRUPTED)
        self.asked = True
