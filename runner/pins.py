"""In: a job and its bucket. Out: its decision and memories as the box gets them, and as a new round pins them.

Both are pinned by version when a job is made, and neither is part of its identity. A store without old versions may no
longer have them. A decision that is gone no longer counts: the job asks again. A memory that changed is replaced by its
newest version. What was really used is in the order, in the artifact and, after the attempt, in the row.
"""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from core.decisions import MAX_DECISION_BYTES, Decision, DecisionInvalid, parse_decision
from core.errors import ObjectChanged, ObjectMissing, ObjectTooLarge
from core.jobs import Job, ObjectRef
from core.keys import decision_key, place
from core.memories import MAX_MEMORY_BYTES, MemoryInvalid, own_key, parse_memory
from core.ports import ObjectStore

_GONE = (ObjectMissing, ObjectChanged, ObjectTooLarge)


class PinnedSource(Protocol):
    """What staging needs of an ObjectStore."""

    def read(self, key: str, *, version: str | None = None, limit: int) -> bytes: ...


class Pins(NamedTuple):
    """What an attempt was given beside its inputs, and the parts of its order that say so."""

    decision: ObjectRef | None
    memories: tuple[ObjectRef, ...]
    order: dict[str, Any]


def decision_place(job: Job) -> str:
    """Where a decision on a job is expected: beside the first of its inputs."""
    return decision_key(min(i.ref.key for i in job.inputs if i.role == "primary"))


def sender_of(job: Job) -> str:
    """Who dropped a job's file (`core.keys.Place.sender`)."""
    return place(min(i.ref.key for i in job.inputs if i.role == "primary")).sender.rstrip("/")


def fits_job(decision: Decision, job: Job) -> bool:
    """Whether a decision is for this job and not for another one of its file."""
    return decision.workflow in (None, job.workflow) and decision.job in (None, job.job_id)


def stage_pins(store: PinnedSource, job: Job, scratch: Path) -> Pins:
    """Write a job's decision and memories below `scratch/in`."""
    order: dict[str, Any] = {}
    used = None
    if job.decision is not None and (found := _read_decision(store, job)) is not None:
        body, decision = found
        (scratch / "in" / "decision.json").write_bytes(body)
        used = job.decision
        order["decision"] = _facts(used, body, "in/decision.json") | {"by": decision.by}
    if job.review is not None and job.review.accepted:
        order["review"] = "accept"
    memories: list[tuple[ObjectRef, dict[str, str]]] = []
    for ref in job.memories:
        taken = _read_memory(store, ref)
        if taken is None:
            continue
        path = f"in/memory-{len(memories)}.json"
        (scratch / path).write_bytes(taken[1])
        memories.append((taken[0], _facts(*taken, path)))
    if memories:
        order["memories"] = [facts for _, facts in memories]
        order["sender"] = sender_of(job)
    return Pins(used, tuple(ref for ref, _ in memories), order)


def repinned(store: ObjectStore, job: Job) -> dict[str, Any]:
    """The newest memories and the decision that is there now, for a new round of a job."""
    keys = [*(ref.key for ref in job.memories), own_key(job.tenant, job.workflow)]
    memories = tuple(info.ref for key in dict.fromkeys(keys) if (info := store.head(key)) is not None)
    pinned: dict[str, Any] = {"memories": memories}
    places = {decision_key(i.ref.key) for i in job.inputs if i.role == "primary"}
    found = [info for key in sorted(places) if (info := store.head(key)) is not None] if len(places) == 1 else []
    for info in found:
        candidate = replace(job, decision=info.ref)
        if _read_decision(store, candidate) is not None:
            pinned |= {"decision": info.ref, "decided_at": info.modified}
    return pinned


def _read_decision(store: PinnedSource, job: Job) -> tuple[bytes, Decision] | None:
    if job.decision is None:
        return None
    try:
        body = store.read(job.decision.key, version=job.decision.version, limit=MAX_DECISION_BYTES)
        decision = parse_decision(body)
    except (*_GONE, DecisionInvalid):
        return None
    return (body, decision) if fits_job(decision, job) else None


def _read_memory(store: PinnedSource, ref: ObjectRef) -> tuple[ObjectRef, bytes] | None:
    """A memory at its pinned version, else the newest; None if there is none, or none that can be read."""
    for version in (ref.version, None):
        try:
            body = store.read(ref.key, version=version or None, limit=MAX_MEMORY_BYTES)
            parse_memory(body)
        except (*_GONE, MemoryInvalid):
            continue
        if version is not None:
            return ref, body
        digest = hashlib.sha256(body).hexdigest()
        return ObjectRef(key=ref.key, version="", digest=digest, size=len(body)), body
    return None


def _facts(ref: ObjectRef, body: bytes, path: str) -> dict[str, str]:
    return {"path": path, "key": ref.key, "version": ref.version, "sha256": hashlib.sha256(body).hexdigest()}
