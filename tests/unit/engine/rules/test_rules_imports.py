"""Rules import what they bring, whatever the engine has under the same name, and the engine goes on with its own."""

import ast
import sys
from pathlib import Path

import openpyxl
import pytest

from runner.engine.imports import OWN_NAMES
from tests.acceptance.ade import Ade
from tests.support.wheels import make_wheel

ENGINE = Path(__file__).parents[4] / "runner" / "engine"
ROOMS = ("core", "handlers", "infra", "runner", "console")
MANIFEST = '{"manifest": 1, "name": "names", "config": "config", "fields": [{"name": "who"}]}'
RULE = """
import importlib
import core
from core.inner import NAME as inner

def transform(*, value):
    import chardet, handlers.inner
    from infra import NAME as third
    from runner import inner as fourth
    from runner.engine import NAME as fifth
    sixth = importlib.import_module("console.inner")
    return " ".join([core.NAME, inner, handlers.inner.NAME, third, fourth.NAME, fifth, sixth.NAME, chardet.NAME])
"""
EXPECTED = "core core.inner handlers.inner infra runner.inner runner.engine console.inner chardet"
SEARCH = """
import importlib

def transform(*, value):
    found = []
    for name in ("core", "handlers", "infra", "console"):
        try:
            found.append(importlib.import_module(name).__file__)
        except ImportError:
            continue
    return " ".join(found) or "none"
"""


def package_of(name: str) -> dict[str, str]:
    files = {f"{name}/__init__.py": f"NAME = {name!r}\n"}
    return files | {f"{name}/{inner}.py": f"NAME = '{name}.{inner}'\n" for inner in ("inner", "engine")}


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def tried(home: Path, content: bytes, driver: str, **env: str) -> list[str]:
    """The values of the only column of what comes out."""
    (home / "people.csv").write_bytes(content)
    (home / "manifest.json").write_text(MANIFEST)
    Ade(home)(
        "try",
        home / "people.csv",
        "--manifest",
        home / "manifest.json",
        "--out",
        home / "out",
        ADE_SANDBOX=driver,
        ADE_SANDBOX_MIN_LEVEL="limits",
        **env,
    )
    sheet = openpyxl.load_workbook(home / "out" / "normalized.xlsx").worksheets[0]
    return [row[0] for row in sheet.iter_rows(min_row=2, values_only=True)]


def test_the_list_of_names_is_what_the_engine_imports():
    imported = set()
    for path in ENGINE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add((node.module or "").partition(".")[0])
    assert imported - sys.stdlib_module_names == set(OWN_NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["jail", "process"])
class TestInABox:
    def test_requirements_bring_names_of_ours(self, tmp_path: Path, driver: str):
        house, names = tmp_path / "house", (*ROOMS, "chardet", "isal")
        for name in names:
            make_wheel(house, name, files=package_of(name))
        write(tmp_path / "config", {"columns/who.py": RULE, "requirements.txt": "\n".join(names)})
        # The engine loads its own chardet for a file in an older encoding, after the rules have loaded theirs.
        content = "Who\n" + "".join(f"José Nuñez {n}\n" for n in range(9))
        found = tried(tmp_path, content.encode("cp1252"), driver, ADE_WHEELHOUSE=str(house))
        assert set(found) == {EXPECTED}

    def test_a_helper_of_the_config_has_a_name_of_ours(self, tmp_path: Path, driver: str):
        rule = "import runner, core\ndef transform(*, value): return f'{runner.NAME} of {core.NAME}'\n"
        helpers = {"runner.py": "NAME = 'helper'\n", "core.py": "NAME = 'mine'\n"}
        write(tmp_path / "config", {"columns/who.py": rule, **helpers})
        assert tried(tmp_path, b"Who\nAnn\nBob\n", driver) == ["helper of mine"] * 2

    def test_a_rule_without_such_a_package_gets_none_of_ours(self, tmp_path: Path, driver: str):
        write(tmp_path / "config", {"columns/who.py": SEARCH})
        assert tried(tmp_path, b"Who\nAnn\nBob\n", driver) == ["none"] * 2
