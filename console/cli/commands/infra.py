"""`ade infra init`: bucket, queues, table, notification, database schema and roles that the ADE_*_URL settings name."""

import argparse
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from console.cli import wire
from console.cli.guard import Exit
from console.cli.output import Printer
from core.errors import StoreUnavailable, UsageError
from core.settings import Settings
from infra.addresses import is_postgres

if TYPE_CHECKING:
    from infra.aws.provision import Step

_PAUSE_SECONDS = 1.0

_EXAMPLES = """\
examples:
  ADE_STORE_URL=s3://drops?endpoint=http://127.0.0.1:9000 ade infra init --dry-run
  ADE_STORE_URL=s3://drops ADE_EVENTS_URL=sqs://ade-events ade infra init
  ADE_TABLE_URL=postgresql://owner@db/ade ade infra init

A stack of the CloudFormation template needs none of this (ade deploy plan).
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_subparsers(dest="what", required=True, metavar="init")
    init = what.add_parser(
        "init",
        help="create what is missing on the endpoints; safe to repeat",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    init.add_argument(
        "--dry-run", action="store_true", help="list what exists and what would be created, without changes"
    )
    init.add_argument(
        "--wait",
        metavar="SECONDS",
        type=float,
        default=0.0,
        help="try again for so long while a service does not answer",
    )


def run(args: argparse.Namespace, out: Printer) -> int:
    settings = wire.load_settings()
    if not (settings.store_url or settings.table_url or settings.queue_url or settings.events_url):
        raise UsageError("nothing to create: the embedded mode needs no infra; set ADE_STORE_URL and others first")
    steps = _init(settings, apply=not args.dry_run, until=time.monotonic() + args.wait)
    ended = Exit.FAILED if any(step.action == "fails" for step in steps) else Exit.OK
    if out.as_json:
        out.emit([asdict(step) for step in steps])
        return ended
    words = {"keep": "exists", "create": "missing" if args.dry_run else "created"}
    for step in steps:
        detail = f"  ({step.detail})" if step.detail else ""
        out.line(f"{words.get(step.action, step.action):11} {step.kind:22} {step.name}{detail}")
    return ended


def _init(settings: Settings, *, apply: bool, until: float) -> "list[Step]":
    """Services that start at the same time as this command may need a moment."""
    from infra.aws.provision import provision, verify  # noqa: PLC0415 - boto3 is slow to import

    while True:
        try:
            steps = [*provision(settings, apply=apply), *_init_databases(settings, apply=apply)]
            return [*steps, *verify(settings)] if apply else steps
        except StoreUnavailable:
            if time.monotonic() + _PAUSE_SECONDS > until:
                raise
            time.sleep(_PAUSE_SECONDS)


def _init_databases(settings: Settings, *, apply: bool) -> "list[Step]":
    if not (is_postgres(settings.table_url) or is_postgres(settings.queue_url)):
        return []
    from infra.postgres.schema import init_databases  # noqa: PLC0415 - psycopg is not installed everywhere

    return list(init_databases(settings, apply=apply))
