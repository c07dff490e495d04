"""Backups of the embedded mode: a copy of the data folder that is made while jobs run.

Theory of operation. Nothing stops for a backup, so its parts are of different moments, and the order makes them fit:

1. `outputs/` and `replays/`. They are older than the table: a result that the table does not know yet would be
   published a second time after a restore.
2. The table and the queue, at one moment.
3. `inbox/`, `configs/`, `access/`, loaded rows. They are newer than the table: a job never misses its input, what was
   dropped since is found by the next sweep, and a load that is repeated changes nothing.
4. The outputs of the rows of 2 that ended since 1 began, each compared with the digest in its row. The row then says
   that `latest.json` is still to be written; the janitor does that after a restore. What was staged of jobs that are
   being published is copied, too; if it is gone by now, the job runs again.

What 4 cannot find (expired or run again in these moments) is what the audit of every janitor heals: runner/audit.py.
A copy is complete when it has its name: it is made in `DEST.partial`, synced, and renamed. A restore works in the same
way inside the data folder, which no command opens until every part is in its place.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from console.cli.commands.jobs import every
from core.errors import UsageError
from core.jobs import ENDED, Job, State, stamp_text
from core.keys import ACCESS, CONFIGS, INBOX, OUTPUTS, REPLAYS, job_folder, latest_key, result_key, staging_folder
from core.ports import JobQuery, JobTable
from core.settings import Settings
from infra.clocks import SystemClock
from infra.local.copies import BUCKET, CopiedFile, FileCopies, put_back, read_list, sync_all, write_list
from infra.local.disk import RESTORED_TIMES, RESTORING, RestoredTimes, make_folder, make_private_folder
from infra.local.presence import alive_owners, open_below
from infra.local.sqlite import close_copy, copy_database
from infra.wiring import open_table_of
from runner.documents import read_order, result_body
from runner.latest import is_latest_failure

TABLE, LOADED, LIST, ABOUT = "ade.sqlite", "loaded.sqlite", "files.jsonl", "backup.json"
_LOCK, _READY = "lock", "ready"
_VERSION: Final = 1
_BEFORE: Final = (OUTPUTS, REPLAYS)  # than the table
_MARGIN_SECONDS = 60.0  # by which a row's last change may be dated before it was written
_NO_CONTENT = frozenset({RESTORING, "lost+found"})


@dataclass(frozen=True, kw_only=True, slots=True)
class BackupReport:
    place: Path
    made_at: float
    jobs: int
    files: int
    bytes: int
    left_out: dict[str, str]  # paths that were not copied, and why


def make_backup(settings: Settings, place: Path) -> BackupReport:
    """Copy the data folder to `place`, which is not there yet."""
    data, place = settings.storage_data_dir.absolute(), place.absolute()
    _check_embedded(settings)
    if not (data / TABLE).exists():
        raise UsageError(f"{data} has no {TABLE}; set ADE_STORAGE_DATA_DIR to the data folder")
    if place.exists() or place.is_symlink():
        raise UsageError(f"{place} exists; a backup needs a name of its own")
    if place.is_relative_to(data) or place.resolve().is_relative_to(data.resolve()):
        raise UsageError(f"{place} is in the data folder {data}; a backup belongs elsewhere")
    make_folder(place.parent)
    partial = place.with_name(f"{place.name}.partial")
    with _own_folder(partial):
        report = _copy_all(settings, data, partial, place)
        sync_all(partial)
        partial.rename(place)
        (place / _LOCK).unlink()  # only now: whoever finds the folder without it would begin again
        sync_all(place.parent)
    return report


def restore(settings: Settings, source: Path) -> BackupReport:
    """Put a backup into the data folder, which holds nothing yet. After a kill the same call finishes it."""
    data, source = settings.storage_data_dir.absolute(), source.absolute()
    _check_embedded(settings)
    about = _about(source)
    make_private_folder(data)
    _check_idle(data)
    _check_empty(data)
    with _own_folder(data / RESTORING, resuming=True) as parts:
        ready, digest = parts / _READY, str(about["list"])
        if not ready.exists():
            _clear(parts)
            _check_empty(data)
            _fetch_all(source, parts, digest)
            sync_all(parts)
            ready.write_text(digest)
            sync_all(parts)
        elif ready.read_text() not in ("", digest):
            raise UsageError(f"{data} has half of another backup; finish that restore, or empty the folder")
        _put_in_place(parts, data)
        sync_all(data)
    return _report(about, source)


def _check_embedded(settings: Settings) -> None:
    for name, url in (("ADE_STORE_URL", settings.store_url), ("ADE_TABLE_URL", settings.table_url)):
        if url:
            raise UsageError(
                f"{name} is set: this copies the bucket and the table of a data folder; "
                "docs/guides/backups.md says how to copy the others, and in which order"
            )


@contextlib.contextmanager
def _own_folder(folder: Path, *, resuming: bool = False) -> Iterator[Path]:
    """A folder for us alone while it is filled; what a killed process left is removed, or kept with `resuming`.

    It is gone at the end unless an error left it with `resuming`: then the next call goes on with it.
    """
    make_private_folder(folder)
    lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another process works on {folder}; wait for it") from None
        if not resuming:
            _clear(folder)
        try:
            yield folder
        except BaseException:
            if not resuming:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


def _clear(folder: Path) -> None:
    for left in folder.iterdir():
        if left.is_dir():
            shutil.rmtree(left)
        elif left.name != _LOCK:
            left.unlink()


def _copy_all(settings: Settings, data: Path, partial: Path, place: Path) -> BackupReport:
    began = SystemClock().now()
    copies = FileCopies(data, partial, largest=settings.worker_fsize_mb * 1024 * 1024)
    for prefix in _BEFORE:
        copies.copy_below((BUCKET + prefix).rstrip("/"))
    copy_database(data / TABLE, partial / TABLE)
    for folder in (BUCKET + INBOX, BUCKET + CONFIGS, ACCESS):
        copies.copy_below(folder.rstrip("/"))
    if (data / LOADED).exists():
        copy_database(data / LOADED, partial / LOADED)
    with open_table_of(partial, settings) as table:
        jobs = list(every(table, JobQuery()))
        for job in jobs:
            _complete(job, table, copies, data, began)
    files = [copies.files[path] for path in sorted(copies.files)]
    for name in (TABLE, LOADED):
        if (partial / name).exists():
            close_copy(partial / name)
            files.append(_listed(partial, name))
    report = BackupReport(
        place=place,
        made_at=began,
        jobs=len(jobs),
        files=sum(not one.folder for one in files),
        bytes=sum(one.size for one in files),
        left_out=dict(sorted(copies.left_out.items())),
    )
    about: dict[str, object] = {
        "backup": _VERSION,
        "made_at": stamp_text(began),
        "jobs": report.jobs,
        "files": report.files,
    }
    about |= {"bytes": report.bytes, "left_out": report.left_out, "list": write_list(partial / LIST, files)}
    (partial / ABOUT).write_text(json.dumps(about, indent=2) + "\n")
    return report


def _complete(job: Job, table: JobTable, copies: FileCopies, data: Path, began: float) -> None:
    """Make the copy of what a job has published fit its row."""
    if job.state is State.PUBLISHING or job.unpublished:
        copies.copy_below((BUCKET + staging_folder(job.job_id, job.fence)).rstrip("/"))
    elif job.state is State.EXPIRED and job.updated_at >= began - _MARGIN_SECONDS:
        folder = BUCKET + job_folder(job)
        for path in [path for path in copies.files if path.startswith(folder)]:
            if path != BUCKET + result_key(job):
                copies.remove(path)
    elif job.state in (ENDED | {State.REVIEW}) - {State.EXPIRED}:
        is_complete = _copy_promised(job, copies)
        if (not is_complete or job.updated_at >= began - _MARGIN_SECONDS) and job.state is not State.REVIEW:
            _close_result(job, table, copies, data)


def _copy_promised(job: Job, copies: FileCopies) -> bool:
    """Copy the files that a row names and the copy does not have; whether there were none."""
    promised = {BUCKET + job_folder(job) + file.name: file.sha256 for file in job.files}
    missing = {path for path, digest in promised.items() if not _is_copied(copies, path, digest)}
    for path in missing:
        copied = copies.copy(path)
        if copied is not None and copied.sha256 != promised[path]:
            copies.remove(path)  # of a later run; the audit after a restore sees that it is missing
    return not missing


def _close_result(job: Job, table: JobTable, copies: FileCopies, data: Path) -> None:
    """Let result.json be that of the row, and latest.json follow."""
    result, body = BUCKET + result_key(job), result_body(job)
    if not _is_copied(copies, result, hashlib.sha256(body).hexdigest()) and copies.copy(result) is not None:
        copies.write(result, body)
    if job.state is State.SUCCEEDED:
        table.replace(job, replace(job, unpublished=True))
    elif is_latest_failure(job):
        with contextlib.suppress(OSError):
            order = read_order((data / BUCKET / latest_key(job)).read_bytes())
            if order is not None and order[-1] == job.job_id:
                copies.copy(BUCKET + latest_key(job))


def _is_copied(copies: FileCopies, path: str, digest: str) -> bool:
    there = copies.files.get(path)
    return there is not None and there.sha256 == digest


def _listed(folder: Path, name: str) -> CopiedFile:
    with (folder / name).open("rb") as body:
        digest = hashlib.file_digest(body, "sha256").hexdigest()
    return CopiedFile(path=name, size=(folder / name).stat().st_size, sha256=digest, owner=(os.getuid(), os.getgid()))


def _about(source: Path) -> dict[str, object]:
    try:
        about = json.loads((source / ABOUT).read_text())
        version = about["backup"]
    except (OSError, ValueError, KeyError, TypeError):
        raise UsageError(f"{source} is not a finished backup: it has no readable {ABOUT}") from None
    if version != _VERSION:
        raise UsageError(f"{source} was made by a newer ade-drop (version {version}); restore it with that")
    return dict(about)


def _check_idle(data: Path) -> None:
    """No process may use the folder, not even one whose files were deleted under its feet."""
    if owners := alive_owners(data / "run"):
        raise UsageError(f"{', '.join(owners)} works on {data}; stop it, and restore into an empty folder")
    if pids := open_below(data):
        raise UsageError(f"process {', '.join(map(str, pids))} has files of {data} open; stop it first")


def _check_empty(data: Path) -> None:
    if (data / RESTORING / _READY).exists():
        return
    there = sorted(one.name for one in data.iterdir() if one.name not in _NO_CONTENT)
    if there:
        raise UsageError(
            f"{data} is not empty ({', '.join(there[:5])}); move it away, or set ADE_STORAGE_DATA_DIR to a new folder"
        )


def _fetch_all(source: Path, parts: Path, digest: str) -> None:
    files = read_list(source / LIST, digest)
    facts = put_back(source, parts, files)
    times = ((one.path.removeprefix(BUCKET), facts[one.path], one.modified) for one in files if one.path in facts)
    RestoredTimes(parts / RESTORED_TIMES).write((key, known, at) for key, known, at in times if at is not None)
    for name in (TABLE, LOADED):
        if (parts / name).exists():
            close_copy(parts / name)


def _put_in_place(parts: Path, data: Path) -> None:
    """Rename every part; the table last. Repeated, it goes on with those that are left."""
    names = sorted(
        (one.name for one in parts.iterdir() if one.name not in (_LOCK, _READY)), key=lambda n: (n == TABLE, n)
    )
    for name in names:
        (parts / name).rename(data / name)


def _report(about: dict[str, object], place: Path) -> BackupReport:
    left_out = about["left_out"]
    return BackupReport(
        place=place,
        made_at=datetime.fromisoformat(str(about["made_at"])).timestamp(),
        jobs=int(str(about["jobs"])),
        files=int(str(about["files"])),
        bytes=int(str(about["bytes"])),
        left_out=dict(left_out) if isinstance(left_out, dict) else {},
    )
