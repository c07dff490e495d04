"""The HTTP server: one event loop over a socket that is open already, ended by `stop`."""

import asyncio
import contextlib
import socket
from typing import Any

import uvicorn

from console.api.clients import ACCEPTED_AT_ONCE, CONNECTIONS, LARGEST_HEAD, BoundedProtocol, Clients, allow_files
from console.web.site import console_app
from infra.logs import Log
from infra.wiring import Stack

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
            http=type("Protocol", (BoundedProtocol,), {"all": Clients(allow_files())}),
            ws="none",
            lifespan="on",
            proxy_headers=False,  # whom we trust, console/api/guarding.py knows
            server_header=False,
            date_header=True,
            backlog=ACCEPTED_AT_ONCE,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=_END_SECONDS,
            h11_max_incomplete_event_size=LARGEST_HEAD,
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

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in sockets or []:
            listening.listen(CONNECTIONS)  # so many may wait; asyncio has set it to those that it accepts at once

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # What was just accepted gets its connection first: Python 3.11 leaves it open if the server closes before that.
        for listening in sockets or []:
            asyncio.get_running_loop().remove_reader(listening)
        for _ in range(10):
            await asyncio.sleep(0)
        await super().shutdown(sockets)
