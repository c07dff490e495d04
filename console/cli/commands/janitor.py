"""`ade janitor run | run-once`: the chores, by schedule or once by hand."""

import argparse
import sys

from console.cli import wire
from console.cli.guard import Exit
from console.cli.output import Printer
from console.cli.signals import LAST_SECONDS, Signals
from console.desk.boxes import boxes
from handlers.intake import Intake
from handlers.sources.listening import ReportLog
from infra.logs import Log
from runner.assembly import Runner, assemble


def arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_subparsers(dest="what", required=True, metavar="run | run-once")
    what.add_parser("run", help="run until Ctrl-C; of several janitors one works at a time")
    what.add_parser("run-once", help="sweep, do what is due, collect leftovers, exit")


def run(args: argparse.Namespace, out: Printer) -> int:
    settings = wire.load_settings()
    log = wire.make_log(settings, stream=sys.stdout if out.as_json and args.what == "run" else None)
    with wire.opened(settings, log, role="janitor") as stack, boxes(settings, stack.run_dir) as sandbox:
        intake = Intake.over(stack)
        log_report = ReportLog(log)
        runner = assemble(stack, sandbox, log, role="janitor", sweep=lambda: log_report(intake.sweep()))
        try:
            if args.what == "run-once":
                return _once(runner, out)
            stack.telemetry.watch(runner.janitor.gauges)
            with wire.metrics_shown(stack, runner.presence.owner):
                return _on(runner, log, settings.drain_seconds)
        finally:
            runner.close()


def _once(runner: Runner, out: Printer) -> int:
    done = runner.janitor.run_once()
    if out.as_json:
        out.emit(dict(done))
    else:
        out.line(", ".join(f"{name}: {n}" for name, n in sorted(done.items())) or "nothing to do")
    return Exit.FAILED if done.get("chores_failed") else Exit.OK


def _on(runner: Runner, log: Log, drain_seconds: float) -> int:
    scheduler = runner.janitor.scheduler()
    with Signals() as signals:
        scheduler.start()
        log.info("janitor_started", owner=runner.presence.owner)
        signals.wait()
        signals.end_within(drain_seconds + LAST_SECONDS)
        scheduler.shutdown(wait=True)
    return Exit.OK
