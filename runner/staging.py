"""Fetches everything a box needs from the bucket into a scratch folder, at exact versions.

A job's decision and memories are pinned by version when it is made, and neither is part of its identity. A store
without old versions may no longer have them. A decision that is gone no longer counts: the job asks again. A memory
that changed is replaced by its newest version. What was really used is in the order, in the artifact and, after the
attempt, in the row.
"""

import errno
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from posixpath import basename
from typing import Final, NamedTuple, Protocol

from core.caches import BoundedCache
from core.decisions import MAX_DECISION_BYTES, Decision, DecisionInvalid, is_for
from core.drops import MAX_PACKAGE_BYTES
from core.errors import AnswerDoubted, ManifestInvalid, ObjectChanged, ObjectMissing, ObjectTooLarge, PackageRefused
from core.jobs import InputRef, Job, ObjectRef, PinChanges
from core.keys import decision_place, decision_places, place, profile_key
from core.manifests import MAX_MANIFEST_BYTES, Limits, Manifest
from core.memories import MAX_MEMORY_BYTES, MemoryInvalid, own_key
from core.overlays import MAX_OVERLAY_BYTES, apply
from core.packages import check_names, check_zip, read_member
from core.ports import Fetched, ObjectStore
from core.proofs import check_pinned
from core.settings import Settings
from core.verdicts import Verdict
from core.versions import stored_parts
from infra.apart import SMALL, TooCostly, apart
from infra.parsing import KnownTexts, check_memory, read_decision, read_manifest, read_overlay
from runner.boxes import OPEN_FILES, BoxLimits, BoxReport
from runner.bundles import StoredProfile
from runner.engine.contract import (
    ENGINE_FILES,
    PRIMARY,
    AppliedOverlay,
    DecisionFile,
    InputFile,
    JobFacts,
    Order,
    OutputName,
    SplitBy,
    StagedFile,
    Where,
    data_files,
    is_split_file,
)
from runner.engine.memory.confirmed import ConfirmedHeaders


class StagedSource(Protocol):
    """The part of an ObjectStore that staging needs; `ade try` implements only this."""

    def read(self, key: str, *, version: str | None = None, limit: int) -> bytes: ...

    def fetch(self, key: str, to: Path, *, version: str | None = None, limit: int) -> Fetched: ...


_NAMES = {errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL}
_GONE = (ObjectMissing, ObjectChanged, ObjectTooLarge)
MAX_PROFILE_BYTES = 1024 * 1024
MAX_ROUNDS = 16  # results that may be made of one another's corrected rejects
_NO_MEMORY = "there is none"
_MOST_PLACES = 100  # at which a decision on a job of many inputs is looked for
_CACHE_BYTES: Final = 64 * 1024 * 1024  # of what boxes read of memories


def box_outputs(manifest: Manifest) -> tuple[str, ...]:
    """The files that a box may write."""
    named: tuple[str, ...] = (*data_files(manifest.output.formats), *ENGINE_FILES)
    if manifest.output.split_by is not None:
        split = SplitBy(field=manifest.output.split_by, values=manifest.split_values)
        named = (*named, *split.files(manifest.output.formats))
    named = (*named, OutputName.REJECTED_ROWS) if manifest.output.rejects else named
    return (*named, OutputName.SHOWN_VALUES) if manifest.report.values == "shown" else named


class StagingFailed(Exception):
    """The job cannot be staged; the verdict says whose fault it is."""

    def __init__(self, verdict: Verdict, message: str, *, reason: str = "", language: str = "en") -> None:
        """`language`: of its report; the manifest's, if that was read."""
        super().__init__(message)
        self.verdict = verdict
        self.where: Where = {"reason": reason} if reason else {}
        self.language = language


class StagedPins(NamedTuple):
    """A job's decision and memories as its order names them."""

    sender: str
    decision: DecisionFile | None
    accept: bool
    memories: tuple[StagedFile, ...]
    headers: Path | None
    refused: Mapping[str, str]


class Pins(NamedTuple):
    """What an attempt was given beside its inputs."""

    decision: ObjectRef | None
    memories: tuple[ObjectRef, ...]  # that were read
    pinned: tuple[ObjectRef, ...]  # the same, and those that cannot be read now: the next attempt tries again
    staged: StagedPins


@dataclass(frozen=True, slots=True)
class Staged:
    manifest: Manifest
    order: Order
    config: Path | None
    requirements: Path | None
    pins: Pins | None = None
    previous: StoredProfile | None = None  # of the sender's last drop


def read_pinned(store: StagedSource, ref: ObjectRef, *, limit: int) -> bytes:
    """Read an object at its pinned version; raises like ObjectStore.read, and AnswerDoubted if it is not that."""
    body = store.read(ref.key, version=ref.version, limit=limit)
    _check_body(ref, body)
    return body


def _check_body(ref: ObjectRef, body: bytes) -> None:
    check_pinned(ref, size=len(body), sha256=hashlib.sha256(body).hexdigest())


def fetch_pinned(store: StagedSource, ref: ObjectRef, to: Path, *, limit: int) -> Fetched:
    """Like `read_pinned`, into a new file."""
    fetched = store.fetch(ref.key, to, version=ref.version, limit=limit)
    try:
        check_pinned(ref, size=fetched.size, sha256=fetched.sha256)
    except AnswerDoubted:
        to.unlink()
        raise
    return fetched


def _too_large(error: ObjectTooLarge, language: str = "en") -> StagingFailed:
    what = f"{error}; split it or raise ADE_WORKER_FSIZE_MB"
    return StagingFailed(Verdict.INPUT_UNREADABLE, what, reason="too_large", language=language)


def stage_file(store: StagedSource, ref: ObjectRef, to: Path, *, file_mb: int) -> Fetched:
    """Fetch one input; raises StagingFailed if it is gone or too large."""
    try:
        return fetch_pinned(store, ref, to, limit=file_mb * 1024 * 1024)
    except (ObjectMissing, ObjectChanged) as error:
        raise StagingFailed(Verdict.INPUT_GONE, str(error)) from error
    except ObjectTooLarge as error:
        raise _too_large(error) from error


def stage(store: StagedSource, job: Job, scratch: Path, *, file_mb: int, texts: KnownTexts | None = None) -> Staged:
    """Fetch manifest, config and inputs; raises StagingFailed if one is gone, too large or refused.

    `texts`: manifests that need not be fetched again.
    """
    texts = texts or KnownTexts(store)
    if job.manifest is None:
        raise StagingFailed(Verdict.BOX_FAILED, f"job {job.job_id} has no manifest in its row; drop it again")
    store = _WithVersions(store, {part.ref.key: part.key for part in stored_parts(job)})
    language = "en"
    try:
        body = _manifest_text(store, texts, job.tenant, job.manifest)
        _check_body(job.manifest, body)
        manifest, overlays = _overlaid(store, read_manifest(body), job)
        language = manifest.language
        (scratch / "in").mkdir(parents=True)
        config = fetch_config(store, job.config, job.config_place, scratch / "config")
        inputs = []
        for n, item in enumerate(job.inputs):
            path = Path("in", str(n))
            fetched = fetch_pinned(store, item.ref, scratch / path, limit=file_mb * 1024 * 1024)
            inputs.append(input_file(item, path, fetched))
    except (ObjectMissing, ObjectChanged) as error:
        raise StagingFailed(Verdict.INPUT_GONE, str(error)) from error
    except ObjectTooLarge as error:
        raise _too_large(error, language) from error
    except (PackageRefused, ManifestInvalid) as error:
        raise StagingFailed(Verdict.CONFIG_REFUSED, str(error), language=language) from error
    pins = stage_pins(store, job, scratch, manifest.mapping.memory)
    known, previous = _previous(store, job, scratch)
    order = replace(make_order(job, manifest, inputs, config), **pins.staged._asdict(), previous=previous)
    order = replace(order, overlays=overlays) if overlays else order
    return Staged(manifest, order, config, _requirements(config), pins, known)


class _WithVersions:
    """A store in which a version of a workflow that ran is still found where it was, after another replaced it."""

    def __init__(self, store: StagedSource, stored: Mapping[str, str]) -> None:
        self._store = store
        self._stored = stored

    def read(self, key: str, *, version: str | None = None, limit: int) -> bytes:
        try:
            return self._store.read(key, version=version, limit=limit)
        except (ObjectMissing, ObjectChanged):
            if key not in self._stored:
                raise
        try:
            return self._store.read(self._stored[key], limit=limit)
        except ObjectMissing:
            raise ObjectMissing(f"{key} was replaced or removed, and its version was not kept") from None

    def fetch(self, key: str, to: Path, *, version: str | None = None, limit: int) -> Fetched:
        return self._store.fetch(key, to, version=version, limit=limit)


def _manifest_text(store: _WithVersions, texts: KnownTexts, tenant: str, ref: ObjectRef) -> bytes:
    try:
        return texts.read(tenant, ref, limit=MAX_MANIFEST_BYTES)
    except (ObjectMissing, ObjectChanged):
        return store.read(ref.key, version=ref.version, limit=MAX_MANIFEST_BYTES)


def _overlaid(store: StagedSource, manifest: Manifest, job: Job) -> tuple[Manifest, tuple[AppliedOverlay, ...]]:
    """The manifest with the job's overlays, and what each of them changed."""
    applied = list[AppliedOverlay]()
    for ref in job.overlays:
        body = read_pinned(store, ref, limit=MAX_OVERLAY_BYTES)
        manifest, changes = apply(manifest, read_overlay(body))
        sha256 = hashlib.sha256(body).hexdigest()
        applied.append(AppliedOverlay(key=ref.key, version=ref.version, sha256=sha256, changes=changes))
    return manifest, tuple(applied)


def input_file(item: InputRef, path: Path, fetched: Fetched) -> InputFile:
    """A fetched input as the order names it; the name of an auxiliary one is no hint for its format."""
    return InputFile(
        role=item.role,
        name=item.name,
        file="" if item.role == PRIMARY else basename(item.ref.key),
        path=path,
        size=fetched.size,
        sha256=fetched.sha256,
    )


def _previous(store: StagedSource, job: Job, scratch: Path) -> tuple[StoredProfile | None, StagedFile | None]:
    """The profile of the sender's last drop, and how the order names it. It is no reason for a job to fail."""
    key, path = profile_key(job), Path("in", "previous.json")
    if key is None:
        return None, None
    try:
        fetched = store.fetch(key, scratch / path, limit=MAX_PROFILE_BYTES)
    except ObjectMissing:
        return StoredProfile(None, None), None
    except _GONE:
        return None, None
    known = StoredProfile(fetched.version, (scratch / path).read_bytes()) if fetched.version is not None else None
    return known, StagedFile(path=path, key=key, sha256=fetched.sha256)


def make_order(job: Job, manifest: Manifest, inputs: Sequence[InputFile], config: Path | None) -> Order:
    """The engine's order; the sandbox driver adds outputs and its own description."""
    return Order(
        job=JobFacts(job_id=job.job_id, tenant=job.tenant, workflow=job.workflow, attempt=job.attempts_total),
        manifest=manifest.model_dump(mode="json"),
        params=job.params,
        answer_to=decision_place(job) if any(i.role == PRIMARY for i in job.inputs) else None,
        inputs=tuple(inputs),
        config=Path("config") if config else None,
        config_digest=job.config_digest,
    )


def fetch_config(store: StagedSource, refs: tuple[ObjectRef, ...], root: str, target: Path) -> Path | None:
    """Unpack a config package: one zip, or the objects of a folder."""
    if not refs:
        return None
    target.mkdir(parents=True)
    if len(refs) == 1 and refs[0].key.endswith(".zip"):
        archive = check_zip(read_pinned(store, refs[0], limit=MAX_PACKAGE_BYTES))
        for member in archive.infolist():
            if not member.is_dir():
                _write_new(target / member.filename, read_member(archive, member))
        return _unwrapped(target)
    check_names(ref.key.removeprefix(root) for ref in refs)
    for ref in refs:
        body = read_pinned(store, ref, limit=MAX_PACKAGE_BYTES)
        _write_new(target / ref.key.removeprefix(root), body)
    return target


def box_limits(asked: Limits, settings: Settings, outputs: Sequence[str] = ()) -> BoxLimits:
    """What the manifest asks for, capped by the settings; split files are open to be written and to be verified."""

    def capped(wanted: int | None, most: int) -> int:
        return most if wanted is None else min(wanted, most)

    return BoxLimits(
        wall_seconds=capped(asked.timeout_seconds, settings.job_timeout_seconds),
        cpu_seconds=capped(asked.cpu_seconds, settings.worker_cpu_seconds),
        memory_mb=capped(asked.memory_mb, settings.worker_mem_mb),
        file_mb=capped(asked.file_mb, settings.worker_fsize_mb),
        open_files=OPEN_FILES + 2 * sum(map(is_split_file, outputs)),
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


def sender_of(job: Job) -> str:
    """Who dropped a job's file (`core.keys.Place.sender`)."""
    return place(min(i.ref.key for i in job.inputs if i.role == "primary")).sender.rstrip("/")


def stage_pins(store: StagedSource, job: Job, scratch: Path, named: Sequence[str] = ()) -> Pins:
    """Write a job's decision and memories below `scratch/in`. `named`: the memories that its manifest names."""
    decision = stage_decision(store, job, scratch)
    memories: list[tuple[ObjectRef, bytes]] = []
    pinned: list[ObjectRef] = []
    refused = {key: _NO_MEMORY for key in named if key not in {ref.key for ref in job.memories}}
    for ref in job.memories:
        found = _read_memory(store, ref)
        if isinstance(found, str):
            refused |= {ref.key: found} if found != _NO_MEMORY or ref.key in named else {}
            pinned.append(ref)
            continue
        pinned.append(found[0])
        memories.append(found)
    files, headers = _stage_memories(memories, scratch) if memories else ((), None)
    accept = job.review is not None and job.review.accepted
    staged = StagedPins(sender_of(job), decision, accept, files, headers, refused)
    used = job.decision if decision is not None else None
    return Pins(used, tuple(ref for ref, _ in memories), tuple(pinned), staged)


def stage_decision(store: StagedSource, job: Job, scratch: Path) -> DecisionFile | None:
    """Write a job's decision below `scratch/in`; what its order says of it, or None if it has none."""
    if job.decision is None or (found := _read_decision(store, job)) is None:
        return None
    body, decision = found
    path, ref = Path("in", "decision.json"), job.decision
    (scratch / path).write_bytes(body)
    sha256 = hashlib.sha256(body).hexdigest()
    return DecisionFile(path=path, key=ref.key, version=ref.version, sha256=sha256, by=decision.by)


def _stage_memories(
    memories: Sequence[tuple[ObjectRef, bytes]], scratch: Path
) -> tuple[tuple[StagedFile, ...], Path | None]:
    """Write memories below `scratch/in`; their files, and the index of their headers if there is one."""
    files = tuple(
        StagedFile(
            path=Path("in", f"memory-{n}.json"),
            key=ref.key,
            version=ref.version,
            sha256=hashlib.sha256(body).hexdigest(),
        )
        for n, (ref, body) in enumerate(memories)
    )
    staged = _LEARNT.staged([body for _, body in memories], tuple(one.sha256 for one in files))
    for one, body in zip(files, staged.bodies, strict=True):
        (scratch / one.path).write_bytes(body)
    if staged.headers is None:
        return files, None
    headers = Path("in", "headers")
    (scratch / headers).write_bytes(staged.headers)
    return files, headers


class StagedMemories(NamedTuple):
    """The files of a job's memories: their headers in one index, the rest of each."""

    bodies: tuple[bytes, ...]
    headers: bytes | None  # None: there are too many for an index; the bodies are whole

    @property
    def size(self) -> int:
        return sum(map(len, self.bodies)) + len(self.headers or b"")


class SeenMemories:
    """What was made of memories before, by their content: it takes longer to check and to index one than to use it."""

    def __init__(self) -> None:
        self._staged = BoundedCache[tuple[str, ...], StagedMemories](_CACHE_BYTES)

    def staged(self, bodies: Sequence[bytes], digests: tuple[str, ...]) -> StagedMemories:
        """Valid memories, the most specific last, as a box reads them."""
        made = self._staged.get(digests)
        if made is None:
            try:
                made = indexed(bodies) if sum(map(len, bodies)) <= SMALL else apart(indexed, bodies)
            except TooCostly:
                made = StagedMemories(tuple(bodies), None)
            self._staged.put(digests, made, made.size)
        return made


_LEARNT: Final = SeenMemories()


def indexed(bodies: Sequence[bytes]) -> StagedMemories:
    memories = [json.loads(body) for body in bodies]
    index = ConfirmedHeaders([entry for memory in memories for entry in memory.pop("headers", None) or ()]).to_index()
    if index is None:
        return StagedMemories(tuple(bodies), None)
    return StagedMemories(tuple(json.dumps(memory, ensure_ascii=False).encode() for memory in memories), index)


def repinned(store: ObjectStore, job: Job) -> PinChanges:
    """The newest memories and the decision that is there now, for a new round of a job; a replay has those it had."""
    if job.replay:
        return {}
    keys = [*_shared_memories(store, job), own_key(job.tenant, job.workflow)]
    memories = tuple(info.ref for key in dict.fromkeys(keys) if (info := store.head(key)) is not None)
    pinned: PinChanges = {"memories": memories}
    found = [info for key in decision_places(job)[:_MOST_PLACES] if (info := store.head(key)) is not None]
    for info in sorted(found, key=lambda i: (i.modified, i.key)):  # the newest that fits
        if _read_decision(store, replace(job, decision=info.ref)) is not None:
            pinned |= {"decision": info.ref, "decided_at": info.modified}
    return pinned


def _shared_memories(store: ObjectStore, job: Job) -> list[str]:
    """The memories that a job's manifest names; the last attempt may have had to do without one of them."""
    known = [ref.key for ref in job.memories]
    if job.manifest is None:
        return known
    try:
        body = store.read(job.manifest.key, version=job.manifest.version, limit=MAX_MANIFEST_BYTES)
        return list(read_manifest(body).mapping.memory)
    except (*_GONE, ManifestInvalid):
        return known


def _read_decision(store: StagedSource, job: Job) -> tuple[bytes, Decision] | None:
    if job.decision is None:
        return None
    try:
        body = store.read(job.decision.key, version=job.decision.version, limit=MAX_DECISION_BYTES)
        decision = read_decision(body)
    except (*_GONE, DecisionInvalid):
        return None
    return (body, decision) if is_for(decision, job) else None


def _read_memory(store: StagedSource, ref: ObjectRef) -> tuple[ObjectRef, bytes] | str:
    """A memory at its pinned version, else the newest; why there is none that can be read."""
    why = _NO_MEMORY
    for version in (ref.version, None):
        try:
            body = store.read(ref.key, version=version or None, limit=MAX_MEMORY_BYTES)
            check_memory(body)
        except _GONE as error:
            why = f"it has more than {MAX_MEMORY_BYTES} bytes" if isinstance(error, ObjectTooLarge) else why
            continue
        except MemoryInvalid as error:
            why = f"it does not validate at {error.problems[0].path}, as `ade memory show` says"
            continue
        if version:
            return ref, body
        digest = hashlib.sha256(body).hexdigest()
        return ObjectRef(key=ref.key, version="", digest=digest, size=len(body)), body
    return why


def corrected_input(job: Job, report: BoxReport, known: Mapping[str, str]) -> dict[str, str] | None:
    """The input in which a box found corrected rejects, and the job it names; None if the box did not stop for one."""
    if report.verdict is not Verdict.MENDS or job.replay:
        return None
    name, claim = report.where.get("input"), report.where.get("job")
    item = next((i for i in job.inputs if i.role == "primary" and i.name == name and i.ref.key not in known), None)
    return {item.ref.key: claim} if item is not None and isinstance(claim, str) and len(known) < MAX_ROUNDS else None
