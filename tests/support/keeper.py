"""Keeps a server running for a whole test run: several pytest processes, and several stages, share it.

    python -m tests.support.keeper NAME FOLDER

The run owns FOLDER and holds a lock in it. A keeper starts its server, prints how to reach it as JSON, waits for that
lock, which comes free when the run ends or dies, and then ends the server.
"""

import contextlib
import fcntl
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path

from core.errors import StoreUnavailable
from infra.deploy import local_cloud
from infra.deploy.local_cloud import Server
from tests.support import postgres_server

VENVS = Path(__file__).parents[2] / ".venv-cloud"
RUN = "ADE_TEST_RUN"  # the folder of the run
_ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def _moto(data: Path) -> Iterator[Server]:
    port = local_cloud.free_port()
    command = [str(Path(sys.executable).with_name("moto_server")), "-H", "127.0.0.1", "-p", str(port)]
    endpoint = f"http://127.0.0.1:{port}"
    with local_cloud.running("moto", command, data, health=f"{endpoint}/moto-api/", grace=2) as pid:
        yield Server("moto", endpoint, "test", "test", pid)


# No Lambda among the services of a template: it would run code of whoever reaches the port.
_TEMPLATE_SERVICES = "s3,sqs,dynamodb,cloudformation,cloudwatch,iam,logs,sts"
STARTS: Mapping[str, Callable[[Path], AbstractContextManager[Server]]] = {
    "moto": _moto,
    "ministack": functools.partial(local_cloud.ministack, VENVS),
    "seaweedfs": functools.partial(local_cloud.seaweedfs, VENVS),
    "postgres": postgres_server.postgres,
    "templates": functools.partial(local_cloud.ministack, VENVS, services=_TEMPLATE_SERVICES),
}


@contextlib.contextmanager
def run_folder() -> Iterator[None]:
    """Let servers live until the context ends; inside another run's context, that run keeps them."""
    if os.environ.get(RUN):
        yield
        return
    with tempfile.TemporaryDirectory(prefix="ade-run-", ignore_cleanup_errors=True) as folder:
        os.environ[RUN] = folder
        try:
            with _locked(Path(folder) / "run.lock"):
                yield
        finally:
            del os.environ[RUN]
            for alive in Path(folder).glob("*.alive"):
                with _locked(alive):
                    pass  # its keeper has ended


def shared(name: str) -> Server:
    """The run's server of this name, started when first asked for; raises StoreUnavailable."""
    folder = Path(os.environ[RUN])
    known = folder / f"{name}.json"
    with _locked(folder / f"{name}.starting"):
        if not known.exists():
            known.write_text(_kept(name, folder))
    said = json.loads(known.read_text())
    if "error" in said:
        raise StoreUnavailable(said["error"])
    return Server(**said)


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    """A file of the run under this name, made by the first who asks for it."""
    path = Path(os.environ[RUN]) / name
    with _locked(path.with_name(f"{name}.lock")):
        if not path.exists():
            make(half := path.with_name(f"{name}.half"))
            half.rename(path)
    return path


def _kept(name: str, folder: Path) -> str:
    command = [sys.executable, "-m", "tests.support.keeper", name, str(folder)]
    with (folder / f"{name}.log").open("wb") as log:
        keeper = subprocess.Popen(
            command, cwd=_ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True
        )
    assert keeper.stdout is not None
    with keeper.stdout:
        said = keeper.stdout.readline().decode()
    keeper.returncode = 0  # nobody waits for it: it outlives this process
    return said or json.dumps({"error": f"the keeper of {name} died: {(folder / f'{name}.log').read_text()[-2000:]}"})


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    data = folder / name
    data.mkdir()
    with _locked(folder / f"{name}.alive"):
        try:
            with STARTS[name](data) as server:
                print(json.dumps(asdict(server)), flush=True)
                with _locked(folder / "run.lock"):
                    pass
        except StoreUnavailable as error:
            print(json.dumps({"error": str(error)}), flush=True)


if __name__ == "__main__":
    main()
