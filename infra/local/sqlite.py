"""JobTable and WorkQueue on one SQLite file in WAL mode. All SQL is in the two classes' statements.

Every write is one BEGIN IMMEDIATE transaction, synced to disk (synchronous = FULL): what a call acknowledged
survives the process and the power. Only that a message was taken, hidden or acknowledged may be lost with the power:
then it is received once more. Several processes of one machine may share the file.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from core.ends import NUMBERS
from core.errors import StoreUnavailable
from core.verdicts import FAULTS
from infra.local.disk import make_private_file, make_private_folder

SCHEMA_VERSION = 1
MOVED_VERSION = 1_000_000  # of a file whose jobs are in another table: programs of every release leave it alone
_CHECKPOINTS = 5
# Of results with errors or warnings, worked out by the file itself, whichever program writes the row. Most results are
# clean: those have no entries in the indexes.
OUTCOME = """CASE WHEN state = 'SUCCEEDED' AND json_valid(doc) THEN
  CASE WHEN json_extract(doc, '$.summary.findings.error') > 0 THEN 'errors'
    WHEN json_extract(doc, '$.summary.findings.warning') > 0 THEN 'warnings' END END"""
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS jobs (
  job_id     TEXT PRIMARY KEY,
  tenant     TEXT NOT NULL,
  workflow   TEXT NOT NULL,
  line       TEXT NOT NULL,   -- jobs of one line replace each other
  state      TEXT NOT NULL,
  created_at REAL NOT NULL,
  wake_at    REAL,            -- when the janitor should look; see core/chores.py
  resting    INTEGER NOT NULL DEFAULT 0, -- 1: only to expire or to forget it
  rev        INTEGER NOT NULL,
  doc        TEXT NOT NULL,   -- the whole record, JSON
  outcome    TEXT GENERATED ALWAYS AS ({OUTCOME}) VIRTUAL
);
CREATE INDEX IF NOT EXISTS jobs_line ON jobs (line);
CREATE INDEX IF NOT EXISTS jobs_due ON jobs (resting, wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS jobs_created ON jobs (created_at, job_id);
CREATE INDEX IF NOT EXISTS jobs_state ON jobs (state, created_at, job_id);
CREATE INDEX IF NOT EXISTS jobs_tenant ON jobs (tenant, state, created_at, job_id);
CREATE INDEX IF NOT EXISTS jobs_running ON jobs (tenant, workflow) WHERE state = 'RUNNING';
CREATE INDEX IF NOT EXISTS jobs_outcome ON jobs (outcome, created_at, job_id) WHERE outcome IS NOT NULL;
CREATE INDEX IF NOT EXISTS jobs_tenant_outcome ON jobs (tenant, outcome, created_at, job_id) WHERE outcome IS NOT NULL;

CREATE TABLE IF NOT EXISTS messages (
  job_id     TEXT PRIMARY KEY, -- a message only says "check this job", so one per job is enough
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

-- Lines that a sweep found in order; whoever writes one of their rows, an older program too, removes the mark.
CREATE TABLE IF NOT EXISTS marks (line TEXT PRIMARY KEY, planned_from BLOB NOT NULL, until REAL NOT NULL) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS generations (name TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;

-- What the jobs that ended came to, by stretches of time; see core/ends.py. Of all where the tenant is ''.
CREATE TABLE IF NOT EXISTS ends (
  tenant TEXT NOT NULL, workflow TEXT NOT NULL, at REAL NOT NULL,
  {" INTEGER NOT NULL, ".join(NUMBERS)} INTEGER NOT NULL,
  last_at REAL NOT NULL, last_job TEXT NOT NULL, PRIMARY KEY (tenant, workflow, at)
) WITHOUT ROWID;
-- The last days of all senders, however many days there are.
CREATE INDEX IF NOT EXISTS ends_at ON ends (at) WHERE tenant <> '';

CREATE TABLE IF NOT EXISTS resolutions (
  what TEXT PRIMARY KEY, until REAL NOT NULL, tenant TEXT NOT NULL,
  at REAL NOT NULL, by TEXT NOT NULL, note TEXT NOT NULL
) WITHOUT ROWID;
"""

# How many jobs there are by tenant, workflow and state, kept by the file itself: whoever writes a row, an older
# program too, moves the counts in the same transaction.
COUNTS = """
CREATE TABLE job_counts (
  tenant TEXT NOT NULL, workflow TEXT NOT NULL, state TEXT NOT NULL, n INTEGER NOT NULL,
  PRIMARY KEY (tenant, workflow, state)
) WITHOUT ROWID
"""
_ONE_MORE = """INSERT INTO job_counts (tenant, workflow, state, n) VALUES (new.tenant, new.workflow, new.state, 1)
  ON CONFLICT (tenant, workflow, state) DO UPDATE SET n = n + 1;"""
_ONE_LESS = (
    """UPDATE job_counts SET n = n - 1 WHERE tenant = old.tenant AND workflow = old.workflow AND state = old.state;"""
)
TRIGGERS = {
    "job_counted": f"AFTER INSERT ON jobs BEGIN {_ONE_MORE} END",
    "job_uncounted": f"AFTER DELETE ON jobs BEGIN {_ONE_LESS} END",
    "job_moved": "AFTER UPDATE OF tenant, workflow, state ON jobs"
    " WHEN old.state <> new.state OR old.tenant <> new.tenant OR old.workflow <> new.workflow"
    f" BEGIN {_ONE_LESS} {_ONE_MORE} END",
    "line_unmarked_by_insert": "AFTER INSERT ON jobs BEGIN DELETE FROM marks WHERE line = new.line; END",
    "line_unmarked_by_update": "AFTER UPDATE ON jobs BEGIN DELETE FROM marks WHERE line = old.line; END",
    "line_unmarked_by_delete": "AFTER DELETE ON jobs BEGIN DELETE FROM marks WHERE line = old.line; END",
}

_FAULTS = " ".join(f"WHEN '{verdict}' THEN '{fault}'" for verdict, fault in FAULTS.items())
_PRIMARIES = "FROM json_each(doc, '$.inputs') WHERE json_extract(value, '$.role') = 'primary'"
# For people with a SQLite shell; nothing reads it. Columns: docs/reference/rows.md. Records that are not JSON show as
# unreadable.
JOBS_VIEW = f"""CREATE VIEW jobs_view AS
SELECT job_id, tenant, workflow, state,
  json_extract(doc, '$.reason') AS reason,
  json_extract(doc, '$.error.verdict') AS error_verdict,
  CASE json_extract(doc, '$.error.verdict') {_FAULTS} END AS error_fault,
  json_extract(doc, '$.error.message') AS error_message,
  coalesce(json_extract(doc, '$.attempts_total'), 0) AS attempts,
  json_extract(doc, '$.lease.owner') AS lease_owner,
  strftime('%Y-%m-%dT%H:%M:%SZ', json_extract(doc, '$.lease.expires'), 'unixepoch') AS lease_expires,
  (SELECT count(*) {_PRIMARIES}) AS inputs,
  (SELECT json_extract(value, '$.ref.key') {_PRIMARIES} LIMIT 1) AS input_key,
  strftime('%Y-%m-%dT%H:%M:%SZ', created_at, 'unixepoch') AS created,
  strftime('%Y-%m-%dT%H:%M:%SZ', wake_at, 'unixepoch') AS wake_at,
  coalesce(json_extract(doc, '$.v'), 1) AS v,
  rev,
  CASE state WHEN 'SUCCEEDED' THEN coalesce(outcome, 'clean') END AS outcome
FROM (
  SELECT job_id, tenant, workflow, state, created_at, wake_at, rev, outcome,
    CASE WHEN json_valid(doc) THEN doc ELSE '{{"reason": "the record cannot be read"}}' END AS doc
  FROM jobs
)"""  # noqa: S608 - from constants


class Database:
    """Connections to one file: one per thread, opened when first used."""

    def __init__(self, path: Path, *, busy_seconds: float = 30.0) -> None:
        """`busy_seconds`: how long a call may wait for other writers."""
        make_private_folder(path.parent)
        make_private_file(path)
        self.path = path
        self._busy_seconds = busy_seconds
        self.folder = path.parent
        self._local = threading.local()
        self._all: list[tuple[threading.Thread, sqlite3.Connection]] = []
        self._lock = threading.Lock()
        with self.write() as db:
            found = db.execute("PRAGMA user_version").fetchone()[0]
            if found > SCHEMA_VERSION:
                raise StoreUnavailable(
                    f"{path} was made by a newer ade-drop (schema {found}; this program knows up to {SCHEMA_VERSION}); "
                    "upgrade this process, or roll back as in docs/guides/upgrading.md"
                )
            columns = {row["name"] for row in db.execute("PRAGMA table_info(jobs)")}
            if columns and "resting" not in columns:  # an older program works without it, so the version stays
                db.execute("ALTER TABLE jobs ADD COLUMN resting INTEGER NOT NULL DEFAULT 0")
                db.execute("DROP INDEX IF EXISTS jobs_wake")
            if columns and "outcome" not in {row["name"] for row in db.execute("PRAGMA table_xinfo(jobs)")}:
                db.execute(f"ALTER TABLE jobs ADD COLUMN outcome TEXT GENERATED ALWAYS AS ({OUTCOME}) VIRTUAL")
            for statement in SCHEMA.split(";\n"):
                if statement.strip():
                    db.execute(statement)
            _count_jobs(db)
            _show_jobs(db)
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def read(self) -> sqlite3.Connection:
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        if db is None:
            db = sqlite3.connect(self.path, isolation_level=None, timeout=self._busy_seconds, check_same_thread=False)
            db.row_factory = sqlite3.Row
            try:
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("PRAGMA synchronous = FULL")
            except sqlite3.DatabaseError as error:
                db.close()
                if isinstance(error, sqlite3.OperationalError):
                    raise StoreUnavailable(
                        f"table {self.path} cannot be opened: {error}; `ade doctor` checks its folder and free space"
                    ) from error
                raise StoreUnavailable(
                    f"table {self.path} is damaged: {error}; restore it from a backup, or move it away and run "
                    "`ade sweep`, which records the inbox again"
                ) from error
            db.create_function("casefold", 1, _casefold, deterministic=True)
            self._local.db = db
            self._register(db)
        return db

    def _register(self, db: sqlite3.Connection) -> None:
        """Remember a connection, and close those of threads that have ended."""
        with self._lock:
            ended = [(thread, old) for thread, old in self._all if not thread.is_alive()]
            self._all = [link for link in self._all if link not in ended]
            self._all.append((threading.current_thread(), db))
        for _, old in ended:
            with contextlib.suppress(sqlite3.Error):
                old.close()

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is on disk when the context ends."""
        with self._transaction() as db:
            yield db

    @contextlib.contextmanager
    def write_unsynced(self) -> Iterator[sqlite3.Connection]:
        """The same, but a power loss may undo it, until the next one that is synced. It is seen by all at once."""
        db = self.read()
        db.execute("PRAGMA synchronous = NORMAL")
        try:
            with self._transaction():
                yield db
        finally:
            db.execute("PRAGMA synchronous = FULL")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        db = self.read()
        try:
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise StoreUnavailable(f"table {self.path} cannot be written: {error}") from error
        try:
            # Every time: a process that `ade move` could not see, of another user or container, may have it open.
            if db.execute("PRAGMA user_version").fetchone()[0] == MOVED_VERSION:
                raise StoreUnavailable(
                    f"the jobs of {self.path} were moved to PostgreSQL; set ADE_TABLE_URL to that database, "
                    "or ADE_STORAGE_DATA_DIR to another folder (docs/guides/moving.md)"
                )
            yield db
            db.execute("COMMIT")
        except BaseException as error:
            if db.in_transaction:  # a full disk, for example, has already ended it
                db.execute("ROLLBACK")
            if not isinstance(error, sqlite3.OperationalError):
                raise
            raise StoreUnavailable(f"table {self.path} cannot be written: {error}") from error

    def rebuild(self) -> None:
        """Write the file again without its free pages, and empty the log beside it; raises StoreUnavailable if busy."""
        db = self.read()
        rebuild(db, str(self.path))

    def close(self) -> None:
        for _, db in self._all:
            with contextlib.suppress(sqlite3.Error):
                db.close()
        self._all.clear()
        self._local = threading.local()


def rebuild(db: sqlite3.Connection, name: str) -> None:
    """Write a database again without its free pages, and empty its log; other processes may use it all the while."""
    try:
        db.execute("VACUUM")
        busy = True
        for _ in range(_CHECKPOINTS):
            busy = bool(db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
            if not busy:
                break
    except sqlite3.OperationalError as error:
        raise StoreUnavailable(f"{name} could not be rebuilt: {error}; run the same command again") from error
    if busy:
        raise StoreUnavailable(f"{name} is read all the time, so its log was not emptied; run the same command again")


@contextlib.contextmanager
def leaving(path: Path) -> Iterator[Path]:
    """Keep every writer out of a database while its content is moved; if that succeeds, nobody opens it again."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=5)) as db:
        db.execute("BEGIN IMMEDIATE")
        try:
            yield path
        except BaseException:
            db.execute("ROLLBACK")
            raise
        db.execute(f"PRAGMA user_version = {MOVED_VERSION}")
        db.execute("COMMIT")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def copy_database(source: Path, target: Path) -> None:
    """Copy a database as it is at one moment, whoever writes to it; `target` is not there yet."""
    make_private_file(target)
    with (
        contextlib.closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True, timeout=30)) as live,
        contextlib.closing(sqlite3.connect(target)) as copy,
    ):
        live.backup(copy)


def close_copy(path: Path) -> None:
    """Make a database that nobody uses one file again, and check it; raises StoreUnavailable."""
    try:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode = DELETE")
            found = db.execute("PRAGMA quick_check").fetchone()[0]
    except sqlite3.DatabaseError as error:
        found = str(error)
    if found != "ok":
        raise StoreUnavailable(f"{path} is damaged: {found}; `ade doctor` checks the disk and its room")


def _show_jobs(db: sqlite3.Connection) -> None:
    """Create the view, or replace the one of an older program."""
    there = db.execute("SELECT sql FROM sqlite_master WHERE type = 'view' AND name = 'jobs_view'").fetchone()
    if there is None or there[0] != JOBS_VIEW:
        db.execute("DROP VIEW IF EXISTS jobs_view")
        db.execute(JOBS_VIEW)


def _count_jobs(db: sqlite3.Connection) -> None:
    """Make the counts and fill them once, where no program did before."""
    if db.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'job_counts'").fetchone() is None:
        db.execute(COUNTS)
        db.execute("INSERT INTO job_counts SELECT tenant, workflow, state, count(*) FROM jobs GROUP BY 1, 2, 3")
    for name, body in TRIGGERS.items():
        db.execute(f"CREATE TRIGGER IF NOT EXISTS {name} {body}")


def _casefold(text: object) -> str:
    return text.casefold() if isinstance(text, str) else ""
