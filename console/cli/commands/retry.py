"""`ade retry JOB…`: run jobs again that ended without success."""

import argparse

from console.cli import wire
from console.cli.acts import act
from console.cli.output import Printer


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("jobs", metavar="JOB", nargs="+")


def run(args: argparse.Namespace, out: Printer) -> int:
    with wire.opened() as stack:
        control = wire.make_control(stack)
        return act(args.jobs, control.retry, done=lambda job: f"{job.state}: {job.reason}", out=out)
