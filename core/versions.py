"""Versions of standing workflows: where what ran is kept, under a name made of its content. Pure.

A version is a manifest with its config package, and is named by the digest of both (`Job.workflow_version`). It is kept
in `.versions/<id>/` beside the manifest: `config/`, then `manifest.json`. Overlays likewise, beside them.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final, NamedTuple

from core.drops import UNPACKED
from core.jobs import Job, ObjectRef
from core.keys import CONFIGS, VERSIONS, is_set_aside
from core.overlays import ENDING

ID_LENGTH: Final = 16  # hex digits
MANIFEST: Final = "manifest.json"
CONFIG: Final = "config/"
MAX_PROMOTION_BYTES: Final = 10_000
_PROMOTION: Final = ".before.json"


class StoredPart(NamedTuple):
    """An object of a version, and the key under which it is kept."""

    ref: ObjectRef
    key: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Promotion:
    """The last promotion of a workflow, noted beside its versions before anything is replaced.

    Where the manifest is not there, the promotion is in progress, or whoever made it died.
    """

    id: str  # of the version that was live before
    to: str
    manifest: str  # key of the live manifest

    def body(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @property
    def folders(self) -> frozenset[str]:
        """Of the versions that it needs."""
        return frozenset(version_folder(self.manifest, version) for version in (self.id, self.to))


def promotion_key(manifest_key: str, workflow: str) -> str:
    return f"{versions_folder(manifest_key)}{workflow}{_PROMOTION}"


def is_promotion(key: str) -> bool:
    return key.endswith(_PROMOTION) and f"/{VERSIONS}" in key


def parse_promotion(key: str, body: bytes) -> Promotion | None:
    """None if it is not one of a workflow beside it, or of an older program."""
    try:
        found = Promotion(**json.loads(body))
    except (ValueError, TypeError, RecursionError):
        return None
    is_text = all(isinstance(value, str) for value in (found.id, found.to, found.manifest))
    return found if is_text and key.startswith(versions_folder(found.manifest)) else None


def version_id(digest: str) -> str:
    """The short name of a version, of its digest."""
    return digest.removeprefix(UNPACKED)[:ID_LENGTH]


def versions_folder(manifest_key: str) -> str:
    """Where the versions of the workflows beside a manifest are kept."""
    return f"{manifest_key[: manifest_key.rfind('/') + 1]}{VERSIONS}"


def version_folder(manifest_key: str, version: str) -> str:
    return f"{versions_folder(manifest_key)}{version}/"


def stored_parts(job: Job) -> list[StoredPart]:
    """What is kept of the version that a job ran with, the manifest last; nothing of a manifest beside its files."""
    if job.manifest is None or not job.manifest.key.startswith(CONFIGS):
        return []
    if is_set_aside(job.manifest.key):  # of a replay
        return list(_overlays(job))
    folder = version_folder(job.manifest.key, version_id(job.workflow_version))
    return [*_overlays(job), *_package(job, folder), StoredPart(job.manifest, f"{folder}{MANIFEST}")]


def _package(job: Job, folder: str) -> Iterator[StoredPart]:
    for ref in job.config:
        inside = ref.key.removeprefix(job.config_place) if job.config_place.endswith("/") else "config.zip"
        yield StoredPart(ref, f"{folder}{CONFIG}{inside}")


def _overlays(job: Job) -> Iterator[StoredPart]:
    for ref in job.overlays:
        name = hashlib.sha256(ref.digest.encode()).hexdigest()[:ID_LENGTH]
        yield StoredPart(ref, f"{versions_folder(ref.key)}{name}{ENDING}")
