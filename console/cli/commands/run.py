"""`ade run [--drain]`: one runner process."""

import argparse
import sys

from console.cli import wire
from console.cli.guard import Exit
from console.cli.output import Printer
from console.cli.service import Signals, log_chores, service
from core.chores import LONGEST_DEFERRAL, Timings, resting, wake_at
from core.jobs import Job, State
from core.ports import JobQuery, JobTable, Pause
from infra.logs import Log
from infra.wiring import Stack
from runner.assembly import Runner

_BUSY = frozenset({State.RUNNING, State.PUBLISHING})
_SOON_SECONDS = 10.0
_BATCH = 200


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--drain", action="store_true", help="end when nothing is left to do now")


def run(args: argparse.Namespace, out: Printer) -> int:
    settings = wire.load_settings()
    log = wire.make_log(settings, stream=sys.stdout if out.as_json else None)
    with wire.opened(settings, log) as stack, Signals() as signals:
        with service(stack, log, role="runner", everything=False) as parts:
            drain = Drain(stack, parts.runner, log) if args.drain else None
            parts.start(drain=drain.done if drain else None, on_end=signals.wake)
            log.info("runner_started", owner=parts.runner.presence.owner, slots=stack.settings.max_concurrency)
            signals.wait()
        if drain is not None and drain.undone:
            log.error("drain_incomplete", jobs=sorted(drain.undone))
        log.info("runner_ended")
    if parts.failed is not None:
        return Exit.INTERNAL
    if drain is None:
        return Exit.OK
    # A drain that was told to end while nobody could know whether anything was left has not drained.
    return Exit.UNAVAILABLE if drain.undone or parts.runner.worker.surroundings.failed is not None else Exit.OK


class Drain:
    """Whether neither a message nor a chore is left that this runner could do something about now.

    Jobs that are SCHEDULED for later, held by a pause or newer than this program are not waited for. A chore that could
    not be done is waited for until it was tried once more; if it fails again, its job is `undone`.
    """

    def __init__(self, stack: Stack, runner: Runner, log: Log) -> None:
        self._stack = stack
        self._runner = runner
        self._log = log
        self._put_off: dict[str, float] = {}  # jobs whose chore failed, and until when it was put off then
        self.undone: set[str] = set()

    def done(self) -> bool:
        log_chores(self._log, self._runner)
        if self._chores_left():
            return False
        table, left_alone = self._stack.table, self._runner.worker.left_alone | self.undone
        pauses = table.pauses()
        if pauses or left_alone:
            # The message of a job that is paused or left alone comes back again and again: only jobs tell what is left.
            return not _workable(table, pauses, left_alone)
        stats = self._stack.queue.stats()
        return not (stats.ready or stats.in_flight or stats.delayed)

    def _chores_left(self) -> bool:
        """Whether a chore is due soon, was put off, or completes a publication; notes those that failed twice."""
        now, timings = self._stack.clock.now(), self._stack.settings.timings
        before = now + max(LONGEST_DEFERRAL, timings.lease_seconds)
        limit, found = _BATCH, self._stack.table.attention(before, limit=_BATCH)
        while len(found) == limit:
            limit *= 2
            found = self._stack.table.attention(before, limit=limit)
        left = [job for job in found if _awaited(job, now, timings)]
        again = {job.job_id: job.deferred_until for job in left if job.deferred_until is not None}
        self.undone = {job_id for job_id, until in again.items() if until > self._put_off.setdefault(job_id, until)}
        return any(job.job_id not in self.undone for job in left)


def _awaited(job: Job, now: float, timings: Timings) -> bool:
    if resting(job):
        return False
    if job.state is State.PUBLISHING or job.unpublished or (job.deferred_until or 0.0) > now:
        return True
    return job.state is not State.SCHEDULED and (wake_at(job, timings) or now) <= now + _SOON_SECONDS


def _workable(table: JobTable, pauses: tuple[Pause, ...], left_alone: set[str]) -> bool:
    """Whether a job is left that no pause holds, and that was not left alone."""
    held = {(p.tenant, p.workflow) for p in pauses}
    states = _BUSY if any(p.tenant is None for p in pauses) else _BUSY | {State.QUEUED}
    cursor: str | None = None
    while True:
        page = table.page(JobQuery(states=states), limit=200, cursor=cursor)
        for job in page.jobs:
            if job.job_id in left_alone:
                continue
            if job.state in _BUSY or not {(job.tenant, None), (job.tenant, job.workflow)} & held:
                return True
        cursor = page.cursor
        if cursor is None:
            return False
