"""Requests and cost per drop over S3, SQS and DynamoDB, counted between the real clients and a local server.

Prices are AWS's public list for us-east-1, on demand. A job's row is 1 to 2 KB; a write of it is charged here as 6
write units (the item and the index entries that move with it), a transaction as twice that.
"""

import io
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path

from core.settings import Settings
from handlers.arrivals import Arrivals
from handlers.intake import Intake
from handlers.poller import Poller
from infra.addresses import parse_address
from infra.local_cloud import free_port, ministack
from infra.logs import Log
from infra.provision import provision
from infra.sqs_events import EventsQueue
from infra.wiring import open_stack
from tests.acceptance.test_cloud_storm import ENV, drop, urls
from tests.support.fault_proxy import Faults, fault_proxy

VENVS = Path(__file__).parents[2] / ".venv-cloud"
PER_REQUEST = {
    "S3 PUT": 5e-6,
    "S3 LIST": 5e-6,
    "S3 GET": 4e-7,
    "S3 HEAD": 4e-7,
    "S3 POST": 0.0,
    "S3 DELETE": 0.0,
    "SQS": 4e-7,
    "DynamoDB TransactWriteItems": 12 * 0.625e-6,
    "DynamoDB PutItem": 6 * 0.625e-6,
    "DynamoDB": 0.125e-6,
}


def price(operation: str) -> float:
    return PER_REQUEST.get(operation, PER_REQUEST.get(operation.split(maxsplit=1)[0], 0.0))


def measure(drops: int) -> tuple[Counter[str], float, float]:
    """Requests by operation, seconds of the handler, seconds of one runner."""
    with ExitStack() as opened:
        tmp = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        server = opened.enter_context(ministack(VENVS, tmp / "server"))
        os.environ.update(server.environment)
        name, faults = f"bench-{free_port()}", Faults()
        proxy = opened.enter_context(fault_proxy(server.endpoint, faults))
        base = ENV | {"ADE_STORAGE_DATA_DIR": str(tmp / "data"), "ADE_TENANT_CONCURRENCY": "0"}
        base["ADE_SETTLE_SECONDS"] = "0"
        calm = Settings.from_env(base | urls(server.endpoint, name))
        provision(calm, apply=True)
        stack = opened.enter_context(open_stack(calm))
        for n in range(drops):
            drop(stack, n)
        counted = opened.enter_context(open_stack(Settings.from_env(base | urls(proxy, name))))
        intake = Intake(counted.store, counted.table, counted.queue, counted.clock, settle_seconds=0)
        events = EventsQueue(parse_address(urls(proxy, name)["ADE_EVENTS_URL"]), poll_seconds=1)
        with closing(events):
            poller = Poller(events, Arrivals(intake, name), Log(stream=io.StringIO()))
            began = time.perf_counter()
            while poller.once():
                pass
            handled = time.perf_counter() - began - 1
        env = os.environ | base | urls(proxy, name)
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "console", "run", "--drain"], env=env, check=True, capture_output=True)
        return Counter(faults.counted), handled, time.perf_counter() - began


def main(_argv: list[str]) -> None:
    few, many = 5, 20
    (first, _, _), (second, handled, ran) = measure(few), measure(many)
    print(f"{'request':32} {'per job':>8} {'$/1000 jobs':>12}")
    total = 0.0
    for operation in sorted(set(first) | set(second)):
        per_job = (second[operation] - first[operation]) / (many - few)
        cost = per_job * price(operation) * 1000
        total += cost
        print(f"{operation:32} {per_job:8.1f} {cost:12.5f}")
    print(f"{'all':32} {'':8} {total:12.5f}")
    print(f"handler: {2 * many / max(handled, 0.001):.0f} events/s; runner: {many / ran:.1f} jobs/s with its start")


if __name__ == "__main__":
    main([])
