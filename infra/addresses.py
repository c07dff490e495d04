"""Addresses: where a cloud port lives (`s3://bucket?endpoint=…&region=…` and the like), and where a server listens."""

import socket
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from core.errors import SettingsError, StoreUnavailable

_OPTIONS = {
    "s3": {"endpoint", "region", "addressing", "etag"},
    "dynamodb": {"endpoint", "region", "shards"},
    "sqs": {"endpoint", "region", "dead"},
}

MOST_SHARDS = 90  # pausing everything writes to each shard in one transaction, which holds 100 writes
_NO_CREDENTIALS = "credentials do not belong in a URL; set AWS_ACCESS_KEY_ID …"


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """One bucket, table or queue. Credentials come from where every AWS tool finds them, never from here."""

    service: str
    name: str
    endpoint: str | None = None  # None: AWS itself
    region: str | None = None
    options: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.service}://{self.name}" + (f" at {self.endpoint}" if self.endpoint else "")


def is_postgres(url: str) -> bool:
    """Whether a URL names a PostgreSQL database; infra/postgres/connections.py reads those."""
    return url.startswith(("postgresql://", "postgres://"))


def parse_address(url: str) -> Address:
    """`<service>://<name>?endpoint=…&region=…`; SettingsError quotes no value, since it may be secret."""
    parts = urlsplit(url)
    if parts.scheme not in _OPTIONS:
        raise SettingsError(f"{parts.scheme}://…: unknown service {parts.scheme!r}; known are {', '.join(_OPTIONS)}")
    shown = f"{parts.scheme}://{parts.netloc}"
    if "@" in parts.netloc:
        raise SettingsError(f"{parts.scheme}://…: {_NO_CREDENTIALS}")
    name = f"{parts.netloc}{parts.path}".strip("/")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := options.keys() - _OPTIONS[parts.scheme]:
        known = ", ".join(sorted(_OPTIONS[parts.scheme]))
        raise SettingsError(f"{shown}: unknown option {', '.join(sorted(unknown))}; known are {known}")
    if not name or "/" in name:
        raise SettingsError(f"{shown}: give the name of one {parts.scheme} resource, as in {parts.scheme}://name")
    endpoint = options.pop("endpoint", None)
    if endpoint is not None and not endpoint.startswith(("http://", "https://")):
        raise SettingsError(f"{shown}: endpoint must begin with http:// or https://")
    if endpoint is not None and "@" in urlsplit(endpoint).netloc:
        raise SettingsError(f"{shown}: {_NO_CREDENTIALS}")
    shards = options.get("shards", "1")
    if not (shards.isascii() and shards.isdigit() and 1 <= int(shards) <= MOST_SHARDS):
        raise SettingsError(f"{shown}: shards must be a whole number from 1 to {MOST_SHARDS}")
    return Address(
        service=parts.scheme, name=name, endpoint=endpoint, region=options.pop("region", None), options=options
    )


def bind(listen: str, setting: str, *, backlog: int = 1000, fall_back: bool = False) -> socket.socket:
    """A listening socket at `host:port` of a setting; where the port is taken, on any free one if `fall_back`."""
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, int(port)), family=family, backlog=backlog)
    except socket.gaierror:
        raise SettingsError(f"{setting}={listen}: {host!r} is not an address of this machine") from None
    except OSError as error:
        if fall_back and int(port):
            return bind(f"{listen.rpartition(':')[0]}:0", setting, backlog=backlog)
        raise StoreUnavailable(
            f"cannot listen on {listen}: {error.strerror}; set {setting} to another address"
        ) from None


def http_address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
