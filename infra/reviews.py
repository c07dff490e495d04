"""Reads the questions that a job published (`review.json`, bounded and tolerant of whatever is there), and writes
decisions for those who answer by a command or over HTTP."""

import json
from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

from core.budget import Budget, plain
from core.decisions import (
    MAX_ANSWERS,
    MAX_DECISION_BYTES,
    Decision,
    DecisionInvalid,
    fields_of,
    is_for,
    misfits,
)
from core.errors import ManifestInvalid, ObjectChanged, ObjectMissing, ObjectTooLarge
from core.jobs import Job
from core.keys import decision_place, job_decision_key
from core.manifests import MAX_MANIFEST_BYTES
from core.ports import ObjectStore
from infra.parsing import read_decision, read_manifest

REVIEW = "review.json"
_BUDGET = Budget(bytes=4 * 1024 * 1024, values=200_000)
_MOST_QUESTIONS = 200
_MOST_CANDIDATES = 20
_TEXTS = ("id", "kind", "text")


class ListedCandidate(TypedDict):
    """A possible answer."""

    value: str | None
    label: str
    probability: float | None
    reasons: list[Mapping[str, object]]
    header: NotRequired[str]


class ListedQuestion(TypedDict):
    """A question of review.json, as far as commands show it."""

    id: str
    kind: str
    text: str
    input: str | None
    sheet: str | None
    table: str | None
    column: str | None
    header: str | None
    field: str | None
    chosen: str | None
    candidates: list[ListedCandidate]


class DecisionBody(TypedDict):
    """A decision as somebody writes it, before it is checked; core.decisions.Decision is one that was."""

    decision: int
    workflow: str
    job: NotRequired[str]
    by: str
    answers: NotRequired[list[dict[str, object]]]
    accept: NotRequired[bool]
    remember: NotRequired[bool]


def read_questions(store: ObjectStore, folder: str) -> list[ListedQuestion]:
    """The questions in a job's folder; none if there is no review that can be read."""
    try:
        review = plain(store.read(folder + REVIEW, limit=_BUDGET.bytes), _BUDGET)
        questions = review["questions"][:_MOST_QUESTIONS]
    except (ObjectMissing, ObjectChanged, ObjectTooLarge, ValueError, TypeError, KeyError):
        return []
    return [q for raw in questions if (q := _question(raw)) is not None]


def put_decision(store: ObjectStore, job: Job, body: DecisionBody) -> str:
    """Write a decision on a job and return its key; what the job's last decision says about other questions is kept.

    Where the decision beside the input is about another job (a second workflow, another combination of a sweep), it
    stays, and this one is named after its job. Raises DecisionInvalid, also for a field
    that the workflow does not have, and PreconditionFailed if somebody else writes.
    """
    key = decision_place(job)
    there = store.head(key)
    found = _read(store, key, there.version) if there is not None else None
    if found is not None and not is_for(found, job):
        key = job_decision_key(key, job.job_id)
        there = store.head(key)
        found = _read(store, key, there.version) if there is not None else None
    if found is None and job.decision is not None:
        found = _read(store, job.decision.key, job.decision.version)
    fields = _fields_of(store, job)
    if wrong := misfits(read_decision(json.dumps(body).encode()), workflows={job.workflow: fields}):
        raise DecisionInvalid(wrong)
    answers = body.get("answers", [])
    about = {_about(answer) for answer in answers}
    earlier = [a.model_dump(mode="json", exclude_unset=True) for a in found.answers] if found is not None else []
    still = [answer for answer in earlier if _about(answer) not in about and _is_known(answer.get("field"), fields)]
    whole = {**body, "answers": [*answers, *still][:MAX_ANSWERS]}
    text = json.dumps(whole, indent=2, ensure_ascii=False).encode()
    if len(text) > MAX_DECISION_BYTES:
        text = json.dumps(body, ensure_ascii=False).encode()
    read_decision(text)
    store.put(key, text, if_version=there.version if there else None, if_absent=there is None)
    return key


def _fields_of(store: ObjectStore, job: Job) -> frozenset[str] | None:
    """The fields that a job may map to; None if nobody can tell before it runs."""
    if job.manifest is None:
        return None
    try:
        body = store.read(job.manifest.key, version=job.manifest.version, limit=MAX_MANIFEST_BYTES)
        return fields_of(read_manifest(body), [ref.key for ref in job.config])
    except (ManifestInvalid, ObjectMissing, ObjectChanged, ObjectTooLarge):
        return None


def _is_known(field: object, fields: frozenset[str] | None) -> bool:
    return field is None or fields is None or field in fields


def _read(store: ObjectStore, key: str, version: str) -> Decision | None:
    """A decision; None if it cannot be used."""
    try:
        return read_decision(store.read(key, version=version, limit=MAX_DECISION_BYTES))
    except (DecisionInvalid, ObjectMissing, ObjectChanged, ObjectTooLarge):
        return None


def _about(answer: Mapping[str, object]) -> str:
    """What an answer is about; equal for two that answer the same question in the same way of naming it."""
    kind = next((name for name in ("field", "reading", "header_rows", "skip") if name in answer), "value")
    return json.dumps([kind, *(answer.get(name) for name in ("id", "sheet", "header", "column"))])


def _question(raw: Any) -> ListedQuestion | None:
    if not isinstance(raw, dict) or not all(isinstance(raw.get(name), str) for name in _TEXTS):
        return None
    candidates = raw.get("candidates")
    listed = candidates if isinstance(candidates, list) else []
    return {
        "id": raw["id"],
        "kind": raw["kind"],
        "text": raw["text"],
        "input": _text(raw, "input"),
        "sheet": _text(raw, "sheet"),
        "table": _text(raw, "table"),
        "column": _text(raw, "column"),
        "header": _text(raw, "header"),
        "field": _text(raw, "field"),
        "chosen": _text(raw, "chosen"),
        "candidates": [c for one in listed[:_MOST_CANDIDATES] if (c := _candidate(one))],
    }


def _text(raw: Mapping[str, object], name: str) -> str | None:
    value = raw.get(name)
    return value if isinstance(value, str) else None


def _candidate(raw: Any) -> ListedCandidate | None:
    if not isinstance(raw, dict) or not isinstance(raw.get("value"), str | None):
        return None
    probability = raw.get("probability")
    reasons = raw.get("reasons")
    found: ListedCandidate = {
        "value": raw.get("value"),
        "label": str(raw.get("label") or raw.get("value") or "none"),
        "probability": probability if isinstance(probability, int | float) else None,
        "reasons": [r for r in (reasons if isinstance(reasons, list) else [])[:20] if isinstance(r, dict)],
    }
    if isinstance(raw.get("header"), str):
        found["header"] = raw["header"]
    return found
