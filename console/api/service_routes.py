"""Operations on everything but single jobs: overview, reviews, memories, pauses, sessions, health."""

import contextlib
import json
from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import asdict, replace
from http import HTTPStatus
from itertools import islice
from typing import Any

from starlette.responses import Response

from console.api import metrics, models
from console.api.access import Permission, Principal
from console.api.following import event_stream
from console.api.guarding import COOKIE
from console.api.operations import Answer, Call, Operation, json_bytes
from console.api.problems import ProblemError, respond
from console.api.values import show_values
from console.job_facts import job_shape, pause_shape
from core.errors import ObjectChanged, ObjectMissing, ObjectTooLarge, PreconditionFailed, UsageError
from core.jobs import Job, State
from core.keys import job_folder
from core.memories import MemoryInvalid
from core.ports import JobQuery, ObjectInfo, Pause, Resolution
from infra import meters, own_code
from infra.parsing import check_memory, read_decision
from infra.prometheus_text import CONTENT_TYPE
from infra.quarantine import in_quarantine
from infra.reviews import DecisionBody, put_decision

_ANSWER_BYTES = 4 * 1024 * 1024  # of the documents in one answer
SESSION_SECONDS = 12 * 3600


def index(call: Call) -> Answer:
    names = (
        "jobs",
        "overview",
        "attention",
        "review",
        "memory",
        "pauses",
        "metrics",
        "health",
        "ready",
        "openapi.json",
    )
    del call
    return {"name": "ade-drop", "version": own_code.version(), "links": {name: f"/{name}" for name in names}}


def overview(call: Call) -> Answer:
    return overview_shape(call, call.query.tenant)


def overview_shape(call: Call, asked: str | None) -> dict[str, object]:
    facade, tenant = call.context.facade, _tenant(call, asked)
    facts, recent = facade.overview(tenant), facade.recent(tenant)
    queue = facts.queue
    return {
        "at": facts.at,
        "counted_at": facts.counted_at,
        "states": facts.states,
        "tenants": facts.tenants,
        "whole": facts.whole,
        "queue": None
        if queue is None
        else {name: getattr(queue, name) for name in ("ready", "in_flight", "delayed", "dead", "oldest_seconds")},
        "trouble": facts.trouble,
        "pauses": [pause_shape(pause) for pause in facts.pauses],
        "recent": {
            "jobs": recent.jobs,
            "succeeded": recent.succeeded,
            "since": recent.since,
            "verdicts": recent.verdicts,
            "faults": recent.faults,
            "outcomes": recent.outcomes,
        },
    }


async def events(call: Call) -> Answer:
    return event_stream(call, call.context.followers.counts(_tenant(call, call.query.tenant)))


def senders(call: Call) -> Answer:
    return {"senders": call.context.facade.senders(_tenant(call, call.query.tenant))}


def attention(call: Call) -> Answer:
    """What needs a person, the most urgent first."""
    matters = call.context.facade.attention(_tenant(call, call.query.tenant))
    return {"matters": [asdict(one) for one in matters]}


def resolve(call: Call) -> Answer:
    """Take a matter off the list until it happens again."""
    body: models.ResolveBody = call.body
    mine = call.principal.tenant
    known = {one.what: one for one in call.context.facade.attention(mine)}
    matter = known.get(body.what)
    if matter is None:
        raise ProblemError(HTTPStatus.NOT_FOUND, "nothing of that name needs attention; somebody may have resolved it")
    if mine is not None and matter.tenant != mine:
        raise ProblemError(HTTPStatus.FORBIDDEN, f"this token is of tenant {mine}; it resolves what is of that tenant")
    if body.until > matter.happened:
        raise ProblemError(HTTPStatus.CONFLICT, f"the newest case of it happened at {matter.happened}, not later")
    one = Resolution(
        what=matter.what,
        until=body.until,
        tenant=matter.tenant,
        at=call.context.stack.clock.now(),
        by=call.principal.name,
        note=body.note.strip(),
    )
    more = {"workflow": matter.workflow} if matter.workflow else {}
    call.context.actions.note(
        call.principal, "resolve", tenant=matter.tenant or None, what=one.what, until=one.until, note=one.note, **more
    )
    done = call.context.stack.table.resolve(one)
    call.context.facade.forget_matters()
    if not done:
        raise ProblemError(HTTPStatus.CONFLICT, "somebody resolved this before you; reload the list")
    return {"resolved": asdict(one)}


def resolutions(call: Call) -> Answer:
    """What people took care of lately, newest first."""
    mine = _tenant(call, call.query.tenant)
    found = [one for one in call.context.stack.table.resolutions() if mine in (None, one.tenant)]
    return {"resolutions": [asdict(one) for one in found[: call.query.limit]]}


def reviews(call: Call) -> Answer:
    """Jobs that wait for a person, with their questions."""
    query: models.PageQuery = call.query
    found = JobQuery(tenant=_tenant(call, query.tenant), states=frozenset({State.REVIEW}))
    try:
        page = call.context.facade.jobs(found, limit=query.limit, cursor=query.cursor)
    except ValueError:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "this cursor is not one of a page before; leave it out") from None
    sizes = [call.context.facade.size(f"{job_folder(job)}review.json") for job in page.jobs]
    fitting = _fitting(sizes)
    if fitting < len(page.jobs):
        page = call.context.facade.jobs(found, limit=fitting, cursor=query.cursor)
    shown = [
        {"job": job_shape(job), "review": call.context.facade.review(job) if size <= _ANSWER_BYTES else None}
        for job, size in zip(page.jobs, sizes, strict=False)
    ]
    return {"reviews": shown, "cursor": page.cursor}


def _fitting(sizes: list[int]) -> int:
    """How many documents one answer has room for, the first in any case; one that is too large takes none."""
    total = 0
    for n, size in enumerate(sizes):
        total += size if size <= _ANSWER_BYTES else 0
        if n and total > _ANSWER_BYTES:
            return n
    return len(sizes)


def decide(call: Call) -> Answer:
    """Answer a review: write the decision next to the input, as any client could, and scan it at once."""
    return decide_job(call, call.context.seen(call.job_id, call.principal), call.body)


def decide_job(call: Call, job: Job, body: models.DecideBody) -> dict[str, object]:
    if job.state is not State.REVIEW:
        raise ProblemError(HTTPStatus.CONFLICT, f"job {job.job_id} is {job.state}; only a job in REVIEW can be decided")
    if not any(one.role == "primary" for one in job.inputs):
        raise UsageError(f"job {job.job_id} has no input to put a decision beside")
    decision = decision_document(call, job, body) | {"accept": body.accept, "remember": body.remember}
    read_decision(json.dumps(decision, ensure_ascii=False).encode())
    call.context.actions.note(
        call.principal, "decide", tenant=job.tenant, job=job.job_id, answers=len(body.answers), remember=body.remember
    )
    try:
        key = put_decision(call.context.stack.store, job, decision)
    except PreconditionFailed:
        problem = f"somebody else decided on {job.job_id} in the meantime; check it and repeat"
        raise ProblemError(HTTPStatus.CONFLICT, problem) from None
    call.context.submissions.scan([key], trace=call.span.trace)
    call.context.facade.forget_matters()
    return {"job_id": job.job_id, "decision": key}


def decision_document(call: Call, job: Job, body: models.DecideBody) -> DecisionBody:
    """The caller's answers about a job, as a decision says them."""
    return {
        "decision": 1,
        "workflow": job.workflow,
        "by": call.principal.name,
        "job": job.job_id,
        "answers": body.answers,
    }


def memories(call: Call) -> Answer:
    """A page of memories. What they hold goes out as it was read: checked, but never taken apart here."""
    query: models.PageQuery = call.query
    listed = call.context.facade.memories(_tenant(call, query.tenant), after=query.cursor or "")
    page = list(islice(listed, query.limit + 1))
    fitting = min(query.limit, _fitting([info.size for info, _, _ in page]))
    parts = []
    for info, tenant, workflow in page[:fitting]:
        facts = {"key": info.key, "tenant": tenant, "workflow": workflow, "version": info.version, "size": info.size}
        parts.append(json_bytes(facts)[:-1] + b',"memory":' + _memory(call, info) + b"}")
    cursor = page[fitting - 1][0].key if fitting < len(page) else None
    whole = b'{"memories":[' + b",".join(parts) + b'],"cursor":' + json_bytes(cursor) + b"}"
    return Response(whole, media_type="application/json")


def _memory(call: Call, info: ObjectInfo) -> bytes:
    """A memory as JSON; null: it is too large for an answer, gone, or does not validate."""
    with contextlib.suppress(ObjectMissing, ObjectChanged, ObjectTooLarge, MemoryInvalid):
        body = call.context.stack.store.read(info.key, version=info.version, limit=_ANSWER_BYTES)
        check_memory(body)
        return body.removeprefix(BOM_UTF8)
    return b"null"


def pauses(call: Call) -> Answer:
    return _pauses(call)


def pause(call: Call) -> Answer:
    tenant, workflow = _scope(call)
    now = call.context.stack.clock.now()
    call.context.actions.note(call.principal, "pause", tenant=tenant, workflow=workflow)
    call.context.stack.table.pause(Pause(tenant=tenant, workflow=workflow, since=now, by=call.principal.name))
    return _pauses(call)


def resume(call: Call) -> Answer:
    tenant, workflow = _scope(call)
    if tenant is not None and in_quarantine(call.context.stack.table, tenant):
        raise ProblemError(
            HTTPStatus.CONFLICT, f"tenant {tenant} is in quarantine; `ade quarantine {tenant} --end` ends it"
        )
    call.context.actions.note(call.principal, "resume", tenant=tenant, workflow=workflow)
    call.context.stack.table.resume(tenant, workflow)
    return _pauses(call)


def _scope(call: Call) -> tuple[str | None, str | None]:
    body: models.PauseBody = call.body
    if body.workflow is not None and body.tenant is None:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "a workflow is one of a tenant; give the tenant as well")
    if call.principal.tenant is not None and body.tenant != call.principal.tenant:
        raise ProblemError(HTTPStatus.FORBIDDEN, f"this token is of tenant {call.principal.tenant}; name that tenant")
    return body.tenant, body.workflow


def _pauses(call: Call) -> Mapping[str, Any]:
    mine = call.principal.tenant
    found = [p for p in call.context.stack.table.pauses() if mine is None or p.tenant in (None, mine)]
    return {"pauses": [pause_shape(one) for one in found]}


def actions(call: Call) -> Answer:
    return {"actions": call.context.actions.latest(call.query.limit, tenant=_tenant(call, call.query.tenant))}


def show_session(call: Call) -> Answer:
    who = call.principal
    rights = sorted(str(right) for right in Permission if who.may(right))
    return {"name": who.name, "scope": str(who.scope), "tenant": who.tenant, "rights": rights}


def sign_in(call: Call) -> Answer:
    """A token for a cookie that a browser sends by itself and no script can read."""
    body: models.SessionBody = call.body
    who = call.context.guard.signed_in(call.request, body.token)
    answer = Response(status_code=204)
    return with_session(call, answer, who, body.token)


def with_session(call: Call, answer: Response, who: Principal, token: str) -> Response:
    """The answer with the cookie of a session."""
    answer.set_cookie(
        COOKIE,
        token,
        max_age=SESSION_SECONDS,
        httponly=True,
        samesite="strict",
        secure=call.context.guard.is_secure(call.request),
        path="/",
    )
    call.context.log.info("signed_in", by=who.name, token=who.id)
    return answer


def sign_out(call: Call) -> Answer:
    del call
    answer = Response(status_code=204)
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer


async def health(call: Call) -> Answer:
    """In the event loop itself: it answers while every thread waits for a store."""
    del call
    return {"status": "ok"}


def ready(call: Call) -> Answer:
    checks = call.context.facade.checks()
    wrong = [name for name, state in checks.items() if state != "ok"]
    if wrong:
        return respond(
            ProblemError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"no answer from {', '.join(wrong)}; `ade doctor` says more",
                headers={"Retry-After": "5"},
                checks=checks,
            )
        )
    return {"ready": True, "checks": checks}


def show_metrics(call: Call) -> Answer:
    parts = [metrics.gauges(call.context.facade, call.principal.tenant)]
    if call.principal.tenant is None:
        parts += [call.context.counts.lines(), meters.exposition(meters.read_snapshots(call.context.stack.run_dir))]
    text = metrics.exposition(parts)
    return Response(text, media_type=CONTENT_TYPE)


def _tenant(call: Call, asked: str | None) -> str | None:
    """The tenant of the answer: the caller's own, or the requested one."""
    if asked is not None and not call.principal.sees(asked):
        raise ProblemError(HTTPStatus.FORBIDDEN, f"this token is of tenant {call.principal.tenant}; name that tenant")
    return call.principal.tenant or asked


def _get(path: str, handler: Any, summary: str, answer: Any, **more: Any) -> Operation:
    usual = {"right": Permission.READ, "name": handler.__name__} | more
    return Operation(method="GET", path=path, handler=handler, summary=summary, answers={200: answer}, **usual)


def _post(  # noqa: PLR0917 - read as a table below
    path: str, handler: Any, summary: str, right: Permission | None, body: Any, answer: Any, **more: Any
) -> Operation:
    usual = Operation(
        method="POST",
        path=path,
        name=handler.__name__,
        handler=handler,
        summary=summary,
        right=right,
        body=body,
        answers={200: answer},
        also=(403, 413, 415),
    )
    return replace(usual, **more)


_OF = models.OverviewQuery
OPERATIONS = (
    _get("/", index, "Where things are; pages for a browser", models.Index, right=None),
    _get(
        "/overview",
        overview,
        "Counts by tenant and state, queue, pauses, how the newest jobs went",
        models.Overview,
        query=_OF,
        also=(403,),
    ),
    _get(
        "/events", events, "Counts as they change, as server-sent events", "text/event-stream", query=_OF, also=(403,)
    ),
    _get("/senders", senders, "Tenants and workflows with their last drops", models.SenderList, query=_OF, also=(403,)),
    _get(
        "/review",
        reviews,
        "Jobs that wait for a person, with their questions",
        models.ReviewList,
        query=models.PageQuery,
        also=(403,),
    ),
    _post(
        "/jobs/{job_id}/decide",
        decide,
        "Answer the questions of a review",
        Permission.DECIDE,
        models.DecideBody,
        models.Decided,
        also=(403, 404, 409, 413, 415, 422),
    ),
    _get(
        "/memory",
        memories,
        "What was learned of each tenant's workflows",
        models.MemoryList,
        query=models.PageQuery,
        also=(403,),
    ),
    _get(
        "/attention",
        attention,
        "What needs a person, the most urgent first",
        models.AttentionList,
        query=_OF,
        also=(403,),
    ),
    _post(
        "/attention/resolve",
        resolve,
        "Take a matter off that list until it happens again",
        Permission.ACT,
        models.ResolveBody,
        models.Resolved,
        also=(403, 404, 409, 413, 415),
    ),
    _get(
        "/attention/resolved",
        resolutions,
        "What people took care of lately",
        models.ResolutionList,
        query=models.PageQuery,
        also=(403,),
    ),
    _get(
        "/jobs/{job_id}/values",
        show_values,
        "Cells of an input, for tokens with the scope `values`",
        models.JobValues,
        right=Permission.VALUES,
        query=models.ValuesQuery,
        also=(403, 404, 413, 422, 503),
    ),
    _get("/pauses", pauses, "What is paused", models.PauseList),
    _post(
        "/pause",
        pause,
        "Start no more jobs of everything, a tenant or a workflow",
        Permission.ACT,
        models.PauseBody,
        models.PauseList,
    ),
    _post("/resume", resume, "Take a pause back", Permission.ACT, models.PauseBody, models.PauseList),
    _get(
        "/actions",
        actions,
        "Who did what, newest first",
        models.ActionList,
        right=Permission.ACT,
        query=models.PageQuery,
        also=(403,),
    ),
    _get("/session", show_session, "Who I am, and what I may do", models.Signed, right=None),
    _post(
        "/session",
        sign_in,
        "Sign a browser in with a token: sets a cookie",
        None,
        models.SessionBody,
        None,
        open=True,
        answers={204: None},
        also=(413, 415),
    ),
    Operation(
        method="DELETE",
        path="/session",
        name="sign_out",
        summary="Sign the browser out",
        right=None,
        open=True,
        handler=sign_out,
        answers={204: None},
    ),
    _get("/health", health, "Whether the server lives; needs no token", models.Health, right=None, open=True),
    _get("/ready", ready, "Whether store, table and queue answer", models.Ready, right=None),
    _get("/metrics", show_metrics, "Metrics for Prometheus", CONTENT_TYPE),
)
