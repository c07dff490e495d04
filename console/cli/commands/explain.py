"""`ade explain RESULT CELL`: why a cell of an output is what it is."""

import argparse

from console.cli.finished import finished_results
from console.cli.guard import Exit
from console.cli.output import Printer

EPILOG = """\
examples:
  ade explain result/ D3                          a cell of normalized.xlsx, of a folder that `ade try --out` wrote
  ade explain acme-members-7f3k9q2d Normalized!D3
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("result", metavar="RESULT", help="a folder as `ade try --out` writes it, or a job")
    parser.add_argument("cell", metavar="CELL", help="an address in normalized.xlsx: D3, or Normalized!D3")
    parser.epilog = EPILOG


def run(args: argparse.Namespace, out: Printer) -> int:
    with finished_results([args.result]) as (inspections, (result,)):
        explanation = inspections.explain(result, args.cell)
    if out.as_json:
        out.emit(explanation)
        return Exit.OK
    kind = f" ({explanation['type']})" if explanation["type"] else ""
    out.heading(
        f"{explanation['cell']}: {explanation['field'] or explanation['column'] or 'a column without a name'}{kind}"
    )
    out.line(f"  value: {explanation['value']}" if explanation["value"] else "  value: blank")
    why = explanation["why"]
    for line in why if isinstance(why, list) else ():
        out.line(f"  {line}")
    return Exit.OK
