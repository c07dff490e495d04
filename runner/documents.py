"""The documents that a publication writes: result.json and latest.json. Both are made from a job's row alone."""

import json
import math
from typing import Any

from core.errors import ObjectMissing, ObjectTooLarge, RecordNewer
from core.jobs import Job, State, stamp_text
from core.keys import result_key
from core.ports import ObjectStore
from runner.engine.contract import Json, label_of

LATEST_VERSION = 1
MAX_DOCUMENT_BYTES = 1024 * 1024
LineOrder = tuple[float, float, str]  # by which results of one line are compared: stamp, creation, job id


def order_of(job: Job) -> LineOrder:
    return (job.stamp, job.created_at, job.job_id)


def final_state(job: Job) -> State:
    """The terminal state of a job, or the one it will have when its publication is finished."""
    return State.SUCCEEDED if job.state is State.PUBLISHING else job.state


def quality(job: Job) -> Json | None:
    """How many rows came, left and were refused, and which fields are empty; None of a job that counted nothing."""
    counted = job.summary
    if "rows_in" not in counted:
        return None
    left_out = counted.get("left_out", {})
    rejected, bad = left_out.get("rejected", 0), counted.get("rows_with_errors", 0)
    rows = counted.get("rows_used", counted["rows_out"]) + rejected or counted["rows_in"]
    return {
        "rows_in": counted["rows_in"],
        "rows_out": counted["rows_out"],
        "rows_rejected": rejected,
        "rows_with_errors": bad,
        "error_rate": round(bad / rows, 4) if rows else None,
        "left_out": left_out,
        "empty_fields": counted.get("empty_fields", []),
    }


def ended_as(job: Job) -> str:
    """How a job ended, in words: its state, and its verdict if it did not succeed."""
    return status_text(str(final_state(job)), None if job.error is None else str(job.error.verdict))


def status_text(state: str, verdict: str | None) -> str:
    return f"{state} ({verdict})" if verdict else state


def result_body(job: Job) -> bytes:
    status = final_state(job)
    committed = job.committed_at
    body: dict[str, Any] = {
        "result": 1,
        "job_id": job.job_id,
        "status": str(status),
        "outcome": job.outcome,
        "quality": quality(job),
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
        "expires_at": stamp_text(job.expires_at),
        "files": [{"name": f.name, "size": f.size, "sha256": f.sha256, **split_facts(job, f.name)} for f in job.files],
        "summary": {k: v for k, v in job.summary.items() if k not in ("progress", "split")},
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


def split_facts(job: Job, name: str) -> dict[str, Any]:
    """The value and the number of the rows in a split file; nothing for other files."""
    label, parts = label_of(name), job.summary.get("split") or ()
    part = next((part for part in parts if part["name"] == label), None)
    return {} if part is None else {"value": part["value"], "rows": part["rows"]}


def withdrawn_body(job: Job) -> bytes:
    """What result.json says while the files of an earlier result of the same job are being replaced."""
    facts = {"result": 1, "job_id": job.job_id, "status": str(State.PUBLISHING), "attempts": job.attempts_total}
    reason = "the job was reset; its next result is being published"
    return json.dumps(facts | {"reason": reason, "files": []}, indent=2).encode()


def latest_body(job: Job, order: LineOrder | None = None) -> bytes:
    """`order`: among the results of its line, where that is not the job's own."""
    body = {
        "latest": LATEST_VERSION,
        "job_id": job.job_id,
        "result": result_key(job),
        "params": job.params,
        "uploaded_at": stamp_text(job.stamp),
        "order": list(order or order_of(job)),
    }
    return json.dumps(body, indent=2, ensure_ascii=False).encode()


def read_order(body: bytes | None) -> LineOrder | None:
    """The sort key in a latest.json; None if it cannot be read."""
    try:
        latest = json.loads(body or b"")
        version = latest["latest"]
        if type(version) is int and version > LATEST_VERSION:
            raise RecordNewer(f"latest.json of {latest.get('job_id')}", version, LATEST_VERSION)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None
    return parse_order(latest.get("order"))


def parse_order(raw: object) -> LineOrder | None:
    """An order as it was stored; None if it is not one."""
    if not isinstance(raw, list) or len(raw) != 3:
        return None
    stamp, created, job_id = raw
    try:
        order = float(stamp), float(created), str(job_id)
    except (ValueError, TypeError, OverflowError):
        return None
    return order if math.isfinite(order[0]) and math.isfinite(order[1]) else None


def read_document(store: ObjectStore, key: str, limit: int = MAX_DOCUMENT_BYTES) -> bytes | None:
    """The bytes of a document; None if there is none, or somebody else wrote it."""
    try:
        return store.read(key, limit=limit)
    except (ObjectMissing, ObjectTooLarge):
        return None
