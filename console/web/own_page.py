"""What a sender sees after signing in: drop a file, and what became of each, in their language."""

from collections.abc import Awaitable
from functools import wraps
from http import HTTPStatus
from urllib.parse import quote

from starlette.responses import RedirectResponse, Response

from console.api.access import Scope
from console.api.operations import Answer, Call, Page
from console.api.problems import ProblemError
from console.desk.templates import write_template
from console.web.explanations import fixes_for_senders
from console.web.own_words import words
from console.web.rendering import link, page
from core.errors import ObjectMissing
from core.jobs import Job, Outcome, State
from core.ports import JobQuery
from core.verdicts import Fault

_PAGE = 25
_STANDING = 20  # workflows whose templates are offered
_MEDIA = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_VERDICTS = {
    State.REVIEW: ("review", "ask"),
    State.AWAITING: ("waiting", "ask"),
    State.SCHEDULED: ("scheduled", "calm"),
    State.SKIPPED: ("replaced", "calm"),
    State.CANCELLED: ("cancelled", "calm"),
    State.EXPIRED: ("expired", "calm"),
}


def for_staff(shown: Page) -> Page:
    """A page that is not a sender's: they are led to their own."""

    @wraps(shown)
    def choose(call: Call) -> Response | Awaitable[Response]:
        return RedirectResponse("/", HTTPStatus.SEE_OTHER) if is_sender(call) else shown(call)

    return choose


def own_or(shown: Page) -> Page:
    """A sender's own page, or this one for everybody else."""

    def choose(call: Call) -> Response | Awaitable[Response]:
        return own(call) if is_sender(call) else shown(call)

    return choose


def is_sender(call: Call) -> bool:
    return call.principal.scope is Scope.SENDER and call.principal.tenant is not None


def own(call: Call) -> Response:
    tenant = call.principal.tenant or ""
    text = words(call.request.headers.get("accept-language", ""))
    try:
        found = call.context.facade.jobs(
            JobQuery(tenant=tenant), limit=_PAGE, cursor=call.request.query_params.get("cursor")
        )
    except ValueError:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "this page is no longer there; go back to your files") from None
    standing = call.context.submissions.intake.standing(tenant)[:_STANDING]
    return page(
        call,
        "own.html",
        text=text,
        drops=[(job, *verdict(job, text), _steps(job, text)) for job in found.jobs],
        workflows=sorted({workflow.manifest.name for workflow in standing if workflow.manifest.fields}),
        is_served=bool(standing),
        older=link("/", cursor=found.cursor) if found.cursor else None,
    )


def own_job(call: Call, job: Job) -> Response:
    """One file of a sender: what became of it, and what to do."""
    text = words(call.request.headers.get("accept-language", ""))
    sentence, colour = verdict(job, text)
    artifact = call.context.facade.artifact(job) if job.ended else None
    return page(
        call,
        "own_job.html",
        text=text,
        job=job,
        verdict=sentence,
        colour=colour,
        steps=_steps(job, text),
        fixes=fixes_for_senders(artifact, text["language"]),
    )


def template(call: Call) -> Answer:
    """A blank workbook of one of the tenant's standing workflows."""
    tenant, name = call.principal.tenant, str(call.request.path_params["workflow"])
    if tenant is None:
        raise ObjectMissing("templates are offered to senders; `ade template MANIFEST` makes one from a file")
    found = (one.manifest for one in call.context.submissions.intake.standing(tenant) if one.manifest.name == name)
    manifest = next(found, None)
    if manifest is None or not manifest.fields:
        raise ObjectMissing(f"tenant {tenant} has no standing workflow {name[:100]!r} with fields")
    with call.context.spool.scratch() as scratch:
        write_template(manifest, scratch / "template.xlsx")
        body = (scratch / "template.xlsx").read_bytes()
    return Response(
        body, media_type=_MEDIA, headers={"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}.xlsx"}
    )


def verdict(job: Job, text: dict[str, str]) -> tuple[str, str]:
    """What became of a file, in words, and the colour."""
    if job.state is State.SUCCEEDED:
        outcome = job.outcome or Outcome.CLEAN
        count = job.summary.get("rows_with_errors", 0)
        colour = {Outcome.CLEAN: "good", Outcome.WARNINGS: "ask"}.get(outcome, "bad")
        return text[str(outcome)].replace("{count}", str(count)), colour
    if job.state in (State.FAILED, State.TIMED_OUT):
        is_ours = job.error is not None and job.error.fault is Fault.OURS
        return (text["failed"], "ask") if is_ours else (text["refused"], "bad")
    key, colour = _VERDICTS.get(job.state, ("busy", "busy"))
    return text[key], colour


def _steps(job: Job, text: dict[str, str]) -> list[tuple[str, str]]:
    """What the sender can do now: words and link."""
    at, names = f"/jobs/{job.job_id}", {file.name for file in job.files}
    output = f"{at}/output"
    steps = []
    if "rejects.xlsx" in names:
        steps += [(text["fix"], f"{at}/fix"), (text["rejects"], link(output, name="rejects.xlsx"))]
    if "report.html" in names:
        steps.append((text["report"], link(output, name="report.html", inline="true")))
    if "normalized.xlsx" in names:
        steps.append((text["result"], link(output, name="normalized.xlsx")))
    return steps
