"""Debian's pgbouncer in transaction mode before a PostgreSQL server, on a free loopback port."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from core.errors import StoreUnavailable
from infra.deploy.local_cloud import free_port
from tests.support.postgres_server import unprivileged

_START_SECONDS = 60.0
_CONFIG = """
[databases]
* = host=127.0.0.1 port={server} user=ade
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {sessions}
min_pool_size = {sessions}
server_round_robin = 1
max_client_conn = 300
server_login_retry = 0.2
"""


@contextlib.contextmanager
def pgbouncer(url: str, *, sessions: int = 3) -> Iterator[str]:
    """The URL of the server at `url`, by way of the pooler. `sessions`: how many all clients share."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        raise StoreUnavailable("no pgbouncer here: apt-get install pgbouncer")
    server, port, user = urlsplit(url).port, free_port(), unprivileged()
    identity = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    with tempfile.TemporaryDirectory(prefix="ade-pgbouncer-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        config = Path(folder) / "pgbouncer.ini"
        config.write_text(_CONFIG.format(server=server, port=port, sessions=sessions))
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen(
                [program, str(config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, **identity
            )
        through = url.replace(f":{server}/", f":{port}/")
        try:
            until = time.monotonic() + _START_SECONDS
            while True:
                with contextlib.suppress(psycopg.OperationalError):
                    psycopg.connect(through, connect_timeout=2).close()
                    break
                if process.poll() is not None or time.monotonic() > until:
                    raise StoreUnavailable(f"pgbouncer did not come up: {(Path(folder) / 'log').read_text()[-1000:]}")
                time.sleep(0.02)
            yield through
        finally:
            process.kill()
            process.wait()
