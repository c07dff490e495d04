"""Senders: all of them, worst first, and one with its drops, its rates and what was learnt from it."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from starlette.responses import Response

from console.api.operations import Call, query_values
from console.api.problems import not_found
from console.job_facts import plural
from console.senders import SenderHistory, counts_of
from console.web import charts
from console.web.pages import one_tenant
from console.web.rendering import link, page
from core.errors import AdeError, ObjectChanged, ObjectMissing, ObjectTooLarge
from core.jobs import Job
from core.keys import CONFIGS
from core.memories import MAX_MEMORY_BYTES, own_key
from core.ports import JobQuery, ObjectInfo
from infra.parsing import SHOWN, memory_summary

_PAGE = 50
_DROPS = 15
_MEMORIES = 100  # that are searched for
_OVERLAY_BYTES = 64 * 1024
_SORTS: dict[str, Callable[[SenderHistory, float], Any]] = {
    "worst": lambda one, now: tuple(-part for part in one.worry(now)),
    "name": lambda _one, _now: (),
    "newest": lambda one, _now: -one.last_at,
    "rows": lambda one, _now: -one.sum("rows"),
}
_SHOWS: dict[str, Callable[[SenderHistory, float], bool]] = {
    "all": lambda _one, _now: True,
    "errors": lambda one, _now: one.is_bad,
    "failed": lambda one, _now: one.has_failed,
    "drift": lambda one, _now: one.has_drifted,
    "late": lambda one, now: one.is_late(now),
}


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the address of the list says; anything unknown is as if it were not there."""

    text: str
    sort: str
    show: str
    start: int

    @classmethod
    def of(cls, call: Call) -> "_Asked":
        query = {
            name: value for name, value in query_values(call.request, empty=False).items() if isinstance(value, str)
        }
        start = query.get("start", "")
        sort, show = query.get("sort", ""), query.get("show", "")
        return cls(
            query.get("text", "")[:200].strip(),
            sort if sort in _SORTS else "worst",
            show if show in _SHOWS else "all",
            int(start) if start.isdecimal() and len(start) < 8 else 0,
        )

    def as_query(self, **changes: object) -> dict[str, object]:
        wanted = {"text": self.text, "sort": self.sort, "show": self.show, "start": self.start, **changes}
        usual = {"sort": "worst", "show": "all", "start": 0}
        return {name: value for name, value in wanted.items() if value != usual.get(name)}


def senders(call: Call) -> Response:
    tenant, asked, now = one_tenant(call), _Asked.of(call), call.context.stack.clock.now()
    known = call.context.facade.sender_histories(tenant)
    words = asked.text.casefold()
    named = [one for one in known if words in f"{one.tenant} / {one.workflow}".casefold()]
    counts = {name: sum(holds(one, now) for one in named) for name, holds in _SHOWS.items()}
    found = [one for one in named if _SHOWS[asked.show](one, now)]
    found.sort(key=lambda one: (_SORTS[asked.sort](one, now), one.tenant, one.workflow))
    start = min(asked.start, max(0, len(found) - 1)) // _PAGE * _PAGE
    return page(
        call,
        "senders.html",
        senders=[(one, _spark(one)) for one in found[start : start + _PAGE]],
        asked=asked,
        tenant=tenant,
        now=now,
        total=len(known),
        counts=counts,
        found=len(found),
        start=start,
        sorts=list(_SORTS),
        next=_at(asked, tenant, start + _PAGE) if start + _PAGE < len(found) else None,
        previous=_at(asked, tenant, start - _PAGE) if start else None,
        also=_also_remembered(call, tenant, known),
    )


def _at(asked: _Asked, tenant: str | None, start: int) -> str:
    return link("/senders", asked.as_query(start=start), tenant=tenant)


def _also_remembered(call: Call, tenant: str | None, known: list[SenderHistory]) -> list[tuple[str, str]]:
    """Workflows that something was learnt of, and that dropped nothing lately; of many tenants only on request."""
    if tenant is None and len(known) > _PAGE:
        return []
    listed = {(one.tenant, one.workflow) for one in known}
    memories = islice(call.context.facade.memories(tenant), _MEMORIES)
    return [(owner, workflow) for _, owner, workflow in memories if (owner, workflow) not in listed]


def _spark(one: SenderHistory) -> Any:
    values = [day.error_rate for day in one.days[-14:]]
    return charts.shares(values, f"rows with errors on the last {len(values)} days with files")


def sender(call: Call) -> Response:
    """One tenant's workflow."""
    query = call.request.query_params
    tenant, workflow = query.get("tenant", ""), query.get("workflow", "")
    if not call.principal.sees(tenant) or not tenant or not workflow:
        raise not_found(f"{tenant} / {workflow}"[:200])
    facade, now = call.context.facade, call.context.stack.clock.now()
    jobs = facade.jobs(JobQuery(tenant=tenant, workflow=workflow), limit=_DROPS).jobs
    known = [one for one in facade.sender_histories(tenant) if one.workflow == workflow]
    key = own_key(tenant, workflow)
    memory = call.context.stack.store.head(key)
    if not jobs and not known and memory is None:
        raise not_found(f"{tenant} / {workflow}"[:200])
    history = known[0] if known else SenderHistory(tenant=tenant, workflow=workflow, days=())
    seconds, bars = charts.OF_DAYS
    drawn = charts.stretches(history.days, now, seconds, bars)
    expected = [job for job in jobs if job.params.get("expected")]
    return page(
        call,
        "sender.html",
        sender=history,
        now=now,
        jobs=[(job, counts_of(job)) for job in jobs if not job.params.get("expected")],
        expected=expected,
        charts=charts.all_charts(drawn, seconds)[:3] if history.days else [],
        drift=_drifted(jobs),
        memory=None if memory is None else _learnt(call, memory),
        overlay=_overlay(call, tenant, workflow),
    )


def _drifted(jobs: tuple[Job, ...]) -> tuple[Job, int] | None:
    """The newest job whose file differs from the one before, and in how many places."""
    for job in jobs:
        drift = job.summary.get("drift")
        if isinstance(drift, int) and drift:
            return job, drift
    return None


def _overlay(call: Call, tenant: str, workflow: str) -> tuple[str, str] | None:
    """What this tenant changes of a standing workflow: key and text."""
    key = f"{CONFIGS}{tenant}/{workflow}.overlay.json"
    try:
        return key, call.context.stack.store.read(key, limit=_OVERLAY_BYTES).decode("utf-8", "replace")
    except ObjectMissing:
        return None
    except AdeError as error:
        return key, str(error)


def _learnt(call: Call, info: ObjectInfo) -> dict[str, object]:
    """What a memory holds, newest first: headers and spellings, and by sender their tables and readings."""
    found, summary = None, f"{info.size} bytes, too many to show here,"
    if info.size <= MAX_MEMORY_BYTES:
        with contextlib.suppress(ObjectMissing, ObjectChanged, ObjectTooLarge):
            body = call.context.stack.store.read(info.key, version=info.version, limit=MAX_MEMORY_BYTES)
            found = memory_summary(body)
        summary = "nothing"
    senders: dict[str, dict[str, list[Any]]] = {}
    for shape in found.shapes if found else ():
        senders.setdefault(shape.sender, {"shapes": [], "readings": []})["shapes"].append(shape)
    for reading in found.readings if found else ():
        senders.setdefault(reading.sender, {"shapes": [], "readings": []})["readings"].append(reading)
    kinds = {"headers": "header", "values": "spelling", "shapes": "table", "readings": "reading"}
    counts = found.counts if found else {}
    return {
        "key": info.key,
        "headers": found.headers if found else [],
        "values": found.values if found else [],
        "senders": dict(sorted(senders.items())),
        "more": sum(max(0, count - SHOWN) for count in counts.values()),
        "summary": ", ".join(plural(counts[name], word) for name, word in kinds.items() if counts.get(name)) or summary,
    }
