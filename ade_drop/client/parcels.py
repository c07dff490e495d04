"""What has to be uploaded: files, the manifest and its config package."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ade_drop.client.errors import AdeError

Content = Path | bytes
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,62}")
_LONGEST_KEY = 1024  # bytes
# What programs write first and rename later, and what desktops leave behind: no drop reads it.
_LEFT_BEHIND = re.compile(
    r"\..*|~\$.*|.*~|.*\.(tmp|part|partial|crdownload|filepart|swp)|(eh)?thumbs\.db|desktop\.ini|icon\r",
    re.IGNORECASE | re.DOTALL,
)
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


def inbox_folder(parcel: Parcel, tenant: str, path: str) -> str:
    """The folder of the inbox for a parcel, with its slash; an AdeError names what no deployment would read."""
    if not _TENANT.fullmatch(tenant):
        raise AdeError(f"{tenant!r} is not the name of a tenant: letters, digits, '.', '_', '-', at most 63")
    folder = "/".join(["inbox", tenant, *(part for part in path.split("/") if part)]) + "/"
    for name, _ in parcel.uploads():
        key = folder + name
        if any(part in (".", "..") for part in key.split("/")) or "\\" in key or not _is_plain(key):
            raise AdeError(f"{key!r} has a '.' or '..' part, a backslash or a control character; use another name")
        if len(key.encode()) > _LONGEST_KEY:
            raise AdeError(f"{key[:80]!r}… is longer than {_LONGEST_KEY} bytes; use a shorter path")
    if unread := next((name for name in parcel.files if _LEFT_BEHIND.fullmatch(name)), None):
        raise AdeError(f"{unread!r} has the name of a hidden or unfinished file, which is never read; rename it")
    return folder


def _is_plain(key: str) -> bool:
    """Whether a key is of Unicode characters, none of which controls anything."""
    return not any(ord(char) < 32 or char == "\x7f" or 0xD800 <= ord(char) < 0xE000 for char in key)


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
