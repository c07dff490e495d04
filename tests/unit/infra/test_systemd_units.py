"""The units of infra/deploy/systemd: systemd takes them, they start what they say, and the page names them."""

import configparser
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from console.cli.commands import COMMANDS
from console.cli.signals import LAST_SECONDS
from core.settings import Settings, unknown_variables

ROOT = Path(__file__).parents[3]
UNITS = sorted((ROOT / "infra/deploy/systemd").glob("*.service"))
PAGE = (ROOT / "docs/guides/services.md").read_text()


def read(unit: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read_string(unit.read_text())
    return parser


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_starts_a_command_that_exists_and_waits_for_its_drain(unit: Path):
    service = read(unit)["Service"]
    program, command = service["ExecStart"].split()[:2]
    assert program == "/opt/ade/bin/ade"
    assert command in COMMANDS
    if command != "serve":
        assert int(service["TimeoutStopSec"]) > Settings().drain_seconds + LAST_SECONDS
    name, _, value = service["Environment"].partition("=")
    assert unknown_variables({name: value}) == []
    assert value == f"/var/lib/{service['StateDirectory']}"
    assert service["User"] == "ade"
    assert service["NoNewPrivileges"] == "yes"
    assert "RestrictNamespaces" not in service, "boxes need them"
    assert f"`{unit.name}`" in PAGE


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path):
    for unit in UNITS:
        text = unit.read_text().replace("/opt/ade/bin/ade", str(Path(sys.executable).with_name("ade")))
        text = text.replace("User=ade\nGroup=ade\n", "User=root\n")
        name = unit.name.replace("@", "@1")
        (tmp_path / name).write_text(text)
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", tmp_path / name],
            env=os.environ | {"SYSTEMD_LOG_LEVEL": "warning"},
            capture_output=True,
            text=True,
            check=False,
        )
        ours = [line for line in done.stderr.splitlines() if str(tmp_path) in line or name in line]
        assert (done.returncode, ours) == (0, []), done.stderr
