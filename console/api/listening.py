"""The socket that the console listens on; apart from the server, whose libraries take a moment to load."""

import socket

from core.errors import SettingsError, StoreUnavailable

CONNECTIONS = 1000


def bind(listen: str, *, fall_back: bool) -> socket.socket:
    """A listening socket; where the port is taken, on any free one if `fall_back`."""
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, int(port)), family=family, backlog=CONNECTIONS)
    except socket.gaierror:
        raise SettingsError(f"ADE_CONSOLE_LISTEN={listen}: {host!r} is not an address of this machine") from None
    except OSError as error:
        if fall_back and int(port):
            return bind(f"{listen.rpartition(':')[0]}:0", fall_back=False)
        raise StoreUnavailable(
            f"cannot listen on {listen}: {error.strerror}; set ADE_CONSOLE_LISTEN to another address"
        ) from None


def address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
