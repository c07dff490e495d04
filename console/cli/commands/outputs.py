"""`ade outputs JOB`: list or download what a job published."""

import argparse
import tempfile
import zipfile
from pathlib import Path

from console.cli import wire
from console.cli.guard import Exit
from console.cli.output import Printer, Progress
from console.job_facts import plural, size, when
from core.errors import StoreUnavailable, UsageError
from core.jobs import Job
from core.keys import PACKED, job_folder
from core.ports import ObjectInfo, ObjectStore
from infra.local.folder import FolderStore

_LIMIT = 1 << 40


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--to", metavar="DIR", type=Path, help="download the files into a folder")
    where.add_argument("--zip", metavar="FILE", type=Path, help="download them as one zip")


def run(args: argparse.Namespace, out: Printer) -> int:
    with wire.opened() as stack:
        job = wire.make_control(stack).find(args.job)
        objects = list(stack.store.objects(job_folder(job)))
        if not objects:
            raise UsageError(f"job {job.job_id} is {job.state} and has not published anything yet")
        if args.zip is not None:
            _zip(stack.store, job, objects, args.zip)
        elif args.to is not None:
            _download(stack.store, job, objects, args.to)
        _print(stack.store, job, objects, args, out)
    return Exit.OK


def _print(store: ObjectStore, job: Job, objects: list[ObjectInfo], args: argparse.Namespace, out: Printer) -> None:
    names = [o.key.removeprefix(job_folder(job)) for o in objects]
    if out.as_json:
        files = [
            {"name": name, "key": o.key, "size": o.size, "version": o.version}
            for name, o in zip(names, objects, strict=True)
        ]
        to = args.zip or args.to
        facts = {"job_id": job.job_id, "outputs": job_folder(job), "expires_at": job.expires_at}
        out.emit(facts | {"files": files, "to": str(to) if to else None})
    elif args.zip or args.to:
        out.line(f"{plural(len(objects), 'file')} in {args.zip or args.to}")
    else:
        out.line(str(store.root / job_folder(job)) if isinstance(store, FolderStore) else job_folder(job))
        out.table(("FILE", "SIZE"), [(name, size(o.size)) for name, o in zip(names, objects, strict=True)])
        if job.expires_at is not None:
            out.note(f"kept until {when(job.expires_at)}")


def _download(store: ObjectStore, job: Job, objects: list[ObjectInfo], folder: Path) -> None:
    """Fetch every file to a temporary name first, so that an interrupted download leaves no partial file."""
    folder.mkdir(parents=True, exist_ok=True)
    known = {f.name: f.sha256 for f in job.files}
    progress = Progress()
    for info in objects:
        name = info.key.removeprefix(job_folder(job))
        progress.show(f"{name} {size(info.size)}")
        half = folder / f".{name}.part"
        half.unlink(missing_ok=True)
        fetched = store.fetch(info.key, half, limit=_LIMIT)
        if name in known and known[name] != fetched.sha256:
            half.unlink()
            raise StoreUnavailable(f"{info.key} is not what job {job.job_id} published (SHA-256 differs); try again")
        half.replace(folder / name)
    progress.clear()


def _zip(store: ObjectStore, job: Job, objects: list[ObjectInfo], target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.absolute().parent, prefix=".ade-zip-") as scratch:
        files = Path(scratch) / "files"
        _download(store, job, objects, files)
        half = Path(scratch) / "half.zip"
        with zipfile.ZipFile(half, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(files.iterdir()):
                packed = zipfile.ZIP_STORED if path.name.endswith(PACKED) else zipfile.ZIP_DEFLATED
                archive.write(path, f"{job.job_id}/{path.name}", compress_type=packed)
        half.replace(target)
