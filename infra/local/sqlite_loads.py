"""Results as rows of SQLite tables: what PostgreSQL is to a fleet, a file is to the embedded mode.

Theory of operation as in `infra/postgres/pg_loads.py`; BEGIN IMMEDIATE takes the place of its locks. A tenant's schema
is part of the table's name, `ade_acme.members`, because a file has only one. SQLite types values, not columns, so no
column is ever too narrow.
"""

import csv
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Final

from core.loads import (
    GUARDED_TEXT,
    JOB_COLUMN,
    LONGEST_CELL,
    ROW_COLUMN,
    LoadBatch,
    LoadColumn,
    LoadFailed,
    LoadRefused,
    built_upon,
    check_columns,
    check_keys,
)
from infra.local.sqlite import rebuild

_BUSY_SECONDS: Final = 30.0
_ROWS_AT_ONCE: Final = 1000
_LONGEST_NAME: Final = 500  # bytes: there is no limit, but names are for people
_GUARDED: Final = re.compile(GUARDED_TEXT)
_ROW_IDS: Final = ("rowid", "oid", "_rowid_")  # what a row's own number is called, unless a column is
csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CELL))
_LEDGER: Final = (
    """CREATE TABLE IF NOT EXISTS ade_loads (
      job_id TEXT NOT NULL, name TEXT NOT NULL, line TEXT NOT NULL, stamp REAL NOT NULL, digest TEXT NOT NULL,
      rows INTEGER NOT NULL, loaded_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, corrects TEXT,
      place INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (job_id, name))""",
    "CREATE TABLE IF NOT EXISTS ade_replaced (job_id TEXT NOT NULL, name TEXT NOT NULL, row TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS ade_replaced_job ON ade_replaced (job_id, name)",
)


class SqliteLoads:
    """`infra.loads.LoadedTables` in a file; its tables are named after a schema."""

    def __init__(self, file: Path, schema: str) -> None:
        self._file = file
        self._schema = schema

    def load(self, batch: LoadBatch, rows: Path) -> int:
        check_columns(batch, _LONGEST_NAME)
        name = f"{self._schema}.{batch.rule.table}"
        with self._transaction() as database:
            done = _loaded(database, batch, name)
            if done is not None:
                return done
            _remove_job(database, batch.job_id, name)
            row_id = _fit_table(database, batch, name)
            _stage(database, batch, rows)
            _make_room_for_correction(database, batch, name)
            _make_room(database, batch, name, row_id)
            count = _move_over(database, batch, name)
            origin = (batch.line, batch.stamp, batch.digest, batch.corrects or None, batch.place)
            database.execute(
                "INSERT INTO ade_loads (job_id, name, line, stamp, digest, corrects, place, rows)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (batch.job_id, name, *origin, count),
            )
            return count

    def unload(self, job_id: str) -> int:
        if not self._file.exists():
            return 0
        with self._transaction() as database:
            found = database.execute("SELECT name FROM ade_loads WHERE job_id = ?", (job_id,)).fetchall()
            mine = [name for (name,) in found if name.startswith(f"{self._schema}.")]
            return sum(_remove_job(database, job_id, name) for name in mine)

    def erase(self, tenant: str) -> int:
        if not self._file.exists():
            return 0
        gone = 0
        with self._transaction() as database:
            database.execute("PRAGMA secure_delete = ON")
            mine = database.execute(
                "SELECT job_id, name FROM ade_loads WHERE substr(line, 1, length(?) + 1) = ? || '/' AND"
                " substr(name, 1, length(?) + 1) = ? || '.' ORDER BY loaded_at DESC, rowid DESC",
                (tenant, tenant, self._schema, self._schema),
            ).fetchall()
            for job_id, name in mine:
                own = f"json_extract(row, '$.{JOB_COLUMN}') = ?"
                gone += database.execute(f"DELETE FROM ade_replaced WHERE name = ? AND {own}", (name, job_id)).rowcount
                gone += _remove_job(database, job_id, name)
            tables = {name for _, name in mine}
            for name in tables:
                if database.execute(f"SELECT 1 FROM {_quoted(name)} LIMIT 1").fetchone() is None:
                    database.execute(f"DROP TABLE {_quoted(name)}")  # its columns have the names of a sender's
        with closing(sqlite3.connect(self._file, timeout=_BUSY_SECONDS, isolation_level=None)) as database:
            rebuild(database, self._file.name)
        return gone

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._file, timeout=_BUSY_SECONDS, isolation_level=None)) as database:
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("BEGIN IMMEDIATE")
                for statement in _LEDGER:
                    database.execute(statement)
                if "place" not in {row[1] for row in database.execute("PRAGMA table_info(ade_loads)")}:
                    database.execute("ALTER TABLE ade_loads ADD COLUMN corrects TEXT")  # a ledger of an earlier version
                    database.execute("ALTER TABLE ade_loads ADD COLUMN place INTEGER NOT NULL DEFAULT 0")
                yield database
                database.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_ERROR:  # it will never work: too many columns, no such table
                raise LoadRefused("the database refused it: too many columns, or a table that was changed") from None
            raise LoadFailed(f"the database did not take it: {type(error).__name__}") from None
        except sqlite3.Error as error:
            raise LoadRefused(f"the database refused it: {type(error).__name__}") from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _listed(names: tuple[str, ...], prefix: str = "") -> str:
    return ", ".join(prefix + _quoted(name) for name in names)


def _names(batch: LoadBatch) -> tuple[str, ...]:
    return tuple(column.name for column in batch.columns)


def _loaded(database: sqlite3.Connection, batch: LoadBatch, name: str) -> int | None:
    """How many rows are in the table already; 0 if a newer result of the line is; None: they have to be loaded."""
    found = database.execute(
        "SELECT digest, rows FROM ade_loads WHERE job_id = ? AND name = ?", (batch.job_id, name)
    ).fetchone()
    if found is not None and found[0] == batch.digest:
        return int(found[1])
    corrected = database.execute(
        "SELECT 1 FROM ade_loads WHERE corrects = ? AND name = ? AND place > ? LIMIT 1",
        (batch.first_job, name, batch.place),
    ).fetchone()
    if corrected is not None:
        return 0
    newer = database.execute(
        "SELECT 1 FROM ade_loads WHERE line = ? AND name = ? AND stamp > ? LIMIT 1", (batch.line, name, batch.stamp)
    ).fetchone()
    return 0 if newer is not None and batch.rule.mode != "append" else None


def _fit_table(database: sqlite3.Connection, batch: LoadBatch, name: str) -> str:
    """Make the table, and add the columns that it lacks; returns what its rows' own numbers are called."""
    database.execute(
        f"CREATE TABLE IF NOT EXISTS {_quoted(name)}"
        f" ({_quoted(JOB_COLUMN)} TEXT NOT NULL, {_quoted(ROW_COLUMN)} INTEGER NOT NULL)"
    )
    index = _quoted(f"{name}_ade_job")
    database.execute(f"CREATE INDEX IF NOT EXISTS {index} ON {_quoted(name)} ({_quoted(JOB_COLUMN)})")
    present = {row[1].casefold() for row in database.execute(f"PRAGMA table_info({_quoted(name)})")}
    for column in batch.columns:
        if column.name.casefold() not in present:
            database.execute(f"ALTER TABLE {_quoted(name)} ADD COLUMN {_quoted(column.name)} {_declared(column)}")
            present.add(column.name.casefold())
    free = [one for one in _ROW_IDS if one not in present]
    if not free:
        raise LoadRefused(f"columns {', '.join(_ROW_IDS)} leave no name for the numbers of the rows; rename one")
    return free[0]


def _declared(column: LoadColumn) -> str:
    """A declared type whose affinity keeps the values as they come: 007 below numbers stays a text, and a decimal that
    no float holds stays its digits, as a text.
    """
    return "" if column.type in ("integer", "number", "boolean") else "TEXT"


def _stage(database: sqlite3.Connection, batch: LoadBatch, rows: Path) -> None:
    """Read the file into a temporary table of the connection."""
    declared = ", ".join(f"{_quoted(column.name)} {_declared(column)}" for column in batch.columns)
    database.execute(f"CREATE TEMPORARY TABLE ade_staged ({_quoted(ROW_COLUMN)} INTEGER PRIMARY KEY, {declared})")
    marks = ", ".join("?" * len(batch.columns))
    insert = f"INSERT INTO ade_staged ({_listed(_names(batch))}) VALUES ({marks})"
    with rows.open(encoding="utf-8-sig", newline="") as file:
        records = csv.reader(file, delimiter=batch.delimiter)
        next(records)
        try:
            while some := list(islice(records, _ROWS_AT_ONCE)):
                database.executemany(insert, [_values(batch.columns, record) for record in some])
        except (ValueError, OverflowError):
            raise LoadRefused("a cell of normalized.csv is not of its column's type, or too large for it") from None


def _values(columns: tuple[LoadColumn, ...], record: list[str]) -> list[object]:
    return [None if not cell else _value(column, cell) for column, cell in zip(columns, record, strict=True)]


def _value(column: LoadColumn, cell: str) -> object:
    if column.type == "string":
        return cell[1:] if _GUARDED.match(cell) else cell
    if column.type == "integer":
        return int(cell)
    if column.type == "number":
        number = float(cell)
        if not isfinite(number):
            raise ValueError
        return cell if column.exact and Decimal(repr(number)) != Decimal(cell) else number
    return cell == "true" if column.type == "boolean" else cell


def _make_room_for_correction(database: sqlite3.Connection, batch: LoadBatch, name: str) -> None:
    """Put aside the rows of the results that this one corrects, all of which it has."""
    earlier = "SELECT job_id FROM ade_loads WHERE name = ? AND (job_id = ? OR corrects = ?) AND place < ?"
    first = batch.first_job
    _put_aside(database, batch, name, f"{_quoted(JOB_COLUMN)} IN ({earlier})", (name, first, first, batch.place))


def _put_aside(
    database: sqlite3.Connection, batch: LoadBatch, name: str, which: str, values: tuple[object, ...] = ()
) -> None:
    """Delete rows by a condition and its values, and keep them for the day when the job is unloaded."""
    present = [row[1] for row in database.execute(f"PRAGMA table_info({_quoted(name)})")]
    gone = database.execute(f"SELECT {_listed(tuple(present))} FROM {_quoted(name)} WHERE {which}", values)
    database.executemany(  # not json_object(): it takes 127 arguments, and rounds floats
        "INSERT INTO ade_replaced VALUES (?, ?, ?)",
        ((batch.job_id, name, json.dumps(dict(zip(present, row, strict=True)))) for row in gone),
    )
    database.execute(f"DELETE FROM {_quoted(name)} WHERE {which}", values)


def _make_room(database: sqlite3.Connection, batch: LoadBatch, name: str, row_id: str) -> None:
    """Put aside what the new rows replace: the rows with their keys, or those of their partitions."""
    by = batch.rule.columns
    if batch.rule.mode == "append" or not by:
        return
    if batch.rule.mode == "upsert":
        blanks = ", ".join(f"count(*) FILTER (WHERE {_quoted(name)} IS NULL)" for name in by)
        counted = database.execute(f"SELECT {blanks} FROM ade_staged").fetchone()
        check_keys(batch, dict(zip(by, counted, strict=True)))
        query = f"SELECT count(*) FROM (SELECT 1 FROM ade_staged GROUP BY {_listed(by)} HAVING count(*) > 1)"
        (twice,) = database.execute(query).fetchone()
        if twice:
            raise LoadRefused(
                f"{twice} keys ({', '.join(by)}) come more than once in the result; make them unique, for example with "
                '"rows": {"dedupe": …}'
            )
    database.create_function("ade_key", 1, _key_text, deterministic=True)
    keys = ", ".join(f"ade_key({_quoted(one)}) AS {_quoted(one)}" for one in by)
    same = " AND ".join(f"t.{_quoted(one)} IS s.{_quoted(one)}" for one in by)
    rowids = (
        f"SELECT t.{ROW_COLUMN} FROM (SELECT {row_id} AS {ROW_COLUMN}, {keys} FROM {_quoted(name)}) AS t"
        f" JOIN (SELECT DISTINCT {keys} FROM ade_staged) AS s ON {same}"
    )
    _put_aside(database, batch, name, f"{row_id} IN ({rowids})")


def _key_text(value: object) -> str | None:
    """A value as a text: 7 is the same key as a number and as a text, as in a database that types columns."""
    if value is None:
        return None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _move_over(database: sqlite3.Connection, batch: LoadBatch, name: str) -> int:
    names = _listed(_names(batch))
    query = (
        f"INSERT INTO {_quoted(name)} ({_quoted(JOB_COLUMN)}, {_quoted(ROW_COLUMN)}, {names})"
        f" SELECT ?, {_quoted(ROW_COLUMN)}, {names} FROM ade_staged ORDER BY {_quoted(ROW_COLUMN)}"
    )
    return database.execute(query, (batch.job_id,)).rowcount


def _remove_job(database: sqlite3.Connection, job_id: str, name: str) -> int:
    """Delete a job's rows and its entry; put back what they replaced. Raises LoadRefused if others build on them."""
    gone = database.execute("DELETE FROM ade_loads WHERE job_id = ? AND name = ?", (job_id, name)).rowcount
    if not gone:
        return 0
    later = database.execute(
        f"SELECT job_id FROM ade_replaced WHERE name = ? AND json_extract(row, '$.{JOB_COLUMN}') = ? LIMIT 1",
        (name, job_id),
    ).fetchone()
    if later is not None:
        raise LoadRefused(built_upon(job_id, later[0]))
    count = database.execute(f"DELETE FROM {_quoted(name)} WHERE {_quoted(JOB_COLUMN)} = ?", (job_id,)).rowcount
    back = database.execute("SELECT row FROM ade_replaced WHERE job_id = ? AND name = ?", (job_id, name)).fetchall()
    for (row,) in back:
        values = json.loads(row)
        marks = ", ".join("?" * len(values))
        database.execute(
            f"INSERT INTO {_quoted(name)} ({_listed(tuple(values))}) VALUES ({marks})", tuple(values.values())
        )
    database.execute("DELETE FROM ade_replaced WHERE job_id = ? AND name = ?", (job_id, name))
    return count
