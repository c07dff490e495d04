"""`ade run [--drain]`: one runner process."""

import argparse
import sys

from console.cli import wire
from console.cli.guard import Exit
from console.cli.output import Printer
from console.cli.service import Service, Signals, log_chores, service
from core.chores import resting
from core.jobs import State
from core.ports import JobQuery
from infra.logs import Log
from infra.wiring import Stack

_BUSY = (State.RUNNING, State.PUBLISHING)
_SOON_SECONDS = 10.0


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--drain", action="store_true", help="end when nothing is left to do now")


def run(args: argparse.Namespace, out: Printer) -> int:
    settings = wire.load_settings()
    log = wire.make_log(settings, stream=sys.stdout if out.as_json else None)
    with wire.opened(settings, log) as stack, Signals() as signals:
        with service(stack, log, role="runner", everything=False) as parts:
            drain = (lambda: nothing_left(stack, parts, log)) if args.drain else None
            parts.start(drain=drain, on_end=signals.wake)
            log.info("runner_started", owner=parts.runner.presence.owner, slots=stack.settings.max_concurrency)
            signals.wait()
        log.info("runner_ended")
    if parts.failed is not None:
        return Exit.INTERNAL
    # A drain that was told to end while nobody could know whether anything was left has not drained.
    return Exit.UNAVAILABLE if args.drain and parts.runner.worker.surroundings.failed is not None else Exit.OK


def nothing_left(stack: Stack, parts: Service, log: Log) -> bool:
    """Whether neither a message nor a chore is left that this runner could do something about now.

    Jobs that are SCHEDULED for later, held by a pause or newer than this program are not waited for.
    """
    log_chores(log, parts.runner)
    pauses = stack.table.pauses()
    if pauses or parts.runner.worker.left_alone:
        # The message of a job that is paused or left alone comes back again and again: only jobs tell if there is work.
        if any(p.tenant is None for p in pauses):
            return not any(stack.table.counts().get(s) for s in _BUSY)
        return not _workable(stack, parts.runner.worker.left_alone)
    stats = stack.queue.stats()
    if stats.ready or stats.in_flight or stats.delayed:
        return False
    soon = stack.table.attention(stack.clock.now() + _SOON_SECONDS, limit=100)
    return all(job.state is State.SCHEDULED or resting(job) for job in soon)


def _workable(stack: Stack, left_alone: set[str]) -> bool:
    """Whether a job is left that no pause holds, and that was not left to a newer program."""
    held = {(p.tenant, p.workflow) for p in stack.table.pauses()}
    cursor: str | None = None
    while True:
        query = JobQuery(states=frozenset({State.QUEUED, *_BUSY}))
        page = stack.table.page(query, limit=200, cursor=cursor)
        for job in page.jobs:
            if job.job_id in left_alone:
                continue
            if job.state in _BUSY or not {(job.tenant, None), (job.tenant, job.workflow)} & held:
                return True
        cursor = page.cursor
        if cursor is None:
            return False
