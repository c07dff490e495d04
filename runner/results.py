"""The bodies of `result.json` and `latest.json`, made from the job's row alone, so writing them twice is harmless."""

import json
from typing import Any

from core.jobs import Job, State, stamp_text
from core.keys import INBOX, line_folder, output_folder, place

LATEST_VERSION = 1
_HEAD = 1000  # bytes of the first line of a profile
AUDIT = ("artifact.json", "report.html", "rejects.xlsx")  # published without a workbook if they explain a failure


def job_folder(job: Job) -> str:
    return output_folder(job.tenant, job.subject, job.workflow, job.job_id)


def result_key(job: Job) -> str:
    return f"{job_folder(job)}result.json"


def latest_key(job: Job) -> str:
    return f"{line_folder(job.tenant, job.subject, job.workflow)}latest.json"


def outcome(job: Job) -> State:
    """The terminal state of a job, or the one it will have when its publication is finished."""
    return State.SUCCEEDED if job.state is State.PUBLISHING else job.state


def result_body(job: Job) -> bytes:
    status = outcome(job)
    committed = next(
        (at for name, at in reversed(job.history) if name in (State.PUBLISHING, job.state)), job.updated_at
    )
    body: dict[str, Any] = {
        "result": 1,
        "job_id": job.job_id,
        "status": str(status),
        "reason": job.reason or None,
        "error": None
        if job.error is None
        else {
            "verdict": str(job.error.verdict),
            "fault": str(job.error.fault),
            "message": job.error.message,
            "where": job.error.where,
        },
        "tenant": job.tenant,
        "workflow": job.workflow,
        "subject": job.subject,
        "params": job.params,
        "attempts": job.attempts_total,
        "inputs": [
            {"role": i.role, "name": i.name, "key": i.ref.key, "version": i.ref.version, "size": i.ref.size}
            for i in job.inputs
        ],
        **({} if job.mends is None else {"mends": {"job_id": job.mends.job_id, "subject": job.mends.subject}}),
        "config_digest": job.config_digest,
        "files": [{"name": f.name, "size": f.size, "sha256": f.sha256} for f in job.files],
        "summary": {k: v for k, v in job.summary.items() if k != "progress"},
        "sandbox": job.sandbox,
        "timings": {
            "uploaded_at": stamp_text(job.stamp),
            "created_at": stamp_text(job.created_at),
            "started_at": stamp_text(job.started_at),
            "ended_at": stamp_text(committed),
            "run_seconds": None if job.started_at is None else round(max(0.0, committed - job.started_at), 3),
        },
    }
    return json.dumps(body, indent=2, ensure_ascii=False).encode()


def profile_key(job: Job) -> str | None:
    """Where the profile of a sender's last drop is: beside the outputs of its folder, one for each workflow."""
    primary = next((i.ref.key for i in job.inputs if i.role == "primary"), None)
    if primary is None or not primary.startswith(f"{INBOX}{job.tenant}/"):
        return None
    return f"{line_folder(job.tenant, place(primary).sender, job.workflow)}profile.json"


def profile_head(job: Job) -> bytes:
    """The first line of a kept profile."""
    return (
        json.dumps({"kept": 1, "job_id": job.job_id, "order": [job.stamp, job.created_at, job.job_id]}).encode() + b"\n"
    )


def profile_order(body: bytes | None) -> tuple[float, float, str] | None:
    """How a kept profile is ordered among others; None where it does not say so."""
    try:
        stamp, created, job_id = json.loads((body or b"").split(b"\n", 1)[0][:_HEAD])["order"]
        return float(stamp), float(created), str(job_id)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def mended_latest_key(job: Job) -> str | None:
    """Where the first drop's latest.json is, for a job that completes another drop than its own."""
    if job.mends is None or job.mends.subject == job.subject:
        return None
    return f"{line_folder(job.tenant, job.mends.subject, job.workflow)}latest.json"


def mended_order(job: Job) -> tuple[float, float, str]:
    """Where a job that mends another drop stands in that drop's line: right behind its first result.

    A newer version of the drop comes later, whenever the mended rows arrived; of two mends the later upload does.
    """
    if job.mends is None:
        return (job.stamp, job.created_at, job.job_id)
    return (job.mends.stamp, job.mends.created_at, f"{job.mends.job_id}~{job.stamp:020.6f}~{job.job_id}")


def latest_body(job: Job, order: tuple[float, float, str] | None = None) -> bytes:
    """`order`: among the results of its line, where that is not the job's own."""
    body = {
        "latest": LATEST_VERSION,
        "job_id": job.job_id,
        "result": result_key(job),
        "params": job.params,
        "uploaded_at": stamp_text(job.stamp),
        "order": list(order or (job.stamp, job.created_at, job.job_id)),
    }
    return json.dumps(body, indent=2, ensure_ascii=False).encode()
