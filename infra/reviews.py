"""Reads the questions that a job published (`review.json`, bounded and tolerant of whatever is there), and writes
decisions for those who answer by a command or over HTTP."""

import json
from typing import Any

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
_MOST = 200
_TEXTS = ("id", "kind", "text")
_OPTIONAL = ("input", "sheet", "table", "column", "header", "field", "chosen")


def read_questions(store: ObjectStore, folder: str) -> list[dict[str, Any]]:
    """The questions in a job's folder; none if there is no review that can be read.

    Each has `id`, `kind`, `text`, the optional places, and `candidates` of `value`, `label`, `probability`, `reasons`.
    """
    try:
        review = plain(store.read(folder + REVIEW, limit=_BUDGET.bytes), _BUDGET)
        questions = review["questions"][:_MOST]
    except (ObjectMissing, ObjectChanged, ObjectTooLarge, ValueError, TypeError, KeyError):
        return []
    return [q for raw in questions if (q := _question(raw)) is not None]


def put_decision(store: ObjectStore, job: Job, said: dict[str, Any]) -> str:
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
    if wrong := misfits(read_decision(json.dumps(said).encode()), workflows={job.workflow: fields}):
        raise DecisionInvalid(wrong)
    answers = said.get("answers", [])
    about = {_about(answer) for answer in answers}
    earlier = [a.model_dump(mode="json", exclude_unset=True) for a in found.answers] if found is not None else []
    kept = [answer for answer in earlier if _about(answer) not in about and _is_known(answer.get("field"), fields)]
    body = json.dumps(said | {"answers": [*answers, *kept][:MAX_ANSWERS]}, indent=2, ensure_ascii=False).encode()
    if len(body) > MAX_DECISION_BYTES:
        body = json.dumps(said, ensure_ascii=False).encode()
    read_decision(body)
    store.put(key, body, if_version=there.version if there else None, if_absent=there is None)
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


def _is_known(field: str | None, fields: frozenset[str] | None) -> bool:
    return field is None or fields is None or field in fields


def _read(store: ObjectStore, key: str, version: str) -> Decision | None:
    """A decision; None if it cannot be used."""
    try:
        return read_decision(store.read(key, version=version, limit=MAX_DECISION_BYTES))
    except (DecisionInvalid, ObjectMissing, ObjectChanged, ObjectTooLarge):
        return None


def _about(answer: dict[str, Any]) -> str:
    """What an answer is about; equal for two that answer the same question in the same way of naming it."""
    kind = next((name for name in ("field", "reading", "header_rows", "skip") if name in answer), "value")
    return json.dumps([kind, *(answer.get(name) for name in ("id", "sheet", "header", "column"))])


def _question(raw: Any) -> dict[str, Any] | None:
    if not isinstance(raw, dict) or not all(isinstance(raw.get(name), str) for name in _TEXTS):
        return None
    candidates = raw.get("candidates")
    return {
        **{name: raw[name] for name in _TEXTS},
        **{name: raw[name] if isinstance(raw.get(name), str) else None for name in _OPTIONAL},
        "candidates": [
            c for one in (candidates if isinstance(candidates, list) else [])[:20] if (c := _candidate(one))
        ],
    }


def _candidate(raw: Any) -> dict[str, Any] | None:
    if not isinstance(raw, dict) or not isinstance(raw.get("value"), str | None):
        return None
    probability = raw.get("probability")
    reasons = raw.get("reasons")
    return {
        "value": raw.get("value"),
        "label": str(raw.get("label") or raw.get("value") or "none"),
        "probability": probability if isinstance(probability, int | float) else None,
        "reasons": [r for r in (reasons if isinstance(reasons, list) else [])[:20] if isinstance(r, dict)],
        **({"header": raw["header"]} if isinstance(raw.get("header"), str) else {}),
    }
