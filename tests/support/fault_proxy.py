"""A proxy between real clients and a real server that fails as networks and services do, and counts what passes."""

import contextlib
import http.client
import random
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "upgrade", "proxy-connection"}


@dataclass(frozen=True)
class Saying:
    """An answer that the proxy gives by itself, for what no server at hand would say."""

    status: int
    content: bytes


Headers = list[tuple[str, str]]


@dataclass(frozen=True)
class Lie:
    """What the proxy makes of the server's true answer: its headers and its content."""

    tell: Callable[[Headers, bytes], tuple[Headers, bytes]]


@dataclass(frozen=True)
class Seen:
    """A request as it was on the wire."""

    what: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes


@dataclass
class Faults:
    """How often what goes wrong; each a share of all requests."""

    busy: float = 0.0  # answered 503 without reaching the server
    cut: float = 0.0  # connection closed without reaching the server
    lost: float = 0.0  # done by the server, answer never delivered
    seed: int = 1
    down_until: float = 0.0  # until then nothing is reached at all
    # Operation → faults of its next requests, in order; beside the above: "torn" (half of the content, then silence)
    # and "" (none).
    script: dict[str, list[str | Saying | Lie]] = field(default_factory=dict)
    seen: list[Seen] | None = None  # a list given here is filled
    counted: Counter[str] = field(default_factory=Counter)
    injected: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._lock = threading.Lock()

    def next(self, what: str, path: str, headers: dict[str, str], body: bytes) -> str | Saying | Lie:
        with self._lock:
            self.counted[what] += 1
            if self.seen is not None:
                self.seen.append(Seen(what, path, headers, body))
            draw = self._random.random()
            fault: str | Saying | Lie = ""
            if self.script.get(what):
                fault = self.script[what].pop(0)
            elif time.monotonic() < self.down_until:
                fault = "down"
            elif draw < self.busy:
                fault = "busy"
            elif draw < self.busy + self.cut:
                fault = "cut"
            elif draw < self.busy + self.cut + self.lost:
                fault = "lost"
            if fault:
                self.injected[fault if isinstance(fault, str) else "said"] += 1
            return fault

    def outage(self, seconds: float) -> None:
        self.down_until = time.monotonic() + seconds


@contextlib.contextmanager
def fault_proxy(upstream: str, faults: Faults, *, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The URL of a proxy in front of `upstream` for as long as the context lasts; https where it has a certificate."""
    where = urlsplit(upstream)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            sent = {name.lower(): value for name, value in self.headers.items()}
            fault = faults.next(self._operation(), self.path, sent, body)
            if isinstance(fault, Saying):
                return self._answer(fault.status, [("Content-Type", "text/xml")], fault.content)
            if fault in {"cut", "down"}:
                return self._hang_up()
            if fault == "busy":
                return self._answer(503, [("Content-Type", "text/xml")], _BUSY)
            server = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
            try:
                headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP}
                server.request(self.command, self.path, body=body, headers=headers)
                answer = server.getresponse()
                content = answer.read()
            finally:
                server.close()
            if fault == "lost":
                return self._hang_up()
            kept = [(k, v) for k, v in answer.getheaders() if k.lower() not in {*_HOP, "content-length"}]
            length = answer.getheader("Content-Length") if self.command == "HEAD" else None
            if isinstance(fault, Lie):
                if length is not None:  # of a HEAD; a lie about it is a header of its own
                    kept.append(("Content-Length", length))
                kept, content = fault.tell(kept, content)
                length = dict(kept).get("Content-Length")
                kept = [(k, v) for k, v in kept if k != "Content-Length"]
            if fault == "torn":
                self._answer(answer.status, kept, content[: len(content) // 2], str(len(content)))
                return self._hang_up()
            return self._answer(answer.status, kept, content, length)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass  # noqa: N815 - the base class says so

        def _operation(self) -> str:
            target = self.headers.get("X-Amz-Target", "")
            if "list-type=2" in self.path:
                return "S3 LIST"
            return (
                target.replace("AmazonSQS.", "SQS ").replace("DynamoDB_20120810.", "DynamoDB ") or f"S3 {self.command}"
            )

        def _answer(
            self, status: int, headers: list[tuple[str, str]], content: bytes, length: str | None = None
        ) -> None:
            self.send_response_only(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", length or str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def _hang_up(self) -> None:
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, *_: object) -> None:
            """Clients that are killed hang up; that is what this is for."""

    server = Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1})
    thread.start()
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


_BUSY = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
