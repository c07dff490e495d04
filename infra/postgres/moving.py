"""Puts the content of a SQLite table and queue into an empty schema, all of it or nothing.

One transaction: rows are copied as they are (`COPY`), with their fences and revisions, and compared with the source
before the commit. A process that dies leaves an empty schema.
"""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from core.errors import StoreUnavailable, UsageError
from infra.postgres.connections import Connections, Link, in_schema, parse_database, storable_value

# Columns that both have, in the order of the key; the rest of a table is not moved. `jobs` are counted by a trigger.
_TABLES = {
    "jobs": ("job_id", "tenant", "workflow", "line", "state", "created_at", "wake_at", "resting", "rev", "doc"),
    "messages": ("job_id", "tenant", "priority", "rank", "ready", "visible_at", "sent_at", "receives"),
    "dead_letters": ("job_id", "tenant", "priority", "reason", "at"),
    "pauses": ("tenant", "workflow", "since", "by"),
    "fences": ("tenant", "fence"),
    "generations": ("name", "n"),
    "resolutions": ("what", "until", "tenant", "at", "by", "note"),
}  # fmt: skip
_ENDS = (
    "tenant", "workflow", "at", "files", "failed", "rows", "wrong", "drifted", "delay0", "delay1", "delay2", "delay3",
    "delay4", "delay5", "delay6", "last_at", "last_job",
)  # fmt: skip
# What PostgreSQL wants to know besides: nobody wrote the row yet, one slot of counters.
_BESIDE: dict[str, dict[str, object]] = {"jobs": {"writer": 0}, "ends": {"slot": 0}}
_BOOLEANS = {"resting", "ready"}


@dataclass(frozen=True, slots=True)
class MovedTable:
    """How many rows a table has, and a digest over all of them."""

    rows: int
    sha256: str


def move_tables(source: Path, url: str) -> tuple[dict[str, MovedTable], bool]:
    """Copy every table of a SQLite file that nobody writes to; what was moved, and whether it was there already.

    Raises UsageError if the schema holds anything else, StoreUnavailable if both differ after the copy.
    """
    address = parse_database(url)
    connections = Connections(address)
    try:
        link, _ = connections.connect()
    except psycopg.Error as error:
        raise StoreUnavailable(f"{address} cannot be reached: {type(error).__name__}; is it up?") from None
    finally:
        connections.close()
    tables = {**_TABLES, "ends": _ENDS}
    with link, sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True) as here:
        wanted = {name: _digest(_rows(here, name, columns)) for name, columns in tables.items()}
        try:
            with link.transaction():
                there = {name: _there(link, address.schema, name, columns) for name, columns in tables.items()}
                if there == wanted and any(one.rows for one in wanted.values()):
                    return wanted, True
                if held := sorted(name for name in ("jobs", "messages", "fences") if there[name].rows):
                    raise UsageError(
                        f"{address} is not empty ({', '.join(held)}); take a schema that `ade infra init` just made"
                    )
                for name, columns in tables.items():
                    _copy(link, address.schema, name, columns, _rows(here, name, columns))
                link.execute(
                    in_schema("SELECT ade.open_lanes(array_agg(DISTINCT tenant)) FROM ade.messages", address.schema)
                )
                copied = {name: _there(link, address.schema, name, columns) for name, columns in tables.items()}
                if copied != wanted:
                    wrong = sorted(name for name in tables if copied[name] != wanted[name])
                    raise StoreUnavailable(f"{', '.join(wrong)} differ after the copy; nothing was moved")
        except psycopg.Error as error:
            raise StoreUnavailable(f"{address} refused the copy: {type(error).__name__} {error.sqlstate}") from None
    return wanted, False


def _rows(here: sqlite3.Connection, name: str, columns: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    listed = ", ".join(f'"{column}"' for column in columns)
    query = f"SELECT {listed} FROM {name} ORDER BY {listed}"  # noqa: S608 - from constants
    for row in here.execute(query):
        values = tuple(bool(v) if c in _BOOLEANS else v for c, v in zip(columns, row, strict=True))
        # Texts for people, as the adapter writes them: PostgreSQL takes no NUL. Rows of jobs go as they are.
        yield values if name == "jobs" else tuple(storable_value(value) for value in values)


def _there(link: Link, schema: str, name: str, columns: tuple[str, ...]) -> MovedTable:
    text = {column for column in columns if column not in _NUMBERS}
    listed = ", ".join(f'"{column}"' for column in columns)
    order = ", ".join(f'"{column}" COLLATE "C"' if column in text else f'"{column}"' for column in columns)
    order = order.replace('"wake_at"', '"wake_at" NULLS FIRST')
    with link.cursor(name="moved") as cursor:
        cursor.execute(in_schema(f"SELECT {listed} FROM ade.{name} ORDER BY {order}", schema))  # noqa: S608 - from constants
        return _digest(cursor)


_NUMBERS = {
    "created_at", "wake_at", "resting", "ready", "rev", "priority", "rank", "visible_at", "sent_at", "receives", "at",
    "since", "fence", "n", "until", *_ENDS[3:-1],
}  # fmt: skip


def _digest(rows: Iterable[tuple[Any, ...]]) -> MovedTable:
    hasher, count = hashlib.sha256(), 0
    for row in rows:
        hasher.update(
            repr([float(v) if isinstance(v, int | float) else v for v in row]).encode("utf-8", "surrogatepass")
        )
        count += 1
    return MovedTable(count, hasher.hexdigest())


def _copy(link: Link, schema: str, name: str, columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> None:
    beside = _BESIDE.get(name, {})
    listed = ", ".join(f'"{column}"' for column in (*columns, *beside))
    with link.cursor() as cursor, cursor.copy(in_schema(f"COPY ade.{name} ({listed}) FROM STDIN", schema)) as stream:
        for row in rows:
            stream.write_row((*row, *beside.values()))
