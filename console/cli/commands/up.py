"""`ade up`: watch, runners and janitor in one process; a live view on a terminal, JSON lines elsewhere."""

import argparse
import contextlib
import sys

from console.cli import wire
from console.cli.console_process import console_beside
from console.cli.guard import Exit
from console.cli.live import LiveJobs
from console.cli.output import Printer
from console.cli.service import service
from console.cli.signals import LAST_SECONDS, Signals
from infra.logs import Log
from infra.wiring import Stack


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--local-cloud",
        action="store_true",
        help="use a real S3 store and local SQS and DynamoDB, started on 127.0.0.1 (docs/guides/cloud.md)",
    )


def run(args: argparse.Namespace, out: Printer) -> int:
    with contextlib.ExitStack() as parts:
        if not args.local_cloud:
            settings = wire.load_settings()
        else:
            from console.cli.use_local_cloud import local_cloud  # noqa: PLC0415 - boto3 is slow to import

            settings = parts.enter_context(local_cloud(out.note))
        log = None if out.terminal else wire.make_log(settings, stream=sys.stdout)
        stack = parts.enter_context(wire.opened(settings, log, role="up"))
        signals = parts.enter_context(Signals())
        return _watched(stack, signals) if log is None else _printed(stack, log, signals)


def _printed(stack: Stack, log: Log, signals: Signals) -> int:
    """Without a terminal: events as JSON lines on standard output."""
    with console_beside(stack.settings, log) as console, service(stack, log, role="up", everything=True) as parts:
        parts.start(on_end=signals.wake)
        place = str(stack.settings.storage_data_dir.absolute())
        log.info("up", data_dir=place, owner=parts.runner.presence.owner, console=console or None)
        signals.wait()
        signals.end_within(stack.settings.drain_seconds + LAST_SECONDS)
        log.info("draining", grace_seconds=stack.settings.drain_seconds)
    log.info("down")
    return Exit.INTERNAL if parts.failed is not None else Exit.OK


def _watched(stack: Stack, signals: Signals) -> int:
    with LiveJobs(stack) as view:
        log = wire.make_log(stack.settings, stream=view.stream, level="warning")
        beside = console_beside(stack.settings, log, level="warning")
        with beside as console, service(stack, log, role="up", everything=True) as parts:
            view.console = console
            parts.start(on_end=signals.wake)
            signals.wait()
            signals.end_within(stack.settings.drain_seconds + LAST_SECONDS)
            view.show("draining: running jobs may end; Ctrl-C again ends at once")
    return Exit.INTERNAL if parts.failed is not None else Exit.OK
