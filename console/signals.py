"""Ctrl-C and SIGTERM: the first one asks for a drain, the second ends at once. The handler only sets a flag."""

import os
import select
import signal
from types import FrameType, TracebackType
from typing import Self

from console.exits import Exit


class Signals:
    """While it is entered, the first signal makes `wait` return; a second one ends the process."""

    def __init__(self) -> None:
        self.asked = False
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._before: dict[int, object] = {}
        self._wakeup = -1

    def __enter__(self) -> Self:
        # The pipe is written by the interpreter's own handler: a signal that comes just before `select` begins would
        # otherwise leave it asleep, for our handler only runs between two bytecodes.
        self._wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)  # type: ignore[arg-type]
        signal.set_wakeup_fd(self._wakeup)
        os.close(self._read)
        os.close(self._write)

    def wait(self, seconds: float | None = None) -> bool:
        """Sleep until a signal, a `wake` or the time is over; whether an end was asked for."""
        select.select([self._read], [], [], seconds)
        self._clear()
        return self.asked

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
            # Boxes die with us and leases are taken over: that is what they are for.
            os._exit(Exit.INTERRUPTED)
        self.asked = True
