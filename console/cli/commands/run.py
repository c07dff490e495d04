"""`ade run [--drain] [--processes N]`: one runner process, or several under a supervisor."""

import argparse
import sys
from functools import partial

from console.cli import guard, wire
from console.cli.guard import Exit
from console.cli.output import Printer
from console.cli.service import log_chores, service
from console.cli.signals import LAST_SECONDS, Signals
from core.errors import SettingsError
from infra.wiring import load_adapters
from runner.drain import Drain


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--drain", action="store_true", help="exit when no work is left")
    parser.add_argument(
        "--processes", type=_positive, metavar="N", help="so many runners; one that dies is replaced at once"
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def run(args: argparse.Namespace, out: Printer) -> int:
    if args.processes is None:
        return run_one(args, out)
    from console.cli.supervisor import Supervisor  # noqa: PLC0415 - one runner needs none

    settings = wire.load_settings()
    if settings.metrics_listen and args.processes > 1:
        raise SettingsError(
            "ADE_METRICS_LISTEN is one port, and each process needs its own: unset it, or run one process"
        )
    load_adapters(settings)
    log = wire.make_log(settings, stream=sys.stdout if out.as_json else None)
    return Supervisor(partial(guard.run_work, run_one, args), log, processes=args.processes).run()


def run_one(args: argparse.Namespace, out: Printer) -> int:
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
