"""`ade erase TENANT`: delete everything of a tenant, and prove it."""

import argparse
import sys

from console.api.access import Principal, Scope
from console.api.actions import ActionLog
from console.cli import wire
from console.cli.acts import confirmed, person
from console.cli.commands.drop import tenant_name
from console.cli.guard import Exit
from console.cli.output import Printer
from console.erasure import ErasureReport, erase_tenant, is_known
from core.errors import UsageError

_WAIT_SECONDS = 120.0


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tenant", metavar="TENANT", type=tenant_name)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--wait", metavar="SECONDS", type=float, default=_WAIT_SECONDS, help="for jobs that run (default: 120)"
    )


def run(args: argparse.Namespace, out: Printer) -> int:
    what = f"everything of tenant {args.tenant}: inputs, results, jobs, workflows, memories, tokens, loaded rows"
    if not args.yes and not confirmed(f"Delete {what}? This cannot be undone.", args.tenant):
        raise UsageError("nothing was erased; type the tenant's name to confirm, or use --yes")
    with wire.opened() as stack:
        if not is_known(stack, args.tenant):
            raise UsageError(f"there is nothing of a tenant {args.tenant}; `ade jobs` lists tenants with jobs")
        report = erase_tenant(
            stack, wire.make_control(stack), args.tenant, by=person(), wait_seconds=args.wait, note=out.note
        )
        log = wire.make_log(stack.settings, level="error")
        who = Principal("command", person(), Scope.OPERATOR)
        ActionLog(stack.store, stack.clock, log).note(who, "erase", tenant=args.tenant, found=len(report.found))
    _print(report, out)
    return Exit.FAILED if report.found else Exit.OK


def _print(report: ErasureReport, out: Printer) -> None:
    if out.as_json:
        shown = {"tenant": report.tenant, "erased": report.erased, "searched": report.searched, "found": report.found}
        out.emit(shown)
        return
    out.table(("ERASED", "COUNT"), [(name, f"{count:,}") for name, count in report.erased.items()])
    amounts = ", ".join(f"{count:,} {name}" for name, count in report.searched.items())
    out.line(f"searched {amounts}: " + (f"{len(report.found)} places left" if report.found else "nothing is left"))
    for place_left in report.found[:20]:
        out.note(f"left: {place_left}")
    out.note(f"tenant {report.tenant} stays in quarantine; `ade quarantine {report.tenant} --end` lets it in again")
    sys.stdout.flush()
