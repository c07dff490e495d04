"""The JSON shapes of the command line, documented in docs/commands.md."""

from typing import Any

from core.jobs import Job
from core.records import job_dict
from runner.results import job_folder, result_key


def job_shape(job: Job) -> dict[str, Any]:
    """A job as every command shows it: its whole record, and where its outputs stand."""
    return {**job_dict(job), "outputs": job_folder(job), "result": result_key(job)}
