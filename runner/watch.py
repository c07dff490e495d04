"""Whether a runner is silent, told by one clock alone.

A lease names a time of its runner's clock, and clocks differ. So a lease that seems to have run out is watched: a
runner that is alive prolongs it every few seconds, and one that does not for longer than two beats take is silent.
"""

import threading

from core.jobs import Job

_KEPT = 10_000


class LeaseWatch:
    """Safe to share between threads."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._seen: dict[str, tuple[tuple[int, float], float]] = {}  # by job: fence and end of the lease, since when
        self._lock = threading.Lock()

    def silent(self, job: Job, now: float, steady: float) -> bool:
        """Whether a running job's lease has run out and was not prolonged since it was first seen so.

        `steady` measures the time between two looks: a clock that is set forward makes no runner silent.
        """
        if job.lease is None:
            return True
        if job.lease.expires > now:
            return False
        lease = job.fence, job.lease.expires
        with self._lock:
            known, since = self._seen.get(job.job_id, (None, steady))
            if known != lease:
                if len(self._seen) >= _KEPT:
                    self._seen.clear()  # those that are still due are watched anew
                self._seen[job.job_id], since = (lease, steady), steady
        return steady - since >= self._seconds
