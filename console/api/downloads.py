"""Files of a job on their way out: a link to the store where it has one, else through a folder of our own."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import threading
import time
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from secrets import token_hex
from urllib.parse import quote

from starlette.responses import (
    FileResponse,
    MalformedRangeHeader,
    RangeNotSatisfiable,
    RedirectResponse,
    Response,
)

from console.api.problems import ProblemError
from core.errors import ObjectMissing
from core.jobs import Job, State
from core.keys import PACKED, content_type, job_folder
from core.ports import ObjectInfo, ObjectStore

LINK_SECONDS = 600
SPOOL_PREFIX = "console-"
_SPOOL_BYTES = 2 * 1024**3
_LARGEST = 1 << 40
_IN_USE_SECONDS = 60.0
_BLOCK = 1024 * 1024
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # the same files make the same zip, so that a download can be resumed
# What a job made is shown with no rights at all: no script, no form, no other address.
_SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"


class Spool:
    """A folder of files that were fetched or made, by what they hold; the oldest go when there are too many bytes."""

    def __init__(self, folder: Path, *, most: int = _SPOOL_BYTES) -> None:
        self.folder = folder
        self._most = most
        self._stored: OrderedDict[str, tuple[int, float]] = OrderedDict()  # size, and when it was asked for last
        self._making: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        folder.mkdir(parents=True)
        self._held = contextlib.ExitStack()
        self._held.callback(os.close, _locked(folder))
        _remove_those_of_the_dead(folder)

    def get(self, name: str, make: Callable[[Path], None]) -> Path:
        """The file of a name, made where it is not there; made once, however many ask."""
        path = self.folder / hashlib.sha256(name.encode()).hexdigest()
        with self._once(name):
            if not path.exists():
                half = self.folder / f"half-{token_hex(8)}"
                try:
                    make(half)
                    half.replace(path)
                finally:
                    half.unlink(missing_ok=True)
            self._store(path)
        return path

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self._held.close()

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder of one request."""
        folder = self.folder / f"request-{token_hex(8)}"
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextlib.contextmanager
    def _once(self, name: str) -> Iterator[None]:
        with self._lock:
            lock = self._making.setdefault(name, threading.Lock())
        with lock:
            yield
        with self._lock:
            self._making.pop(name, None)

    def _store(self, path: Path) -> None:
        with self._lock:
            now = time.monotonic()
            self._stored[path.name] = (path.stat().st_size, now)
            self._stored.move_to_end(path.name)
            left = sum(size for size, _ in self._stored.values())
            for name, (size, asked) in list(self._stored.items()):
                if left <= self._most or now - asked < _IN_USE_SECONDS:
                    break
                # Whoever reads it now reads on; whoever is about to open it asked a moment ago.
                (self.folder / name).unlink(missing_ok=True)
                del self._stored[name]
                left -= size


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


def _locked(folder: Path) -> int:
    """A lock that the kernel frees when this process dies, however it dies."""
    while True:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(held, fcntl.LOCK_EX)
        if folder.exists():
            return held
        os.close(held)  # somebody took it for a dead one's before it was locked
        folder.mkdir(parents=True)


def _remove_those_of_the_dead(mine: Path) -> None:
    """Folders beside ours that a server left behind which was killed."""
    for folder in mine.parent.glob(f"{SPOOL_PREFIX}*"):
        if folder == mine:
            continue
        with contextlib.suppress(OSError):  # it is locked, so alive; or gone by now
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(held)


def _file(path: Path, name: str, version: str, *, inline: bool = False) -> Response:
    kind = content_type(name)
    how = "inline" if inline else "attachment"
    headers = {
        "Content-Disposition": f"{how}; filename*=UTF-8''{quote(name, safe='')}",
        "Content-Security-Policy": _SANDBOX,
        "ETag": f'"{hashlib.sha256(version.encode()).hexdigest()[:32]}"',
    }
    return RangedFile(path, media_type=kind, headers=headers)
