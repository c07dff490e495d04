"""Operations on jobs: submit, list, download, follow, retry, cancel."""

import functools
import hashlib
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

from starlette.responses import Response

from console.again import run_again
from console.api import models
from console.api.access import Permission
from console.api.bodies import Part, ReceivedFile, body_of, read_form
from console.api.following import event_stream, resume
from console.api.operations import Answer, Call, Operation, checked, in_turn, json_bytes
from console.api.problems import ProblemError
from console.api.submissions import Accepted, HttpDrop, file_name
from console.facade import log_text
from console.job_facts import job_shape, newer_shape
from core.errors import AdeError, KeyRefused, StoreUnavailable
from core.jobs import Job
from core.keys import INBOX, check_key, is_decision, is_ignored, job_folder, place
from core.manifests import MAX_MANIFEST_BYTES
from core.ports import JobQuery, ObjectInfo

_PARTS = 1000
ACTED_AT_ONCE = 200
_COUNTED_AT_ONCE = 5000
_NAMED = 100
_UPLOAD_SECONDS = 3600
_LOG_PIECE = 1024 * 1024


async def submit(call: Call) -> Answer:
    """A multipart drop, or keys that are in the inbox."""
    if call.body is not None:
        body: models.KeysBody = call.body
        return await in_turn(call, _submit_keys, call, body)
    with call.context.spool.scratch() as scratch:
        parts = await read_form(call.request, scratch, files=_PARTS, field_bytes=MAX_MANIFEST_BYTES + 1)
        return await in_turn(call, _submit_form, call, parts)


def _submit_keys(call: Call, body: models.KeysBody) -> Response:
    _check_tenant(call, body.tenant)
    context = call.context

    def act() -> Accepted:
        context.submissions.check_backlog(body.tenant)
        context.actions.note(call.principal, "submit", tenant=body.tenant, keys=body.keys[:_NAMED])
        return context.submissions.record(body.tenant, body.keys, trace=call.span.trace)

    asked = hashlib.sha256(repr((body.tenant, body.keys)).encode()).hexdigest()
    key = call.request.headers.get("idempotency-key")
    return _accepted(call, context.submissions.once(call.principal, key, lambda: asked, act))


def _submit_form(call: Call, parts: list[Part]) -> Response:
    context = call.context
    submission = read_submission(parts, context.stack.settings.worker_fsize_mb)
    _check_tenant(call, submission.tenant)

    def act() -> Accepted:
        context.submissions.check_backlog(submission.tenant)
        names = sorted(submission.files)[:_NAMED]
        context.actions.note(call.principal, "submit", tenant=submission.tenant, path=submission.path, files=names)
        return context.submissions.drop(submission, trace=call.span.trace)

    key = call.request.headers.get("idempotency-key")
    return _accepted(call, context.submissions.once(call.principal, key, submission.fingerprint, act))


def _accepted(call: Call, done: Accepted) -> Response:
    call.span.jobs = {job.job_id: job.trace for job in done.jobs}
    headers = {"Idempotency-Replayed": "true"} if done.repeated else {}
    if len(done.jobs) == 1:
        headers["Location"] = f"/jobs/{done.jobs[0].job_id}"
    return Response(json_bytes(done.shape()), status_code=202, headers=headers, media_type="application/json")


def read_submission(parts: list[Part], megabytes: int = 1024) -> HttpDrop:
    """The form's parts as a drop."""
    words: dict[str, str] = {}
    files: dict[str, Path] = {}
    for name, value in parts:
        if name == "files" and isinstance(value, ReceivedFile):
            called = file_name(value.filename)
            if called in files:
                raise ProblemError(
                    HTTPStatus.UNPROCESSABLE_ENTITY, f"two files are called {called[:100]!r}; rename one"
                )
            if value.size > megabytes * 1024 * 1024:
                raise ProblemError(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                    f"{called[:100]!r} is over {megabytes} MB, the most that an input may have (ADE_WORKER_FSIZE_MB)",
                )
            files[called] = value.path
        elif name == "files":
            raise ProblemError(
                HTTPStatus.BAD_REQUEST, "a part `files` has no file name; send it with one (curl: -F files=@people.csv)"
            )
        elif name in words:
            raise ProblemError(HTTPStatus.BAD_REQUEST, f"form field {name!r} is there twice; send it once")
        elif name in ("tenant", "manifest", "path", "data_time"):
            words[name] = _text(value)
        else:
            raise ProblemError(
                HTTPStatus.BAD_REQUEST,
                f"form field {name[:50]!r} is not known; the fields are tenant, manifest, files, path and data_time",
            )
    missing = [] if words.get("tenant", "").strip() else ["tenant"]
    missing += [] if files else ["files"]
    if missing:
        raise ProblemError(HTTPStatus.BAD_REQUEST, f"the form lacks {' and '.join(missing)}; fill in what is missing")
    checked(models.OverviewQuery, {"tenant": words["tenant"]}, "form field")
    manifest = words.get("manifest", "")
    return HttpDrop(
        words["tenant"],
        manifest.encode() if manifest.strip() else b"",
        files,
        words.get("path") or None,
        words.get("data_time") or None,
    )


def _text(value: str | ReceivedFile) -> str:
    if isinstance(value, str):
        return value
    with value.path.open("rb") as file:
        return file.read(MAX_MANIFEST_BYTES + 1).decode("utf-8", "replace")


def _check_tenant(call: Call, tenant: str) -> None:
    if not call.principal.sees(tenant):
        raise ProblemError(HTTPStatus.FORBIDDEN, f"this token is of tenant {call.principal.tenant}; name that tenant")


def uploads(call: Call) -> Answer:
    """Where to put files: a link to the store itself, or our own address."""
    body: models.UploadBody = call.body
    _check_tenant(call, body.tenant)
    call.context.submissions.check_backlog(body.tenant)
    folder = f"{INBOX}{body.tenant}/{body.path.strip('/')}/" if body.path.strip("/") else f"{INBOX}{body.tenant}/"
    links = []
    for name in body.names:
        key = _upload_key(f"{folder}{name}")
        link = call.context.stack.store.link(key, seconds=_UPLOAD_SECONDS, write=True)
        until = None if link is None else call.context.stack.clock.now() + _UPLOAD_SECONDS
        links.append({"key": key, "method": "PUT", "url": link or f"/uploads/{key}", "expires_at": until})
    call.context.actions.note(call.principal, "upload", tenant=body.tenant, keys=[one["key"] for one in links][:_NAMED])
    return {"uploads": links}


def _upload_key(key: str) -> str:
    """A key of the inbox for a file that is read; a decision has its own endpoint, which records who decides."""
    name = place(check_key(key)).name
    if is_decision(name):
        raise KeyRefused(f"{key[:200]} is a decision on a review; answer with POST /jobs/{{job_id}}/decide")
    if is_ignored(name):
        raise KeyRefused(f"{key[:200]} would never be read: its name is that of a hidden or unfinished file; rename it")
    return key


async def put_upload(call: Call) -> Answer:
    """An object for the inbox, through us."""
    key = _upload_key(str(call.request.path_params["key"]))
    tenant = place(key).tenant
    _check_tenant(call, tenant)
    await in_turn(call, call.context.submissions.check_backlog, tenant)
    limit = call.context.stack.settings.worker_fsize_mb * 1024 * 1024
    body_of(call.request).goes_to_disk()
    with call.context.spool.scratch() as scratch:
        path, size = scratch / "body", 0
        with path.open("xb") as target:
            async for chunk in call.request.stream():
                size += len(chunk)
                if size > limit:
                    raise ProblemError(
                        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                        f"{key} is over {limit} bytes, the most that an input may have (ADE_WORKER_FSIZE_MB)",
                    )
                target.write(chunk)
        info = await in_turn(call, _put, call, key, path)
    return {"key": info.key, "version": info.version, "size": info.size}


def _put(call: Call, key: str, path: Path) -> ObjectInfo:
    call.context.submissions.check_upload(key, path)
    facts = {"tenant": place(key).tenant, "keys": [key], "size": path.stat().st_size}
    call.context.actions.note(call.principal, "put", **facts)
    return call.context.stack.store.put(key, path)


def list_jobs(call: Call) -> Answer:
    query: models.JobsQuery = call.query

    def ask() -> bytes:
        listed = _listed(call, query.query(call.principal.tenant), query.limit, query.cursor, query.tenant)
        return json_bytes(listed)

    body = call.context.answers.get((call.principal.tenant, query.model_dump_json()), ask)
    return Response(body, media_type="application/json")


def _listed(call: Call, query: JobQuery, limit: int, cursor: str | None, asked: str | None) -> dict[str, object]:
    if asked is not None and not call.principal.sees(asked):
        return {"jobs": [], "newer": [], "cursor": None}
    try:
        page = call.context.facade.jobs(query, limit=limit, cursor=cursor)
    except ValueError:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "this cursor is not one of a page before; leave it out") from None
    return {
        "jobs": [job_shape(job) for job in page.jobs],
        "newer": [newer_shape(row) for row in page.newer],
        "cursor": page.cursor,
    }


def show_job(call: Call) -> Answer:
    job = call.context.seen(call.job_id, call.principal)
    return view(call, job)


def view(call: Call, job: Job) -> dict[str, object]:
    """A job's record, its timeline, and where the rest is."""
    at = f"/jobs/{job.job_id}"
    parts = ("artifact", "output", "logs", "result.zip", "files")
    return {
        **job_shape(job),
        "timeline": call.context.facade.timeline(job),
        "links": {"self": at, **{part: f"{at}/{part}" for part in parts}},
    }


def artifact(call: Call) -> Answer:
    return call.context.downloads.one(call.context.seen(call.job_id, call.principal), "artifact.json")


def output(call: Call) -> Answer:
    query: models.FileQuery = call.query
    job = call.context.seen(call.job_id, call.principal)
    return call.context.downloads.one(job, query.name, inline=query.inline)


def files(call: Call) -> Answer:
    job = call.context.seen(call.job_id, call.principal)
    folder = job_folder(job)
    found = [
        {"name": info.key.removeprefix(folder), "key": info.key, "size": info.size, "version": info.version}
        for info in call.context.facade.files(job)
    ]
    return {"job_id": job.job_id, "expires_at": job.expires_at, "files": found}


def result_zip(call: Call) -> Answer:
    return call.context.downloads.zipped(call.context.seen(call.job_id, call.principal))


async def logs(call: Call) -> Answer:
    """What the job's rules printed: as events while it grows, or what came after so many bytes."""
    query: models.LogQuery = call.query
    job = await in_turn(call, call.context.seen, call.job_id, call.principal)
    if not (query.follow or "text/event-stream" in call.request.headers.get("accept", "")):
        return await in_turn(call, _log_piece, call, job, query.after)
    have = resume(call.request.headers.get("last-event-id"))
    return event_stream(call, call.context.followers.follow(job.job_id, have))


def _log_piece(call: Call, job: Job, after: int) -> Answer:
    ended = job.ended and not job.unpublished
    raw = call.context.facade.log(job, after)[:_LOG_PIECE]
    text, length = log_text(
        raw, whole=(ended and len(raw) < _LOG_PIECE) or (b"\n" not in raw[:_LOG_PIECE] and len(raw) == _LOG_PIECE)
    )
    return {
        "job_id": job.job_id,
        "state": str(job.state),
        "text": text,
        "after": after + length,
        "ended": ended and len(raw) < _LOG_PIECE,
    }


def retry(call: Call) -> Answer:
    return _act(call, "retry")


def cancel(call: Call) -> Answer:
    return _act(call, "cancel")


def reset(call: Call) -> Answer:
    return _act(call, "reset")


def _act(call: Call, act: str) -> Answer:
    job = call.context.seen(call.job_id, call.principal)
    call.context.actions.note(call.principal, act, tenant=job.tenant, job=job.job_id)
    return job_shape(_change(call, act, job.job_id))


def _change(call: Call, act: str, job_id: str) -> Job:
    control = call.context.control
    again = functools.partial(run_again, call.context.submissions.intake, control)
    by_name: dict[str, Callable[[str], Job]] = {
        "retry": functools.partial(again, "retry"),
        "cancel": control.cancel,
        "reset": functools.partial(again, "reset"),
        "remove": control.remove,
    }
    return by_name[act](job_id)


def remove(call: Call) -> Answer:
    query: models.RemoveQuery = call.query
    job = call.context.seen(call.job_id, call.principal)
    call.context.actions.note(call.principal, "remove", tenant=job.tenant, job=job.job_id, keep_input=query.keep_input)
    gone = call.context.control.remove(job.job_id, keep_input=query.keep_input)
    return {"job_id": gone.job_id, "removed": True}


def act_on_all(call: Call) -> Answer:
    """One act on what matches, page by page; the cursor says where to go on."""
    body: models.ActBody = call.body
    if body.filter.tenant is not None:
        _check_tenant(call, body.filter.tenant)
    query = body.filter.query(call.principal.tenant)
    most = _COUNTED_AT_ONCE if body.dry_run else ACTED_AT_ONCE
    try:
        ids, cursor = _matching(call, query, body.cursor, most)
    except ValueError:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "this cursor is not one of an answer before; leave it out") from None
    refused: list[dict[str, str]] = []
    if not body.dry_run and ids:
        facts = body.filter.model_dump(mode="json", exclude_none=True)
        call.context.actions.note(
            call.principal, body.act, tenant=query.tenant, filter=facts, count=len(ids), jobs=ids[:_NAMED]
        )
        refused = _change_all(call, body.act, ids)
    return {
        "act": body.act,
        "dry_run": body.dry_run,
        "count": len(ids),
        "jobs": ids[:_NAMED],
        "refused": refused,
        "cursor": cursor,
    }


def act_on_some(call: Call, act: str, ids: list[str]) -> list[dict[str, str]]:
    """One act on jobs that were chosen by hand; those that refused it, with the reason."""
    ids = [call.context.seen(job_id, call.principal).job_id for job_id in ids[:ACTED_AT_ONCE]]
    call.context.actions.note(call.principal, act, tenant=call.principal.tenant, count=len(ids), jobs=ids[:_NAMED])
    return _change_all(call, act, ids)


def _change_all(call: Call, act: str, ids: list[str]) -> list[dict[str, str]]:
    refused = []
    for job_id in ids:
        try:
            _change(call, act, job_id)
        except StoreUnavailable:
            raise  # the others would wait for it as well; the same call again goes on where this one ended
        except AdeError as error:
            refused.append({"job_id": job_id, "refused": str(error)})
    return refused


def _matching(call: Call, query: JobQuery, cursor: str | None, most: int) -> tuple[list[str], str | None]:
    ids: list[str] = []
    for _ in range(most):
        page = call.context.facade.jobs(query, limit=min(500, most - len(ids)), cursor=cursor)
        ids += [job.job_id for job in page.jobs]
        cursor = page.cursor
        if cursor is None or len(ids) >= most:
            break
    return ids, cursor


_JOB = "/jobs/{job_id}"
_FILE = "application/octet-stream"
_XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

OPERATIONS = (
    Operation(
        method="POST",
        path="/jobs",
        name="submit",
        summary="Drop files with their manifest, or take up keys that are in the inbox",
        right=Permission.SUBMIT,
        handler=submit,
        body=models.KeysBody,
        form=models.DropForm,
        headers={"Idempotency-Key": "the same key within a day gets the same answer and makes nothing twice"},
        answers={202: models.Submission},
        also=(403, 409, 413, 415, 422, 507),
    ),
    Operation(
        method="GET",
        path="/jobs",
        name="list_jobs",
        summary="Jobs that match, newest first",
        right=Permission.READ,
        handler=list_jobs,
        query=models.JobsQuery,
        answers={200: models.JobList},
    ),
    Operation(
        method="POST",
        path="/jobs/acts",
        name="act_on_all",
        summary="One act on every job that matches a filter; with dry_run only their count",
        right=Permission.ACT,
        handler=act_on_all,
        body=models.ActBody,
        answers={200: models.ActResult},
        also=(403, 413, 415),
    ),
    Operation(
        method="GET",
        path=_JOB,
        name="show_job",
        summary="Everything about one job, with its timeline",
        right=Permission.READ,
        handler=show_job,
        answers={200: models.JobView},
        also=(404, 409, 422),
    ),
    Operation(
        method="DELETE",
        path=_JOB,
        name="remove",
        summary="Delete a job: its row, its outputs and its input",
        right=Permission.ACT,
        handler=remove,
        query=models.RemoveQuery,
        answers={200: models.Removed},
        also=(403, 404, 409, 422),
    ),
    Operation(
        method="GET",
        path=f"{_JOB}/artifact",
        name="artifact",
        summary="The audit of a job; in the cloud a redirect to the store",
        right=Permission.READ,
        handler=artifact,
        answers={200: "application/json", 307: None},
        also=(404, 409, 422),
    ),
    Operation(
        method="GET",
        path=f"{_JOB}/output",
        name="output",
        summary="The workbook that a job published, or another of its files; in the cloud a redirect to the store",
        right=Permission.READ,
        handler=output,
        query=models.FileQuery,
        answers={200: "*/*", 307: None},
        also=(404, 409, 422),
    ),
    Operation(
        method="GET",
        path=f"{_JOB}/files",
        name="files",
        summary="What a job has published",
        right=Permission.READ,
        handler=files,
        answers={200: models.FileList},
        also=(404, 409, 422),
    ),
    Operation(
        method="GET",
        path=f"{_JOB}/result.zip",
        name="result_zip",
        summary="All that a job has published, failed jobs too; ranges work",
        right=Permission.READ,
        handler=result_zip,
        answers={200: "application/zip", 206: "application/zip"},
        also=(404, 409, 422),
    ),
    Operation(
        method="GET",
        path=f"{_JOB}/logs",
        name="logs",
        summary="What a job's rules printed: a piece after so many bytes, or server-sent events",
        right=Permission.READ,
        handler=logs,
        query=models.LogQuery,
        headers={"Last-Event-ID": "where a broken stream of events goes on"},
        answers={200: models.LogText},
        also=(404, 409, 422),
    ),
    *(
        Operation(
            method="POST",
            path=f"{_JOB}/{name}",
            name=name,
            summary=summary,
            right=Permission.ACT,
            handler=handler,
            answers={200: models.JobRecord},
            also=(403, 404, 409, 422),
        )
        for name, summary, handler in (
            ("retry", "Run a job again that ended without success", retry),
            ("cancel", "Stop a job that has not ended", cancel),
            ("reset", "Forget what a job published and run it again", reset),
        )
    ),
    Operation(
        method="POST",
        path="/uploads",
        name="uploads",
        summary="Where to put files of a drop: links to the store itself in the cloud",
        right=Permission.SUBMIT,
        handler=uploads,
        body=models.UploadBody,
        answers={200: models.UploadList},
        also=(403, 413, 415),
    ),
    Operation(
        method="PUT",
        path="/uploads/{key:path}",
        name="put_upload",
        summary="Put one object into the inbox, through us",
        right=Permission.SUBMIT,
        handler=put_upload,
        raw=_FILE,
        answers={200: models.UploadDone},
        also=(403, 413, 422, 507),
    ),
)
