"""`ade token new | list | revoke`: who may use the API, and for what."""

import argparse

from console.api.access import LOCAL, VALUES, Access, Grant, Scope
from console.api.actions import ActionLog
from console.cli import wire
from console.cli.acts import person
from console.cli.commands.drop import tenant_name
from console.cli.guard import Exit
from console.cli.output import Printer
from console.job_facts import when
from infra.wiring import Stack


def arguments(parser: argparse.ArgumentParser) -> None:
    acts = parser.add_subparsers(dest="act", required=True, metavar="new | list | revoke")
    new = acts.add_parser("new", help="make a token; it is shown once")
    new.add_argument("--name", metavar="N", required=True, help="whose it is, for the action log")
    new.add_argument(
        "--scope",
        metavar="S",
        type=_scopes,
        required=True,
        help=f"one of {', '.join(Scope)}; with ,{VALUES} it also sees cell values in the console (reviewer,{VALUES})",
    )
    new.add_argument("--tenant", metavar="T", type=tenant_name, help="this tenant only; a sender needs one")
    new.add_argument("--user", metavar="U", default="", help="no token, but a person whom a trusted proxy names so")
    new.add_argument("--days", metavar="N", type=float, help="expires after so many days (default: never)")
    acts.add_parser("list", help="tokens by their ids; never the tokens themselves")
    revoke = acts.add_parser("revoke", help="take a token back; it is refused from then on")
    revoke.add_argument("id", metavar="ID")


def _scopes(text: str) -> tuple[Scope, bool]:
    """A scope, and whether values are asked for besides it."""
    words = text.split(",")
    scopes = [word for word in words if word in set(Scope)]
    if len(scopes) != 1 or len(words) > 2 or any(word not in (*scopes, VALUES) for word in words):
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(Scope)}, with or without ,{VALUES}")
    return Scope(scopes[0]), VALUES in words


def run(args: argparse.Namespace, out: Printer) -> int:
    with wire.opened() as stack:
        access = Access(stack.store, stack.clock)
        if args.act == "new":
            return _new(stack, access, args, out)
        if args.act == "revoke":
            grant = access.revoke(args.id)
            _note(stack, "token_revoked", grant)
            out.note(f"revoked {grant.id} ({grant.name}); servers refuse it within seconds")
            if out.as_json:
                out.emit(_shape(grant))
            return Exit.OK
        grants = access.grants()
    if out.as_json:
        out.emit([_shape(grant) for grant in grants])
    elif grants:
        rows = [
            (g.id, g.name, _shown_scope(g), g.tenant or "all", g.user, when(g.expires_at) or "never") for g in grants
        ]
        out.table(("ID", "NAME", "SCOPE", "TENANT", "USER", "EXPIRES"), rows)
    else:
        out.note("there are no tokens; `ade token new` makes one")
    return Exit.OK


def _new(stack: Stack, access: Access, args: argparse.Namespace, out: Printer) -> int:
    grant, token = access.new(
        args.name,
        args.scope[0],
        tenant=args.tenant,
        user=args.user,
        days=args.days,
        by=person(),
        values=args.scope[1],
    )
    _note(stack, "token_made", grant)
    if out.as_json:
        out.emit(_shape(grant) | {"token": token or None})
    elif token:
        out.line(token)
        out.note(f"token {grant.id} for {grant.name}, {_shown_scope(grant)}; it is not shown again")
    else:
        out.line(f"{grant.user} is {_shown_scope(grant)} ({grant.id}) where a trusted proxy names them")
    return Exit.OK


def _note(stack: Stack, act: str, grant: Grant) -> None:
    who = type(LOCAL)("command", person(), Scope.OPERATOR)
    log = wire.make_log(stack.settings, level="error")
    ActionLog(stack.store, stack.clock, log).note(
        who, act, tenant=grant.tenant, grant=grant.id, scope=_shown_scope(grant)
    )


def _shown_scope(grant: Grant) -> str:
    return f"{grant.scope},{VALUES}" if grant.values else str(grant.scope)


def _shape(grant: Grant) -> dict[str, object]:
    return grant.model_dump(mode="json", exclude={"hash"})
