"""`ade quarantine TENANT [--end]`: accept nothing of a tenant and run nothing of it, or end that."""

import argparse
import contextlib

from console.cli import wire
from console.cli.acts import person
from console.cli.commands.drop import tenant_name
from console.cli.commands.jobs import every
from console.cli.guard import Exit
from console.cli.output import Printer
from console.job_facts import pause_shape, plural, when
from core.errors import IllegalTransition
from core.jobs import State
from core.ports import JobQuery
from infra.quarantine import begin_quarantine, end_quarantine
from infra.wiring import Stack


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "tenant", metavar="TENANT", type=tenant_name, nargs="?", help="without it: list who is in quarantine"
    )
    parser.add_argument("--end", action="store_true", help="let the tenant in again; the next sweep finds its files")


def run(args: argparse.Namespace, out: Printer) -> int:
    cancelled: list[str] = []
    with wire.opened() as stack:
        if args.tenant:
            if args.end:
                was = end_quarantine(stack.table, args.tenant)
                stack.queue.wake()
                out.note(f"tenant {args.tenant}: " + ("quarantine ended" if was else "was not in quarantine"))
            else:
                begin_quarantine(stack.table, stack.clock, args.tenant, person())
                cancelled = _stop(stack, args.tenant)
                out.note(f"tenant {args.tenant} is in quarantine; {plural(len(cancelled), 'running job')} cancelled")
        found = [pause for pause in stack.table.pauses() if pause.is_quarantine]
    if out.as_json:
        shown = [{name: value for name, value in pause_shape(p).items() if name != "workflow"} for p in found]
        out.emit({"quarantine": shown, "cancelled": cancelled})
    elif found:
        out.table(("IN QUARANTINE", "SINCE", "BY"), [(p.tenant or "", when(p.since), p.by) for p in found])
    else:
        out.note("nobody is in quarantine")
    return Exit.OK


def _stop(stack: Stack, tenant: str) -> list[str]:
    """Cancel what runs; `ade retry` runs it again when the quarantine has ended."""
    control, stopped = wire.make_control(stack), []
    for job in every(stack.table, JobQuery(tenant=tenant, states=frozenset({State.RUNNING}))):
        with contextlib.suppress(IllegalTransition):
            control.cancel(job.job_id)
            stopped.append(job.job_id)
    return stopped
