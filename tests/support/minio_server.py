"""The few answers of a MinIO server that notifications need, over real HTTP: its own header, admin info, and XML.

The real one of minio_gateway.py has no admin API. What it answers follows MinIO's published API: `sqsARN` of
the admin information, and S3's notification document, which is kept as it was put.
"""

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

EMPTY = '<NotificationConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"></NotificationConfiguration>'


class MinioServer:
    def __init__(self) -> None:
        self.endpoint = ""
        self.arns = ["arn:minio:sqs::ADE:webhook"]
        self.buckets: set[str] = set()
        self.notification = EMPTY
        self.requests: list[tuple[str, str]] = []
        self.admin_status = 200


@contextlib.contextmanager
def minio_server() -> Iterator[MinioServer]:
    playing = MinioServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def version_string(self) -> str:
            return "MinIO"

        def do_HEAD(self) -> None:
            self._answer(200 if self._bucket() in playing.buckets else 404)

        def do_GET(self) -> None:
            if self.path == "/minio/admin/v3/info":
                told = {"mode": "online", "sqsARN": playing.arns, "servers": []}
                self._answer(playing.admin_status, json.dumps(told).encode())
            elif "notification" in self.path:
                self._answer(200, playing.notification.encode(), "application/xml")
            else:
                self._answer(404)

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if "notification" in self.path:
                playing.notification = body.decode()
            elif "?" not in self.path and "/work/" not in self.path:
                playing.buckets.add(self._bucket())
            self._answer(200)

        def _bucket(self) -> str:
            return self.path.split("?")[0].strip("/")

        def _answer(self, status: int, body: bytes = b"", kind: str = "application/json") -> None:
            playing.requests.append((self.command, self.path))
            assert self.headers["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=ade-local/"), self.path
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    playing.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield playing
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
