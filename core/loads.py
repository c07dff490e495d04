"""Loads: results that are put into a table of a database. Pure; `infra/loads.py` carries them out.

A load is a notice with a database as its receiver: it is written into the job's row with the success that it is about,
and tried until it is done. A ledger in the database makes it happen once, however often it is tried.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Final, Self

from core.errors import SettingsError

PREFIX: Final = "load:"
LOCAL: Final = "local"  # the connection that the embedded mode has without any setting
JOB_COLUMN, ROW_COLUMN = "_ade_job", "_ade_row"
IDENTIFIER: Final = r"^[a-z_][a-z0-9_]{0,48}$"
DEFAULT_SCHEMA: Final = "ade_{tenant}"
# A text of normalized.csv that got an apostrophe because a spreadsheet would run it (docs/guides/downstream.md): loads
# remove that one. The engine's writer has the rule (`is_formula`); a NUL is U+FFFD by then. Python and PostgreSQL read
# the pattern alike.
GUARDED_TEXT: Final = r"\A'+(?:[=@\uff1d\uff20\t\r\n\ufffd]|[+\uff0b\uff0d-](?![0-9 .,()/-]*\Z))"
LONGEST_CELL: Final = 64 * 1024 * 1024  # characters, as many as the check of normalized.csv lets pass
LONGEST_SCHEMA: Final = 63  # PostgreSQL cuts longer names off
_CONNECTION_KEYS: Final = frozenset({"url", "schema", "tenants"})


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadRule:
    """Which table gets the rows of a result, and how."""

    connection: str
    table: str
    mode: str = "append"
    columns: tuple[str, ...] = ()  # the key of an upsert, the partition of a replacement

    def address(self) -> str:
        """The rule as the receiver of a notice."""
        return PREFIX + json.dumps([self.connection, self.table, self.mode, *self.columns], ensure_ascii=False)

    @classmethod
    def parse(cls, address: str) -> Self:
        """The rule of an address that `address` made."""
        connection, table, mode, *columns = json.loads(address.removeprefix(PREFIX))
        return cls(connection=connection, table=table, mode=mode, columns=tuple(columns))


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadConnection:
    """A database of the operator. Each tenant has a schema of its own in it unless `schema` says otherwise."""

    url: str
    schema: str = DEFAULT_SCHEMA
    tenants: tuple[str, ...] = ("*",)

    def serves(self, tenant: str) -> bool:
        return any(fnmatchcase(tenant, pattern) for pattern in self.tenants)

    def schema_of(self, tenant: str) -> str:
        """A tenant's schema, in letters that a database allows. No two tenants share one.

        A name of small letters, digits and _ stays as it is, unless it looks like an escaped one (`a_2d_b`).
        """
        plain = re.fullmatch(r"[a-z0-9_]*", tenant) and not re.search(r"_[0-9a-f]+_", tenant)
        escaped = tenant if plain else re.sub(r"[^a-z0-9]", lambda found: f"_{ord(found[0]):x}_", tenant)
        name = self.schema.replace("{tenant}", escaped)
        if len(name) <= LONGEST_SCHEMA:
            return name
        digest = f"_0{sha256(tenant.encode()).hexdigest()[:16]}_"  # no escape begins with a zero
        return name[: LONGEST_SCHEMA - len(digest)] + digest


def parse_connections(text: str) -> dict[str, LoadConnection]:
    """The operator's connections, from the file that ADE_LOAD_FILE names."""
    try:
        raw = json.loads(text)
    except ValueError as error:
        raise SettingsError(f"ADE_LOAD_FILE is not JSON: {error}") from None
    if not isinstance(raw, dict):
        raise SettingsError('ADE_LOAD_FILE is not an object such as {"warehouse": {"url": "postgresql://…"}}')
    return {name: _connection(name, facts) for name, facts in raw.items()}


def _connection(name: str, facts: object) -> LoadConnection:
    where = f"ADE_LOAD_FILE, connection {name}"
    if not isinstance(facts, Mapping) or not isinstance(facts.get("url"), str):
        raise SettingsError(f'{where} has no "url"')
    if unknown := set(facts) - _CONNECTION_KEYS:
        raise SettingsError(f"{where}: {min(unknown)} is unknown; known are url, schema and tenants")
    schema, tenants = facts.get("schema", DEFAULT_SCHEMA), facts.get("tenants", ["*"])
    if not isinstance(schema, str) or not re.match(IDENTIFIER, schema.replace("{tenant}", "t")):
        what = "schema is not a name of small letters, digits and _, in which {tenant} stands for the tenant"
        raise SettingsError(f"{where}: {what}")
    if not isinstance(tenants, list) or not all(isinstance(one, str) for one in tenants):
        raise SettingsError(f"{where}: tenants is not a list of names or patterns")
    return LoadConnection(url=facts["url"], schema=schema, tenants=tuple(tenants))


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadColumn:
    """A column of schema.json."""

    name: str
    type: str
    exact: bool = False  # a decimal


def columns_of(schema: Mapping[str, object]) -> tuple[LoadColumn, ...]:
    """The columns of a verified schema.json."""
    fields = schema["fields"]
    return tuple(
        LoadColumn(name=str(field["name"]), type=str(field["type"]), exact="scale" in field)
        for field in (fields if isinstance(fields, list) else ())
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadBatch:
    """The rows of one result."""

    job_id: str
    line: str  # results of one line follow each other
    stamp: float  # by which they do
    rule: LoadRule
    columns: tuple[LoadColumn, ...]
    digest: str  # of the rows
    delimiter: str = ","
    corrects: str = ""  # the job of the first drop, where this result was made of its corrected rejects
    place: int = 0  # among the corrections of that drop; each has the rows of the drop and of all before it

    @property
    def first_job(self) -> str:
        """The job of the drop that this result is of, or corrects."""
        return self.corrects or self.job_id


class LoadRefused(Exception):
    """A load will never work as it is; the message says why and what to do, and holds no cell's value."""


class LoadFailed(Exception):
    """A load did not work now, and is tried again; the message says why."""


WIDER: Final[Mapping[str, tuple[str, ...]]] = {
    # A column's type may only become a wider one: what is in the table stays what it was.
    "boolean": ("text",),
    "bigint": ("numeric", "text"),
    "smallint": ("bigint", "numeric", "text"),  # this one and others below: only where somebody changed a column
    "integer": ("bigint", "numeric", "text"),
    "real": ("double precision", "numeric", "text"),
    "double precision": ("numeric", "text"),
    "numeric": ("text",),
    "date": ("timestamp", "text"),
    "timestamp": ("text",),
    "time": ("text",),
    "character varying": ("text",),
    "text": (),
}
SQL_TYPES: Final = {
    "string": "text",
    "integer": "bigint",
    "number": "double precision",
    "boolean": "boolean",
    "date": "date",
    "datetime": "timestamp",
    "time": "time",
}


def sql_type(column: LoadColumn) -> str:
    return "numeric" if column.exact else SQL_TYPES[column.type]


def widened(present: str, incoming: str) -> str:
    """The type that holds both what a column has and what comes: one of the two, or the first that both may become."""
    if incoming == present or present in WIDER.get(incoming, ()):
        return present
    if incoming in WIDER.get(present, ()):
        return incoming
    return next((wider for wider in WIDER.get(present, ()) if wider in WIDER.get(incoming, ())), "text")


def check_columns(batch: LoadBatch, longest: int) -> None:
    """Refuse columns that a database would confuse; raises LoadRefused."""
    names = [column.name for column in batch.columns]
    seen = {JOB_COLUMN, ROW_COLUMN}
    for n, name in enumerate(names):
        if name.casefold() in seen:
            raise LoadRefused(f"column {n + 1} has the name of another one; set mapping.unmapped to drop, or rename it")
        if not name or len(name.encode()) > longest or "\0" in name:
            raise LoadRefused(
                f"the name of column {n + 1} is blank, longer than {longest} bytes or has a NUL; rename it"
            )
        seen.add(name.casefold())
    missing = [name for name in batch.rule.columns if name not in names]
    if missing:
        raise LoadRefused(f"output.load names the column {missing[0]}, which the result does not have")


def built_upon(job_id: str, later: str) -> str:
    """Why the rows of a job cannot be removed: what they replaced would come back beside what replaced them."""
    return f"job {later} replaced rows of job {job_id}; unload {later} first"


def check_keys(batch: LoadBatch, blanks: Mapping[str, int]) -> None:
    """Refuse rows without a key, which would replace each other. `blanks`: rows by the key's column that is blank."""
    for name, count in blanks.items():
        if count:
            rows = "1 row has" if count == 1 else f"{count} rows have"
            remedy = 'make it required with "on_error": "split", or leave such rows out with rows.filter'
            raise LoadRefused(f"{rows} no {name}, which is a key of table {batch.rule.table}; {remedy}")
