"""`ade run [--drain]`: one runner process."""

import argparse
import sys

from console.cli import wire
from console.cli.guard import Exit
from console.cli.output import Printer
from console.cli.service import log_chores, service
from console.cli.signals import LAST_SECONDS, Signals
from runner.drain import Drain


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--drain", action="store_true", help="exit when no work is left")


def run(args: argparse.Namespace, out: Printer) -> int:
    settings = wire.load_settings()
    log = wire.make_log(settings, stream=sys.stdout if out.as_json else None)
    with wire.opened(settings, log, role="runner") as stack, Signals() as signals:
        with service(stack, log, role="runner", everything=False) as parts:
            runner = parts.runner
            drain = Drain(stack, runner.worker, lambda: log_chores(log, runner, notices=True)) if args.drain else None
            parts.start(drain=drain.done if drain else None, on_end=signals.wake)
            log.info("runner_started", owner=runner.presence.owner, slots=stack.settings.max_concurrency)
            signals.wait()
            signals.end_within(stack.settings.drain_seconds + LAST_SECONDS)
        if drain is not None and drain.undone:
            log.error("drain_incomplete", jobs=sorted(drain.undone))
        log.info("runner_ended")
    if parts.failed is not None:
        return Exit.INTERNAL
    if drain is None:
        return Exit.OK
    # A drain that was stopped during an outage cannot know whether work is left.
    return Exit.UNAVAILABLE if drain.undone or runner.worker.surroundings.failed is not None else Exit.OK
