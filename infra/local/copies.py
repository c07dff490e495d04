"""Copies of the files of a data folder: made under load, listed with what a copy by `cp` would lose, checked when read.

Senders own folders of the bucket, so nothing is reached through a link and no file is copied that the bucket itself
would not read (infra/local/folder.py). A file of the inbox that somebody is still writing is left out: a copy of its
first half would look like a finished one. Holes stay holes: a file of a terabyte that has next to nothing in it costs
its sender nothing, and must not fill the disk of a copy. One that is too large for any job is left out.
"""

import contextlib
import ctypes
import hashlib
import json
import os
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from posixpath import basename, dirname

from core.errors import ObjectRefused, UsageError
from core.keys import CONFIGS, INBOX
from infra.local.beneath import FOLDER, PASSAGE, opened
from infra.local.disk import RESTORED_TIMES, FileFacts, RestoredTimes
from infra.local.folder import finished, metadata_of, open_file, set_metadata, too_deep, write_all

BUCKET = "bucket/"
_DATED = (BUCKET + INBOX, BUCKET + CONFIGS)  # where the time of the last change says what was dropped again
_BLOCK = 1024 * 1024
_TRIES = 3
_ZEROS = bytes(_BLOCK)
_SECTOR = 512  # bytes that `st_blocks` counts by
_HOLES = 16  # times what a file takes on disk: one of more bytes is nearly all holes


@dataclass(frozen=True, kw_only=True, slots=True)
class CopiedFile:
    """A line of the list of a copy: a file, or a folder of the inbox with the rights that its sender has there."""

    path: str  # below the data folder
    size: int = 0
    sha256: str = ""
    mode: int = 0o600
    owner: tuple[int, int] = (0, 0)
    modified: float | None = None  # of what senders and authors own: when it was dropped
    metadata: dict[str, str] = field(default_factory=dict)
    folder: bool = False


class FileCopies:
    """The files of one copy of a data folder, in a folder that nobody else may enter."""

    def __init__(self, source: Path, target: Path, *, largest: int) -> None:
        """`largest`: bytes of an input that a job may read."""
        self._source, self._target, self._largest = source, target, largest
        self._times = RestoredTimes(source / RESTORED_TIMES)
        self.files: dict[str, CopiedFile] = {}
        self.left_out: dict[str, str] = {}

    def copy_below(self, folder: str, *, without: Collection[str] = ()) -> None:
        """Copy every file below a folder (no trailing slash); one that is not there has none."""
        waiting = [folder]
        while waiting:
            at = waiting.pop()
            try:
                with opened(self._source, at, FOLDER) as fd:
                    facts = os.fstat(fd)
                    with os.scandir(fd) as found:
                        entries = [(e.name, e.is_dir(follow_symlinks=False)) for e in found]
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                self.left_out[at] = error.strerror or "cannot be read"
                continue
            if at.startswith(_DATED):
                self.files[at] = _described(at, facts, folder=True)
            for name, is_folder in sorted(entries, reverse=True):
                path = f"{at}/{name}"
                if is_folder and not too_deep(path):
                    waiting.append(path)
                elif path not in without:
                    self.copy(path)

    def copy(self, path: str) -> CopiedFile | None:
        """Copy one file over what is there; None: it is gone, or left out."""
        why = ""
        for _ in range(_TRIES):
            try:
                copied = self._copy(path)
            except (FileNotFoundError, NotADirectoryError):
                return None
            except ObjectRefused as error:
                why = str(error)
                break
            except OSError as error:
                if error.filename is not None and str(error.filename).startswith(str(self._target)):
                    raise
                why = error.strerror or "cannot be read"
                break
            if copied is not None:
                self.files[path] = copied
                self.left_out.pop(path, None)
                return copied
            why = "somebody is writing it"
        self.remove(path)
        self.left_out[path] = why
        return None

    def write(self, path: str, body: bytes) -> None:
        """Make a file of the copy that the source need not have."""
        with self._made(path) as fd:
            write_all(fd, body)
        self.files[path] = CopiedFile(path=path, size=len(body), sha256=hashlib.sha256(body).hexdigest())

    def remove(self, path: str) -> None:
        (self._target / path).unlink(missing_ok=True)
        self.files.pop(path, None)

    def _copy(self, path: str) -> CopiedFile | None:
        key = path.removeprefix(BUCKET)
        with opened(self._source, dirname(path), PASSAGE) as folder:
            fd = open_file(folder, key)
        try:
            before = os.fstat(fd)
            if path.startswith(_DATED) and not finished(fd, before):
                return None
            if path.startswith(_DATED) and before.st_size > max(self._largest, _HOLES * before.st_blocks * _SECTOR):
                raise ObjectRefused(f"{key} is nearly all holes, and has more bytes than a job reads")
            with self._made(path) as out:
                digest = _copied(fd, out)
            if path.startswith(_DATED) and FileFacts.of(os.fstat(fd)) != FileFacts.of(before):
                return None
            copied = _described(path, before, sha256=digest, metadata=metadata_of(fd))
            earlier = self._times.of(key, FileFacts.of(before))
            return copied if earlier is None else replace(copied, modified=earlier)
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def _made(self, path: str) -> Iterator[int]:
        target = self._target / path
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            yield fd
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(target)) from error
        finally:
            os.close(fd)


def put_back(source: Path, target: Path, files: Iterable[CopiedFile]) -> dict[str, FileFacts]:
    """Copy listed files into a folder of our own, as they were; raises UsageError for one that is not as listed.

    Returns what the kernel says of the dated ones: it holds for as long as nobody changes them.
    """
    found: dict[str, FileFacts] = {}
    folders = []
    for one in files:
        place = target / _checked(one.path)
        if one.folder:
            place.mkdir(parents=True, exist_ok=True)
            folders.append(one)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            with opened(source, dirname(one.path), PASSAGE) as folder:
                fd = open_file(folder, basename(one.path))
        except (OSError, ObjectRefused) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise UsageError(f"{one.path} of the backup cannot be read ({why}); use another backup") from None
        try:
            out = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                _fill(fd, out, one)
            finally:
                os.close(out)
        finally:
            os.close(fd)
        if one.modified is not None:
            found[one.path] = FileFacts.of(place.stat())
    for one in reversed(folders):  # a folder that its owner may not write to is closed after its files are in it
        _own(target / one.path, one)
    return found


def _fill(fd: int, out: int, one: CopiedFile) -> None:
    if _copied(fd, out) != one.sha256:
        raise UsageError(f"{one.path} of the backup is not what was copied; use another backup")
    set_metadata(out, one.metadata)
    _own(out, one)


def _copied(fd: int, out: int) -> str:
    """Write what is left of one file into another, which is empty, with holes for its zeros; returns its SHA-256."""
    hasher, size = hashlib.sha256(), 0
    while block := os.read(fd, _BLOCK):
        hasher.update(block)
        size += len(block)
        if block == _ZEROS[: len(block)]:
            os.lseek(out, size, os.SEEK_SET)
        else:
            write_all(out, block)
    os.ftruncate(out, size)
    return hasher.hexdigest()


def _own(place: int | Path, one: CopiedFile) -> None:
    with contextlib.suppress(PermissionError):
        os.chown(place, *one.owner)
    os.chmod(place, one.mode)  # noqa: PTH101 - a descriptor, or a path


def _checked(path: str) -> str:
    if path.startswith("/") or not {"", ".", ".."}.isdisjoint(path.split("/")):
        raise UsageError(f"the list of the backup names {path!r}, which is no path below a data folder")
    return path


def write_list(place: Path, files: Iterable[CopiedFile]) -> str:
    """Write the list of a copy, a line for each file; returns its SHA-256."""
    hasher = hashlib.sha256()
    with place.open("wb") as out:
        for one in files:
            line = json.dumps(asdict(one)).encode() + b"\n"
            hasher.update(line)
            out.write(line)
    return hasher.hexdigest()


def read_list(place: Path, sha256: str) -> list[CopiedFile]:
    body = place.read_bytes()
    if hashlib.sha256(body).hexdigest() != sha256:
        raise UsageError(f"{place} is not what was written; use another backup")
    return [CopiedFile(**{**found, "owner": tuple(found["owner"])}) for found in map(json.loads, body.splitlines())]


def sync_all(folder: Path) -> None:
    """Everything on the file system of a folder is on disk when this returns; raises OSError if it could not be."""
    fd = os.open(folder, FOLDER)
    try:
        call = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
        if call is None:
            os.sync()
        elif call(fd) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(fd)


def _described(
    path: str, facts: os.stat_result, *, sha256: str = "", metadata: dict[str, str] | None = None, folder: bool = False
) -> CopiedFile:
    return CopiedFile(
        path=path,
        size=0 if folder else facts.st_size,
        sha256=sha256,
        mode=stat.S_IMODE(facts.st_mode),
        owner=(facts.st_uid, facts.st_gid),
        modified=FileFacts.of(facts).modified if path.startswith(_DATED) and not folder else None,
        metadata=metadata or {},
        folder=folder,
    )
