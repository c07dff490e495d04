"""`ade link new | list | revoke`: upload links for people without an account."""

import argparse
import re

from console.api.access import LINKS_KEY, Access, Grant, LinkFacts, Principal, Scope
from console.api.actions import ActionLog
from console.cli import wire
from console.cli.acts import person
from console.cli.commands.drop import tenant_name
from console.cli.guard import Exit
from console.cli.output import Printer
from console.desk.files import inbox_folder
from console.job_facts import when
from core.errors import UsageError
from core.keys import SPREADSHEETS
from handlers.intake import Intake
from handlers.workflows import LiveView
from infra.wiring import Stack

_DAYS = re.compile(r"([1-9]\d{0,3})d")
_MOST_MB = 20


def arguments(parser: argparse.ArgumentParser) -> None:
    acts = parser.add_subparsers(dest="act", required=True, metavar="new | list | revoke")
    new = acts.add_parser("new", help="make a link; it is shown once")
    new.add_argument("--tenant", metavar="T", type=tenant_name, required=True, help="whose files come by it")
    new.add_argument("--workflow", metavar="W", required=True, help="the one standing workflow that processes them")
    new.add_argument("--expires", metavar="DAYS", type=_days, default=30, help="as 30d (the default)")
    new.add_argument("--path", metavar="P", help="folder of the inbox for them (default: the workflow's name)")
    new.add_argument("--size-mb", metavar="N", type=int, default=_MOST_MB, help="largest file (default: 20)")
    new.add_argument("--name", metavar="N", help="shown on the page (default: the workflow's name)")
    acts.add_parser("list", help="links by their ids; never the links themselves")
    revoke = acts.add_parser("revoke", help="take a link back; it is gone from then on")
    revoke.add_argument("id", metavar="ID")


def run(args: argparse.Namespace, out: Printer) -> int:
    with wire.opened() as stack:
        links = Access(stack.store, stack.clock, key=LINKS_KEY)
        if args.act == "new":
            return _new(stack, links, args, out)
        if args.act == "revoke":
            link = links.revoke(args.id)
            _note(stack, "link_revoked", link)
            out.note(f"revoked {link.id} ({link.name}); servers refuse it within seconds")
            if out.as_json:
                out.emit(_shape(link))
            return Exit.OK
        found = links.grants()
    if out.as_json:
        out.emit([_shape(link) for link in found])
    elif found:
        rows = [(g.id, g.tenant or "", g.workflow, f"{g.most_mb} MB", when(g.expires_at), g.name) for g in found]
        out.table(("ID", "TENANT", "WORKFLOW", "SIZE", "EXPIRES", "NAME"), rows)
    else:
        out.note("there are no upload links; `ade link new` makes one")
    return Exit.OK


def _new(stack: Stack, links: Access, args: argparse.Namespace, out: Printer) -> int:
    if args.size_mb < 1:
        raise UsageError("--size-mb is at least 1")
    path = args.workflow if args.path is None else args.path
    _check(stack, args.tenant, args.workflow, path)
    facts = LinkFacts(workflow=args.workflow, path=path, most_mb=args.size_mb)
    name = args.name or args.workflow
    link, token = links.new(name, Scope.SENDER, tenant=args.tenant, days=args.expires, by=person(), link=facts)
    _note(stack, "link_made", link)
    if out.as_json:
        out.emit(_shape(link) | {"path": f"/u/{token}"})
        return Exit.OK
    out.line(f"http://{stack.settings.console_listen}/u/{token}")
    out.note(
        f"link {link.id} for {args.workflow} of {args.tenant}, until {when(link.expires_at)}; it is not shown again"
    )
    return Exit.OK


def _check(stack: Stack, tenant: str, workflow: str, path: str) -> None:
    """Refuse a link whose files that workflow would not process, or others as well."""
    folder = inbox_folder(tenant, f"{path}/link-0/0")
    intake, view = Intake.over(stack), LiveView(stack.store)
    found = {one.manifest.name for ending in SPREADSHEETS for one in intake.selecting(view, f"{folder}file{ending}")}
    if workflow not in found:
        raise UsageError(
            f"workflow {workflow} does not process files below {folder}; give --path a folder that it subscribes to "
            "with all below it (`ade workflow show`)"
        )
    if others := sorted(found - {workflow}):
        raise UsageError(f"{', '.join(others)} would process files below {folder}, too; give --path another folder")


def _note(stack: Stack, act: str, link: Grant) -> None:
    log = wire.make_log(stack.settings, level="error")
    who = Principal("command", person(), Scope.OPERATOR)
    ActionLog(stack.store, stack.clock, log).note(who, act, tenant=link.tenant, grant=link.id, workflow=link.workflow)


def _shape(link: Grant) -> dict[str, object]:
    shown = ("id", "name", "tenant", "workflow", "path", "most_mb", "created_at", "expires_at", "by")
    return {name: value for name, value in link.model_dump(mode="json").items() if name in shown}


def _days(text: str) -> int:
    found = _DAYS.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of days; write 30d")
    return int(found[1])
