"""Who gets a slot: however many tenants sleep in theirs, the others wait a bounded time, and every job ends."""

import math
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.fairness import LONG_SECONDS, QUANTUM_SECONDS, QUIET_SECONDS, SlotShares, longest_run
from core.jobs import State
from tests.contract.jobs import a_job
from tests.support.effort import examples

TICK = 0.25
KILL = 2 * TICK  # from the decision to stop a job until its slot is free, in the model
LONGEST = 60.0  # the time limit of jobs


@dataclass(eq=False)
class Task:
    tenant: str
    seconds: float
    arrives: float
    ran: float = 0.0  # its longest run
    starts: int = 0
    first: float = math.inf  # when it first had a slot
    ended: float = math.inf
    settled: bool = False  # it runs in a slot of the long jobs
    unknown: int = 0  # tenants of long jobs that nobody knew as such when it came


@dataclass(eq=False)
class Process:
    shares: SlotShares
    running: dict[str, Task] = field(default_factory=dict)
    since: dict[str, float] = field(default_factory=dict)
    beyond: str = ""  # the one that has no slot yet
    killed: set[str] = field(default_factory=set)


class Street:
    """Processes with slots, and a queue with a lane for each tenant, served in turn."""

    def __init__(self, processes: int, slots: int, tasks: list[Task]) -> None:
        self.now = 0.0
        self.processes = [Process(SlotShares(slots=slots)) for _ in range(processes)]
        self.sleepers = {task.tenant for task in tasks if task.seconds >= QUANTUM_SECONDS}
        self.coming = sorted(tasks, key=lambda task: task.arrives)
        self.lanes: dict[str, list[Task]] = {}
        self.served: Counter[str] = Counter()
        self.numbers = 0
        self.most = 0

    def run(self, seconds: float) -> None:
        while self.now < seconds and (
            self.coming or any(self.lanes.values()) or any(p.running for p in self.processes)
        ):
            while self.coming and self.coming[0].arrives <= self.now:
                task = self.coming.pop(0)
                task.unknown = len(self.sleepers - self.processes[0].shares._long(self.now))
                self.lanes.setdefault(task.tenant, []).append(task)
            for process in self.processes:
                self.tick(process)
            self.now += TICK

    def tick(self, process: Process) -> None:
        for key, task in list(process.running.items()):
            ran = self.now - process.since[key]
            if key in process.killed or (key != process.beyond and ran >= task.seconds):
                self.end(process, key, task, ran)
        if process.beyond and not process.shares.crowded:
            self.place(process, process.beyond)
            process.beyond = ""
        elif process.beyond:
            self.make_room(process)
        while (offer := process.shares.offer(self.now)) is not None:
            task = self.take(offer.avoid | offer.last) or self.take(offer.avoid)
            if task is None:
                break
            self.start(process, task, beyond=offer.beyond)
        with_slot = [key for key in process.running if key != process.beyond]
        assert len(with_slot) <= process.shares.slots, "a job runs without a slot"

    def take(self, avoid: frozenset[str]) -> Task | None:
        ready = sorted((self.served[tenant], tenant) for tenant, lane in self.lanes.items() if lane)
        for _, tenant in ready:
            if tenant not in avoid:
                self.served[tenant] = max(self.served.values(), default=0) + 1
                return self.lanes[tenant].pop(0)
        return None

    def start(self, process: Process, task: Task, *, beyond: bool) -> None:
        self.numbers += 1
        key = f"k{self.numbers}"
        process.running[key], process.since[key] = task, self.now
        may_exceed = not beyond or process.shares.may_exceed(task.ran)
        process.shares = process.shares.begin(key, task.tenant, self.now)
        if not may_exceed:
            process.shares = process.shares.refuse(key, self.now)
            process.killed.add(key)
            process.beyond = key
        elif beyond:
            process.beyond = key
            self.make_room(process)
        else:
            self.place(process, key)

    def place(self, process: Process, key: str) -> None:
        task = process.running[key]
        process.since[key], task.starts, task.first = self.now, task.starts + 1, min(task.first, self.now)
        process.shares = shares = process.shares.place(key, task.ran, self.now)
        longs = [one for one in shares.occupants if one.long_from <= self.now]
        task.settled = any(one.key == key for one in longs) and len(longs) < shares.slots

    def make_room(self, process: Process) -> None:
        if process.killed:
            return
        for key in process.shares.victims(process.running[process.beyond].tenant, self.now)[:1]:
            task = process.running[key]
            several = sum(one.tenant == task.tenant for one in process.shares.occupants) > 1
            assert several or not task.settled, "a long job was stopped in a slot of its own"
            process.killed.add(key)
            process.shares = process.shares.stop(key, self.now)

    def end(self, process: Process, key: str, task: Task, ran: float) -> None:
        process.shares = process.shares.end(key, self.now)
        del process.running[key], process.since[key]
        if key in process.killed:
            process.killed.discard(key)
            task.ran = max(task.ran, 0.0 if key == process.beyond else ran)
            self.lanes.setdefault(task.tenant, []).insert(0, task)
            process.beyond = "" if key == process.beyond else process.beyond
        else:
            task.ended = self.now


def sleeping(tenants: int, each: int, seconds: float, gap: float) -> list[Task]:
    return [Task(f"s{n}", seconds, arrives=n * gap) for n in range(tenants) for _ in range(each)]


@st.composite
def attacks(draw: st.DrawFn) -> tuple[int, list[Task], list[Task]]:
    """How many slots, what sleeping tenants send, and one tenant's small jobs, one after the other."""
    slots = draw(st.integers(2, 4))
    seconds = draw(st.sampled_from([8.0, 20.0, LONGEST]))
    sleepers = sleeping(
        slots + draw(st.integers(0, 4)), draw(st.integers(1, 6)), seconds, draw(st.sampled_from([0.0, 2.0]))
    )
    at, small = draw(st.floats(0, 20)), list[Task]()
    for _ in range(draw(st.integers(1, 25))):
        small.append(Task("small", draw(st.floats(0.1, 2.0)), arrives=at))
        at += 4.0 + draw(st.sampled_from([0.0, 3.0, QUIET_SECONDS + 5, 70.0]))
    return slots, sleepers, small


@settings(max_examples=examples(40), deadline=None)
@given(attacks())
def test_a_tenant_of_short_jobs_waits_one_quantum_at_most_for_each_sleeper_that_is_new(attack):
    slots, sleepers, small = attack
    street = Street(1, slots, [*sleepers, *small])
    street.run(20_000)
    before = 0.0  # its own jobs come one after the other
    for task in small:
        bound = (task.unknown + 1) * (QUANTUM_SECONDS + KILL) if task.unknown else KILL + TICK
        assert task.first - max(task.arrives, before) <= bound, task
        before = task.ended


@settings(max_examples=examples(30), deadline=None)
@given(attacks(), st.integers(1, 3), st.integers(1, 3))
def test_every_job_ends_and_a_long_one_is_stopped_a_few_times_at_most(attack, processes, slots):
    _, sleepers, small = attack
    street = Street(processes, slots, [*sleepers, *small])
    street.run(40_000)
    assert all(task.ended < math.inf for task in [*sleepers, *small])
    # Once by each process that does not know its tenant, and when the last slot was only lent.
    most = processes + 2 + math.ceil(math.log2(LONGEST)) + len(small)
    assert max(task.starts for task in sleepers) <= most


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(0.1, 30.0), st.floats(0, 60)), max_size=30),
    st.integers(1, 4),
)
def test_whatever_comes_every_job_ends(drawn, slots):
    tasks = [Task(tenant, seconds, arrives) for tenant, seconds, arrives in drawn]
    Street(1, slots, tasks).run(20_000)
    assert all(task.ended < math.inf for task in tasks)


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(1, 8), st.sampled_from([8.0, LONGEST]), st.floats(0, 100))
def test_with_a_single_slot_a_tenant_waits_for_one_job_at_most(tenants, seconds, at):
    """Not for one of each: whoever used the slot goes behind."""
    small = Task("small", 0.5, arrives=at)
    street = Street(1, 1, [*sleeping(tenants, 3, seconds, 0.0), small])
    street.run(20_000)
    unknown = tenants if at < 3 * tenants * seconds else 0
    assert small.first - small.arrives <= seconds + KILL + unknown * (QUANTUM_SECONDS + KILL)


def test_a_tenant_that_used_little_goes_first():
    """Jobs shorter than a quantum, but very many: whoever used less is next, not whoever is next in turn."""
    busy = [Task(f"b{n}", 4.0, arrives=0.0) for n in range(6) for _ in range(40)]
    small = [Task("small", 0.5, arrives=60.0 + 30 * n) for n in range(8)]
    street = Street(1, 2, [*busy, *small])
    street.run(2000)
    assert max(task.first - task.arrives for task in small) <= 4.0 + KILL


def test_a_slot_that_is_lent_is_not_lent_again_while_others_are_there():
    sleepers = sleeping(3, 1, LONGEST, 0.0)
    small = [Task("small", 0.5, arrives=10.0 + 4 * n) for n in range(30)]
    street = Street(1, 2, [*sleepers, *small])
    street.run(2000)
    assert sum(task.starts for task in sleepers) <= 3 + 3


def shares_of(*occupants: tuple[str, float], slots: int = 2, now: float = 0.0) -> SlotShares:
    """Slots where jobs of these tenants began so long ago."""
    shares = SlotShares(slots=slots)
    for n, (tenant, ago) in enumerate(occupants):
        shares = shares.begin(f"{tenant}{n}", tenant, now - ago).place(f"{tenant}{n}", 0.0, now - ago)
    return shares


class TestWhoMakesRoom:
    def waiting(self, shares: SlotShares, tenant: str = "w", now: float = 0.0) -> tuple[str, ...]:
        return shares.begin("waits", tenant, now).victims(tenant, now)

    def test_nobody_before_a_quantum_is_over(self):
        assert shares_of(("a", 3.0), ("b", 1.0)).offer(0.0) is None
        assert self.waiting(shares_of(("a", 60.0), ("b", 1.0))) == ()

    def test_the_job_that_became_long_last(self):
        assert self.waiting(shares_of(("a", 60.0), ("b", 6.0))) == ("b1",)

    def test_the_youngest_of_the_tenant_with_most_slots(self):
        assert self.waiting(shares_of(("a", 3.0), ("b", 2.0), ("b", 1.0), ("b", 0.5), slots=4))[0] == "b3"

    def test_never_the_oldest_of_a_tenant_with_several(self):
        assert "b1" not in self.waiting(shares_of(("a", 3.0), ("b", 2.0), ("b", 1.0), slots=3))

    def test_nobody_for_a_tenant_that_has_a_slot(self):
        assert self.waiting(shares_of(("a", 60.0), ("b", 60.0)), tenant="a") == ()

    def test_a_long_job_takes_no_long_jobs_place(self):
        shares = shares_of(("a", 60.0), ("b", 60.0))
        assert shares.may_exceed(0.0)
        assert not shares.may_exceed(QUANTUM_SECONDS)

    def test_a_job_that_was_stopped_is_long_from_its_next_start(self):
        shares = shares_of(("a", 60.0)).begin("b", "b", 0.0).place("b", QUANTUM_SECONDS, 0.0)
        assert shares.begin("w", "w", 0.0).victims("w", 0.0) == ("b",)

    def test_with_a_single_slot_a_job_has_twice_the_time_of_its_longest_run(self):
        shares = SlotShares(slots=1).begin("a", "a", 0.0).place("a", 20.0, 0.0)
        assert shares.offer(39.0) is None
        assert shares.offer(40.0) is not None


class TestWhoStarts:
    def test_anybody_while_there_is_nothing_to_be_fair_about(self):
        offer = SlotShares(slots=3).offer(0.0)
        assert offer is not None
        assert (offer.most, offer.avoid, offer.last) == (3, frozenset(), frozenset())

    def test_a_tenant_of_long_jobs_not_in_the_last_slot_while_others_are_about(self):
        shares = shares_of(("a", 60.0)).begin("w", "w", 0.0).end("w", 1.0)
        shares = shares.begin("b", "b", 1.0).place("b", 0.0, 1.0).end("b", 7.0)
        assert shares.offer(8.0).avoid == {"a", "b"}
        assert shares.offer(1.0 + QUIET_SECONDS).avoid == frozenset()

    def test_a_long_job_is_forgotten(self):
        shares = shares_of(("b", 6.0)).end("b0", 0.0)
        shares = shares.begin("a", "a", LONG_SECONDS - 8.0).place("a", 0.0, LONG_SECONDS - 8.0)
        assert "b" in shares.offer(LONG_SECONDS - 1.0).avoid
        assert "b" not in shares.offer(LONG_SECONDS + 1.0).avoid

    def test_who_used_much_comes_last(self):
        shares = shares_of(("a", 100.0), ("b", 10.0), slots=3)
        shares = shares.end("a0", 0.0).end("b1", 0.0)
        assert shares.offer(0.0).last == {"a"}
        assert shares.offer(3600.0).last == frozenset()

    def test_tenants_that_used_next_to_nothing_are_not_kept(self):
        shares = SlotShares(slots=2)
        for n in range(100):
            shares = shares.begin(f"k{n}", f"t{n}", float(n)).place(f"k{n}", 0.0, float(n)).end(f"k{n}", n + 0.01)
        assert shares.tenants == {}


def test_the_longest_run_is_read_from_the_row():
    job = replace(a_job("a"), history=(("QUEUED", 0.0), ("RUNNING", 1.0), ("QUEUED", 8.0), ("RUNNING", 9.0)))
    assert longest_run(job) == 7.0
    assert longest_run(replace(job, history=(("RUNNING", 1.0), (str(State.FAILED), 50.0), ("QUEUED", 60.0)))) == 0.0


@pytest.mark.parametrize("gone", ["end", "stop"])
def test_a_job_that_is_not_there_changes_nothing(gone):
    shares = shares_of(("a", 1.0))
    assert getattr(shares, gone)("other", 0.0) == shares
