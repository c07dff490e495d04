"""`ade up --local-cloud`: what it prints can be copied without harm, and its ports stay what they were."""

import json
import os
import re
import shlex
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.cli.use_local_cloud import how_to
from core.errors import UsageError
from infra.deploy.local_cloud import Ports, Server, free_port, install, reserve_ports
from tests.support.wheels import make_wheel

STORE = Server("SeaweedFS", "http://127.0.0.1:8333", "key", "secret", 1)
USUAL = {"s3": 0, "aws": 0, "webhook": 0}


@pytest.fixture
def usual() -> dict[str, int]:
    return {name: free_port() for name in USUAL}


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


class TestPrintedCommands:
    @pytest.fixture
    def commands(self) -> list[list[str]]:
        lines = how_to(STORE, {"AWS_ACCESS_KEY_ID": "key"})
        return [shlex.split(line) for line in lines if re.match(r"  (aws|rclone|s5cmd) ", line)]

    def test_upload_one_named_folder(self, commands: list[list[str]]):
        """Copied in a home folder, `.` would send all of it."""
        assert len(commands) == 3
        for words in commands:
            assert "drop" in words or "drop/*" in words, words
            assert not {".", "./*", "*", "~"} & set(words), words

    def test_the_folder_is_made_before(self):
        lines = [line.strip() for line in how_to(STORE, {})]
        assert lines.index("mkdir -p drop") < next(n for n, line in enumerate(lines) if line.startswith("aws "))


class TestInstall:
    WITH_UV = '#!/bin/sh\necho "$@" > "$0.asked"\nexit {code}\n'

    @pytest.fixture(params=[0, 2])
    def uv(self, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, int]:
        """A uv that installs nothing, and its exit code."""
        program = tmp_path / "tools" / "uv"
        program.parent.mkdir()
        program.write_text(self.WITH_UV.format(code=request.param))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        return program, request.param

    def test_uv_is_asked_where_it_is_there_and_pip_where_uv_fails(self, tmp_path: Path, uv: tuple[Path, int]):
        program, code = uv
        wheel = make_wheel(tmp_path, "apple")
        bin_folder = install(tmp_path / "venvs", "fruit", (str(wheel),))
        python = str(bin_folder / "python")
        assert program.with_name("uv.asked").read_text().split() == [
            "pip", "install", "--quiet", "--python", python, str(wheel),
        ]  # fmt: skip
        found = subprocess.run([python, "-c", "import apple"], check=False, capture_output=True)
        assert (found.returncode == 0) == (code != 0)
        program.unlink()
        assert install(tmp_path / "venvs", "fruit", (str(wheel),)) == bin_folder, "it is not installed again"


class TestFreePort:
    def test_is_not_one_that_an_outgoing_connection_may_take_before_the_server_binds_it(self):
        outgoing = Path("/proc/sys/net/ipv4/ip_local_port_range")
        lowest = int(outgoing.read_text().split()[0]) if outgoing.exists() else 32_768
        if lowest < 20_000:
            pytest.skip("this machine gives low ports to outgoing connections")
        assert all(free_port() < lowest for _ in range(20))

    def test_is_never_given_twice(self):
        given = [free_port() for _ in range(200)]
        assert len(set(given)) == len(given)


class TestPorts:
    def test_are_the_usual_ones_at_first(self, tmp_path: Path, usual: dict[str, int]):
        assert reserve_ports(tmp_path, usual) == Ports(**usual)

    def test_one_that_is_taken_at_first_gives_way_to_another(self, tmp_path: Path, usual: dict[str, int], taken: int):
        given = reserve_ports(tmp_path, usual | {"s3": taken})
        assert given.s3 != taken
        assert (given.aws, given.webhook) == (usual["aws"], usual["webhook"])

    def test_stay_the_same_from_then_on(self, tmp_path: Path, usual: dict[str, int], taken: int):
        """Even where the usual port is free again: exports and scripts of people name the other one."""
        first = reserve_ports(tmp_path, usual | {"aws": taken})
        assert reserve_ports(tmp_path, usual) == first

    def test_one_that_somebody_took_meanwhile_is_reported_with_what_to_do(self, tmp_path: Path, usual: dict[str, int]):
        first = reserve_ports(tmp_path, usual)
        with (
            socket.create_server(("127.0.0.1", first.s3)),
            pytest.raises(UsageError, match=rf"port {first.s3} \(s3\).*ports\.json"),
        ):
            reserve_ports(tmp_path, usual)

    def test_one_in_time_wait_is_not_taken(self, tmp_path: Path, usual: dict[str, int]):
        """A restart at once finds connections of the last run that are not quite gone."""
        first = reserve_ports(tmp_path, usual)
        with socket.create_server(("127.0.0.1", first.s3)) as server:
            client = socket.create_connection(server.getsockname())
            accepted, _ = server.accept()
            accepted.close()  # the side that closes first is the one that waits
            client.close()
        assert reserve_ports(tmp_path, usual) == first

    @pytest.mark.parametrize("text", ["", "{", "[]", '{"s3": 1}', '{"s3": "x", "aws": 2, "webhook": 3}'])
    def test_a_file_that_says_nothing_is_written_anew(self, tmp_path: Path, usual: dict[str, int], text: str):
        (tmp_path / "ports.json").write_text(text)
        assert reserve_ports(tmp_path, usual) == Ports(**usual)
        assert json.loads((tmp_path / "ports.json").read_text()) == usual

    def test_no_two_servers_get_the_same(self, tmp_path: Path, taken: int):
        given = reserve_ports(tmp_path, dict.fromkeys(USUAL, taken))
        assert len({given.s3, given.aws, given.webhook, taken}) == 4
