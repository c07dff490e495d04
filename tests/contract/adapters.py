"""The adapters that the contract suites run over. A new adapter names itself in one of the three tables below.

A factory gets an empty folder and a hand-moved clock and gives a Rig for as long as its context lasts. AWS itself is
among them where ADE_TEST_AWS_BUCKET names a bucket to spare, whose name must begin with `ade-test-`: the suite empties
it, and makes and removes tables and queues of its own beside it.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from core.ports import JobTable, ObjectStore, WorkQueue
from infra.clocks import HandClock
from tests.contract import cloud_adapters, postgres_adapters, servers
from tests.contract.embedded import folder_store, job_wake_at, sqlite_queue, sqlite_table
from tests.contract.rigs import Factory, Rig
from tests.sim.parts import Bucket, Messages, Rows, SimQueue, SimStore, SimTable


@contextmanager
def _folder(where: Path, clock: HandClock) -> Iterator[Rig[ObjectStore]]:
    with folder_store(where.with_name("probe")) as probe:
        probe.put("inbox/probe/x", b"", metadata={"probe": "1"})
        found = probe.head("inbox/probe/x")
        keeps = found is not None and found.metadata == {"probe": "1"}
    with folder_store(where) as store:
        yield Rig(port=store, clock=clock, another=partial(folder_store, where), keeps_metadata=keeps)


@contextmanager
def _sqlite_table(where: Path, clock: HandClock) -> Iterator[Rig[JobTable]]:
    with sqlite_table(where, clock) as table:
        yield Rig(port=table, clock=clock, another=partial(sqlite_table, where, clock.at))


@contextmanager
def _sqlite_queue(where: Path, clock: HandClock) -> Iterator[Rig[WorkQueue]]:
    with sqlite_queue(where, clock) as queue:
        yield Rig(port=queue, clock=clock, another=partial(sqlite_queue, where, clock.at))


def _sim_store(*, versioned: bool) -> Factory[ObjectStore]:
    """The simulator's own parts. Its processes are threads, so they meet in memory as others do in a server."""

    @contextmanager
    def made(_where: Path, clock: HandClock) -> Iterator[Rig[ObjectStore]]:
        bucket = Bucket(clock, versioned=versioned)
        yield Rig(port=SimStore(bucket), clock=clock, another=lambda: contextlib.closing(SimStore(bucket)), remote=True)

    return made


@contextmanager
def _sim_table(_where: Path, clock: HandClock) -> Iterator[Rig[JobTable]]:
    rows = Rows(job_wake_at)
    yield Rig(
        port=SimTable(rows, clock),
        clock=clock,
        another=lambda: contextlib.closing(SimTable(rows, clock)),
        remote=True,
    )


@contextmanager
def _sim_queue(_where: Path, clock: HandClock) -> Iterator[Rig[WorkQueue]]:
    messages = Messages(clock)
    yield Rig(
        port=SimQueue(messages),
        clock=clock,
        another=lambda: contextlib.closing(SimQueue(messages)),
        remote=True,
        orders=False,
    )


BUCKET_TO_SPARE = os.environ.get("ADE_TEST_AWS_BUCKET", "")
if BUCKET_TO_SPARE and not BUCKET_TO_SPARE.startswith("ade-test-"):
    raise ValueError(f"ADE_TEST_AWS_BUCKET={BUCKET_TO_SPARE!r}: it is emptied, so its name must begin with ade-test-")


STORES: Mapping[str, Factory[ObjectStore]] = {
    "folder": _folder,
    "simulated": _sim_store(versioned=False),
    "simulated, versioned": _sim_store(versioned=True),
    "s3 on moto": cloud_adapters.s3(servers.moto),
    "versioned s3 on ministack": cloud_adapters.s3(servers.ministack, versioned=True),
    "s3 on seaweedfs": cloud_adapters.s3(servers.seaweedfs),
    "versioned s3 on seaweedfs": cloud_adapters.s3(servers.seaweedfs, versioned=True),
}
TABLES: Mapping[str, Factory[JobTable]] = {
    "sqlite": _sqlite_table,
    "simulated": _sim_table,
    "dynamodb on moto": cloud_adapters.dynamodb(servers.moto, isolates=False),
    "dynamodb on ministack": cloud_adapters.dynamodb(servers.ministack),
    "postgres": postgres_adapters.table,
    "postgres behind pgbouncer": postgres_adapters.pooled_table,
}
QUEUES: Mapping[str, Factory[WorkQueue]] = {
    "sqlite": _sqlite_queue,
    "simulated": _sim_queue,
    "sqs on moto": cloud_adapters.sqs(servers.moto),
    "sqs on ministack": cloud_adapters.sqs(servers.ministack),
    "postgres": postgres_adapters.queue,
    "postgres behind pgbouncer": postgres_adapters.pooled_queue,
}

if BUCKET_TO_SPARE:
    STORES = {**STORES, "s3 on aws": cloud_adapters.s3(servers.aws, versioned=True, bucket=BUCKET_TO_SPARE)}
    TABLES = {**TABLES, "dynamodb on aws": cloud_adapters.dynamodb(servers.aws)}
    QUEUES = {**QUEUES, "sqs on aws": cloud_adapters.sqs(servers.aws)}
