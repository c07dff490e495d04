"""`ade remove JOB…`: delete a job's row, its outputs and its input."""

import argparse
import contextlib

from console.cli import wire
from console.cli.acts import act, add_jobs, confirmed
from console.cli.output import Printer
from console.job_facts import plural
from core.errors import RowUnreadable, UsageError
from infra.wiring import Stack


def arguments(parser: argparse.ArgumentParser) -> None:
    add_jobs(parser)
    parser.add_argument(
        "--keep-input",
        action="store_true",
        help="leave the input in the inbox; the next sweep creates its job again",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask before an input is deleted")


def run(args: argparse.Namespace, out: Printer) -> int:
    with wire.opened() as stack:
        control = wire.make_control(stack)
        if not args.keep_input and not args.yes:
            _ask(args.jobs, stack)
        return act(
            args.jobs,
            lambda job_id: control.remove(job_id, keep_input=args.keep_input),
            done=lambda _: "removed",
            out=out,
        )


def _ask(job_ids: list[str], stack: Stack) -> None:
    """Name the files that will be gone, and wait for a yes."""
    found = []
    for job_id in job_ids:
        with contextlib.suppress(RowUnreadable):
            found.append(stack.table.get(job_id))
    keys = sorted({item.ref.key for job in found if job is not None for item in job.inputs if item.role == "primary"})
    if not keys:
        return
    shown = ", ".join(keys[:3]) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
    if not confirmed(f"Delete {plural(len(job_ids), 'job')}, the outputs, and {shown}?", "yes"):
        raise UsageError("nothing was removed; --yes does not ask, --keep-input leaves the files in the inbox")
