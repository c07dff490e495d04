"""What the Python client refuses to drop, and how it waits for an API that goes away."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ade_drop.client import AdeError, Client, Drop, Unavailable, connect, connect_async

MANIFEST = {"manifest": 1, "name": "members"}
RESULT = {"job_id": "j", "status": "SUCCEEDED", "outcome": "clean", "tenant": "a", "workflow": "w", "subject": "s"}
DROP = Drop(tenant="a", keys=("inbox/a/w/s",), versions=(), jobs=("j",))


@pytest.fixture
def members(tmp_path: Path) -> Path:
    path = tmp_path / "members.csv"
    path.write_text("id\n1\n")
    return path


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    path = tmp_path / "bucket"
    path.mkdir()
    return path


@pytest.mark.parametrize(
    ("tenant", "path"),
    [("..", "x"), ("../..", "x"), ("", "x"), ("a/b", "x"), ("acme", "../../../up"), ("acme", "a/./b"), ("acme", "a\0b"),
     ("acme", "a\\b"), ("acme", "x\ud800"), ("acme", "y/" * 600)],
)  # fmt: skip
def test_nothing_is_written_where_no_deployment_reads(members: Path, bucket: Path, tenant: str, path: str) -> None:
    before = set(bucket.parent.rglob("*"))
    with pytest.raises(AdeError):
        connect(bucket).drop(members, tenant=tenant, path=path, manifest=MANIFEST)
    assert set(bucket.parent.rglob("*")) == before


@pytest.mark.parametrize("name", [".members.csv", "~$members.xlsx", "members.csv.part", "Thumbs.db", "members.csv~"])
def test_a_file_that_is_never_read_is_refused(members: Path, bucket: Path, name: str) -> None:
    with pytest.raises(AdeError, match="never read"):
        connect(bucket).drop(members.rename(members.with_name(name)), tenant="acme", manifest=MANIFEST)


@pytest.mark.parametrize("name", ["bad ä#%?.csv", 'it\'s "mine".csv', "a..b.csv", "表.csv"])
def test_other_names_are_dropped_as_they_are(members: Path, bucket: Path, name: str) -> None:
    drop = connect(bucket).drop(members.rename(members.with_name(name)), tenant="a.b", path="/x//y/", manifest=MANIFEST)
    assert drop.keys == (f"inbox/a.b/x/y/{name}",)
    assert (bucket / drop.keys[0]).is_file()


def test_the_newest_good_result_is_not_a_failure_that_latest_json_names(bucket: Path) -> None:
    line = bucket / "outputs/a/s/w"
    for n, status in enumerate(("SUCCEEDED", "SUCCEEDED", "FAILED")):
        folder = line / f"j{n}"
        folder.mkdir(parents=True)
        timings = {"created_at": f"2026-01-0{n + 1}T00:00:00+00:00"}
        (folder / "result.json").write_text(
            json.dumps(RESULT | {"job_id": f"j{n}", "status": status, "timings": timings})
        )
    (line / "latest.json").write_text(
        json.dumps({"latest": 1, "job_id": "j2", "result": "outputs/a/s/w/j2/result.json"})
    )
    newest = connect(bucket).latest(tenant="a", subject="s", workflow="w")
    assert newest is not None
    assert newest.job_id == "j1"
    for name in ("j0", "j1"):
        (line / name / "result.json").unlink()
    assert connect(bucket).latest(tenant="a", subject="s", workflow="w") is None


@pytest.fixture
def serve() -> Iterator[Callable[[int, bytes], str]]:
    """Serves an API that fails so many times, with these bytes as its answer, and then has a result."""
    servers: list[ThreadingHTTPServer] = []

    def start(failures: int, broken: bytes) -> str:
        class Handler(BaseHTTPRequestHandler):
            left = failures

            def do_GET(self) -> None:
                if Handler.left > 0:
                    Handler.left -= 1
                    self.wfile.write(broken)
                    return
                body = json.dumps(RESULT if "output" in self.path else {"state": "SUCCEEDED"}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 502 Bad Gateway\r\n\r\n<html>",
        b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"state": "SUCC',
    ],
    ids=["nothing", "busy", "a proxy", "half an answer"],
)
def test_waiting_outlives_a_server_that_is_away(serve: Callable[[int, bytes], str], broken: bytes) -> None:
    assert connect(serve(2, broken)).wait(DROP, timeout=20).job_id == "j"
    assert asyncio.run(connect_async(serve(2, broken)).wait(DROP, timeout=20)).job_id == "j"


def test_a_server_that_stays_away_is_named_when_the_time_is_over(serve: Callable[[int, bytes], str]) -> None:
    client: Client = connect(serve(1_000_000, b""))
    with pytest.raises(Unavailable, match="does not answer"):
        client.wait(DROP, timeout=0.3)
