"""Files of a job on their way out: a link to the store where it has one, else through a folder of our own."""

import hashlib
import shutil
import zipfile
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

from starlette.responses import (
    FileResponse,
    MalformedRangeHeader,
    RangeNotSatisfiable,
    RedirectResponse,
    Response,
)

from console.api.problems import ProblemError
from console.api.spools import Spool
from core.errors import ObjectMissing
from core.jobs import Job, State
from core.keys import PACKED, content_type, job_folder
from core.ports import ObjectInfo, ObjectStore

LINK_SECONDS = 600
_LARGEST = 1 << 40
_BLOCK = 1024 * 1024
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # the same files make the same zip, so that a download can be resumed
# What a job made is shown with no rights at all: no script, no form, no other address.
_SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"


class Downloads:
    def __init__(self, store: ObjectStore, spool: Spool) -> None:
        self._store = store
        self._spool = spool

    def one(self, job: Job, name: str, *, inline: bool = False) -> Response:
        """One published file of a job."""
        _check_published(job)
        key = f"{job_folder(job)}{name}"
        info = self._store.head(key) if "/" not in name else None
        if info is None:
            raise ObjectMissing(
                f"job {job.job_id} is {job.state} and has no file {name[:100]!r}; /jobs/{job.job_id}/files lists them"
            )
        return self.object(info, name, inline=inline)

    def object(self, info: ObjectInfo, name: str, *, inline: bool = False) -> Response:
        """One object of the bucket under a name for people."""
        link = None if inline else self._store.link(info.key, seconds=LINK_SECONDS, save_as=name)
        if link is not None:
            return RedirectResponse(link, status_code=307)

        def fetch(to: Path) -> None:
            self._store.fetch(info.key, to, version=info.version, limit=_LARGEST)

        path = self._spool.get(f"{info.key}\n{info.version}", fetch)
        return _file(path, name, info.version, inline=inline)

    def zipped(self, job: Job) -> Response:
        """Everything that a job has published, as one zip that can be resumed."""
        _check_published(job)
        objects = list(self._store.objects(job_folder(job)))
        if not objects:
            raise ObjectMissing(f"job {job.job_id} is {job.state} and has published nothing (yet)")
        made_of = "\n".join(f"{info.key} {info.version}" for info in objects)
        path = self._spool.get(f"zip\n{made_of}", lambda to: self._zip(job, objects, to))
        return _file(path, f"{job.job_id}.zip", hashlib.sha256(made_of.encode()).hexdigest())

    def _zip(self, job: Job, objects: list[ObjectInfo], to: Path) -> None:
        with self._spool.scratch() as scratch, zipfile.ZipFile(to, "w") as archive:
            for n, info in enumerate(objects):
                name = info.key.removeprefix(job_folder(job))
                fetched = scratch / str(n)
                self._store.fetch(info.key, fetched, version=info.version, limit=_LARGEST)
                entry = zipfile.ZipInfo(f"{job.job_id}/{name}", _ZIP_TIME)
                entry.compress_type = zipfile.ZIP_STORED if name.endswith(PACKED) else zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                entry.file_size = info.size
                with fetched.open("rb") as source, archive.open(entry, "w") as target:
                    shutil.copyfileobj(source, target, _BLOCK)
                fetched.unlink()


def _check_published(job: Job) -> None:
    """An end is in the table a moment before its files are in the bucket: until then, those are of an earlier run."""
    if job.ended and job.unpublished and job.state not in (State.SUCCEEDED, State.EXPIRED):
        raise ObjectMissing(f"job {job.job_id} is {job.state} and its result is being published; ask again in a moment")


class RangedFile(FileResponse):
    """A file or parts of it. A Range that cannot be read is ignored, as RFC 9110 wants it."""

    @classmethod
    def _parse_range_header(cls, http_range: str, file_size: int) -> list[tuple[int, int]]:
        try:
            return super()._parse_range_header(http_range, file_size)
        except MalformedRangeHeader:
            return []
        except RangeNotSatisfiable:
            raise ProblemError(
                HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
                f"the file has {file_size} bytes, and the Range begins after them; ask for less or without a Range",
                headers={"Content-Range": f"bytes */{file_size}"},
            ) from None


def _file(path: Path, name: str, version: str, *, inline: bool = False) -> Response:
    kind = content_type(name)
    how = "inline" if inline else "attachment"
    headers = {
        "Content-Disposition": f"{how}; filename*=UTF-8''{quote(name, safe='')}",
        "Content-Security-Policy": _SANDBOX,
        "ETag": f'"{hashlib.sha256(version.encode()).hexdigest()[:32]}"',
    }
    return RangedFile(path, media_type=kind, headers=headers)
