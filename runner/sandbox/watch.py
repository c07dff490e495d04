"""Watches one box from outside: channel, log, clock and the runner's wish to end it."""

import json
import os
import select
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from core.ports import BoxLimits
from core.verdicts import Verdict
from runner.sandbox.box.limits import MIB, TASKS, THREADS
from runner.sandbox.channel import Channel, ChannelViolation
from runner.sandbox.logs import CappedLog

LOOK = 0.1  # how often a box is looked at for what the kernel may not hold it to
TICK = 0.05  # how often the runner is asked whether the box shall end
GRACE = 10.0  # how long a keeper may take to end a tree it was told to end
SLACK_MB = 8  # file systems keep room for themselves
_CHUNK = 64 * 1024


@dataclass(slots=True)
class Watched:
    """What came out of it."""

    report: dict[str, Any] | None = None  # the keeper's closing words; None: the keeper was lost
    end: dict[str, Any] | None = None  # the engine's closing event, checked for form
    killed_as: Verdict | None = None
    violation: str | None = None


class Excess:
    """What a box has taken of the host that not every level's limits count: threads, and disk behind a file's end."""

    def __init__(self, pid: int | None, outputs: Sequence[int], limits: BoxLimits) -> None:
        self._status = None if pid is None else f"/proc/{pid}/status"
        self._outputs = outputs
        self._threads = TASKS + THREADS + limits.processes
        self._blocks = (limits.file_mb + SLACK_MB) * MIB // 512
        self._next = time.monotonic() + LOOK

    def seen(self, now: float) -> Verdict | None:
        """Looked at now and then: what is too much."""
        if now < self._next:
            return None
        self._next = now + LOOK
        if any(os.fstat(fd).st_blocks > self._blocks for fd in self._outputs):
            return Verdict.FILE_SIZE
        return Verdict.PROCESSES if self._count() > self._threads else None

    def _count(self) -> int:
        if self._status is None:
            return 0
        try:
            with open(self._status, "rb") as status:  # noqa: PTH123 - often
                return int(status.read().partition(b"\nThreads:")[2].split(None, 1)[0])
        except (OSError, IndexError, ValueError):
            return 0


class Watch:
    """One pass over a running box. Owns the reading ends it is given and closes them."""

    def __init__(
        self,
        *,
        control: socket.socket,
        channel_fd: int,
        log: tuple[int, CappedLog] | None = None,
        on_event: Callable[[dict[str, Any]], None] = lambda _: None,
        excess: Excess,
    ) -> None:
        self._excess = excess
        self.channel = Channel()
        self._control = control
        self._fds: dict[int, Callable[[bytes], None]] = {channel_fd: self._channel_data}
        self._log = None
        if log is not None:
            log_fd, self._log = log
            self._fds[log_fd] = self._log.write
        self._on_event = on_event
        self._result = Watched()
        self._said = b""
        for fd in self._fds:
            os.set_blocking(fd, False)
        control.setblocking(False)

    def until_over(self, *, deadline: float, killed: Callable[[], Verdict | None], kill: Callable[[], None]) -> Watched:
        """Follow the box to its end; `kill` is called once, when it has to end sooner."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        for fd in self._fds:
            poll.register(fd, select.POLLIN)
        give_up: float | None = None
        try:
            while not self._over:
                now = time.monotonic()
                if give_up is None:
                    why = self._reason_to_kill(now, deadline, killed)
                    if why is not None:
                        self._result.killed_as = why
                        give_up = now + GRACE
                        kill()
                elif now > give_up:
                    break
                left = deadline - now if give_up is None else give_up - now
                for fd, _ in poll.poll(max(1.0, min(TICK, left) * 1000)):
                    if not self._take(fd):
                        poll.unregister(fd)
            self._drain()
        finally:
            for fd in self._fds:
                os.close(fd)
        return self._result

    @property
    def _over(self) -> bool:
        return self._result.report is not None or self._control.fileno() < 0

    def _reason_to_kill(self, now: float, deadline: float, killed: Callable[[], Verdict | None]) -> Verdict | None:
        if self._result.violation is not None:
            return Verdict.BAD_OUTPUT
        if self._log is not None and self._log.flooded:
            return Verdict.FILE_SIZE
        why = killed()
        if why is not None:
            return why
        return Verdict.WALL_CLOCK if now >= deadline else self._excess.seen(now)

    def _take(self, fd: int) -> bool:
        """Read once from a ready descriptor; whether more may come."""
        if fd not in self._fds:
            return self._control_data()
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return True
        if data:
            self._fds[fd](data)
        return bool(data)

    def _control_data(self) -> bool:
        try:
            data = self._control.recv(_CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            data = b""
        if not data:
            self._control.close()
            return False
        self._said += data
        if b"\n" in self._said:
            self._result.report = json.loads(self._said.split(b"\n", 1)[0])
        return True

    def _channel_data(self, data: bytes) -> None:
        if self._result.violation is not None:
            return
        try:
            for event in self.channel.feed(data):
                if event["event"] != "end":
                    self._on_event(event)
        except ChannelViolation as violation:
            self._result.violation = str(violation)

    def _drain(self) -> None:
        """The box is dead: what it left in the pipes still counts."""
        for fd, take in self._fds.items():
            try:
                while data := os.read(fd, _CHUNK):
                    take(data)
            except BlockingIOError:
                continue
        try:
            self.channel.close()
        except ChannelViolation as violation:
            self._result.violation = self._result.violation or str(violation)
        self._result.end = self.channel.end
