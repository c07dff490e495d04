"""Time: the system's, and one that tests move by hand."""

import time


class SystemClock:
    """The wall clock, held back from going backwards within one process.

    One that is set back goes on at half its pace until the wall clock has caught up: if it stood, whatever waits for a
    time (a retry, a lease that has to run out) would wait for as long as the clock was set back.
    """

    def __init__(self) -> None:
        self._seen = 0.0, 0.0  # what was told last, and when by the steady clock

    def now(self) -> float:
        steady = time.monotonic()
        last, at = self._seen
        told = max(time.time(), last + max(0.0, steady - at) / 2)
        self._seen = told, steady
        return told

    def steady(self) -> float:
        return time.monotonic()


class HandClock:
    """A clock that stands until it is moved."""

    def __init__(self, at: float = 1_750_000_000.0) -> None:
        self.at = at

    def now(self) -> float:
        return self.at

    def steady(self) -> float:
        return self.at

    def move(self, seconds: float) -> None:
        self.at += seconds
