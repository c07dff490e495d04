"""The job record as JSON: one codec for every table and for `--json`."""

from typing import Any

from pydantic import TypeAdapter

from core.jobs import Job

_CODEC = TypeAdapter(Job)


def dump_job(job: Job) -> str:
    return _CODEC.dump_json(job).decode()


def load_job(text: str | bytes) -> Job:
    return _CODEC.validate_json(text)


def job_dict(job: Job) -> dict[str, Any]:
    """The documented shape behind `--json`: plain values only."""
    shown: dict[str, Any] = _CODEC.dump_python(job, mode="json")
    if job.error is not None:
        shown["error"]["fault"] = job.error.fault
    return shown
