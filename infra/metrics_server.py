"""GET /metrics of a process that has no console: a small HTTP server in a thread of its own.

It shows counts only: no tenant, no name of a file, nothing to change. Still, bind it to an address that only your
Prometheus reaches.
"""

import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from core.errors import SettingsError
from infra.meters import Meters, exposition
from infra.prometheus_text import CONTENT_TYPE

_READ_SECONDS = 5


class MetricsServer:
    def __init__(self, listen: str, meters: Meters) -> None:
        host, _, port = listen.rpartition(":")

        class Handler(BaseHTTPRequestHandler):
            timeout = _READ_SECONDS

            def do_GET(self) -> None:
                if self.path.partition("?")[0] != "/metrics":
                    self.send_error(HTTPStatus.NOT_FOUND, "only /metrics is here")
                    return
                body = "".join(f"{line}\n" for line in exposition({"": meters.snapshot()})).encode()
                self.send_response(HTTPStatus.OK)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        try:
            self._server = ThreadingHTTPServer((host.strip("[]"), int(port)), Handler)
        except OSError as error:
            raise SettingsError(
                f"ADE_METRICS_LISTEN={listen}: cannot listen there ({error.strerror}); "
                "choose a free port, another for each process of a machine"
            ) from error
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
