"""Real servers for the suites, on free loopback ports.

moto, MiniStack, SeaweedFS and PostgreSQL start once for the whole run, when a test first asks for them, and every process uses the
same ones: a test makes buckets, tables and queues with names of its own. MiniStack with a clock that tests move belongs to one
process.
"""

import contextlib
import functools
import os
import struct
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from core.errors import StoreUnavailable
from infra.addresses import parse_address
from infra.aws.calls import client
from infra.clocks import HandClock
from infra.deploy import local_cloud
from infra.deploy.local_cloud import Server
from tests.support import keeper
from tests.support.effort import QUICK
from tests.support.keeper import VENVS
from tests.support.pgbouncer import pgbouncer as pooler

_OWN = ExitStack()  # what ends with this process, not with the run


def stop_all() -> None:
    """End what belongs to this process. The run's own servers go on."""
    _OWN.close()
    for kept in (*STARTS.values(), ministack_by_hand, pgbouncer, admin):
        kept.cache_clear()


@contextlib.contextmanager
def own(name: str) -> Iterator[Server]:
    """A server of the caller's own, which holds nothing yet."""
    with tempfile.TemporaryDirectory(prefix="ade-server-", ignore_cleanup_errors=True) as data, ExitStack() as opened:
        with or_skip():
            server = opened.enter_context(keeper.STARTS[name](Path(data)))
        yield server


@contextlib.contextmanager
def or_skip() -> Iterator[None]:
    """At a desk without the packages of a server its tests are skipped; in CI they fail."""
    if QUICK:
        pytest.fail("starts a server: mark the test slow, so that `make quick` leaves it out")
    try:
        yield
    except StoreUnavailable as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"{error}")


def _shared(name: str) -> Server:
    with or_skip():
        return keeper.shared(name)


@functools.cache
def moto() -> Server:
    return _shared("moto")


@functools.cache
def ministack() -> Server:
    return _shared("ministack")


@functools.cache
def seaweedfs() -> Server:
    return _shared("seaweedfs")


@functools.cache
def postgres() -> Server:
    return _shared("postgres")


@functools.cache
def pgbouncer() -> str:
    """The URL of the same PostgreSQL by way of a pooler in transaction mode, which belongs to this process."""
    behind = postgres().endpoint
    with or_skip():
        return _OWN.enter_context(pooler(behind))


@functools.cache
def ministack_with_templates() -> Server:
    """The services that the template needs; no Lambda, which would run code of whoever reaches the port."""
    return _shared("templates")


@functools.cache
def ministack_by_hand() -> tuple[Server, Path]:
    """MiniStack whose queues follow a clock that only tests move: the number in the file."""
    folder = Path(_OWN.enter_context(tempfile.TemporaryDirectory(prefix="ade-clock-", ignore_cleanup_errors=True)))
    shared = folder / "now"
    shared.write_bytes(struct.pack("d", HandClock().now()))
    with or_skip():
        return _OWN.enter_context(_ministack_by_hand(shared, folder)), shared


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
    """A client to make buckets, tables and queues with, for as long as the process runs; called with credentials set."""
    at = f"?endpoint={endpoint}" if endpoint else ""
    return _OWN.enter_context(contextlib.closing(client(parse_address(f"{service}://any{at}"))))


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
