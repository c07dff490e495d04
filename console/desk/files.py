"""A manifest on a local disk and what belongs to it, under the keys it would have in the bucket."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from posixpath import join

from core.drops import Package, Workflow, find_package, is_case_file, make_workflow
from core.errors import ObjectMissing, ObjectTooLarge, UsageError
from core.keys import INBOX, is_manifest
from core.manifests import MAX_MANIFEST_BYTES, Manifest
from core.packages import check_zip
from core.ports import Fetched, ObjectInfo
from infra import parsing

_BLOCK = 1024 * 1024
_IGNORED = {"__pycache__", ".git", ".venv"}


@dataclass(frozen=True, slots=True)
class Desk:
    workflow: Workflow
    package: Package
    files: dict[str, Path]  # config and auxiliary inputs by key; the manifest is not among them
    manifest_path: Path

    def auxiliary(self) -> dict[str, ObjectInfo]:
        keys = self.workflow.auxiliary_keys()
        return {key: info_of(key, path) for key, path in self.files.items() if key in keys}


def find_manifest(place: Path) -> Path:
    """The manifest of a config package, which is a folder, or the manifest itself. Raises UsageError."""
    if not place.exists():
        raise UsageError(f"manifest {place}: no such file or folder")
    if not place.is_dir():
        return place
    if (place / "manifest.json").is_file():
        return place / "manifest.json"
    found = sorted(path for path in place.glob("*.json") if is_manifest(path.name))
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"{place} has no manifest.json; name the folder of a config package, or its manifest")
    raise UsageError(f"{place} has several manifests; name one: {', '.join(map(str, found[:5]))}")


def read_manifest(path: Path) -> Manifest:
    """Raises ManifestInvalid, or UsageError if there is no such file."""
    try:
        with path.open("rb") as source:
            return parsing.read_manifest(source.read(MAX_MANIFEST_BYTES + 1))
    except OSError as error:
        raise UsageError(f"manifest {path}: {error.strerror}") from None


def lay_out(path: Path, manifest: Manifest, *, folder: str, bucket: Path | None = None) -> Desk:
    """Collect the files beside a manifest. `bucket`: where to find keys of the bucket itself, if anywhere."""
    beside = path.absolute().parent
    if manifest.config is None and not (beside / "config").is_dir() and (beside / "config.zip").is_file():
        manifest = manifest.model_copy(update={"config": "config.zip"})
    workflow = make_workflow(manifest, info_of(folder + manifest_name(path), path))

    def local(key: str) -> Path | None:
        stored = None if bucket is None else bucket / key
        if not key.startswith(folder) or (stored is not None and stored.is_file()):
            return stored
        return beside / key.removeprefix(folder)

    files: dict[str, Path] = {}
    for key in _config_keys(workflow, local):
        found = local(key)
        is_case = is_case_file(key.removeprefix(workflow.config_place))
        if found is not None and workflow.is_config(key) and not is_case:
            files[key] = found
    package = find_package(workflow, [info_of(key, file) for key, file in files.items()])
    if workflow.config_place.endswith(".zip") and not package.missing:
        check_zip(files[workflow.config_place].read_bytes())
    for key in workflow.auxiliary_keys():
        found = local(key)
        if found is not None and found.is_file():
            files[key] = found
    return Desk(workflow, package, files, path)


def _config_keys(workflow: Workflow, local: Callable[[str], Path | None]) -> list[str]:
    """The key of every file in the config's place, whether it belongs to the package or not."""
    at = workflow.config_place
    place = local(at)
    if place is None:
        return []
    if not at.endswith("/"):
        return [at] if place.is_file() else []
    found = []
    for folder, folders, names in os.walk(place):
        folders[:] = sorted(f for f in folders if f not in _IGNORED and not (Path(folder) / f).is_symlink())
        below = Path(folder).relative_to(place).as_posix()
        found += [
            at + (name if below == "." else join(below, name))
            for name in sorted(names)
            if not name.startswith(".") and not (Path(folder) / name).is_symlink()
        ]
    return found


def manifest_name(path: Path) -> str:
    """A manifest's name in the bucket: its own if that is a manifest's name."""
    return path.name if is_manifest(path.name) else "manifest.json"


def info_of(key: str, path: Path) -> ObjectInfo:
    hasher, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as source:
            while block := source.read(_BLOCK):
                hasher.update(block)
                size += len(block)
        modified = path.stat().st_mtime
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    digest = hasher.hexdigest()
    return ObjectInfo(key=key, version=digest, digest=digest, size=size, modified=modified)


class DeskSource:
    """Reads local files by key: the part of a store that staging needs."""

    def __init__(self, files: dict[str, Path]) -> None:
        self._files = files

    def read(self, key: str, *, version: str | None = None, limit: int) -> bytes:
        del version  # local files have no versions
        path = self._path(key)
        if path.stat().st_size > limit:
            raise ObjectTooLarge(f"{path} is {path.stat().st_size} bytes; the limit is {limit}")
        return path.read_bytes()

    def fetch(self, key: str, to: Path, *, version: str | None = None, limit: int) -> Fetched:
        del version
        path, hasher, size = self._path(key), hashlib.sha256(), 0
        with path.open("rb") as source, to.open("xb") as target:
            while block := source.read(_BLOCK):
                size += len(block)
                if size > limit:
                    raise ObjectTooLarge(f"{path} is over the limit of {limit} bytes for an input")
                hasher.update(block)
                target.write(block)
        return Fetched(size=size, sha256=hasher.hexdigest())

    def _path(self, key: str) -> Path:
        try:
            return self._files[key]
        except KeyError:
            raise ObjectMissing(f"{key} was not found beside the manifest") from None


def inbox_folder(tenant: str, path: str) -> str:
    return f"{INBOX}{tenant}/" + (f"{path.strip('/')}/" if path.strip("/") else "")
