"""Notices that come one by one while a look is under way, looked at together by the next."""

import threading
from dataclasses import dataclass

from handlers.arrivals import Arrivals
from handlers.events import Change
from infra.logs import Log


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
