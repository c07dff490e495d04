"""The linters of other tools accept our exports; each tool is installed from PyPI into an environment of its own.

A hundred megabytes for each: they run with ADE_TEST_FULL=1, and whenever an export changes
(`ADE_TEST_FULL=1 pytest tests/unit/console/test_foreign_linters.py`). ADE_TEST_LINTERS names a folder to keep them in.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from console.contracts import exported
from tests.unit.console.test_contracts import MANIFEST

pytestmark = [pytest.mark.long, pytest.mark.slow]


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """Installs a tool once; returns the folder of its programs."""
    kept = os.environ.get("ADE_TEST_LINTERS")
    home = Path(kept) if kept else tmp_path_factory.mktemp("linters")

    def install(name):
        place = home / name
        if not (place / "installed").exists():
            subprocess.run([sys.executable, "-m", "venv", place], check=True)
            done = subprocess.run(
                [place / "bin" / "pip", "install", "-q", name], capture_output=True, text=True, check=False
            )
            if done.returncode:
                pytest.skip(f"{name} cannot be installed here: {done.stderr[-200:]}")
            (place / "installed").touch()
        return place / "bin"

    return install


def run(*words):
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False, timeout=120)


def test_datacontract_lints_the_odcs_export(tools, tmp_path):
    path = tmp_path / "orders.odcs.yaml"
    path.write_text(exported(MANIFEST, "odcs"))
    done = run(tools("datacontract-cli") / "datacontract", "lint", path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "valid against ODCS v3.1.0" in done.stdout


def test_datacontract_refuses_what_is_no_odcs(tools, tmp_path):
    """The linter above would not pass anything."""
    path = tmp_path / "orders.odcs.yaml"
    path.write_text(exported(MANIFEST, "odcs").replace("logicalType: integer", "logicalType: whole"))
    assert run(tools("datacontract-cli") / "datacontract", "lint", path).returncode != 0


ROWS = "order_id,qty,price,rate,day,at,clock,ok,mail,tel,web,status,size,code,note\n"
GOOD = "A1234,5,1.50,0.2,2026-01-31,2026-01-31T10:00:00,10:00:00,true,a@example.com,+49301234567,https://example.com,open,2,AB,\n"


@pytest.mark.parametrize(
    ("row", "accepted"),
    [
        (GOOD, True),
        (GOOD.replace(",AB,", ",way too long,"), True),  # a warning is no constraint
        (GOOD.replace("A1234", "A12345"), False),
        (GOOD.replace(",5,", ",1001,"), False),
        (GOOD.replace("open", "new"), False),
        (GOOD.replace("true", ""), False),
        (GOOD + GOOD, False),
    ],
)
def test_frictionless_judges_rows_by_the_export(tools, tmp_path, row, accepted):
    schema, data = tmp_path / "schema.json", tmp_path / "rows.csv"
    schema.write_text(exported(MANIFEST, "frictionless"))
    data.write_text(ROWS + row)
    done = run(tools("frictionless") / "frictionless", "validate", data, "--schema", schema, "--json", "--trusted")
    report = json.loads(done.stdout)
    assert report["valid"] is accepted, done.stdout
