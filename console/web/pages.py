"""The pages: each reads through the facade what its template shows. Nothing here changes anything."""

import contextlib
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import islice
from typing import NotRequired, cast

from pydantic import ValidationError
from starlette.responses import Response

from console.api import models
from console.api.access import Permission
from console.api.operations import Call, query_values
from console.api.problems import ProblemError
from console.facade import JobMoment
from console.job_facts import span
from console.web.explanations import Explanation, FindingFilter, explanation
from console.web.own_page import is_sender, own_job
from console.web.rendering import job_acts, link, page, place_of
from console.web.seen_values import SeenFindings, seen_findings
from core.errors import AdeError, ManifestInvalid
from core.jobs import Job, ObjectRef, Outcome, State
from core.keys import CONFIGS, job_folder
from core.manifests import MAX_MANIFEST_BYTES
from core.verdicts import Fault, Verdict
from infra.parsing import read_manifest

_PAGE = 30
_VERSIONS = 20
_CHART_DROPS = 40
_SENDERS = 100
_TENANTS = 500  # whose names are offered
_QUESTIONS = 200  # as many as a review has
_CANDIDATES = 20
_WRONG = frozenset({State.FAILED, State.TIMED_OUT})
_FILTERS = {  # and what the form calls them
    "text": "Search", "state": "State", "outcome": "Outcome", "tenant": "Tenant", "workflow": "Workflow",
    "verdict": "Cause", "fault": "Whose fault", "runner": "Runner", "created_from": "Dropped from",
    "created_to": "Dropped until", "ended_from": "Ended from", "ended_to": "Ended until",
}  # fmt: skip


def one_tenant(call: Call) -> str | None:
    """The tenant that a page is about: the viewer's own, or the requested one."""
    asked = call.request.query_params.get("tenant") or None
    if asked is not None and not call.principal.sees(asked):
        raise ProblemError(HTTPStatus.FORBIDDEN, f"this token is of tenant {call.principal.tenant}; name that tenant")
    return call.principal.tenant or asked


def jobs(call: Call) -> Response:
    search, problem = _job_query(call)
    found = None
    if search is not None:
        try:
            found = call.context.facade.jobs(
                search.query(call.principal.tenant), limit=search.limit, cursor=search.cursor
            )
        except ValueError:
            problem = "This page is no longer there. Go back to the newest jobs."
    if search is not None and search.tenant is not None and not call.principal.sees(search.tenant):
        found = None
        problem = f"You see the jobs of tenant {call.principal.tenant} only."
    query = _wanted(call)
    filters = {name: query[name] for name in _FILTERS if name in query}
    states = query.get("state", [])
    return page(
        call,
        "jobs.html",
        found=found,
        problem=problem,
        query=query,
        filters=filters,
        labels=_FILTERS,
        unfolded=bool(set(filters) - {"text", "tenant", "workflow", "state", "outcome"}),
        chosen=[states] if isinstance(states, str) else states,
        states=list(State),
        outcomes=list(Outcome),
        verdicts=[verdict for verdict in Verdict if verdict is not Verdict.OK],
        faults=[fault for fault in Fault if fault is not Fault.NOBODY],
        acts=_acts_here(call),
        filter_body=search.model_dump(mode="json", exclude_none=True, exclude={"limit", "cursor"}) if search else {},
        older=link("/jobs", {**filters, "limit": query.get("limit")}, cursor=found.cursor)
        if found is not None and found.cursor
        else None,
    )


def _acts_here(call: Call) -> bool:
    return call.principal.may(Permission.ACT)


def _wanted(call: Call) -> dict[str, str | list[str]]:
    """The query without its empty fields, which forms send as well."""
    return query_values(call.request, empty=False)


def _job_query(call: Call) -> tuple[models.JobsQuery | None, str]:
    try:
        return models.JobsQuery.model_validate({"limit": _PAGE} | _wanted(call)), ""
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = str(first["loc"][0])
        problem = first["msg"].removeprefix("Value error, ")
        problem = problem.replace("an ISO 8601 time", "a date such as 2026-01-31, a time")
        return None, f"{_FILTERS.get(name, name)}: {problem}."


def job(call: Call) -> Response:
    found = call.context.seen(call.job_id, call.principal)
    return own_job(call, found) if is_sender(call) else job_page(call, found)


def job_page(call: Call, found: Job) -> Response:
    facade = call.context.facade
    wanted = FindingFilter.of(call.request.query_params)
    at = f"/jobs/{found.job_id}"
    explained = explanation(facade.artifact(found) if found.ended else None, wanted, link=f"{at}?")
    seen = _values_of(call, found, explained)
    folder = job_folder(found)
    files = [(one.key.removeprefix(folder), one.size) for one in islice(facade.files(found), 200)]
    return page(
        call,
        "job.html",
        job=found,
        at=at,
        acts=job_acts(found, call.principal),
        timeline=_timeline(facade.timeline(found), explained),
        files=files,
        duration=_duration(found),
        seen=seen,
        may_see=call.principal.may(Permission.VALUES) and explained is not None and explained.findings is not None,
        versions=[one for one in facade.line(found)[-_VERSIONS:] if one.job_id != found.job_id][::-1],
        explanation=explained,
        wanted=wanted,
    )


def _values_of(call: Call, job: Job, explained: Explanation | None) -> SeenFindings | None:
    """Values beside the findings, where somebody who may see them asks."""
    if "values" not in call.request.query_params or explained is None or explained.findings is None:
        return None
    if not call.principal.may(Permission.VALUES):
        raise ProblemError(
            HTTPStatus.FORBIDDEN, "values are for tokens with the scope `values`; an operator makes them"
        )
    return seen_findings(call, job, explained)


def _duration(job: Job) -> str:
    """How long a job has been, or was, on its way."""
    ended = f"ended after {span(job.ended_at - job.created_at)}" if job.ended_at is not None else "still on its way"
    ran = "" if job.started_at is None or job.ended_at is None else f", ran for {span(job.ended_at - job.started_at)}"
    return ended + ran


class DrawnEntry(JobMoment):
    """An entry of the timeline as the page draws it."""

    day: NotRequired[str]  # for the first of each day
    after: NotRequired[float]  # seconds since the entry before
    bar: NotRequired[tuple[float, float]]  # of a pass: begin and length, in percent of all passes


def _timeline(entries: list[JobMoment], explained: Explanation | None) -> list[DrawnEntry]:
    """The timeline as it is drawn: days once, passes as bars, what went wrong with the state that it led to."""
    shown: list[DrawnEntry] = []
    for entry in _with_passes(entries, explained):
        before = next((one for one in reversed(shown) if "bar" not in one), None)
        if entry["what"] == "error" and before is not None and before["what"] in _WRONG:
            before["verdict"], before["message"] = entry["verdict"], entry["message"]
            continue
        drawn = cast("DrawnEntry", {**entry})
        day = f"{datetime.fromtimestamp(entry['at'], UTC):%d %b %Y}"
        if all(one.get("day") != day for one in shown):
            drawn["day"] = day
        if before is not None and "seconds" in entry:
            drawn["bar"] = (entry["at"] - before["at"], entry["seconds"])
        elif before is not None:
            drawn["after"] = entry["at"] - before["at"]
        shown.append(drawn)
    whole = max((start + seconds for start, seconds in (one["bar"] for one in shown if "bar" in one)), default=0.0)
    for one in shown:
        if "bar" in one:
            start, seconds = one["bar"]
            one["bar"] = (round(100 * start / (whole or 1), 1), max(round(100 * seconds / (whole or 1), 1), 0.7))
    return shown


def _with_passes(entries: list[JobMoment], explained: Explanation | None) -> list[JobMoment]:
    """The timeline with the passes of the attempt that wrote the artifact."""
    began = max((n for n, entry in enumerate(entries) if entry["what"] == State.RUNNING), default=None)
    if explained is None or began is None or any("seconds" in entry for entry in entries):
        return entries
    at, passes = entries[began]["at"], list[JobMoment]()
    for name, seconds in explained.passes:
        passes.append({"at": at, "what": f"pass {name}", "seconds": seconds})
        at += seconds
    return [*entries[: began + 1], *passes, *entries[began + 1 :]]


def named_job(call: Call, parameter: str) -> Job | None:
    """The job that a parameter of the address names; None: there is none that the viewer may see."""
    with contextlib.suppress(ProblemError):
        return call.context.seen(call.request.query_params.get(parameter, ""), call.principal)
    return None


def drop(call: Call) -> Response:
    """A form for a drop; `from` names a job whose manifest it starts with."""
    recent = sorted(call.context.facade.sender_histories(call.principal.tenant), key=lambda one: -one.last_at)
    known = [(one.tenant, one.workflow, one.last.last_job) for one in recent[:_SENDERS] if one.last is not None]
    asked = call.request.query_params.get("from", "")
    text, tenant, folder, problem = "" if _is_served(call) else _STARTER, call.principal.tenant or "", "", ""
    if asked:
        source = named_job(call, "from")
        if source is not None and source.manifest is not None:
            tenant, folder = source.tenant, place_of(source.subject).rstrip("/")
            try:
                text = _manifest_text(call, source.manifest)
            except AdeError as error:
                problem = str(error)
        else:
            problem = f"There is no job {asked[:100]} with a manifest that you may see."
    return page(
        call,
        "drop.html",
        known=known,
        tenants=sorted({one.tenant for one in recent})[:_TENANTS],
        asked=asked,
        text=text,
        tenant=tenant,
        folder=folder,
        problem=problem,
    )


def _is_served(call: Call) -> bool:
    """Whether a standing workflow may take the files of whoever drops."""
    tenant = call.principal.tenant
    if tenant is not None:
        return bool(call.context.submissions.intake.standing(tenant))
    return bool(call.context.stack.store.level(CONFIGS).folders)


def _manifest_text(call: Call, manifest: ObjectRef) -> str:
    """The manifest of an earlier drop; empty for a standing one, which is used anyway and may be the operator's."""
    if manifest.key.startswith(CONFIGS):
        return ""
    raw = call.context.stack.store.read(manifest.key, version=manifest.version, limit=MAX_MANIFEST_BYTES)
    return raw.decode("utf-8", "replace")


def manifest_problems(text: bytes) -> list[dict[str, str]]:
    """What is wrong with a manifest, one entry a mistake; nothing: it can be used."""
    try:
        if text.strip():  # else standing workflows are meant
            read_manifest(text)
    except ManifestInvalid as error:
        return [problem.as_dict() for problem in error.problems]
    return []


_STARTER = """{
  "manifest": 1,
  "name": "members",
  "inputs": {"primary": ["*.xlsx", "*.csv"]},
  "fields": [
    {"name": "id", "type": "text", "required": true},
    {"name": "email", "type": "email"},
    {"name": "start_date", "type": "date"}
  ]
}
"""
