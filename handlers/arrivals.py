"""Change notices on their way to the intake: decoded, narrowed to our bucket, looked at together.

Notices that come one by one while a look is under way, looked at together by the next."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from core.keys import CONFIGS, INBOX
from handlers.events import Change, decode, newest
from handlers.intake import Intake, Report
from infra.logs import Log

N = TypeVar("N")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Takes bodies in; when it returns, what they tell of is in the table."""

    intake: Intake
    bucket: str
    on_report: Callable[[Report], None] = lambda _report: None

    def take(self, body: str | bytes | Mapping[str, Any]) -> int:
        """Look at what one body tells of, and say how many keys that were; raises UnknownEvent."""
        return self.look(decode(body))

    def take_all(self, notices: Sequence[tuple[N, list[Change]]], log: Log) -> list[N]:
        """Look at what several notices tell of, all together; those of them that are done with. The rest has to come
        back: one that cannot be looked at now keeps no other back."""
        if self._looked([change for _, changes in notices for change in changes], log):
            return [notice for notice, _ in notices]
        if len(notices) < 2:
            return []
        return [notice for notice, changes in notices if self._looked(changes, log)]

    def look(self, changes: Iterable[Change]) -> int:
        """Changes outside our bucket, inbox and configs are no business of ours: outputs tell of themselves too."""
        keys = [c.key for c in newest(changes) if c.bucket == self.bucket and c.key.startswith((INBOX, CONFIGS))]
        if keys:
            self.on_report(self.intake.changed(keys))
        return len(keys)

    def _looked(self, changes: list[Change], log: Log) -> bool:
        try:
            self.look(changes)
        except Exception as error:  # noqa: BLE001 - it has to come back, and the others have to be looked at
            said = f"{type(error).__name__}: {error}"
            log.error("intake_failed", error=said, changes=len(changes))  # noqa: TRY400 - our own log
            return False
        return True


@dataclass(eq=False, slots=True)
class _Notice:
    changes: list[Change]
    done: bool | None = None  # None: not looked at yet


class Gathering:
    """One look at a time: events of one drop come at once, and a look sees them whole. Whoever finds nobody at it
    looks for all that wait, so that many callers cost few looks."""

    def __init__(self, arrivals: Arrivals, log: Log) -> None:
        self._arrivals = arrivals
        self._log = log
        self._turn = threading.Condition()
        self._looking = False
        self._waiting: list[_Notice] = []

    def take(self, changes: list[Change]) -> bool:
        """Whether what the changes tell of is in the table; False: it has to be told again."""
        mine = _Notice(changes)
        with self._turn:
            self._waiting.append(mine)
            self._turn.wait_for(lambda: not self._looking or mine.done is not None)
            if mine.done is not None:
                return mine.done
            self._looking = True
            batch, self._waiting = self._waiting, []
        done: list[_Notice] = []
        try:
            done = self._arrivals.take_all([(notice, notice.changes) for notice in batch], self._log)
        finally:
            with self._turn:
                for notice in batch:
                    notice.done = notice in done
                self._looking = False
                self._turn.notify_all()
        return mine in done
