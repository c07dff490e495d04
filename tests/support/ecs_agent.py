"""The ECS agent's endpoint for task protection, played by a small HTTP server: what it was asked, and what it answers."""

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class EcsAgent:
    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.answer: tuple[int, bytes] = (200, b'{"protection": {"ProtectionEnabled": true}}')
        self.changed = threading.Condition()
        self.uri = ""

    @property
    def wishes(self) -> list[bool]:
        """Protect or release, in the order that they came."""
        return [body["ProtectionEnabled"] for body in self.asked]

    def wait_for(self, wishes: list[bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.wishes == wishes, timeout=30), self.wishes


@contextlib.contextmanager
def ecs_agent() -> Iterator[EcsAgent]:
    agent = EcsAgent()

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with agent.changed:
                agent.asked.append(body)
                agent.paths.append(self.path)
                agent.changed.notify_all()
            status, told = agent.answer
            self.send_response(status)
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    agent.uri = f"http://127.0.0.1:{server.server_address[1]}/api/task"
    try:
        yield agent
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
