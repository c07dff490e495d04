"""In: a workflow that expects a drop by a time of day. Out: a row that says that it is missing, or none.

Checked at every sweep. The row is a placeholder like others that say what a job waits for; it carries the notices, so
that they are delivered like those of any job, and it goes once a drop has come or the next one is due.
"""

from core.drops import Workflow, is_placeholder, missing_drop
from core.notices import Deadline, arrived, last_deadline
from core.ports import Clock, JobQuery, JobTable
from handlers.planning import Scan
from handlers.recording import Recorder

_PAGES = 20  # of rows; those of a workflow since its last deadline


class Expectations:
    def __init__(self, table: JobTable, clock: Clock, recorder: Recorder) -> None:
        self._table = table
        self._clock = clock
        self._recorder = recorder

    def check(self, scan: Scan, workflow: Workflow) -> None:
        """Raise or clear what one workflow misses; does nothing for one that expects nothing."""
        expect = workflow.manifest.expect
        if expect is None:
            return
        now = self._clock.now()
        deadline = last_deadline(expect.by, expect.tz, expect.days, now)
        row = missing_drop(workflow, deadline.at, now=now)
        outdated = [missing_drop(workflow, deadline.since, now=now)]
        if workflow.info.modified >= deadline.at or self._has_arrived(workflow, deadline):
            outdated.append(row)
        else:
            self._recorder.place(row, scan.report.recorded, scan.followups)
        scan.followups.drop(outdated)

    def _has_arrived(self, workflow: Workflow, deadline: Deadline) -> bool:
        query = JobQuery(tenant=workflow.tenant, workflow=workflow.manifest.name, created_from=deadline.since)
        cursor: str | None = None
        for _ in range(_PAGES):
            page = self._table.page(query, cursor=cursor)
            if page.newer or arrived(page.jobs, deadline, is_placeholder):
                return True
            cursor = page.cursor
            if cursor is None:
                return False
        return True  # so many rows are not nothing
