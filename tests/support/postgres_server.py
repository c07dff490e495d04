"""Debian's PostgreSQL in a folder of its own, on a free loopback port, as a user that is not root.

`postgres` is one server for as long as its context lasts. A `Cluster` can also be killed, stopped and started again.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

from core.errors import StoreUnavailable
from infra.deploy.local_cloud import Server, free_port

# Of the product, in a schema of it: what a test empties before the next.
TABLES = [
    "jobs",
    "tallies",
    "pauses",
    "leases",
    "fences",
    "generations",
    "messages",
    "lanes",
    "dead_letters",
    "ends",
    "resolutions",
]
_START_SECONDS = 60.0
_CONFIG = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = on
max_connections = 200
shared_buffers = 64MB
min_wal_size = 32MB
max_wal_size = 256MB
log_min_messages = warning
log_lock_waits = on
"""


def binaries() -> Path:
    """The newest installed server's bin folder."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if not found:
        raise StoreUnavailable("no PostgreSQL server here: apt-get install postgresql")
    return found[-1].parent


class Cluster:
    """A data folder and the server that works on it. Its user `ade` owns everything and needs no password."""

    def __init__(self, folder: Path | None = None, config: str = "") -> None:
        self._bin = binaries()
        self.folder = folder or Path(tempfile.mkdtemp(prefix="ade-postgres-"))
        self.port = free_port()
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        self._user = unprivileged()
        if self._user is not None:
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
        self._process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "-D", str(self.data), "-U", "ade", "-A", "trust", "-E", "UTF8", "--no-locale")
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(_CONFIG + f"port = {self.port}\n" + config)

    @property
    def url(self) -> str:
        return f"postgresql://ade@127.0.0.1:{self.port}/postgres"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._bin / "postgres"), "-D", str(self.data)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                **self._identity(),
            )
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until:
            if self._process.poll() is not None:
                raise StoreUnavailable(f"PostgreSQL ended at once: {self.log.read_text()[-2000:]}")
            with contextlib.suppress(psycopg.OperationalError):
                psycopg.connect(self.url, connect_timeout=2).close()
                return
            time.sleep(0.05)
        raise StoreUnavailable(f"PostgreSQL did not come up within {_START_SECONDS:g} s; see {self.log}")

    def standby(self) -> "Cluster":
        """Another server that follows this one, not yet started."""
        made = object.__new__(Cluster)
        made._bin, made._user, made._process = self._bin, self._user, None
        made.folder, made.port = Path(tempfile.mkdtemp(prefix="ade-postgres-")), free_port()
        made.data, made.log = made.folder / "data", made.folder / "log"
        if made._user is not None:
            os.chown(made.folder, made._user.pw_uid, made._user.pw_gid)
        made._run("pg_basebackup", "-D", str(made.data), "-d", self.url, "-R", "-X", "stream", "-c", "fast")
        with (made.data / "postgresql.conf").open("a") as file:
            file.write(f"port = {made.port}\nhot_standby = on\nsynchronous_standby_names = ''\n")
        return made

    def ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def kill(self) -> None:
        """As the power does: every process of the server at once, without a word."""
        assert self._process is not None
        children = _children(self._process.pid)  # each leads a group of its own
        for pid in (self._process.pid, *children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)  # ends sessions, writes what is in memory
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._bin / name), *arguments], capture_output=True, cwd=self.folder, check=False, **self._identity()
        )
        if done.returncode:
            raise StoreUnavailable(f"{name} failed: {done.stderr.decode(errors='replace')[-2000:]}")

    def _identity(self) -> dict[str, object]:
        env = {"PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8"}
        if self._user is None:
            return {"env": env}
        return {"env": env, "user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}


@contextlib.contextmanager
def cluster(config: str = "") -> Iterator[Cluster]:
    """A server of the caller's own, running."""
    made = Cluster(config=config)
    try:
        made.start()
        yield made
    finally:
        made.remove()


@contextlib.contextmanager
def postgres(_data: Path) -> Iterator[Server]:
    """In a folder of its own: the server's user may not enter those of whoever runs the tests."""
    with cluster() as made:
        yield Server("PostgreSQL", made.url, "", "", made.pid)


def _children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
    return found


def unprivileged() -> pwd.struct_passwd | None:
    """Whom to start the server as: it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise StoreUnavailable("PostgreSQL does not run as root, and there is no user postgres or nobody")
