"""What an idle hour costs over S3 and DynamoDB: python -m tests.bench.idle_hour

The janitor's rounds as its scheduler would run them, by a clock that is moved by hand, over a MiniStack whose requests
are counted. Runners and listeners that wait only poll their queues, which costs SQS requests and no others.
"""

import io
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from core.settings import Settings
from handlers.intake import Intake
from infra.aws.provision import provision
from infra.clocks import HandClock
from infra.deploy.local_cloud import Server
from infra.logs import Log
from infra.wiring import Stack, open_stack
from runner.assembly import Runner, assemble
from runner.sandbox.install.layers import Layers
from tests.bench.bench_cloud import server
from tests.bench.cloud_rig import ENV, MANIFEST, urls
from tests.bench.meter import Meter
from tests.support.outputs import as_bytes
from tests.support.world import Boxes, ScriptedSandbox

DROPS = 10  # that were run
FILES = 200  # in the inbox, with those of the drops
TENANTS = 4
HOUR = 3600
STEP = 1.0


@dataclass
class Quiet:
    """A deployment at rest: its drops were run, and the other files wait for a manifest."""

    stack: Stack
    clock: HandClock
    intake: Intake
    runner: Runner
    meter: Meter

    def drop(self, n: int) -> list[str]:
        """A file and its manifest; returns their keys."""
        folder = f"inbox/t{n % TENANTS}/d{n}"
        files = {f"{folder}/m.csv": f"id;name\n{n};a\n".encode(), f"{folder}/manifest.json": as_bytes(MANIFEST)}
        for key, body in files.items():
            self.stack.store.put(key, body)
        return list(files)

    def work(self) -> int:
        """Run what is in the queue now; returns how many jobs."""
        done = 0
        while got := self.stack.queue.receive(most=1, wait=1, visibility=60):
            for delivery in got:
                self.runner.worker.handle(delivery)
                done += 1
        return done

    def pass_time(self, seconds: float) -> Counter[str]:
        """Let the janitor do its rounds for so long; returns the requests by service."""
        self.meter.reset()
        acts = [(job.func, job.trigger.interval.total_seconds()) for job in self.runner.janitor.scheduler().get_jobs()]
        due = [(every, act, every) for act, every in acts]
        passed = 0.0
        while passed < seconds:
            passed += STEP
            self.clock.at += STEP
            for n, (at, act, every) in enumerate(due):
                if passed >= at:
                    act()
                    due[n] = (at + every, act, every)
        self.runner.worker.write_results()
        found: Counter[str] = Counter()
        for name, n in self.meter.requests.items():
            found[name.split()[0]] += n
        return found


@contextmanager
def quiet(started: Server) -> Iterator[Quiet]:
    name = f"idle-{token_hex(4)}"
    with ExitStack() as opened:
        tmp = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        os.environ.update(started.environment)
        settings = Settings.from_env(ENV | urls(started.endpoint, name) | {"ADE_STORAGE_DATA_DIR": str(tmp)})
        provision(settings, apply=True)
        clock, log = HandClock(), Log(stream=io.StringIO())
        stack = opened.enter_context(open_stack(settings, clock))
        meter = Meter()
        for client in (stack.store._s3, stack.table._db, stack.queue._sqs):
            meter.attach(client)
        sandbox = ScriptedSandbox()
        intake = Intake.over(stack)
        boxes = Boxes(sandbox, Layers(cache=tmp / "layers", wheelhouse=None, sandbox=sandbox))
        runner = assemble(stack, boxes, log, role="janitor", sweep=intake.sweep)
        opened.callback(runner.close)
        made = Quiet(stack, clock, intake, runner, meter)
        for n in range(DROPS):
            made.drop(n)
        for n in range(FILES - 2 * DROPS):
            stack.store.put(f"inbox/t{n % TENANTS}/waiting/{n}.csv", f"id\n{n}\n".encode())
        intake.sweep()
        assert made.work() == DROPS
        made.pass_time(900)  # what follows a job is done
        yield made


def main() -> None:
    with server() as started, quiet(started) as made:
        found = made.pass_time(HOUR)
        print(f"idle hour with {FILES} files in the inbox:", dict(found))
        for name, n in sorted(made.meter.requests.items()):
            print(f"  {name:32} {n}")


if __name__ == "__main__":
    main()
