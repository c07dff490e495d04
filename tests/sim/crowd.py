"""Tenants that sleep in every slot of the fleet, and one that sends small files: how long does that one wait?

The world of world.py without its faults, with the fleet's decisions about slots (core/fairness.py) carried out by
actors instead of threads. Half of the seeds have a queue that chooses between tenants, half one like SQS.
"""

from collections import Counter
from pathlib import Path
from typing import Any

from core.fairness import QUANTUM_SECONDS, SlotShares
from core.jobs import Job, State
from core.ports import Delivery
from core.verdicts import Verdict
from runner.boxes import BoxOrder, BoxReport, Killed, OnEvent, ignore_event
from runner.engine.contract import VerifyOrder
from tests.sim.parts import SimQueue, SimStore
from tests.sim.scheduler import Process
from tests.sim.wires import Faults, WiredQueue
from tests.sim.world import SimSandbox, World

SLEEP = 300.0  # as long as the limit lets them
SMALL = 0.5
# Until a slot is free for whoever is next: a quantum, the wait for a slot that comes free by itself, a box's end, calls.
TURN = QUANTUM_SECONDS + 3.0
UNCHOSEN = 10 * TURN  # where messages come in any order, far from a limit of sleepers all the same


class ChoosyQueue(SimQueue):
    """Serves tenants in turn and leaves alone those to avoid, as SQLite and PostgreSQL do."""

    chooses_tenants = True

    def __init__(self, messages: Any) -> None:
        super().__init__(messages)
        self._served = messages.__dict__.setdefault("served", Counter())

    def receive(
        self, *, most: int, wait: float, visibility: float, avoid: frozenset[str] = frozenset()
    ) -> tuple[Delivery, ...]:
        shuffle, copies = self._m.shuffle, self._m.copies
        self._m.shuffle = lambda ready: ready.sort(key=lambda copy: (self._served[copy.message.tenant], copy.sent_at))
        self._m.copies = [copy for copy in copies if copy.message.tenant not in avoid]
        try:
            got = super().receive(most=most, wait=0, visibility=visibility)
        finally:
            self._m.shuffle, self._m.copies = shuffle, copies
        for delivery in got:
            self._served[delivery.message.tenant] = max(self._served.values(), default=0) + 1
        return got


class CrowdedWire(WiredQueue):
    """Does not ask again at once where only messages are left that it must not bring."""

    def receive(
        self, *, most: int, wait: float, visibility: float, avoid: frozenset[str] = frozenset()
    ) -> tuple[Delivery, ...]:
        for seconds in (wait, 0.0):
            got = self._call("receive", lambda: self._q.receive(most=most, wait=0, visibility=visibility, avoid=avoid))
            if got or not seconds:
                break
            self._coming.wait(self._n.scheduler.now + seconds)
        return got


class CrowdSandbox(SimSandbox):
    """Boxes of tenants that sleep take their whole time; counts the boxes of each process."""

    def run(self, order: BoxOrder, *, killed: Killed, on_event: OnEvent = ignore_event) -> BoxReport:
        if isinstance(order.job, VerifyOrder):
            return super().run(order, killed=killed, on_event=on_event)
        world = self._w
        assert isinstance(world, Crowd)
        process = world.scheduler.current.process.name
        world.boxed[process] += 1
        if world.boxed[process] > world.settings.max_concurrency:
            world.checks._breaks(f"{order.label} runs without a slot of {process}")
        try:
            left = SLEEP if order.tenant.startswith("sleeps") else SMALL
            while left > 0:
                if (stopped := killed()) is not None:
                    return BoxReport(verdict=stopped, message="stopped")
                world.scheduler.sleep(min(left, 0.5))
                left -= 0.5
            return super().run(order, killed=killed, on_event=on_event)
        finally:
            world.boxed[process] -= 1


class Crowd(World):
    def __init__(self, seed: int, folder: Path) -> None:
        self.boxed: Counter[str] = Counter()
        super().__init__(seed, folder)
        self.network.faults, self.network.on = Faults(), False
        self.people = None
        self.boxes = type(self.boxes)(CrowdSandbox(self), self.boxes.layers)
        self.chooses = self.rng.random() < 0.5
        self.runners = self.rng.choice([1, 2])
        slots = 2 * self.runners
        self.sleepers = [f"sleeps{n}" for n in range(slots + self.rng.randint(0, 3))]
        self.queued: dict[str, float] = {}

    def wired_queue(self, process: Process) -> WiredQueue:
        queue = ChoosyQueue(self.messages) if self.chooses else SimQueue(self.messages)
        wired = CrowdedWire(self.network, process, queue, self.message_came)
        wired.chooses_tenants = self.chooses
        return wired

    def start_runner(self, process: Process) -> None:
        if process.name.startswith("runner2") and self.runners == 1:
            return
        made = self._assembled(process, role="runner")
        made.fleet._shares = SlotShares(slots=self.settings.max_concurrency)
        FleetActors(self, process, made)

    def send(self) -> None:
        """Every tenant that sleeps has several jobs; then small files come, one after the other."""
        rng, store = self.rng, SimStore(self.bucket)
        for tenant in (*self.sleepers, "small"):
            self._upload(store, f"inbox/{tenant}/d/manifest.json", self.manifests[0])
        for tenant in self.sleepers:
            for n in range(rng.randint(1, 2)):
                self._upload(store, f"inbox/{tenant}/d/{n}.csv", f"id\n{n}\n".encode())
        self.scheduler.sleep(rng.uniform(2.0, 30.0))
        for n in range(rng.randint(3, 12)):
            self._upload(store, f"inbox/small/d/{n}.csv", f"id\n{n}\n".encode())
            self.scheduler.sleep(rng.choice([1.0, 4.0, 15.0, 60.0]))
        self.busy -= 1
        self.scheduler.wake(self.scheduler.world)

    def operate(self) -> None:
        self.busy -= 1
        self.scheduler.wake(self.scheduler.world)

    def _row_written(self, old: Job | None, new: Job | None) -> None:
        super()._row_written(old, new)
        if new is None or new.tenant != "small" or (old is not None and old.state is new.state):
            return
        if new.state is State.QUEUED:
            self.queued.setdefault(new.job_id, self.scheduler.now)
        if new.state is State.PUBLISHING:
            waited = self.scheduler.now - self.queued[new.job_id]
            # Each tenant that sleeps is new to each process once; they may all be ahead.
            bound = TURN * (1 + len(self.sleepers)) if self.chooses else UNCHOSEN
            if waited > bound:
                self.checks._breaks(f"{new.job_id} waited {waited:.0f} s, and {bound:.0f} s is the bound")
            self.met["waited"] += waited > 2.0


class FleetActors:
    """The loop of runner/fleet.py, by actors: receives what may start, and one actor for each job."""

    def __init__(self, world: Crowd, process: Process, made: Any) -> None:
        self.w, self.process, self.made, self.fleet = world, process, made, made.fleet
        self.beating = world.scheduler.spawn(process, "beats", self._beat)
        self.receiving = world.scheduler.spawn(process, "receive", self._loop)

    def _beat(self) -> None:
        while True:
            self.w.scheduler.sleep(self.w.rng.uniform(1.0, 5.0) if self.fleet._shares.occupants else 1e6)
            self.made.beats.round()

    def _loop(self) -> None:
        while True:
            offer = self.fleet._shares.offer(self.process.steady())
            if offer is None:
                self.w.scheduler.sleep(0.5)
                continue
            for delivery in self._receive(offer):
                tenant, now = delivery.message.tenant, self.process.steady()
                self.fleet._shares = self.fleet._shares.begin(delivery.receipt, tenant, now)
                self.w.scheduler.wake(self.beating)
                self.w.scheduler.spawn(
                    self.process, delivery.receipt, lambda one=delivery, patient=offer.patient: self._slot(one, patient)
                )

    def _receive(self, offer: Any) -> tuple[Delivery, ...]:
        """As Fleet._receive, without its threads."""
        avoid = offer.avoid
        if self.w.chooses:
            return self.fleet._ask(offer.most, 0.0, avoid | offer.last) or self.fleet._ask(offer.most, 1.0, avoid)
        got = self.fleet._ask(10 if offer.beyond else offer.most, 1.0, avoid)
        able = [one for one in got if one.message.tenant not in avoid]
        for one in able[offer.most :]:
            self.fleet._release(one)
        for one in got:
            if one.message.tenant in avoid:
                self.fleet._release(one, QUANTUM_SECONDS if offer.beyond else None)
        return tuple(able[: offer.most])

    def _slot(self, delivery: Delivery, patient: bool) -> None:
        ready = lambda ran, killed: self._ready(delivery, patient, ran, killed)  # noqa: E731 - as the fleet's
        try:
            self.made.worker.serve(delivery, ready)
        finally:
            if not self.process.dead:
                self.fleet._shares = self.fleet._shares.end(delivery.receipt, self.process.steady())

    def _ready(self, delivery: Delivery, patient: bool, ran: float, killed: Killed) -> None:
        fleet, waited = self.fleet, 0.0
        takes, given_back = fleet._shares.may_exceed(ran), False
        while fleet._shares.crowded and killed() is None:
            if waited >= (1.0 if patient else 0.0) and not given_back:
                if not takes:
                    fleet._shares = fleet._shares.refuse(delivery.receipt, self.process.steady())
                    self.made.beats.kill(delivery.message.job_id, Verdict.RELEASED)
                else:
                    given_back = self._give_back(delivery)
            self.w.scheduler.sleep(0.1)
            waited += 0.1
        fleet._shares = fleet._shares.place(delivery.receipt, ran, self.process.steady())

    def _give_back(self, delivery: Delivery) -> bool:
        now = self.process.steady()
        for key in self.fleet._shares.victims(delivery.message.tenant, now):
            job_id = self.jobs_by_receipt().get(key)
            if job_id is not None and self.made.beats.kill(job_id, Verdict.RELEASED):
                self.fleet._shares = self.fleet._shares.stop(key, now)
                self.w.met["given_back"] += 1
                return True
        return False

    def jobs_by_receipt(self) -> dict[str, str]:
        return {held.receipt: job_id for job_id, held in self.made.beats._held.items()}
