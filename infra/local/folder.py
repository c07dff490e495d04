"""ObjectStore on a folder: atomic renames, versions by content, half-written files ignored.

Theory of operation. A key is a path below the bucket folder. A write goes to a private folder on the same file
system, is synced and renamed, so readers see the old object or the new one; the folders are synced too, so acknowledged
writes survive a power loss (tests/power). A version is the SHA-256 of the content:
equal content is the same version, and reading a pinned version checks the hash while it copies. Senders use plain
`cp`: their file counts once no process has it open for writing, which the kernel knows exactly (it grants no read
lease on a file that is open for writing); where it cannot say, once it has not changed for a while.

Senders own folders of the bucket and may swap them at any moment. So no operation uses a path twice: each opens the
object's folder through no link (infra/local/beneath.py) and works on that descriptor. Links, special files and files
of others under a second name are not read. A file in the inbox that no job could read is not read to find its version.
What only the service itself may change, `access/`, is beside the bucket, where no other key leads.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
import shutil
import signal
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from posixpath import basename, dirname

from core.errors import (
    KeyRefused,
    ObjectChanged,
    ObjectMissing,
    ObjectRefused,
    ObjectTooLarge,
    PreconditionFailed,
    StoreUnavailable,
)
from core.keys import (
    ACCESS,
    CONFIGS,
    INBOX,
    MAX_KEY_BYTES,
    MAX_NAME_BYTES,
    OUTPUTS,
    WORK,
    check_key,
    is_set_aside,
    is_unfinished,
    refusal,
)
from core.ports import Body, Fetched, Folder, Level, Metadata, ObjectInfo, readable
from infra.local.beneath import FOLDER, PASSAGE, opened
from infra.local.disk import (
    RESTORED_TIMES,
    FileFacts,
    Known,
    KnownFiles,
    RestoredTimes,
    make_folder,
    make_private_folder,
    start_writing,
    sync_file,
)

_BLOCK = 1024 * 1024
_QUIET_SECONDS = 2.0
_ABANDONED_SECONDS = 3600.0
_KNOWN_FOLDERS = 1_000
_AT_ONCE = 500  # files whose versions are looked up together
_XATTR = "user.ade."
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_FOLDER = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV, errno.ENAMETOOLONG}
_NOT_AN_OBJECT = _NO_FOLDER | {errno.ENXIO, errno.EISDIR, errno.EACCES}
_SENDERS = (INBOX, CONFIGS)


class FolderStore:
    """A folder as a bucket. Several processes of one machine may share it."""

    def __init__(self, data_dir: Path, *, largest: int | None = None) -> None:
        """`largest`: bytes of the largest object in the inbox that is read to find its version; None: of any size."""
        self._data = data_dir = data_dir.absolute()
        self.root = data_dir / "bucket"
        self._tmp = data_dir / "tmp"
        self._locks = data_dir / "locks"
        make_private_folder(data_dir)
        for folder in (self.root / "inbox", self.root / "configs", self.root / "outputs"):
            make_folder(folder)
        with contextlib.suppress(OSError):  # where releases before this one kept it
            (self.root / ACCESS.rstrip("/")).rename(data_dir / ACCESS.rstrip("/"))
        for folder in (self._tmp, self._locks, data_dir / ACCESS.rstrip("/")):
            make_private_folder(folder)
        self._largest = largest
        self._interrupted = threading.Event()
        self._on_disk: set[str] = set()  # folders whose names this process has synced
        self._known = KnownFiles(data_dir / "hashes.sqlite")
        self._restored = RestoredTimes(data_dir / RESTORED_TIMES)
        self._collect_temporary()

    def interrupt(self) -> None:
        """This process ends: no longer read files of senders to find their versions. Safe from a signal handler."""
        self._interrupted.set()

    def head(self, key: str) -> ObjectInfo | None:
        try:
            with self._opened(key) as fd:
                return self._info(key, fd)
        except ObjectMissing:
            return None
        except OSError as error:
            raise ObjectRefused(f"object {key} cannot be read: {error.strerror}; check the file") from error

    def objects(self, prefix: str, *, unreadable: dict[str, str] | None = None) -> Iterator[ObjectInfo]:
        found = self._all(prefix)
        while batch := list(islice(found, _AT_ONCE)):
            known = self._known.get_all([key for key, _ in batch])
            for key, facts in batch:
                if (there := known.get(key)) is not None and there.facts == facts and key.startswith(_SENDERS):
                    # Unchanged since it was read: neither opened nor read again.
                    yield self._dated(_info(key, there.version, facts, there.metadata), facts)
                    continue
                try:
                    info = self.head(check_key(key))
                except (KeyRefused, ObjectRefused) as error:
                    if unreadable is not None:
                        unreadable[key] = str(error)
                    continue
                if info is not None:
                    yield info

    def keys(self, prefix: str) -> Iterator[str]:
        yield from (key for key, _ in self._all(prefix) if refusal(key) is None)

    def changed_since(self, prefix: str, at: float) -> Iterator[str]:
        """Files below `prefix` that changed at that time or later; does not read them."""
        yield from (key for key, facts in self._all(prefix) if facts.modified >= at)

    def folder(self, prefix: str) -> Folder:
        objects, folders = [], []
        for name, facts in self._entries(prefix):
            if facts is None:
                folders.append(f"{prefix}{name}/")
            elif (info := self.head(prefix + name)) is not None:
                objects.append(info)
        return Folder(objects=tuple(objects), folders=tuple(folders))

    def level(self, prefix: str) -> Level:
        entries = list(self._entries(prefix))
        files = [prefix + name for name, facts in entries if facts is not None]
        unreadable: dict[str, str] = {}
        return Level(
            keys=tuple(key for key in files if refusal(key) is None),
            folders=tuple(f"{prefix}{name}/" for name, facts in entries if facts is None),
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
                if (stands := os.fstat(fd).st_size) > limit:
                    raise ObjectTooLarge(f"object {key} is {stands} bytes; the limit here is {limit}")
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
        return Fetched(size=size, sha256=hasher.hexdigest(), version=hasher.hexdigest())

    def put(
        self, key: str, body: Body, *, if_version: str | None = None, if_absent: bool = False, metadata: Metadata = None
    ) -> ObjectInfo:
        self._check_target(key)
        with self._temporary(body, metadata or {}) as (temporary, digest, staged), contextlib.ExitStack() as held:
            facts = staged
            with self._locked(key):
                if if_absent or if_version is not None:
                    there = self.head(key)
                    if (there.version if there else None) != if_version:
                        found = f"version {there.version[:12]}" if there else "nothing"
                        raise PreconditionFailed(f"object {key}: expected {if_version or 'nothing'}, found {found}")
                folder = held.enter_context(self._renamed(temporary, key))
            self._sync_name(key, folder)
            with contextlib.suppress(FileNotFoundError):  # somebody has deleted it already
                facts = FileFacts.of(os.stat(basename(key), dir_fd=folder, follow_symlinks=False))
        return _info(key, self._unread(key, facts) or digest, facts, dict(metadata or {}))

    def put_new(self, bodies: Mapping[str, bytes]) -> frozenset[str]:
        """Each file's content is on disk before any has its name; then each folder is synced once for all of them."""
        by_folder: dict[str, list[str]] = {}
        for key in bodies:
            self._check_target(key)
            by_folder.setdefault(dirname(key), []).append(key)
        there: list[str] = []
        with contextlib.ExitStack() as held:
            files = {
                key: held.enter_context(self._temporary(body, {}, at_once=False))[0] for key, body in bodies.items()
            }
            for path in files.values():
                sync_file(path)
            with self._locked(*bodies):
                for keys in by_folder.values():
                    there += self._linked({key: files[key] for key in keys})
            self._sync_names(by_folder)
        return frozenset(there)

    def link(self, key: str, *, seconds: int, write: bool = False, save_as: str | None = None) -> str | None:
        del key, seconds, write, save_as
        return None  # nobody serves the folder but us

    def copy(self, source: str, target: str) -> None:
        """A hard link: staged files are never written to again, so sharing the content is safe."""
        self._check_target(target)
        self._check_target(source)
        temporary = self._tmp / secrets.token_hex(8)
        try:
            with opened(self._top(source), dirname(source), PASSAGE) as folder:
                os.link(basename(source), temporary, src_dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_FOLDER:
                raise
            raise ObjectMissing(f"object {source} is not there") from None
        try:
            if not stat.S_ISREG(temporary.lstat().st_mode):
                raise ObjectMissing(f"object {source} is a link or a special file, which cannot be copied")
            with self._renamed(temporary, target) as folder:
                self._sync_name(target, folder)
        finally:
            # Renaming onto another link of the same file does nothing and would leave this one behind.
            temporary.unlink(missing_ok=True)

    def delete(self, key: str) -> None:
        self.delete_all([key])

    def delete_all(self, keys: Sequence[str]) -> None:
        folders: dict[str, list[str]] = {}
        for key in keys:
            self._check_target(key)
            folders.setdefault(dirname(key), []).append(basename(key))
        for folder, names in folders.items():
            self._unlink(folder, names)

    def delete_prefix(self, prefix: str) -> int:
        keys = list(self.keys(prefix))
        self.delete_all(keys)
        if prefix.endswith("/") and prefix.startswith((WORK, OUTPUTS)):
            self._prune(prefix.rstrip("/"))
        return len(keys)

    def purgeable_folders(self, prefix: str) -> Iterator[str]:
        return iter(self.level(prefix).folders)

    def purge_former(self, key: str) -> int:
        """A folder keeps no former versions."""
        del key
        return 0

    def purge(self, prefix: str) -> int:
        """Hidden, unfinished and refused files and links go too; no link is followed."""
        if not prefix.endswith("/"):
            return self.delete_prefix(prefix)
        folder = prefix.rstrip("/")
        try:
            with opened(self._top(prefix), folder, FOLDER) as fd:
                gone = sum(len(files) + len(links) for files, links in _counted(fd))
            with opened(self._top(prefix), dirname(folder), FOLDER) as above:
                shutil.rmtree(basename(folder), dir_fd=above)
                sync_folder(above)
        except OSError as error:
            if error.errno not in _NO_FOLDER:
                raise
            gone = 0
        self._on_disk = {known for known in self._on_disk if not f"{known}/".startswith(prefix)}
        self._known.purge(prefix)
        self._restored.purge(prefix)
        return gone

    def complete(self, key: str) -> bool:
        """Whether the object exists and is no longer being written; True for one that cannot be read.

        Costs the same for a large file as for a small one: it is not read.
        """
        try:
            with self._opened(key) as fd:
                return not key.startswith(INBOX) or finished(fd, os.fstat(fd))
        except ObjectMissing:
            return False
        except (ObjectRefused, OSError):
            return True

    def exists(self, key: str) -> bool:
        """Whether a file is there, complete or not."""
        try:
            with self._opened(key):
                return True
        except ObjectMissing:
            return False
        except (ObjectRefused, OSError):
            return True

    def close(self) -> None:
        self._known.close()
        self._restored.close()

    def _collect_temporary(self) -> None:
        """Delete half-written files of dead processes; those of live processes are younger."""
        for path in self._tmp.iterdir():
            with contextlib.suppress(FileNotFoundError):
                if time.time() - path.lstat().st_ctime > _ABANDONED_SECONDS:
                    path.unlink()

    def _top(self, key: str) -> Path:
        """The folder that a key is a path below."""
        return self._data if key.startswith(ACCESS) else self.root

    def _check_target(self, key: str) -> None:
        """Raise KeyRefused for a key that can have no file."""
        if any(len(os.fsencode(part)) > MAX_NAME_BYTES for part in check_key(key).split("/")):
            raise KeyRefused(f"key {key[:80]!r}… has a part of more than {MAX_NAME_BYTES} bytes; shorten it")

    @contextlib.contextmanager
    def _opened(self, key: str) -> Iterator[int]:
        """A descriptor of the object: a regular file, reached through no link."""
        if refusal(key) is not None:
            raise ObjectMissing(f"object {key!r} is not there: no such key can be")
        try:
            with opened(self._top(key), dirname(key), PASSAGE) as folder:
                fd = open_file(folder, key)
        except OSError as error:
            if error.errno in _NOT_AN_OBJECT:
                raise ObjectMissing(f"object {key} is not there ({os.strerror(error.errno)})") from None
            raise
        try:
            yield fd
        finally:
            os.close(fd)

    def _info(self, key: str, fd: int) -> ObjectInfo | None:
        for _ in range(3):
            before = os.fstat(fd)
            if key.startswith(INBOX) and not finished(fd, before):
                return None
            facts = FileFacts.of(before)
            known = self._known.get_all([key]).get(key)
            if known is not None and known.facts == facts:
                version = known.version
            else:
                version = self._unread(key, facts) or self._hash(key, fd)
                if FileFacts.of(os.fstat(fd)) != facts:
                    continue
            metadata = metadata_of(fd) if key.startswith(INBOX) else {}
            if known is None or known.facts != facts:
                self._known.put(key, Known(facts, version, metadata), now=time.time())
            return self._dated(_info(key, version, facts, metadata), facts)
        return None

    def _dated(self, info: ObjectInfo, facts: FileFacts) -> ObjectInfo:
        """What was restored from a backup is as old as it was there: it was not dropped again."""
        at = self._restored.of(info.key, facts)
        return info if at is None else replace(info, modified=at)

    def _unread(self, key: str, facts: FileFacts) -> str | None:
        """The version of a file that is too large for any job: not its content's, which nobody will read."""
        if self._largest is None or facts.size <= self._largest or not key.startswith(_SENDERS):
            return None
        return f"unread-{facts.size}-{facts.written_ns}"

    def _hash(self, key: str, fd: int) -> str:
        hasher, at = hashlib.sha256(), 0
        while block := os.pread(fd, _BLOCK, at):
            if self._interrupted.is_set() and key.startswith(_SENDERS):
                raise StoreUnavailable(f"object {key} was not read to its end: this process is stopping")
            hasher.update(block)
            at += len(block)
        return hasher.hexdigest()

    def _entries(self, prefix: str) -> list[tuple[str, FileFacts | None]]:
        """Names in one folder, in key order: files with what is known of them, and real folders (None); nothing
        unfinished."""
        found: list[tuple[str, FileFacts | None]] = []
        try:
            with opened(self._top(prefix), prefix.removesuffix("/"), FOLDER) as fd, os.scandir(fd) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if not entry.name.startswith(".") or is_set_aside(f"{prefix}{entry.name}/"):
                            found.append((entry.name, None))
                    elif entry.is_file(follow_symlinks=False) and not is_unfinished(entry.name):
                        with contextlib.suppress(FileNotFoundError):
                            found.append((entry.name, FileFacts.of(entry.stat(follow_symlinks=False))))
        except PermissionError as error:  # the folder's owner is to blame, not the disk
            raise ObjectRefused(f"folder {prefix} cannot be listed; check its permissions") from error
        except ValueError:
            return []
        except OSError as error:
            if error.errno not in _NO_FOLDER:
                raise
            return []
        return sorted(found, key=lambda e: e[0] + "/" if e[1] is None else e[0])

    def _all(self, prefix: str) -> Iterator[tuple[str, FileFacts]]:
        folder = prefix[: prefix.rfind("/") + 1]
        yield from ((key, facts) for key, facts in self._walk(folder) if key.startswith(prefix))

    def _walk(self, prefix: str) -> Iterator[tuple[str, FileFacts]]:
        """Every file below, in key order, however deep. A folder too deep for any valid key is returned in place of
        its content."""
        levels = [(prefix, iter(self._entries(prefix)))]
        while levels:
            at, entries = levels[-1]
            name, facts = next(entries, ("", None))
            if not name:
                levels.pop()
            elif facts is not None or too_deep(at + name):
                yield at + name, facts or FileFacts(0, 0, 0, 0)
            else:
                levels.append((f"{at}{name}/", iter(self._entries(f"{at}{name}/"))))

    @contextlib.contextmanager
    def _locked(self, *keys: str) -> Iterator[None]:
        """One writer per key across all processes, so that compare and rename are one step.

        Keys can share a lock; those of several are taken in their order, so that nobody waits in a circle.
        """
        with contextlib.ExitStack() as held:
            for slot in sorted({hashlib.sha256(key.encode()).digest()[0] for key in keys}):
                fd = os.open(self._locks / f"{slot:02x}", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
                held.callback(os.close, fd)
                fcntl.flock(fd, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def _temporary(
        self, body: Body, metadata: Mapping[str, str], *, at_once: bool = True
    ) -> Iterator[tuple[Path, str, FileFacts]]:
        """A file with that content, but without a name in the bucket: where, its digest, what it is.

        It is on disk; or on its way there, and to be synced by the caller, if not `at_once`.
        """
        temporary = self._tmp / secrets.token_hex(8)
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            try:
                digest = _write(fd, body)
                set_metadata(fd, metadata)
                (os.fsync if at_once else start_writing)(fd)
                facts = FileFacts.of(os.fstat(fd))
            finally:
                os.close(fd)
            yield temporary, digest, facts
        finally:
            temporary.unlink(missing_ok=True)  # it may have been renamed

    @contextlib.contextmanager
    def _renamed(self, temporary: Path, key: str) -> Iterator[int]:
        """Rename a file to its key; its folder."""
        with self._named(key, lambda folder: os.rename(temporary, basename(key), dst_dir_fd=folder)) as folder:
            yield folder

    def _linked(self, files: Mapping[str, Path]) -> list[str]:
        """Give files their names in one folder where there are none; the keys where there was something."""
        there: list[str] = []

        def link(folder: int) -> None:
            there.clear()
            for key, temporary in files.items():
                try:
                    os.link(temporary, basename(key), dst_dir_fd=folder, follow_symlinks=False)
                except FileExistsError:
                    there.append(key)

        with self._named(next(iter(files)), link):
            return there

    @contextlib.contextmanager
    def _named(self, key: str, name: Callable[[int], None]) -> Iterator[int]:
        """Call `name` with the folder of a key, which may be missing or removed at this very moment; the folder."""
        with contextlib.ExitStack() as held:
            for _ in range(20):
                try:
                    folder = held.enter_context(opened(self._top(key), dirname(key), FOLDER, make=True))
                    name(folder)
                    break
                except FileNotFoundError:
                    held.close()
                except (FileExistsError, NotADirectoryError, IsADirectoryError):
                    raise KeyRefused(
                        f"cannot write {key}: in a folder bucket a name is an object or a folder, not both; remove one"
                    ) from None
                except OSError as error:
                    raise _refused(key, error) from None
            else:
                raise FileNotFoundError(f"cannot write {key}: its folder is removed again and again")
            yield folder

    def _sync_name(self, key: str, folder: int) -> None:
        """Sync a new name and its parent folders to disk.

        Not for staged files: a job whose staged files are lost runs again, and nothing else is lost with them.
        """
        if key.startswith(WORK):
            return
        sync_folder(folder)
        for new in self._new_folders(dirname(key)):
            self._sync(dirname(new), self._top(key))
            self._on_disk.add(new)

    def _sync_names(self, folders: Collection[str]) -> None:
        """The same for new names in several folders of the bucket, each of which is synced once."""
        new = {found for folder in folders for found in self._new_folders(folder)}
        for folder in {*folders, *map(dirname, new)}:
            self._sync(folder, self.root)
        self._on_disk |= new

    def _new_folders(self, folder: str) -> list[str]:
        """A folder and those above it whose names this process has not synced."""
        if len(self._on_disk) > _KNOWN_FOLDERS:
            self._on_disk.clear()
        found = []
        while folder and folder not in self._on_disk:
            found.append(folder)
            folder = dirname(folder)
        return found

    def _sync(self, path: str, top: Path) -> None:
        """Sync a folder's listing to disk; does nothing if the folder is gone."""
        try:
            with opened(top, path) as folder:
                sync_folder(folder)
        except OSError as error:
            if error.errno not in _NO_FOLDER:
                raise

    def _unlink(self, folder: str, names: list[str]) -> None:
        """Remove files of one folder, and the folder if it is ours and has become empty."""
        keys = [f"{folder}/{name}" for name in names]
        ours = keys[0].startswith((WORK, OUTPUTS))
        try:
            with opened(self._top(keys[0]), folder) as fd:
                for name in names:
                    with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                        os.unlink(name, dir_fd=fd)
                if not ours:
                    sync_folder(fd)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            raise _refused(keys[0], error) from None
        self._known.forget(keys)
        if ours:
            left = self._prune(folder)
            if not left.startswith(WORK.rstrip("/")):
                self._sync(left, self.root)

    def _prune(self, folder: str) -> str:
        """Remove folders that became empty, up to the first level below the root; returns their parent folder."""
        while "/" in folder:
            try:
                with opened(self.root, dirname(folder), PASSAGE) as above:
                    os.rmdir(basename(folder), dir_fd=above)
            except OSError:
                return folder
            self._on_disk.discard(folder)
            folder = dirname(folder)
        return folder


def _counted(folder: int) -> Iterator[tuple[list[str], list[str]]]:
    """The files of each folder below one, and the links to folders."""
    for _, folders, files, fd in os.fwalk(dir_fd=folder, follow_symlinks=False):
        yield files, [name for name in folders if stat.S_ISLNK(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)]


def sync_folder(folder: int) -> None:
    os.fsync(folder)


def _refused(key: str, error: OSError) -> Exception:
    if error.errno in (errno.ELOOP, errno.EXDEV):
        return KeyRefused(f"key {key!r} leads through a link, which is not followed; make it a real folder")
    return error


def open_file(folder: int, key: str) -> int:
    """A descriptor of a regular file in a folder. Anything else is not even opened: that could wake its other end."""
    name = basename(key)
    if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise OSError(errno.ELOOP, "it is a link or a special file; drop the file itself")
    fd = os.open(name, _OPEN, dir_fd=folder)
    facts = os.fstat(fd)
    if not stat.S_ISREG(facts.st_mode):
        os.close(fd)
        raise OSError(errno.ELOOP, "it is a link or a special file; drop the file itself")
    if facts.st_nlink > 1 and key.startswith(_SENDERS) and facts.st_uid != os.fstat(folder).st_uid:
        os.close(fd)
        raise ObjectRefused(f"object {key} is another name (hard link) of somebody else's file; drop a copy of it")
    return fd


def too_deep(folder: str) -> bool:
    """Whether a folder's own key is so long that no key in it can be valid."""
    return len(os.fsencode(folder)) > MAX_KEY_BYTES


def _pinned(key: str, version: str | None, digest: str) -> None:
    if version is not None and version != digest:
        raise ObjectChanged(f"object {key} is no longer at version {version[:12]}; it was replaced")


def _info(key: str, version: str, facts: FileFacts, metadata: dict[str, str]) -> ObjectInfo:
    return ObjectInfo(
        key=key, version=version, digest=version, size=facts.size, modified=facts.modified, metadata=metadata
    )


def _write(fd: int, body: bytes | Path) -> str:
    if isinstance(body, bytes):
        write_all(fd, body)
        return hashlib.sha256(body).hexdigest()
    hasher = hashlib.sha256()
    with body.open("rb") as source:
        while block := source.read(_BLOCK):
            hasher.update(block)
            write_all(fd, block)
    return hasher.hexdigest()


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def finished(fd: int, facts: os.stat_result) -> bool:
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


def set_metadata(fd: int, metadata: Mapping[str, str]) -> None:
    """Keep metadata with a file, where its file system can."""
    for name, value in metadata.items():
        with contextlib.suppress(OSError):
            os.setxattr(fd, _XATTR + name, value.encode())


def metadata_of(fd: int) -> dict[str, str]:
    found = {}
    with contextlib.suppress(OSError, UnicodeDecodeError):
        for name in os.listxattr(fd):
            if name.startswith(_XATTR):
                found[name.removeprefix(_XATTR)] = os.getxattr(fd, name).decode()
    return found
