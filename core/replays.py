"""Replays: history once more with another version of its workflow, as jobs that publish to a place of their own. Pure.

A replay is named after what it is of, so whoever asks for the same one goes on with it. Its jobs are named after the
replay and the job that they repeat. They have the same inputs, overlays, memories and decision at the same versions,
ask nobody, notify nobody, and run after everything else. Their workflow is `<name>~<replay>`, which no manifest can be
called, so they are a line and have a cap of their own.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from core.drops import Workflow
from core.jobs import InputRef, Job, ObjectRef, Review, State, digest_of, job_id
from core.manifests import Manifest, Scalar
from core.versions import ID_LENGTH

PRIORITY: Final = -11  # below all that a manifest may ask for
# Ends that a version of the workflow has a part in.
REPLAYED: Final = frozenset({State.SUCCEEDED, State.FAILED, State.TIMED_OUT})


@dataclass(frozen=True, slots=True)
class VersionPins:
    """A version of a workflow, at exact versions of its objects."""

    id: str
    manifest: ObjectRef
    config: tuple[ObjectRef, ...]
    config_place: str


def replay_id(manifest_key: str, workflow: str, version: str, tenant: str | None, since: float | None) -> str:
    facts = json.dumps([manifest_key, workflow, version, tenant, since])
    return hashlib.sha256(facts.encode()).hexdigest()[:ID_LENGTH]


def is_history(job: Job, manifest_key: str) -> bool:
    """Whether a replay of the workflow of this manifest may repeat a job."""
    ended = job.state in REPLAYED and not job.replay and not job.mends
    return ended and job.manifest is not None and job.manifest.key == manifest_key


def history(jobs: Iterable[Job], manifest_key: str) -> list[Job]:
    """The jobs that a replay repeats: of each input and parameters the newest, oldest first.

    Corrections of rejects are left out: their results have rows of other drops.
    """
    newest: dict[tuple[str, str, str], Job] = {}
    for job in jobs:
        if not is_history(job, manifest_key):
            continue
        primaries = ",".join(sorted(i.ref.digest for i in job.inputs if i.role == "primary"))
        key = (job.line, primaries, json.dumps(job.params, sort_keys=True))
        if key not in newest or (job.stamp, job.created_at) > (newest[key].stamp, newest[key].created_at):
            newest[key] = job
    return sorted(newest.values(), key=lambda job: (job.stamp, job.created_at, job.job_id))


def replayed(
    job: Job, workflow: Workflow, pins: VersionPins, *, replay: str, auxiliary: Mapping[str, ObjectRef], now: float
) -> Job:
    """A job once more, with another version of its workflow. `auxiliary`: lookups by key, as far as they exist."""
    whole = hashlib.sha256(f"{replay}\0{job.identity}".encode()).hexdigest()
    digest, version = pins.id, ""
    if job.overlays:
        parts = [(f"/{n}", ref.digest) for n, ref in enumerate(job.overlays)]
        version, digest = pins.id, digest_of([("/", pins.id), *parts])
    return Job(
        job_id=job_id(job.tenant, f"{job.workflow}-replay", whole, _LENGTH),
        identity=whole,
        tenant=job.tenant,
        workflow=f"{job.workflow}~{replay}",
        subject=job.subject,
        replay=replay,
        params=_params(workflow.manifest, job.params),
        state=State.QUEUED,
        reason=f"replays {job.job_id}",
        manifest=pins.manifest,
        config=pins.config,
        config_place=pins.config_place,
        config_digest=digest,
        overlays=job.overlays,
        version=version,
        inputs=(*(i for i in job.inputs if i.role == "primary"), *_auxiliary(job, workflow, auxiliary)),
        memories=job.memories,
        decision=job.decision,
        decided_at=job.decided_at,
        review=Review(questions=0, on_expiry="accept", accepted=True),
        stamp=job.stamp,
        priority=PRIORITY,
        created_at=now,
        updated_at=now,
        history=((str(State.QUEUED), now),),
    )


_LENGTH: Final = 13  # of the end of an id: no two jobs of a replay share one


def lacking(workflow: Workflow, auxiliary: Mapping[str, ObjectRef]) -> list[str]:
    """Keys of required lookups that are not there."""
    required = [workflow.auxiliary_key(a.path) for a in workflow.manifest.inputs.auxiliary if a.required]
    return [key for key in required if key not in auxiliary]


def _auxiliary(job: Job, workflow: Workflow, auxiliary: Mapping[str, ObjectRef]) -> Sequence[InputRef]:
    """The lookups of the new version: as the job had them, else as they are now."""
    pinned = {i.ref.key: i.ref for i in job.inputs if i.role != "primary"}
    known = {**auxiliary, **pinned}
    names = workflow.auxiliary_keys()
    return [InputRef(role="auxiliary", name=names[key], ref=known[key]) for key in names if key in known]


def _params(manifest: Manifest, params: Mapping[str, Scalar]) -> dict[str, Scalar]:
    swept = {name: params.get(name, values[0]) for name, values in manifest.sweep.items()}
    return {**manifest.params, **swept}
