"""A pooler that lends server connections by the transaction, as pgbouncer does in that mode; without a password.

Each transaction gets the connection that was idle longest, so that whatever a session remembers is soon missed: a
prepared statement, a setting, a LISTEN. As with pgbouncer, a client is told a process number that is not the server's.
"""

import contextlib
import queue
import secrets
import socket
import struct
import threading
from collections.abc import Iterator

_NO_TLS = {80877103, 80877104}  # requests for TLS and for GSS encryption
_ENDS = b"QS"  # of a client's batch: a simple query, and Sync


class TinyPooler:
    def __init__(self, host: str, port: int, connections: int = 2) -> None:
        self._server = (host, port)
        self._spare = connections
        self._idle: queue.Queue[socket.socket] = queue.Queue()
        self._lock = threading.Lock()
        self._hello = b""  # what the server said of itself
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        while not self._idle.empty():
            self._idle.get().close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.closing(client), contextlib.suppress(OSError, EOFError):
            while True:
                (size,) = struct.unpack("!i", _exactly(client, 4))
                body = _exactly(client, size - 4)
                if struct.unpack("!i", body[:4])[0] not in _NO_TLS:
                    break
                client.sendall(b"N")
            self._connect(struct.pack("!i", size) + body)
            key = b"K" + struct.pack("!iii", 12, secrets.randbelow(1 << 20) + (1 << 24), 7)
            client.sendall(b"R" + struct.pack("!ii", 8, 0) + self._hello + key + b"Z" + struct.pack("!i", 5) + b"I")
            while True:
                self._transaction(client)

    def _connect(self, startup: bytes) -> None:
        with self._lock:
            while self._spare:
                self._spare -= 1
                server = socket.create_connection(self._server)
                server.sendall(startup)
                hello = b""
                while (message := _message(server))[:1] != b"Z":
                    hello += message if message[:1] == b"S" else b""
                self._hello = hello
                self._idle.put(server)

    def _transaction(self, client: socket.socket) -> None:
        first = _message(client)
        if first[:1] == b"X":
            raise EOFError
        server = self._idle.get()
        try:
            message = first
            while True:
                server.sendall(message)
                if message[:1] in _ENDS:
                    while (answer := _message(server))[:1] != b"Z":
                        client.sendall(answer)
                    client.sendall(answer)
                    if answer[5:6] == b"I":
                        return
                message = _message(client)
        finally:
            self._idle.put(server)


def _message(source: socket.socket) -> bytes:
    head = _exactly(source, 5)
    return head + _exactly(source, struct.unpack("!i", head[1:])[0] - 4)


def _exactly(source: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        if not (more := source.recv(size - len(found))):
            raise EOFError
        found += more
    return found


@contextlib.contextmanager
def tiny_pooler(host: str, port: int) -> Iterator[TinyPooler]:
    with contextlib.closing(TinyPooler(host, port)) as made:
        yield made
