"""Where a world's ports live: in a folder, or on servers that are reached over HTTP and keep the world's time."""

import functools
import itertools
import json
import mmap
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from core.chores import wake_at
from core.jobs import Job
from core.ports import JobTable, ObjectStore, WorkQueue
from core.settings import Settings
from infra.addresses import parse_address
from infra.aws.dynamodb import DynamoJobTable
from infra.aws.dynamodb_items import table_definition
from infra.aws.s3 import S3Store
from infra.aws.sqs import SqsWorkQueue
from infra.clocks import HandClock
from infra.deploy.local_cloud import Server
from infra.local.folder import FolderStore
from infra.local.sqlite import Database
from infra.local.sqlite_queue import SqliteWorkQueue
from infra.local.sqlite_table import SqliteJobTable
from infra.postgres.pg_queue import PostgresWorkQueue
from infra.postgres.pg_table import PostgresJobTable
from tests.contract import postgres_adapters, servers

RECEIVES = 50  # as in a deployment: a message received so often is moved to the dead letters by SQS itself
_NUMBERS = itertools.count(1)


class Ports(NamedTuple):
    clock: HandClock
    store: ObjectStore
    table: JobTable
    queue: WorkQueue


Place = Callable[[Settings], AbstractContextManager[Ports]]


def _wake(settings: Settings) -> Callable[[Job], float | None]:
    return functools.partial(wake_at, timings=settings.timings)


@contextmanager
def embedded(settings: Settings) -> Iterator[Ports]:
    """A folder and one SQLite file."""
    folder, clock = settings.storage_data_dir, HandClock()
    with (
        closing(FolderStore(folder)) as store,
        closing(Database(folder / "ade.sqlite")) as database,
        closing(SqliteWorkQueue(database, clock)) as queue,
    ):
        yield Ports(clock, store, SqliteJobTable(database, clock, _wake(settings)), queue)


@contextmanager
def postgres(settings: Settings) -> Iterator[Ports]:
    """A folder, and table and queue in PostgreSQL, which takes the time from its callers."""
    clock = HandClock()
    with (
        closing(FolderStore(settings.storage_data_dir)) as store,
        postgres_adapters.opened(postgres_adapters.emptied()) as link,
    ):
        table = PostgresJobTable(*link, _wake(settings), clock=clock)
        yield Ports(clock, store, table, PostgresWorkQueue(*link, clock=clock))


class ServersClock(HandClock):
    """A clock that the server reads too, so that its hidden and delayed messages come back when the world says so."""

    def __init__(self, shared: Path) -> None:
        with shared.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), 8)
        super().__init__(struct.unpack("d", self._shared)[0])  # on from where the last world stopped

    def move(self, seconds: float) -> None:
        super().move(seconds)
        self._shared[:] = struct.pack("d", self.at)


@contextmanager
def cloud(settings: Settings, *, versioned: bool = False, seaweedfs: bool = False) -> Iterator[Ports]:
    """S3, DynamoDB and SQS on real servers over HTTP, each new and empty."""
    server, shared = servers.ministack_by_hand()
    stores = servers.seaweedfs() if seaweedfs else server  # its credentials are good for MiniStack, which asks for none
    name, clock = f"world-{os.getpid()}-{next(_NUMBERS)}", ServersClock(shared)
    with ExitStack() as opened:
        opened.enter_context(servers.credentials(stores))
        bucket = opened.enter_context(_bucket(stores, name, versioned=versioned))
        opened.enter_context(_table(server, name))
        opened.enter_context(_queues(server, name))
        address = {s: parse_address(servers.url(s, name, server)) for s in ("dynamodb", "sqs")}
        few = replace(address["dynamodb"], options={"shards": "2"})
        store = S3Store(parse_address(servers.url("s3", bucket, stores)))
        yield Ports(
            clock,
            opened.enter_context(closing(store)),
            opened.enter_context(closing(DynamoJobTable(few, clock, _wake(settings)))),
            opened.enter_context(closing(SqsWorkQueue(address["sqs"], clock, dead_poll=0))),
        )


@contextmanager
def _bucket(server: Server, name: str, *, versioned: bool) -> Iterator[str]:
    s3 = servers.admin("s3", server.endpoint)
    if server.name == "SeaweedFS":  # takes disk space for every bucket, so all worlds share one
        name = f"worlds-{os.getpid()}"
        with closing(S3Store(parse_address(servers.url("s3", name, server)))) as store:
            if name in {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}:
                store.delete_prefix("")
            else:
                s3.create_bucket(Bucket=name)
        yield name
        return
    s3.create_bucket(Bucket=name)
    if versioned:
        s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    yield name


@contextmanager
def _table(server: Server, name: str) -> Iterator[None]:
    db = servers.admin("dynamodb", server.endpoint)
    db.create_table(**table_definition(name))
    yield
    db.delete_table(TableName=name)


@contextmanager
def _queues(server: Server, name: str) -> Iterator[None]:
    sqs = servers.admin("sqs", server.endpoint)
    dead = sqs.create_queue(QueueName=f"{name}-dead")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": RECEIVES})
    work = sqs.create_queue(QueueName=name, Attributes={"RedrivePolicy": redrive})["QueueUrl"]
    yield
    for url in (work, dead):
        sqs.delete_queue(QueueUrl=url)


PLACES: dict[str, Place] = {
    "embedded": embedded,
    "postgres": postgres,
    "cloud": cloud,
    "versioned cloud": functools.partial(cloud, versioned=True),
    "cloud on seaweedfs": functools.partial(cloud, seaweedfs=True),
}
