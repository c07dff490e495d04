"""The real `ade up` with its console beside it: the page's examples, a way through without a token, what dies with whom."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from tests.acceptance.ade import ADE, Ade

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "api.md"
pytestmark = pytest.mark.slow
ANYWHERE = {"ADE_CONSOLE_LISTEN": "127.0.0.1:0"}


@pytest.fixture
def ade(tmp_path) -> Ade:
    return Ade(tmp_path, env=ANYWHERE)


def console_of(running) -> str:
    return next(str(event["console"]) for event in running.events if event["event"] == "up")


def servers(pid: int) -> list[int]:
    """Our children that serve."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words, status = (folder / "cmdline").read_bytes().split(b"\0"), (folder / "stat").read_text()
        except OSError:
            continue
        if b"serve" in words and int(status.rpartition(")")[2].split()[1]) == pid:
            found.append(int(folder.name))
    return found


def gone(pid: int) -> bool:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            if "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]:
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_from_a_form_to_the_result_without_a_token(ade: Ade):
    ade.write("people.csv", "Name,Age\nAnn,31\n")
    manifest = {"manifest": 1, "name": "people", "fields": [{"name": "name"}, {"name": "age", "type": "integer"}]}
    with ade.up() as running, httpx.Client(base_url=console_of(running), timeout=60) as client:
        assert not servers(running.process.pid)  # nobody has called yet
        assert "<html" in client.get("/", headers={"Accept": "text/html"}).text
        assert client.get("/openapi.json").json()["openapi"].startswith("3.")
        assert client.get("/health").status_code == 200
        form = {"tenant": "acme", "manifest": json.dumps(manifest)}
        files = [("files", ("people.csv", b"Name,Age\nAnn,31\n"))]
        (job,) = client.post("/jobs", data=form, files=files).raise_for_status().json()["jobs"]
        at = f"/jobs/{job['job_id']}"
        with client.stream("GET", f"{at}/logs", headers={"Accept": "text/event-stream"}) as stream:
            assert "event: end" in stream.read().decode()
        assert client.get(at).json()["state"] == "SUCCEEDED"
        assert client.get(f"{at}/artifact").json()["artifact_version"]
        assert client.get(f"{at}/output").content.startswith(b"PK")
        assert client.get(f"{at}/result.zip").content.startswith(b"PK")
        assert 'state="SUCCEEDED"' in client.get("/metrics").text
        (server,) = servers(running.process.pid)
        assert running.end() == 0
    assert gone(server)


def test_a_console_that_dies_is_started_again_and_dies_with_its_service(ade: Ade):
    with ade.up() as running:
        address = console_of(running)
        httpx.get(f"{address}/health", timeout=60)
        (first,) = servers(running.process.pid)
        os.kill(first, signal.SIGKILL)
        running.wait_for(lambda event: event["event"] == "console_ended")
        assert httpx.get(f"{address}/health", timeout=60).status_code == 200
        (second,) = servers(running.process.pid)
        running.process.kill()
        running.process.wait()
        assert gone(second)


def test_silent_connections_do_not_use_up_a_small_limit_of_open_files(ade: Ade):
    """Connections come faster than they can be closed, so the server may not accept all that wait at once."""
    ade.home.mkdir(exist_ok=True)
    words = ["sh", "-c", f'ulimit -n 300 && exec "{ADE}" serve']
    with subprocess.Popen(words, env=ade.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as serving:
        assert serving.stdout is not None
        url = next(e["console"] for e in map(json.loads, serving.stdout) if e["event"] == "serving")
        at = ("127.0.0.1", int(url.rpartition(":")[2]))
        with contextlib.ExitStack() as opened:
            for _ in range(600):
                opened.enter_context(socket.create_connection(at))
            assert [httpx.get(f"{url}/health", timeout=60).status_code for _ in range(5)] == [200] * 5
        serving.terminate()
        _, said = serving.communicate(timeout=60)
    assert said == b""


def test_the_port_of_another_is_left_to_it(ade: Ade):
    with ade.up() as running:
        taken = console_of(running)
        other = Ade(ade.home / "other", env={"ADE_CONSOLE_LISTEN": taken.removeprefix("http://")})
        other.home.mkdir()
        with other.up() as second:
            assert console_of(second) != taken
        assert "cannot listen" in other("serve", expect=5).err


def test_off_is_off(ade: Ade):
    with ade.up(ADE_CONSOLE_LISTEN="off") as running:
        assert next(event for event in running.events if event["event"] == "up")["console"] is None


def test_tokens_by_command(tmp_path):
    ade = Ade(tmp_path, within=True)
    made = ade("token", "new", "--name", "Ann", "--scope", "reader", "--json").json
    assert made["token"].startswith(f"ade_{made['id']}_")
    assert [one["name"] for one in ade("token", "list", "--json").json] == ["Ann"]
    assert "token" not in ade("token", "list", "--json").json[0]
    assert ade("token", "revoke", made["id"], "--json").json["name"] == "Ann"
    assert ade("token", "revoke", made["id"], expect=2).err
    assert ade("token", "new", "--name", "x", "--scope", "sender", expect=2).err
    acts = [entry["act"] for entry in ade("actions", "--json").json]
    assert acts == ["token_revoked", "token_made"]


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_the_examples_of_the_page_run_in_their_order(ade: Ade):
    text = PAGE.read_text()
    with ade.up() as running:
        blocks = re.findall(r"^```sh\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
        script = "set -eu\n" + "\n".join(blocks).replace("http://127.0.0.1:8020", console_of(running))
        # Older curls have no --json.
        script = script.replace("--json ", "-H 'Content-Type: application/json' -d ")
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=ade.home,
            env=ade.environment(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        assert (ade.home / "normalized.xlsx").read_bytes().startswith(b"PK")
