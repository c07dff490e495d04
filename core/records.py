"""The job record as JSON: one codec for every table and for `--json`."""

from typing import Any

from pydantic import TypeAdapter

from core.errors import RowUnreadable
from core.jobs import Job

_CODEC = TypeAdapter(Job)


def dump_job(job: Job) -> str:
    return _CODEC.dump_json(job).decode()


def load_job(text: str | bytes, name: str = "") -> Job:
    """The job of a record; RowUnreadable where it holds none. `name`: of the row, for people."""
    try:
        return _CODEC.validate_json(text)
    except ValueError as error:
        first = str(error).splitlines()
        raise RowUnreadable(
            f"row {name or 'of a job'} cannot be read ({' '.join(first[1:3]) or first[0]}); "
            "mend or delete it in the table: its drop is found again by the next sweep"
        ) from None


def job_dict(job: Job) -> dict[str, Any]:
    """The documented shape behind `--json`: plain values only."""
    shown: dict[str, Any] = _CODEC.dump_python(job, mode="json")
    if job.error is not None:
        shown["error"]["fault"] = job.error.fault
    return shown
