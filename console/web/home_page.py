"""Home: what needs a person, then how things go."""

from dataclasses import replace
from http import HTTPStatus
from itertools import groupby
from operator import attrgetter

from starlette.responses import RedirectResponse, Response

from console.api import models, service_routes
from console.api.operations import Answer, Call, checked, in_turn
from console.attention import Matter
from console.web import charts
from console.web.forms import form_fields
from console.web.pages import one_tenant
from console.web.rendering import link, page

_SHOWN = 8  # matters at once, shared by their kinds; the others are in folds
_FOLDED = 6  # of one kind; the others are on the page of that kind
_PAGES = {
    "failures": "/jobs?state=FAILED",
    "review": "/review",
    "waiting": "/jobs?state=AWAITING",
    "missing": "/senders?show=late",
    "errors": "/senders?show=errors",
    "drift": "/senders?show=drift",
}
_TENANTS = 5  # those with most that has not ended; the others are a search away
_ACTIVE = ("AWAITING", "SCHEDULED", "QUEUED", "RUNNING", "PUBLISHING", "REVIEW")


def home(call: Call) -> Response:
    tenant = one_tenant(call)
    facade = call.context.facade
    facts = facade.overview(tenant)
    asked = call.request.query_params.get("range", "day")
    chosen = asked if asked in charts.RANGES else "day"
    if tenant is None:
        seconds, bars = charts.RANGES[chosen]
        counts = facade.ends()
    else:
        seconds, bars = charts.OF_DAYS
        counts = tuple(day for one in facade.sender_histories(tenant) for day in one.days)
    drawn = charts.stretches(counts, facts.at, seconds, bars)
    matters = facade.attention(tenant)
    kinds = [list(group) for _, group in groupby(matters, key=attrgetter("urgency", "kind"))]
    return page(
        call,
        "home.html",
        facts=facts,
        tenant=tenant,
        matters=len(matters),
        kinds=_shared_out(kinds),
        charts=charts.all_charts(drawn, seconds) if any(one.counts for one in drawn) else [],
        ranges=list(charts.RANGES) if tenant is None else [],
        chosen=chosen,
        tiles=_tiles(facts.states, tenant),
        tenants=_busiest(facts.tenants),
    )


def _shared_out(kinds: list[list[Matter]]) -> list[tuple[list[Matter], list[Matter], int, str]]:
    """By kind: matters that are shown, those in the fold, how many are left, and the page that has all."""
    each = max(1, min(4, _SHOWN // max(1, len(kinds))))
    return [
        (group[:each], group[each : each + _FOLDED], max(0, len(group) - each - _FOLDED), _PAGES.get(group[0].kind, ""))
        for group in kinds
    ]


def _tiles(states: dict[str, int], tenant: str | None) -> list[tuple[int, str, str, str]]:
    """Counts that do not overlap, each with its jobs: number, words, link, colour. What is zero is left out."""
    groups = [
        ("waiting for something", "calm", ["AWAITING"]),
        ("scheduled", "calm", ["SCHEDULED"]),
        ("in the queue", "calm", ["QUEUED"]),
        ("running", "busy", ["RUNNING", "PUBLISHING"]),
        ("waiting for an answer", "ask", ["REVIEW"]),
        ("succeeded", "good", ["SUCCEEDED"]),
        ("failed", "bad", ["FAILED", "TIMED_OUT"]),
        ("cancelled or skipped", "calm", ["CANCELLED", "SKIPPED"]),
        ("expired", "calm", ["EXPIRED"]),
    ]
    found = [(sum(states.get(state, 0) for state in of), words, colour, of) for words, colour, of in groups]
    return [(n, words, link("/jobs", state=of, tenant=tenant), colour) for n, words, colour, of in found if n]


def _busiest(tenants: dict[str, dict[str, int]]) -> list[tuple[str, list[tuple[tuple[str, ...], int]]]]:
    """The tenants with most that failed or has not ended, with their jobs in groups of states."""
    groups: tuple[tuple[str, ...], ...] = (_ACTIVE, ("FAILED", "TIMED_OUT"), ("SUCCEEDED",))
    counted = [
        (name, [(group, sum(counts.get(state, 0) for state in group)) for group in groups])
        for name, counts in tenants.items()
    ]
    counted.sort(key=lambda one: (-one[1][0][1] - one[1][1][1], one[0]))
    return counted[:_TENANTS]


async def resolve(call: Call) -> Answer:
    """The form beside a matter."""
    form = await form_fields(call.request)
    fields = {name: value for name, value in form.items() if name in ("what", "until", "note")}
    body = checked(models.ResolveBody, fields, "form field")
    await in_turn(call, service_routes.resolve, replace(call, body=body))
    return RedirectResponse("/", status_code=HTTPStatus.SEE_OTHER)
