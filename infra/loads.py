"""Carries out loads: fetches the verified rows of a result and has a database take them, exactly once.

The trusted side parses none of the rows: PostgreSQL reads the CSV file itself (COPY). SQLite, which the embedded mode
has, cannot; there the file, which was verified cell by cell, is read row by row.
"""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, Protocol

from core.budget import Budget, plain
from core.errors import AdeError, ObjectMissing, ObjectTooLarge, SettingsError, UsageError
from core.jobs import Job, stamp_text
from core.keys import job_folder
from core.loads import (
    LOCAL,
    LoadBatch,
    LoadConnection,
    LoadFailed,
    LoadRefused,
    LoadRule,
    columns_of,
    parse_connections,
)
from core.ports import Clock, ObjectStore
from core.settings import Settings

ROWS_FILE, SCHEMA_FILE, LOAD_FILE = "normalized.csv", "schema.json", "load.json"
_BUDGET: Final = Budget(bytes=4 * 1024 * 1024, values=200_000)  # of schema.json: a few values a column
_MAX_ROWS_BYTES: Final = 64 * 1024**3
BLOCK_BYTES: Final = 1024 * 1024
_REPLACEMENT: Final = "\ufffd".encode()


class LoadedTables(Protocol):
    """A database that takes results. Every call is one transaction; a call that raised has changed nothing."""

    def load(self, batch: LoadBatch, rows: Path) -> int:
        """Put the rows into the table; returns how many of the job are in it then.

        A second call with the same digest changes nothing; one with another digest replaces the job's own rows. An
        older result of a line whose newer one is loaded changes nothing either (0), unless it only appends. A result
        that corrects a drop takes the place of the drop's own, which changes nothing once a correction is loaded.
        Raises LoadRefused or LoadFailed.
        """
        ...

    def unload(self, job_id: str) -> int:
        """Take a job's rows out of every table, put back what they replaced; returns how many went. No such job: 0."""
        ...

    def erase(self, tenant: str) -> int:
        """Delete all rows of a tenant, also those that later results put aside, and its entries; how many went.

        What its own results had replaced of other tenants is put back.
        """
        ...


class Loads:
    """The loads of a process. Safe to share between threads."""

    def __init__(self, settings: Settings, store: ObjectStore, clock: Clock) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
        self._connections = cache(lambda: _connections(settings))

    def load(self, job: Job, rule: LoadRule) -> int:
        """Load a result, and write what became of it beside it. Raises LoadRefused or LoadFailed."""
        try:
            count, replaced = self._load(job, rule)
        except LoadRefused as refused:
            self._note(job, rule, {"status": "refused", "error": str(refused)})
            raise
        self._note(job, rule, {"status": "loaded", "rows": count, "replaced": replaced})
        return count

    def unload(self, job: Job) -> int:
        """Take a result out of the tables that it was loaded into."""
        count = 0
        for rule in load_rules(job):
            count += self._tables(rule, job.tenant).unload(job.job_id)
            self._note(job, rule, {"status": "unloaded", "rows": count})
        return count

    def erase(self, tenant: str) -> dict[str, int]:
        """Delete all loaded rows of a tenant; how many went, by connection."""
        serving = {name: one for name, one in self._connections().items() if one.serves(tenant)}
        return {name: open_tables(one.url, one.schema_of(tenant)).erase(tenant) for name, one in serving.items()}

    def note_failure(self, job: Job, rule: LoadRule, why: str) -> None:
        """Write beside a result that its load is not tried any more."""
        self._note(job, rule, {"status": "failed", "error": why})

    def _load(self, job: Job, rule: LoadRule) -> tuple[int, int]:
        """How many rows are in the table then, and how many characters of them were replaced."""
        files = {file.name: file for file in job.files}
        if not {ROWS_FILE, SCHEMA_FILE} <= set(files):
            raise LoadRefused('the result has no normalized.csv; add "csv" to output.formats')
        tables = self._tables(rule, job.tenant)
        folder = job_folder(job)
        with tempfile.TemporaryDirectory(prefix="ade-load-") as scratch:
            rows = Path(scratch) / ROWS_FILE
            try:
                schema = plain(self._store.read(folder + SCHEMA_FILE, limit=_BUDGET.bytes), _BUDGET)
                fetched = self._store.fetch(folder + ROWS_FILE, rows, limit=_MAX_ROWS_BYTES)
            except ObjectMissing:
                raise LoadRefused("the outputs of the result are gone; run the job again") from None
            except ObjectTooLarge:
                raise LoadRefused("the result is too large to be loaded") from None
            except AdeError as error:
                raise LoadFailed(f"the bucket did not answer: {type(error).__name__}") from error
            if fetched.sha256 != files[ROWS_FILE].sha256:
                raise LoadFailed("normalized.csv is not the file that result.json names")
            batch = LoadBatch(
                job_id=job.job_id, line=job.line, stamp=job.stamp, rule=rule, columns=columns_of(schema),
                digest=fetched.sha256, delimiter=_delimiter(schema),
            )  # fmt: skip
            if job.mends is not None:  # it comes where the drop that it corrects came, however late
                line, stamp = replace(job, subject=job.mends.subject).line, job.mends.stamp
                place = max(1, job.mends.place)
                batch = replace(batch, line=line, stamp=stamp, corrects=job.mends.job_id, place=place)
            replaced = without_nuls(rows)
            return tables.load(batch, rows), replaced

    def _tables(self, rule: LoadRule, tenant: str) -> LoadedTables:
        connection = self._connections().get(rule.connection)
        if connection is None or not connection.serves(tenant):
            known = sorted(name for name, one in self._connections().items() if one.serves(tenant))
            offered = f"there are {', '.join(known)}" if known else "the operator offers none (ADE_LOAD_FILE)"
            raise LoadRefused(f"no connection {rule.connection} for tenant {tenant}; {offered}")
        return open_tables(connection.url, connection.schema_of(tenant))

    def _note(self, job: Job, rule: LoadRule, outcome: Mapping[str, object]) -> None:
        body = {"load": 1, "job_id": job.job_id, "connection": rule.connection, "table": rule.table, "mode": rule.mode,
                **outcome, "at": stamp_text(self._clock.now())}  # fmt: skip
        self._store.put(job_folder(job) + LOAD_FILE, json.dumps(body, indent=2).encode())


def without_nuls(rows: Path) -> int:
    """Replace every NUL in a file by U+FFFD; returns how many. PostgreSQL has no text with a NUL.

    Most files have none, and are only read.
    """
    with rows.open("rb") as file:
        count = sum(block.count(b"\0") for block in iter(partial(file.read, BLOCK_BYTES), b""))
    if count:
        clean = rows.with_name(f"{rows.name}.clean")
        with rows.open("rb") as file, clean.open("wb") as target:
            for block in iter(partial(file.read, BLOCK_BYTES), b""):
                target.write(block.replace(b"\0", _REPLACEMENT))
        clean.replace(rows)
    return count


def load_rules(job: Job) -> list[LoadRule]:
    """Into which tables the results of a job go."""
    return [LoadRule.parse(rule.to) for rule in job.notify if rule.to.startswith("load:")]


def open_tables(url: str, schema: str) -> LoadedTables:
    if url.startswith("sqlite:"):
        from infra.local.sqlite_loads import SqliteLoads  # noqa: PLC0415 - few processes load anything

        return SqliteLoads(Path(url.removeprefix("sqlite:")), schema)
    if url.startswith(("postgresql://", "postgres://")):
        from infra.postgres.pg_loads import PostgresLoads  # noqa: PLC0415 - as above, and an extra

        return PostgresLoads(url, schema)
    raise SettingsError("a connection of ADE_LOAD_FILE is neither postgresql:// nor sqlite:")


def _connections(settings: Settings) -> Mapping[str, LoadConnection]:
    """The operator's connections; the embedded mode has one of its own."""
    local = settings.storage_data_dir.absolute() / "loaded.sqlite"
    own = {} if settings.store_url else {LOCAL: LoadConnection(url=f"sqlite:{local}")}
    if settings.load_file is None:
        return own
    try:
        return own | parse_connections(settings.load_file.read_text())
    except OSError as error:
        raise UsageError(f"ADE_LOAD_FILE cannot be read: {error.strerror}") from None


def _delimiter(schema: Mapping[str, Any]) -> str:
    return str(schema["ade"]["csv"]["delimiter"])
