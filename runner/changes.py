"""Read, decide, write: the one loop behind every change of a job outside a planner."""

from collections.abc import Callable

from core.jobs import Job
from core.ports import JobTable

_TRIES = 50


def mutate(table: JobTable, job_id: str, change: Callable[[Job], Job | None]) -> Job | None:
    """Apply a pure change to a job's newest record; None where the change declines or the job is gone.

    `change` sees the record that will be overwritten, so its conditions on state and fence hold at the write.
    """
    for _ in range(_TRIES):
        job = table.get(job_id)
        if job is None or (after := change(job)) is None:
            return None
        if (written := table.replace(job, after)) is not None:
            return written
    return None
