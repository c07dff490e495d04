"""Runs a job in a box without a bucket or a table, to show what it would do: before a drop, and before a decision.

It is `ade try` for a browser: the same staging, engine and sandbox. One at a time, one of each caller and with short
limits, since it runs beside the console; a file that takes longer can be dropped, where it has a runner of its own.
"""

import contextlib
import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from secrets import token_hex
from typing import Any

from console.api.context import ApiContext
from console.api.operations import Call
from console.api.problems import ProblemError
from console.api.submissions import HttpDrop
from console.desk.boxes import boxes
from console.desk.files import DeskSource, info_of
from console.desk.trials import Trial, TriedTable, desk_of, trials_of
from console.facade import DOCUMENT
from core.budget import plain
from core.drops import MAX_PACKAGE_FILES, make_workflow, plan
from core.errors import SandboxUnavailable
from core.jobs import InputRef, Job, ObjectRef, State
from core.keys import SHARED, decision_place, place
from core.manifests import Limits, Manifest
from core.memories import own_key
from core.ports import Fetched, ObjectInfo, ObjectStore
from core.settings import Settings
from handlers.workflows import LiveView, Packages
from infra.parsing import read_manifest
from runner.attempt import Boxes
from runner.comparisons import Inspections
from runner.staging import StagedSource, box_limits

LARGEST = 16 * 1024 * 1024
_SECONDS = 30
_WAIT_SECONDS = 35.0  # longer than a preview takes
_IN_LINE = 5  # whoever waits holds a thread of the server, which has few


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """How a job would end, and its artifact if it would have one."""

    job: Job
    artifact: dict[str, object] | None
    review: dict[str, object] | None  # its questions, if it would ask


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


def rehearse_drop(context: ApiContext, submission: HttpDrop, scratch: Path, who: str) -> Rehearsal:
    """The first job of a drop, as its tenant and where it would be. Raises ManifestInvalid, UsageError or ProblemError.

    `who`: asks for it; nobody has two previews in line.
    """
    files = submission.files
    size = sum(path.stat().st_size for path in files.values())
    if size > LARGEST:
        raise ProblemError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"the files have {size} bytes and a preview takes {LARGEST}; drop them to see the result",
        )
    if not submission.manifest:
        return _rehearse_standing(context, submission, scratch, who)
    manifest = read_manifest(submission.manifest)
    folder = submission.folder(manifest.name)
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
    with LINE.turn(who):
        return rehearse_beside(context, beside, _selected(named, beside), folder, scratch)


def rehearse_beside(
    context: ApiContext,
    beside: Path,
    inputs: list[Path],
    folder: str,
    scratch: Path,
    *,
    then: Callable[[Inspections, Rehearsal], None] | None = None,
) -> Rehearsal:
    """The first job of a manifest.json in a folder, and of files, as if they were in a folder of the inbox.

    `then`: looks into what it wrote, in the same boxes. The caller has the turn.
    """
    store, tenant = context.stack.store, place(f"{folder}x").tenant
    manifest = read_manifest((beside / "manifest.json").read_bytes())
    fetch_named(store, manifest, f"{folder}manifest.json", scratch / "bucket")
    desk, primaries = desk_of(beside / "manifest.json", inputs, folder, scratch / "bucket")
    trial = next(trials_of(desk, primaries, scratch / "out"))
    keys = (*desk.workflow.manifest.mapping.memory, own_key(tenant, desk.workflow.manifest.name))
    memories = tuple(info.ref for key in keys if (info := store.head(key)) is not None)
    source = _Overlay(store, {**desk.files, **primaries})
    # The real job would have the same id, and its boxes are named after it.
    job = replace(trial.job, memories=memories, job_id=f"preview-{token_hex(8)}")
    return _run(context, job, source, scratch, then)


def _rehearse_standing(context: ApiContext, submission: HttpDrop, scratch: Path, who: str) -> Rehearsal:
    """The job that a standing workflow would make of the first file."""
    store, folder = context.stack.store, submission.folder("")
    key, path = next((folder + name, path) for name, path in submission.files.items())
    workflow = context.submissions.standing([key])[0]
    view = LiveView(store)
    workflow, package = Packages(store).find(view, workflow)
    auxiliary = {info.key: info for info in view.infos(list(workflow.auxiliary_keys()))}
    jobs = plan(workflow, [info_of(key, path)], package=package, auxiliary=auxiliary, now=context.stack.clock.now())
    keys = (*workflow.manifest.mapping.memory, own_key(submission.tenant, workflow.manifest.name))
    memories = tuple(info.ref for info in view.infos(keys))
    job = replace(jobs[0], memories=memories, job_id=f"preview-{token_hex(8)}")
    with LINE.turn(who):
        return _run(context, job, _Overlay(store, {key: path}), scratch)


def fetch_named(store: ObjectStore, manifest: Manifest, key: str, bucket: Path) -> None:
    """Copy what a manifest names by whole keys, lookups of its tenant and shared ones, as far as a preview takes it."""
    here = ObjectInfo(key=key, version="", digest="", size=0, modified=0.0)
    workflow = make_workflow(manifest.model_copy(update={"subscribe": (), "tenants": ()}), here)
    whole = {one.path for one in manifest.inputs.auxiliary}
    named = [key for key in workflow.auxiliary_keys() if key in whole]
    found = [info for key in named if (info := store.head(key)) is not None]
    if workflow.config_place.startswith(SHARED):
        found += islice(store.objects(workflow.config_place), MAX_PACKAGE_FILES + 1)
    if sum(info.size for info in found) > LARGEST:
        raise ProblemError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"lookups and config have more than the {LARGEST} bytes that a preview takes; drop the files instead",
        )
    for info in found:
        target = bucket / info.key
        target.parent.mkdir(parents=True, exist_ok=True)
        store.fetch(info.key, target, version=info.version, limit=LARGEST)


def _selected(named: list[Path], beside: Path) -> list[Path]:
    """The files on top; those in folders are config or lookups, which the manifest finds itself."""
    top = [path for path in named if path.parent == beside]
    if not top:
        raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "choose a file to preview first")
    return top


def rehearse_decision(context: ApiContext, job: Job, decision: Mapping[str, Any], scratch: Path, who: str) -> Rehearsal:
    """What a job in REVIEW would do with a decision; whatever it leaves open is taken as the engine would."""
    body = json.dumps({**decision, "accept": True}, ensure_ascii=False).encode()
    key = decision_place(job)
    ref = ObjectRef(key=key, version="rehearsal", digest=hashlib.sha256(body).hexdigest(), size=len(body))
    ready = replace(job, state=State.QUEUED, decision=ref, reason="", lease=None, waiting_for=(), due_at=None)
    (scratch / "decision.json").write_bytes(body)
    with LINE.turn(who):
        return _run(context, ready, _Overlay(context.stack.store, {key: scratch / "decision.json"}), scratch)


def rehearse_input(context: ApiContext, job: Job, instead: tuple[InputRef, Path], scratch: Path, who: str) -> Rehearsal:
    """What a job would do with another file in place of its inputs."""
    one, file = instead
    lookups = tuple(other for other in job.inputs if other.role != "primary")
    ready = replace(
        job, job_id=f"preview-{token_hex(8)}", state=State.QUEUED, inputs=(one, *lookups), decision=None, reason="",
        lease=None, mends=None, corrections=(), waiting_for=(), due_at=None,
    )  # fmt: skip
    with LINE.turn(who):
        return _run(context, ready, _Overlay(context.stack.store, {one.ref.key: file}), scratch)


def _run(
    context: ApiContext,
    job: Job,
    source: StagedSource,
    scratch: Path,
    then: Callable[[Inspections, Rehearsal], None] | None = None,
) -> Rehearsal:
    return _boxed(job, source, scratch, preview_settings(context), then)


def preview_settings(context: ApiContext) -> Settings:
    """The settings with the limits of what runs beside the console."""
    settings = context.stack.settings
    return replace(
        settings,
        job_timeout_seconds=min(_SECONDS, settings.job_timeout_seconds),
        worker_cpu_seconds=min(_SECONDS, settings.worker_cpu_seconds),
    )


def asker(call: Call) -> str:
    """Whose preview it is: all tokens of a tenant have one at a time."""
    return f"tenant {call.principal.tenant}" if call.principal.tenant else call.principal.id


def at_work(call: Call) -> str:
    """Whose turn it is that a person waits for, besides a preview that follows their changes."""
    return f"{asker(call)}, at work"


class PreviewLine:
    """One preview at a time, in the order of arrival; one of each caller, the others are refused at once."""

    def __init__(self) -> None:
        self._line: list[str] = []
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def turn(self, who: str) -> Iterator[None]:
        with self._changed:
            if who in self._line:
                raise _busy("a preview of yours is running or waits")
            if len(self._line) >= _IN_LINE:
                raise _busy("other previews are running")
            self._line.append(who)
        try:
            with self._changed:
                if not self._changed.wait_for(lambda: self._line[0] == who, _WAIT_SECONDS):
                    raise _busy("other previews are running")
            yield
        finally:
            with self._changed:
                self._line.remove(who)
                self._changed.notify_all()


LINE = PreviewLine()


def _busy(why: str) -> ProblemError:
    return ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, f"{why}; try again in a moment", headers={"Retry-After": "10"})


def _boxed(
    job: Job,
    source: StagedSource,
    scratch: Path,
    settings: Settings,
    then: Callable[[Inspections, Rehearsal], None] | None,
) -> Rehearsal:
    with preview_boxes(settings, scratch) as sandbox:
        table = TriedTable(settings, sandbox, source, scratch)
        ended = table.run(Trial(job, scratch / "out"), stopped=lambda: None)
        done = Rehearsal(ended, _json(scratch / "out" / "artifact.json"), _json(scratch / "out" / "review.json"))
        if then is not None:
            limits = box_limits(Limits(), settings)
            then(Inspections(sandbox.sandbox, limits, scratch / "inspections", tenant=job.tenant), done)
    return done


@contextlib.contextmanager
def preview_boxes(settings: Settings, scratch: Path) -> Iterator[Boxes]:
    """The boxes of a preview. Raises ProblemError where this machine has none."""
    try:
        with boxes(settings, scratch / "run") as sandbox:
            yield sandbox
    except SandboxUnavailable as error:
        raise ProblemError(
            HTTPStatus.SERVICE_UNAVAILABLE, f"this machine has no sandbox to preview in: {error}"
        ) from None


def _json(path: Path) -> dict[str, object] | None:
    try:
        if path.stat().st_size > DOCUMENT.bytes:
            return None
        read = plain(path.read_bytes(), DOCUMENT)
    except (OSError, ValueError):
        return None
    return read if isinstance(read, dict) else None
