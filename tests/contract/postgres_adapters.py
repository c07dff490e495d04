"""The PostgreSQL adapters over a real server, for the registry in adapters.py and for worlds."""

import functools
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import psycopg

from core.ports import Clock, JobTable, WorkQueue
from infra.clocks import HandClock
from infra.postgres.connections import Connections, parse_database
from infra.postgres.listening import PostgresBells
from infra.postgres.pg_queue import PostgresWorkQueue
from infra.postgres.pg_table import PostgresJobTable
from infra.postgres.schema import init_database
from tests.contract import servers
from tests.contract.embedded import job_wake_at
from tests.contract.rigs import Rig

_TABLES = ["jobs", "tallies", "pauses", "leases", "fences", "generations", "messages", "lanes", "dead_letters"]


def url_of(server_url: str, schema: str, **options: str) -> str:
    given = {"schema": schema, "pool": "4"} | options
    return f"{server_url}?" + "&".join(f"{name}={value}" for name, value in given.items())


@functools.cache
def _schema(server_url: str) -> str:
    """A schema of this process's own, made once."""
    name = f"t{os.getpid()}"
    init_database(parse_database(url_of(server_url, name)), apply=True)
    return name


def emptied(**options: str) -> str:
    """The URL of this process's schema, with nothing in it."""
    server = servers.postgres().endpoint
    schema = _schema(server)
    with psycopg.connect(server, autocommit=True) as db:
        db.execute(";".join(f"DELETE FROM {schema}.{name}" for name in _TABLES))
    return url_of(server, schema, **options)


@contextmanager
def opened(url: str) -> Iterator[tuple[Connections, PostgresBells]]:
    with closing(Connections(parse_database(url))) as connections, closing(PostgresBells(connections)) as bells:
        yield connections, bells


@contextmanager
def postgres_table(url: str, at: float | Clock) -> Iterator[JobTable]:
    clock = HandClock(at) if isinstance(at, float) else at
    with opened(url) as (connections, bells):
        yield PostgresJobTable(connections, bells, job_wake_at, clock=clock)


@contextmanager
def postgres_queue(url: str, at: float | Clock) -> Iterator[WorkQueue]:
    clock = HandClock(at) if isinstance(at, float) else at
    with opened(url) as (connections, bells):
        yield PostgresWorkQueue(connections, bells, clock=clock)


@contextmanager
def table(_: Path, clock: HandClock) -> Iterator[Rig[JobTable]]:
    with _table(emptied(), clock) as rig:
        yield rig


@contextmanager
def queue(_: Path, clock: HandClock) -> Iterator[Rig[WorkQueue]]:
    with _queue(emptied(), clock) as rig:
        yield rig


@contextmanager
def pooled_table(_: Path, clock: HandClock) -> Iterator[Rig[JobTable]]:
    with _table(pooled(), clock) as rig:
        yield rig


@contextmanager
def pooled_queue(_: Path, clock: HandClock) -> Iterator[Rig[WorkQueue]]:
    with _queue(pooled(), clock) as rig:
        yield rig


def pooled() -> str:
    """The URL of this process's schema behind pgbouncer in transaction mode, with nothing in it."""
    direct, server = emptied(), servers.postgres().endpoint
    return direct.replace(server, servers.pgbouncer())


@contextmanager
def _table(url: str, clock: HandClock) -> Iterator[Rig[JobTable]]:
    with postgres_table(url, clock) as port:
        yield Rig(port=port, clock=clock, another=partial(postgres_table, url, clock.at), remote=True)


@contextmanager
def _queue(url: str, clock: HandClock) -> Iterator[Rig[WorkQueue]]:
    with postgres_queue(url, clock) as port:
        yield Rig(port=port, clock=clock, another=partial(postgres_queue, url, clock.at), remote=True)
