"""Compares rows with outputs: a row that says SUCCEEDED has its files in the bucket, or an event says so.

They part when a bucket is restored from a copy older than the table, or a store loses what it has acknowledged. Each
result is checked once soon after its end, then by turns, one listing for each and a bounded number in each round.

What is missing is put back from `work/`, if it is still staged there. Otherwise the job runs again, if the bucket has
never knew the result (latest.json names an older one, or none), its inputs are there, and it has not been run again
before. If latest.json knows the result, somebody removed the files on purpose: that is reported and left alone.
"""

from collections import Counter
from dataclasses import replace
from typing import Final

from core.caches import BoundedCache
from core.errors import AdeError, ObjectMissing, PreconditionFailed
from core.jobs import ENDED, Job, State, again
from core.keys import job_folder, latest_key, result_key, staging_folder
from core.ports import Clock, JobQuery, JobTable, ObjectStore
from infra.logs import Log
from runner.documents import read_order, result_body

AUDITED: Final = ENDED - {State.EXPIRED}
RESTORED, RUN_AGAIN, UNEXPLAINED = "results_restored", "results_run_again", "results_missing"
_SUCCEEDED: Final = JobQuery(states=frozenset({State.SUCCEEDED}))  # what somebody may have lost
_REMEMBERED = 20_000
_PAGE = 50
_MOST_NEW = 500  # results in one round
_AT_REST_SECONDS = 60.0  # after which nobody is still writing


class Audit:
    """The audit of one process."""

    def __init__(self, store: ObjectStore, table: JobTable, clock: Clock, log: Log) -> None:
        self._store, self._table, self._clock, self._log = store, table, clock, log
        self._seen = BoundedCache[tuple[str, int], None](_REMEMBERED)
        self._cursor: str | None = None  # how far the turn has come

    def round(self) -> Counter[str]:
        """Look at results that ended since the last round, then at the next few of all."""
        done: Counter[str] = Counter()
        cursor: str | None = None
        while done["results_audited"] < _MOST_NEW:
            page = self._table.page(_SUCCEEDED, limit=_PAGE, cursor=cursor)
            fresh = [job for job in page.jobs if (job.job_id, job.fence) not in self._seen]
            done += self._check_all(fresh)
            cursor = page.cursor
            if cursor is None or len(fresh) < len(page.jobs):
                break
        if cursor is not None:  # there are older ones
            page = self._table.page(_SUCCEEDED, limit=_PAGE, cursor=self._cursor or cursor)
            self._cursor = page.cursor
            done += self._check_all(list(page.jobs))
        return done

    def _check_all(self, jobs: list[Job]) -> Counter[str]:
        done: Counter[str] = Counter()
        for job in jobs:
            found = self.check(job)
            done["results_audited"] += 1
            if found:
                done[found] += 1
        return done

    def check(self, job: Job) -> str:
        """Compare one row with its outputs; what was done where they differ, empty where they do not."""
        is_at_rest = self._clock.now() - job.updated_at >= _AT_REST_SECONDS
        if job.state not in AUDITED or job.unpublished or job.replay or not is_at_rest:
            return ""
        known = (job.job_id, job.fence) in self._seen
        self._seen.put((job.job_id, job.fence), None)
        missing = self.missing(job)
        if not missing:
            return ""
        found = self._heal(job, missing)
        if found != UNEXPLAINED or not known:
            self._log.error(found, job_id=job.job_id, files=sorted(key.rpartition("/")[2] for key in missing))
        return found

    def missing(self, job: Job) -> set[str]:
        """The keys that a row promises and the bucket does not have."""
        folder = job_folder(job)
        promised = {result_key(job), *(folder + file.name for file in job.files)}
        missing = promised - set(self._store.keys(folder))
        now = self._table.get(job.job_id) if missing else job
        return missing if now is not None and now.rev == job.rev else set()

    def _heal(self, job: Job, missing: set[str]) -> str:
        if job.state is not State.SUCCEEDED:
            # Its result.json is made of the row alone, and the janitor writes it; an audit that is gone stays so.
            self._table.replace(job, replace(job, unpublished=True, files=()))
            return RESTORED
        if self._put_back(job, missing):
            self._table.replace(job, replace(job, unpublished=True))  # so that latest.json is written again, too
            return RESTORED
        if self._is_unheard_of(job) and not _ran_again(job) and self._has_inputs(job):
            reason = "its outputs are gone from the bucket, which never knew them; it runs again"
            self._table.replace(job, again(job, now=self._clock.now(), reason=reason))
            return RUN_AGAIN
        return UNEXPLAINED

    def _put_back(self, job: Job, missing: set[str]) -> bool:
        """Copy what is still staged, then write result.json; False if something is not."""
        folder, staged, result = job_folder(job), staging_folder(job.job_id, job.fence), result_key(job)
        try:
            for key in sorted(missing - {result}):
                self._store.copy(staged + key.removeprefix(folder), key)
            if result in missing:
                self._store.put(result, result_body(job), if_absent=True)
        except ObjectMissing:
            return False
        except PreconditionFailed:
            pass  # another process has put it back
        return True

    def _is_unheard_of(self, job: Job) -> bool:
        try:
            order = read_order(self._store.read(latest_key(job), limit=1024 * 1024))
        except ObjectMissing:
            order = None
        except AdeError:
            return False
        return order is None or order < (job.stamp, job.created_at, job.job_id)

    def _has_inputs(self, job: Job) -> bool:
        refs = [item.ref for item in job.inputs] + ([job.manifest] if job.manifest else [])
        found = [(ref, self._store.head(ref.key)) for ref in refs]
        return all(info is not None and info.digest == ref.digest for ref, info in found)


def _ran_again(job: Job) -> bool:
    """Whether a job was run again after a success: twice is enough, whoever removes its outputs."""
    return sum(state == State.SUCCEEDED for state, _ in job.history) > 1
