"""`ade retry-failed`: retry every job that failed or ran out of time."""

import argparse

from console.cli import wire
from console.cli.acts import act
from console.cli.commands.jobs import every, row
from console.cli.guard import Exit
from console.cli.output import Printer
from console.job_facts import job_shape, plural
from core.jobs import State
from core.ports import JobQuery

_STATES = frozenset({State.FAILED, State.TIMED_OUT})


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tenant", metavar="T", help="only jobs of this tenant")
    parser.add_argument("--workflow", metavar="W", help="only jobs of this workflow")
    parser.add_argument("--dry-run", action="store_true", help="only list what would be retried")


def run(args: argparse.Namespace, out: Printer) -> int:
    with wire.opened() as stack:
        query = JobQuery(states=_STATES, tenant=args.tenant, workflow=args.workflow)
        jobs = list(every(stack.table, query))
        if not args.dry_run:
            retry = wire.again(stack, "retry")
            code = act([j.job_id for j in jobs], retry, done=lambda job: f"{job.state}: {job.reason}", out=out)
            out.note(f"{plural(len(jobs), 'job')} retried" if jobs else "no job to retry")
            return code
        now = stack.clock.now()
    if out.as_json:
        out.emit([job_shape(job) for job in jobs])
    elif jobs:
        out.table(("JOB", "STATE", "TENANT", "WORKFLOW", "SUBJECT", "AGE", "NOTE"), [row(j, now) for j in jobs])
    out.note(f"{plural(len(jobs), 'job')} would be retried")
    return Exit.OK
