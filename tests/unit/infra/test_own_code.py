"""Where our code is, what it is built from, and what it does not load."""

import json
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from console.cli.commands import COMMANDS
from infra import own_code

PROJECT = tomllib.loads((own_code.ROOT / "pyproject.toml").read_text())["project"]
FIXED = {
    "boto3",
    "minio",
    "pydantic",
    "openpyxl",
    "apscheduler",
    "tenacity",
}  # whatever else is optional, these are not
CLIENTS = {"boto3", "botocore", "minio", *own_code.EXTRAS}
# Runs commands one after the other in one process, and tells after each which clients are loaded.
RUN = """
import contextlib, io, json, sys
from console.cli.main import main
clients, *commands = json.loads(sys.argv[1])
loaded = []
for words in commands:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code
    loaded.append([words, code, err.getvalue(), sorted({n.partition(".")[0] for n in sys.modules} & set(clients))])
print(json.dumps(loaded))
"""
WITHOUT = "import sys; sys.modules[sys.argv.pop(1)] = None; from console.cli import start; sys.exit(start())"
STAYS = {"up", "serve", "listen"}  # they run until they are stopped
NEEDS_CLOUD = {"infra", "deploy"}


def names(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(line).name) for line in requirements}


def test_the_fixed_packages_are_always_installed():
    assert names(PROJECT["dependencies"]) >= FIXED


def test_each_package_of_an_extra_is_known_by_its_modules():
    """So that whoever lacks it reads what to install."""
    distributions = packages_distributions()
    known = {
        (extra, canonicalize_name(name)) for module, extra in own_code.EXTRAS.items() for name in distributions[module]
    }
    extras = {name: lines for name, lines in PROJECT["optional-dependencies"].items() if name != "dev"}
    assert set(own_code.EXTRAS.values()) == set(extras)
    assert {(extra, name) for extra, lines in extras.items() for name in names(lines)} <= known


def commands(home: Path) -> list[list[str]]:
    """Every command in the embedded mode, one way of each."""
    sample, manifest = str(home / "members" / "sample.csv"), str(home / "members" / "manifest.json")
    done = [
        ["version"], ["init", str(home / "members")], ["manifest-schema"], ["completion", "bash"],
        ["init", str(home / "drafted"), "--from", sample], ["contract", "export", "--to", "odcs", manifest],
        ["template", manifest, "--out", str(home / "blank.xlsx")],
        ["drop", sample, "--manifest", manifest, "--tenant", "acme"], ["sweep"], ["run", "--drain"],
        ["try", sample, "--manifest", manifest, "--out", str(home / "out")], ["scan", sample],
        ["map", sample, "--manifest", manifest], ["jobs"], ["jobs", "--json"], ["status", "none"], ["logs", "none"],
        ["outputs", "none"], ["review", "none"], ["retry", "none"], ["retry-failed"], ["cancel", "none"],
        ["reset", "none", "--yes"], ["remove", "none", "--yes"], ["pause"], ["resume"], ["queue", "stats"],
        ["janitor", "run-once"], ["token", "list"], ["actions"], ["doctor"], ["memory", "show", "--tenant", "acme", "members"],
        ["learn", "--help"], ["demo", "--help"], ["test", "--help"], ["diff", "--help"], ["explain", "--help"],
        ["workflow", "--help"], ["unload", "--help"], ["replay", "--help"], ["backup", str(home / "copy")], ["restore", "--help"],
        ["quarantine"], ["erase", "--help"], ["move", "--help"], ["link", "list"],
    ]  # fmt: skip
    return [*done, *([name, "--help"] for name in (STAYS | NEEDS_CLOUD))]


@pytest.mark.slow
def test_no_command_loads_a_client_that_it_does_not_use(tmp_path: Path):
    words = commands(tmp_path)
    assert {line[0] for line in words} == set(COMMANDS)
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps([sorted(CLIENTS), *words])],
        env={"PATH": "/usr/bin:/bin", "ADE_STORAGE_DATA_DIR": str(tmp_path / "data")},
        cwd=tmp_path, check=True, capture_output=True, text=True,
    )  # fmt: skip
    ran = json.loads(done.stdout)
    assert [(line, loaded) for line, _, _, loaded in ran if loaded] == []
    assert [(line, code, said) for line, code, said, _ in ran if code not in (0, 2)] == []
    assert {line[0] for line, code, _, _ in ran if code == 0} >= {"run", "try", "jobs", "queue", "doctor", "janitor"}


@pytest.mark.parametrize(
    ("module", "words", "settings"),
    [
        ("psycopg", ["jobs"], {"ADE_TABLE_URL": "postgresql://ade@127.0.0.1:1/ade"}),
        ("psycopg_pool", ["doctor"], {"ADE_QUEUE_URL": "postgresql://ade@127.0.0.1:1/ade"}),
        ("starlette", ["serve"], {}),
        ("jinja2", ["serve"], {}),
        ("opentelemetry.sdk", ["run", "--drain"], {"ADE_TELEMETRY": "true"}),
    ],
)
def test_a_missing_extra_is_named_with_its_install_line(
    tmp_path: Path, module: str, words: list[str], settings: dict[str, str]
):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, module, *words],
        env={"PATH": "/usr/bin:/bin", "ADE_STORAGE_DATA_DIR": str(tmp_path / "data"), **settings},
        cwd=tmp_path, check=False, capture_output=True, text=True,
    )  # fmt: skip
    extra = own_code.EXTRAS[module.partition(".")[0]]
    assert done.returncode == 2, done.stderr
    assert f"pip install 'ade-drop[{extra}]'" in done.stderr
    assert module.partition(".")[0] in done.stderr


def test_the_commit_is_the_builds_or_gits_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(own_code, "ROOT", tmp_path)
    commit = own_code.commit.__wrapped__
    assert commit() is None
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "--message", "x"]):
        subprocess.run([*git, *words], check=True)
    asked = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    assert commit() == asked.stdout[:12]
    (tmp_path / own_code.COMMIT).write_text("1a2b3c4d5e6f\n")
    assert commit() == "1a2b3c4d5e6f"
