"""In: a committed job whose decision is to be remembered. Out: the workflow's memory with what was decided.

What is learnt is what the attempt applied, however the answer named its column: an answer that fitted nothing teaches
nothing. The attempt only says where the answers fitted: nothing is learnt in a person's name that none of their answers
says. Called before result.json is written, so whoever sees a result finds its lesson in the memory. It may be called
again by any finisher: what a person has said since, or at that very moment, is not counted again.
"""

import re
from datetime import UTC, datetime

from core.budget import Budget, plain
from core.decisions import MAX_DECISION_BYTES, Answer, DecisionInvalid
from core.errors import ObjectChanged, ObjectMissing, ObjectTooLarge
from core.jobs import Job
from core.keys import staging_folder
from core.memories import (
    HeaderFact,
    Memory,
    MemoryInvalid,
    ReadingFact,
    ShapeFact,
    answers_in,
    folded,
    learn,
    own_key,
    shapes_in,
)
from core.ports import ObjectStore
from infra.memories import change_memory
from infra.parsing import read_decision
from runner.engine.contract import OutputName
from runner.staging import MAX_PROFILE_BYTES, sender_of

_LETTERS = re.compile("[A-Z]{1,3}")
_PROFILE = Budget(bytes=MAX_PROFILE_BYTES, values=100_000)
Decided = HeaderFact | ReadingFact | ShapeFact


def remember(store: ObjectStore, job: Job) -> str:
    """Learn from a job's decision; returns why nothing could be learnt, or an empty text."""
    if job.decision is None or job.decided_at is None:
        return ""
    try:
        body = store.read(job.decision.key, version=job.decision.version, limit=MAX_DECISION_BYTES)
        decision = read_decision(body)
    except (ObjectMissing, ObjectChanged, ObjectTooLarge, DecisionInvalid) as error:
        return f"its decision is gone: {error}"
    if not decision.remember or not decision.answers:
        return ""
    at = datetime.fromtimestamp(job.decided_at, UTC)
    profile, sender = _profile(job, store), sender_of(job)
    facts: list[Decided] = [
        *(f for f in answers_in(profile, sender=sender, by=decision.by) if any(_fits(a, f) for a in decision.answers)),
        *shapes_in(profile, sender=sender, by=decision.by, decided=True),
    ]
    try:
        if facts:
            change_memory(
                store, own_key(job.tenant, job.workflow), lambda m: learn(m, _unknown(m, facts, at), at=at),
                pause=lambda _seconds: None,
            )  # fmt: skip
    except (MemoryInvalid, ObjectTooLarge) as error:
        return f"the memory cannot be changed: {error}"
    return ""


def _fits(answer: Answer, fact: HeaderFact | ReadingFact) -> bool:
    """Whether an answer can have been applied as a fact, for all that the answer itself tells."""
    if answer.header is not None and folded(answer.header) != folded(fact.header):
        return False
    value = answer.value if "value" in answer.model_fields_set else None
    if isinstance(fact, ReadingFact):
        return fact.reading in (answer.reading, value)
    if "field" in answer.model_fields_set:
        # Of columns with one header all but one are no field.
        return fact.field == answer.field or (fact.field is None and answer.header is not None)
    chose_column = value is not None and _LETTERS.fullmatch(value) is not None
    return "value" in answer.model_fields_set and (chose_column or fact.field == value)


def _unknown(memory: Memory, facts: list[Decided], at: datetime) -> list[Decided]:
    """Facts without those that a person has said since, or that were learnt from this very decision before."""
    known = {
        (kind, e.key)
        for kind, entries in ((HeaderFact, memory.headers), (ReadingFact, memory.readings), (ShapeFact, memory.shapes))
        for e in entries
        if e.said_at is not None and e.said_at >= at
    }
    return [fact for fact in facts if (type(fact), fact.key) not in known]


def _profile(job: Job, store: ObjectStore) -> object:
    """What the attempt staged about its drop; None if there is nothing that can be read."""
    try:
        body = store.read(staging_folder(job.job_id, job.fence) + OutputName.PROFILE, limit=MAX_PROFILE_BYTES)
        return plain(body.rpartition(b"\n")[2], _PROFILE)  # below the line that says what it follows
    except (ObjectMissing, ObjectTooLarge, ValueError):
        return None
