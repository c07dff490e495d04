"""A handler and a runner in this process over MiniStack, every request counted; no polling loops, so counts repeat."""

import io
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from console.desk.boxes import boxes
from core.settings import Settings
from handlers.intake import Intake
from handlers.sources.arrivals import Arrivals
from handlers.sources.event_queue import Poller
from infra.addresses import parse_address
from infra.aws.provision import provision
from infra.aws.sqs_events import EventsQueue
from infra.deploy.local_cloud import Server
from infra.logs import Log
from infra.wiring import Stack, open_stack
from runner.assembly import Runner, assemble
from runner.sandbox.install.layers import Layers
from tests.bench.meter import Meter
from tests.support.world import Boxes, ScriptedSandbox

TENANTS = 4
MANIFEST = {"manifest": 1, "name": "members", "fields": [{"name": "id", "type": "integer"}, {"name": "name"}]}
ENV = {
    "ADE_LEASE_SECONDS": "60",
    "ADE_TENANT_CONCURRENCY": "0",
    "ADE_WORKFLOW_CONCURRENCY": "0",
    "ADE_SETTLE_SECONDS": "0",
    "ADE_LOG_LEVEL": "error",
    "ADE_SANDBOX": "process",
    "ADE_SANDBOX_MIN_LEVEL": "limits",
}


@dataclass
class Rig:
    """What a run works with. `meter` counts the requests of handler and runner, not those of the sender."""

    stack: Stack
    poller: Poller
    runner: Runner
    meter: Meter
    endpoint: str
    intake: Intake

    def drop(self, n: int) -> None:
        """A sender's drop: one file and its manifest."""
        folder = f"inbox/t{n % TENANTS}/d{n}"
        self.stack.store.put(f"{folder}/m.csv", f"id;name\n{n};a\n{n + 1};b\n".encode())
        self.stack.store.put(f"{folder}/manifest.json", json.dumps(MANIFEST).encode())

    def handle(self, events: int) -> float:
        """Take that many events off the queue and look at them; seconds."""
        began, done = time.perf_counter(), 0
        while done < events and time.perf_counter() < began + 60:
            done += self.poller.once()
        return time.perf_counter() - began

    def forget_events(self) -> None:
        """Drop what the bucket has told so far: not every upload is of interest."""
        events = self.poller._events
        events._sqs.purge_queue(QueueUrl=events._url)

    def work(self, jobs: int) -> list[float]:
        """Run that many jobs one after the other; seconds of each."""
        taken: list[float] = []
        until = time.perf_counter() + 60
        while len(taken) < jobs and time.perf_counter() < until:
            visibility = self.runner.beats.visibility
            for delivery in self.stack.queue.receive(most=1, wait=0, visibility=visibility):
                began = time.perf_counter()
                self.runner.worker.handle(delivery)
                taken.append(time.perf_counter() - began)
        self.runner.publisher.tidy()
        return taken


@contextmanager
def rig(server: Server, *, scripted: bool, **settings: str) -> Iterator[Rig]:
    """`scripted`: a stand-in for the box, where only requests are of interest."""
    name = f"bench-{token_hex(4)}"
    with ExitStack() as opened:
        tmp = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        os.environ.update(server.environment)
        made = Settings.from_env(ENV | settings | urls(server.endpoint, name) | {"ADE_STORAGE_DATA_DIR": str(tmp)})
        provision(made, apply=True)
        stack, log = opened.enter_context(open_stack(made)), Log(stream=io.StringIO())
        assert stack.store.conditional()  # tried out once per process, so before anything is counted
        address = parse_address(urls(server.endpoint, name)["ADE_EVENTS_URL"])
        events = opened.enter_context(closing(EventsQueue(address, poll_seconds=0)))
        meter = Meter()
        for client in (stack.store._s3, stack.table._db, stack.queue._sqs, events._sqs):
            meter.attach(client)
        if scripted:
            sandbox = ScriptedSandbox()
            found = Boxes(sandbox, Layers(cache=tmp / "layers", wheelhouse=None, sandbox=sandbox))
        else:
            found = opened.enter_context(boxes(made, tmp / "run"))
        runner = assemble(stack, found, log)
        opened.callback(runner.close)
        intake = Intake.over(stack)
        poller = Poller(events, Arrivals(intake, name), log)
        poller.once()  # the test event that a bucket sends when its notification is made
        yield Rig(stack, poller, runner, meter, server.endpoint, intake)


def urls(endpoint: str, name: str) -> dict[str, str]:
    return {
        "ADE_STORE_URL": f"s3://{name}?endpoint={endpoint}",
        "ADE_TABLE_URL": f"dynamodb://{name}?endpoint={endpoint}",
        "ADE_QUEUE_URL": f"sqs://{name}-work?endpoint={endpoint}",
        "ADE_EVENTS_URL": f"sqs://{name}-events?endpoint={endpoint}",
    }
