"""What has to be uploaded: files, the manifest and its config package."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ade_drop.client.errors import AdeError

Content = Path | bytes
# What a config package holds beside a manifest whose `config` is "."; see docs/guides/rule-author.md.
_PACKAGE = ("columns", "row_types", "hooks", "requirements.txt")


@dataclass(frozen=True, kw_only=True)
class Parcel:
    """One drop on its way in."""

    files: Mapping[str, Path]  # the spreadsheets, by name
    manifest_name: str = ""  # empty: standing workflows select the files
    manifest: bytes = b""
    workflow: str = ""  # the manifest's name
    per_drop: bool = False  # the manifest makes one result of all files
    package: Mapping[str, Path]  # the config package, by name beside the manifest

    def uploads(self) -> Iterator[tuple[str, Content]]:
        """Everything by name, the manifest last: the drop is complete when it arrives."""
        yield from self.package.items()
        yield from self.files.items()
        if self.manifest_name:
            yield self.manifest_name, self.manifest


def parcel_of(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    manifest: str | os.PathLike[str] | Mapping[str, Any] | None,
) -> Parcel:
    """Check and name what is dropped together."""
    paths = [Path(files)] if isinstance(files, str | os.PathLike) else [Path(file) for file in files]
    named = {path.name: path for path in paths}
    if not paths:
        raise AdeError("no file to drop")
    if len(named) < len(paths):
        raise AdeError("two of the files share a name; drop them into different folders (path)")
    for path in paths:
        if not path.is_file():
            raise AdeError(f"{path} is not a file")
    if manifest is None:
        return Parcel(files=named, package={})
    if isinstance(manifest, Mapping):
        return _with_manifest(named, "manifest.json", json.dumps(manifest).encode(), {})
    path = Path(manifest)
    name = path.name if path.name.endswith("manifest.json") else "manifest.json"
    body = path.read_bytes()
    return _with_manifest(named, name, body, _package(path, body))


def _with_manifest(files: Mapping[str, Path], name: str, body: bytes, package: Mapping[str, Path]) -> Parcel:
    document = _document(body)
    inputs = document.get("inputs")
    return Parcel(
        files=files,
        manifest_name=name,
        manifest=body,
        workflow=str(document.get("name", "")),
        per_drop=isinstance(inputs, dict) and inputs.get("per") == "drop",
        package=package,
    )


def _document(body: bytes) -> dict[str, Any]:
    """The manifest, as far as it can be read: what is wrong with it is reported by the service, all at once."""
    try:
        document = json.loads(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _package(manifest: Path, body: bytes) -> dict[str, Path]:
    """The files of the config package beside a manifest."""
    config = _document(body).get("config")
    if not isinstance(config, str) or config.startswith("configs/"):
        return {}
    folder = manifest.parent
    roots = [folder / part for part in _PACKAGE] if config in (".", "./") else [folder / config]
    found = (path for root in roots for path in ([root] if root.is_file() else sorted(root.rglob("*"))))
    return {
        path.relative_to(folder).as_posix(): path
        for path in found
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }
