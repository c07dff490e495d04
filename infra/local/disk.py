"""What the folder bucket and the database need of the disk: folders that survive a power loss, and cached hashes."""

import contextlib
import os
import sqlite3
import threading
from pathlib import Path

_RACY_SECONDS = 0.1  # a younger file may change again without a new modification time


def make_folder(folder: Path) -> None:
    """Create a folder and its parents; when this returns, they are on disk, since each parent is synced."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Sync a folder's listing to disk; does nothing if the folder is gone."""
    with contextlib.suppress(FileNotFoundError):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


class HashCache:
    """Content hash by path, inode, size and change time. Losing it costs time, nothing else."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()

    def get(self, path: str, inode: int, size: int, changed_ns: int) -> str | None:
        try:
            row = self._db.execute(
                "SELECT sha256 FROM hashes WHERE path = ? AND inode = ? AND size = ? AND changed_ns = ?",
                (path, inode, size, changed_ns),
            ).fetchone()
        except sqlite3.Error:
            return None
        return row[0] if row else None

    def put(self, path: str, inode: int, size: int, changed_ns: int, sha256: str, *, now: float) -> None:
        if now - changed_ns / 1e9 < _RACY_SECONDS:
            return
        with contextlib.suppress(sqlite3.Error):
            self._db.execute(
                "INSERT OR REPLACE INTO hashes (path, inode, size, changed_ns, sha256) VALUES (?, ?, ?, ?, ?)",
                (path, inode, size, changed_ns, sha256),
            )

    def forget(self, path: str) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("DELETE FROM hashes WHERE path = ?", (path,))

    def close(self) -> None:
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        if db is not None:
            db.close()
            self._local.db = None

    @property
    def _db(self) -> sqlite3.Connection:
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        if db is None:
            db = sqlite3.connect(self._path, isolation_level=None, timeout=10)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = OFF")
            db.execute(
                "CREATE TABLE IF NOT EXISTS hashes (path TEXT PRIMARY KEY, inode INTEGER, size INTEGER,"
                " changed_ns INTEGER, sha256 TEXT) WITHOUT ROWID"
            )
            self._local.db = db
        return db
