"""Follow jobs to their ends, woken by the table."""

import time
from collections.abc import Callable, Iterable

from core.jobs import Job
from core.ports import JobTable

_LOOK_SECONDS = 1.0


def follow(
    table: JobTable,
    job_ids: Iterable[str],
    *,
    seconds: float | None = None,
    seen: Callable[[Job], None],
    each: Callable[[Job], None] = lambda _: None,
) -> list[Job]:
    """Wait until every job has ended and its result.json is written; the jobs as they are then.

    `seen` hears each change of state, reason or progress, `each` hears every look. After `seconds` whatever is there
    is returned. A job whose row vanishes (removed, or a placeholder that gave way) is left out.
    """
    until = None if seconds is None else time.monotonic() + seconds
    wanted = list(dict.fromkeys(job_ids))
    known: dict[str, tuple[object, ...]] = {}
    while True:
        jobs = [job for job_id in wanted if (job := table.get(job_id)) is not None]
        for job in jobs:
            facts = (job.state, job.reason, job.cancel_requested_at, str(job.summary.get("progress")))
            if known.get(job.job_id) != facts:
                known[job.job_id] = facts
                seen(job)
            each(job)
        left = _LOOK_SECONDS if until is None else min(_LOOK_SECONDS, until - time.monotonic())
        if all(job.ended and not job.unpublished for job in jobs) or left <= 0:
            return jobs
        table.wait(left)
