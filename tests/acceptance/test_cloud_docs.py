"""The examples of docs/guides/cloud.md, run as they stand: on a cloud of this machine, and with MiniStack in AWS's place."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.ade import Ade
from tests.contract import servers
from tests.support.clients import clients
from tests.support.strict_cloud import strict_ministack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "cloud.md"
TRUSTED = {"ADE_SANDBOX": "process", "ADE_SANDBOX_MIN_LEVEL": "limits"}
TENANTS = {"acme": "from-aws", "beta": "from-s5cmd", "gamma": "from-rclone"}


@pytest.fixture(scope="module", autouse=True)
def _servers() -> Iterator[None]:
    servers.seaweedfs()  # both are installed, or this is skipped at a desk
    servers.ministack()
    yield
    servers.stop_all()


@pytest.fixture(scope="module")
def path() -> str:
    """A PATH with the tools that senders use."""
    return f"{clients()}:{os.environ['PATH']}"


def blocks(heading: str) -> list[str]:
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"^```sh\n(.*?)^```", section, flags=re.MULTILINE | re.DOTALL)
    assert found, f"{heading} has no example"
    return found


def sh(script: str, home: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-c", f"set -eu\n{script}"], cwd=home, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_no_example_is_outside_what_is_run():
    run = blocks("Try it with no Docker and no account") + blocks("On AWS")
    assert len(re.findall(r"^```sh$", PAGE.read_text(), flags=re.MULTILINE)) == len(run)


def test_the_quick_start_on_a_cloud_of_this_machine(tmp_path: Path, path: str):
    (tmp_path / "data" / "local-cloud").mkdir(parents=True)
    (tmp_path / "data" / "local-cloud" / "venvs").symlink_to(servers.VENVS)
    put, fetch = blocks("Try it with no Docker and no account")
    ade = Ade(tmp_path, TRUSTED | {"ADE_SWEEP_SECONDS": "3600"})
    with ade.up("up", "--local-cloud") as up:
        said = "".join(iter(up.process.stderr.readline, "  ade jobs\n"))
        told = dict(re.findall(r"export (\w+)='(.*)'", said))
        (endpoint,) = re.findall(r"aws --endpoint-url (\S+)", said)
        environment = ade.environment(**told)
        environment["PATH"] = f"{path}:{environment['PATH']}"
        sh(put.replace("http://127.0.0.1:8333", endpoint), tmp_path, environment)
        for tenant in TENANTS:
            assert up.ended(tenant)["state"] == "SUCCEEDED"
        sh(fetch.replace("http://127.0.0.1:8333", endpoint), tmp_path, environment)
        assert up.end() == 0
    for tenant, folder in TENANTS.items():
        names = {found.name for found in (tmp_path / folder).rglob("*") if found.is_file()}
        assert {"result.json", "normalized.xlsx"} <= names, tenant


def test_a_stack_from_package_to_result(path: str, tmp_path: Path):
    with (
        tempfile.TemporaryDirectory(prefix="ade-strict-") as data,
        strict_ministack(servers.VENVS, Path(data)) as server,
    ):
        environment = Ade(tmp_path, TRUSTED | server.environment | {"AWS_ENDPOINT_URL": server.endpoint}).environment()
        environment["PATH"] = f"{path}:{environment['PATH']}"
        deploy, use = (block.replace("3.12", f"3.{sys.version_info.minor}") for block in blocks("On AWS"))
        sh(deploy, tmp_path, environment)
        said = sh(use, tmp_path, environment)
    assert "SUCCEEDED" in said.splitlines()[-1]
