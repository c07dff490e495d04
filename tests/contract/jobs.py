"""Jobs for the suites."""

from dataclasses import replace
from typing import Any

from core.jobs import InputRef, Job, ObjectRef, State

NOW = 1_750_000_000.0


def a_job(
    name: str, *, tenant: str = "acme", workflow: str = "members", state: State = State.QUEUED, **more: Any
) -> Job:
    """A job that holds something in every corner of the record."""
    ref = ObjectRef(key=f"inbox/{tenant}/{name} é.csv", version="v1", digest="d1", size=7)
    fields: dict[str, Any] = {
        "subject": f"{name}.csv",
        "params": {"rate": 1.5, "label": "ü"},
        "reason": "because",
        "manifest": ref,
        "inputs": (InputRef(role="primary", name="x", ref=ref),),
        "summary": {"rows": 3, "seconds": 0.25},
        "created_at": NOW,
        "updated_at": NOW,
        "history": (("QUEUED", NOW),),
    }
    return Job(
        job_id=f"{tenant}-{workflow}-{name}",
        identity=f"identity of {name}",
        tenant=tenant,
        workflow=workflow,
        state=state,
        **(fields | more),
    )


def with_reason(job: Job, reason: str) -> Job:
    return replace(job, reason=reason)
