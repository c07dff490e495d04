"""The schema of the database: its migrations, which run once each under a lock, and the roles that may use it.

Migrations go forward only and are in sql/migrations by number. One of them may add and replace, and must keep what
the program of the version before needs: old and new processes work side by side while a fleet is upgraded. What only
the older one needs goes with the next migration.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources

import psycopg
from psycopg import errors, sql

from core.errors import CallRefused, StoreUnavailable
from core.settings import Settings
from core.verdicts import FAULTS
from infra.addresses import is_postgres
from infra.aws.provision import Step
from infra.postgres.connections import (
    SCHEMA_VERSION,
    UTF8_REMEDY,
    Link,
    PostgresAddress,
    check_version,
    in_schema,
    parse_database,
)

ROLES = ("runner", "handler", "reader")
_LOCK = 0x61646564  # of this program; whoever migrates waits for it
_NAME = re.compile(r"(\d{3})_[a-z0-9_]+\.sql")
_CONNECT_SECONDS = 10
_CHECKS_ITS_CLIENT = 140000  # the first server version that can
_FAULTS = " ".join(f"WHEN '{verdict}' THEN '{fault}'" for verdict, fault in FAULTS.items())


def migrations() -> dict[int, str]:
    """Number → SQL of every migration."""
    folder = resources.files("infra.postgres").joinpath("sql/migrations")
    found = {
        int(match[1]): file.read_text(encoding="utf-8")
        for file in folder.iterdir()
        if (match := _NAME.fullmatch(file.name))
    }
    return dict(sorted(found.items()))


def init_databases(settings: Settings, *, apply: bool) -> list[Step]:
    """Schema and roles in every PostgreSQL database that the settings name. `apply`: make what is missing."""
    urls = dict.fromkeys(url for url in (settings.table_url, settings.queue_url) if is_postgres(url))
    return [step for url in urls for step in init_database(parse_database(url), apply=apply)]


def init_database(database: PostgresAddress, *, apply: bool) -> list[Step]:
    try:
        with Link.connect(database.conninfo, autocommit=True, connect_timeout=_CONNECT_SECONDS) as db:
            if (encoding := db.info.parameter_status("server_encoding")) != "UTF8":
                raise CallRefused(f"{database} holds texts in {encoding}; {UTF8_REMEDY}")
            return [*_migrate(db, database, apply=apply), *_grant(db, database, apply=apply)]
    except errors.InsufficientPrivilege as error:
        raise CallRefused(
            f"{database} lets this role not make the schema: {database.hide(str(error.diag.message_primary))}; "
            "use a role with CREATE on the database, or the owner of the schema"
        ) from error
    except psycopg.Error as error:
        raise StoreUnavailable(f"{database} did not make the schema: {database.hide(str(error))}") from None


@contextmanager
def _unhurried(db: Link) -> Iterator[None]:
    """A transaction that lasts and waits as long as it must, whatever the role's limits, but ends with this process.

    It begins and sets its limits in one message: between two of them the role's own could end it.
    """
    limits = ["statement_timeout = 0", "lock_timeout = 0", "idle_in_transaction_session_timeout = 0"]
    if db.info.server_version >= _CHECKS_ITS_CLIENT:  # else whoever comes next waits for the statement to end
        limits.append("client_connection_check_interval = '1s'")
    db.execute("; ".join(["BEGIN", *(f"SET LOCAL {limit}" for limit in limits)]))
    try:
        yield
    except BaseException:
        if not db.closed:
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def _migrate(db: Link, database: PostgresAddress, *, apply: bool) -> Iterator[Step]:
    schema = database.schema
    with _unhurried(db):
        db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        found = _version(db, schema)
        if found > SCHEMA_VERSION:
            check_version(found, str(database))
        missing = {number: text for number, text in migrations().items() if number > found}
        if not missing:
            yield Step(kind="schema", name=schema, action="keep", detail=f"version {found}")
            return
        if apply:
            if not found:
                db.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
                db.execute(in_schema(_VERSIONS, schema))
            for number, text in missing.items():
                db.execute(in_schema(text, schema))
                db.execute(in_schema("INSERT INTO ade.versions (version) VALUES (%s)", schema), (number,))
        reached = max(missing)
        detail = f"version {reached}" if not found else f"version {found} → {reached}"
        yield Step(kind="schema", name=schema, action="create", detail=detail)


def _grant(db: Link, database: PostgresAddress, *, apply: bool) -> list[Step]:
    """The view for people, the roles and their rights.

    Where we may not create roles, the schema is complete without them, and every process connects as its owner.
    """
    names = [f"{database.schema}_{role}" for role in ROLES]
    with _unhurried(db):
        db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        there = {name for (name,) in db.execute("SELECT rolname FROM pg_roles WHERE rolname = ANY (%s)", (names,))}
        steps = [
            Step(kind="role", name=name, action="keep") if name in there else _role(db, name, apply=apply)
            for name in names
        ]
        if apply:
            db.execute(in_schema(_read("jobs_view.sql").replace("FAULTS END", f"{_FAULTS} END"), database.schema))
        if apply and all(step.action != "unsupported" for step in steps):
            db.execute(_for_roles(database.schema))
    return steps


def _role(db: Link, name: str, *, apply: bool) -> Step:
    try:
        if apply:
            with db.transaction():
                db.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(name)))
    except (errors.DuplicateObject, errors.UniqueViolation):  # roles belong to all databases of a server
        return Step(kind="role", name=name, action="keep")
    except errors.InsufficientPrivilege:
        return Step(kind="role", name=name, action="unsupported", detail="needs CREATEROLE")
    return Step(kind="role", name=name, action="create")


def _for_roles(schema: str) -> str:
    text = re.sub(r"\bSCHEMA ade\b", f'SCHEMA "{schema}"', _read("roles.sql"))
    text = re.sub(r"\bade_(runner|handler|reader)\b", rf'"{schema}_\1"', text)
    return in_schema(text, schema)


def _read(name: str) -> str:
    return resources.files("infra.postgres").joinpath(f"sql/{name}").read_text(encoding="utf-8")


def _version(db: Link, schema: str) -> int:
    row = db.execute("SELECT to_regclass(%s)", (f'"{schema}".versions',)).fetchone()
    if row is None or row[0] is None:
        return 0
    (found,) = db.execute(in_schema("SELECT max(version) FROM ade.versions", schema)).fetchone() or (0,)
    return int(found or 0)


_VERSIONS = """
CREATE TABLE IF NOT EXISTS ade.versions (
  version integer NOT NULL PRIMARY KEY,
  at      timestamptz NOT NULL DEFAULT now()
)
"""
