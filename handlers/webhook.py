"""The webhook for MinIO and SeaweedFS: one endpoint, a token, and 2xx only after the table write.

POST /events takes any body that handlers/events.py knows. 204: it is in the table (or tells of nothing: MinIO first
sends an empty body to see whether somebody listens). 400: no event that we know. 401: no token or the wrong one. 413:
too large. 503 with Retry-After: try again. GET /healthz answers 204 without a token.
"""

import hmac
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from core.errors import SettingsError
from handlers.arrivals import Arrivals
from handlers.events import UnknownEvent, decode
from handlers.gathering import Gathering
from infra.logs import Log

_LARGEST_BODY = 1024 * 1024
_READ_SECONDS = 10
_RETRY_SECONDS = 5


class Webhook:
    """An HTTP server in threads. `serve` returns after `stop`."""

    def __init__(self, listen: str, token: str, arrivals: Arrivals, log: Log) -> None:
        if not token:
            raise SettingsError("ADE_WEBHOOK_TOKEN is not set: a webhook without a secret would take drops from anyone")
        host, _, port = listen.rpartition(":")

        class Handler(_Handler):
            pass

        Handler.token, Handler.gathering, Handler.log = token, Gathering(arrivals, log), log
        self._server = ThreadingHTTPServer((host, int(port)), Handler)
        self._server.daemon_threads = True

    @property
    def address(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def serve(self) -> None:
        self._server.serve_forever(poll_interval=0.5)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    token: str
    gathering: Gathering
    log: Log
    timeout = _READ_SECONDS
    server_version = "ade-drop"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer(HTTPStatus.NO_CONTENT if self.path == "/healthz" else HTTPStatus.NOT_FOUND)

    def do_HEAD(self) -> None:
        """MinIO asks so whether its target is there."""
        self._answer(HTTPStatus.NO_CONTENT if self._listens() else HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        self._answer(self._taken())

    def _taken(self) -> HTTPStatus:
        if not self._listens():
            return HTTPStatus.NOT_FOUND
        if not self._knows_token():
            return HTTPStatus.UNAUTHORIZED
        length = self.headers.get("Content-Length", "")
        if not length.isdigit():
            return HTTPStatus.LENGTH_REQUIRED
        if int(length) > _LARGEST_BODY:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        body = self.rfile.read(int(length))
        if not body:
            return HTTPStatus.NO_CONTENT
        try:
            changes = decode(body)
        except UnknownEvent as error:
            self.log.warning("event_refused", reason=str(error))
            return HTTPStatus.BAD_REQUEST
        return HTTPStatus.NO_CONTENT if self.gathering.take(changes) else HTTPStatus.SERVICE_UNAVAILABLE

    def _listens(self) -> bool:
        return self.path.rstrip("/") == "/events"

    def _knows_token(self) -> bool:
        given = self.headers.get("Authorization", "").removeprefix("Bearer ").strip()
        return hmac.compare_digest(given.encode(), self.token.encode())

    def _answer(self, status: HTTPStatus) -> None:
        self.send_response(status)
        if status is HTTPStatus.SERVICE_UNAVAILABLE:
            self.send_header("Retry-After", str(_RETRY_SECONDS))
        if status is not HTTPStatus.NO_CONTENT:
            # What was not read would be taken for the next request.
            self.send_header("Connection", "close")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Requests are told by what they change, not by line."""
