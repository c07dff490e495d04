"""`ade sweep`: scan the inbox once and record its drops."""

import argparse

from console.cli import wire
from console.cli.guard import Exit
from console.cli.output import Printer
from handlers.intake import Intake
from handlers.planning import Report, report_dict


def arguments(_parser: argparse.ArgumentParser) -> None:
    pass


def run(_args: argparse.Namespace, out: Printer) -> int:
    with wire.opened() as stack:
        report = Intake.over(stack).sweep()
    if out.as_json:
        out.emit({"objects": report.objects, **report_dict(report)})
    else:
        found = report_dict(report)
        out.line(
            f"{report.objects} objects in the inbox: {len(found['created'])} jobs new, {len(found['queued'])} queued, "
            f"{len(found['superseded'])} superseded, {len(found['met'])} known"
        )
        for job_id in found["created"]:
            out.line(f"  new: {job_id}")
        print_refusals(report, out)
    return Exit.OK


def print_refusals(report: Report, out: Printer) -> None:
    for key in report.rejected:
        out.note(f"manifest {key} does not validate; rejected.json lists its problems")
    for problem in report.refused:
        out.note(f"refused: {problem}")
    for problem in report.failed:
        out.note(f"set aside: {problem}")
