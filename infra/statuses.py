"""`status.json` in the bucket: written while a job waits, replaced as it moves, gone with its result.

Theory of operation. A row that is `announced` may have a status.json; a row that is not has none. So the mark is
written before the object, and the object is removed before the mark: whoever dies in between leaves a mark, and the
sweep (for what waits) or the publication (for what ended) finishes the step. Whoever wrote an object reads the row once
more: if the job moved on meanwhile, the object is mended or removed. One line has one status.json; of several jobs
that wait, the last to speak is shown, and only its own job removes it. Jobs that never wait cost nothing.
"""

import contextlib
import json

from core.errors import KeyRefused, ObjectMissing, ObjectTooLarge
from core.jobs import Job
from core.keys import refusal
from core.ports import JobTable, ObjectStore
from core.statuses import status_body, status_key

_SMALL = 1024 * 1024
_TRIES = 3


class Statuses:
    """Safe to share between threads."""

    def __init__(self, store: ObjectStore, table: JobTable) -> None:
        self._store = store
        self._table = table

    def announce(self, job: Job) -> None:
        """Let status.json tell of an announced job. Again: nothing is written where it does already."""
        for _ in range(_TRIES):
            key, body = status_key(job), status_body(job)
            if refusal(key) is not None or self._read(key) == body:
                return
            # A folder bucket may have a folder of that name; a status is not worth a failure.
            with contextlib.suppress(KeyRefused):
                self._store.put(key, body)
            now = self._table.get(job.job_id)
            if now is None or not now.announced or now.ended:
                self.clear(job)
                return
            if now.rev == job.rev:
                return
            job = now

    def clear(self, job: Job) -> None:
        """Remove the status.json that tells of this job; none, or another's, is left as it is."""
        key = status_key(job)
        if not job.announced or refusal(key) is not None:
            return
        body = self._read(key)
        if body is not None and _told_by(body) == job.job_id:
            self._store.delete(key)

    def remove(self, job: Job) -> bool:
        """Remove a row and what it announced; False: the row has moved on."""
        self.clear(job)
        gone = self._table.remove(job)
        if gone:
            self.clear(job)  # written by somebody who saw the row a moment ago
        return gone

    def _read(self, key: str) -> bytes | None:
        try:
            return self._store.read(key, limit=_SMALL)
        except (ObjectMissing, ObjectTooLarge):
            return None


def _told_by(body: bytes) -> str | None:
    try:
        return str(json.loads(body)["job_id"])
    except (ValueError, TypeError, KeyError):
        return None
