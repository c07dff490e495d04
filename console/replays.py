"""Carries out a replay: feeds its jobs to the queue, a few at a time, and compares what they published with before.

Everything is repeatable. The jobs of a replay have fixed names, so a second feeder, or the next one after this was
killed, meets them; runners finish what was begun whether somebody waits or not. Comparisons are stored beside the
results that they are about, so going on does not repeat them. Nothing is written outside `replays/<id>/`.
"""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from console.library import Library, Standing, Version, check_whole
from core.drops import make_workflow
from core.errors import ObjectMissing, ObjectTooLarge, PreconditionFailed, UsageError
from core.jobs import Job, ObjectRef, State
from core.keys import job_folder
from core.ports import JobQuery, JobTable
from core.replays import REPLAYED, VersionPins, history, is_history, lacking, replay_id, replayed
from core.versions import version_id
from infra.queueing import add, enqueue
from infra.wiring import Stack
from runner.comparisons import FinishedResult, Inspections, ResultUnreadable
from runner.documents import ended_as
from runner.engine.contract import Json, OutputName
from runner.replays import REPLAY_FILE, Replay

SAME, DIFFERS, NOT_COMPARED = "same", "differs", "not compared"
COMPARISON = "comparison.json"
REPORT = "report.json"
_AT_A_TIME = 200  # rows that are asked for at once
_READ_FOR_ONE = 20  # rows of the table that are read for each job that a bounded replay may repeat
_LARGEST = 1 << 40
_COMPARISON_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Pair:
    """A job, and the one that repeats it."""

    job: Job
    again: Job


@dataclass(frozen=True, slots=True)
class JobDifference:
    """What became of one job. Holds no value of a cell."""

    job: Job
    again: Job | None
    result: str  # SAME, DIFFERS or NOT_COMPARED
    breaking: bool = False
    why: str = ""
    details: Mapping[str, Any] | None = None  # of runner.comparisons

    def document(self) -> Json:
        facts: Json = {
            "job_id": self.job.job_id,
            "tenant": self.job.tenant,
            "subject": self.job.subject,
            "version": version_id(self.job.workflow_version),
            "replayed_as": None if self.again is None else self.again.job_id,
            "before": ended_as(self.job),
            "after": None if self.again is None else ended_as(self.again),
            "result": self.result,
            "breaking": self.breaking,
        }
        return facts | ({"why": self.why} if self.why else {}) | ({"changes": self.details} if self.details else {})


@dataclass(frozen=True, slots=True)
class ReplayReport:
    replay: Replay
    jobs: tuple[JobDifference, ...]
    is_whole: bool = True

    def count(self, result: str) -> int:
        return sum(one.result == result for one in self.jobs)

    @property
    def differences(self) -> list[JobDifference]:
        return [one for one in self.jobs if one.result != SAME]

    def document(self) -> Json:
        return {
            "report": 1,
            "replay": self.replay.id,
            "workflow": self.replay.workflow,
            "version": self.replay.version,
            "jobs": len(self.jobs),
            "same": self.count(SAME),
            "differ": self.count(DIFFERS),
            "breaking": sum(one.breaking for one in self.jobs),
            "not_compared": self.count(NOT_COMPARED),
            "differences": [one.document() for one in self.differences],
        }


class Replayer:
    """One replay of a workflow's history with one of its versions."""

    def __init__(
        self, stack: Stack, standing: Standing, version: Version, *, tenant: str | None, since: float | None
    ) -> None:
        self._stack = stack
        check_whole(version)
        self._workflow = make_workflow(version.read, standing.workflow.info)
        name = replay_id(standing.key, standing.name, version.id, tenant, since)
        self.replay = Replay(
            id=name, workflow=standing.name, manifest=standing.key, version=version.id, tenant=tenant, since=since
        )
        self._pins: VersionPins = Library(stack.store).store_version(standing, version)
        self._auxiliary: dict[str, ObjectRef] = {
            key: info.ref for key in self._workflow.auxiliary_keys() if (info := stack.store.head(key)) is not None
        }
        self.lacking = lacking(self._workflow, self._auxiliary)
        with contextlib.suppress(PreconditionFailed):
            stack.store.put(f"{self.replay.folder}{REPLAY_FILE}", self.replay.body(), if_absent=True)

    def pairs(self, *, most: int | None = None) -> list[Pair]:
        """The jobs of the history, each with the one that repeats it, in the table or not.

        `most`: jobs of this workflow that are read for it; raises UsageError if there are more. Other workflows of its
        name and the jobs of replays, its own among them, do not count, unless very many have to be read.
        """
        own = None if self._workflow.shared else self._workflow.tenant
        query = JobQuery(
            workflow=self.replay.workflow, tenant=self.replay.tenant or own, states=REPLAYED,
            created_from=self.replay.since,
        )  # fmt: skip
        rows = _every(self._stack.table, query)
        if most is not None:
            read = list(islice(rows, _READ_FOR_ONE * most + 1))
            some = [job for job in read if is_history(job, self.replay.manifest)]
            if len(some) > most or len(read) > _READ_FOR_ONE * most:
                raise UsageError(f"there are more than {most} jobs; choose fewer days, or use `ade replay`")
            rows = iter(some)
        jobs = history(rows, self.replay.manifest)
        now = self._stack.clock.now()
        return [
            Pair(
                job,
                replayed(job, self._workflow, self._pins, replay=self.replay.id, auxiliary=self._auxiliary, now=now),
            )
            for job in jobs
        ]

    def feed(
        self, pairs: list[Pair], *, at_once: int, stopped: Callable[[], bool], seen: Callable[[int], None]
    ) -> bool:
        """Let the jobs run, so many at a time, until all have ended; False: stopped before. `seen`: how many have."""
        left = list(pairs)
        ended, running = 0, dict[str, Job]()
        while True:
            rows = self._stack.table.get_all(running.keys()) if running else {}
            over = [job_id for job_id in running if _is_over(rows.get(job_id))]
            ended += len(over)
            running = {job_id: rows[job_id] for job_id in running if job_id not in over}
            while left and len(running) < at_once:
                met = self._begin(left.pop(0).again)
                ended += _is_over(met)
                running |= {} if _is_over(met) else {met.job_id: met}
            seen(ended)
            if not left and not running:
                return True
            if stopped():
                return False
            if len(running) >= at_once or not left:
                self._stack.table.wait(1.0)

    def _begin(self, job: Job) -> Job:
        """The row of a job of the replay, added and sent if it was not there."""
        stack = self._stack
        row, _ = add(stack.table, stack.queue, stack.clock, job)
        if row.state is State.QUEUED and row.enqueued_at is None:
            row = enqueue(stack.table, stack.queue, stack.clock, row)
        return row

    def report(
        self,
        pairs: list[Pair],
        inspections: Inspections,
        scratch: Path,
        *,
        stopped: Callable[[], bool] = lambda: False,
    ) -> "ReplayReport":
        """What differs, by job; written to the replay's folder. Stopped before, it has what was compared until then."""
        found = list[JobDifference]()
        for at in range(0, len(pairs), _AT_A_TIME):
            some = pairs[at : at + _AT_A_TIME]
            rows = self._stack.table.get_all([pair.again.job_id for pair in some])
            for pair in some:
                if stopped():
                    return ReplayReport(self.replay, tuple(found), is_whole=False)
                found.append(self._compared(pair.job, rows.get(pair.again.job_id), inspections, scratch))
        report = ReplayReport(self.replay, tuple(found))
        body = json.dumps(report.document(), indent=2, ensure_ascii=False).encode()
        self._stack.store.put(f"{self.replay.folder}{REPORT}", body)
        return report

    def _compared(self, job: Job, again: Job | None, inspections: Inspections, scratch: Path) -> "JobDifference":
        if again is None or not again.ended or again.state not in REPLAYED:
            why = "it has not ended" if again is None or not again.ended else f"{again.state}: {again.reason}"
            return JobDifference(job, again, NOT_COMPARED, why=why)
        comparison = self._comparison(job, again, inspections, scratch)
        if comparison is not None:
            changes = [one for one in comparison["changes"] if isinstance(one, dict)]
            breaking = any(bool(one.get("breaking")) for one in changes)
            return JobDifference(job, again, SAME if comparison["same"] else DIFFERS, breaking, details=comparison)
        if ended_as(job) != ended_as(again):
            return JobDifference(job, again, DIFFERS, breaking=job.state is State.SUCCEEDED)
        if job.state is State.SUCCEEDED:
            return JobDifference(job, again, NOT_COMPARED, why="one of the results is gone or cannot be read")
        return JobDifference(job, again, SAME)

    def _comparison(self, job: Job, again: Job, inspections: Inspections, scratch: Path) -> Mapping[str, Any] | None:
        """The comparison of two results; None if one of them has no audit."""
        key = f"{job_folder(again)}{COMPARISON}"
        with contextlib.suppress(ObjectMissing, ObjectTooLarge, ValueError):
            stored = json.loads(self._stack.store.read(key, limit=_COMPARISON_BYTES))
            if isinstance(stored, dict) and stored.get("before_fence") == job.fence:
                return stored
        before, after = self._fetched(job, scratch / "before"), self._fetched(again, scratch / "after")
        if before.facts is None or after.facts is None:
            return None
        try:
            comparison = {**inspections.compare(before, after), "before_fence": job.fence}
        except ResultUnreadable:
            return None
        self._stack.store.put(key, json.dumps(comparison, ensure_ascii=False).encode())
        return comparison

    def _fetched(self, job: Job, folder: Path) -> FinishedResult:
        folder.mkdir(parents=True, exist_ok=True)
        for name in (OutputName.WORKBOOK, OutputName.ARTIFACT):
            (folder / name).unlink(missing_ok=True)
            with contextlib.suppress(ObjectMissing):
                self._stack.store.fetch(job_folder(job) + name, folder / name, limit=_LARGEST)
        return FinishedResult.in_folder(folder, ended_as(job))


def _is_over(job: Job | None) -> bool:
    """Whether nothing more will happen to a job; a row that is gone was removed by a person."""
    return job is None or job.state is State.REVIEW or (job.ended and not job.unpublished)


def _every(table: JobTable, query: JobQuery) -> Iterator[Job]:
    cursor: str | None = None
    while True:
        page = table.page(query, cursor=cursor)
        yield from page.jobs
        cursor = page.cursor
        if cursor is None:
            return
