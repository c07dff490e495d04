"""Where a cloud port lives: `s3://bucket?endpoint=…&region=…` and the like, and boto3 clients for it."""

import threading
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import boto3
import botocore.loaders
import botocore.session
from botocore.config import Config

from core.errors import SettingsError

_OPTIONS = {
    "s3": {"endpoint", "region", "addressing", "etag"},
    "dynamodb": {"endpoint", "region", "shards"},
    "sqs": {"endpoint", "region", "dead"},
}
_LOCK = threading.Lock()
_MODELS = botocore.loaders.create_loader()  # parsing a service's model takes longer than most calls


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


def parse_address(url: str) -> Address:
    """`<service>://<name>?endpoint=…&region=…`; SettingsError says what is wrong and what is known."""
    parts = urlsplit(url)
    if parts.scheme not in _OPTIONS:
        raise SettingsError(f"{url!r}: unknown service {parts.scheme!r}; known are {', '.join(_OPTIONS)}")
    if "@" in parts.netloc:
        raise SettingsError(f"{parts.scheme}://…: credentials do not belong in a URL; set AWS_ACCESS_KEY_ID …")
    name = f"{parts.netloc}{parts.path}".strip("/")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := options.keys() - _OPTIONS[parts.scheme]:
        known = ", ".join(sorted(_OPTIONS[parts.scheme]))
        raise SettingsError(f"{url!r}: unknown option {', '.join(sorted(unknown))}; known are {known}")
    if not name or "/" in name:
        raise SettingsError(f"{url!r}: give the name of one {parts.scheme} resource, as in {parts.scheme}://name")
    endpoint = options.pop("endpoint", None)
    if endpoint is not None and not endpoint.startswith(("http://", "https://")):
        raise SettingsError(f"{url!r}: endpoint must begin with http:// or https://")
    return Address(
        service=parts.scheme, name=name, endpoint=endpoint, region=options.pop("region", None), options=options
    )


def client(address: Address, *, read_timeout: float = 30.0) -> Any:
    """A boto3 client, safe to share between threads; infra/remote.py does all the waiting and trying again."""
    own_server = address.endpoint is not None
    config = Config(
        connect_timeout=5,
        read_timeout=read_timeout,
        retries={"total_max_attempts": 1},
        max_pool_connections=32,
        # Older S3 clones know no checksum but Content-MD5, which we send ourselves.
        request_checksum_calculation="when_required" if own_server else "when_supported",
        response_checksum_validation="when_required" if own_server else "when_supported",
        s3={"addressing_style": address.options.get("addressing", "path" if own_server else "auto")},
    )
    with _LOCK:
        core = botocore.session.get_session()
        core.register_component("data_loader", _MODELS)
        session = boto3.session.Session(botocore_session=core, region_name=address.region)
        region = address.region or session.region_name or ("us-east-1" if own_server else None)
        return session.client(address.service, endpoint_url=address.endpoint, region_name=region, config=config)
