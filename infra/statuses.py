"""`status.json` in the bucket: written while a job waits, updated as it moves, deleted with its result.

Theory of operation. A row that is `announced` may have a status.json; a row that is not has none. So the mark is
written before the object, and the object is removed before the mark: a crash in between leaves a mark, and the
sweep (for waiting jobs) or the publication (for ended ones) finishes the step. After writing an object the row is read
once more: if the job has moved on, the object is updated or removed. One line has one status.json; of several
waiting jobs the last to write is shown, and only that job removes it. Jobs that never wait cost nothing.
"""

import contextlib
import json

from core.errors import KeyRefused, ObjectMissing, ObjectTooLarge
from core.jobs import NO_WORKFLOW, Job, since, stamp_text
from core.keys import OUTPUTS, line_of, refusal
from core.ports import JobTable, ObjectStore

HELD_SECONDS = 30.0  # after this long, a job that is ready but may not start gets a status.json
_SMALL = 1024 * 1024
_TRIES = 3


def status_key(job: Job) -> str:
    """Beside the outputs and their `latest.json`."""
    if job.workflow == NO_WORKFLOW:
        return f"{OUTPUTS}{job.tenant}/{job.subject}/status.json"
    return f"{line_of(job)}status.json"


def status_body(job: Job) -> bytes:
    body = {
        "status": 1,
        "job_id": job.job_id,
        "state": str(job.state),
        "reason": job.reason or None,
        "waiting_for": list(job.waiting_for),
        "tenant": job.tenant,
        "workflow": None if job.workflow == NO_WORKFLOW else job.workflow,
        "subject": job.subject,
        "params": job.params,
        "since": stamp_text(since(job)),
        "due_at": stamp_text(job.due_at),
    }
    return json.dumps(body, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace")


class Statuses:
    """Safe to share between threads."""

    def __init__(self, store: ObjectStore, table: JobTable) -> None:
        self._store = store
        self._table = table

    def announce(self, job: Job) -> None:
        """Write status.json for an announced job. Safe to repeat: writes nothing if it is up to date."""
        for _ in range(_TRIES):
            key, body = status_key(job), status_body(job)
            if refusal(key) is not None or self._read(key) == body:
                return
            # A folder bucket may have a folder of that name; a status must not fail the job.
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
        """Remove the status.json of this job; that of another job stays."""
        key = status_key(job)
        if not job.announced or refusal(key) is not None:
            return
        body = self._read(key)
        if body is not None and _job_of(body) == job.job_id:
            self._store.delete(key)

    def remove(self, job: Job) -> bool:
        """Remove a row and its status.json; False: the row has changed."""
        self.clear(job)
        gone = self._table.remove(job)
        if gone:
            self.clear(job)  # another process may have written it a moment ago
        return gone

    def _read(self, key: str) -> bytes | None:
        try:
            return self._store.read(key, limit=_SMALL)
        except (ObjectMissing, ObjectTooLarge):
            return None


def _job_of(body: bytes) -> str | None:
    try:
        return str(json.loads(body)["job_id"])
    except (ValueError, TypeError, KeyError):
        return None
