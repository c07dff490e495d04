"""Requests, units and cost per job over S3, SQS and DynamoDB, how fast the handler is, and how all of it grows.

python -m tests.bench.bench_cloud [--jobs N] [--few N] [--many N]

Counted at the real clients over MiniStack. The server's own time per request (its floor) is printed beside the
rates: on this server most of a look is spent waiting for it.
"""

import argparse
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from core.chores import wake_at
from core.jobs import Job, State
from core.ports import JobQuery, Message
from infra.aws.dynamodb_items import job_item
from infra.deploy.local_cloud import Server, ministack
from tests.bench import prices
from tests.bench.bench_spine import job as a_row
from tests.bench.cloud_rig import TENANTS, Rig, rig

VENVS = Path(__file__).parents[2] / ".venv-cloud"
# What stands in the table of docs/guides/cloud.md: a name, and which requests it covers.
ROWS: dict[str, tuple[str, ...]] = {
    "S3 PUT and COPY": ("S3 PutObject", "S3 CopyObject"),
    "S3 LIST": ("S3 ListObjectsV2", "S3 ListObjectVersions"),
    "S3 GET and HEAD": ("S3 GetObject", "S3 HeadObject"),
    "S3 DELETE": ("S3 DeleteObject", "S3 DeleteObjects"),
    "SQS": (
        *("SQS ReceiveMessage", "SQS SendMessage", "SQS SendMessageBatch", "SQS DeleteMessage"),
        *("SQS DeleteMessageBatch", "SQS ChangeMessageVisibility"),
    ),
    "DynamoDB writes": ("DynamoDB TransactWriteItems", "DynamoDB PutItem", "DynamoDB UpdateItem"),
    "DynamoDB reads": ("DynamoDB GetItem", "DynamoDB BatchGetItem", "DynamoDB Query"),
}


@dataclass
class PerJob:
    """What one job costs, handler and runner together."""

    handler: Counter[str]
    runner: Counter[str]
    writes: Counter[str]  # write units by table and index
    reads: float
    largest: int

    @property
    def requests(self) -> Counter[str]:
        return self.handler + self.runner

    @property
    def dollars(self) -> float:
        asked = sum(n * prices.request_price(name) for name, n in self.requests.items())
        written = sum(self.writes.values())
        return asked + written * prices.DYNAMODB_WRITE + self.reads * prices.DYNAMODB_READ

    def row(self, name: str) -> float:
        return sum(self.requests[operation] for operation in ROWS[name])

    def row_dollars(self, name: str) -> float:
        if name == "DynamoDB writes":
            return sum(self.writes.values()) * prices.DYNAMODB_WRITE
        if name == "DynamoDB reads":
            return self.reads * prices.DYNAMODB_READ
        return sum(self.requests[o] * prices.request_price(o) for o in ROWS[name])


def per_job(made: Rig, jobs: int, *, first: int = 0) -> tuple[PerJob, float, list[float]]:
    """Costs of jobs dropped now; seconds of the handler; seconds of each job in the runner."""
    for n in range(first, first + jobs):
        made.drop(n)
    made.meter.reset()
    handled = made.handle(2 * jobs)
    handler, writes, reads = made.meter.requests, made.meter.writes, made.meter.reads
    made.meter.reset()
    taken = made.work(jobs)
    found = PerJob(
        handler=Counter({k: v / jobs for k, v in handler.items()}),
        runner=Counter({k: v / jobs for k, v in made.meter.requests.items()}),
        writes=Counter({k: v / jobs for k, v in (writes + made.meter.writes).items()}),
        reads=(reads + made.meter.reads) / jobs,
        largest=made.meter.largest,
    )
    return found, handled, taken


def warm(made: Rig) -> None:
    """What a handler and a runner that have run for some minutes know: the tenants, and what is above their drops."""
    per_job(made, TENANTS)
    made.intake.sweep()


def table(found: PerJob) -> list[str]:
    """The table of docs/guides/cloud.md, as it has to stand there."""
    units = sum(found.writes.values())
    lines = ["| per job | requests | $ per 1,000 jobs |", "| --- | --- | --- |"]
    for name in ROWS:
        said = {"DynamoDB writes": f", {units:.0f} write units", "DynamoDB reads": f", {found.reads:.0f} read units"}
        lines.append(f"| {name}{said.get(name, '')} | {found.row(name):.1f} | {found.row_dollars(name) * 1000:.4f} |")
    lines.append(f"| all | {sum(found.requests.values()):.1f} | {found.dollars * 1000:.4f} |")
    return lines


def fill(made: Rig, rows: int) -> None:
    """Rows of ended jobs, in bulk and uncounted."""
    client, name, timings = made.stack.table._db, made.stack.table._name, made.stack.settings.timings
    ended = [replace(a_row(n), state=State.SUCCEEDED, ended_at=time.time(), rev=1) for n in range(rows)]
    items = [job_item(j, "w", lambda job: wake_at(job, timings), made.stack.table._shards) for j in ended]
    for at in range(0, rows, 25):
        puts = [{"PutRequest": {"Item": item}} for item in items[at : at + 25]]
        client.batch_write_item(RequestItems={name: puts})


def counted(made: Rig, act: Callable[[], object]) -> tuple[Counter[str], float, float, float]:
    """Requests, write units, read units and dollars of one act."""
    made.meter.reset()
    act()
    meter = made.meter
    asked = sum(n * prices.request_price(name) for name, n in meter.requests.items())
    cost = asked + meter.written * prices.DYNAMODB_WRITE + meter.reads * prices.DYNAMODB_READ
    return Counter(meter.requests), meter.written, meter.reads, cost


def _running(made: Rig) -> Job:
    """A job that this runner has the lease of."""
    job = replace(a_row(10**6), state=State.QUEUED)
    added, _ = made.stack.table.add(job)
    admitted = made.runner.worker._admit(added)
    assert isinstance(admitted, Job)
    return admitted


def _ended(made: Rig) -> Job:
    """A job that was run and published; what that asked for is not counted."""
    made.drop(10**7)
    made.handle(2)
    made.work(1)
    (job,) = made.stack.table.page(JobQuery(tenant=f"t{10**7 % TENANTS}", workflow="members"), limit=1).jobs
    made.meter.reset()
    return job


def _expired(made: Rig) -> Job:
    """The tombstone of that job, whose input has left the inbox."""
    (job,) = made.stack.table.page(JobQuery(states=frozenset({State.EXPIRED})), limit=1).jobs
    for item in job.inputs:
        made.stack.store.delete(item.ref.key)
    made.meter.reset()
    return job


def _refused(made: Rig) -> Callable[[], object]:
    """A job whose tenant may not start one: paused here, which costs what a reached cap costs."""
    added, _ = made.stack.table.add(replace(a_row(10**6 + 1), state=State.QUEUED))
    stack = made.stack
    with pause_all(made):
        stack.queue.send(Message(job_id=added.job_id, tenant=added.tenant))
        (delivery,) = stack.queue.receive(most=1, wait=5, visibility=30)
        made.runner.worker.handle(delivery)  # the first time also notes the reason in the row
        (delivery,) = stack.queue.receive(most=1, wait=5, visibility=30)

    def refuse() -> None:
        with pause_all(made):
            made.meter.reset()
            made.runner.worker.handle(delivery)
            kept = Counter(made.meter.requests), Counter(made.meter.writes), made.meter.reads
        made.meter.requests, made.meter.writes, made.meter.reads = kept

    return refuse


@contextmanager
def pause_all(made: Rig) -> Iterator[None]:
    from core.ports import Pause  # noqa: PLC0415 - the one place that needs it

    made.stack.table.pause(Pause(tenant="t1", workflow=None, since=0.0, by="bench"))
    yield
    made.stack.table.resume("t1", None)


def growth(made: Rig, rows: int, folders: int) -> dict[str, tuple[Counter[str], float, float, float]]:
    """What is done per look, per beat and per sweep, with so many ended jobs in the table and folders in the inbox."""
    fill(made, rows)
    stack, runner = made.stack, made.runner
    for n in range(folders):
        stack.store.put(f"inbox/t0/old{n}/readme.txt", b"x")
    made.forget_events()
    held = runner.beats.hold(_running(made), "a receipt")
    held.next_beat = 0.0
    return {
        "heartbeat": counted(made, runner.beats.round),
        "refused start": counted(made, _refused(made)),
        "janitor's look": counted(made, lambda: stack.table.attention(time.time())),
        "`ade jobs`": counted(made, lambda: stack.table.page(JobQuery())),
        "counts": counted(made, stack.table.counts),
        "expiry of a job": counted(made, lambda: runner.janitor._one(_ended(made), time.time() + 10**7)),
        "removal of its row": counted(made, lambda: runner.janitor._one(_expired(made), time.time() + 10**8)),
        "leader's lease": counted(made, lambda: stack.table.hold("janitor", runner.presence.owner, 30)),
    }


def floor(made: Rig) -> dict[str, float]:
    """Median milliseconds of the smallest request that each service answers: what the server itself takes."""
    s3, db, sqs = made.stack.store._s3, made.stack.table._db, made.stack.queue._sqs
    name, bucket, url = made.stack.table._name, made.stack.store._bucket, made.stack.queue._url
    key = {"pk": {"S": "nothing"}, "sk": {"S": "-"}}
    asks: dict[str, Callable[[], object]] = {
        "S3": lambda: s3.list_objects_v2(Bucket=bucket, Prefix="nothing/", MaxKeys=1),
        "DynamoDB": lambda: db.get_item(TableName=name, Key=key),
        "SQS": lambda: sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"]),
    }
    return {service: statistics.median(_timed(ask) for _ in range(20)) * 1000 for service, ask in asks.items()}


def _timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


@contextmanager
def server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as folder, ministack(VENVS, Path(folder)) as started:
        yield started


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=40)
    parser.add_argument("--few", type=int, default=100, help="ended jobs in the table, the first time")
    parser.add_argument("--many", type=int, default=5_000, help="and the second")
    asked = parser.parse_args(arguments)
    with server() as started, rig(started, scripted=False) as made:
        warm(made)
        found, handled, taken = per_job(made, asked.jobs, first=4)
        floors = floor(made)
        print("\n".join(table(found)))
        print(f"\nprices: {prices.REGION}, {prices.AS_OF}; largest job row {found.largest} bytes")
        print("write units per job:", ", ".join(f"{k} {v:.1f}" for k, v in sorted(found.writes.items())))
        events = 2 * asked.jobs
        print(f"requests per event: {sum(found.handler.values()) * asked.jobs / events:.1f}")
        print(f"handler: {events / handled:.0f} events/s; runner: {statistics.median(taken) * 1000:.0f} ms a job")
        print("server's floor per request:", ", ".join(f"{k} {v:.1f} ms" for k, v in floors.items()))
    shown: dict[int, dict[str, tuple[Counter[str], float, float, float]]] = {}
    again: dict[int, PerJob] = {}
    for rows in (asked.few, asked.many):
        with server() as started, rig(started, scripted=True) as made:
            shown[rows] = growth(made, rows, rows // 4)
            warm(made)
            again[rows] = per_job(made, 12, first=4)[0]
    print(f"\n{'growth':18} {asked.few:>8,} ended jobs{'':14} {asked.many:>8,} ended jobs")
    print(f"{'':18} requests   write   read  $/million   requests   write   read  $/million")
    for what in shown[asked.few]:
        cells = []
        for rows in (asked.few, asked.many):
            requests, written, read, cost = shown[rows][what]
            cells.append(f"{sum(requests.values()):8d} {written:7.0f} {read:6.1f} {cost * 1e6:10.2f}")
        print(f"{what:18} {'   '.join(cells)}")
    per = [f"{sum(p.requests.values()):.1f} requests, ${p.dollars * 1000:.4f} per 1,000" for p in again.values()]
    print(f"{'one more job':18} {'; '.join(per)}")


if __name__ == "__main__":
    main()
