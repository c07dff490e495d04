"""Runs a job in a box without a bucket or a table, to show what it would do: before a drop, and before a decision.

It is `ade try` for a browser: the same staging, engine and sandbox. One at a time and with short limits, since it runs
beside the console; a file that takes longer can be dropped, where it has a runner of its own.
"""

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

from console.api.context import ApiContext
from console.api.problems import ProblemError
from console.api.submissions import HttpDrop
from console.cli.boxes import boxes
from console.cli.commands.try_ import Trial, TriedTable, desk_of, trials_of
from console.cli.desk import DeskSource
from console.facade import DOCUMENT
from core.budget import plain
from core.errors import SandboxUnavailable
from core.jobs import Job, ObjectRef, State
from core.keys import decision_place
from core.memories import own_key
from core.ports import Fetched, ObjectStore
from core.settings import Settings
from runner.staging import StagedSource

LARGEST = 16 * 1024 * 1024
_SECONDS = 30
_WAIT_SECONDS = 20.0
_ONE_AT_A_TIME = threading.Semaphore(1)
_IN_LINE = threading.Semaphore(3)  # whoever waits holds a thread of the server, which has few


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """How a job would end, and its artifact if it would have one."""

    job: Job
    artifact: dict[str, Any] | None
    review: dict[str, Any] | None  # its questions, if it would ask


class _Overlay:
    """A store as it would be with a few more objects."""

    def __init__(self, store: ObjectStore, files: Mapping[str, Path]) -> None:
        self._store = store
        self._keys = frozenset(files)
        self._files = DeskSource(dict(files))

    def read(self, key: str, *, version: str | None = None, limit: int) -> bytes:
        return self._of(key).read(key, version=version, limit=limit)

    def fetch(self, key: str, to: Path, *, version: str | None = None, limit: int) -> Fetched:
        return self._of(key).fetch(key, to, version=version, limit=limit)

    def _of(self, key: str) -> StagedSource:
        return self._files if key in self._keys else self._store


def rehearse_drop(context: ApiContext, submission: HttpDrop, scratch: Path) -> Rehearsal:
    """The first job of a drop, with its tenant's memory. Raises ManifestInvalid, UsageError or ProblemError."""
    files = submission.files
    size = sum(path.stat().st_size for path in files.values())
    if size > LARGEST:
        raise ProblemError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"the files have {size} bytes and a preview takes {LARGEST}; drop them to see the result",
        )
    beside = scratch / "drop"
    beside.mkdir()
    (beside / "manifest.json").write_bytes(submission.manifest)
    named: list[Path] = []
    for name, path in files.items():
        target = beside / name
        if not target.resolve().is_relative_to(beside.resolve()):
            raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, f"file name {name[:100]!r} leads out of the drop")
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
        named.append(target)
    desk, primaries = desk_of(beside / "manifest.json", _selected(named, beside), context.stack.settings)
    trial = next(trials_of(desk, primaries, scratch / "out"))
    store = context.stack.store
    keys = (*desk.workflow.manifest.mapping.memory, own_key(submission.tenant, desk.workflow.manifest.name))
    memories = tuple(info.ref for key in keys if (info := store.head(key)) is not None)
    source = _Overlay(store, {**desk.files, **primaries})
    return _run(context, replace(trial.job, memories=memories), source, scratch)


def _selected(named: list[Path], beside: Path) -> list[Path]:
    """The files on top; those in folders are config or lookups, which the manifest finds itself."""
    top = [path for path in named if path.parent == beside]
    if not top:
        raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "choose a file to preview first")
    return top


def rehearse_decision(context: ApiContext, job: Job, decision: Mapping[str, Any], scratch: Path) -> Rehearsal:
    """What a job in REVIEW would do with a decision; whatever it leaves open is taken as the engine would."""
    body = json.dumps({**decision, "accept": True}, ensure_ascii=False).encode()
    key = decision_place(job)
    ref = ObjectRef(key=key, version="rehearsal", digest=hashlib.sha256(body).hexdigest(), size=len(body))
    ready = replace(job, state=State.QUEUED, decision=ref, reason="", lease=None, waiting_for=(), due_at=None)
    (scratch / "decision.json").write_bytes(body)
    return _run(context, ready, _Overlay(context.stack.store, {key: scratch / "decision.json"}), scratch)


def _run(context: ApiContext, job: Job, source: StagedSource, scratch: Path) -> Rehearsal:
    settings = replace(
        context.stack.settings,
        job_timeout_seconds=min(_SECONDS, context.stack.settings.job_timeout_seconds),
        worker_cpu_seconds=min(_SECONDS, context.stack.settings.worker_cpu_seconds),
    )
    with _turn():
        return _boxed(job, source, scratch, settings)


@contextlib.contextmanager
def _turn() -> Iterator[None]:
    """One preview at a time, a few in line, the others refused at once."""
    busy = ProblemError(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "other previews are running; try again in a moment",
        headers={"Retry-After": "10"},
    )
    if not _IN_LINE.acquire(blocking=False):
        raise busy
    try:
        if not _ONE_AT_A_TIME.acquire(timeout=_WAIT_SECONDS):
            raise busy
        try:
            yield
        finally:
            _ONE_AT_A_TIME.release()
    finally:
        _IN_LINE.release()


def _boxed(job: Job, source: StagedSource, scratch: Path, settings: Settings) -> Rehearsal:
    try:
        with boxes(settings, scratch / "run") as sandbox:
            table = TriedTable(settings, sandbox, source, scratch)
            ended = table.run(Trial(job, scratch / "out"), stopped=lambda: None)
    except SandboxUnavailable as error:
        raise ProblemError(
            HTTPStatus.SERVICE_UNAVAILABLE, f"this machine has no sandbox to preview in: {error}"
        ) from None
    return Rehearsal(ended, _json(scratch / "out" / "artifact.json"), _json(scratch / "out" / "review.json"))


def _json(path: Path) -> dict[str, Any] | None:
    try:
        if path.stat().st_size > DOCUMENT.bytes:
            return None
        read = plain(path.read_bytes(), DOCUMENT)
    except (OSError, ValueError):
        return None
    return read if isinstance(read, dict) else None
