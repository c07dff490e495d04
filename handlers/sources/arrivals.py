"""In: change notifications from any source. Out: one intake scan per batch, and which notifications are recorded."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from core.keys import CONFIGS, INBOX
from handlers.events import Change, decode, newest
from handlers.intake import Intake
from handlers.planning import Report
from infra.logs import Log

N = TypeVar("N")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Decodes notification bodies and scans the keys they name; a call returns after the table write."""

    intake: Intake
    bucket: str
    on_report: Callable[[Report], None] = lambda _report: None

    def receive(self, body: str | bytes | Mapping[str, Any]) -> int:
        """Scan the keys of one body and return how many there were; raises UnknownEvent."""
        return self.scan(decode(body))

    def receive_all(self, notices: Sequence[tuple[N, list[Change]]], log: Log) -> list[N]:
        """Scan several notifications together and return those that are recorded; the source must redeliver the rest.

        If the joint scan fails, each notification is scanned alone, so a bad one does not block the others.
        """
        if self._try_scan([change for _, changes in notices for change in changes], log):
            return [notice for notice, _ in notices]
        if len(notices) < 2:
            return []
        return [notice for notice, changes in notices if self._try_scan(changes, log)]

    def count_refused(self) -> None:
        """An event could not be decoded."""
        self.intake.telemetry.meters.add("ade.events.refused")

    def scan(self, changes: Iterable[Change]) -> int:
        """Ignores changes outside this bucket's inbox/ and configs/: writing outputs triggers notifications too."""
        keys = [c.key for c in newest(changes) if c.bucket == self.bucket and c.key.startswith((INBOX, CONFIGS))]
        if keys:
            self.on_report(self.intake.changed(keys))
        return len(keys)

    def _try_scan(self, changes: list[Change], log: Log) -> bool:
        try:
            self.scan(changes)
        except Exception as error:  # noqa: BLE001 - the source redelivers it; the other notifications go on
            what = f"{type(error).__name__}: {error}"
            log.error("intake_failed", error=what, changes=len(changes))  # noqa: TRY400 - our own log
            return False
        return True


@dataclass(eq=False, slots=True)
class _Notice:
    changes: list[Change]
    done: bool | None = None  # None: not scanned yet


class Batcher:
    """Batches notifications that arrive during a scan.

    Only one thread scans at a time. The first caller to find it free scans for everyone who is waiting, so many
    callers cost few scans.
    """

    def __init__(self, arrivals: Arrivals, log: Log) -> None:
        self._arrivals = arrivals
        self._log = log
        self._turn = threading.Condition()
        self._scanning = False
        self._waiting: list[_Notice] = []

    def receive(self, changes: list[Change]) -> bool:
        """Whether the changes are recorded in the table; False: the sender must send them again."""
        mine = _Notice(changes)
        with self._turn:
            self._waiting.append(mine)
            self._turn.wait_for(lambda: not self._scanning or mine.done is not None)
            if mine.done is not None:
                return mine.done
            self._scanning = True
            batch, self._waiting = self._waiting, []
        done: list[_Notice] = []
        try:
            done = self._arrivals.receive_all([(notice, notice.changes) for notice in batch], self._log)
        finally:
            with self._turn:
                for notice in batch:
                    notice.done = notice in done
                self._scanning = False
                self._turn.notify_all()
        return mine in done
