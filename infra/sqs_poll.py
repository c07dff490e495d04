"""A long poll that its caller can leave: it runs on in a thread, and what it brings waits for the next caller."""

import threading
from collections.abc import Callable
from typing import Any

Raw = list[dict[str, Any]]
_ANSWER_SECONDS = 60.0  # beyond the poll's own time: the call's deadline ends it long before


class Poll:
    """At most one poll is under way at a time; callers that come meanwhile wait for their turn."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._state = threading.Condition()
        self._running = False
        self._brought: Raw = []
        self._failed: Exception | None = None
        self._woken = False
        self._closed = False

    def take(self, receive: Callable[[float], Raw], seconds: float) -> Raw:
        """What a poll of up to `seconds` brings; nothing where `wake` came first."""
        with self._turn, self._state:
            if self._closed or self._woken:
                return self._collect()
            if not self._running and not self._brought:
                self._running = True
                threading.Thread(target=self._run, args=(receive, seconds), daemon=True, name="sqs-poll").start()
                mine = seconds + _ANSWER_SECONDS
            else:
                mine = seconds
            self._state.wait_for(lambda: not self._running or self._woken, timeout=mine)
            return self._collect()

    def left_over(self) -> Raw:
        """What an earlier poll brought and nobody took."""
        with self._state:
            return self._collect()

    def woken(self) -> bool:
        """Whether `wake` was called since the last time this was asked."""
        with self._state:
            woken, self._woken = self._woken, False
            return woken or self._closed

    def wake(self) -> None:
        with self._state:
            self._woken = True
            self._state.notify_all()

    def close(self, seconds: float) -> Raw:
        """Take no more polls, wait for the one under way, and return what nobody has taken."""
        with self._state:
            self._closed = self._woken = True
            self._state.notify_all()
            self._state.wait_for(lambda: not self._running, timeout=seconds)
            left, self._brought = self._brought, []
            return left

    def _run(self, receive: Callable[[float], Raw], seconds: float) -> None:
        brought: Raw = []
        failed: Exception | None = None
        try:
            brought = receive(seconds)
        except Exception as error:  # noqa: BLE001 - handed to the caller; lost here, the caller would poll on at once
            failed = error
        finally:
            with self._state:
                self._running = False
                self._brought += brought
                self._failed = failed
                self._state.notify_all()

    def _collect(self) -> Raw:
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed
        brought, self._brought = self._brought, []
        return brought
