"""`ade resume`: end a pause."""

import argparse

from console.cli import wire
from console.cli.acts import add_scope, read_scope, scope_words
from console.cli.guard import Exit
from console.cli.output import Printer
from console.job_facts import pause_shape
from core.errors import UsageError
from infra.quarantine import in_quarantine


def arguments(parser: argparse.ArgumentParser) -> None:
    add_scope(parser)


def run(args: argparse.Namespace, out: Printer) -> int:
    if not args.scope:
        raise UsageError("name what to resume: `all`, `tenant T` or `workflow T W`; `ade pause` lists what is paused")
    tenant, workflow = read_scope(args.scope)
    with wire.opened() as stack:
        if tenant is not None and in_quarantine(stack.table, tenant):
            raise UsageError(f"tenant {tenant} is in quarantine; `ade quarantine {tenant} --end` ends it")
        was_paused = stack.table.resume(tenant, workflow)
        stack.queue.wake()
        left = stack.table.pauses()
    result = "resumed" if was_paused else "was not paused"
    out.note(f"{scope_words(tenant, workflow)}: {result}" + (f"; {len(left)} pauses left" if left else ""))
    if out.as_json:
        out.emit({"resumed": was_paused, "pauses": [pause_shape(p) for p in left]})
    return Exit.OK
