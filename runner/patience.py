"""Calls to a store that may hang: a thread makes the call, and the slot waits only for as long as its job may go on.

Nobody can interrupt a call over a network. So a slot whose job has to end (a drain, a lost lease, another tenant's
turn) or whose time is up leaves the call to its thread. What comes of it is thrown away, as if this process had died
during the call.
"""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from core.errors import StoreUnavailable
from core.verdicts import Verdict
from runner.boxes import Killed

_POLL_SECONDS = 0.05
_MOST_LEFT = 64  # calls that were left and still hang

T = TypeVar("T")


class CallLeft(Exception):
    """The job has to end before its call has ended."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(str(verdict))
        self.verdict = verdict


class PatientCalls:
    """Makes calls that can be left. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left = 0

    def __call__(
        self,
        what: str,
        act: Callable[[], T],
        *,
        killed: Killed,
        seconds: float,
        tidy: Callable[[], object],
        last_seconds: float = 0.0,
    ) -> T:
        """What `act` returns or raises. `tidy` is called after a call that was left, once it has ended.

        Raises CallLeft `last_seconds` after the job was killed, and StoreUnavailable after `seconds`.
        """
        if self._left >= _MOST_LEFT:
            raise StoreUnavailable(f"the store has not answered {self._left} earlier calls; check that it is up")
        call = _Call(act)
        thread = threading.Thread(target=call.run, name="patient-call", daemon=True)  # an exit does not wait for it
        thread.start()
        waited = since_killed = 0.0
        while not call.ended.wait(_POLL_SECONDS):
            waited += _POLL_SECONDS
            why = killed()
            since_killed += _POLL_SECONDS if why is not None else 0.0
            if why is not None and since_killed > last_seconds:
                self._leave(call, tidy)
                raise CallLeft(why)
            if waited >= seconds:
                self._leave(call, tidy)
                raise StoreUnavailable(f"the store did not {what} within {seconds:g} s")
        return call.result()

    def _leave(self, call: "_Call[T]", tidy: Callable[[], object]) -> None:
        with self._lock:
            self._left += 1

        def after() -> None:
            with self._lock:
                self._left -= 1
            tidy()

        call.leave(after)


class _Call(Generic[T]):
    def __init__(self, act: Callable[[], T]) -> None:
        self._act = act
        self._returned: list[T] = []
        self._raised: BaseException | None = None
        self._lock = threading.Lock()
        self._after: Callable[[], None] | None = None
        self.ended = threading.Event()

    def run(self) -> None:
        try:
            self._returned.append(self._act())
        except BaseException as error:  # noqa: BLE001 - raised in the slot
            self._raised = error
        with self._lock:
            self.ended.set()
            after = self._after
        if after is not None:
            after()

    def leave(self, after: Callable[[], None]) -> None:
        """Nobody waits any more; `after` is called when the call has ended."""
        with self._lock:
            if not self.ended.is_set():
                self._after = after
                return
        after()

    def result(self) -> T:
        if self._raised is not None:
            raise self._raised
        return self._returned[0]
