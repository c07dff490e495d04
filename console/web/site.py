"""The site: which page is at which path, and the few requests that only pages make."""

import json
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from pydantic import Field
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from console.api import models
from console.api.access import Permission
from console.api.app import UPLOAD, create_app
from console.api.bodies import read_form
from console.api.guarding import COOKIE
from console.api.job_routes import read_submission
from console.api.operations import Answer, Call, Operation, Page, in_turn
from console.api.problems import ProblemError
from console.api.service_routes import decision_document, with_session
from console.api.submissions import HttpDrop
from console.web import bench_pages, fixes, forms, home_page, own_page, pages, review_page, sender_pages, upload_page
from console.web.changes import changes
from console.web.explanations import FindingFilter, explanation
from console.web.forms import form_fields
from console.web.own_words import words
from console.web.rehearsals import LARGEST, Rehearsal, asker, rehearse_decision, rehearse_drop
from console.web.rendering import STATIC, bare_page, fragment, static_files
from core.errors import ObjectMissing
from core.jobs import State
from core.manifests import MAX_MANIFEST_BYTES
from infra.logs import Log
from infra.parsing import read_decision
from infra.wiring import Stack

_PARTS = 100
_FOREVER = "public, max-age=31536000, immutable"

PAGES: dict[str, Page] = {
    "/": own_page.own_or(home_page.home),
    "/jobs": own_page.for_staff(pages.jobs),
    "/jobs/{job_id}": pages.job,
    "/review": own_page.for_staff(review_page.review),
    "/senders": own_page.for_staff(sender_pages.senders),
}


class InputQuery(models.RequestModel):
    n: int = Field(default=0, ge=0, le=10_000, description="which of the job's inputs")


def wrong_page(request: Request, problem: ProblemError) -> Response:
    """What a browser gets instead of problem+json."""
    if problem.status is HTTPStatus.UNAUTHORIZED and request.url.path != "/login":
        here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        here = here if request.method == "GET" else "/"
        return RedirectResponse(f"/login?next={quote(here, safe='/')}", status_code=303)
    detail = str(problem).partition("; GET /")[0]  # the rest is for programs
    facts = {
        "title": problem.status.phrase,
        "detail": f"{detail[:1].upper()}{detail[1:]}.",
        "spoken": "en",
        "back": "/",
    }
    if request.url.path.startswith(UPLOAD):  # for somebody who has no account, and nowhere to go back to
        text = words(request.headers.get("accept-language", ""))
        facts |= {"back": ""}
        if problem.status is HTTPStatus.NOT_FOUND:
            facts |= {"title": text["upload_title"], "detail": text["upload_gone"], "spoken": text["language"]}
    response = bare_page(request, "problem.html", status=int(problem.status), **facts)
    response.headers.update(problem.headers)
    return response


def static_file(call: Call) -> Answer:
    name = str(call.request.path_params["name"])
    found = static_files().get(name)
    if found is None:
        raise ObjectMissing(f"nothing here is called {name[:100]!r}")
    body, kind = found
    return Response(body, media_type=kind, headers={"Cache-Control": _FOREVER})


def show_login(call: Call) -> Answer:
    return bare_page(call.request, "login.html", next=_safe_next(call.request.query_params.get("next")), problem="")


async def log_in(call: Call) -> Answer:
    """The form of the login page: a token becomes a cookie that no script can read."""
    form = await form_fields(call.request)
    token, after = form.get("token", "").strip()[:200], _safe_next(form.get("next"))
    try:
        who = await run_in_threadpool(call.context.guard.signed_in, call.request, token)
    except ProblemError as problem:
        return bare_page(call.request, "login.html", status=int(problem.status), next=after, problem=str(problem) + ".")
    answer = RedirectResponse(after, status_code=303)
    return with_session(call, answer, who, token)


def log_out(call: Call) -> Answer:
    del call
    answer = RedirectResponse("/login", status_code=303)
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer


def _safe_next(text: str | None) -> str:
    """The path of the site to show after logging in; anything else is the overview."""
    asked = text or "/"
    try:
        parts = urlsplit(asked)
    except ValueError:
        return "/"
    ours = asked.startswith("/") and not asked.startswith(("//", "/\\")) and not (parts.scheme or parts.netloc)
    return asked if ours and asked.isprintable() and "\\" not in asked and len(asked) < 2000 else "/"


async def check_manifest(call: Call) -> Answer:
    """What is wrong with a manifest while it is being written."""
    raw = bytearray()
    async for chunk in call.request.stream():
        raw += chunk
        if len(raw) > MAX_MANIFEST_BYTES:
            break
    return {"problems": await in_turn(call, pages.manifest_problems, bytes(raw))}


async def preview_drop(call: Call) -> Answer:
    """What a drop would become, as a part of a page; nothing is stored."""
    length = call.request.headers.get("content-length", "")
    if not length.isdecimal() or int(length) > LARGEST + 2 * MAX_MANIFEST_BYTES:
        raise ProblemError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a preview takes {LARGEST} bytes; drop the files to see the result"
        )
    with call.context.spool.scratch() as scratch:
        (scratch / "form").mkdir()
        parts = await read_form(call.request, scratch / "form", files=_PARTS, field_bytes=MAX_MANIFEST_BYTES + 1)
        return await in_turn(call, _preview, call, read_submission(parts), scratch)


def _preview(call: Call, submission: HttpDrop, scratch: Path) -> Response:
    if not call.principal.sees(submission.tenant):
        detail = f"this token is of tenant {call.principal.tenant}; name that tenant"
        raise ProblemError(HTTPStatus.FORBIDDEN, detail)
    return _rehearsed(rehearse_drop(call.context, submission, scratch, asker(call)))


def preview_decision(call: Call) -> Answer:
    """What these answers change of what the job would do without them, as a part of a page."""
    job = call.context.seen(call.job_id, call.principal)
    if job.state is not State.REVIEW:
        raise ProblemError(HTTPStatus.CONFLICT, f"job {job.job_id} is {job.state}; it asks nothing any more")
    decision = decision_document(call, job, call.body) | {"remember": False}
    read_decision(json.dumps({**decision, "accept": True}).encode())
    with call.context.spool.scratch() as scratch, call.context.spool.scratch() as other:
        before = rehearse_decision(call.context, job, {**decision, "answers": []}, other, asker(call))
        after = rehearse_decision(call.context, job, decision, scratch, asker(call))
        return HTMLResponse(fragment("difference.html", job=after.job, changes=changes(before, after)))


def _rehearsed(done: Rehearsal) -> Response:
    questions = (done.review or {}).get("questions")
    return HTMLResponse(
        fragment(
            "preview.html",
            job=done.job,
            explanation=explanation(done.artifact, FindingFilter()),
            questions=len(questions) if isinstance(questions, list) else 0,
        )
    )


def read_input(call: Call) -> Answer:
    """What the sender sent, for whoever may see it and asks."""
    query: InputQuery = call.query
    job = call.context.seen(call.job_id, call.principal)
    if query.n >= len(job.inputs):
        raise ObjectMissing(f"job {job.job_id} has {len(job.inputs)} inputs, counted from 0; {query.n} is too high")
    chosen = job.inputs[query.n]
    info = call.context.stack.store.head(chosen.ref.key)
    if info is None or info.version != chosen.ref.version:
        raise ObjectMissing(f"{chosen.ref.key} is no longer as the job read it; it was replaced or removed since")
    call.context.actions.note(call.principal, "read_input", tenant=job.tenant, job=job.job_id, key=chosen.ref.key)
    return call.context.downloads.object(info, chosen.ref.key.rpartition("/")[2])


def console_app(stack: Stack, log: Log) -> Starlette:
    """The API with its pages: what `ade serve` serves."""
    return create_app(stack, log, pages=PAGES, extra=EXTRA, wrong=wrong_page)


def _extra(method: str, path: str, handler: Any, right: Permission | None, **more: Any) -> Operation:
    return Operation(method=method, path=path, name=handler.__name__, summary="", handler=handler, right=right, **more)


EXTRA = (
    _extra("GET", f"{STATIC}{{name}}", static_file, None, open=True),
    _extra("GET", "/login", show_login, None, open=True),
    _extra("POST", "/login", log_in, None, open=True),
    _extra("POST", "/logout", log_out, None, open=True),
    _extra("GET", f"{UPLOAD}{{token}}", upload_page.show_upload, None, open=True),
    _extra("POST", f"{UPLOAD}{{token}}", upload_page.receive_upload, None, open=True),
    _extra("GET", "/template/{workflow}", own_page.template, Permission.SUBMIT),
    _extra("GET", "/bench", bench_pages.benches, Permission.AUTHOR),
    _extra("POST", "/bench", bench_pages.begin, Permission.AUTHOR),
    _extra("POST", "/bench/open", bench_pages.open_workflow, Permission.AUTHOR),
    _extra("GET", "/bench/{owner}/{bench_id}", bench_pages.bench, Permission.AUTHOR),
    _extra("POST", "/bench/{owner}/{bench_id}", bench_pages.edit, Permission.AUTHOR),
    _extra("POST", "/bench/{owner}/{bench_id}/samples", bench_pages.add_samples, Permission.AUTHOR),
    _extra("POST", "/bench/{owner}/{bench_id}/cases", bench_pages.cases, Permission.AUTHOR),
    _extra("POST", "/bench/{owner}/{bench_id}/save", bench_pages.save, Permission.AUTHOR),
    _extra("POST", "/bench/{owner}/{bench_id}/promote", bench_pages.promote, Permission.AUTHOR),
    _extra("POST", "/bench/{owner}/{bench_id}/replay", bench_pages.replay, Permission.AUTHOR),
    _extra("POST", "/bench/{owner}/{bench_id}/remove", bench_pages.remove, Permission.AUTHOR),
    _extra("GET", "/drop", pages.drop, Permission.SUBMIT),
    _extra("POST", "/drop/check", check_manifest, Permission.SUBMIT),
    _extra("POST", "/drop/preview", preview_drop, Permission.SUBMIT),
    _extra("POST", "/jobs/{job_id}/preview", preview_decision, Permission.DECIDE, body=models.DecideBody),
    _extra("POST", "/jobs/{job_id}/act", forms.act_on_one, Permission.ACT),
    _extra("POST", "/jobs/{job_id}/answer", forms.answer, Permission.DECIDE),
    _extra("POST", "/acts/jobs", forms.act_on_many, Permission.ACT),
    _extra("POST", "/acts/pause", forms.pause_or_resume, Permission.ACT),
    _extra("POST", "/acts/resolve", home_page.resolve, Permission.ACT),
    _extra("GET", "/sender", own_page.for_staff(sender_pages.sender), Permission.READ),
    _extra("POST", "/drop", forms.drop, Permission.SUBMIT),
    _extra("GET", f"/jobs/{{job_id}}/{fixes.REJECTS}", fixes.download, Permission.READ),
    _extra("GET", "/jobs/{job_id}/fix", fixes.fixing, Permission.SUBMIT),
    _extra("GET", "/jobs/{job_id}/fix/rows", fixes.rows, Permission.SUBMIT),
    _extra("POST", "/jobs/{job_id}/fix/check", fixes.check, Permission.SUBMIT, body=fixes.FixBody),
    _extra("POST", "/jobs/{job_id}/fix", fixes.submit, Permission.SUBMIT, body=fixes.FixBody),
    _extra("GET", "/jobs/{job_id}/input", read_input, Permission.INPUT, query=InputQuery),
    _extra("POST", "/memory/forget", forms.forget, Permission.DECIDE, body=models.ForgetBody, form=models.ForgetBody),
)
