"""`ade diff RESULT RESULT`: what differs between two results, by mapping, rows, cells and findings."""

import argparse

from console.cli.finished import finished_results
from console.cli.guard import Exit
from console.cli.output import Printer
from console.desk.differences import Sides, lines, summary
from runner.engine.contract import BY_KEY, BY_SOURCE

EPILOG = """\
examples:
  ade diff before/ after/                     two folders that `ade try --out` wrote
  ade diff acme-members-7f3k9q2d after/       a job of the bucket, and a folder

Exit code 0: nothing differs; 1: something does. Breaking is what somebody who reads the first result may stumble over
in the second: something is gone, or is something else.
"""
_LINES = 50  # of each kind of difference
_SIDES = Sides("before", "after")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="RESULT", help="a folder as `ade try --out` writes it, or a job")
    parser.add_argument("after", metavar="RESULT")
    by = "how rows are paired; by default by the first unique field, else by the row they come from"
    parser.add_argument("--by", choices=(BY_KEY, BY_SOURCE), default="", help=by)
    parser.epilog = EPILOG


def run(args: argparse.Namespace, out: Printer) -> int:
    with finished_results([args.before, args.after]) as (inspections, (before, after)):
        comparison = inspections.compare(before, after, by=args.by, values=True)
    if out.as_json:
        out.emit(comparison)
    else:
        for words, breaking in summary(comparison):
            label = out.paint("breaking", "red") if breaking else out.paint("not breaking", "dim")
            out.line(f"{words} ({label})")
        for line in lines(comparison, _SIDES, _LINES):
            out.line(f"  {line}")
        if comparison["same"]:
            out.line("no differences")
    return Exit.OK if comparison["same"] else Exit.FAILED
