"""`ade deploy plan | template | package`: the CloudFormation stack before it exists. Nothing here calls AWS."""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from console.cli.guard import Exit
from console.cli.output import Printer
from core.errors import UsageError

_PLAN = """\
examples:
  ade deploy plan                                   bucket, queues, table, notification and alarms
  ade deploy plan --stack ade --set HandlerBucket=code --set HandlerKey=ade-handler-0.1.0-python3.12-x86_64.zip \\
      --set RunnerImage=111122223333.dkr.ecr.eu-west-1.amazonaws.com/ade-drop:0.1.0 \\
      --set Vpc=vpc-0a1b2c3d --set Subnets=subnet-0a1b2c3d,subnet-4e5f6a7b
  ade deploy plan --json | python3 -m json.tool

The plan is the template's own description: each resource with the condition under which it is created. For the exact
changes to an account run the `--no-execute-changeset` command that it prints; what exists on an endpoint of your own is
shown by `ade infra init --dry-run`.
"""
_PACKAGE = """\
examples:
  ade deploy package --to .                         ade-handler-0.1.0-python3.12-x86_64.zip, for Machine=x86_64
  ade deploy package --to . --machine arm64         the same for Machine=arm64
  aws s3 cp ade-handler-0.1.0-python3.12-x86_64.zip s3://code/

Then: --set HandlerBucket=code --set HandlerKey=ade-handler-0.1.0-python3.12-x86_64.zip. CloudFormation updates the
function when its key changes, not when another zip is uploaded to the same key.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_subparsers(dest="what", required=True, metavar="plan | template | package")
    raw = argparse.RawDescriptionHelpFormatter
    plan = what.add_parser(
        "plan",
        help="show what the template would create, and what it costs; offline",
        epilog=_PLAN,
        formatter_class=raw,
    )
    plan.add_argument("--stack", default="ade", metavar="NAME", help="name of the stack and prefix of its resources")
    plan.add_argument(
        "--set", action="append", default=[], metavar="PARAMETER=VALUE", help="a parameter of the template; repeatable"
    )
    template = what.add_parser("template", help="print the CloudFormation template")
    template.add_argument("--to", type=Path, metavar="FILE", help="write it there instead")
    package = what.add_parser(
        "package", help="build the zip of the Lambda handler", epilog=_PACKAGE, formatter_class=raw
    )
    package.add_argument(
        "--to",
        type=Path,
        default=Path(),
        metavar="FOLDER|FILE",
        help="a folder, where it is named after version, Python and machine (default: here), or a name of your own",
    )
    package.add_argument("--python", default="3.12", help="Python of the Lambda function (default: 3.12)")
    package.add_argument("--machine", default="x86_64", help="x86_64 or arm64 (default: x86_64)")


def run(args: argparse.Namespace, out: Printer) -> int:
    match args.what:
        case "plan":
            return _plan(args, out)
        case "template":
            return _template(args, out)
        case _:
            return _package(args, out)


def _plan(args: argparse.Namespace, out: Printer) -> int:
    from infra.deploy.plan import make_plan  # noqa: PLC0415 - only this command needs it

    chosen: dict[str, str] = {}
    for word in args.set:
        name, mark, value = word.partition("=")
        if not mark:
            raise UsageError(f"--set {word}: give PARAMETER=VALUE")
        chosen[name] = value
    plan = make_plan(args.stack, chosen)
    if out.as_json:
        out.emit(asdict(plan))
        return Exit.OK
    out.line(f"stack {plan.stack}: {plan.about}")
    for when in dict.fromkeys(one.when for one in plan.resources):
        out.line(f"{when}:" if when == "always" else f"if {when}:")
        for one in (one for one in plan.resources if one.when == when):
            out.line(f"  {one.id:23} {one.type:44} {one.name}".rstrip())
            out.line(f"  {'':23} {one.about}")
            if one.cost:
                out.line(f"  {'':23} costs: {one.cost}")
    for role, rights in plan.rights.items():
        out.line(f"{role} may, and nothing else:")
        for right in rights:
            out.line(f"  {right.sid:10} {', '.join(right.actions)}")
            out.line(f"  {'':10} on {', '.join(right.on)}")
    out.line("parameters (* given, the others by default):")
    for parameter in plan.parameters:
        out.line(f"{'*' if parameter.given else ' '} {parameter.name:23} {parameter.value or '(empty)'}")
        out.line(f"  {'':23} {parameter.about}")
    out.line("outputs:")
    for name, about in plan.outputs.items():
        out.line(f"  {name:23} {about}")
    out.line("Prices are list prices of us-east-1, November 2026; docs/guides/cloud.md has what a job costs.")
    out.line("to have AWS list the exact changes without making them:")
    out.line("  ade deploy template --to template.yaml")
    out.line(f"  {plan.review}")
    out.line("to create it:")
    out.line(f"  {plan.command}")
    return Exit.OK


def _template(args: argparse.Namespace, out: Printer) -> int:
    from infra.deploy.plan import TEMPLATE  # noqa: PLC0415 - as above

    text = TEMPLATE.read_text()
    if args.to is not None:
        args.to.write_text(text)
        out.note(f"wrote {args.to}")
    if out.as_json:
        out.emit({"template": text, "to": str(args.to) if args.to else None})
    elif args.to is None:
        sys.stdout.write(text)
    return Exit.OK


def _package(args: argparse.Namespace, out: Printer) -> int:
    from infra.deploy import handler_zip  # noqa: PLC0415 - pip is needed for this command only

    if args.python not in handler_zip.PYTHONS:
        raise UsageError(f"--python {args.python}: one of {', '.join(handler_zip.PYTHONS)}")
    if args.machine not in handler_zip.MACHINES:
        raise UsageError(f"--machine {args.machine}: one of {', '.join(handler_zip.MACHINES)}")
    name = handler_zip.package_name(python=args.python, machine=args.machine)
    to = args.to / name if args.to.is_dir() else args.to
    size = handler_zip.build(to, python=args.python, machine=args.machine)
    if out.as_json:
        out.emit({"to": str(to), "bytes": size, "python": args.python, "machine": args.machine})
    else:
        out.line(f"{to}: {size / 1e6:.1f} MB for Python {args.python} on {args.machine}")
    return Exit.OK
