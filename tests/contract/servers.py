"""Real servers for the suites: each started once per test process, on a free loopback port, and ended with it."""

import contextlib
import functools
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from core.errors import StoreUnavailable
from infra import local_cloud
from infra.local_cloud import Server

VENVS = Path(__file__).parents[2] / ".venv-cloud"
_RUNNING = ExitStack()


def stop_all() -> None:
    _RUNNING.close()
    for start in STARTS.values():
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
def ministack_with_templates() -> Server:
    """The services that the template needs; no Lambda, which would run code of whoever reaches the port."""
    services = "s3,sqs,dynamodb,cloudformation,cloudwatch,iam,logs,sts"
    return _started(lambda data: local_cloud.ministack(VENVS, data, services=services))


STARTS = {"moto": moto, "ministack": ministack, "seaweedfs": seaweedfs, "templates": ministack_with_templates}


@contextlib.contextmanager
def credentials(server: Server) -> Iterator[None]:
    """The environment that every AWS client reads, for as long as the context lasts."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
            patch.delenv(name, raising=False)
        for name, value in server.environment.items():
            patch.setenv(name, value)
        yield
