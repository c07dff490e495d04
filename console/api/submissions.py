"""Drops over HTTP: the objects go into the inbox, and the same intake as for every drop says which jobs they are."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from console.api.access import Principal
from console.api.problems import ProblemError
from console.desk.files import inbox_folder
from console.job_facts import job_shape
from core.drops import Workflow, is_placeholder, make_workflow
from core.errors import KeyRefused, ManifestInvalid, ObjectMissing, PreconditionFailed
from core.jobs import Job, State
from core.keys import INBOX, REQUESTS, is_ignored, is_manifest, place
from core.manifests import MAX_MANIFEST_BYTES
from core.ports import JobQuery, ObjectInfo
from handlers.intake import Intake
from handlers.planning import report_dict
from handlers.workflows import LiveView
from infra.parsing import read_manifest
from infra.quarantine import in_quarantine
from infra.wiring import Stack

_BEGUN_SECONDS = 60.0  # after which whoever began with a key is taken for dead
_LIMIT = 8 * 1024 * 1024  # 1,000 keys of the longest, whatever their script
_KEY_LENGTH = 200
_RETRY_SECONDS = 10
_OWN_FOLDER = 12  # hex digits of a drop's fingerprint


@dataclass(frozen=True, slots=True)
class HttpDrop:
    """A drop as it came: the manifest, and files by their names below it.

    An empty manifest: the standing workflows that select the files.
    """

    tenant: str
    manifest: bytes
    files: dict[str, Path]
    path: str | None = None
    data_time: str | None = None

    def fingerprint(self) -> str:
        identity = (self.tenant, self.path, self.data_time, hashlib.sha256(self.manifest).hexdigest())
        hasher = hashlib.sha256(repr(identity).encode())
        for name, path in sorted(self.files.items()):
            with path.open("rb") as source:
                hasher.update(name.encode() + b"\0" + hashlib.file_digest(source, "sha256").digest())
        return hasher.hexdigest()

    def folder(self, workflow: str) -> str:
        """Where it goes: to its path, or to a folder of its own that the same drop finds again and no other touches."""
        if self.path is not None or not self.manifest:
            return inbox_folder(self.tenant, self.path or "")
        return inbox_folder(self.tenant, f"{workflow}/{self.fingerprint()[:_OWN_FOLDER]}")


@dataclass
class Accepted:
    keys: list[str]
    jobs: list[Job] = field(default_factory=list)
    repeated: bool = False  # an answer to the same request before

    def shape(self) -> dict[str, object]:
        return {"keys": self.keys, "jobs": [job_shape(job) for job in self.jobs]}


class Submissions:
    """Safe to share between threads."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self.intake = Intake.over(stack)

    def drop(self, submission: HttpDrop, *, trace: str = "") -> Accepted:
        """Put a drop into the inbox, the manifest last, and record its jobs."""
        if not submission.manifest:
            return self._drop_standing(submission, trace)
        manifest = read_manifest(submission.manifest)
        folder = submission.folder(manifest.name)
        manifest_key = f"{folder}manifest.json"
        keys = {f"{folder}{name}": path for name, path in submission.files.items()}
        for key in (manifest_key, *keys):
            _own_key(key, submission.tenant)
        size = len(submission.manifest)
        info = ObjectInfo(key=manifest_key, version="", digest="", size=size, modified=self._stack.clock.now())
        workflow = make_workflow(manifest, info)
        selected = [key for key in keys if workflow.selects(key)]
        self._check_room(submission.tenant, list(keys), workflow)
        if not selected:
            raise ProblemError(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"the manifest selects none of the files; its inputs.primary are {', '.join(workflow.patterns)}. "
                "Rename the files or change the manifest",
            )
        metadata = {"data-time": _data_time(submission.data_time)} if submission.data_time else {}
        # What belongs to the set goes first and what completes it last: the watch may see it half-way.
        for key in sorted(keys, key=lambda key: key in selected):
            self._stack.store.put(key, keys[key], metadata=metadata if key in selected else None)
        self._stack.store.put(manifest_key, submission.manifest)
        return self.record(submission.tenant, [*keys, manifest_key], trace=trace, counted=False)

    def _drop_standing(self, submission: HttpDrop, trace: str) -> Accepted:
        """Put files into the inbox that standing workflows select, and record their jobs."""
        folder = submission.folder("")
        keys = {f"{folder}{name}": path for name, path in submission.files.items()}
        for key in keys:
            _own_key(key, submission.tenant)
        self.standing(list(keys))
        self._check_room(submission.tenant, list(keys))
        metadata = {"data-time": _data_time(submission.data_time)} if submission.data_time else None
        for key, path in keys.items():
            self._stack.store.put(key, path, metadata=metadata)
        return self.record(submission.tenant, list(keys), trace=trace, counted=False)

    def standing(self, keys: list[str]) -> list[Workflow]:
        """The workflows that select the first of these keys; 422 if none selects one of them."""
        view = LiveView(self._stack.store)
        found = [self.intake.selecting(view, key) for key in keys]
        for key, workflows in zip(keys, found, strict=True):
            if not workflows:
                raise ProblemError(
                    HTTPStatus.UNPROCESSABLE_ENTITY,
                    f"no standing workflow selects {key[:200]}; put it into another folder, or send a manifest with it",
                )
        return found[0] if found else []

    def record(self, tenant: str, keys: list[str], *, trace: str = "", counted: bool = True) -> Accepted:
        """Record the jobs of objects in the inbox, traced as part of the request, if the backlog has room for them."""
        for key in keys:
            _own_key(key, tenant)
            if self._stack.store.head(key) is None:
                raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, f"{key} is not in the inbox; upload it first")
        if counted:
            self._check_room(tenant, keys)
        report = self.intake.changed(keys, trace=trace)
        if report.rejected:
            raise ProblemError(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"manifest {report.rejected[0]} does not validate; rejected.json below outputs/{tenant}/ says why",
            )
        recorded = report_dict(report)
        ids = dict.fromkeys(recorded["created"] + recorded["met"] + recorded["queued"])
        found = self._stack.table.get_all(ids)
        jobs = [found[job_id] for job_id in ids if job_id in found]
        jobs = [job for job in jobs if job.tenant == tenant and not (is_placeholder(job) and not job.inputs)]
        if not jobs and (report.refused or report.failed):
            raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "; ".join([*report.refused, *report.failed])[:2000])
        return Accepted(keys, jobs)

    def scan(self, keys: list[str], *, trace: str = "") -> None:
        """Scan keys that were just uploaded; the watch or the sweep would find them too, later."""
        self.intake.changed(keys, trace=trace)

    def check_upload(self, key: str, body: Path) -> None:
        """Refuse an upload whose jobs the backlog has no room for; a manifest makes one for each file it selects."""
        if not is_manifest(key.rpartition("/")[2]):
            self._check_room(place(key).tenant, [key])
        elif (size := body.stat().st_size) <= MAX_MANIFEST_BYTES:
            info = ObjectInfo(key=key, version="", digest="", size=size, modified=self._stack.clock.now())
            try:
                workflow = make_workflow(read_manifest(body.read_bytes()), info)
            except ManifestInvalid:
                return  # rejected.json will say why
            self._check_room(workflow.tenant, [], workflow)

    def check_backlog(self, tenant: str, coming: int = 1) -> None:
        """Refuse what would be stored: 403 in quarantine, 429 while as many jobs of the tenant wait as ADE_QUEUE_SIZE
        allows, 422 if they would never fit."""
        if in_quarantine(self._stack.table, tenant):
            raise ProblemError(
                HTTPStatus.FORBIDDEN, f"nothing is accepted of tenant {tenant}: it is in quarantine; ask the operator"
            )
        most = self._stack.settings.queue_size
        if coming > most:
            raise ProblemError(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"this makes more than {most} jobs at once, files times combinations of a sweep, and ADE_QUEUE_SIZE "
                "lets no more of a tenant wait over HTTP; send fewer at a time, or put the files into the bucket",
            )
        waiting = self._waiting(tenant, most)
        if waiting + coming > most:
            raise ProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"tenant {tenant} has {waiting} jobs waiting, and ADE_QUEUE_SIZE is {most}; send this again later",
                headers={"Retry-After": str(_RETRY_SECONDS)},
            )

    def _check_room(self, tenant: str, keys: list[str], manifest: Workflow | None = None) -> None:
        """Refuse what the backlog has no room for: counted before anything is stored or recorded."""
        most = self._stack.settings.queue_size
        self.check_backlog(tenant, max(1, self.intake.expected(keys, most, manifest=manifest)))

    def _waiting(self, tenant: str, most: int) -> int:
        query, found, cursor = JobQuery(tenant=tenant, states=frozenset({State.QUEUED})), 0, None
        while found < most:
            page = self._stack.table.page(query, limit=most - found, cursor=cursor)
            found, cursor = found + len(page.jobs) + len(page.newer), page.cursor
            if cursor is None:
                break
        return found

    def once(
        self, who: Principal, key: str | None, fingerprint: Callable[[], str], act: Callable[[], Accepted]
    ) -> Accepted:
        """Do it, unless the same caller did the same under this Idempotency-Key within a day."""
        if key is None:
            return act()
        if not 0 < len(key) <= _KEY_LENGTH:
            raise ProblemError(HTTPStatus.BAD_REQUEST, f"Idempotency-Key must have 1 to {_KEY_LENGTH} characters")
        name = hashlib.sha256(f"{who.id}\n{key}".encode()).hexdigest()
        asked, now = fingerprint(), self._stack.clock.now()
        for place_of in _places(name, now):
            known = self._known(place_of)
            if known is not None:
                return self._repeat(place_of, known, asked, act)
        target = _places(name, now)[0]
        begun = _Known(asked, [], None, now)
        try:
            self._stack.store.put(target, json.dumps({"asked": asked, "begun_at": now}).encode(), if_absent=True)
        except PreconditionFailed:
            return self._repeat(target, self._known(target) or begun, asked, act)
        return self._finish(target, asked, act)

    def tidy(self) -> None:
        """Forget answers to requests of more than a day ago."""
        today = datetime.fromtimestamp(self._stack.clock.now(), UTC)
        recent = {f"{REQUESTS}{(today - timedelta(days=n)):%Y-%m-%d}/" for n in (-1, 0, 1)}
        for folder in self._stack.store.level(REQUESTS).folders:
            if folder not in recent:
                self._stack.store.delete_prefix(folder)

    def _finish(self, target: str, asked: str, act: Callable[[], Accepted]) -> Accepted:
        try:
            done = act()
        except Exception:
            self._stack.store.delete(target)  # what failed may be tried again under its key
            raise
        answer = {"asked": asked, "keys": done.keys, "jobs": [job.job_id for job in done.jobs]}
        self._stack.store.put(target, json.dumps(answer).encode())
        return done

    def _repeat(self, target: str, known: "_Known", asked: str, act: Callable[[], Accepted]) -> Accepted:
        if known.asked != asked:
            raise ProblemError(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                "this Idempotency-Key was used for another request within the last day; take another key",
            )
        if known.jobs is not None:
            found = self._stack.table.get_all(known.jobs)
            return Accepted(known.keys, [found[one] for one in known.jobs if one in found], repeated=True)
        if self._stack.clock.now() - known.begun_at < _BEGUN_SECONDS:
            raise ProblemError(
                HTTPStatus.CONFLICT, "the same request is in progress; try again", headers={"Retry-After": "2"}
            )
        return self._finish(target, asked, act)  # whoever began it has died; doing it twice makes the same jobs

    def _known(self, key: str) -> "_Known | None":
        try:
            read = json.loads(self._stack.store.read(key, limit=_LIMIT))
        except (ObjectMissing, ValueError, RecursionError):
            return None
        if not isinstance(read, dict):
            return None
        keys, jobs, begun = read.get("keys", []), read.get("jobs"), read.get("begun_at", 0.0)
        return _Known(read.get("asked"), keys, jobs, float(begun))


class _Known(NamedTuple):
    """What was stored of a request under its Idempotency-Key."""

    asked: str | None
    keys: list[str]
    jobs: list[str] | None  # None: it was begun and not finished
    begun_at: float


def file_name(raw: str | None) -> str:
    """The name of an uploaded file below its manifest; folders are allowed, ways out are not (`place` checks)."""
    name = (raw or "").replace("\\", "/").strip("/")
    if not name or is_manifest(name) or is_ignored(name.rpartition("/")[2]):
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY, f"file name {name[:100]!r} is not one of a file to work on; rename it"
        )
    return name


def _own_key(key: str, tenant: str) -> None:
    """Refuse a key outside the tenant's inbox."""
    if place(key).tenant != tenant:
        raise KeyRefused(f"key {key[:200]!r} is not below {INBOX}{tenant}/; a request names one tenant")


def _data_time(text: str) -> str:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ProblemError(
            HTTPStatus.BAD_REQUEST, f"data_time {text[:50]!r} is no ISO 8601 time, such as 2026-01-31T12:00:00Z"
        ) from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).isoformat()


def _places(name: str, now: float) -> list[str]:
    """Where an answer is kept, today's place first."""
    today = datetime.fromtimestamp(now, UTC)
    return [f"{REQUESTS}{(today - timedelta(days=n)):%Y-%m-%d}/{name}.json" for n in (0, 1)]
