"""`ade cancel JOB…`: stop jobs that have not ended."""

import argparse

from console.cli import wire
from console.cli.acts import act, add_jobs
from console.cli.output import Printer
from core.jobs import Job

arguments = add_jobs


def run(args: argparse.Namespace, out: Printer) -> int:
    with wire.opened() as stack:
        control = wire.make_control(stack)
        return act(args.jobs, control.cancel, done=_result, out=out)


def _result(job: Job) -> str:
    """A running job is only CANCELLED once its box is known to be dead."""
    return str(job.state) if job.ended else f"{job.state}: cancel requested; its runner will confirm it"
