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

ROOT = Path(__file__).parents[2]
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


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    """The folder in which `ade deploy package` ran, and what it printed."""
    folder = tmp_path_factory.mktemp("package")
    return folder, Ade(folder)("deploy", "package", "--json", "--python", PYTHON).json


@pytest.mark.slow
@pytest.mark.xdist_group("zip")
def test_a_folder_gets_the_zip_under_that_name(packaged: tuple[Path, dict[str, object]]):
    folder, said = packaged
    assert said["to"] == NAME
    assert (folder / NAME).stat().st_size == said["bytes"]


@pytest.fixture
def built() -> Path:
    return made_once("handler.zip", lambda path: handler_zip.build(path, python=PYTHON))


@pytest.mark.slow
@pytest.mark.xdist_group("zip")
class TestZip:
    def test_it_needs_nothing_but_itself_and_python(self, built: Path, tmp_path: Path):
        with zipfile.ZipFile(built) as archive:
            archive.extractall(tmp_path)
        # -S and -I: no packages but those in the zip.
        subprocess.run([sys.executable, "-S", "-I", "-c", ALONE, str(tmp_path)], check=True, timeout=120)

    def test_it_is_small_enough_for_a_quick_start(self, built: Path):
        assert built.stat().st_size < 10 * 1024 * 1024

    def test_the_same_sources_give_the_same_bytes(self, built: Path, packaged: tuple[Path, dict[str, object]]):
        assert (packaged[0] / NAME).read_bytes() == built.read_bytes()
