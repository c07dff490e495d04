"""The handler's zip: the pins of the rest of the product, nothing missing, and the same bytes again."""

import re
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from infra.deploy import handler_zip
from tests.acceptance.ade import Ade
from tests.support.keeper import made_once

ROOT = Path(__file__).parents[3]
PYTHON = f"3.{sys.version_info.minor}"
ALONE = """
import sys
sys.path.insert(0, sys.argv[1])
import handlers.sources.aws_lambda, infra.aws.s3, infra.aws.dynamodb, infra.aws.sqs
from infra.addresses import parse_address
from infra.aws.calls import client
for service in ("s3", "sqs", "dynamodb"):
    client(parse_address(f"{service}://x?endpoint=http://127.0.0.1:1")).close()
"""


def pins(path: Path) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", path.read_text(), flags=re.MULTILINE))


def test_the_handler_has_the_pins_of_the_rest():
    rest = pins(ROOT / "requirements" / "runtime.txt")
    assert {name: rest.get(name) for name in pins(handler_zip.PINS)} == pins(handler_zip.PINS)


@pytest.mark.parametrize("machine", handler_zip.MACHINES)
@pytest.mark.parametrize("python", handler_zip.PYTHONS)
def test_its_name_says_version_python_and_machine_and_the_template_reads_it(python: str, machine: str):
    name = handler_zip.package_name(python=python, machine=machine)
    told = handler_zip.PACKAGE_NAME.search(name)
    assert told is not None
    assert told.groupdict() == {"version": version("ade-drop"), "python": python, "machine": machine}


NAME = handler_zip.package_name(python=PYTHON, machine="x86_64")


@pytest.fixture
def built() -> Path:
    return made_once("handler.zip", lambda path: handler_zip.build(path, python=PYTHON))


@pytest.mark.slow
class TestZip:
    def test_it_needs_nothing_but_itself_and_python(self, built: Path, tmp_path: Path):
        with zipfile.ZipFile(built) as archive:
            archive.extractall(tmp_path)
        # -S and -I: no packages but those in the zip.
        subprocess.run([sys.executable, "-S", "-I", "-c", ALONE, str(tmp_path)], check=True, timeout=120)

    def test_it_is_small_enough_for_a_quick_start(self, built: Path):
        assert built.stat().st_size < 10 * 1024 * 1024

    def test_a_folder_gets_the_same_bytes_under_that_name(self, built: Path, tmp_path: Path):
        said = Ade(tmp_path)("deploy", "package", "--json", "--python", PYTHON).json
        assert said["to"] == NAME
        assert (tmp_path / NAME).stat().st_size == said["bytes"]
        assert (tmp_path / NAME).read_bytes() == built.read_bytes()
