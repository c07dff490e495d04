"""Real servers for the suites: each started once per test process, on a free loopback port, and ended with it."""

import contextlib
import functools
import os
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import pytest

from core.errors import StoreUnavailable
from infra.addresses import parse_address
from infra.aws.calls import client
from infra.clocks import HandClock
from infra.deploy import local_cloud
from infra.deploy.local_cloud import Server
from tests.support import postgres_server

VENVS = Path(__file__).parents[2] / ".venv-cloud"
_RUNNING = ExitStack()


def stop_all() -> None:
    _RUNNING.close()
    for start in (*STARTS.values(), ministack_by_hand, admin):
        start.cache_clear()


@contextlib.contextmanager
def _moto(data: Path) -> Iterator[Server]:
    port = local_cloud.free_port()
    command = [str(Path(sys.executable).with_name("moto_server")), "-H", "127.0.0.1", "-p", str(port)]
    endpoint = f"http://127.0.0.1:{port}"
    with local_cloud.running("moto", command, data, health=f"{endpoint}/moto-api/", grace=2) as pid:
        yield Server("moto", endpoint, "test", "test", pid)


def _started(start: Callable[[Path], AbstractContextManager[Server]]) -> Server:
    data = Path(_RUNNING.enter_context(tempfile.TemporaryDirectory(prefix="ade-server-")))
    try:
        return _RUNNING.enter_context(start(data))
    except StoreUnavailable as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"{error}")


@functools.cache
def moto() -> Server:
    return _started(_moto)


@functools.cache
def ministack() -> Server:
    return _started(functools.partial(local_cloud.ministack, VENVS))


@functools.cache
def seaweedfs() -> Server:
    return _started(functools.partial(local_cloud.seaweedfs, VENVS))


@functools.cache
def postgres() -> Server:
    return _started(postgres_server.postgres)


@functools.cache
def ministack_with_templates() -> Server:
    """The services that the template needs; no Lambda, which would run code of whoever reaches the port."""
    services = "s3,sqs,dynamodb,cloudformation,cloudwatch,iam,logs,sts"
    return _started(lambda data: local_cloud.ministack(VENVS, data, services=services))


@functools.cache
def ministack_by_hand() -> tuple[Server, Path]:
    """MiniStack whose queues live by a clock that stands until a test moves it: the number in the file."""
    shared = Path(_RUNNING.enter_context(tempfile.TemporaryDirectory(prefix="ade-clock-"))) / "now"
    shared.write_bytes(struct.pack("d", HandClock().now()))
    return _started(functools.partial(_ministack_by_hand, shared)), shared


@contextlib.contextmanager
def _ministack_by_hand(shared: Path, data: Path) -> Iterator[Server]:
    command = local_cloud.install(VENVS, "ministack", local_cloud.MINISTACK) / "ministack"
    port = local_cloud.free_port()
    environment = {
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "SERVICES": "s3,sqs,dynamodb",
        "PYTHONPATH": str(Path(__file__).parents[1] / "support" / "server_clock"),
        "ADE_TEST_CLOCK": str(shared),
    }
    endpoint = f"http://127.0.0.1:{port}"
    health = f"{endpoint}/_ministack/health"
    with local_cloud.running("ministack", [str(command)], data, health=health, environment=environment, grace=2) as pid:
        yield Server("MiniStack", endpoint, "test", "test", pid)


STARTS = {"moto": moto, "ministack": ministack, "seaweedfs": seaweedfs, "templates": ministack_with_templates}
STARTS |= {"postgres": postgres}


class Aws(Server):
    """AWS itself: no endpoint, and the credentials of whoever asks for it."""

    @property
    def environment(self) -> dict[str, str]:
        return {}


def aws() -> Server:
    return Aws("AWS", "", "", "", 0)


def url(service: str, name: str, server: Server, **options: str) -> str:
    """The address of a resource on a server."""
    wanted = ({"endpoint": server.endpoint} if server.endpoint else {}) | options
    return f"{service}://{name}" + ("?" + "&".join(f"{k}={v}" for k, v in wanted.items()) if wanted else "")


@functools.cache
def admin(service: str, endpoint: str) -> Any:
    """A client to make buckets, tables and queues with, for as long as the servers run; called with credentials set."""
    return _RUNNING.enter_context(contextlib.closing(client(parse_address(f"{service}://any?endpoint={endpoint}"))))


@contextlib.contextmanager
def credentials(server: Server) -> Iterator[None]:
    """The environment that every AWS client reads, for as long as the context lasts."""
    if isinstance(server, Aws):
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
            patch.delenv(name, raising=False)
        for name, value in server.environment.items():
            patch.setenv(name, value)
        yield
