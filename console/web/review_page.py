"""Review: one job's questions, what they are about, and who else asks the same."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict, TypeGuard

from starlette.responses import Response

from console.api.access import Permission
from console.api.operations import Call
from console.web.pages import named_job
from console.web.rendering import page
from console.web.seen_values import SeenQuestions, seen_questions
from core.errors import AdeError
from core.jobs import Job, State
from core.manifests import MAX_MANIFEST_BYTES
from infra.parsing import read_manifest

_QUESTIONS = 200  # as many as a review has
_CANDIDATES = 20
_SURE = 0.85  # below, nothing is chosen in advance


def review(call: Call) -> Response:
    """One job's questions, and which others wait."""
    answered = named_job(call, "answered")
    waiting = [
        job
        for job in call.context.facade.waiting(call.principal.tenant)
        if answered is None or job.job_id != answered.job_id
    ]
    asked = call.request.query_params.get("job", "")
    chosen = named_job(call, "job")
    if chosen is not None and chosen.state is not State.REVIEW:
        chosen = None
    if chosen is None:  # whoever waits longest
        now = (call.context.facade.job(one.job_id) for one in waiting)
        chosen = next((job for job in now if job is not None and job.state is State.REVIEW), None)
    asked_now = None if chosen is None else questions(call.context.facade.review(chosen))
    others = [one for one in waiting if chosen is None or one.job_id != chosen.job_id]
    return page(
        call,
        "review.html",
        chosen=chosen,
        questions=asked_now,
        preset=[_preset(one) for one in asked_now or ()],
        of=fingerprint(asked_now or []),
        fields=_fields(call, chosen) if chosen is not None else [],
        others=others,
        alike=alike(call, asked_now, others) if chosen is not None and asked_now else [],
        seen=_seen(call, chosen, asked_now),
        gone=bool(asked) and (chosen is None or chosen.job_id != asked),
        answered=answered,
        together=_number(call.request.query_params.get("together", "")),
    )


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 4 else 0


def _seen(call: Call, job: Job | None, asked: "list[AskedQuestion] | None") -> SeenQuestions | None:
    if job is None or not asked or not call.principal.may(Permission.VALUES):
        return None
    return seen_questions(call, job, asked)


def _preset(question: "AskedQuestion") -> int | None:
    """The number of the candidate that is chosen in advance; None: nothing is sure enough."""
    for n, one in enumerate(question["candidates"]):
        sure = one.get("probability")
        if one["value"] == question.get("chosen") and isinstance(sure, int | float) and sure >= _SURE:
            return n
    return None


def alike(call: Call, asked: "list[AskedQuestion]", others: list[Job]) -> list[Job]:
    """The other jobs that ask nothing but what this one asks, too: one answer is enough for all of them."""
    mine = {signature(one) for one in asked}
    found = []
    for job in others:
        if job.review is None or job.review.questions > len(asked):
            continue
        theirs = call.context.facade.asked(job, _signatures)
        if theirs and theirs <= mine:
            found.append(job)
    return found


def _signatures(document: Mapping[str, object] | None) -> frozenset[str]:
    return frozenset(signature(one) for one in questions(document) or ())


def signature(question: "AskedQuestion") -> str:
    """What a question asks, wherever it is asked: two with the same one have the same answers."""
    kind = question.get("kind")
    # What a header means is the same wherever its column is; any other answer names a place.
    names = ("header",) if kind == "column" else ("header", "field", "sheet", "column", "chosen")
    candidates = sorted(json.dumps([one["value"], one.get("header")], default=str) for one in question["candidates"])
    return json.dumps([kind, [question.get(name) for name in names], candidates], default=str)


class AskedCandidate(TypedDict):
    """A possible answer of a review.json; only what is listed here was checked."""

    value: str | None
    label: NotRequired[object]
    header: NotRequired[object]
    probability: NotRequired[object]


class AskedQuestion(TypedDict):
    """A question of a review.json; only what is listed here was checked."""

    id: str
    candidates: list[AskedCandidate]
    kind: NotRequired[object]
    header: NotRequired[object]
    field: NotRequired[object]
    input: NotRequired[object]
    sheet: NotRequired[object]
    column: NotRequired[object]
    chosen: NotRequired[object]


def questions(document: Mapping[str, object] | None) -> list[AskedQuestion] | None:
    """The questions of review.json that a page can show; None: it cannot be read."""
    listed = document.get("questions") if document is not None else None
    if not isinstance(listed, list):
        return None
    return [one for one in listed[:_QUESTIONS] if _is_question(one)]


def fingerprint(asked: list[AskedQuestion]) -> str:
    """Names the questions of a page, so that answers by number are answers to these."""
    listed = [(one["id"], [candidate["value"] for candidate in one["candidates"]]) for one in asked]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()[:16]


def _fields(call: Call, job: Job) -> list[str]:
    """The fields that a job's manifest declares; those of its config only the engine knows."""
    if job.manifest is None:
        return []
    try:
        body = call.context.stack.store.read(job.manifest.key, version=job.manifest.version, limit=MAX_MANIFEST_BYTES)
        return [field.name for field in read_manifest(body).fields]
    except AdeError:
        return []


def _is_question(one: object) -> TypeGuard[AskedQuestion]:
    if not isinstance(one, dict):
        return False
    candidates = one.get("candidates")
    if not isinstance(one.get("id"), str) or not isinstance(candidates, list) or len(candidates) > _CANDIDATES:
        return False
    return all(_is_candidate(c) for c in candidates)


def _is_candidate(one: Any) -> bool:
    if not isinstance(one, dict) or not isinstance(one.get("value"), str | None):
        return False
    reasons = one.get("reasons") or []
    return isinstance(reasons, list) and all(isinstance(reason, dict) for reason in reasons)
