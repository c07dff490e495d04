"""`ade drop`: put files into the bucket, with a manifest, which goes last, or for the workflows that are there."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from console.cli import wire
from console.cli.acts import follow, is_at_rest
from console.cli.commands.sweep import print_refusals
from console.cli.guard import Exit, exit_of
from console.cli.output import Printer, Progress
from console.desk.files import Desk, find_manifest, inbox_folder, lay_out, manifest_name, read_manifest
from console.job_facts import job_shape, note, size
from core.drops import Workflow, is_placeholder
from core.errors import KeyRefused, ManifestInvalid, UsageError
from core.jobs import Job, State
from core.keys import INBOX, job_folder, place, rejected_key
from core.manifests import Manifest
from core.ports import ObjectStore
from handlers.intake import Intake
from handlers.planning import report_dict
from handlers.workflows import LiveView
from infra.wiring import Stack


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="spreadsheets that the manifest selects")
    parser.add_argument(
        "--manifest",
        metavar="M",
        type=Path,
        help="config/ beside it is dropped too (default: the standing workflows that select the files)",
    )
    parser.add_argument("--tenant", metavar="T", required=True, type=tenant_name)
    parser.add_argument(
        "--path", metavar="P", help="folder below inbox/T/ (default: the workflow's name; without a manifest, none)"
    )
    parser.add_argument("--data-time", metavar="TIME", type=_time, help="the data's own time, ISO 8601")
    parser.add_argument("--wait", action="store_true", help="follow the jobs until they end and exit with their status")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, help="with --wait: wait no longer (exit 3)")


def run(args: argparse.Namespace, out: Printer) -> int:
    if args.manifest is None:
        return _run_standing(args, out)
    parcel = Parcel(args)
    with wire.opened() as stack:
        keys = parcel.put(stack.store)
        report = Intake.over(stack).changed(keys)
        if parcel.manifest_key in report.rejected:
            return _rejected(parcel, out)
        print_refusals(report, out)
        jobs = [job for job in _jobs(stack, report_dict(report)) if job.workflow == parcel.workflow]
        return _shown(stack, jobs, keys, args, out)


def _run_standing(args: argparse.Namespace, out: Printer) -> int:
    """Drop files that standing workflows select; nothing is put where no workflow would read it."""
    folder = inbox_folder(args.tenant, args.path or "")
    files = {folder + path.name: path for path in args.files}
    for path in files.values():
        if not path.is_file():
            raise UsageError(f"{path} is not a file")
    with wire.opened() as stack:
        intake, view = Intake.over(stack), LiveView(stack.store)
        for key in files:
            if not intake.selecting(view, key):
                raise UsageError(_unselected(key, intake.standing(args.tenant)))
        metadata = {"data-time": args.data_time} if args.data_time else None
        for key, path in files.items():
            stack.store.put(key, path, metadata=metadata)
        report = intake.changed(files)
        print_refusals(report, out)
        return _shown(stack, _jobs(stack, report_dict(report)), list(files), args, out)


def _unselected(key: str, standing: list[Workflow]) -> str:
    tenant = place(key).tenant
    known = "; ".join(f"{w.manifest.name}: {', '.join(w.patterns)}" for w in standing)
    if not known:
        return f"tenant {tenant} has no standing workflow; name a manifest with --manifest, or put one under configs/"
    return f"no standing workflow selects {key}; they select ({known}); use --path, or --manifest"


def _shown(stack: Stack, jobs: list[Job], keys: list[str], args: argparse.Namespace, out: Printer) -> int:
    if not args.wait:
        _print(jobs, keys, out)
        return Exit.OK
    return _wait(stack, jobs, keys, args.timeout, out)


class Parcel:
    """The files to upload, in order: the manifest last, so that the drop is complete when it arrives."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._files: list[Path] = args.files
        self._metadata = {"data-time": args.data_time} if args.data_time else {}
        self._path = find_manifest(args.manifest)
        manifest, self.invalid = _checked(self._path)
        self.workflow = manifest.name if manifest else ""
        self.folder = inbox_folder(args.tenant, args.path if args.path is not None else self.workflow or "rejected")
        self.manifest_key = self.folder + manifest_name(self._path)
        place(self.manifest_key)
        self._desk = self._lay_out(manifest) if manifest else None

    def put(self, store: ObjectStore) -> list[str]:
        """Upload everything; returns the keys in the order they were written."""
        parts = [*(self._desk.files.items() if self._desk else ())]
        parts += [(self.folder + path.name, path) for path in self._files]
        primaries = {key for key, _ in parts[-len(self._files) :]}
        parts.append((self.manifest_key, self._path))
        progress = Progress()
        for key, path in parts:
            progress.show(f"{path.name} {size(path.stat().st_size)} to {key}")
            store.put(key, path, metadata=self._metadata if key in primaries else None)
        progress.clear()
        return [key for key, _ in parts]

    def _lay_out(self, manifest: Manifest) -> Desk | None:
        try:
            desk = lay_out(self._path, manifest, folder=self.folder)
        except ManifestInvalid as error:
            self.invalid = error
            return None
        for path in self._files:
            if not path.is_file():
                raise UsageError(f"{path} is not a file")
            if not desk.workflow.selects(self.folder + path.name):
                patterns = ", ".join(desk.workflow.patterns)
                raise UsageError(f"{path.name} is not selected by the manifest; its inputs.primary is {patterns}")
        return desk


def _checked(path: Path) -> tuple[Manifest | None, ManifestInvalid | None]:
    try:
        return read_manifest(path), None
    except ManifestInvalid as error:
        return None, error


def _rejected(parcel: Parcel, out: Printer) -> int:
    """Print the problems that rejected.json in the bucket lists."""
    key = rejected_key(parcel.manifest_key)
    problems = parcel.invalid.problems if parcel.invalid else []
    if out.as_json:
        out.emit({"rejected": key, "problems": [p.as_dict() for p in problems]})
    for problem in problems:
        out.note(f"{problem.path}: {problem.problem} (allowed: {problem.allowed})")
    out.note(f"ade: the manifest does not validate; see {key}, fix it and drop it again")
    return Exit.USAGE


def _jobs(stack: Stack, report: dict[str, list[str]]) -> list[Job]:
    ids = dict.fromkeys(report["created"] + report["met"] + report["queued"])
    found = [job for job_id in ids if (job := stack.table.get(job_id)) is not None]
    return [job for job in found if not (is_placeholder(job) and not job.inputs)]


def _print(jobs: list[Job], keys: list[str], out: Printer) -> None:
    if out.as_json:
        out.emit({"keys": keys, "jobs": [job_shape(job) for job in jobs]})
        return
    for job in jobs:
        out.line(f"{job.job_id}  {job.state}  {note(job)}".rstrip())


def _wait(stack: Stack, jobs: list[Job], keys: list[str], timeout: float | None, out: Printer) -> int:
    if not wire.runners(stack) and not all(job.ended for job in jobs):
        out.note("no runner is alive on this machine: the jobs wait until `ade up` or `ade run` is started")

    def seen(job: Job) -> None:
        if not out.as_json:
            out.line(f"{job.job_id}  {job.state}  {note(job)}".rstrip())

    ended = follow(stack.table, [job.job_id for job in jobs], seconds=timeout, seen=seen)
    if out.as_json:
        out.emit({"keys": keys, "jobs": [job_shape(job) for job in ended]})
    if not all(is_at_rest(job) for job in ended):
        out.note(f"ade: not all jobs ended within {timeout:g} seconds; they continue")
        return Exit.TIMED_OUT
    for job in ended:
        if job.state is State.REVIEW:
            out.note(f"`ade review {job.job_id}` shows its questions; so does {job_folder(job)}review.html")
        else:
            out.note(f"`ade outputs {job.job_id}` shows what it published")
    return exit_of(ended)


def tenant_name(name: str) -> str:
    try:
        fits = place(f"{INBOX}{name}/x").tenant == name
    except KeyRefused:
        fits = False
    if not fits:
        raise argparse.ArgumentTypeError(
            f"{name!r} is not a tenant name; use letters, digits, '.', '_', '-', at most 63"
        )
    return name


def _time(text: str) -> str:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an ISO 8601 time such as 2026-01-31T12:00:00Z") from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).isoformat()
