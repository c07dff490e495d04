"""JobTable and WorkQueue on one SQLite file in WAL mode. All SQL stands in the two classes' statements.

Every write is one BEGIN IMMEDIATE transaction, synced to disk (synchronous = FULL): what a call acknowledged
survives the process and the power. Several processes of one machine may share the file.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from core.errors import StoreUnavailable
from infra.durable import make_folder

SCHEMA_VERSION = 1
SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
  job_id     TEXT PRIMARY KEY,
  tenant     TEXT NOT NULL,
  workflow   TEXT NOT NULL,
  line       TEXT NOT NULL,   -- jobs of one line replace each other
  state      TEXT NOT NULL,
  created_at REAL NOT NULL,
  wake_at    REAL,            -- when the janitor should look; see core/chores.py
  rev        INTEGER NOT NULL,
  doc        TEXT NOT NULL    -- the whole record, JSON
);
CREATE INDEX IF NOT EXISTS jobs_line ON jobs (line);
CREATE INDEX IF NOT EXISTS jobs_wake ON jobs (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS jobs_created ON jobs (created_at, job_id);
CREATE INDEX IF NOT EXISTS jobs_state ON jobs (state, created_at, job_id);
CREATE INDEX IF NOT EXISTS jobs_tenant ON jobs (tenant, state, created_at, job_id);
CREATE INDEX IF NOT EXISTS jobs_running ON jobs (tenant, workflow) WHERE state = 'RUNNING';

CREATE TABLE IF NOT EXISTS messages (
  job_id     TEXT PRIMARY KEY, -- a message says "look at this job": two would say no more
  tenant     TEXT NOT NULL,
  priority   INTEGER NOT NULL,
  rank       REAL NOT NULL,    -- send time less a head start by priority: orders a lane, starves nobody
  ready      INTEGER NOT NULL, -- 0: hidden until visible_at
  visible_at REAL NOT NULL,
  sent_at    REAL NOT NULL,
  receives   INTEGER NOT NULL DEFAULT 0,
  receipt    TEXT UNIQUE
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS messages_lane ON messages (tenant, rank) WHERE ready = 1;
CREATE INDEX IF NOT EXISTS messages_hidden ON messages (visible_at) WHERE ready = 0;

CREATE TABLE IF NOT EXISTS lanes (tenant TEXT PRIMARY KEY, served REAL NOT NULL) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS dead_letters (
  job_id TEXT PRIMARY KEY, tenant TEXT NOT NULL, priority INTEGER NOT NULL, reason TEXT NOT NULL, at REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS pauses (
  tenant TEXT NOT NULL, workflow TEXT NOT NULL, since REAL NOT NULL, by TEXT NOT NULL, -- '' stands for all
  PRIMARY KEY (tenant, workflow)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS leases (name TEXT PRIMARY KEY, owner TEXT NOT NULL, expires REAL NOT NULL) WITHOUT ROWID;

-- The greatest fence of the rows of a tenant that were removed: what comes after them starts above it.
CREATE TABLE IF NOT EXISTS fences (tenant TEXT PRIMARY KEY, fence INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS generations (name TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
"""


class Database:
    """Connections to one file: one per thread, opened when first used."""

    def __init__(self, path: Path) -> None:
        make_folder(path.parent)
        self.path = path
        self.folder = path.parent
        self._local = threading.local()
        self._all: list[tuple[threading.Thread, sqlite3.Connection]] = []
        self._lock = threading.Lock()
        with self.write() as db:
            found = db.execute("PRAGMA user_version").fetchone()[0]
            if found > SCHEMA_VERSION:
                raise StoreUnavailable(
                    f"{path} was made by a newer ade-drop (schema {found}, this one knows {SCHEMA_VERSION}); upgrade"
                )
            for statement in SCHEMA.split(";\n"):
                if statement.strip():
                    db.execute(statement)
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def read(self) -> sqlite3.Connection:
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        if db is None:
            db = sqlite3.connect(self.path, isolation_level=None, timeout=30, check_same_thread=False)
            db.row_factory = sqlite3.Row
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            self._local.db = db
            self._keep(db)
        return db

    def _keep(self, db: sqlite3.Connection) -> None:
        """Remember a connection, and close those of threads that have ended: nobody else will."""
        with self._lock:
            ended = [(thread, old) for thread, old in self._all if not thread.is_alive()]
            self._all = [kept for kept in self._all if kept not in ended]
            self._all.append((threading.current_thread(), db))
        for _, old in ended:
            with contextlib.suppress(sqlite3.Error):
                old.close()

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        db = self.read()
        try:
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise StoreUnavailable(f"table {self.path} cannot be written: {error}") from error
        try:
            yield db
        except BaseException:
            db.execute("ROLLBACK")
            raise
        try:
            db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            db.execute("ROLLBACK")
            raise StoreUnavailable(f"table {self.path} cannot be written: {error}") from error

    def close(self) -> None:
        for _, db in self._all:
            with contextlib.suppress(sqlite3.Error):
                db.close()
        self._all.clear()
        self._local = threading.local()
