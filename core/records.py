"""The job record as JSON: one codec for every table and for `--json`.

A record carries the version of its layout: the lowest that holds what it says, so that programs of the release before
read whatever they can work on; docs/upgrading.md says when a version is raised. A record of a newer version is not read
at all. Unknown fields in a record of a known version come from a newer program: they are kept and written back. Values
equal to their default are not written, so a default never changes within a version.
"""

from dataclasses import fields, replace
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from core.errors import RecordNewer, RowUnreadable
from core.jobs import Job, State
from core.verdicts import Verdict

RECORD_VERSION = 2  # the newest that this program reads and writes
# Verdicts that programs of version 1 know; a row with any other is of version 2.
_FIRST = frozenset(
    {
        Verdict.OK, Verdict.INPUT_UNREADABLE, Verdict.NOTHING_MAPPED, Verdict.INPUT_GONE, Verdict.RULE_ERROR,
        Verdict.CONFIG_REFUSED, Verdict.BAD_OUTPUT, Verdict.CPU, Verdict.MEMORY, Verdict.WALL_CLOCK, Verdict.FILE_SIZE,
        Verdict.PROCESSES, Verdict.SIGNAL, Verdict.CANCELLED, Verdict.LEASE_LOST, Verdict.RELEASED, Verdict.BOX_FAILED,
        Verdict.STORE_FAILED, Verdict.RUNNER_LOST,
    }
)  # fmt: skip

_CODEC = TypeAdapter(Job)
_KNOWN = frozenset(field.name for field in fields(Job)) - {"unknown"}


def record_version(job: Job) -> int:
    """The lowest version that holds a job: programs of version 1 know no reviews and would ignore a decision.

    They would lose nothing of a job that mends rejects, but would not point the first drop's latest.json to it.
    """
    newer = job.state is State.REVIEW or any((job.review, job.decision, job.mends))
    return 2 if newer or (job.error is not None and job.error.verdict not in _FIRST) else 1


def dump_job(job: Job) -> str:
    record: dict[str, Any] = {"v": record_version(job)}
    record |= _CODEC.dump_python(job, mode="json", exclude_defaults=True, exclude={"unknown"})
    return to_json(record | job.unknown, inf_nan_mode="null").decode()


def load_job(text: str | bytes, name: str = "") -> Job:
    """The job of a record; raises RecordNewer or RowUnreadable. `name`: of the row, for messages."""
    try:
        record = from_json(text)
        if not isinstance(record, dict):
            raise ValueError(f"it holds a {type(record).__name__}")  # noqa: TRY004 - as every other bad record
        version_of(record.pop("v", 1), name)
        unknown = {field: record.pop(field) for field in record.keys() - _KNOWN}
        job = _CODEC.validate_python(record)
    except ValueError as error:
        first = str(error).splitlines()
        raise RowUnreadable(
            f"row {name or 'of a job'} cannot be read ({' '.join(first[1:3]) or first[0]}); "
            "repair or delete it in the table: the next sweep finds its drop again"
        ) from None
    return replace(job, unknown=unknown) if unknown else job


def version_of(version: Any, name: str) -> int:
    """A record's version; raises RecordNewer if this program does not know it, ValueError if it is not a version."""
    if type(version) is not int or version < 1:
        raise ValueError("its version is not a positive integer")
    if version > RECORD_VERSION:
        raise RecordNewer(f"row {name or 'of a job'}", version, RECORD_VERSION)
    return version


def job_dict(job: Job) -> dict[str, Any]:
    """The documented shape behind `--json`: plain values only."""
    shown: dict[str, Any] = _CODEC.dump_python(job, mode="json", exclude={"unknown"})
    if job.error is not None:
        shown["error"]["fault"] = job.error.fault
    return shown
