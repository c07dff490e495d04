"""The JSON shapes of the command line, documented in docs/commands.md."""

from typing import Any

from core.jobs import Job
from core.ports import NewerRow
from core.records import job_dict
from runner.results import job_folder, result_key


def job_shape(job: Job) -> dict[str, Any]:
    """A job as every command shows it: its whole record, and where its outputs stand."""
    return {**job_dict(job), "outputs": job_folder(job), "result": result_key(job)}


def newer_shape(row: NewerRow) -> dict[str, Any]:
    """What is told of a row that a newer program wrote."""
    told = {name: getattr(row, name) for name in ("job_id", "tenant", "workflow", "state", "created_at")}
    return {**told, "newer": {"version": row.why.version, "message": str(row.why)}}
