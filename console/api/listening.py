"""The socket that the console listens on; apart from the server, whose libraries take a moment to load."""

import socket

from core.errors import SettingsError, StoreUnavailable

CONNECTIONS = 1000


def bind(listen: str, *, fall_back: bool) -> socket.socket:
    """A listening socket; where the port is taken, on any free one if `fall_back`."""
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in (int(port), 0) if fall_back else (int(port),):
        try:
            return socket.create_server((host, number), family=family, backlog=CONNECTIONS)
        except OSError as error:
            if isinstance(error, socket.gaierror):
                raise SettingsError(
                    f"ADE_CONSOLE_LISTEN={listen}: {host!r} is not an address of this machine"
                ) from None
            why = error
    raise StoreUnavailable(f"cannot listen on {listen}: {why.strerror}; set ADE_CONSOLE_LISTEN to another address")


def address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
