"""`ade pause`: stop starting jobs: all, of a tenant or of a workflow. Running jobs go on."""

import argparse

from console.cli import wire
from console.cli.acts import add_scope, person, read_scope, scope_words
from console.cli.guard import Exit
from console.cli.output import Printer
from console.job_facts import pause_shape, when
from core.ports import Pause


def arguments(parser: argparse.ArgumentParser) -> None:
    add_scope(parser)


def run(args: argparse.Namespace, out: Printer) -> int:
    with wire.opened() as stack:
        if args.scope:
            tenant, workflow = read_scope(args.scope)
            stack.table.pause(Pause(tenant=tenant, workflow=workflow, since=stack.clock.now(), by=person()))
            out.note(f"paused: {scope_words(tenant, workflow)}; running jobs go on")
        pauses = stack.table.pauses()
    if out.as_json:
        out.emit([pause_shape(p) for p in pauses])
    elif pauses:
        rows = [(scope_words(p.tenant, p.workflow), when(p.since), p.by) for p in pauses]
        out.table(("PAUSED", "SINCE", "BY"), rows)
    else:
        out.note("nothing is paused")
    return Exit.OK
