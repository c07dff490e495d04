"""`ade remove JOB…`: delete a job's row, its outputs and its input."""

import argparse

from console.cli import wire
from console.cli.acts import act, add_jobs
from console.cli.output import Printer


def arguments(parser: argparse.ArgumentParser) -> None:
    add_jobs(parser)
    parser.add_argument(
        "--keep-input",
        action="store_true",
        help="leave the input in the inbox; the next sweep creates its job again",
    )


def run(args: argparse.Namespace, out: Printer) -> int:
    with wire.opened() as stack:
        control = wire.make_control(stack)
        return act(
            args.jobs,
            lambda job_id: control.remove(job_id, keep_input=args.keep_input),
            done=lambda _: "removed",
            out=out,
        )
