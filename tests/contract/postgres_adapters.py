"""The PostgreSQL adapters over a real server, for the registry in adapters.py and for worlds."""

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
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
from tests.contract.rigs import P, Rig
from tests.support.postgres_server import TABLES


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
        db.execute(";".join(f"DELETE FROM {schema}.{name}" for name in TABLES))
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


def pooled() -> str:
    """The URL of this process's schema behind pgbouncer in transaction mode, with nothing in it."""
    direct, server = emptied(), servers.postgres().endpoint
    return direct.replace(server, servers.pgbouncer())


def _table(url: Callable[[], str], _: Path, clock: HandClock) -> AbstractContextManager[Rig[JobTable]]:
    return _rig(partial(postgres_table, url()), clock)


def _queue(url: Callable[[], str], _: Path, clock: HandClock) -> AbstractContextManager[Rig[WorkQueue]]:
    return _rig(partial(postgres_queue, url()), clock)


@contextmanager
def _rig(opens: Callable[[float | Clock], AbstractContextManager[P]], clock: HandClock) -> Iterator[Rig[P]]:
    with opens(clock) as port:
        yield Rig(port=port, clock=clock, another=partial(opens, clock.at), remote=True)


table, pooled_table = partial(_table, emptied), partial(_table, pooled)
queue, pooled_queue = partial(_queue, emptied), partial(_queue, pooled)
