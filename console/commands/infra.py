"""`ade infra plan | init`: bucket, queues, table and notification that the ADE_*_URL settings name."""

import argparse
from dataclasses import asdict

from console import wire
from console.exits import Exit
from console.output import Output
from core.errors import UsageError
from infra.provision import provision


def arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_subparsers(dest="what", required=True, metavar="plan | init")
    what.add_parser("plan", help="say what is there and what would be made; changes nothing")
    what.add_parser("init", help="make what is missing; again: nothing changes")


def run(args: argparse.Namespace, out: Output) -> int:
    settings = wire.load_settings()
    if not (settings.store_url or settings.table_url or settings.queue_url or settings.events_url):
        raise UsageError("nothing to make: the embedded mode needs no infra; set ADE_STORE_URL and the like first")
    steps = provision(settings, apply=args.what == "init")
    if out.as_json:
        out.emit([asdict(step) for step in steps])
        return Exit.OK
    words = {"keep": "there", "create": "made" if args.what == "init" else "to make", "unsupported": "not here"}
    for step in steps:
        detail = f"  ({step.detail})" if step.detail else ""
        out.line(f"{words[step.action]:8} {step.kind:22} {step.name}{detail}")
    return Exit.OK
