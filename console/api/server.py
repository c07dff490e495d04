"""The HTTP server: one event loop over a socket that is open already, ended by `stop`."""

import asyncio
import contextlib
import socket
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from console.api.listening import CONNECTIONS
from console.web.site import console_app
from infra.logs import Log
from infra.wiring import Stack

_LARGEST_HEAD = 32 * 1024
_HEAD_SECONDS = 10.0
_IDLE_SECONDS = 30
_END_SECONDS = 3


class ConsoleServer:
    """Serves until `stop`, which may be called from any thread or signal handler."""

    def __init__(self, stack: Stack, log: Log, listening: socket.socket) -> None:
        self._socket = listening
        self.app = console_app(stack, log)
        config = uvicorn.Config(
            self.app,
            log_config=None,
            access_log=False,
            http=_PatientlessProtocol,
            ws="none",
            lifespan="on",
            proxy_headers=False,  # whom we trust, console/api/guarding.py knows
            server_header=False,
            date_header=True,
            limit_concurrency=CONNECTIONS,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=_END_SECONDS,
            h11_max_incomplete_event_size=_LARGEST_HEAD,
        )
        self._server = _QuietServer(config)

    def run(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))

    def stop(self) -> None:
        # Streams never end by themselves.
        self.app.state.context.followers.end()
        self._server.should_exit = True


class _QuietServer(uvicorn.Server):
    """Leaves the signals to whoever runs it."""

    def capture_signals(self) -> Any:
        return contextlib.nullcontext()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # What was just accepted gets its connection first: Python 3.11 leaves it open if the server closes before that.
        for listening in sockets or []:
            asyncio.get_running_loop().remove_reader(listening)
        for _ in range(10):
            await asyncio.sleep(0)
        await super().shutdown(sockets)


class _PatientlessProtocol(H11Protocol):
    """A client that connects, or begins a request, and does not say what it wants is let go."""

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)  # which ends the wait for the next request at its first byte
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lose_no_patience()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        if not self._is_waiting():
            self._lose_no_patience()
        elif self._patience is None:
            self._patience = self.loop.call_later(_HEAD_SECONDS, self._let_go)

    def _is_waiting(self) -> bool:
        cycle: Any = self.cycle
        return cycle is None or bool(cycle.response_complete)

    def _lose_no_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _let_go(self) -> None:
        self._patience = None
        if self._is_waiting():
            self.transport.close()
