"""A proxy between a client and a server over TCP that cuts connections, loses answers, or goes silent."""

import contextlib
import socket
import threading
from collections import Counter
from collections.abc import Iterator


class WireCutter:
    """What goes wrong on the way. Safe to change while connections are open."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._lose: list[bytes] = []
        self.down = False  # new connections are closed at once
        self.silent = False  # nothing passes, and nothing is closed
        self.counted: Counter[str] = Counter()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_answer_to(self, words: bytes) -> None:
        """The next request that holds these words reaches the server; its answer does not come back."""
        with self._lock:
            self._lose.append(words)

    def cut_all(self) -> None:
        with self._lock:
            open_now = list(self._open)
        for one in open_now:
            self.counted["cut"] += 1
            _end(one)

    def close(self) -> None:
        self.down = True
        _end(self._listener)
        self._listener.close()
        self.cut_all()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.down:
                client.close()
                continue
            try:
                server = socket.create_connection(self._server, timeout=5)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            with self._lock:
                self._open |= {client, server}
            lost = threading.Event()
            for source, target, asks in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._pump, args=(source, target, lost, asks), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, lost: threading.Event, asks: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self.silent:
                    continue
                if asks:
                    self._judge(data, lost)
                elif lost.is_set():
                    self.counted["lost"] += 1
                    break
                target.sendall(data)
        for one in (source, target):
            _end(one)
        with self._lock:
            self._open -= {source, target}
        source.close()

    def _judge(self, data: bytes, lost: threading.Event) -> None:
        with self._lock:
            for words in self._lose:
                if words in data:
                    self._lose.remove(words)
                    lost.set()
                    return


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def wire_cutter(host: str, port: int) -> Iterator[WireCutter]:
    made = WireCutter(host, port)
    try:
        yield made
    finally:
        made.close()
