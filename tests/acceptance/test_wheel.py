"""The built wheel owns one name: nothing else in an environment, and nothing that a tenant brings, gets in its way."""

import json
import re
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from infra import own_code
from tests.support.wheels import Environment, build_own_wheel, make_wheel

pytestmark = pytest.mark.slow
ROOMS = ("core", "handlers", "infra", "runner", "console")
STRANGERS = {f"{room}/__init__.py": f"WHOSE = 'strangers: {room}'\n" for room in ROOMS}
CONFIG = {
    "manifest.json": json.dumps({"manifest": 1, "name": "names", "config": ".", "fields": [{"name": "who"}]}),
    "columns/who.py": """
import core
def transform(*, value):
    from runner import WHOSE
    return f"{core.WHOSE}, {WHOSE}"
""",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_own_wheel(tmp_path_factory.mktemp("wheel"))


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def worked(done: "subprocess.CompletedProcess[str]") -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def normalize(environment: Environment, home: Path, **env: str) -> list[Any]:
    """Drop a file and run its job, with rules in a box: the values of the only column."""
    settings = {"ADE_STORAGE_DATA_DIR": str(home / "data"), **env}
    (home / "people.csv").write_text("Who\nAnn\nBob\n")
    words = ("try", "people.csv", "--manifest", "manifest.json", "--out", "out")
    worked(environment.run("ade", *words, cwd=home, **settings))
    sheet = openpyxl.load_workbook(home / "out" / "normalized.xlsx").worksheets[0]
    return [row[0] for row in sheet.iter_rows(min_row=2, values_only=True)]


def whose(environment: Environment, home: Path) -> list[str]:
    """What an ordinary program of the environment imports under our names."""
    code = "import " + ", ".join(ROOMS) + "; print(*(m.WHOSE for m in (" + ", ".join(ROOMS) + ")), sep='\\n')"
    return worked(environment.run("python", "-c", code, cwd=home)).splitlines()


def test_it_has_one_package_types_the_licence_and_the_commit(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (archive.read(name).decode() for name in names if name.endswith("/METADATA"))
        (commands,) = (archive.read(name).decode() for name in names if name.endswith("/entry_points.txt"))
    info = f"{wheel.name.rpartition('-py3')[0]}.dist-info"
    assert {name.partition("/")[0] for name in names} == {"ade_drop", info}
    assert {"ade_drop/py.typed", f"{info}/licenses/LICENSE", "ade_drop/runner/engine/mapping/matcher.json"} <= names
    assert commands.split() == ["[console_scripts]", "ade", "=", "ade_drop.__main__:start"]
    assert "Project-URL: " in metadata


def test_an_image_is_given_all_that_the_wheel_is_built_from(wheel: Path, tmp_path: Path):
    source = tmp_path / "src"
    source.mkdir()
    dockerfile = (own_code.ROOT / "infra" / "deploy" / "runner.Dockerfile").read_text()
    allowed = (own_code.ROOT / ".dockerignore").read_text().splitlines()
    for line in re.findall(r"^COPY (?!--from)(.+)$", dockerfile, re.MULTILINE):
        for name in line.split()[:-1]:
            assert f"!{name}" in allowed
            (source / name).parent.mkdir(exist_ok=True)
            (source / name).symlink_to(own_code.ROOT / name)
    built = build_own_wheel(tmp_path / "built", source, ADE_COMMIT="1a2b3c4d5e6f7a8b")
    with zipfile.ZipFile(built) as theirs, zipfile.ZipFile(wheel) as ours:
        assert theirs.namelist() == ours.namelist()
        assert theirs.read("ade_drop/COMMIT") == b"1a2b3c4d5e6f\n"


def test_another_distribution_has_our_names(wheel: Path, tmp_path: Path):
    """Both work, in any order of installing, and taking either away leaves the other as it was."""
    environment = Environment(tmp_path / "env")
    stranger = make_wheel(tmp_path, "stranger", files=STRANGERS)
    home = tmp_path / "home"
    write(home, CONFIG)
    environment.pip("install", wheel, stranger)
    assert environment.names == {"ade_drop", *ROOMS}
    theirs = [f"strangers: {room}" for room in ROOMS]
    assert whose(environment, home) == theirs
    # The rules bring no `core` here: they get what is installed, as any program does.
    assert normalize(environment, home) == ["strangers: core, strangers: runner"] * 2
    for words in (
        ("drop", "people.csv", "--manifest", "manifest.json", "--tenant", "acme"),
        ("run", "--drain"),
        ("scan", "people.csv"),
    ):
        worked(environment.run("ade", *words, cwd=home))
    (job,) = json.loads(worked(environment.run("ade", "jobs", "--json", cwd=home)))
    assert job["state"] == "SUCCEEDED"
    environment.pip("uninstall", "stranger")
    assert environment.names == {"ade_drop"}
    assert "SUCCEEDED" in worked(environment.run("ade", "jobs", cwd=home))
    assert f"commit {own_code.commit()}" in worked(environment.run("ade", "--version", cwd=home))
    environment.pip("install", stranger)
    environment.pip("uninstall", "ade-drop")
    assert environment.names == set(ROOMS)
    assert whose(environment, home) == theirs
    assert not (environment.bin / "ade").exists()


def test_a_tenant_brings_our_names(wheel: Path, tmp_path: Path):
    """Its rules get its own, also where the environment has others under these names."""
    environment = Environment(tmp_path / "env")
    environment.pip("install", wheel, make_wheel(tmp_path, "stranger", files=STRANGERS))
    house, home = tmp_path / "house", tmp_path / "home"
    for room in ("core", "runner"):
        make_wheel(house, room, files={f"{room}/__init__.py": f"WHOSE = 'tenants: {room}'\n"})
    write(home, CONFIG | {"requirements.txt": "core\nrunner\n"})
    assert normalize(environment, home, ADE_WHEELHOUSE=str(house)) == ["tenants: core, tenants: runner"] * 2
