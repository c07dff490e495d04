"""The senders' own tools: what they put in is found under its exact name, whole, and comes back the same."""

import filecmp
import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from secrets import token_hex

import pytest
from minio import Minio

from infra.addresses import parse_address
from infra.aws.calls import client
from infra.aws.s3 import S3Store
from infra.deploy.local_cloud import Server
from tests.contract import servers
from tests.support.clients import clients

NAMES = [
    "plain.csv",
    "two  words.csv",
    "a+b.csv",
    "100%25.csv",
    "Löhne-日本語-😀.csv",
    "it's (1) & more.csv",
    "report.",
    "deep/er/x.csv",
    f"{'n' * 180}.csv",
]
LARGE = 20 * 1024 * 1024  # every tool uploads this in parts

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="session", autouse=True)
def _servers() -> Iterator[None]:
    yield
    servers.stop_all()


@pytest.fixture(scope="session")
def tools() -> Path:
    return clients()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    for name in NAMES:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (folder / "large.csv").write_bytes(os.urandom(1024) * (LARGE // 1024))
    return folder


@pytest.fixture(params=["seaweedfs", "ministack"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    server = servers.STARTS[request.param]()
    with servers.credentials(server):
        yield server


@pytest.fixture
def bucket(server: Server) -> str:
    name = f"clients-{token_hex(4)}"
    with closing(client(parse_address(f"s3://{name}?endpoint={server.endpoint}"))) as s3:
        s3.create_bucket(Bucket=name)
    return name


def commands(tool: str, tools: Path, server: Server, bucket: str, files: Path, back: Path) -> list[list[str]]:
    """Up and down again, recursively."""
    at, there = server.endpoint, f"s3://{bucket}/inbox/acme/"
    match tool:
        case "aws s3 cp":
            aws = [str(tools / "aws"), "--endpoint-url", at, "s3", "cp", "--recursive", "--only-show-errors"]
            return [[*aws, str(files), there], [*aws, there, str(back)]]
        case "aws s3 sync":
            aws = [str(tools / "aws"), "--endpoint-url", at, "s3", "sync", "--only-show-errors"]
            return [[*aws, str(files), there], [*aws, there, str(back)]]
        case "s5cmd":
            s5cmd = [str(tools / "s5cmd"), "--endpoint-url", at, "--log", "error", "cp"]
            return [[*s5cmd, f"{files}/", there], [*s5cmd, f"{there}*", f"{back}/"]]
        case _:
            flags = ["--s3-provider=Other", f"--s3-endpoint={at}", "--s3-env-auth", "--s3-region=us-east-1"]
            flags += ["--s3-upload-cutoff=8M", "--s3-force-path-style", "--config=/dev/null"]
            remote, rclone = f":s3:{bucket}/inbox/acme", [str(tools / "rclone"), "copy", *flags]
            return [[*rclone, str(files), remote], [*rclone, remote, str(back)]]


def same(one: Path, other: Path) -> list[str]:
    """Names that differ between two trees."""
    ours = {p.relative_to(one).as_posix() for p in one.rglob("*") if p.is_file()}
    theirs = {p.relative_to(other).as_posix() for p in other.rglob("*") if p.is_file()}
    wrong = [n for n in ours & theirs if not filecmp.cmp(one / n, other / n, shallow=False)]
    return sorted(ours ^ theirs) + wrong


@pytest.mark.parametrize("tool", ["aws s3 cp", "aws s3 sync", "s5cmd", "rclone"])
def test_a_command_line_client(tool: str, tools: Path, server: Server, bucket: str, files: Path, tmp_path: Path):
    back, fetched = tmp_path / "back", tmp_path / "fetched"
    back.mkdir()
    up, down = commands(tool, tools, server, bucket, files, back)
    subprocess.run(up, check=True, capture_output=True, timeout=120)
    with closing(S3Store(parse_address(f"s3://{bucket}?endpoint={server.endpoint}"))) as store:
        for info in store.objects("inbox/acme/"):
            to = fetched / info.key.removeprefix("inbox/acme/")
            to.parent.mkdir(parents=True, exist_ok=True)
            store.fetch(info.key, to, version=info.version, limit=2 * LARGE)
    assert same(files, fetched) == []
    subprocess.run(down, check=True, capture_output=True, timeout=120)
    assert same(files, back) == []


def test_minio_py(server: Server, bucket: str, files: Path, tmp_path: Path):
    sender = Minio(
        server.endpoint.removeprefix("http://"),
        access_key=server.access_key,
        secret_key=server.secret_key,
        secure=False,
        region="us-east-1",
    )
    for path in (p for p in files.rglob("*") if p.is_file()):
        name = path.relative_to(files).as_posix()
        sender.fput_object(bucket, f"inbox/acme/{name}", str(path), part_size=8 * 1024 * 1024)
    with closing(S3Store(parse_address(f"s3://{bucket}?endpoint={server.endpoint}"))) as store:
        found = {info.key.removeprefix("inbox/acme/"): info for info in store.objects("inbox/acme/")}
    assert set(found) == {*NAMES, "large.csv"}
    for name in found:
        sender.fget_object(bucket, f"inbox/acme/{name}", str(tmp_path / "back" / name))
    assert same(files, tmp_path / "back") == []
