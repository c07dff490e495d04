"""Time: the system's, and one that tests move by hand."""

import time


class SystemClock:
    """The wall clock, held back from going backwards within one process."""

    def __init__(self) -> None:
        self._last = 0.0

    def now(self) -> float:
        self._last = max(self._last, time.time())
        return self._last

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
