"""Fetches everything a box needs from the bucket into a scratch folder, at exact versions."""

import errno
from dataclasses import dataclass
from pathlib import Path
from posixpath import basename
from typing import Any, Protocol

from core.drops import MAX_PACKAGE_BYTES
from core.errors import ManifestInvalid, ObjectChanged, ObjectMissing, ObjectTooLarge, PackageRefused
from core.jobs import Job, ObjectRef
from core.manifests import MAX_MANIFEST_BYTES, Limits, Manifest, parse_manifest
from core.packages import check_names, check_zip, read_member
from core.ports import BoxLimits, Fetched
from core.settings import Settings
from core.verdicts import Verdict
from runner.pins import Pins, stage_pins
from runner.results import profile_key


class StagedSource(Protocol):
    """The part of an ObjectStore that staging needs; `ade try` implements only this."""

    def read(self, key: str, *, version: str | None = None, limit: int) -> bytes: ...

    def fetch(self, key: str, to: Path, *, version: str | None = None, limit: int) -> Fetched: ...


_NAMES = {errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL}
OUTPUTS = ("normalized.xlsx", "artifact.json", "review.json")
REJECTS = "rejects.jsonl"
MAX_PROFILE_BYTES = 1024 * 1024


def box_outputs(manifest: Manifest) -> tuple[str, ...]:
    """The files that a box may write."""
    return (*OUTPUTS, REJECTS) if manifest.output.rejects else OUTPUTS


class StagingFailed(Exception):
    """The job cannot be staged; the verdict says whose fault it is."""

    def __init__(self, verdict: Verdict, message: str) -> None:
        super().__init__(message)
        self.verdict = verdict


@dataclass(frozen=True, slots=True)
class Staged:
    manifest: Manifest
    order: dict[str, Any]
    config: Path | None
    requirements: Path | None
    pins: Pins | None = None


def stage_file(store: StagedSource, ref: ObjectRef, to: Path, *, file_mb: int) -> Fetched:
    """Fetch one input; raises StagingFailed if it is gone or too large."""
    try:
        return store.fetch(ref.key, to, version=ref.version, limit=file_mb * 1024 * 1024)
    except (ObjectMissing, ObjectChanged) as error:
        raise StagingFailed(Verdict.INPUT_GONE, str(error)) from error
    except ObjectTooLarge as error:
        raise StagingFailed(Verdict.INPUT_UNREADABLE, f"{error}; split it or raise ADE_WORKER_FSIZE_MB") from error


def stage(store: StagedSource, job: Job, scratch: Path, *, file_mb: int) -> Staged:
    """Fetch manifest, config and inputs; raises StagingFailed if one is gone, too large or refused."""
    if job.manifest is None:
        raise StagingFailed(Verdict.BOX_FAILED, f"job {job.job_id} has no manifest in its row; drop it again")
    try:
        manifest = parse_manifest(store.read(job.manifest.key, version=job.manifest.version, limit=MAX_MANIFEST_BYTES))
        (scratch / "in").mkdir(parents=True)
        config = fetch_config(store, job.config, job.config_place, scratch / "config")
        inputs = []
        for n, item in enumerate(job.inputs):
            limit = file_mb * 1024 * 1024
            fetched = store.fetch(item.ref.key, scratch / "in" / str(n), version=item.ref.version, limit=limit)
            named = (
                {"name": item.name} if item.role == "primary" else {"name": item.name, "file": basename(item.ref.key)}
            )
            inputs.append(
                {"role": item.role, **named, "path": f"in/{n}", "size": fetched.size, "sha256": fetched.sha256}
            )
    except (ObjectMissing, ObjectChanged) as error:
        raise StagingFailed(Verdict.INPUT_GONE, str(error)) from error
    except ObjectTooLarge as error:
        raise StagingFailed(Verdict.INPUT_UNREADABLE, f"{error}; split it or raise ADE_WORKER_FSIZE_MB") from error
    except (PackageRefused, ManifestInvalid) as error:
        raise StagingFailed(Verdict.CONFIG_REFUSED, str(error)) from error
    pins = stage_pins(store, job, scratch)
    order = make_order(job, manifest, inputs, config) | pins.order
    if (previous := _previous(store, job, scratch)) is not None:
        order["previous"] = previous
    return Staged(manifest, order, config, _requirements(config), pins)


def _previous(store: StagedSource, job: Job, scratch: Path) -> dict[str, Any] | None:
    """The profile of the sender's last drop; None if there is none. It is no reason for a job to fail."""
    key = profile_key(job)
    if key is None:
        return None
    try:
        fetched = store.fetch(key, scratch / "in" / "previous.json", limit=MAX_PROFILE_BYTES)
    except (ObjectMissing, ObjectChanged, ObjectTooLarge):
        return None
    return {"path": "in/previous.json", "key": key, "sha256": fetched.sha256}


def make_order(job: Job, manifest: Manifest, inputs: list[dict[str, Any]], config: Path | None) -> dict[str, Any]:
    """The engine's order (docs/engine-order.md); the sandbox driver adds outputs and its own description."""
    return {
        "order": 1,
        "job": {
            "job_id": job.job_id,
            "tenant": job.tenant,
            "workflow": job.workflow,
            "attempt": job.attempts_total,
        },
        "manifest": manifest.model_dump(mode="json"),
        "params": job.params,
        "inputs": inputs,
        "config": {"path": "config" if config else None, "digest": job.config_digest},
    }


def fetch_config(store: StagedSource, refs: tuple[ObjectRef, ...], place: str, target: Path) -> Path | None:
    """Unpack a config package: one zip, or the objects of a folder."""
    if not refs:
        return None
    target.mkdir(parents=True)
    if len(refs) == 1 and refs[0].key.endswith(".zip"):
        archive = check_zip(store.read(refs[0].key, version=refs[0].version, limit=MAX_PACKAGE_BYTES))
        for member in archive.infolist():
            if not member.is_dir():
                _write_new(target / member.filename, read_member(archive, member))
        return _unwrapped(target)
    check_names(ref.key.removeprefix(place) for ref in refs)
    for ref in refs:
        body = store.read(ref.key, version=ref.version, limit=MAX_PACKAGE_BYTES)
        _write_new(target / ref.key.removeprefix(place), body)
    return target


def box_limits(asked: Limits, settings: Settings) -> BoxLimits:
    """What the manifest asks for, capped by the settings."""

    def capped(wanted: int | None, most: int) -> int:
        return most if wanted is None else min(wanted, most)

    return BoxLimits(
        wall_seconds=capped(asked.timeout_seconds, settings.job_timeout_seconds),
        cpu_seconds=capped(asked.cpu_seconds, settings.worker_cpu_seconds),
        memory_mb=capped(asked.memory_mb, settings.worker_mem_mb),
        file_mb=capped(asked.file_mb, settings.worker_fsize_mb),
    )


def _write_new(path: Path, body: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as out:
            out.write(body)
    except OSError as error:
        if error.errno in _NAMES:
            raise PackageRefused(f"config: a file cannot be stored under its name ({error.strerror})") from None
        raise


def _unwrapped(target: Path) -> Path:
    """If a zip contains a single folder, use the content of that folder."""
    inside = list(target.iterdir())
    if len(inside) == 1 and inside[0].is_dir() and inside[0].name not in ("columns", "row_types", "hooks", "lib"):
        inside[0].rename(wrapped := target.with_name("wrapped"))
        target.rmdir()
        wrapped.rename(target)
    return target


def _requirements(config: Path | None) -> Path | None:
    path = config / "requirements.txt" if config else None
    return path if path is not None and path.is_file() else None
