"""Builds the zip of the Lambda handler: our packages and the few that it imports, for one of Lambda's platforms.

The same sources and pins give the same bytes, so a deployment changes only when the handler does.
"""

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from core.errors import StoreUnavailable
from infra.own_code import ROOT, version

# The file name that `package_name` makes.
PACKAGE_NAME = re.compile(r"ade-handler-(?P<version>.+)-python(?P<python>[0-9.]+)-(?P<machine>x86_64|arm64)\.zip$")
PINS = Path(__file__).parent / "handler.txt"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MACHINES = ("x86_64", "arm64")
_OURS = ("core", "infra", "handlers", "runner/engine/expressions")
_PARENTS = ("runner/__init__.py", "runner/engine/__init__.py")  # of the language of manifests
# botocore has models of some four hundred services; the handler calls these.
_SERVICES = frozenset({"s3", "sqs", "dynamodb", "sts"})
_EPOCH = (2020, 1, 1, 0, 0, 0)


def package_name(*, python: str, machine: str) -> str:
    """Unique per version: CloudFormation updates a function only when its key changes."""
    return f"ade-handler-{version()}-python{python}-{machine}.zip"


def build(to: Path, *, python: str, machine: str = "x86_64") -> int:
    """Write the zip and return its size. Raises StoreUnavailable if pip cannot get the pinned packages."""
    with tempfile.TemporaryDirectory(prefix="ade-handler-") as folder:
        _install(Path(folder), python, machine)
        files = {**dict(_files(Path(folder), Path(folder))), **dict(_own())}
        with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in sorted(files):
                entry = zipfile.ZipInfo(name, _EPOCH)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, files[name].read_bytes())
    return to.stat().st_size


def _install(folder: Path, python: str, machine: str) -> None:
    arch = {"arm64": "aarch64"}.get(machine, machine)
    command = [
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"),
        *("--target", str(folder), "--no-deps", "--require-hashes", "--requirement", str(PINS)),
        *("--only-binary=:all:", "--implementation", "cp", "--python-version", python),
        *("--platform", f"manylinux2014_{arch}", "--platform", f"manylinux_2_28_{arch}"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PIP_USER": "0"})
    if done.returncode:
        lines = done.stderr.strip().splitlines()[-1:] or ["no words"]
        raise StoreUnavailable(f"pip cannot install {PINS.name} for Python {python} on {machine}: {lines[0]}")


def _own() -> Iterator[tuple[str, Path]]:
    for package in _OURS:
        yield from _files(ROOT / package, ROOT)
    yield from ((name, ROOT / name) for name in _PARENTS)


def _files(folder: Path, root: Path) -> Iterator[tuple[str, Path]]:
    for path in folder.rglob("*"):
        name = path.relative_to(root)
        if path.is_file() and "__pycache__" not in name.parts and _wanted(name):
            yield name.as_posix(), path


def _wanted(name: Path) -> bool:
    match name.parts:
        case ("botocore", "data", service, _, *_):
            return service in _SERVICES
        case ("boto3", ("examples" | "data"), *_) | ("bin", *_):
            return False
        case _:
            return True
