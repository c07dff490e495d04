"""A whole fleet in one process under one seed: intakes, runners, janitors, senders, an operator, and what befalls them.

The product's own code runs from the notification to the publication. Simulated are the services (parts.py), the way to
them (wires.py), time and threads (scheduler.py) and the box: an attempt takes a while and writes outputs that name its
fence. After some minutes of faults all trouble stops; then everything has to come to rest, and every promise is checked.
"""

import functools
import hashlib
import json
import os
import random
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import console.library
import handlers.planning
import runner.assembly
import runner.janitor
import runner.leases
import runner.surroundings
import runner.worker
from core.chores import wake_at
from core.errors import AdeError, IllegalTransition, StoreUnavailable, UsageError
from core.jobs import Job, State
from core.keys import decision_key
from core.ports import Pause
from core.settings import Settings
from core.verdicts import Verdict
from handlers.intake import Intake
from handlers.sources.arrivals import Arrivals
from handlers.sources.event_queue import Poller
from infra.logs import Log
from infra.marks import ProcessMarks
from infra.wiring import Stack
from runner.attempt import Boxes
from runner.boxes import BoxOrder, BoxReport, Isolation, Killed, OnEvent, ignore_event
from runner.control import Control
from runner.engine.contract import VerifyOrder
from tests.sim.checks import Checks, is_ours
from tests.sim.parts import Bucket, Messages, Rows, SimQueue, SimStore, SimTable
from tests.sim.scheduler import EPOCH, Process, Scheduler, SimLock
from tests.sim.wires import Faults, Network, Notices, Waiters, WiredQueue, WiredStore, WiredTable, said

BUCKET = "drops"
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
LEASE, SWEEP, RETENTION = 30.0, 300.0, 3000.0
MANIFESTS = [
    {"manifest": 1, "name": "members", "fields": [{"name": "id"}]},
    {"manifest": 1, "name": "members", "fields": [{"name": "id"}, {"name": "plan"}]},
    {"manifest": 1, "name": "members", "fields": [{"name": "id"}], "sweep": {"rate": [1, 2]}},
]
# Share of the seeds in which processes stand still for a while. Not by default: a process that is stopped between its
# last look at a row and the write that follows, while an operator removes the job, leaves a file behind.
PAUSED_SHARE = float(os.environ.get("ADE_SIM_PAUSED", "0"))
LYING_SHARE = 0.3  # of the seeds: a proxy answers now and then in the store's place
BUNDLED_SHARE = 0.7  # of the seeds: small outputs are staged together
MARKED_SHARE = 0.5  # of the seeds: a process remembers which lines a sweep need not plan again
UNNOTED_SHARE = 0.5  # of the seeds: the message of a new job is not noted as sent, as over SQS
BODIES = [b"id\n1\n", b"id\n2\n", b"id\n3\n", b"id\nbad\n"]
REVIEWED_SHARE = (
    0.4  # of the seeds: the engine is unsure about some files, and somebody answers, early, late, twice or never
)
UNSURE = [b"id\nask\n", b"id\nask 2\n"]


@dataclass(frozen=True)
class Outcome:
    """What a run came to."""

    seed: int
    broken: list[str]
    met: Counter[str]  # rare branches, and how often each was taken
    digest: str
    lines: list[str]
    steps: int
    seconds: float  # simulated


class SimLog(Log):
    """Events go to the trace, and count as met."""

    def __init__(self, scheduler: Scheduler, met: Counter[str], **fields: Any) -> None:
        self._scheduler, self._met, self._all = scheduler, met, fields

    def bind(self, **fields: Any) -> "SimLog":
        return SimLog(self._scheduler, self._met, **(self._all | fields))

    def _write(self, level: str, event: str, fields: dict[str, Any]) -> None:
        self._met[event] += 1
        if event == "chores_done":
            self._met.update({name: n for name, n in fields.items() if isinstance(n, int)})
        self._scheduler.trace(f"[{event}]", *(f"{k}={v}" for k, v in (self._all | fields).items()))


class SimPresence:
    """Who is alive: known exactly for processes of this machine, and of no other."""

    def __init__(self, world: "World", process: Process) -> None:
        self.owner = process.name
        self._world, self._process = world, process

    def alive(self, owner: str) -> bool:
        other = self._world.owners.get(owner)
        return other is None or other.machine != self._process.machine or not other.dead

    def others(self, role: str) -> list[str]:
        return [name for name in self._world.owners if name.startswith(role) and self.alive(name)]

    def sweep(self) -> list[str]:
        here = self._process.machine
        return [name for name, other in self._world.owners.items() if other.machine == here and other.dead]

    def forget(self, owner: str) -> None:
        self._world.owners.pop(owner, None)

    def set_note(self, _note: str) -> None:
        pass

    def close(self) -> None:
        pass


class SimSandbox:
    """A box that takes its time; what it writes names the attempt that wrote it."""

    def __init__(self, world: "World") -> None:
        self._w = world

    def isolation(self) -> Isolation:
        return Isolation(driver="simulated", level="isolated", rungs={}, gaps=())

    def run(self, order: BoxOrder, *, killed: Killed, on_event: OnEvent = ignore_event) -> BoxReport:
        if isinstance(order.job, VerifyOrder):
            page = order.scratch / ("review.html" if order.job.review else "report.html")
            page.write_text(order.label)
            return BoxReport(verdict=Verdict.OK, message="", outputs={page.name: page})
        rng, network = self._w.rng, self._w.network
        left = rng.choice([0.1, 0.5, 2.0, 8.0, 25.0, 70.0]) if network.on else 1.0
        while left > 0:
            if (stopped := killed()) is not None:
                return BoxReport(verdict=stopped, message="stopped")
            self._w.scheduler.sleep(min(left, 2.0))
            left -= 2.0
        body = (order.scratch / "in" / "0").read_bytes()
        if network.on and rng.random() < network.faults.box_fails:
            return BoxReport(verdict=Verdict.BOX_FAILED, message="the box broke")
        if b"bad" in body:
            return BoxReport(verdict=Verdict.RULE_ERROR, message="a rule raised")
        if b"ask" in body and not (order.job.decision or order.job.accept):
            review = order.scratch / "review.json"
            review.write_text(order.label)
            return BoxReport(verdict=Verdict.NEEDS_REVIEW, message="", outputs={review.name: review})
        outputs = {}
        for name in ("artifact.json", "normalized.xlsx"):
            outputs[name] = order.scratch / name
            outputs[name].write_bytes(f"{order.label}|{hashlib.sha256(body).hexdigest()}".encode())
        return BoxReport(verdict=Verdict.OK, message="", outputs=outputs)

    def reap(self, alive: Callable[[str], bool]) -> int:
        return 0

    def close(self) -> None:
        pass


class World:
    collected_after = 620.0

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng = rng = random.Random(seed)
        self.scheduler = Scheduler()
        SimLock.scheduler = self.scheduler
        self.met: Counter[str] = Counter()
        self.length = rng.choice([60.0, 200.0, 600.0])
        pauses = random.Random(f"pauses {seed}")
        faults = Faults.drawn(rng, self.length)
        faults.paused = pauses.uniform(0.001, 0.02) if pauses.random() < PAUSED_SHARE else 0.0
        self.bundles = random.Random(f"bundles {seed}").random() < BUNDLED_SHARE
        self.marks = random.Random(f"marks {seed}").random() < MARKED_SHARE
        lies = random.Random(f"lies {seed}")
        faults.lies = lies.uniform(0.01, 0.15) if lies.random() < LYING_SHARE else 0.0
        self.network = Network(self.scheduler, rng, faults, self.met, pauses, lies)
        self.settings = Settings(
            storage_data_dir=folder,
            lease_seconds=LEASE,
            settle_seconds=1.0,
            retention_hours=RETENTION / 3600,
            keep_latest_days=0.0,
            sweep_seconds=SWEEP,
            max_concurrency=2,
            tenant_concurrency=rng.choice([0, 1, 2]),
            sandbox="process",
            queue_url="sqs://simulated" if random.Random(f"notes {seed}").random() < UNNOTED_SHARE else "",
        )
        service = Process("service", self.scheduler)
        self.bucket = Bucket(service, versioned=rng.random() < 0.3)
        self.rows = Rows(functools.partial(wake_at, timings=self.settings.timings))
        self._service = service
        self.messages = self.make_messages()
        self.checks = Checks(self.bucket, self.rows, self.messages, self.met)
        self.checks.retention = RETENTION
        self.checks.on_broken = lambda: self.scheduler.wake(self.scheduler.world)
        self.message_came, self.row_changed = Waiters(self.scheduler), Waiters(self.scheduler)
        self.notices = Notices(self.network, Waiters(self.scheduler))
        self.messages.on_send = self.message_came.notify
        self.bucket.on_change = self._object_changed
        self.rows.on_write = self._row_written
        self.log = SimLog(self.scheduler, self.met)
        self.boxes = Boxes(
            SimSandbox(self),
            SimpleNamespace(prepare_layer=None, collect=lambda _seconds: 0),  # type: ignore[arg-type]
        )
        self.owners: dict[str, Process] = {}
        self.one_machine = rng.random() < 0.4
        self.skewed = rng.random() < 0.4
        people = random.Random(f"reviews {seed}")
        self.people = people if people.random() < REVIEWED_SHARE else None  # draws what is asked and answered
        terms = {"expires": people.choice(["2m", "40m"]), "on_expiry": people.choice(["fail", "accept"])}
        reviewed = {"mapping": {"review": "unsure"}, "review": terms} if self.people else {}
        self.manifests = [json.dumps(manifest | reviewed).encode() for manifest in MANIFESTS]
        self.bodies = BODIES + (UNSURE if self.people else [])
        self.lives = 0
        self.busy = 0  # people who are not done yet
        self.swept = 0  # whole sweeps since the faults stopped

    # What a process is made of

    def process(self, name: str) -> Process:
        self.lives += 1
        skew = self.rng.uniform(-2.0, 2.0) if self.skewed else 0.0
        machine = "here" if self.one_machine else ""
        made = Process(f"{name}#{self.lives}", self.scheduler, skew=skew, machine=machine)
        self.owners[made.name] = made
        return made

    def stack(self, process: Process) -> Stack:
        table = self.wired_table(process)
        return Stack(
            self.settings,
            process,
            WiredStore(self.network, process, SimStore(self.bucket)),
            table,
            self.wired_queue(process),
            marks=ProcessMarks(table, process) if self.marks else None,
        )

    # The table and the queue, in memory; another world has others

    def make_messages(self) -> Messages:
        return Messages(self._service, shuffle=self.rng.shuffle, hidden_for=self.network.hidden_for)

    def table(self, process: Process) -> SimTable:
        return SimTable(self.rows, process)

    def wired_table(self, process: Process) -> WiredTable:
        return WiredTable(self.network, process, self.table(process))

    def wired_queue(self, process: Process) -> WiredQueue:
        return WiredQueue(self.network, process, SimQueue(self.messages), self.message_came)

    def keep_alive(self, name: str, start: Callable[[Process], None]) -> None:
        """A service manager: where the process has died, another takes its place after a while."""

        def begin() -> None:
            process = self.process(name)
            process.on_death = again
            start(process)

        def again() -> None:
            self.scheduler.spawn(manager, "begin", begin, after=self.rng.uniform(0.5, 20.0))

        manager = Process(f"manager-{name}", self.scheduler)
        begin()

    def start_intake(self, process: Process) -> None:
        stack = self.stack(process)
        intake = Intake.over(stack)
        poller = Poller(self.notices.client(process), Arrivals(intake, BUCKET), self.log)

        def poll() -> None:
            while True:
                try:
                    poller.once()
                except StoreUnavailable:
                    self.scheduler.sleep(2.0)

        self.scheduler.spawn(process, "poll", poll)

    def start_runner(self, process: Process) -> None:
        made = self._assembled(process, role="runner")
        busy: list[int] = []

        around, worker = made.worker.surroundings, made.worker

        def slot() -> None:
            while True:
                if around.failed is not None:
                    self.met["surroundings_failed"] += 1
                    self.scheduler.sleep(max(around.rest(), 0.1))
                    around.probe()
                    continue
                try:
                    worker.write_results()
                    wait = 5.0 if worker._unwritten or made.publisher._published else 1e6
                    got = made.fleet._queue.receive(most=1, wait=wait, visibility=made.beats.visibility)
                except StoreUnavailable:
                    if not around.to_blame():
                        self.scheduler.sleep(1.0)
                    continue
                for delivery in got:
                    there = self.rows.jobs.get(delivery.message.job_id)
                    if there is None or there.state not in (State.QUEUED, State.RUNNING, State.PUBLISHING):
                        self.met["duplicate_delivery"] += 1
                    busy.append(1)
                    self.scheduler.wake(beating)
                    made.fleet._slot(delivery)
                    busy.pop()

        def beat() -> None:
            while True:
                self.scheduler.sleep(self.rng.uniform(1.0, 5.0) if busy else 1e6)
                made.beats.round()

        beating = self.scheduler.spawn(process, "beats", beat)
        for n in range(2):
            self.scheduler.spawn(process, f"slot{n}", slot)

    def start_janitor(self, process: Process) -> None:
        intake = Intake.over(self.stack(process))
        made = self._assembled(process, role="janitor", sweep=lambda: self._sweep(intake))
        janitor = made.janitor

        def every(seconds: float, chore: Callable[[], Counter[str]], *, idle: bool = False) -> Callable[[], None]:
            def run() -> None:
                while True:
                    self.scheduler.sleep(seconds)
                    janitor._led(chore)
                    soonest = min(self.rows.wakes.values(), default=1e12) - process.skew
                    if idle and soonest > self.scheduler.now + seconds:
                        self.row_changed.wait(min(soonest, self.scheduler.now + 200.0))

            return run

        self.scheduler.spawn(process, "urgent", every(2.0, lambda: janitor.urgent(2.0), idle=True))
        self.scheduler.spawn(process, "tidy", every(10.0, lambda: janitor.tidy(8.0), idle=True))
        self.scheduler.spawn(process, "sweep", every(SWEEP, janitor.sweep), after=self.rng.uniform(0, 30))
        self.scheduler.spawn(process, "collect", every(600.0, janitor.collect))
        self.scheduler.spawn(process, "audit", every(300.0, janitor.audit.round))

    def _sweep(self, intake: Intake) -> None:
        quiet = not self.network.on
        report = intake.sweep()
        self.swept += quiet and not report.failed

    def _assembled(self, process: Process, **more: Any) -> runner.assembly.Runner:
        with _patched(runner.assembly, "Presence", lambda _folder, _owner: SimPresence(self, process)):
            return runner.assembly.assemble(
                self.stack(process), self.boxes, self.log, draw=self.rng.random, bundles=self.bundles, **more
            )

    # What people do

    def send(self) -> None:
        """A sender: uploads, overwrites, deletes, in no particular order and often within one second."""
        rng, store = self.rng, SimStore(self.bucket)
        tenants = rng.sample(["acme", "globex"], rng.choice([1, 1, 2]))
        late = rng.randint(0, 3)
        for n in range(rng.randint(3, 12)):
            folder = f"inbox/{rng.choice(tenants)}/d"
            key = f"{folder}/{rng.choice(['a.csv', 'a.csv', 'b.csv'])}"
            if n == late:
                for tenant in tenants:
                    self._upload(store, f"inbox/{tenant}/d/manifest.json", self.manifests[0])
            draw = rng.random()
            if draw < 0.45:
                self._upload(store, key, rng.choice(self.bodies))
            elif draw < 0.65:
                for body in rng.sample(BODIES[:3], 2):
                    self._upload(store, key, body)
                    self.scheduler.sleep(rng.choice([0.0, 0.1, 0.4]))
            elif draw < 0.75:
                self.scheduler.trace("deletes", key)
                store.delete(key)
            elif draw < 0.92:
                self._upload(store, f"{folder}/manifest.json", rng.choice(self.manifests))
            elif draw < 0.96 and key in self.bucket.objects:
                self.bucket.refused.add(key)
                self.scheduler.trace("store refuses", key)
            if self.people is not None:
                self._decide(self.people, store, key)
            pause = rng.random()
            if pause < 0.5:
                self.scheduler.sleep(rng.choice([0.0, 0.05, 0.3]))
            elif pause < 0.94:
                self.scheduler.sleep(rng.uniform(0, self.length / 5))
            else:
                self.met["retention_passed"] += 1
                self.scheduler.sleep(rng.choice([RETENTION, 2.5 * RETENTION]))
        if rng.random() < 0.3:
            self.scheduler.sleep(rng.uniform(0, self.length))
        self.busy -= 1
        self.scheduler.wake(self.scheduler.world)

    def _upload(self, store: SimStore, key: str, body: bytes) -> None:
        info = store.put(key, body)
        self.checks.uploaded.setdefault(key, []).append((self.scheduler.now, info.digest))
        self.scheduler.trace("uploads", said(info), body[:12])

    def _decide(self, rng: random.Random, store: SimStore, key: str) -> None:
        """Somebody answers, whether anything was asked or not; now and then with nonsense, or takes the answer back."""
        draw, decision = rng.random(), decision_key(key)
        if draw < 0.4:
            body = {"decision": 1, "by": rng.choice(["ann", "bob"]), "answers": [{"header": "ID", "field": "id"}]}
            for _ in range(rng.choice([1, 1, 2])):
                self.checks.decisions[key.split("/")[1]] += 1
                self._upload(store, decision, json.dumps(body).encode())
        elif draw < 0.5:
            self._upload(store, decision, b'{"decision": 1}')
        elif draw < 0.6:
            self.scheduler.trace("deletes", decision)
            store.delete(decision)

    def operate(self) -> None:
        """An operator: now and then acts on some job, and repeats what did not go through."""
        rng = self.rng
        for _ in range(rng.choice([0, 0, 1, 3])):
            self.scheduler.sleep(rng.uniform(1.0, self.length / 2))
            jobs = sorted(self.rows.jobs)
            if not jobs:
                continue
            job_id, act = rng.choice(jobs), rng.choice(["cancel", "cancel", "retry", "reset", "remove", "pause"])
            if act == "pause":
                self._pause(self.rows.jobs[job_id].tenant)
            else:
                self._insist(act, job_id)
        self.busy -= 1
        self.scheduler.wake(self.scheduler.world)

    def _pause(self, tenant: str) -> None:
        self.met["operator_pause"] += 1
        table = self.table(self._service)
        table.pause(Pause(tenant=tenant, workflow=None, since=self.scheduler.now, by="operator"))
        self.scheduler.sleep(self.rng.uniform(1.0, 100.0))
        self._lift_pauses(table)

    def _lift_pauses(self, table: SimTable) -> None:
        for pause in table.pauses():
            table.resume(pause.tenant, pause.workflow)

    def _insist(self, act: str, job_id: str) -> None:
        if act == "cancel":
            self.checks.cancelled.add(job_id)
        self.repeat(act, job_id, lambda stack: self.act_on(stack, act, job_id))

    def act_on(self, stack: Stack, act: str, job_id: str) -> None:
        getattr(Control(stack.store, stack.table, stack.queue, stack.clock), act)(job_id)

    def repeat(self, act: str, about: str, carry_out: Callable[[Stack], None], who: str = "operator") -> bool:
        """Have a person's command carried out, again and again until it went through; False: never."""
        self.met[f"{who}_{act}"] += 1
        for _ in range(60):
            process = self.process(who)
            stack = self.stack(process)
            done: list[bool] = []

            def run(stack: Stack = stack, done: list[bool] = done) -> None:
                try:
                    carry_out(stack)
                except (IllegalTransition, UsageError) as error:
                    self.scheduler.trace(act, about, "→", error)
                    done.append(False)
                except AdeError as error:
                    self.scheduler.trace(act, about, "→", error)
                else:
                    done.append(True)

            self.scheduler.trace(act, about)
            actor = self.scheduler.spawn(process, act, run)
            while not actor.ended:
                self.scheduler.sleep(0.5)
            process.dead = True
            self.owners.pop(process.name, None)
            if done:
                return done[0]
        return False

    # How a run goes

    def run(self) -> list[str]:
        for n in (1, 2):
            self.keep_alive(f"intake{n}", self.start_intake)
            self.keep_alive(f"runner{n}", self.start_runner)
            self.keep_alive(f"janitor{n}", self.start_janitor)
        self.busy += 2
        people = Process("people", self.scheduler)
        self.scheduler.spawn(people, "sender", self.send)
        self.scheduler.spawn(people, "operator", self.operate)
        while self.busy and not self._failed():
            self.scheduler.sleep(1e6)
        if not self._failed():
            self._come_to_rest()
        return [*self.scheduler.crashes, *(self.checks.broken if self._failed() else self.at_rest())]

    def calm(self) -> None:
        """No more faults."""
        self.network.on = False
        self.bucket.refused.clear()
        self._lift_pauses(self.table(self._service))

    def at_rest(self) -> list[str]:
        return self.checks.at_rest()

    def _come_to_rest(self) -> None:
        self.scheduler.trace("--- no more faults ---")
        self.calm()
        stopped, retried = self.scheduler.now, 0.0
        while self.scheduler.now < stopped + 20_000.0 and not self._failed():
            self.scheduler.sleep(50.0)
            failed = [j.job_id for j in self.rows.jobs.values() if is_ours(j)]
            if failed and self.scheduler.now < stopped + 400.0:
                for job_id in failed:
                    self._insist("retry", job_id)
                retried = self.scheduler.now
            if (
                self.swept >= 2
                and self.scheduler.now > retried + 5.0
                and self.scheduler.now > self.network.resumed + 100.0
                and self.checks.quiet()
                and not self.notices.notices
            ):
                self.scheduler.sleep(self.collected_after)  # let the collector come by
                if self.checks.quiet():
                    return

    def _failed(self) -> bool:
        return bool(self.checks.broken or self.scheduler.crashes)

    def _object_changed(self, key: str, body: bytes | None) -> None:
        self.checks.object_written(key, body)
        if key.startswith(("inbox/", "configs/")):
            name = "ObjectCreated:Put" if body is not None else "ObjectRemoved:Delete"
            record = {"eventVersion": "2.1", "eventSource": "aws:s3", "eventName": name}
            record |= {"s3": {"bucket": {"name": BUCKET}, "object": {"key": key}}}
            self.notices.tell(json.dumps({"Records": [record]}))

    def _row_written(self, old: Job | None, new: Job | None) -> None:
        self.checks.row_written(old, new)
        self.row_changed.notify()


@contextmanager
def _patched(module: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def _held(made: Callable[..., Any], *args: Any, **more: Any) -> Any:
    return made(*args, turn=SimLock(), **more)


class _Threading:
    """`threading` for modules that hold a lock while they call a port."""

    Lock = SimLock

    def __getattr__(self, name: str) -> Any:
        return getattr(threading, name)


def simulate(seed: int, make: Callable[[int, Path], World] = World) -> Outcome:
    """One run; the same seed gives the same run."""
    folder = Path(tempfile.mkdtemp(dir=MEMORY, prefix="sim-"))
    try:
        world = make(seed, folder)
        stands = handlers.planning.Planner._is_current

        def looked(*args: Any) -> bool:
            found = stands(*args)
            world.met["tie_looked_again" if found else "tie_outdated"] += 1
            return found

        held, tokens = functools.partial(_held, runner.leases.Held), random.Random(f"tokens {seed}")
        with (
            _patched(runner.leases, "Held", held),
            _patched(runner.leases, "threading", _Threading()),
            _patched(runner.worker, "threading", _Threading()),
            _patched(runner.surroundings, "threading", _Threading()),
            _patched(runner.janitor, "threading", _Threading()),
            _patched(handlers.planning.Planner, "_is_current", looked),
            _patched(console.library, "token_hex", lambda size: tokens.randbytes(size).hex()),
        ):
            try:
                broken = world.run()
            finally:
                world.scheduler.close()
        s = world.scheduler
        return Outcome(seed, broken, world.met, s.digest, s.lines, s.steps, s.now - EPOCH)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
