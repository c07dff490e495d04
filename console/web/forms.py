"""What the pages' buttons do where scripts are off: forms that act and lead back to a page.

What cannot be taken back, or concerns many jobs, is asked first by a page of its own; the script asks by a dialog.
"""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from console.api import job_routes, models, service_routes
from console.api.operations import Answer, Call, checked, in_turn
from console.api.problems import ProblemError
from console.job_facts import plural
from console.web import review_page
from console.web.rendering import link, page
from core.budget import Budget, plain
from core.errors import AdeError
from core.jobs import State
from core.memories import Memory, own_key
from core.memories import forget as without
from infra.memories import change_memory

_SMALL_BYTES = 8192
_ALIKE = 100  # jobs that are answered together
_FILTER = Budget(bytes=_SMALL_BYTES, values=200)
_SHOWN = 20  # of jobs that refused
_QUESTIONS = 2100  # more than a review has
_ASKED = {
    "reset": "Forget what it published and run it again?",
    "remove": "Delete the job, its outputs and its input?",
}


async def form_pairs(request: Request, *, fields: int = 8, most: int = _SMALL_BYTES) -> list[tuple[str, str]]:
    length = request.headers.get("content-length", "")
    if not length.isdecimal() or int(length) > most:
        raise ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the form is over {most} bytes")
    try:
        async with request.form(max_files=0, max_fields=fields) as form:
            return [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
    except HTTPException as error:
        raise ProblemError(HTTPStatus.BAD_REQUEST, f"the form cannot be read: {error.detail}") from None
    except UnicodeError:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "the form is not in its charset; send UTF-8") from None


async def form_fields(request: Request, **bounds: int) -> dict[str, str]:
    return dict(await form_pairs(request, **bounds))


def _go(path: str) -> Response:
    return RedirectResponse(path, status_code=303)


async def act_on_one(call: Call) -> Answer:
    """A button of a job's page."""
    form, at = await form_fields(call.request), f"/jobs/{call.job_id}"
    acts = {"retry": job_routes.retry, "cancel": job_routes.cancel, "reset": job_routes.reset}
    act = form.get("act", "")
    if act in _ASKED and "sure" not in form:
        return _ask(call, act, _ASKED[act], f"{at}/act", back=at, fields={"act": act})
    if act == "remove":
        await in_turn(call, job_routes.remove, replace(call, query=models.RemoveQuery()))
        return _go("/jobs")
    if act not in acts:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "this form can retry, cancel, reset or remove a job, nothing else")
    await in_turn(call, acts[act], call)
    return _go(at)


async def act_on_many(call: Call) -> Answer:
    """Retry or cancel the jobs that were ticked, or all that match the filter, some hundred at a time."""
    pairs = await form_pairs(call.request, fields=job_routes.ACTED_AT_ONCE + 8, most=_SMALL_BYTES * 8)
    return await in_turn(call, _act_on_many, call, dict(pairs), [value for name, value in pairs if name == "job"])


def _act_on_many(call: Call, form: Mapping[str, str], ids: list[str]) -> Response:
    act = form.get("all") or form.get("act")
    if act not in ("retry", "cancel"):
        raise ProblemError(HTTPStatus.BAD_REQUEST, "this form can retry or cancel jobs, nothing else")
    try:
        chosen = plain((form.get("filter") or "{}").encode(), _FILTER)
    except ValueError:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "the filter of this form cannot be read; reload the page") from None
    back = link("/jobs", chosen if isinstance(chosen, dict) else {})
    if "all" not in form:
        return _report(call, act, back, len(ids), job_routes.act_on_some(call, act, ids))
    sure = "sure" in form
    body = {"act": act, "filter": chosen, "dry_run": not sure, "cursor": form.get("cursor")}
    answer: Any = job_routes.act_on_all(replace(call, body=checked(models.ActBody, body, "form field")))
    count, cursor = int(answer["count"]), answer["cursor"]
    fields = {"all": act, "filter": json.dumps(chosen)}
    if sure:
        return _report(call, act, back, count, answer["refused"], fields | {"cursor": cursor} if cursor else None)
    if not count and not cursor:
        return _report(call, act, back, 0, [])
    many = f"more than {count} jobs" if cursor else plural(count, "job")
    text = f"{act.capitalize()} {many}, all that match? Those that cannot are skipped."
    return _ask(call, act, text, "/acts/jobs", back=back, fields=fields)


def _ask(call: Call, act: str, text: str, action: str, *, back: str, fields: Mapping[str, str]) -> Response:
    """A page that asks before something is done."""
    button = f"Yes, {act}"
    return page(
        call,
        "acts.html",
        title=act.capitalize(),
        refused=[],
        text=text,
        button=button,
        action=action,
        fields=fields,
        back=back,
    )


def _report(  # noqa: PLR0917 - as it is shown
    call: Call, act: str, back: str, count: int, refused: list[dict[str, str]], rest: dict[str, str] | None = None
) -> Response:
    """What became of many jobs, and a button to go on where there are more."""
    text = f"{plural(count - len(refused), 'job')} done" + (f", {len(refused)} skipped." if refused else ".")
    button = "Go on with the rest" if rest else ""
    return page(
        call,
        "acts.html",
        title=act.capitalize(),
        refused=refused[:_SHOWN],
        text=text,
        button=button,
        action="/acts/jobs",
        fields=rest or {},
        back=back,
    )


async def answer(call: Call) -> Answer:
    """The answers of the review page: by the number of question and candidate."""
    pairs = await form_pairs(call.request, fields=2 * _QUESTIONS + _ALIKE, most=_QUESTIONS * 300)
    also = [value for name, value in pairs if name == "also"]
    together = await in_turn(call, _answer, call, dict(pairs), also)
    return _go(link("/review", answered=call.job_id, together=together or None))


def _answer(call: Call, form: dict[str, str], also: list[str]) -> int:
    job = call.context.seen(call.job_id, call.principal)
    questions = review_page.questions(call.context.facade.review(job)) or []
    if form.get("of") != review_page.fingerprint(questions):
        raise ProblemError(HTTPStatus.CONFLICT, "the job asks something else by now; go back and reload the page")
    answered: list[tuple[review_page.AskedQuestion, str | None]] = []
    for n, question in enumerate(questions, 1):
        chosen, candidates = form.get(f"q{n}", ""), question["candidates"]
        if chosen.isdecimal() and int(chosen) < len(candidates):
            answered.append((question, candidates[int(chosen)]["value"]))
        elif chosen == "other" and question.get("kind") == "column" and form.get(f"q{n}-other"):
            answered.append((question, form[f"q{n}-other"]))
    body = models.DecideBody(answers=_decided(answered), remember="remember" in form)
    service_routes.decide_job(call, job, body)
    return _answer_alike(call, body.remember, {review_page.signature(asked): value for asked, value in answered}, also)


def _answer_alike(call: Call, remember: bool, values: Mapping[str, str | None], also: list[str]) -> int:  # noqa: FBT001
    """The same answers for other jobs that ask nothing else, and how many took them.

    One that has gone on, asks more or has another manifest is left alone: it waits, and can be answered by itself.
    """
    done = 0
    for job_id in dict.fromkeys(also[:_ALIKE]):
        with contextlib.suppress(AdeError, ProblemError):
            job = call.context.seen(job_id, call.principal)
            asked = review_page.questions(call.context.facade.review(job)) or []
            signed = [(one, review_page.signature(one)) for one in asked]
            if job.state is not State.REVIEW or not signed or any(known not in values for _, known in signed):
                continue
            answers = _decided([(one, values[known]) for one, known in signed])
            service_routes.decide_job(call, job, models.DecideBody(answers=answers, remember=remember))
            done += 1
    return done


def _decided(answered: list[tuple[review_page.AskedQuestion, str | None]]) -> list[dict[str, object]]:
    """The answers as a decision has them."""
    # A column that was chosen for a required field is decided: what the page itself preset for it is no answer.
    columns = {_place(asked, value) for asked, value in answered if asked.get("kind") == "required" and value}
    return [
        {"id": asked["id"], "value": value}
        for asked, value in answered
        if _place(asked, asked.get("column")) not in columns or value != asked.get("chosen")
    ]


def _place(question: review_page.AskedQuestion, column: object) -> tuple[str, str, str]:
    return str(question.get("input")), str(question.get("sheet")), str(column)


async def pause_or_resume(call: Call) -> Answer:
    form = await form_fields(call.request)
    act, tenant = form.get("act"), form.get("tenant", "")
    acts = {"pause": service_routes.pause, "resume": service_routes.resume}
    if act not in acts:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "this form can pause or resume, nothing else")
    scope = {name: form[name] for name in ("tenant", "workflow") if form.get(name)}
    body = checked(models.PauseBody, scope, "form field")
    if act == "pause" and "sure" not in form:
        text = f"Start no more jobs{f' of {tenant}' if tenant else ''} until you resume?"
        return _ask(call, act, text, "/acts/pause", back="/", fields=scope | {"act": act})
    await in_turn(call, acts[act], replace(call, body=body))
    return _go("/")


async def drop(call: Call) -> Answer:
    """The form of the drop page; leads to the job, or to the jobs that it became."""
    made = await job_routes.submit(call)
    jobs = json.loads(bytes(made.body))["jobs"] if isinstance(made, Response) else []
    return _go(f"/jobs/{jobs[0]['job_id']}" if len(jobs) == 1 else "/jobs")


async def forget(call: Call) -> Answer:
    """Take a header, or all that one sender's files taught, out of a memory; by a form, or by JSON of the script."""
    by_form = call.body is None
    body: models.ForgetBody = call.body
    if by_form:
        body = checked(models.ForgetBody, await form_fields(call.request), "form field")
    if not call.principal.sees(body.tenant):
        raise ProblemError(HTTPStatus.FORBIDDEN, f"this token is of tenant {call.principal.tenant}; name that tenant")
    key, gone = await in_turn(call, _forget, call, body)
    return (
        _go(link("/sender", tenant=body.tenant, workflow=body.workflow))
        if by_form
        else JSONResponse({"key": key, "forgotten": gone})
    )


def _forget(call: Call, body: models.ForgetBody) -> tuple[str, int]:
    key, gone = own_key(body.tenant, body.workflow), 0

    def change(memory: Memory) -> Memory:
        nonlocal gone
        left, gone = without(memory, header=body.header, sender=body.sender)
        return left

    what = body.model_dump(include={"header", "sender"}, exclude_none=True)
    call.context.actions.note(call.principal, "forget", tenant=body.tenant, workflow=body.workflow, **what)
    change_memory(call.context.stack.store, key, change)
    call.context.stack.table.advance(body.tenant)
    return key, gone
