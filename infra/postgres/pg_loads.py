"""Results as rows of PostgreSQL tables.

Theory of operation. One transaction per load: it locks the table's name, reads the ledger, makes or widens the table,
has the server read the CSV file into a temporary table (COPY), moves the rows over, and notes the job in the ledger.
Rows that are only added, and need no change on the way, are read into the table itself, which costs less: the defaults
of its first two columns say which job they are of and number them.
No index finds a job's rows, which would cost each row some time: the ledger notes the pages that they went to. If
unloading does not find all of them there, because somebody changed or moved some, it reads the whole table.
What an upsert or a replacement takes away is put aside as JSON under the job's id, so that unloading the job puts it
back. A crash anywhere leaves nothing; a second load of the same rows finds the ledger's entry and changes nothing.
"""

import csv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import sql

from core.loads import (
    GUARDED_TEXT,
    JOB_COLUMN,
    LONGEST_CELL,
    ROW_COLUMN,
    WIDER,
    LoadBatch,
    LoadColumn,
    LoadFailed,
    LoadRefused,
    built_upon,
    check_columns,
    check_keys,
    sql_type,
    widened,
)

_BOM: Final = b"\xef\xbb\xbf"
_BLOCK: Final = 256 * 1024
_CONNECT_SECONDS: Final = 10
_LOCK_SECONDS: Final = 300  # for others who load or change the same table; then it is tried later
_LIMIT_EXCEEDED: Final = "54"  # the class of errors about the server's own limits: trying again does not help
_READ_ONLY: Final = "25006"  # a server that follows another, until it takes over
_LONGEST_NAME: Final = 63  # bytes of an identifier
_JOB_SETTING: Final = "ade.job"  # of a transaction: the job whose rows it adds
_STAGED: Final = sql.Identifier("ade_staged")
# What information_schema calls the types that we make.
_PRESENT_TYPES: Final = {"timestamp without time zone": "timestamp", "time without time zone": "time"}
_LEDGER: Final = """
CREATE TABLE IF NOT EXISTS {ledger} (
  job_id text NOT NULL, name text NOT NULL, line text NOT NULL, stamp double precision NOT NULL, digest text NOT NULL,
  rows bigint NOT NULL, loaded_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (job_id, name));
ALTER TABLE {ledger} ADD COLUMN IF NOT EXISTS first_page bigint, ADD COLUMN IF NOT EXISTS end_page bigint,
  ADD COLUMN IF NOT EXISTS corrects text, ADD COLUMN IF NOT EXISTS place integer NOT NULL DEFAULT 0;
CREATE TABLE IF NOT EXISTS {replaced} (job_id text NOT NULL, name text NOT NULL, row jsonb NOT NULL);
CREATE INDEX IF NOT EXISTS ade_replaced_job ON {replaced} (job_id, name);
"""
# The job of the open transaction. It is the same for all rows of a COPY, so it is called immutable, which it is not:
# that makes the server compute it once per COPY instead of once per row.
_JOB_FUNCTION: Final = """
CREATE OR REPLACE FUNCTION {function}() RETURNS text IMMUTABLE LANGUAGE sql AS {body}
"""


class _Noted(NamedTuple):
    """What the ledger says of a job's rows in a table."""

    rows: int
    first_page: int | None  # that they went to; None: unknown
    end_page: int | None  # the one after the last


class PostgresLoads:
    """`infra.loads.LoadedTables` in one schema of a PostgreSQL database."""

    def __init__(self, url: str, schema: str) -> None:
        self._url = url
        self._schema = schema
        self._ledger = sql.Identifier(schema, "ade_loads")
        self._replaced = sql.Identifier(schema, "ade_replaced")
        self._job_function = sql.Identifier(schema, "ade_job")

    def load(self, batch: LoadBatch, rows: Path) -> int:
        check_columns(batch, _LONGEST_NAME)
        with self._transaction() as cursor:
            self._prepare(cursor, batch.rule.table)
            done = self._loaded(cursor, batch)
            if done is not None:
                return done
            self._remove_job(cursor, batch.job_id, batch.rule.table)
            types = self._fit_table(cursor, batch)
            self._make_room_for_correction(cursor, batch)
            pages = self._pages(cursor, batch.rule.table)
            fits = all(types[column.name] == sql_type(column) for column in batch.columns)
            if batch.rule.mode == "append" and fits and not may_have_guards(rows, batch.delimiter):
                count = self._copy_over(cursor, batch, rows)
            else:
                self._stage(cursor, batch, rows)
                self._make_room(cursor, batch, types)
                count = self._move_over(cursor, batch, types)
            # The last page of before may have had room.
            self._note(cursor, batch, _Noted(count, max(0, pages - 1), self._pages(cursor, batch.rule.table)))
            return count

    def unload(self, job_id: str) -> int:
        with self._transaction() as cursor:
            if _fetch(cursor, sql.SQL("SELECT to_regclass({})").format(f'"{self._schema}".ade_loads'))[0] is None:
                return 0
            cursor.execute(
                sql.SQL("SELECT name FROM {} WHERE job_id = %s ORDER BY name").format(self._ledger), [job_id]
            )
            names = [str(name) for (name,) in cursor.fetchall()]
            for name in names:
                self._prepare(cursor, name)
            return sum(self._remove_job(cursor, job_id, name) for name in names)

    def erase(self, tenant: str) -> int:
        gone = 0
        with self._transaction() as cursor:
            if _fetch(cursor, sql.SQL("SELECT to_regclass({})").format(f'"{self._schema}".ade_loads'))[0] is None:
                return 0
            of_tenant = sql.SQL("SELECT job_id, name FROM {} WHERE starts_with(line, %s) ORDER BY loaded_at DESC")
            cursor.execute(of_tenant.format(self._ledger), [f"{tenant}/"])
            mine = [(str(job_id), str(name)) for job_id, name in cursor.fetchall()]
            for name in sorted({name for _, name in mine}):
                self._prepare(cursor, name)
            for job_id, name in mine:
                put_aside = sql.SQL("DELETE FROM {} WHERE name = %s AND row ->> {} = %s")
                cursor.execute(put_aside.format(self._replaced, JOB_COLUMN), [name, job_id])
                gone += cursor.rowcount + self._remove_job(cursor, job_id, name)
        return gone

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Cursor[Any]]:
        """One transaction; what a server says never leaves here, because it quotes values."""
        try:
            with psycopg.connect(self._url, connect_timeout=_CONNECT_SECONDS, client_encoding="utf8") as connection:
                cursor = connection.cursor()
                cursor.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(f"{_LOCK_SECONDS}s"))
                yield cursor
        except psycopg.OperationalError as error:  # lost connections, deadlocks, conflicts, a full disk
            if (error.sqlstate or "").startswith(_LIMIT_EXCEEDED):
                raise LoadRefused("the database refused it: too many columns, or a row that is too large") from None
            raise LoadFailed(f"the database did not take it: {type(error).__name__}") from None
        except psycopg.Error as error:
            if error.sqlstate == _READ_ONLY:
                raise LoadFailed("the database takes no writes now") from None
            code = error.sqlstate or type(error).__name__
            raise LoadRefused(f"the database refused it ({type(error).__name__}, {code}); see its log") from None

    def _prepare(self, cursor: psycopg.Cursor[Any], table: str) -> None:
        """Make what all loads of the schema need, if it is not there, and lock the table for this transaction."""
        made = sql.SQL(
            "SELECT to_regclass({}), to_regproc({}), (SELECT 1 FROM pg_attribute"
            " WHERE attrelid = to_regclass({}) AND attname = 'place')"
        ).format(f'"{self._schema}".ade_replaced', f'"{self._schema}".ade_job', f'"{self._schema}".ade_loads')
        if None in _fetch(cursor, made):
            self._lock(cursor, "")
            cursor.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(self._schema)))
            body = sql.Literal(f"SELECT current_setting('{_JOB_SETTING}', true)")
            cursor.execute(sql.SQL(_JOB_FUNCTION).format(function=self._job_function, body=body))
            cursor.execute(sql.SQL(_LEDGER).format(ledger=self._ledger, replaced=self._replaced))
        self._lock(cursor, table)

    def _lock(self, cursor: psycopg.Cursor[Any], table: str) -> None:
        """Loads of one table follow each other, whichever process they are in."""
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"ade:{self._schema}.{table}"])

    def _loaded(self, cursor: psycopg.Cursor[Any], batch: LoadBatch) -> int | None:
        """How many rows are in the table already; 0 if a newer result of the line is; None: they have to be loaded."""
        found = _fetch(
            cursor, sql.SQL("SELECT digest, rows FROM {} WHERE job_id = %s AND name = %s").format(self._ledger),
            batch.job_id, batch.rule.table,
        )  # fmt: skip
        if found and found[0] == batch.digest:
            return int(found[1])
        corrected = _fetch(
            cursor,
            sql.SQL("SELECT 1 FROM {} WHERE corrects = %s AND name = %s AND place > %s LIMIT 1").format(self._ledger),
            batch.first_job, batch.rule.table, batch.place,
        )  # fmt: skip
        if corrected:
            return 0
        newer = _fetch(
            cursor,
            sql.SQL("SELECT 1 FROM {} WHERE line = %s AND name = %s AND stamp > %s LIMIT 1").format(self._ledger),
            batch.line, batch.rule.table, batch.stamp,
        )  # fmt: skip
        return 0 if newer and batch.rule.mode != "append" else None

    def _stage(self, cursor: psycopg.Cursor[Any], batch: LoadBatch, rows: Path) -> None:
        columns = [sql.SQL("{} {}").format(_named(column.name), sql.SQL(sql_type(column))) for column in batch.columns]
        number = sql.SQL("{} bigint GENERATED ALWAYS AS IDENTITY").format(sql.Identifier(ROW_COLUMN))
        made = sql.SQL("CREATE TEMPORARY TABLE {} ({}) ON COMMIT DROP")
        cursor.execute(made.format(_STAGED, sql.SQL(", ").join([*columns, number])), [])
        _copy(cursor, batch, _STAGED, rows)

    def _copy_over(self, cursor: psycopg.Cursor[Any], batch: LoadBatch, rows: Path) -> int:
        """Read the file into the table itself."""
        cursor.execute("SELECT set_config(%s, %s, true)", [_JOB_SETTING, batch.job_id])  # until the transaction ends
        cursor.execute(sql.SQL("ALTER SEQUENCE {} RESTART").format(self._numbers(batch.rule.table)))
        return _copy(cursor, batch, self._table(batch.rule.table), rows)

    def _numbers(self, table: str) -> sql.Identifier:
        """The sequence that numbers the rows of a job."""
        return sql.Identifier(self._schema, f"{table}_ade_rows")

    def _set_defaults(self, cursor: psycopg.Cursor[Any], table: str) -> None:
        cursor.execute(sql.SQL("CREATE SEQUENCE IF NOT EXISTS {} CACHE 1000").format(self._numbers(table)))
        change = sql.SQL("ALTER TABLE {} ALTER COLUMN {} SET DEFAULT {}(), ALTER COLUMN {} SET DEFAULT nextval({})")
        numbers = sql.Literal(f'"{self._schema}"."{table}_ade_rows"')
        job, row = sql.Identifier(JOB_COLUMN), sql.Identifier(ROW_COLUMN)
        cursor.execute(change.format(self._table(table), job, self._job_function, row, numbers))

    def _pages(self, cursor: psycopg.Cursor[Any], table: str) -> int:
        """How many pages a table has."""
        size = sql.SQL("SELECT pg_relation_size(to_regclass({})) / current_setting('block_size')::bigint")
        return int(_fetch(cursor, size.format(f'"{self._schema}"."{table}"'))[0])

    def _fit_table(self, cursor: psycopg.Cursor[Any], batch: LoadBatch) -> dict[str, str]:
        """Make the table, add the columns it lacks, widen those that are too narrow; nothing is ever narrowed.

        Returns the types that its columns have then.
        """
        table = self._table(batch.rule.table)
        cursor.execute(
            sql.SQL("CREATE TABLE IF NOT EXISTS {} ({} text NOT NULL, {} bigint NOT NULL)").format(
                table, sql.Identifier(JOB_COLUMN), sql.Identifier(ROW_COLUMN)
            )
        )
        cursor.execute(sql.SQL("LOCK TABLE {} IN ROW EXCLUSIVE MODE").format(table))  # nobody changes its columns now
        cursor.execute(
            "SELECT column_name, data_type, column_default FROM information_schema.columns"
            " WHERE table_schema = %s AND table_name = %s",
            [self._schema, batch.rule.table],
        )
        found = cursor.fetchall()
        present = {name: _PRESENT_TYPES.get(kind, kind) for name, kind, _ in found}
        if any(name == JOB_COLUMN and default is None for name, _, default in found):
            self._set_defaults(cursor, batch.rule.table)
        for column in batch.columns:
            name, incoming = _named(column.name), sql_type(column)
            if column.name not in present:
                cursor.execute(sql.SQL("ALTER TABLE {} ADD COLUMN {} {}").format(table, name, sql.SQL(incoming)), [])
                present[column.name] = incoming
                continue
            if present[column.name] not in WIDER:
                number, kind = batch.columns.index(column) + 1, present[column.name]
                raise LoadRefused(f"column {number} of the table was changed to {kind}, which no load can fill")
            wider = widened(present[column.name], incoming)
            if wider != present[column.name]:
                change = sql.SQL("ALTER TABLE {} ALTER COLUMN {} TYPE {} USING {}")
                value = _cast(name, present[column.name], wider)
                cursor.execute(change.format(table, name, sql.SQL(wider), value), [])
                present[column.name] = wider
        return present

    def _make_room_for_correction(self, cursor: psycopg.Cursor[Any], batch: LoadBatch) -> None:
        """Put aside the rows of the results that this one corrects, all of which it has."""
        earlier = sql.SQL(
            "SELECT job_id, rows, first_page, end_page FROM {}"
            " WHERE name = %s AND (job_id = %s OR corrects = %s) AND place < %s"
        )
        name, first = batch.rule.table, batch.first_job
        cursor.execute(earlier.format(self._ledger), [name, first, first, batch.place])
        for job_id, *noted in cursor.fetchall():
            self._delete_rows(cursor, job_id, name, _Noted(*noted), aside_for=batch.job_id)

    def _make_room(self, cursor: psycopg.Cursor[Any], batch: LoadBatch, types: Mapping[str, str]) -> None:
        """Put aside what the new rows replace: the rows with their keys, or those of their partitions."""
        columns = [column for name in batch.rule.columns for column in batch.columns if column.name == name]
        if batch.rule.mode == "append" or not columns:
            return
        by = [_named(column.name) for column in columns]
        if batch.rule.mode == "upsert":
            self._check_keys(cursor, batch, by)
        # The values as they will be in the table, in the types of its columns, which may be wider ones.
        values = sql.SQL(", ").join(
            sql.SQL("{} AS {}").format(_stored(column, types), name) for column, name in zip(columns, by, strict=True)
        )
        put_aside = sql.SQL(
            "WITH gone AS (DELETE FROM {table} AS t USING (SELECT DISTINCT {values} FROM {staged}) AS s WHERE {same} "
            "RETURNING to_jsonb(t.*) AS row) INSERT INTO {replaced} SELECT %s, %s, row FROM gone"
        )
        # Blanks apart: a server compares each row with each where a blank may be equal to a blank.
        equal, alike = (
            sql.SQL(" AND ").join(sql.SQL(comparison).format(name) for name in by)
            for comparison in ("t.{0} = s.{0}", "t.{0} IS NOT DISTINCT FROM s.{0}")
        )
        blank = sql.SQL(" OR ").join(sql.SQL("s.{} IS NULL").format(name) for name in by)
        for same in (equal, sql.SQL("({}) AND {}").format(blank, alike)):
            query = put_aside.format(
                table=self._table(batch.rule.table), values=values, staged=_STAGED, same=same, replaced=self._replaced
            )
            cursor.execute(query, [batch.job_id, batch.rule.table])

    def _check_keys(self, cursor: psycopg.Cursor[Any], batch: LoadBatch, by: list[sql.Identifier]) -> None:
        """Refuse rows without a key, and keys that come twice."""
        blanks = sql.SQL(", ").join(sql.SQL("count(*) FILTER (WHERE {} IS NULL)").format(name) for name in by)
        counted = _fetch(cursor, sql.SQL("SELECT {} FROM {}").format(blanks, _STAGED))
        check_keys(batch, dict(zip(batch.rule.columns, counted, strict=True)))
        repeated = sql.SQL("SELECT count(*) FROM (SELECT 1 FROM {} GROUP BY {} HAVING count(*) > 1) AS t")
        (twice,) = _fetch(cursor, repeated.format(_STAGED, sql.SQL(", ").join(by)))
        if twice:
            raise LoadRefused(
                f"{twice} keys ({', '.join(batch.rule.columns)}) come more than once in the result; make them "
                'unique, for example with "rows": {"dedupe": …}'
            )

    def _move_over(self, cursor: psycopg.Cursor[Any], batch: LoadBatch, types: Mapping[str, str]) -> int:
        insert = sql.SQL("INSERT INTO {} ({}, {}, {}) SELECT %s, {}, {} FROM {}").format(
            self._table(batch.rule.table), sql.Identifier(JOB_COLUMN), sql.Identifier(ROW_COLUMN),
            sql.SQL(", ").join(_named(column.name) for column in batch.columns), sql.Identifier(ROW_COLUMN),
            sql.SQL(", ").join(_stored(column, types) for column in batch.columns), _STAGED,
        )  # fmt: skip
        cursor.execute(insert, [batch.job_id])
        return cursor.rowcount

    def _note(self, cursor: psycopg.Cursor[Any], batch: LoadBatch, noted: _Noted) -> None:
        """Note a load in the ledger."""
        note = sql.SQL(
            "INSERT INTO {} (job_id, name, line, stamp, digest, corrects, place, rows, first_page, end_page)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
        )
        origin = [batch.line, batch.stamp, batch.digest, batch.corrects or None, batch.place]
        facts = [batch.job_id, batch.rule.table, *origin, *noted]
        cursor.execute(note.format(self._ledger), facts)

    def _remove_job(self, cursor: psycopg.Cursor[Any], job_id: str, name: str) -> int:
        """Delete a job's rows and its entry; put back what they replaced. LoadRefused if others build on them."""
        gone = _fetch(
            cursor,
            sql.SQL("DELETE FROM {} WHERE job_id = %s AND name = %s RETURNING rows, first_page, end_page").format(
                self._ledger
            ),
            job_id, name,
        )  # fmt: skip
        if not gone:
            return 0
        later = _fetch(
            cursor,
            sql.SQL("SELECT job_id FROM {} WHERE name = %s AND row ->> {} = %s LIMIT 1").format(
                self._replaced, JOB_COLUMN
            ),
            name, job_id,
        )  # fmt: skip
        if later:
            raise LoadRefused(built_upon(job_id, str(later[0])))
        table = self._table(name)
        count = self._delete_rows(cursor, job_id, name, _Noted(*gone))
        cursor.execute(
            "SELECT column_name FROM information_schema.columns"
            " WHERE table_schema = %s AND table_name = %s AND is_generated = 'NEVER'",
            [self._schema, name],
        )
        columns = [_named(str(column)) for (column,) in cursor.fetchall()]
        back = sql.SQL(
            "WITH back AS (DELETE FROM {replaced} WHERE job_id = %s AND name = %s RETURNING row) "
            "INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE "
            "SELECT {values} FROM back, jsonb_populate_record(NULL::{table}, back.row) AS r"
        ).format(
            replaced=self._replaced, table=table, columns=sql.SQL(", ").join(columns),
            values=sql.SQL(", ").join(sql.SQL("r.{}").format(column) for column in columns),
        )  # fmt: skip
        cursor.execute(back, [job_id, name])
        return count

    def _delete_rows(
        self, cursor: psycopg.Cursor[Any], job_id: str, name: str, noted: "_Noted", *, aside_for: str | None = None
    ) -> int:
        """Delete a job's rows: in the pages that they went to, and elsewhere if these are not all. Returns how many.

        `aside_for`: a job that puts them back when it is unloaded.
        """
        every = sql.SQL("DELETE FROM {} AS t WHERE {} = %s").format(self._table(name), sql.Identifier(JOB_COLUMN))
        pages = [f"({page or 0},0)" for page in (noted.first_page, noted.end_page)]
        count = 0
        for delete, places in ((every + sql.SQL(" AND ctid >= %s::tid AND ctid < %s::tid"), pages), (every, [])):
            if count < noted.rows and aside_for is None:
                cursor.execute(delete, [job_id, *places])
                count += cursor.rowcount
            elif count < noted.rows:
                put_aside = sql.SQL(
                    "WITH gone AS ({} RETURNING to_jsonb(t.*) AS row) INSERT INTO {} SELECT %s, %s, row FROM gone"
                )
                query = put_aside.format(delete, self._replaced)
                cursor.execute(query, [job_id, *places, aside_for, name])
                count += cursor.rowcount
        return count

    def _table(self, name: str) -> sql.Identifier:
        return sql.Identifier(self._schema, name)


def may_have_guards(rows: Path, delimiter: str) -> bool:
    """Whether a cell may begin with an apostrophe, which `GUARDED_TEXT` may want removed: seen without parsing rows."""
    starts = [before + b"'" for before in (delimiter.encode(), b"\n", b'"')]
    with rows.open("rb") as file:
        last = b"\n"
        while block := file.read(_BLOCK):
            if last + block[:1] in starts or (b"'" in block and any(start in block for start in starts)):
                return True
            last = block[-1:]
    return False


def _copy(cursor: psycopg.Cursor[Any], batch: LoadBatch, target: sql.Identifier, rows: Path) -> int:
    """Have the server read the file; returns how many rows it has."""
    names = sql.SQL(", ").join(sql.Identifier(column.name) for column in batch.columns)  # COPY has no placeholders
    if len(batch.columns) == 1:
        return _copy_cells(cursor, sql.SQL("COPY {} ({}) FROM STDIN").format(target, names), rows)
    copy = sql.SQL("COPY {} ({}) FROM STDIN WITH (FORMAT csv, HEADER true, DELIMITER {})").format(
        target, names, batch.delimiter
    )
    with rows.open("rb") as file, cursor.copy(copy) as stream:
        if file.read(len(_BOM)) != _BOM:
            file.seek(0)
        while block := file.read(_BLOCK):
            stream.write(block)
    return cursor.rowcount


def _copy_cells(cursor: psycopg.Cursor[Any], copy: sql.Composed, rows: Path) -> int:
    """Read a file of one column, where a server takes a backslash and a dot for the end, and a blank for a text."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CELL))
    with rows.open(encoding="utf-8-sig", newline="") as file, cursor.copy(copy) as stream:
        for cell in islice(csv.reader(file), 1, None):
            stream.write_row([cell[0] or None])
    return cursor.rowcount


def _stored(column: LoadColumn, types: Mapping[str, str]) -> sql.Composable:
    """A staged value as its column of the table has it."""
    return _cast(_plain(column), sql_type(column), types[column.name])


def _cast(value: sql.Composable, present: str, wanted: str) -> sql.Composable:
    """A value in another type, by its digits: a server rounds a double that becomes a decimal."""
    if present == wanted:
        return value
    return sql.SQL("({})::text::{}").format(value, sql.SQL(wanted))


def _plain(column: LoadColumn) -> sql.Composable:
    """A staged value without the apostrophe that it got in CSV."""
    name = _named(column.name)
    if column.type != "string":
        return name
    # The first test spares most texts the second one, which costs more than reading the file.
    unguarded = "CASE WHEN starts_with({0}, '''') AND {0} ~ {1} THEN substr({0}, 2) ELSE {0} END"
    return sql.SQL(unguarded).format(name, GUARDED_TEXT)


def _fetch(cursor: psycopg.Cursor[Any], query: sql.Composed | sql.SQL, *values: object) -> tuple[Any, ...]:
    """The first row of an answer; empty if it has none."""
    cursor.execute(query, values)
    return cursor.fetchone() or ()


def _named(name: str) -> sql.Identifier:
    """A column by a name that is not ours: its percent signs are no placeholders, whatever the query's values."""
    return sql.Identifier(name.replace("%", "%%"))
