"""In: bodies from the events queue (S3 → SQS, S3 → EventBridge → SQS). Out: intake scans; a body is deleted after."""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from handlers.events import Change, UnknownEvent, decode
from handlers.sources.arrivals import Arrivals
from infra.logs import Log

if TYPE_CHECKING:  # boto3 is slow to import, and a folder bucket does not need it
    from infra.aws.sqs_events import RawEvent

_ERROR_PAUSE_SECONDS = 2.0


class Events(Protocol):
    """A queue that redelivers bodies until they are `done`."""

    def receive(self) -> "list[RawEvent]": ...

    def done_all(self, events: "Sequence[RawEvent]") -> None: ...

    def refuse(self, body: str, reason: str) -> None: ...


class Poller:
    """Deletes a body only after its changes are in the table. One that fails does not block the others."""

    def __init__(
        self, events: Events, arrivals: Arrivals, log: Log, *, pulse: Callable[[], None] = lambda: None
    ) -> None:
        self._events = events
        self._arrivals = arrivals
        self._log = log
        self._pulse = pulse
        self._stopped = threading.Event()

    def run(self) -> None:
        """Poll until `stop`; pause after an error, then go on."""
        while not self._stopped.is_set():
            self._pulse()
            try:
                self.once()
            except Exception as error:  # noqa: BLE001 - the next poll may succeed
                self._log.error("events_not_received", error=f"{type(error).__name__}: {error}")
                self._stopped.wait(_ERROR_PAUSE_SECONDS)

    def stop(self) -> None:
        self._stopped.set()

    def once(self) -> int:
        """Process one batch from the queue; returns how many bodies are done."""
        batch = [(event, changes) for event in self._events.receive() if (changes := self._read(event)) is not None]
        done = self._arrivals.receive_all(batch, self._log) if batch else []
        self._events.done_all(done)
        return len(done)

    def _read(self, event: "RawEvent") -> list[Change] | None:
        try:
            return decode(event.body)
        except Exception as error:  # noqa: BLE001 - one unreadable body must not block the others
            reason = str(error) if isinstance(error, UnknownEvent) else f"{type(error).__name__}: {error}"
            self._log.warning("event_refused", reason=reason)
            self._arrivals.count_refused()
            self._refuse(event, reason)
            return None

    def _refuse(self, event: "RawEvent", reason: str) -> None:
        """Move a body to the dead letters; if that fails it is redelivered until the queue's own limit drops it."""
        try:
            self._events.refuse(event.body, reason)
            self._events.done_all([event])
        except Exception as error:  # noqa: BLE001 - as above
            self._log.error("refusal_failed", error=f"{type(error).__name__}: {error}")
