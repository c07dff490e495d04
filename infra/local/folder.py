"""ObjectStore on a folder: atomic renames, versions by content, half-written files ignored.

Theory of operation. A key is a path below the bucket folder. A write goes to a private folder on the same file
system, is synced and renamed, so readers see the old object or the new one; the folders are synced too, so acknowledged
writes survive a power loss (tests/power). A version is the SHA-256 of the content:
equal content is the same version, and reading a pinned version checks the hash while it copies. Senders use plain
`cp`: their file counts once no process has it open for writing, which the kernel knows exactly (it grants no read
lease on a file that is open for writing); where it cannot say, once it has not changed for a while. Links and special
files are never followed or read: a sender must not be able to make us read another file.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
import signal
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from core.errors import (
    KeyRefused,
    ObjectChanged,
    ObjectMissing,
    ObjectRefused,
    ObjectTooLarge,
    PreconditionFailed,
)
from core.keys import INBOX, MAX_KEY_BYTES, OUTPUTS, WORK, check_key, is_unfinished, refusal
from core.ports import Body, Fetched, Folder, Level, Metadata, ObjectInfo, readable
from infra.local.disk import HashCache, make_folder, sync_folder

_BLOCK = 1024 * 1024
_QUIET_SECONDS = 2.0
_ABANDONED_SECONDS = 3600.0
_MAX_NAME_BYTES = 255
_KNOWN_FOLDERS = 10_000
_XATTR = "user.ade."
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NOT_AN_OBJECT = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.EACCES, errno.ENAMETOOLONG}


class FolderStore:
    """A folder as a bucket. Several processes of one machine may share it."""

    def __init__(self, data_dir: Path) -> None:
        data_dir = data_dir.absolute()
        self.root = data_dir / "bucket"
        self._tmp = data_dir / "tmp"
        self._locks = data_dir / "locks"
        for folder in (self.root / "inbox", self.root / "configs", self.root / "outputs", self._tmp, self._locks):
            make_folder(folder)
        self._on_disk: set[Path] = set()  # folders whose names this process has synced
        self._real = os.path.realpath(self.root)
        self._hashes = HashCache(data_dir / "hashes.sqlite")
        self._collect_temporary()

    def head(self, key: str) -> ObjectInfo | None:
        try:
            with self._opened(key) as fd:
                return self._info(key, fd)
        except ObjectMissing:
            return None
        except OSError as error:
            raise ObjectRefused(f"object {key} cannot be read: {error.strerror}; check the file") from error

    def objects(self, prefix: str, *, unreadable: dict[str, str] | None = None) -> Iterator[ObjectInfo]:
        for key in self._all(prefix):
            try:
                info = self.head(check_key(key))
            except (KeyRefused, ObjectRefused) as error:
                if unreadable is not None:
                    unreadable[key] = str(error)
                continue
            if info is not None:
                yield info

    def keys(self, prefix: str) -> Iterator[str]:
        yield from (key for key in self._all(prefix) if refusal(key) is None)

    def folder(self, prefix: str) -> Folder:
        objects, folders = [], []
        for name, is_folder in self._entries(prefix):
            if is_folder:
                folders.append(f"{prefix}{name}/")
            elif (info := self.head(prefix + name)) is not None:
                objects.append(info)
        return Folder(objects=tuple(objects), folders=tuple(folders))

    def level(self, prefix: str) -> Level:
        entries = list(self._entries(prefix))
        files = [prefix + name for name, is_folder in entries if not is_folder]
        unreadable: dict[str, str] = {}
        return Level(
            keys=tuple(key for key in files if refusal(key) is None),
            folders=tuple(f"{prefix}{name}/" for name, is_folder in entries if is_folder),
            infos=lambda keys: readable(keys, self.head, unreadable),
            unreadable=unreadable,
            refused_keys=tuple(key for key in files if refusal(key) is not None),
        )

    def read(self, key: str, *, version: str | None = None, limit: int) -> bytes:
        with self._opened(key) as fd:
            size = os.fstat(fd).st_size
            if size > limit:
                raise ObjectTooLarge(f"object {key} is {size} bytes; the limit here is {limit}")
            body = bytearray()
            while len(body) <= limit and (block := os.read(fd, _BLOCK)):
                body += block
        digest = hashlib.sha256(body).hexdigest()
        _pinned(key, version, digest)
        return bytes(body)

    def fetch(self, key: str, to: Path, *, version: str | None = None, limit: int) -> Fetched:
        hasher, size = hashlib.sha256(), 0
        with self._opened(key) as fd, to.open("xb") as out:
            try:
                while block := os.read(fd, _BLOCK):
                    size += len(block)
                    if size > limit:
                        raise ObjectTooLarge(f"object {key} is over the limit of {limit} bytes")
                    hasher.update(block)
                    out.write(block)
                out.flush()
                _pinned(key, version, hasher.hexdigest())
            except (ObjectChanged, ObjectTooLarge, OSError):
                to.unlink(missing_ok=True)
                raise
        return Fetched(size=size, sha256=hasher.hexdigest())

    def put(
        self, key: str, body: Body, *, if_version: str | None = None, if_absent: bool = False, metadata: Metadata = None
    ) -> ObjectInfo:
        target = self._target(key)
        temporary = self._tmp / secrets.token_hex(8)
        try:
            with temporary.open("xb") as out:
                digest = _write(out.fileno(), body)
                for name, value in (metadata or {}).items():
                    with contextlib.suppress(OSError):
                        os.setxattr(out.fileno(), _XATTR + name, value.encode())
                os.fsync(out.fileno())
                written = os.fstat(out.fileno())
            with self._locked(key):
                if if_absent or if_version is not None:
                    there = self.head(key)
                    if (there.version if there else None) != if_version:
                        found = f"version {there.version[:12]}" if there else "nothing"
                        raise PreconditionFailed(f"object {key}: expected {if_version or 'nothing'}, found {found}")
                _rename(temporary, target, key)
            self._keep(key, target.parent)
        finally:
            temporary.unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):  # somebody has deleted it already
            written = target.lstat()
        now = written
        self._hashes.put(key, now.st_ino, now.st_size, now.st_ctime_ns, digest, now=time.time())
        return _info(key, digest, now, dict(metadata or {}))

    def link(self, key: str, *, seconds: int, write: bool = False, save_as: str | None = None) -> str | None:
        del key, seconds, write, save_as
        return None  # nobody serves the folder but us

    def copy(self, source: str, target: str) -> None:
        """A hard link: staged files are never written to again, so sharing the content is safe."""
        temporary, to = self._tmp / secrets.token_hex(8), self._target(target)
        try:
            os.link(self._target(source), temporary, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            raise ObjectMissing(f"object {source} is not there") from None
        try:
            if not stat.S_ISREG(temporary.lstat().st_mode):
                raise ObjectMissing(f"object {source} is a link or a special file, which cannot be copied")
            _rename(temporary, to, target)
        finally:
            # Renaming onto another link of the same file does nothing and would leave this one behind.
            temporary.unlink(missing_ok=True)
        self._keep(target, to.parent)

    def delete(self, key: str) -> None:
        self.delete_all([key])

    def delete_all(self, keys: Sequence[str]) -> None:
        changed = {folder: None for key in keys if (folder := self._unlink(key)) is not None}
        for folder in changed:
            sync_folder(folder)

    def delete_prefix(self, prefix: str) -> int:
        keys = list(self.keys(prefix))
        self.delete_all(keys)
        if prefix.endswith("/") and prefix.startswith((WORK, OUTPUTS)):
            self._prune(self._path(prefix.rstrip("/")))
        return len(keys)

    def complete(self, key: str) -> bool:
        """Whether the object exists and is no longer being written; True for one that cannot be read.

        Costs the same for a large file as for a small one: it is not read.
        """
        try:
            with self._opened(key) as fd:
                return not key.startswith(INBOX) or _finished(fd, os.fstat(fd))
        except ObjectMissing:
            return False
        except OSError:
            return True

    def close(self) -> None:
        self._hashes.close()

    def _collect_temporary(self) -> None:
        """Delete half-written files of dead processes; those of live processes are younger."""
        for path in self._tmp.iterdir():
            with contextlib.suppress(FileNotFoundError):
                if time.time() - path.lstat().st_ctime > _ABANDONED_SECONDS:
                    path.unlink()

    def _path(self, key: str) -> Path:
        return self.root / check_key(key)

    def _target(self, key: str) -> Path:
        """The path to write or remove a key: below the bucket, through no link, with a valid file name."""
        path = self._path(key)
        if any(len(os.fsencode(part)) > _MAX_NAME_BYTES for part in path.parts):
            raise KeyRefused(f"key {key[:80]!r}… has a part of more than {_MAX_NAME_BYTES} bytes; shorten it")
        if not self._unlinked(key.rpartition("/")[0]):
            raise KeyRefused(f"key {key!r} leads through a link, which is not followed; make it a real folder")
        return path

    def _unlinked(self, folder: str) -> bool:
        """Whether no part of a folder's path is a link; True if it does not exist yet."""
        return os.path.realpath(self.root / folder) == f"{self._real}/{folder}".rstrip("/")

    @contextlib.contextmanager
    def _opened(self, key: str) -> Iterator[int]:
        """A descriptor of the object: a regular file, reached through no link."""
        try:
            fd = os.open(self._path(key), _OPEN)
        except KeyRefused:
            raise ObjectMissing(f"object {key!r} is not there: no such key can be") from None
        except OSError as error:
            if error.errno in _NOT_AN_OBJECT:
                raise ObjectMissing(f"object {key} is not there ({os.strerror(error.errno)})") from None
            raise
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode) or not _is_at(fd, f"{self._real}/{key}"):
                raise ObjectMissing(
                    f"object {key} is a link or a special file, which is not read; drop the file itself"
                )
            yield fd
        finally:
            os.close(fd)

    def _info(self, key: str, fd: int) -> ObjectInfo | None:
        for _ in range(3):
            before = os.fstat(fd)
            if key.startswith(INBOX) and not _finished(fd, before):
                return None
            facts = (before.st_ino, before.st_size, before.st_ctime_ns)
            digest = self._hashes.get(key, *facts)
            if digest is None:
                digest = _hash(fd)
                after = os.fstat(fd)
                if (after.st_ino, after.st_size, after.st_ctime_ns) != facts:
                    continue
                self._hashes.put(key, *facts, digest, now=time.time())
            metadata = _metadata(fd) if key.startswith(INBOX) else {}
            return _info(key, digest, before, metadata)
        return None

    def _entries(self, prefix: str) -> list[tuple[str, bool]]:
        """Names in one folder, in key order: files and real folders, nothing unfinished."""
        found: list[tuple[str, bool]] = []
        if not self._unlinked(prefix.removesuffix("/")):
            return found
        try:
            with os.scandir(self.root / prefix) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if not entry.name.startswith("."):
                            found.append((entry.name, True))
                    elif entry.is_file(follow_symlinks=False) and not is_unfinished(entry.name):
                        found.append((entry.name, False))
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return []
        except PermissionError as error:  # the folder's owner is to blame, not the disk
            raise ObjectRefused(f"folder {prefix} cannot be listed; check its permissions") from error
        return sorted(found, key=lambda e: e[0] + "/" if e[1] else e[0])

    def _all(self, prefix: str) -> Iterator[str]:
        folder = prefix[: prefix.rfind("/") + 1]
        yield from (key for key in self._walk(folder) if key.startswith(prefix))

    def _walk(self, prefix: str) -> Iterator[str]:
        """Every file below, in key order, however deep. A folder too deep for any valid key is returned in place of
        its content."""
        levels = [(prefix, iter(self._entries(prefix)))]
        while levels:
            at, entries = levels[-1]
            name, is_folder = next(entries, (None, False))
            if name is None:
                levels.pop()
            elif not is_folder or too_deep(at + name):
                yield at + name
            else:
                levels.append((f"{at}{name}/", iter(self._entries(f"{at}{name}/"))))

    @contextlib.contextmanager
    def _locked(self, key: str) -> Iterator[None]:
        """One writer per key across all processes, so that compare and rename are one step."""
        slot = hashlib.sha256(key.encode()).digest()[0]
        fd = os.open(self._locks / f"{slot:02x}", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def _keep(self, key: str, folder: Path) -> None:
        """Sync a new name and its parent folders to disk.

        Not for staged files: a job whose staged files are lost runs again, and nothing else is lost with them.
        """
        if key.startswith(WORK):
            return
        sync_folder(folder)
        if len(self._on_disk) > _KNOWN_FOLDERS:
            self._on_disk.clear()
        while folder != self.root and folder not in self._on_disk:
            sync_folder(folder.parent)
            self._on_disk.add(folder)
            folder = folder.parent

    def _unlink(self, key: str) -> Path | None:
        """Remove a file; returns the folder to sync, if any."""
        path = self._target(key)
        folder: Path | None = path.parent
        try:
            path.unlink()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            folder = None
        self._hashes.forget(key)
        if key.startswith((WORK, OUTPUTS)):
            folder = self._prune(path.parent)
        return None if key.startswith(WORK) else folder

    def _prune(self, folder: Path) -> Path:
        """Remove folders that became empty, up to the first level below the root; returns their parent folder."""
        while len(folder.relative_to(self.root).parts) > 1:
            try:
                folder.rmdir()
            except OSError:
                return folder
            self._on_disk.discard(folder)
            folder = folder.parent
        return folder


def too_deep(folder: str) -> bool:
    """Whether a folder's own key is so long that no key in it can be valid."""
    return len(os.fsencode(folder)) > MAX_KEY_BYTES


def _pinned(key: str, version: str | None, digest: str) -> None:
    if version is not None and version != digest:
        raise ObjectChanged(f"object {key} is no longer at version {version[:12]}; it was replaced")


def _info(key: str, digest: str, facts: os.stat_result, metadata: dict[str, str]) -> ObjectInfo:
    return ObjectInfo(
        key=key,
        version=digest,
        digest=digest,
        size=facts.st_size,
        modified=facts.st_ctime,
        metadata=metadata,
    )


def _write(fd: int, body: bytes | Path) -> str:
    if isinstance(body, bytes):
        _write_all(fd, body)
        return hashlib.sha256(body).hexdigest()
    hasher = hashlib.sha256()
    with body.open("rb") as source:
        while block := source.read(_BLOCK):
            hasher.update(block)
            _write_all(fd, block)
    return hasher.hexdigest()


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _rename(temporary: Path, target: Path, key: str) -> None:
    """Rename into a folder that may be missing, or removed at this very moment."""
    for _ in range(20):
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary.rename(target)
        except FileNotFoundError:
            continue
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise KeyRefused(
                f"cannot write {key}: in a folder bucket a name is an object or a folder, not both; remove one"
            ) from None
        return
    raise FileNotFoundError(f"cannot write {key}: its folder is removed again and again")


def _hash(fd: int) -> str:
    hasher, at = hashlib.sha256(), 0
    while block := os.pread(fd, _BLOCK, at):
        hasher.update(block)
        at += len(block)
    return hasher.hexdigest()


def _finished(fd: int, facts: os.stat_result) -> bool:
    """Whether no process has the file open for writing."""
    setsig = getattr(fcntl, "F_SETSIG", 10)
    setlease = getattr(fcntl, "F_SETLEASE", 1024)
    try:
        # A writer that breaks the lease sends a signal; SIGIO would end this process, SIGURG is ignored by default.
        fcntl.fcntl(fd, setsig, signal.SIGURG)
        fcntl.fcntl(fd, setlease, fcntl.F_RDLCK)
        fcntl.fcntl(fd, setlease, fcntl.F_UNLCK)
    except OSError as error:
        if error.errno == errno.EAGAIN:
            return False
        return time.time() - facts.st_ctime > _QUIET_SECONDS
    return True


def _metadata(fd: int) -> dict[str, str]:
    found = {}
    with contextlib.suppress(OSError, UnicodeDecodeError):
        for name in os.listxattr(fd):
            if name.startswith(_XATTR):
                found[name.removeprefix(_XATTR)] = os.getxattr(fd, name).decode()
    return found


def _is_at(fd: int, path: str) -> bool:
    """Whether the open file was reached at `path` through no link, according to the kernel if it knows."""
    try:
        real = str(Path(f"/proc/self/fd/{fd}").readlink())
    except OSError:
        return os.path.realpath(path) == path
    # Replaced or deleted since it was opened: still the complete old object.
    return real in (path, f"{path} (deleted)")
