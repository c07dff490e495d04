"""In: HTTP notifications from MinIO and SeaweedFS. Out: intake scans; the answer is 2xx only after the table write.

POST /events takes any body that handlers/events.py decodes. 204: recorded (or nothing to record: MinIO first sends an
empty body to test the endpoint). 400: unknown event. 401: missing or wrong token. 413: too large. 503 with Retry-After:
try again. GET /healthz answers 204 without a token.

Theory of operation. One thread reads all requests, so a slow client costs a connection and nothing else. Complete
requests with a valid token go to a few threads that scan the bucket. A request must arrive within ten seconds; when
there are too many connections, the one that has been sending longest is closed.
"""

import asyncio
import contextlib
import hmac
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus

from core.errors import SettingsError
from handlers.events import UnknownEvent, decode
from handlers.sources.arrivals import Arrivals, Batcher
from infra.addresses import bind, http_address
from infra.logs import Log

_LARGEST_BODY = 1024 * 1024
_LARGEST_HEAD = 16 * 1024
_READ_SECONDS = 10
_RETRY_SECONDS = 5
_SCAN_THREADS = 16  # requests that scan or wait for a scan
_CONNECTIONS = 200


class _Refused(Exception):
    """A request that is answered without a scan."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


@dataclass(frozen=True, slots=True)
class _Head:
    method: str
    path: str
    headers: dict[str, str]  # names in lower case


class Webhook:
    """An HTTP server: one thread reads, a few scan. `serve` returns after `stop`."""

    def __init__(self, listen: str, token: str, arrivals: Arrivals, log: Log) -> None:
        if not token:
            raise SettingsError("ADE_WEBHOOK_TOKEN is not set; set a secret, or anyone could announce drops")
        self._token = token
        self._arrivals = arrivals
        self._batcher = Batcher(arrivals, log)
        self._log = log
        self._socket = bind(listen, "ADE_WEBHOOK_LISTEN", backlog=_CONNECTIONS)
        self._pool = ThreadPoolExecutor(_SCAN_THREADS, thread_name_prefix="webhook")
        self._reading: dict[asyncio.Task[None], None] = {}  # oldest first
        self._open: set[asyncio.StreamWriter] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._entered, self._begun, self._ended = threading.Event(), threading.Event(), threading.Event()

    @property
    def address(self) -> str:
        return http_address(self._socket)

    def serve(self) -> None:
        self._entered.set()
        try:
            asyncio.run(self._serve())
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._ended.set()

    def stop(self) -> None:
        """Accept no more requests; those in progress are answered."""
        if self._entered.is_set():
            self._begun.wait(_READ_SECONDS)
        if self._loop is not None and self._stopping is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._stopping.set)
            self._ended.wait(_READ_SECONDS)
        self._socket.close()

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, sock=self._socket, limit=_LARGEST_HEAD)
        self._begun.set()
        async with server:
            await self._stopping.wait()
            # A connection that was just accepted takes four rounds of the loop to reach `_connected`. Python 3.11
            # leaves it open if the server closes before that.
            self._loop.remove_reader(self._socket)
            for _ in range(10):
                await asyncio.sleep(0)
            server.close()
            for task in list(self._reading):
                task.cancel()
            await asyncio.sleep(0)
            for writer in list(self._open):  # also where the client does not read: no socket outlives the server
                writer.transport.abort()
            await asyncio.sleep(0)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            return
        while len(self._reading) >= _CONNECTIONS:
            oldest = next(iter(self._reading))
            del self._reading[oldest]
            oldest.cancel()
        self._reading[task] = None
        self._open.add(writer)
        try:
            status = await self._answered(reader, writer, task)
            await self._write(writer, status)
        except (OSError, EOFError, TimeoutError, asyncio.CancelledError):
            pass  # gone, too slow, or closed for a newer connection: the client retries
        except Exception as error:  # noqa: BLE001 - one client's error must not affect others
            self._log.error("request_failed", error=f"{type(error).__name__}: {error}")
        finally:
            self._reading.pop(task, None)
            writer.close()
            if not writer.transport.get_write_buffer_size():
                self._open.discard(writer)

    async def _answered(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, task: "asyncio.Task[None]"
    ) -> HTTPStatus:
        try:
            async with asyncio.timeout(_READ_SECONDS):
                body = await self._read(reader, writer)
        except _Refused as refused:
            return refused.status
        self._reading.pop(task, None)  # complete: from here on only the scan can take time
        if not body:
            return HTTPStatus.NO_CONTENT
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._scan, body)

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        """The body of a valid request; raises _Refused with the answer for any other."""
        try:
            head = _parsed(await reader.readuntil(b"\r\n\r\n"))
        except (asyncio.LimitOverrunError, ValueError):
            raise _Refused(HTTPStatus.BAD_REQUEST) from None
        here = head.path.rstrip("/") == "/events"
        if head.method == "GET":
            raise _Refused(HTTPStatus.NO_CONTENT if head.path == "/healthz" else HTTPStatus.NOT_FOUND)
        if head.method == "HEAD":  # MinIO tests its target this way
            raise _Refused(HTTPStatus.NO_CONTENT if here else HTTPStatus.NOT_FOUND)
        if head.method != "POST":
            raise _Refused(HTTPStatus.NOT_IMPLEMENTED)
        if not here:
            raise _Refused(HTTPStatus.NOT_FOUND)
        if not self._has_token(head):
            raise _Refused(HTTPStatus.UNAUTHORIZED)
        length = head.headers.get("content-length", "")
        if not (length.isascii() and length.isdigit()):
            raise _Refused(HTTPStatus.LENGTH_REQUIRED)
        if int(length) > _LARGEST_BODY:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        if head.headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return await reader.readexactly(int(length))

    def _scan(self, body: bytes) -> HTTPStatus:
        try:
            changes = decode(body)
        except UnknownEvent as error:
            self._log.warning("event_refused", reason=str(error))
            self._arrivals.count_refused()
            return HTTPStatus.BAD_REQUEST
        return HTTPStatus.NO_CONTENT if self._batcher.receive(changes) else HTTPStatus.SERVICE_UNAVAILABLE

    def _has_token(self, head: _Head) -> bool:
        # MinIO puts a `Bearer` of its own before what it was given, which may begin with one.
        token = head.headers.get("authorization", "").removeprefix("Bearer ").strip().removeprefix("Bearer ").strip()
        return hmac.compare_digest(token.encode(), self._token.encode())

    async def _write(self, writer: asyncio.StreamWriter, status: HTTPStatus) -> None:
        retry = f"Retry-After: {_RETRY_SECONDS}\r\n" if status is HTTPStatus.SERVICE_UNAVAILABLE else ""
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\nServer: ade-drop\r\nConnection: close\r\n{retry}"
        writer.write(f"{head}Content-Length: 0\r\n\r\n".encode())
        async with asyncio.timeout(_READ_SECONDS):
            await writer.drain()


def _parsed(head: bytes) -> _Head:
    """Raises ValueError for anything but HTTP/1."""
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, path, version = first.split(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError(version)
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise ValueError(line)
        headers[name.strip().lower()] = value.strip()
    return _Head(method, path, headers)
