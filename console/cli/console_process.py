"""The console beside a service: a process of its own, so that whoever watches slows no runner.

The service listens from its start; the process is started by the first caller, and again should it die. It ends when
the pipe to its standard input closes, so it outlives nobody.
"""

import contextlib
import os
import select
import subprocess
import threading
from collections.abc import Iterator
from typing import IO

from core.settings import Settings
from infra import own_code
from infra.addresses import bind, http_address
from infra.logs import Log

_END_SECONDS = 6.0
_SHORTEST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0


class ConsoleProcess:
    def __init__(self, settings: Settings, log: Log, *, level: str) -> None:
        self._log = log
        self._level = level
        self._socket = bind(settings.console_listen, "ADE_CONSOLE_LISTEN", fall_back=True)
        self.address = http_address(self._socket)
        self._read, self._write = os.pipe()
        self._child: subprocess.Popen[str] | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="console", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stopped = True
        os.write(self._write, b"x")
        self._thread.join()
        self._socket.close()
        os.close(self._read)
        os.close(self._write)

    def _run(self) -> None:
        pause = _SHORTEST_PAUSE
        while not self._stopped:
            ready, _, _ = select.select([self._socket.fileno(), self._read], [], [])
            if self._read in ready:
                return
            code = self._serve()
            if self._asked():
                return
            self._log.error("console_ended", code=code, restart_in_seconds=pause)
            select.select([self._read], [], [], pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _asked(self) -> bool:
        return self._stopped

    def _serve(self) -> int:
        """Run the process until it ends or is asked to end."""
        words = own_code.command("console", "serve", "--socket", str(self._socket.fileno()), options=["-P"])
        child = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            pass_fds=[self._socket.fileno()],
            start_new_session=True,  # Ctrl-C is ours to pass on
            env=os.environ | {"ADE_LOG_LEVEL": self._level},
        )
        assert child.stdin is not None  # noqa: S101
        assert child.stdout is not None  # noqa: S101
        forwarding = threading.Thread(target=self._pass_on, args=(child.stdout,), daemon=True)
        forwarding.start()
        ended = os.pidfd_open(child.pid)
        try:
            select.select([ended, self._read], [], [])
            child.stdin.close()
            try:
                return child.wait(_END_SECONDS if self._stopped else None)
            except subprocess.TimeoutExpired:
                child.kill()
                return child.wait()
        finally:
            os.close(ended)
            forwarding.join(_END_SECONDS)
            child.stdout.close()

    def _pass_on(self, lines: IO[str]) -> None:
        with contextlib.suppress(ValueError, OSError):
            for line in lines:
                self._log.pass_on(line)


@contextlib.contextmanager
def console_beside(settings: Settings, log: Log, *, level: str | None = None) -> Iterator[str]:
    """The console's address while the context lasts; empty where it is off."""
    if settings.console_listen == "off":
        yield ""
        return
    if not own_code.has_extra("console"):
        log.warning(
            "console_off", reason="the extra `console` is not installed", remedy=own_code.install_line("console")
        )
        yield ""
        return
    console = ConsoleProcess(settings, log, level=level or settings.log_level)
    try:
        yield console.address
    finally:
        console.close()
