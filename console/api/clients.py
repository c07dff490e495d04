"""Connected clients: how many there may be, and who goes when there are too many.

Somebody who opens connections and says nothing must not lock others out. So a full server takes a new connection and
closes one whose client owes it a request, or has sent one without proof of who they are: the one that has waited
longest, of the address that has most of them. A request of a known caller at work is never closed for another.

A client that does not read its answer is cut off, so that nobody holds connections, files and streams that way. How
much it has read, its acknowledgements tell: the system takes megabytes for it at once and then nothing for minutes.
"""

import asyncio
import contextlib
import fcntl
import resource
import sys
import termios
from http import HTTPStatus
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from console.api.guarding import SECURITY_HEADERS
from console.api.problems import ProblemError, respond

CONNECTIONS = 1000
LARGEST_HEAD = 32 * 1024
HEAD_SECONDS = 10.0
READER_SECONDS = 120.0  # how often an answer that waits for its reader is checked; windows open in large steps
_SLOWEST = 1024  # bytes a second that a client has to read at
ACCEPTED_AT_ONCE = 32  # more would come before any of them could make room
_READ_AT_ONCE = 64 * 1024  # bytes; whatever nobody asks for yet stays in the system's buffers
_OTHER_FILES = 300  # that the process needs besides connections, and those that come before others are closed


class Clients:
    """Those of one server. Belongs to its event loop."""

    def __init__(self, most: int = CONNECTIONS) -> None:
        self._most = most
        self._open = 0
        self._waiting: dict[str, dict[BoundedProtocol, None]] = {}  # by address; who waits longest comes first

    def opened(self, one: "BoundedProtocol") -> None:
        self._open += 1
        self.waits(one)
        if self._open > self._most:
            crowd = max(self._waiting.values(), key=len)
            next(iter(crowd)).let_go()

    def waits(self, one: "BoundedProtocol") -> None:
        """Its client owes it a request; from now on, it has waited least."""
        self.works(one)
        self._waiting.setdefault(one.address, {})[one] = None

    def works(self, one: "BoundedProtocol") -> None:
        crowd = self._waiting.get(one.address, {})
        crowd.pop(one, None)
        if not crowd:
            self._waiting.pop(one.address, None)

    def closed(self, one: "BoundedProtocol") -> None:
        self._open -= 1
        self.works(one)


def allow_files() -> int:
    """Raise the limit of open files as far as the system lets us; how many connections fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return CONNECTIONS if soft == resource.RLIM_INFINITY else min(CONNECTIONS, max(soft - _OTHER_FILES, soft // 3))


class BoundedProtocol(H11Protocol):
    """A client that connects, or begins a request, and does not say what it wants, or does not read, is let go."""

    all: Clients  # set by the server
    address = ""
    _known = False  # who sent the request at work
    _patience: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        transport.max_size = _READ_AT_ONCE
        transport.set_write_buffer_limits(high=0)  # so that we learn of whatever the system does not take at once
        self.address = self.client[0] if self.client else ""
        self._await_head()
        self.all.opened(self)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)  # which ends the wait for the next request at its first byte
        self._await_head()

    def handle_events(self) -> None:
        super().handle_events()
        if not self._is_waiting():  # the application runs later than this
            cast("dict[str, object]", self.scope)["ade.known"] = self._become_known

    def on_response_complete(self) -> None:
        self._known = False
        super().on_response_complete()
        if not self.transport.is_closing():
            self.all.waits(self)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reader(None)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_awaiting_reader()

    def connection_lost(self, exc: Exception | None) -> None:
        self._bound_silence()
        self._stop_awaiting_reader()
        self.all.closed(self)
        super().connection_lost(exc)

    def let_go(self) -> None:
        self._bound_silence()
        if self._is_waiting():
            self.all.works(self)  # nobody lets it go twice
            self.transport.close()
        elif not self._known:
            self.all.works(self)
            self.transport.abort()  # it may not read what we would still say

    def send_400_response(self, msg: str) -> None:
        """What cannot be read as a request is answered as every other mistake is."""
        del msg
        status, detail = HTTPStatus.BAD_REQUEST, "this is not a request of HTTP/1.1; check what the client sends"
        if getattr(sys.exc_info()[1], "error_status_hint", 400) == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
            status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            detail = f"the head of the request is over {LARGEST_HEAD} bytes; send fewer or shorter headers"
        made = respond(ProblemError(status, detail))
        headers = [(b"connection", b"close"), *made.raw_headers]
        headers += [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
        events = (
            h11.Response(status_code=int(status), headers=headers, reason=status.phrase.encode()),
            h11.Data(data=bytes(made.body)),
            h11.EndOfMessage(),
        )
        with contextlib.suppress(h11.LocalProtocolError):  # an answer has begun
            for event in events:
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _await_head(self) -> None:
        if not self._is_waiting():
            self._bound_silence()
        elif self._patience is None:
            self._patience = self.loop.call_later(HEAD_SECONDS, self.let_go)

    def _become_known(self) -> None:
        self._known = True
        self.all.works(self)

    def _await_reader(self, before: int | None) -> None:
        """`before`: how many bytes were left at the last check. While we keep any of them nothing is added."""
        left = self.transport.get_write_buffer_size() + self._unacknowledged()
        if before is not None and left > before - READER_SECONDS * _SLOWEST:
            self.transport.abort()
        else:
            self._unread = self.loop.call_later(READER_SECONDS, self._await_reader, left)

    def _unacknowledged(self) -> int:
        """Bytes that the system has taken and the client's has not."""
        try:
            raw = fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
        except OSError:  # closed by now
            return 0
        return int.from_bytes(raw, sys.byteorder)

    def _stop_awaiting_reader(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _is_waiting(self) -> bool:
        cycle: Any = self.cycle
        return cycle is None or bool(cycle.response_complete)

    def _bound_silence(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
