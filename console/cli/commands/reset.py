"""`ade reset JOB…`: run an ended job again from scratch; a good result stays until the next one is published."""

import argparse

from console.cli import wire
from console.cli.acts import act, add_jobs
from console.cli.output import Printer

arguments = add_jobs


def run(args: argparse.Namespace, out: Printer) -> int:
    with wire.opened() as stack:
        return act(args.jobs, wire.again(stack, "reset"), out=out)
