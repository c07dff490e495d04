"""`status.json`: what a waiting job tells its sender. Made from the job's row alone."""

import json
from datetime import UTC, datetime

from core.jobs import NO_WORKFLOW, Job
from core.keys import OUTPUTS, line_folder

HELD_SECONDS = 30.0  # a job that is ready and may not start tells so once it has waited this long


def status_key(job: Job) -> str:
    """Beside where the outputs will be, and their `latest.json`."""
    if job.workflow == NO_WORKFLOW:
        return f"{OUTPUTS}{job.tenant}/{job.subject}/status.json"
    return f"{line_folder(job.tenant, job.subject, job.workflow)}status.json"


def status_body(job: Job) -> bytes:
    body = {
        "status": 1,
        "job_id": job.job_id,
        "state": str(job.state),
        "reason": job.reason or None,
        "waiting_for": list(job.waiting_for),
        "tenant": job.tenant,
        "workflow": None if job.workflow == NO_WORKFLOW else job.workflow,
        "subject": job.subject,
        "params": job.params,
        "since": stamp_text(since(job)),
        "due_at": stamp_text(job.due_at),
    }
    return json.dumps(body, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace")


def since(job: Job) -> float:
    """When the job came to the state it is in."""
    return next((at for name, at in reversed(job.history) if name == job.state), job.updated_at)


def stamp_text(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
