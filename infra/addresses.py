"""Where a cloud port lives: `s3://bucket?endpoint=…&region=…` and the like."""

from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from core.errors import SettingsError

_OPTIONS = {
    "s3": {"endpoint", "region", "addressing", "etag"},
    "dynamodb": {"endpoint", "region", "shards"},
    "sqs": {"endpoint", "region", "dead"},
}


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
