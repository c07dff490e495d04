"""`ade sweep`: look through the inbox once and record what is there."""

import argparse

from console import wire
from console.exits import Exit
from console.output import Output
from handlers.intake import Intake, Report


def arguments(_parser: argparse.ArgumentParser) -> None:
    pass


def run(_args: argparse.Namespace, out: Output) -> int:
    with wire.opened() as stack:
        report = Intake.over(stack).sweep()
    if out.as_json:
        out.emit({"objects": report.objects, **report_dict(report)})
    else:
        told = report_dict(report)
        out.line(
            f"{report.objects} objects in the inbox: {len(told['created'])} jobs new, {len(told['queued'])} queued, "
            f"{len(told['superseded'])} superseded, {len(told['met'])} known"
        )
        for job_id in told["created"]:
            out.line(f"  new: {job_id}")
        tell_refusals(report, out)
    return Exit.OK


def report_dict(report: Report) -> dict[str, list[str]]:
    """The documented shape of a look at the bucket."""
    done = report.recorded
    return {
        "created": [j.job_id for j in done.created],
        "queued": [j.job_id for j in done.queued],
        "superseded": [j.job_id for j in done.superseded],
        "met": [j.job_id for j in done.met],
        "rejected": report.rejected,
        "refused": report.refused,
        "failed": report.failed,
    }


def tell_refusals(report: Report, out: Output) -> None:
    for key in report.rejected:
        out.note(f"manifest {key} does not validate; its problems stand in rejected.json")
    for problem in report.refused:
        out.note(f"refused: {problem}")
    for problem in report.failed:
        out.note(f"set aside: {problem}")
