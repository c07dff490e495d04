"""In: a committed job whose decision is to be remembered. Out: the workflow's memory with what was decided.

Called before result.json is written, so whoever sees a result finds its lesson in the memory. It may be called again by
any finisher: what a person has said since, or at that very moment, is not counted again.
"""

import json
from datetime import UTC, datetime
from typing import Any

from core.decisions import MAX_DECISION_BYTES, READINGS, Answer, Decision, DecisionInvalid, parse_decision
from core.errors import ObjectChanged, ObjectMissing, ObjectTooLarge
from core.jobs import Job
from core.keys import job_folder, staging_folder
from core.memories import (
    HeaderFact,
    Memory,
    MemoryInvalid,
    ReadingFact,
    ShapeFact,
    folded,
    learn,
    own_key,
    reading_kind,
    shapes_in,
)
from core.ports import ObjectStore
from infra.memories import change_memory
from infra.reviews import read_questions
from runner.staging import MAX_PROFILE_BYTES, sender_of

PROFILE = "profile.json"  # what an attempt stages about its drop
Decided = HeaderFact | ReadingFact | ShapeFact


def remember(store: ObjectStore, job: Job) -> str:
    """Learn from a job's decision; returns why nothing could be learnt, or an empty text."""
    if job.decision is None or job.decided_at is None:
        return ""
    try:
        body = store.read(job.decision.key, version=job.decision.version, limit=MAX_DECISION_BYTES)
        decision = parse_decision(body)
    except (ObjectMissing, ObjectChanged, ObjectTooLarge, DecisionInvalid) as error:
        return f"its decision is gone: {error}"
    if not decision.remember or not decision.answers:
        return ""
    at = datetime.fromtimestamp(job.decided_at, UTC)
    facts = [*_facts(decision, job, store), *_shapes(decision, job, store)]
    try:
        if facts:
            change_memory(
                store, own_key(job.tenant, job.workflow), lambda m: learn(m, _unknown(m, facts, at), at=at),
                pause=lambda _seconds: None,
            )  # fmt: skip
    except (MemoryInvalid, ObjectTooLarge) as error:
        return f"the memory cannot be changed: {error}"
    return ""


def _unknown(memory: Memory, facts: list[Decided], at: datetime) -> list[Decided]:
    """Facts without those that a person has said since, or that were learnt from this very decision before."""
    known = {
        (kind, e.key)
        for kind, entries in ((HeaderFact, memory.headers), (ReadingFact, memory.readings), (ShapeFact, memory.shapes))
        for e in entries
        if e.said_at is not None and e.said_at >= at
    }
    return [fact for fact in facts if (type(fact), _key(fact)) not in known]


def _key(fact: Decided) -> tuple[str, ...]:
    """The key of the entry that a fact would make."""
    if isinstance(fact, ShapeFact):
        return fact.key
    if isinstance(fact, HeaderFact):
        return (folded(fact.header), fact.field or "")
    return (fact.sender, folded(fact.header), reading_kind(fact.reading))


def _shapes(decision: Decision, job: Job, store: ObjectStore) -> list[ShapeFact]:
    """The tables that were decided about, from what the attempt staged about its drop."""
    try:
        body = store.read(staging_folder(job.job_id, job.fence) + PROFILE, limit=MAX_PROFILE_BYTES)
        profile = json.loads(body.rpartition(b"\n")[2])  # below the line that says what it follows
    except (ObjectMissing, ObjectTooLarge, ValueError, RecursionError):
        return []
    return shapes_in(profile, sender=sender_of(job), by=decision.by, decided=True)


def _facts(decision: Decision, job: Job, store: ObjectStore) -> list[HeaderFact | ReadingFact]:
    sender = sender_of(job)
    questions: dict[str, dict[str, Any]] = {}
    if any(answer.id is not None for answer in decision.answers):
        questions = {q["id"]: q for q in read_questions(store, job_folder(job))}
    pairs = [pair for answer in decision.answers if (pair := _pair(answer, questions)) is not None]
    read = [pair for answer in decision.answers if (pair := _reading(answer, questions)) is not None]
    return [
        *(HeaderFact(header, field, decision.by, sender) for header, field in _agreed(pairs)),
        *(ReadingFact(sender, header, reading, decision.by) for header, reading in read),
    ]


def _agreed(pairs: list[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    """One fact for each header. Of columns with one header a field goes before none; two fields teach nothing."""
    found: dict[str, tuple[str, set[str]]] = {}
    for header, field in pairs:
        fields = found.setdefault(folded(header), (header, set()))[1]
        fields |= set() if field is None else {field}
    return [(header, next(iter(fields), None)) for header, fields in found.values() if len(fields) < 2]


def _reading(answer: Answer, questions: dict[str, dict[str, Any]]) -> tuple[str, str] | None:
    """The header and the reading that an answer is about; None if it is about something else."""
    question = questions.get(answer.id or "")
    said = answer.reading or (answer.value if question is not None and question["kind"] == "reading" else None)
    header = answer.header if answer.header is not None else question["header"] if question is not None else None
    return (header, said) if header is not None and header.strip() and said in READINGS else None


def _pair(answer: Answer, questions: dict[str, dict[str, Any]]) -> tuple[str, str | None] | None:
    """The header and the field that an answer is about; None if it is about something else."""
    given = answer.model_fields_set
    if answer.header is not None:
        return (answer.header, answer.field) if "field" in given and answer.header.strip() else None
    question = questions.get(answer.id or "")
    if question is None or not ({"field", "value"} & given):
        return None
    said = answer.field if "field" in given else answer.value
    offered = "field" in given or said in [c["value"] for c in question["candidates"]]
    if question["kind"] == "column" and question["header"] is not None:
        return (question["header"], said) if offered else None
    if question["kind"] == "required" and said is not None:
        header = next((c.get("header") for c in question["candidates"] if c["value"] == said), None)
        return (header, question["field"]) if header is not None else None
    return None
