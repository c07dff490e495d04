"""A whole spine in one process on real adapters: a clock moved by hand, crashes at any external step."""

import io
import json
import random
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from core.jobs import Job
from core.keys import result_key
from core.ports import JobQuery
from core.settings import Settings
from core.verdicts import Verdict
from handlers.intake import Intake
from infra.local.folder import FolderStore
from infra.local.sqlite_table import SqliteJobTable
from infra.logs import Log
from infra.telemetry import Telemetry
from infra.wiring import Stack
from runner.assembly import Runner, assemble
from runner.attempt import Boxes
from runner.boxes import BoxOrder, BoxReport, Isolation, Killed, OnEvent, ignore_event
from runner.control import Control
from runner.engine.contract import EXPLAINED, Order, VerifyOrder
from runner.sandbox.install.layers import Layers
from tests.support.documents import check_all
from tests.support.outputs import artifact, as_bytes, audit, review, verify_here, workbook
from tests.support.places import Place, embedded


class Crash(BaseException):
    """The process died on this line."""


class Crasher:
    """Counts external steps; at the one that was asked for the process dies, or somebody else acts first."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.after = False
        self.seen = 0
        self.meanwhile: Callable[[], None] | None = None

    def arm(self, steps: int | None, *, after: bool = False, meanwhile: Callable[[], None] | None = None) -> None:
        """Without `meanwhile`: die before or after that step. With it: let others act there, then go on."""
        self.left, self.after, self.seen, self.meanwhile = steps, after, 0, meanwhile

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.seen += 1
        due = self.left is not None and self.seen > self.left
        if due and not self.after:
            self._strike()
        result = function(*args, **kwargs)
        if due and self.left is not None:
            self._strike()
        return result

    def _strike(self) -> None:
        self.left, act = None, self.meanwhile
        if act is None:
            raise Crash
        act()


class Fragile:
    """A port whose every call is an external step that the process may die before or after."""

    def __init__(self, port: Any, crasher: Crasher) -> None:
        self._port = port
        self._crasher = crasher

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not callable(found):
            return found
        return lambda *args, **kwargs: self._crasher.call(found, args, kwargs)


class ScriptedSandbox:
    """Stands in for the box where thousands of runs are needed: writes outputs that depend only on the input."""

    def __init__(self) -> None:
        self.verdict = Verdict.OK
        self.during: Callable[[], None] = lambda: None
        self.orders: list[Order] = []
        self.asks = False  # as an engine that is unsure until somebody decides

    def isolation(self) -> Isolation:
        return Isolation(driver="scripted", level="isolated", rungs={}, gaps=())

    def run(self, order: BoxOrder, *, killed: Killed, on_event: OnEvent = ignore_event) -> BoxReport:
        if isinstance(order.job, VerifyOrder):
            return verify_here(order.job, order.scratch, self.isolation())
        self.orders.append(order.job)
        during, self.during = self.during, lambda: None
        verdict, self.verdict = self.verdict, Verdict.OK
        if self.asks and verdict is Verdict.OK and not (order.job.decision or order.job.accept):
            verdict = Verdict.NEEDS_REVIEW
        during()
        stopped = killed()
        if stopped is not None:
            return BoxReport(verdict=stopped, message="stopped")
        log = order.scratch / "log.txt"
        log.write_text("a rule said something\n")
        if verdict is not Verdict.OK and verdict not in EXPLAINED:
            return BoxReport(verdict=verdict, message="scripted", log=log)
        rows = (order.scratch / "in" / "0").stat().st_size
        told = artifact(order.job, self.isolation(), rows=rows)
        if order.job.decision is not None:
            told["profile"] |= {"answers": _applied((order.scratch / order.job.decision.path).read_bytes())}
        title = str(order.job.manifest["name"])
        bodies = {"normalized.xlsx": workbook(rows, title=title), "artifact.json": as_bytes(told)}
        if verdict is Verdict.NEEDS_REVIEW:
            bodies = {"review.json": as_bytes(review(order.job))}
        elif verdict in EXPLAINED:
            bodies["artifact.json"] = as_bytes(audit(order.job, self.isolation()))
        outputs = {}
        for name, body in bodies.items():
            outputs[name] = order.scratch / f"out-{name}"
            outputs[name].write_bytes(body)
        return BoxReport(verdict=verdict, message="", outputs=outputs, log=log)

    def reap(self, alive: Callable[[str], bool]) -> int:
        return 0

    def close(self) -> None:
        pass


def _applied(decision: bytes) -> list[dict[str, Any]]:
    """The answers of a decision that name a header, as an engine reports those that it applied."""
    says = ("header", "field", "reading")
    return [{k: a[k] for k in says if k in a} for a in json.loads(decision).get("answers", ()) if "header" in a]


def planned(intake: Intake, *keys: str) -> Callable[[], None]:
    """Let an intake look at keys and stop before it records what it planned; the call records that."""
    kept: list[Callable[[], None]] = []
    recorder: Any = intake._recorder
    record = recorder.record
    recorder.record = lambda *args, **more: kept.append(lambda: record(*args, **more))
    intake.changed(keys)
    recorder.record = record
    return lambda: [one() for one in kept] and None


MANIFEST = {"manifest": 1, "name": "members", "fields": [{"name": "id"}]}


class World:
    """One machine with a bucket, a table, a queue, an intake and runners that come and go."""

    def __init__(
        self, folder: Path, place: Place = embedded, *, telemetry: Telemetry | None = None, **settings: Any
    ) -> None:
        base = {"storage_data_dir": folder, "lease_seconds": 30.0, "settle_seconds": 0.0, "sandbox": "process"}
        base |= {"keep_latest_days": 0.0}  # so that every end expires alike
        self.settings = Settings(**(base | settings))
        self.crasher = Crasher()
        self.draw = random.Random(1).random  # the same jitter in every run
        self._opened = ExitStack()
        self.clock, self.store, self.table, self.queue = self._opened.enter_context(place(self.settings))
        self.sandbox = ScriptedSandbox()
        layers = Layers(cache=folder / "layers", wheelhouse=None, sandbox=self.sandbox)
        self.boxes = Boxes(self.sandbox, layers)
        self.log = Log(stream=io.StringIO())
        self.fragile = Stack(
            self.settings,
            self.clock,
            Fragile(self.store, self.crasher),
            Fragile(self.table, self.crasher),
            Fragile(self.queue, self.crasher),
            telemetry=telemetry or Telemetry(),
        )
        self.control = Control(self.store, self.table, self.queue, self.clock)
        self.runners: list[Runner] = []
        self.intake = self.new_intake()

    def new_intake(self) -> Intake:
        f = self.fragile
        settle = self.settings.settle_seconds
        marks = f.table if isinstance(self.table, SqliteJobTable) else None
        return Intake(f.store, f.table, f.queue, self.clock, settle_seconds=settle, telemetry=f.telemetry, marks=marks)

    def runner(self) -> Runner:
        made = assemble(self.fragile, self.boxes, self.log, sweep=self.sweep, draw=self.draw)
        self.runners.append(made)
        return made

    def sweep(self) -> None:
        self.intake.sweep()

    def put(self, key: str, body: bytes | dict[str, Any]) -> str:
        """A sender's upload, acknowledged when this returns."""
        self.store.put(key, body if isinstance(body, bytes) else json.dumps(body).encode())
        return key

    def drop(self, tenant: str = "acme", name: str = "a.csv", body: bytes = b"id\n1\n", **manifest: Any) -> list[str]:
        folder = f"inbox/{tenant}/d"
        return [
            self.put(f"{folder}/{name}", body),
            self.put(f"{folder}/manifest.json", MANIFEST | manifest),
        ]

    def handle_one(self, runner: Runner) -> bool:
        """One message through one runner; False where there was none."""
        deliveries = self.queue.receive(most=1, wait=0, visibility=runner.beats.visibility)
        for delivery in deliveries:
            runner.worker.handle(delivery)
        return bool(deliveries)

    def work_off(self, runner: Runner, *, rounds: int = 400) -> None:
        """Let time pass until nothing is left to do."""
        for _ in range(rounds):
            busy = self.handle_one(runner)
            busy |= bool(sum(runner.janitor.chores().values()))
            stats, soon = self.queue.stats(), self.table.attention(self.clock.now() + 60, limit=1)
            if not busy and not soon and not (stats.ready or stats.delayed or stats.in_flight):
                return
            if not busy:
                self.clock.move(7.0)
        raise AssertionError(f"still not done after {rounds} rounds: {self.queue.stats()} {self.table.counts()}")

    def jobs(self) -> list[Job]:
        found: list[Job] = []
        cursor = None
        while True:
            page = self.table.page(JobQuery(), cursor=cursor)
            found += page.jobs
            cursor = page.cursor
            if cursor is None:
                return found

    def result(self, job: Job) -> dict[str, Any] | None:
        if self.store.head(result_key(job)) is None:
            return None
        found: dict[str, Any] = json.loads(self.store.read(result_key(job), limit=1 << 20))
        return found

    def close(self) -> None:
        if isinstance(self.store, FolderStore):
            check_all(self.store)
        for runner in self.runners:
            runner.close()
        self._opened.close()
