"""`ade actions`: who did what by the API, newest first."""

import argparse

from console.api.actions import ActionLog
from console.cli import wire
from console.cli.guard import Exit
from console.cli.output import Printer

_SHOWN = ("at", "by", "token", "act", "tenant")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tenant", metavar="T", help="only what concerns this tenant")
    parser.add_argument("--limit", metavar="N", type=int, default=50, help="at most so many (default: 50)")


def run(args: argparse.Namespace, out: Printer) -> int:
    with wire.opened() as stack:
        log = wire.make_log(stack.settings, level="error")
        found = ActionLog(stack.store, stack.clock, log).latest(max(0, args.limit), tenant=args.tenant)
    if out.as_json:
        out.emit(found)
    elif found:
        rows = []
        for entry in found:
            more = ", ".join(f"{name}={value}" for name, value in entry.items() if name not in _SHOWN)
            rows.append((*(str(entry.get(name) or "") for name in _SHOWN), more))
        out.table(("AT", "BY", "TOKEN", "ACT", "TENANT", "WHAT"), rows)
    else:
        out.note("nobody has done anything by the API yet")
    return Exit.OK
