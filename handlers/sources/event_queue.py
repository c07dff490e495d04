"""S3 → SQS and S3 → EventBridge → SQS: bodies off the events queue, into the intake."""

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from handlers.arrivals import Arrivals
from handlers.events import Change, UnknownEvent, decode
from infra.aws.sqs_events import RawEvent
from infra.logs import Log

_ERROR_PAUSE_SECONDS = 2.0


class Events(Protocol):
    """A queue of bodies that come back unless they are `done`."""

    def receive(self) -> list[RawEvent]: ...

    def done_all(self, events: Sequence[RawEvent]) -> None: ...

    def refuse(self, body: str, reason: str) -> None: ...


class Poller:
    """A body leaves the queue only after what it tells of is in the table. One that fails keeps no other back."""

    def __init__(
        self, events: Events, arrivals: Arrivals, log: Log, *, pulse: Callable[[], None] = lambda: None
    ) -> None:
        self._events = events
        self._arrivals = arrivals
        self._log = log
        self._pulse = pulse
        self._stopped = threading.Event()

    def run(self) -> None:
        """Poll until `stop`; a service that does not answer is asked again after a pause."""
        while not self._stopped.is_set():
            self._pulse()
            try:
                self.once()
            except Exception as error:  # noqa: BLE001 - whatever came, the next may be good
                self._log.error("events_not_received", error=f"{type(error).__name__}: {error}")
                self._stopped.wait(_ERROR_PAUSE_SECONDS)

    def stop(self) -> None:
        self._stopped.set()

    def once(self) -> int:
        """One answer of the queue; how many bodies were dealt with."""
        batch = [(event, changes) for event in self._events.receive() if (changes := self._read(event)) is not None]
        done = self._arrivals.take_all(batch, self._log) if batch else []
        self._events.done_all(done)
        return len(done)

    def _read(self, event: RawEvent) -> list[Change] | None:
        try:
            return decode(event.body)
        except Exception as error:  # noqa: BLE001 - one body that nobody can read keeps no other back
            reason = str(error) if isinstance(error, UnknownEvent) else f"{type(error).__name__}: {error}"
            self._log.warning("event_refused", reason=reason)
            self._refuse(event, reason)
            return None

    def _refuse(self, event: RawEvent, reason: str) -> None:
        """To the dead letters; where that fails it comes back, and the queue's own limit takes it off in the end."""
        try:
            self._events.refuse(event.body, reason)
            self._events.done_all([event])
        except Exception as error:  # noqa: BLE001 - as above
            self._log.error("refusal_failed", error=f"{type(error).__name__}: {error}")
