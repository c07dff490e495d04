"""Time: the system's, and one that tests move by hand."""

import time


class SystemClock:
    """The wall clock, which never goes backwards within one process.

    If the wall clock is set back, this one continues at half speed until the wall clock has caught up: if it stopped,
    everything that waits for a time (a retry, an expiring lease) would wait for as long as the clock was set back.
    """

    def __init__(self) -> None:
        self._seen = 0.0, 0.0  # the last time returned, and the steady clock at that moment

    def now(self) -> float:
        steady = time.monotonic()
        last, at = self._seen
        now = max(time.time(), last + max(0.0, steady - at) / 2)
        self._seen = now, steady
        return now

    def steady(self) -> float:
        return time.monotonic()


class HandClock:
    """A clock that only moves by hand."""

    def __init__(self, at: float = 1_750_000_000.0) -> None:
        self.at = at

    def now(self) -> float:
        return self.at

    def steady(self) -> float:
        return self.at

    def move(self, seconds: float) -> None:
        self.at += seconds
