"""Our part of tests/bench/bench_queue.py: `init`, `send FIRST LAST`, or `work`, as the workers of tests/bench/peers/queues.

The runner is the real one, with its leases, heartbeats, retries and publication, over PostgreSQL and a folder; only the box
is a stand-in, since the peers' jobs do nothing either. A job is a drop: a file, its manifest and four files published.
"""

import io
import json
import os
import sys
from pathlib import Path

from core.settings import Settings
from handlers.intake import Intake
from infra.logs import Log
from infra.postgres.connections import parse_database
from infra.postgres.schema import init_database
from infra.wiring import open_stack
from runner.assembly import assemble
from runner.attempt import Boxes
from runner.boxes import BoxOrder, BoxReport, Killed, OnEvent, ignore_event
from runner.sandbox.install.layers import Layers
from tests.support.world import ScriptedSandbox

MANIFEST = {"manifest": 1, "name": "members", "fields": [{"name": "id"}]}
TENANTS = 8
_AT_ONCE = 20


class Noting(ScriptedSandbox):
    """Notes each job that it runs, as the peers' handlers do."""

    def __init__(self) -> None:
        super().__init__()
        self._done = os.open(os.environ["BENCH_DONE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def run(self, order: BoxOrder, *, killed: Killed, on_event: OnEvent = ignore_event) -> BoxReport:
        report = super().run(order, killed=killed, on_event=on_event)
        if hasattr(order.job, "manifest"):
            number = (order.scratch / "in" / "0").read_bytes().split()[-1]
            os.write(self._done, number + b"\n")
        self.orders.clear()
        return report


def settings_of(url: str) -> Settings:
    """As many jobs at once as the peers, and a lease as short as theirs."""
    return Settings.from_env(
        {
            "ADE_STORAGE_DATA_DIR": os.environ["BENCH_FOLDER"],
            "ADE_TABLE_URL": url,
            "ADE_MAX_CONCURRENCY": "4",
            "ADE_TENANT_CONCURRENCY": "0",
            "ADE_WORKFLOW_CONCURRENCY": "0",
            "ADE_LEASE_SECONDS": "5",
            "ADE_MAX_ATTEMPTS": "100",
            "ADE_RETRY_BACKOFF_SECONDS": "0.1",
            "ADE_SETTLE_SECONDS": "0",
            "ADE_SANDBOX": "process",
            "ADE_SANDBOX_MIN_LEVEL": "limits",
        }
    )


def send(url: str, first: int, last: int) -> None:
    with open_stack(settings_of(url)) as stack:
        bucket, intake = stack.settings.storage_data_dir / "bucket", Intake.over(stack)
        for at in range(first, last, _AT_ONCE):
            keys = []
            for n in range(at, min(last, at + _AT_ONCE)):
                folder = f"inbox/t{n % TENANTS}/d{n}"
                (bucket / folder).mkdir(parents=True)
                (bucket / folder / "m.csv").write_text(f"id\n{n}\n")
                (bucket / folder / "manifest.json").write_text(json.dumps(MANIFEST))
                keys += [f"{folder}/m.csv", f"{folder}/manifest.json"]
            intake.changed(keys)


def work(url: str) -> None:
    with open_stack(settings_of(url)) as stack:
        sandbox = Noting()
        boxes = Boxes(sandbox, Layers(cache=stack.run_dir / "layers", wheelhouse=None, sandbox=sandbox))
        runner = assemble(stack, boxes, Log(stream=io.StringIO()))
        scheduler = runner.janitor.scheduler()
        scheduler.start()
        runner.fleet.run()


def main(command: str, url: str, *rest: str) -> None:
    Path(os.environ["BENCH_FOLDER"]).mkdir(parents=True, exist_ok=True)
    if command == "init":
        init_database(parse_database(url), apply=True)
    elif command == "send":
        send(url, *map(int, rest))
    else:
        work(url)


if __name__ == "__main__":
    main(*sys.argv[1:])
