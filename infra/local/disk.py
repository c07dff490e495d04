"""What the folder bucket and the database need of the disk: folders that survive a power loss, and known versions."""

import contextlib
import ctypes
import json
import os
import sqlite3
import threading
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

RESTORED_TIMES = "restored.sqlite"
RESTORING = ".restoring"  # in a data folder: what `ade restore` has not put in place yet
_SYNC_FILE_RANGE: Any = getattr(ctypes.CDLL(None), "sync_file_range", None)
_RANGE_WRITE = 2
_RACY_SECONDS = 0.1  # a younger file may change again without a new modification time


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Create a folder and its parents; when this returns, they are on disk, since each parent is synced."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(mode, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        fd = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def make_private_folder(folder: Path) -> None:
    """Create a folder that only this user may enter; one that exists keeps its mode."""
    make_folder(folder, 0o700)


def make_private_file(path: Path) -> None:
    """Create an empty file that only this user may read, for a database; one that exists is not even opened.

    To close it again would release the locks that this process holds on it, and with them SQLite's.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDONLY | os.O_CLOEXEC, 0o600))


def start_writing(fd: int) -> None:
    """Have the kernel begin to write a file, where it can: of several that have begun, syncing all costs half."""
    if _SYNC_FILE_RANGE is not None:
        _SYNC_FILE_RANGE(ctypes.c_int(fd), ctypes.c_int64(0), ctypes.c_int64(0), ctypes.c_uint(_RANGE_WRITE))


def sync_file(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _signed(number: int) -> int:
    """A number as the database can hold it: a sender may date a file in any century, and some inodes fill 64 bits."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


class FileFacts(NamedTuple):
    """What the kernel knows of a file: while none of it changes, nor does its content."""

    inode: int
    size: int
    written_ns: int
    changed_ns: int

    @classmethod
    def of(cls, stat: os.stat_result) -> "FileFacts":
        return cls(_signed(stat.st_ino), stat.st_size, _signed(stat.st_mtime_ns), stat.st_ctime_ns)

    @property
    def modified(self) -> float:
        """`st_ctime`, to the last bit: stamps in the table are compared with it."""
        seconds, left = divmod(self.changed_ns, 1_000_000_000)
        return seconds + 1e-9 * left


class Known(NamedTuple):
    facts: FileFacts
    version: str
    metadata: dict[str, str]


class KnownFiles:
    """Versions of files by key, as long as the files are unchanged. Losing this costs time, nothing else."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()

    def get_all(self, keys: Sequence[str]) -> dict[str, Known]:
        marks = ",".join("?" * len(keys))
        try:
            rows = self._db.execute(
                f"SELECT key, inode, size, written_ns, changed_ns, version, metadata FROM files WHERE key IN ({marks})",  # noqa: S608 - only marks
                [os.fsencode(key) for key in keys],
            )
            return {
                os.fsdecode(key): Known(FileFacts(*facts), version, json.loads(metadata) if metadata else {})
                for key, *facts, version, metadata in rows
            }
        except (sqlite3.Error, ValueError):
            return {}

    def put(self, key: str, known: Known, *, now: float) -> None:
        if now - known.facts.modified < _RACY_SECONDS:
            return
        metadata = json.dumps(known.metadata) if known.metadata else ""
        with contextlib.suppress(sqlite3.Error):
            self._db.execute(
                "INSERT OR REPLACE INTO files (key, inode, size, written_ns, changed_ns, version, metadata)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (os.fsencode(key), *known.facts, known.version, metadata),
            )

    def purge(self, prefix: str) -> None:
        """Forget all keys below a prefix that ends in '/', and leave nothing of them in the file."""
        first = os.fsencode(prefix)
        self._db.execute("PRAGMA secure_delete = ON")
        self._db.execute("DELETE FROM files WHERE key >= ? AND key < ?", (first, first[:-1] + b"0"))
        self._db.execute("VACUUM")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def forget(self, keys: Collection[str]) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._db.executemany("DELETE FROM files WHERE key = ?", [(os.fsencode(key),) for key in keys])

    def close(self) -> None:
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        if db is not None:
            db.close()
            self._local.db = None

    @property
    def _db(self) -> sqlite3.Connection:
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        if db is None:
            with contextlib.suppress(OSError):
                make_private_file(self._path)
            db = sqlite3.connect(self._path, isolation_level=None, timeout=10)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = OFF")
            db.execute("DROP TABLE IF EXISTS hashes")  # of releases before this one
            db.execute(
                "CREATE TABLE IF NOT EXISTS files (key BLOB PRIMARY KEY, inode INTEGER, size INTEGER,"
                " written_ns INTEGER, changed_ns INTEGER, version TEXT, metadata TEXT) WITHOUT ROWID"
            )
            self._local.db = db
        return db


class RestoredTimes:
    """When files that came from a backup were dropped, as long as they are unchanged since.

    The kernel dates them by the restore. Without this, all that failed or expired would seem to be dropped again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None
        if path.exists():
            self._db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)

    def of(self, key: str, facts: FileFacts) -> float | None:
        """None: it was not restored, or has changed since."""
        if self._db is None:
            return None
        with self._lock:
            row = self._db.execute(
                "SELECT inode, size, written_ns, changed_ns, modified FROM times WHERE key = ?", (os.fsencode(key),)
            ).fetchone()
        return float(row[4]) if row is not None and FileFacts(*row[:4]) == facts else None

    def purge(self, prefix: str) -> None:
        """As `KnownFiles.purge`."""
        if not self._path.exists():
            return
        first = os.fsencode(prefix)
        with contextlib.closing(sqlite3.connect(self._path, isolation_level=None)) as db:
            db.execute("PRAGMA secure_delete = ON")
            db.execute("DELETE FROM times WHERE key >= ? AND key < ?", (first, first[:-1] + b"0"))
            db.execute("VACUUM")

    def write(self, times: Iterable[tuple[str, FileFacts, float]]) -> None:
        """Make the file; there is none yet."""
        make_private_file(self._path)
        db = sqlite3.connect(self._path)
        try:
            db.execute(
                "CREATE TABLE times (key BLOB PRIMARY KEY, inode INTEGER, size INTEGER, written_ns INTEGER,"
                " changed_ns INTEGER, modified REAL) WITHOUT ROWID"
            )
            rows = ((os.fsencode(key), *facts, modified) for key, facts, modified in times)
            db.executemany("INSERT INTO times VALUES (?, ?, ?, ?, ?, ?)", rows)
            db.commit()
        finally:
            db.close()

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None
