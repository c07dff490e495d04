"""Settings: ADE_* variables, read once into one typed object. A wrong value is a clear error at start-up."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from core.chores import Timings
from core.errors import SettingsError
from core.jobs import RetryPolicy
from core.ports import Caps

PREFIX = "ADE_"

_UNNOTED_SECONDS = 60.0


def _int(low: int, high: int = 2**31) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise ValueError
        return value

    parse.__doc__ = f"a whole number from {low}" + (f" to {high}" if high < 2**31 else " up")
    return parse


def _seconds(low: float, unit: str = "seconds") -> Callable[[str], float]:
    def parse(text: str) -> float:
        value = float(text)
        if not (value >= low and math.isfinite(value)):
            raise ValueError
        return value

    parse.__doc__ = f"a number of {unit}, at least {low:g}"
    return parse


def _flag(text: str) -> bool:
    """true or false"""
    words = {
        "true": True,
        "1": True,
        "yes": True,
        "on": True,
        "false": False,
        "0": False,
        "no": False,
        "off": False,
    }
    try:
        return words[text.lower()]
    except KeyError:
        raise ValueError from None


def _path(text: str) -> Path:
    """a path"""
    if not text or "\0" in text:
        raise ValueError
    return Path(text)


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError
        return text

    parse.__doc__ = "one of " + ", ".join(words)
    return parse


def _text(text: str) -> str:
    """a text"""
    return text


def _url(scheme: str, *, postgres: bool = False) -> Callable[[str], str]:
    schemes = (scheme, "postgresql", "postgres") if postgres else (scheme,)

    def parse(text: str) -> str:
        if not text.startswith(tuple(f"{one}://" for one in schemes)):
            raise ValueError
        return text

    parse.__doc__ = f"{scheme}://<name>, with ?endpoint=http://… for a server that is not AWS"
    if postgres:
        parse.__doc__ += ", or postgresql://<user>@<host>/<database>"
    return parse


def shown_url(url: str) -> str:
    """A URL of the settings for people and logs: without credentials and options."""
    place, _, options = url.partition("?")
    scheme, _, rest = place.partition("://")
    if ":" in rest and "@" in options and "@" not in rest:
        return f"{scheme}://…"  # a password with a plain ? in it
    return f"{scheme}://{rest.rpartition('@')[2]}"


def _listen(text: str) -> str:
    """<address>:<port>"""
    host, _, port = text.rpartition(":")
    if not host or not 0 < int(port) < 65536:
        raise ValueError
    return text


def _console_listen(text: str) -> str:
    """<address>:<port> (port 0: any free one), or off"""
    host, _, port = text.rpartition(":")
    if text != "off" and (not host or not 0 <= int(port) < 65536):
        raise ValueError
    return text


def _token(text: str) -> str:
    """a secret of at least 16 characters"""
    if len(text) < 16:
        raise ValueError
    return text


def _setting(default: Any, parse: Callable[[str], Any], doc: str, *, secret: bool = False) -> Any:
    return field(default=default, repr=not secret, metadata={"parse": parse, "doc": doc})


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    storage_data_dir: Path = _setting(Path("data"), _path, "folder of the embedded bucket and table")
    store_url: str = _setting("", _url("s3"), "bucket; unset: the embedded folder")
    table_url: str = _setting(
        "",
        _url("dynamodb", postgres=True),
        "job table; unset: the queue's PostgreSQL, or the embedded SQLite file",
        secret=True,
    )
    queue_url: str = _setting(
        "",
        _url("sqs", postgres=True),
        "work queue; unset: the table's PostgreSQL, or the embedded SQLite file",
        secret=True,
    )
    events_url: str = _setting("", _url("sqs"), "queue that receives the bucket's notifications, if there is one")
    webhook_listen: str = _setting("127.0.0.1:8090", _listen, "address the webhook for bucket events listens on")
    webhook_token: str = field(
        default="",
        repr=False,  # a secret
        metadata={"parse": _token, "doc": "token that callers of the webhook must send; unset: no webhook"},
    )
    console_listen: str = _setting("127.0.0.1:8020", _console_listen, "address of the console and the job API")
    console_tokenless: bool = _setting(
        True, _flag, "whether callers on this machine need no token, if no rule has the network"
    )
    console_hosts: str = _setting("", _text, "host names of the console besides those of this machine, with commas")
    console_proxies: str = _setting("", _text, "addresses of proxies that say who signed in, with commas")
    console_proxy_header: str = _setting("x-auth-request-email", _text, "header in which such a proxy names the person")
    console_rate: int = _setting(50, _int(1), "requests a second that one token may make")
    actions_days: int = _setting(365, _int(0), "days that the log of who did what is kept; 0: forever")
    console_body_mb: int = _setting(500, _int(1), "largest body of a request")
    max_concurrency: int = _setting(2, _int(1, 1000), "jobs that one runner process runs at once")
    queue_size: int = _setting(10, _int(1), "waiting jobs of a tenant above which HTTP submits get 429")
    job_timeout_seconds: int = _setting(300, _int(1), "most wall-clock time a job may take")
    worker_cpu_seconds: int = _setting(60, _int(1), "most CPU time a job may take")
    worker_mem_mb: int = _setting(512, _int(64), "most memory a job may take")
    worker_fsize_mb: int = _setting(100, _int(1), "largest file a job may write, and largest input")
    runtime_network_access: bool = _setting(False, _flag, "whether a manifest may ask for the network")
    wheelhouse: Path | None = _setting(None, _path, "folder of wheels that requirements.txt installs from")
    lease_seconds: float = _setting(30.0, _seconds(1), "how long a runner may be silent before it loses its job")
    heartbeat_seconds: float | None = _setting(
        None, _seconds(0.1), "time between heartbeats; unset: a third of the lease"
    )
    max_attempts: int = _setting(3, _int(1, 100), "attempts of a job that fails through no fault of its own")
    retry_backoff_seconds: float = _setting(2.0, _seconds(0), "wait before the second attempt; doubles each time")
    retention_hours: float = _setting(48.0, _seconds(0, "hours"), "how long an ended job's outputs are kept, in hours")
    keep_latest_days: float = _setting(
        30.0, _seconds(0, "days"), "how long the newest good result of a file may outlive that, in days"
    )
    max_keep_days: float = _setting(90.0, _seconds(0, "days"), "most that a manifest's keep_days may ask for, in days")
    load_file: Path | None = _setting(None, _path, "JSON file of the databases that results may be loaded into")
    tenant_concurrency: int = _setting(5, _int(0), "running jobs of one tenant across the fleet; 0: no cap")
    workflow_concurrency: int = _setting(5, _int(0), "running jobs of one workflow across the fleet; 0: no cap")
    sandbox: str = _setting("jail", _one_of("jail", "process", "docker"), "driver that runs the engine")
    sandbox_min_level: str = _setting(
        "confined",
        _one_of("none", "limits", "confined", "isolated"),
        "weakest box for a config that contains Python; if set, a runner that cannot provide it does not start",
    )
    sweep_seconds: float = _setting(300.0, _seconds(1), "time between full scans of the inbox")
    settle_seconds: float = _setting(
        1.0, _seconds(0), "quiet time after which a drop of many objects counts as complete"
    )
    drain_seconds: float = _setting(30.0, _seconds(0), "how long jobs may go on after a process is asked to stop")
    notify_allow: str = _setting("", _text, "receivers of notices that manifests may name, with commas; unset: none")
    mail_file: Path | None = _setting(None, _path, "JSON file of the SMTP server and the addresses that get notices")
    notify_secret: str = _setting("", _token, "what the keys that sign notices are made of", secret=True)
    telemetry: bool = _setting(False, _flag, "whether traces and metrics are exported by OpenTelemetry, as OTEL_* say")
    metrics_listen: str = _setting("", _listen, "address where a process without a console shows its metrics")
    metrics_namespace: str = _setting("", _text, "namespace of the metrics that the Lambda handler writes to its log")
    log_level: str = _setting("info", _one_of("debug", "info", "warning", "error"), "lowest level of log events")

    def __post_init__(self) -> None:
        """One PostgreSQL database serves as table and queue, unless the other is named too."""
        for name, url in (("queue_url", self.table_url), ("table_url", self.queue_url)):
            if not getattr(self, name) and url.startswith(("postgresql://", "postgres://")):
                object.__setattr__(self, name, url)

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "Settings":
        """Read every ADE_* variable; raise one SettingsError that names all wrong values."""
        known = {PREFIX + f.name.upper(): f for f in fields(cls)}
        values: dict[str, Any] = {}
        wrong: list[str] = []
        for variable, spec in known.items():
            text = env.get(variable, "").strip()
            if not text:
                continue
            parse = spec.metadata["parse"]
            try:
                values[spec.name] = parse(text)
            except ValueError:
                # A URL may contain credentials, even one that is refused for that reason.
                shown = f"{variable}={text!r}" if spec.repr and "://" not in text else variable
                wrong.append(f"{shown}: must be {parse.__doc__} ({spec.metadata['doc']})")
        if not wrong:
            settings = cls(**values)
            beat = settings.beat_seconds
            if beat * 2 > settings.lease_seconds:
                wrong.append(
                    f"ADE_HEARTBEAT_SECONDS={beat:g}: must be at most half of ADE_LEASE_SECONDS="
                    f"{settings.lease_seconds:g}, so that one lost beat does not lose the job"
                )
            else:
                return settings
        raise SettingsError("\n".join(wrong))

    @property
    def beat_seconds(self) -> float:
        return self.heartbeat_seconds if self.heartbeat_seconds is not None else self.lease_seconds / 3

    @property
    def tokenless(self) -> bool:
        """Whether callers on this machine need no token: a rule with the network is one of them."""
        return self.console_tokenless and not self.runtime_network_access

    @property
    def timings(self) -> Timings:
        return Timings(
            lease_seconds=self.lease_seconds,
            retention_seconds=self.retention_hours * 3600,
            latest_retention_seconds=self.keep_latest_days * 86_400,
            longest_retention_seconds=self.max_keep_days * 86_400,
            watch_seconds=2 * self.beat_seconds if self.table_url else 0.0,
            unnoted_seconds=_UNNOTED_SECONDS if self.queue_url.startswith("sqs:") else 0.0,
        )

    @property
    def caps(self) -> Caps:
        return Caps(tenant=self.tenant_concurrency, workflow=self.workflow_concurrency)

    @property
    def retry_policy(self) -> RetryPolicy:
        return RetryPolicy(max_attempts=self.max_attempts, backoff_seconds=self.retry_backoff_seconds)


def unknown_variables(env: Mapping[str, str]) -> list[str]:
    """ADE_* variables that do not exist: most likely typos."""
    known = {PREFIX + f.name.upper() for f in fields(Settings)}
    return sorted(v for v in env if v.startswith(PREFIX) and v not in known)
