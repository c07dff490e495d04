"""`ade retry JOB…`: run jobs again that ended without success, with their workflow as it is now."""

import argparse

from console.cli import wire
from console.cli.acts import act, add_jobs
from console.cli.output import Printer

arguments = add_jobs


def run(args: argparse.Namespace, out: Printer) -> int:
    with wire.opened() as stack:
        return act(args.jobs, wire.again(stack, "retry"), out=out)
