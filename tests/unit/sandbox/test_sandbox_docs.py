"""The page about the sandbox: its example, its tables and its numbers are those of the code."""

import re

from core.settings import Settings
from runner.sandbox.drivers import DRIVERS, LEVELS
from runner.sandbox.install.wheels import parse
from runner.sandbox.session import OWN_ROOT
from tests.abuse.cases import CASES

PAGE = (OWN_ROOT / "docs" / "explanation" / "sandbox.md").read_text(encoding="utf-8")


def test_the_requirements_of_the_example_are_taken():
    (example,) = re.findall(r"```\n(# one name.*?)```", PAGE, re.DOTALL)
    wanted, strict = parse(example)
    assert [item.name for item in wanted] == ["rapidfuzz", "lookups"]
    assert strict


def test_every_driver_and_level_is_on_the_page():
    for word in (*DRIVERS, *LEVELS):
        assert f"| `{word}`" in PAGE, word


def test_the_number_of_cases_is_the_number_on_the_page():
    assert f"{len(CASES)} hostile rules" in PAGE


def test_every_setting_on_the_page_exists():
    known = {f"ADE_{name.upper()}" for name in Settings.__dataclass_fields__}
    assert set(re.findall(r"ADE_[A-Z_]+", PAGE)) <= known
