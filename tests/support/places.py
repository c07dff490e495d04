"""Where a world's ports live: in a folder, or on servers that are reached over HTTP and keep the world's time."""

import functools
import itertools
import json
import mmap
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from core.chores import wake_at
from core.jobs import Job
from core.ports import JobTable, ObjectStore, WorkQueue
from core.settings import Settings
from infra.addresses import parse_address
from infra.clocks import HandClock
from infra.dynamodb import DynamoJobTable
from infra.dynamodb_items import table_definition
from infra.folder import FolderStore
from infra.s3 import S3Store
from infra.sqlite import Database
from infra.sqlite_queue import SqliteWorkQueue
from infra.sqlite_table import SqliteJobTable
from infra.sqs import SqsWorkQueue
from tests.contract import servers

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
def cloud(settings: Settings, *, versioned: bool = False) -> Iterator[Ports]:
    """S3, DynamoDB and SQS on a real server over HTTP, each new and empty."""
    server, shared = servers.ministack_by_hand()
    name = f"world-{os.getpid()}-{next(_NUMBERS)}"
    address = {s: parse_address(f"{s}://{name}?endpoint={server.endpoint}") for s in ("s3", "dynamodb", "sqs")}
    few = parse_address(f"dynamodb://{name}?endpoint={server.endpoint}&shards=2")
    clock = ServersClock(shared)
    with ExitStack() as opened:
        opened.enter_context(servers.credentials(server))
        s3, db, sqs = (servers.admin(service, server.endpoint) for service in address)
        s3.create_bucket(Bucket=name)
        if versioned:
            s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        db.create_table(**table_definition(name))
        dead = sqs.create_queue(QueueName=f"{name}-dead")["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": RECEIVES})
        work = sqs.create_queue(QueueName=name, Attributes={"RedrivePolicy": redrive})["QueueUrl"]
        yield Ports(
            clock,
            opened.enter_context(closing(S3Store(address["s3"]))),
            opened.enter_context(closing(DynamoJobTable(few, clock, _wake(settings)))),
            opened.enter_context(closing(SqsWorkQueue(address["sqs"], clock, dead_poll=0))),
        )
        db.delete_table(TableName=name)
        for url in (work, dead):
            sqs.delete_queue(QueueUrl=url)


PLACES: dict[str, Place] = {
    "embedded": embedded,
    "cloud": cloud,
    "versioned cloud": functools.partial(cloud, versioned=True),
}
