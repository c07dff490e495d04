"""What the suites get to work with."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import pytest

from infra.clocks import HandClock

P = TypeVar("P")


@dataclass(frozen=True, kw_only=True)
class Rig(Generic[P]):
    """An adapter under test, and what the suites must know about the service behind it."""

    port: P
    clock: HandClock
    another: Callable[[], AbstractContextManager[P]]  # one more client of the same data; can be pickled
    remote: bool = False  # clients meet only in a server, so processes race no differently from threads
    isolates: bool = True  # False: moto undoes a failed transaction by putting all tables back as they were before
    moves_time: bool = True  # False: the server's own clock decides, so suites ask for short times and wait
    keeps_metadata: bool = True
    orders: bool = True  # a queue that serves priorities and tenants in turn, where others only lean that way

    def race_in(self, kind: str) -> str:
        if self.remote and kind == "processes":
            pytest.skip("clients of a server race no differently in processes of their own")
        return kind

    def later(self, seconds: float) -> None:
        """Let time pass where it can be moved; elsewhere the next `receive` has to wait for it."""
        self.clock.move(seconds)


Factory = Callable[[Path, HandClock], AbstractContextManager[Rig[P]]]
