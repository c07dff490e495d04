"""`ade resume`: take a pause back."""

import argparse

from console.cli import wire
from console.cli.acts import add_scope, pause_shape, read_scope, scope_words
from console.cli.guard import Exit
from console.cli.output import Printer
from core.errors import UsageError


def arguments(parser: argparse.ArgumentParser) -> None:
    add_scope(parser)


def run(args: argparse.Namespace, out: Printer) -> int:
    if not args.scope:
        raise UsageError("say what to resume: `all`, `tenant T` or `workflow T W`; `ade pause` lists what is paused")
    tenant, workflow = read_scope(args.scope)
    with wire.opened() as stack:
        there = stack.table.resume(tenant, workflow)
        stack.queue.wake()
        left = stack.table.pauses()
    said = "resumed" if there else "was not paused"
    out.note(f"{scope_words(tenant, workflow)}: {said}" + (f"; {len(left)} pauses stay" if left else ""))
    if out.as_json:
        out.emit({"resumed": there, "pauses": [pause_shape(p) for p in left]})
    return Exit.OK
