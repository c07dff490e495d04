"""The cloud adapters over real servers, for the registry in adapters.py."""

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from core.ports import Clock, JobTable, ObjectStore, WorkQueue
from infra.addresses import parse_address
from infra.aws.dynamodb import DynamoJobTable
from infra.aws.dynamodb_items import table_definition
from infra.aws.s3 import S3Store
from infra.aws.sqs import SqsWorkQueue
from infra.clocks import HandClock
from infra.deploy.local_cloud import Server
from tests.contract import servers
from tests.contract.embedded import job_wake_at
from tests.contract.rigs import Factory, Rig

PAGE = 10  # so that small cases see several pages
_NUMBERS = itertools.count(1)


def _unique(kind: str) -> str:
    return f"ade-{kind}-{os.getpid()}-{next(_NUMBERS)}"


@contextmanager
def s3_store(url: str, environment: dict[str, str]) -> Iterator[ObjectStore]:
    os.environ.update(environment)
    with closing(S3Store(parse_address(url), page_size=PAGE)) as store:
        yield store


def s3(start: Callable[[], Server], *, versioned: bool = False, bucket: str = "") -> Factory[ObjectStore]:
    """A bucket on a server, the same for all tests of this process and empty at the start of each."""
    name = bucket or f"ade-{os.getpid()}-{'versioned' if versioned else 'plain'}"

    @contextmanager
    def factory(_: Path, clock: HandClock) -> Iterator[Rig[ObjectStore]]:
        server = start()
        url = servers.url("s3", name, server)
        with servers.credentials(server), s3_store(url, server.environment) as store:
            admin = servers.admin("s3", server.endpoint)
            if not bucket and name not in {b["Name"] for b in admin.list_buckets()["Buckets"]}:
                admin.create_bucket(Bucket=name)
            if versioned:
                admin.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
            store.delete_prefix("")
            yield Rig(port=store, clock=clock, another=partial(s3_store, url, server.environment), remote=True)

    return factory


@contextmanager
def dynamodb_table(url: str, environment: dict[str, str], at: float | Clock) -> Iterator[JobTable]:
    os.environ.update(environment)
    clock = HandClock(at) if isinstance(at, float) else at
    with closing(DynamoJobTable(parse_address(url), clock, job_wake_at)) as table:
        yield table


def dynamodb(start: Callable[[], Server], *, isolates: bool = True) -> Factory[JobTable]:
    @contextmanager
    def factory(_: Path, clock: HandClock) -> Iterator[Rig[JobTable]]:
        server, name = start(), _unique("table")
        url = servers.url("dynamodb", name, server, shards="3")
        with servers.credentials(server):
            admin = servers.admin("dynamodb", server.endpoint)
            admin.create_table(**table_definition(name))
            admin.get_waiter("table_exists").wait(TableName=name)
            with dynamodb_table(url, server.environment, clock) as table:
                another = partial(dynamodb_table, url, server.environment, clock.at)
                yield Rig(port=table, clock=clock, another=another, remote=True, isolates=isolates)
            admin.delete_table(TableName=name)

    return factory


@contextmanager
def sqs_queue(url: str, environment: dict[str, str], at: float | Clock) -> Iterator[WorkQueue]:
    os.environ.update(environment)
    clock = HandClock(at) if isinstance(at, float) else at
    with closing(SqsWorkQueue(parse_address(url), clock, longest_poll=2, dead_poll=0)) as queue:
        yield queue


def sqs(start: Callable[[], Server]) -> Factory[WorkQueue]:
    @contextmanager
    def factory(_: Path, clock: HandClock) -> Iterator[Rig[WorkQueue]]:
        server, name = start(), _unique("queue")
        url = servers.url("sqs", name, server)
        with servers.credentials(server):
            admin = servers.admin("sqs", server.endpoint)
            made = [admin.create_queue(QueueName=n)["QueueUrl"] for n in (name, f"{name}-dead")]
            with sqs_queue(url, server.environment, clock) as queue:
                another = partial(sqs_queue, url, server.environment, clock.at)
                yield Rig(port=queue, clock=clock, another=another, remote=True, moves_time=False, orders=False)
            for queue_url in made:
                admin.delete_queue(QueueUrl=queue_url)

    return factory
