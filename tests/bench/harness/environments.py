"""Environments of the peers: one folder of tests/bench/peers each, pinned with hashes, made when first used."""

import hashlib
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from infra.deploy.local_cloud import install

PEERS = Path(__file__).parents[1] / "peers"
ROOT = Path(__file__).parents[3]
CACHE = ROOT / "bench-results"


def python_of(name: str) -> Path:
    """The interpreter of an environment."""
    pins = PEERS / name / "requirements.txt"
    digest = hashlib.sha256(pins.read_bytes()).hexdigest()[:8]  # other pins make another environment
    return install(CACHE / "venvs", f"{name}-{digest}", ("--require-hashes", "-r", str(pins))) / "python"


def versions_of(name: str) -> dict[str, str]:
    """The packages that an environment was made for, and their versions."""
    wanted = [line.partition("[")[0] for line in (PEERS / name / "requirements.in").read_text().split()]
    code = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
    said = subprocess.run([python_of(name), "-c", code, *wanted], check=True, capture_output=True, text=True)
    return dict(zip(wanted, said.stdout.split(), strict=True))


def own_versions() -> dict[str, str]:
    return {
        "python": sys.version.split()[0],
        "ade-drop": metadata.version("ade-drop"),
        "isal": metadata.version("isal"),
    }


def own_environment(**more: str) -> dict[str, str]:
    """The variables of a process of ours: none of the caller's settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("ADE_")} | more
