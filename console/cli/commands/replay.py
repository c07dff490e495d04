"""`ade replay WORKFLOW`: history once more with another version, in a place of its own, and what would differ."""

import argparse
import os
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from console.cli import wire
from console.cli.guard import Exit
from console.cli.output import Printer, Progress
from console.cli.signals import Signals
from console.desk.boxes import boxes
from console.desk.differences import summary
from console.library import DRAFTED, LIVE, Library
from console.replays import DIFFERS, NOT_COMPARED, REPORT, SAME, Pair, Replayer, ReplayReport
from core.errors import UsageError
from core.manifests import Limits
from core.settings import Settings
from handlers.intake import Intake
from infra.wiring import Stack
from runner.comparisons import Inspections
from runner.documents import ended_as
from runner.staging import box_limits

EPILOG = """\
examples:
  ade replay members                              the draft, over all that is in the table
  ade replay members --version 4833f372 --tenant acme --since 2026-11-01
  ade replay members --republish                  after `ade workflow promote members`

Killed in the middle, the same command goes on. Runners have to be up (`ade up`, `ade run`).
Exit code 0: nothing differs; 1: something does; 3: not all jobs ended in time.
"""
_LINES = 20


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="WORKFLOW")
    parser.add_argument("--version", metavar="NEW", default=DRAFTED, help="an id, `live` or `draft` (default)")
    parser.add_argument("--tenant", metavar="T", help="only the jobs of a tenant")
    parser.add_argument("--own", action="store_true", help="the tenant's own workflow, not the shared one")
    parser.add_argument("--since", metavar="TIME", type=_time, help="only jobs that were created since then, ISO 8601")
    parser.add_argument("--at-once", metavar="N", type=int, default=2, help="jobs of the replay at a time (default: 2)")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=float, help="wait no longer (exit 3); the next call goes on"
    )
    parser.add_argument(
        "--republish", action="store_true", help="run again, with the live version, the jobs whose results differ"
    )
    parser.epilog = EPILOG


def run(args: argparse.Namespace, out: Printer) -> int:
    if args.at_once < 1:
        raise UsageError("--at-once is at least 1")
    if args.own and args.tenant is None:
        raise UsageError("--own needs --tenant")
    with wire.opened() as stack, Signals() as signals:
        library = Library(stack.store)
        standing = library.find(args.name, args.tenant if args.own else None)
        version = library.load(standing, LIVE if args.republish else args.version)
        replayer = Replayer(stack, standing, version, tenant=args.tenant, since=args.since)
        if replayer.lacking:
            raise UsageError(f"version {version.id} needs {', '.join(replayer.lacking)}; put it into the bucket")
        pairs = replayer.pairs()
        if not pairs:
            out.note("no ended job of this workflow fits: there is nothing to compare")
        elif not wire.runners(stack):
            out.note("no runner is alive on this machine: the jobs wait until `ade up` or `ade run` is started")
        progress, until = Progress(), None if args.timeout is None else stack.clock.steady() + args.timeout
        done = replayer.feed(
            pairs,
            at_once=args.at_once,
            stopped=lambda: bool(signals.asked) or (until is not None and stack.clock.steady() >= until),
            seen=lambda ended: progress.show(f"replay {replayer.replay.id}: {ended} of {len(pairs)} jobs ended"),
        )
        progress.clear()
        if not done:
            out.note(f"ade: replay {replayer.replay.id} goes on with the same command")
            return Exit.TIMED_OUT
        report = _report(replayer, pairs)
        again = _republish(stack, report) if args.republish else []
    if out.as_json:
        out.emit({**report.document(), **({"republished": again} if args.republish else {})})
    else:
        _print(report, again, out)
    return Exit.FAILED if report.differences else Exit.OK


def _report(replayer: Replayer, pairs: list[Pair]) -> ReplayReport:
    settings = Settings.from_env(os.environ)
    with (
        tempfile.TemporaryDirectory(prefix="ade-replay-") as scratch,
        # No rules run: a box that reads needs no more of this machine than it gives.
        boxes(replace(settings, sandbox_min_level="none"), Path(scratch, "run")) as sandbox,
    ):
        limits = box_limits(Limits(), settings)
        inspections = Inspections(sandbox.sandbox, limits, Path(scratch, "inspections"))
        return replayer.report(pairs, inspections, Path(scratch))


def _republish(stack: Stack, report: ReplayReport) -> list[str]:
    """Run the inputs of results that differ again, with the live version; returns the new jobs."""
    intake = Intake.over(stack)
    found = [intake.successor(one.job) for one in report.differences if one.result == DIFFERS]
    return [job.job_id for job in found if job is not None]


def _print(report: ReplayReport, again: list[str], out: Printer) -> None:
    counts = f"{report.count(SAME)} the same, {report.count(DIFFERS)} differ, {report.count(NOT_COMPARED)} not compared"
    breaking = sum(one.breaking for one in report.jobs)
    replay = report.replay
    out.line(f"{replay.workflow} {replay.version}: {len(report.jobs)} jobs: {counts}; {breaking} breaking")
    for one in report.differences[:_LINES]:
        label = out.paint("breaking", "red") if one.breaking else one.result
        words = [text for text, _ in summary(one.details)] if one.details is not None else [one.why]
        before, after = ended_as(one.job), ended_as(one.again) if one.again is not None else ""
        status = f"{before} → {after}" if after and before != after else ""
        out.line(f"  {one.job.tenant}/{one.job.subject}: {label}: {', '.join(filter(None, [status, *words]))}")
    if len(report.differences) > _LINES:
        out.line(f"  … and {len(report.differences) - _LINES} more")
    out.note(f"report: {replay.folder}{REPORT}; `ade diff JOB REPLAYED_AS` shows the cells")
    for job_id in again:
        out.line(f"  published again as {job_id}")


def _time(text: str) -> float:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an ISO 8601 time such as 2026-01-31") from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
