"""`ade workflow list | show | diff | draft | promote | revert`: standing workflows and their versions."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from console.cli import wire
from console.cli.guard import Exit
from console.cli.output import Printer
from console.desk.files import find_manifest, lay_out, read_manifest
from console.library import DRAFTED, LIVE, Library, Standing, Version, differences
from core.jobs import stamp_text
from core.versions import MANIFEST
from handlers.intake import Intake
from infra.wiring import Stack

EPILOG = """\
examples:
  ade workflow list
  ade workflow show members
  ade workflow draft members ./members
  ade workflow diff members live draft
  ade workflow promote members
  ade workflow revert members
"""
_UNFINISHED = "none: promote again"  # a promotion died in the middle
_NOT_YET = "none yet"
_UNUSABLE = "not valid"


def arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_subparsers(dest="what", required=True, metavar="list | show | diff | draft | promote | revert")
    listed = what.add_parser("list", help="the standing workflows, shared ones and tenants' own")
    listed.add_argument("--tenant", metavar="T", help="only those of a tenant")
    show = what.add_parser("show", help="whom it serves, its versions, or the manifest of one")
    show.add_argument("name", metavar="WORKFLOW")
    show.add_argument("version", metavar="VERSION", nargs="?", help="an id, `live` or `draft`: its manifest")
    diff = what.add_parser("diff", help="what differs between two versions")
    diff.add_argument("name", metavar="WORKFLOW")
    diff.add_argument("before", metavar="A")
    diff.add_argument("after", metavar="B")
    draft = what.add_parser("draft", help="put a folder with a manifest as the draft; drops are not processed with it")
    draft.add_argument("name", metavar="WORKFLOW")
    draft.add_argument("folder", metavar="DIR", type=Path)
    promote = what.add_parser("promote", help="make a version the live one")
    promote.add_argument("name", metavar="WORKFLOW")
    promote.add_argument("version", metavar="VERSION", nargs="?", default=DRAFTED, help="default: the draft")
    revert = what.add_parser("revert", help="make the version live that was before, or another one that ran")
    revert.add_argument("name", metavar="WORKFLOW")
    revert.add_argument("version", metavar="VERSION", nargs="?")
    for one in (show, diff, draft, promote, revert):
        one.add_argument("--tenant", metavar="T", help="a tenant's own workflow (default: the shared one)")
    parser.epilog = EPILOG


def run(args: argparse.Namespace, out: Printer) -> int:
    with wire.opened() as stack:
        library = Library(stack.store)
        if args.what == "list":
            return _list(library, args.tenant, out)
        if args.what == "draft":
            return _draft(library, args, out)
        standing = library.find(args.name, args.tenant)
        match args.what:
            case "show":
                return _show(library, standing, args.version, out)
            case "diff":
                return _diff(library, standing, args.before, args.after, out)
            case "promote":
                return _promote(stack, library, standing, args.version, out)
            case _:
                return _promote(stack, library, standing, args.version or library.before_live(standing), out)


def _list(library: Library, tenant: str | None, out: Printer) -> int:
    found, cells = list[dict[str, object]](), list[tuple[str, ...]]()
    for one in library.all(tenant):
        is_live = one.is_live and one.unfinished is None
        live, versions = library.load(one, LIVE).id if is_live else None, library.versions(one)
        serves = list(one.workflow.manifest.tenants) or [one.workflow.tenant]
        usable = library.draft(one)
        draft = None if usable is None else usable.id
        facts = {"name": one.name, "place": one.folder, "tenants": serves, "live": live, "draft": draft}
        found.append({**facts, "versions": len(versions)})
        shown = live or (_UNFINISHED if one.is_live else _NOT_YET)
        no_draft = _UNUSABLE if library.has_draft(one) else ""
        cells.append((one.name, one.folder, ", ".join(serves), shown, draft or no_draft, str(len(versions))))
    if out.as_json:
        out.emit(found)
        return Exit.OK
    out.table(("WORKFLOW", "WHERE", "TENANTS", "LIVE", "DRAFT", "VERSIONS"), cells)
    return Exit.OK


def _show(library: Library, standing: Standing, which: str | None, out: Printer) -> int:
    if which is not None:
        version = library.load(standing, which)
        if out.as_json:
            out.emit({"id": version.id, "manifest": version.manifest.decode(), "config": sorted(version.package)})
            return Exit.OK
        for line in version.manifest.decode("utf-8", "replace").splitlines():
            out.line(line)
        for name in sorted(version.package):
            out.note(f"config: {name}")
        return Exit.OK
    manifest, versions = standing.workflow.manifest, library.versions(standing)
    live = library.load(standing, LIVE).id if standing.is_live else None
    usable = library.draft(standing)
    draft = None if usable is None else usable.id
    if out.as_json:
        listed = [{"id": one.id, "stored_at": stamp_text(one.stored_at), "live": one.id == live} for one in versions]
        facts = {"name": standing.name, "manifest": standing.key, "tenants": list(manifest.tenants)}
        out.emit(facts | {"subscribe": list(manifest.subscribe), "live": live, "draft": draft, "versions": listed})
        return Exit.OK
    out.heading(f"{standing.name}: {standing.key}")
    if manifest.tenants:
        out.line(f"  serves     {', '.join(manifest.tenants)}")
    out.line(f"  subscribes {', '.join(manifest.subscribe)}")
    out.line(f"  live       {live or _NOT_YET}")
    out.line(f"  draft      {draft or (_UNUSABLE if library.has_draft(standing) else 'none')}")
    for one in versions:
        at = datetime.fromtimestamp(one.stored_at or 0.0, UTC)
        out.line(f"  ran        {one.id}  {at:%Y-%m-%d %H:%M}{'  (live)' if one.id == live else ''}")
    return Exit.OK


def _diff(library: Library, standing: Standing, before: str, after: str, out: Printer) -> int:
    old, new = library.load(standing, before), library.load(standing, after)
    found = differences(old, new)
    if out.as_json:
        changes = [{"path": path, "before": a or None, "after": b or None} for path, a, b in found]
        out.emit({"before": old.id, "after": new.id, "changes": changes})
        return Exit.OK
    for path, a, b in found:
        out.line(f"~ {path}: {a} → {b}" if a and b else f"+ {path}: {b}" if b else f"- {path}: {a}")
    out.note(f"{old.id} and {new.id} {'differ' if found else 'are the same'}")
    return Exit.OK


def _draft(library: Library, args: argparse.Namespace, out: Printer) -> int:
    path = find_manifest(args.folder)
    manifest = read_manifest(path)
    standing = library.find_or_new(args.name, manifest, args.tenant)
    desk = lay_out(path, manifest, folder=standing.folder)
    files = {key.removeprefix(standing.folder): file.read_bytes() for key, file in desk.files.items()}
    draft = library.put_draft(standing, {**files, MANIFEST: path.read_bytes()})
    return _shown(draft, f"draft of {standing.name}", out)


def _promote(stack: Stack, library: Library, standing: Standing, which: str, out: Printer) -> int:
    version = library.load(standing, which)
    before = library.promote(standing, version)
    Intake.over(stack).changed([standing.key])  # files that wait for it, and what others have cached
    if not out.as_json:
        back = f"back to it: ade workflow revert {standing.name} {before}"
        was = f"live before: {before}; {back}" if before else "nothing was live before"
        out.note("it is live already" if before == version.id else was)
    return _shown(version, f"live version of {standing.name}", out)


def _shown(version: Version, what: str, out: Printer) -> int:
    if out.as_json:
        out.emit({"id": version.id, "workflow": version.read.name})
    else:
        out.line(f"{version.id}  {what}")
    return Exit.OK
