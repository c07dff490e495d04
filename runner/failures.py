"""report.html of a job that ended without an artifact: unreadable, too large, refused, or its rules failed.

Written by the runner itself from what it knows: the verdict, the reason's code, names, and the message that result.json
has too. Nothing of the tenant's files is opened for it.
"""

import time
from pathlib import Path

from core.jobs import Job
from core.keys import decision_place
from core.verdicts import FAULTS, Fault, Verdict
from runner.engine.contract import EXPLAINED, PRIMARY, OutputName, ReportTerms, Where

_REPORTED = frozenset({Fault.INPUT, Fault.CONFIG, Fault.LIMIT})
_SUPERSEDED = frozenset({Verdict.INPUT_GONE, Verdict.REVIEW_EXPIRED})  # a newer file, or review.html, says more
_LARGE = "too_large"


def is_reported(verdict: Verdict) -> bool:
    """Whether a job that ended so without an artifact has a report: not if the fault is ours."""
    return FAULTS[verdict] in _REPORTED and verdict not in EXPLAINED | _SUPERSEDED


def write_report(
    job: Job, verdict: Verdict, message: str, where: Where, *, language: str, to: Path, retention_seconds: float = 0.0
) -> dict[str, Path]:
    """Write the page into a folder; nothing if a job that ended so has none, or an artifact to be reported from."""
    if not is_reported(verdict):
        return {}
    from runner.engine.pages.report import FailedJob, failure_report  # noqa: PLC0415 - for few jobs

    failed = FailedJob(
        verdict=verdict,
        reason=str(where.get("reason", "")),
        message=message,
        files=tuple(item.name for item in job.inputs if item.role == PRIMARY),
        workflow=job.workflow,
        job_id=job.job_id,
        attempt=job.attempts_total,
    )
    terms = ReportTerms(language=language, drop_to=_folder(job), retention_seconds=int(retention_seconds))
    path = to / OutputName.REPORT
    path.write_text(failure_report(failed, at=time.time(), terms=terms), encoding="utf-8", errors="replace")
    return {str(OutputName.REPORT): path}


def _folder(job: Job) -> str:
    """The folder of the inbox that the job's files are in."""
    if not any(item.role == PRIMARY for item in job.inputs):
        return ""
    return decision_place(job).rpartition("/")[0]
