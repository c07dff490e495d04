"""Runner processes under one supervisor, which replaces those that die.

Theory of operation. The supervisor has loaded the program and nothing else: it opens no file of the data folder, no
connection and no thread, so it may fork. Each fork opens what it needs and is a runner like any other, with its own
name, locks, leases and boxes. When one dies by a signal or a bug, the supervisor forks the next, which loads nothing
and so takes jobs again at once, and which puts the dead one's jobs back in the queue, as each runner does at its
start. One that fails in another way (wrong settings, an outage at its start) ends all, since another fork would fail
like it. Runners are in process groups of their own, so a terminal's Ctrl-C reaches the supervisor alone, which hands
it on as SIGTERM; and the kernel kills them should the supervisor be killed.
"""

import contextlib
import gc
import math
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from console.cli.guard import Exit
from console.cli.signals import Signals
from infra.logs import Log
from runner.sandbox.box.kernel import die_with_parent

_SHORT_LIFE_SECONDS = 1.0  # who dies sooner waits before it is replaced, twice as long each time
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.1, 30.0


@dataclass
class _Place:
    """The place of one runner: who runs there, or when the next one starts."""

    pid: int = 0  # 0: nobody
    started: float = 0.0
    start_at: float = 0.0  # infinity: never
    pause: float = field(default=_SHORTEST_PAUSE)


class Supervisor:
    def __init__(self, work: Callable[[], int], log: Log, *, processes: int) -> None:
        """`work` is what each fork runs; it returns an exit code."""
        self._work = work
        self._log = log
        self._places = [_Place() for _ in range(processes)]
        self._code: int = Exit.OK
        self._ending = False

    def run(self) -> int:
        """Keep the runners alive until a signal, or until all have ended or one failed; returns the exit code."""
        gc.collect()
        gc.freeze()  # what is loaded stays, and no fork copies it to mark it
        with Signals() as signals:
            before = signal.signal(signal.SIGCHLD, lambda _number, _frame: None)  # its byte ends `wait`
            try:
                self._replace_the_dead(signals)
            finally:
                signal.signal(signal.SIGCHLD, before)
                self._signal_all(signal.SIGKILL)
        return self._code

    def _replace_the_dead(self, signals: Signals) -> None:
        while True:
            self._bury()
            if (signals.asked or self._code) and not self._ending:
                self._ending = True
                self._signal_all(signal.SIGTERM)
            if not self._ending:
                self._fill()
            if not any(place.pid or (place.start_at < math.inf and not self._ending) for place in self._places):
                return
            signals.wait(self._seconds())

    def _fill(self) -> None:
        now = time.monotonic()
        for place in self._places:
            if not place.pid and place.start_at <= now:
                place.pid, place.started = self._fork(), now

    def _fork(self) -> int:
        supervisor = os.getpid()
        pid = os.fork()
        if pid == 0:
            code: int = Exit.INTERNAL
            try:
                os.setpgid(0, 0)
                if sys.platform == "linux":
                    die_with_parent(supervisor)
                for number in (signal.SIGCHLD, signal.SIGTERM):
                    signal.signal(number, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                signal.set_wakeup_fd(-1)
                code = self._work()
            except BaseException:  # noqa: BLE001 - a fork must not go on in the supervisor's code
                traceback.print_exc()
            finally:
                os._exit(code)
        return pid

    def _bury(self) -> None:
        """Note who died, and when the next one starts in its place."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            for place in self._places:
                if place.pid == pid:
                    place.pid = 0
                    self._note(place, os.waitstatus_to_exitcode(status))

    def _note(self, place: _Place, code: int) -> None:
        """Decide what follows the end of a runner; `code` is negative for a signal."""
        if self._ending or (code >= 0 and code != Exit.INTERNAL):
            self._code = max(self._code, code)
            place.start_at = math.inf
            return
        now = time.monotonic()
        if now - place.started >= _SHORT_LIFE_SECONDS:
            place.pause, wait = _SHORTEST_PAUSE, 0.0
        else:
            wait, place.pause = place.pause, min(2 * place.pause, _LONGEST_PAUSE)
        place.start_at = now + wait
        self._log.error("runner_replaced", code=code, restart_in_seconds=round(wait, 3))

    def _signal_all(self, number: int) -> None:
        for place in self._places:
            if place.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(place.pid, number)

    def _seconds(self) -> float | None:
        """Until the next runner is due to start; None: only a signal changes anything."""
        due = min((place.start_at for place in self._places if not place.pid), default=math.inf)
        return None if self._ending or due == math.inf else max(0.0, due - time.monotonic())
