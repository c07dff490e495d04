"""No tenants keep every slot of a process from the others, and all get on with their own work."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.fairness import QUANTUM_SECONDS, longest_run
from core.jobs import Job, State
from core.ports import Pause
from core.verdicts import Verdict
from runner.boxes import BoxOrder, BoxReport
from runner.engine.contract import VerifyOrder
from runner.fleet import Fleet
from tests.support.places import PLACES, Place, embedded
from tests.support.world import ScriptedSandbox, World

QUIET = 11.0  # longer than a tenant is kept from the last slot


class Boxes(ScriptedSandbox):
    """Boxes of `acme` and of tenants that sleep run until the test ends them, by the name of their input; all others end at once."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self.running: dict[str, str] = {}  # label → input
        self.most = 0
        self.may_end: set[str] = set()
        self.stubborn = False

    def run(self, order: BoxOrder, *, killed, on_event=lambda _: None) -> BoxReport:
        if isinstance(order.job, VerifyOrder):
            return super().run(order, killed=killed, on_event=on_event)
        name = order.job.inputs[0].name
        with self.lock:
            self.running[order.label] = name
            self.most = max(self.most, len(self.running))
        while (
            (order.tenant == "acme" or "sleeps" in order.tenant)
            and name not in self.may_end
            and (self.stubborn or killed() is None)
        ):
            time.sleep(0.005)
        with self.lock:
            del self.running[order.label]
        return super().run(order, killed=killed, on_event=on_event)


class Street:
    def __init__(self, folder: Path, place: Place = embedded) -> None:
        self.world = World(folder, place, lease_seconds=3600.0, max_concurrency=2)
        self.boxes = self.world.sandbox = Boxes()
        self.world.boxes = type(self.world.boxes)(self.boxes, self.world.boxes.layers)
        self.drops = 0

    def drop(self, tenant: str, name: str) -> None:
        self.drops += 1
        self.world.intake.changed(self.world.drop(tenant=tenant, name=name, body=f"id\n{self.drops}\n".encode()))
        self.world.clock.move(0.01)  # so that the queue knows which came first

    def job(self, name: str) -> Job:
        (found,) = [job for job in self.world.jobs() if job.inputs[0].name == name]
        return found

    def small_drops(self, count: int) -> None:
        """Drops of another tenant, each as soon as the one before it has ended."""
        for _ in range(count):
            name = f"small-{self.drops}.csv"
            self.drop("globex", name)
            until(lambda: self.job(name).state is State.SUCCEEDED)  # noqa: B023 - waited for here
            assert self.job(name).attempts_total == 1

    def later(self, name: str) -> Job:
        """A job's row a moment later: one that was put back is tried again only then."""
        self.world.clock.move(0.1)
        return self.job(name)

    def runs(self, *names: str) -> None:
        until(lambda: sorted(self.boxes.running.values()) == sorted(names))

    def started(self) -> Counter[str]:
        return Counter({job.inputs[0].name: job.attempts_total for job in self.world.jobs() if job.tenant == "acme"})

    @contextmanager
    def at_work(self, slots: int = 2, patience: float = 0.0) -> Iterator[Fleet]:
        runner = self.world.runner()
        fleet = Fleet(
            runner.worker,
            self.world.queue,
            runner.beats,
            self.world.log,
            slots=slots,
            clock=self.world.clock,
            patience=patience,
        )
        thread = threading.Thread(target=fleet.run, kwargs={"grace_seconds": 0.0})
        thread.start()
        try:
            yield fleet
        finally:
            fleet.stop()
            thread.join()


def until(condition: Callable[[], bool]) -> None:
    late = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < late, "it never came to that"
        time.sleep(0.005)


@pytest.fixture
def street(tmp_path: Path) -> Iterator[Street]:
    made = Street(tmp_path)
    for name in ("a1", "a2", "a3"):
        made.drop("acme", name + ".csv")
    yield made
    made.world.close()


def test_the_youngest_job_makes_room_for_another_tenant_and_loses_no_attempt(street):
    with street.at_work():
        street.runs("a1.csv", "a2.csv")
        street.small_drops(1)
        street.runs("a1.csv")
        given_back = street.job("a2.csv")
        assert (given_back.state, given_back.attempt) == (State.QUEUED, 0)
        assert street.started() == {"a1.csv": 1, "a2.csv": 1, "a3.csv": 0}
        street.boxes.may_end |= {"a1.csv", "a2.csv", "a3.csv"}
        until(lambda: {job.state for job in street.world.jobs()} == {State.SUCCEEDED})
    assert street.boxes.most == 2, "more boxes than slots"
    assert street.started() == {"a1.csv": 1, "a2.csv": 2, "a3.csv": 1}


def test_a_tenant_that_is_alone_keeps_every_slot(street):
    with street.at_work():
        street.runs("a1.csv", "a2.csv")
        street.boxes.may_end |= {"a1.csv"}
        street.runs("a2.csv", "a3.csv")
        street.boxes.may_end |= {"a2.csv", "a3.csv"}
        until(lambda: {job.state for job in street.world.jobs()} == {State.SUCCEEDED})
    assert set(street.started().values()) == {1}


def test_a_single_slot_is_nobodys_to_take(street):
    with street.at_work(slots=1):
        street.runs("a1.csv")
        street.drop("globex", "small.csv")
        street.boxes.may_end |= {"a1.csv", "a2.csv", "a3.csv"}
        until(lambda: {job.state for job in street.world.jobs()} == {State.SUCCEEDED})
    assert set(street.started().values()) == {1}


def test_a_job_that_ends_by_itself_makes_room_too(street):
    with street.at_work(patience=60.0):
        street.runs("a1.csv", "a2.csv")
        street.drop("globex", "small.csv")
        until(lambda: street.job("small.csv").state is State.RUNNING)
        street.runs("a1.csv", "a2.csv")
        street.boxes.may_end |= {"a1.csv"}
        until(lambda: street.job("small.csv").state is State.SUCCEEDED)
        street.runs("a2.csv", "a3.csv")
    assert street.boxes.most == 2


def test_a_job_that_may_not_start_takes_no_slot_from_another(street):
    street.world.table.pause(Pause(tenant="globex", workflow=None, since=0.0, by="test"))
    with street.at_work():
        street.runs("a1.csv", "a2.csv")
        street.drop("globex", "small.csv")
        until(lambda: street.later("small.csv").reason.startswith("waiting:"))
        street.runs("a1.csv", "a2.csv")
        assert street.started() == {"a1.csv": 1, "a2.csv": 1, "a3.csv": 0}
        street.world.table.resume("globex", None)
        until(lambda: street.later("small.csv").state is State.SUCCEEDED)


def test_where_the_queue_cannot_choose_what_may_not_start_is_put_back(street, monkeypatch):
    """SQS brings the messages of a tenant that has every slot, too."""
    queue = street.world.queue
    receive = queue.receive
    monkeypatch.setattr(type(queue), "chooses_tenants", False)
    monkeypatch.setattr(queue, "receive", lambda **given: receive(**(given | {"avoid": frozenset()})))
    with street.at_work():
        street.runs("a1.csv", "a2.csv")
        street.drop("globex", "small.csv")
        until(lambda: street.later("small.csv").state is State.SUCCEEDED)
        assert street.job("a2.csv").attempt == 0
        street.boxes.may_end |= {"a1.csv", "a2.csv", "a3.csv"}
        until(lambda: {street.later(name).state for name in ("a1.csv", "a2.csv", "a3.csv")} == {State.SUCCEEDED})
    assert street.started() == {"a1.csv": 1, "a2.csv": 2, "a3.csv": 1}
    assert street.boxes.most == 2


@pytest.mark.parametrize("place", ["embedded", "postgres", "cloud"])
def test_as_many_sleeping_tenants_as_slots_hold_nobody_beyond_a_quantum(place, tmp_path):
    """Each has one slot, so that none has too many: the job that became long last makes room."""
    street = Street(tmp_path, PLACES[place])
    for name in ("a1", "b1", "c1"):
        street.drop("sleeps-" + name, name + ".csv")
    with street.at_work():
        until(lambda: len(street.boxes.running) == 2)
        street.drop("globex", "small.csv")
        street.world.clock.move(QUANTUM_SECONDS)
        until(lambda: street.later("small.csv").state is State.SUCCEEDED)
        until(lambda: street.later("c1.csv").attempts_total + street.job("b1.csv").attempts_total >= 2)
        street.world.clock.move(QUANTUM_SECONDS)
        for _ in range(3):
            name = f"small-{street.drops}.csv"
            street.drop("globex", name)
            until(lambda: street.later(name).state is State.SUCCEEDED)  # noqa: B023 - waited for here
        assert [job.attempt for job in street.world.jobs() if job.state is State.QUEUED] == [0, 0]
        street.boxes.may_end |= {"a1.csv", "b1.csv", "c1.csv"}
        until(lambda: street.later("a1.csv") and {job.state for job in street.world.jobs()} == {State.SUCCEEDED})
    assert street.boxes.most == 2, "more boxes than slots"
    street.world.close()


def test_a_job_has_a_single_slot_for_longer_each_time(street):
    with street.at_work(slots=1):
        street.runs("a1.csv")
        for times in range(1, 4):
            street.drop("globex", f"small-{times}.csv")
            street.world.clock.move(max(QUANTUM_SECONDS, 2 * longest_run(street.job("a1.csv"))) - 0.5)
            street.runs("a1.csv")
            assert street.started()["a1.csv"] == times
            street.world.clock.move(1.0)
            until(lambda: street.job(f"small-{times}.csv").state is State.SUCCEEDED)  # noqa: B023 - waited for here
            street.runs("a1.csv")
    assert street.job("a1.csv").attempt == 0, "it costs no attempt"


def test_a_job_is_not_started_again_only_to_be_given_back(street):
    """Another tenant drops one small file after the other: the second job waits its turn, and then keeps it."""
    with street.at_work():
        street.runs("a1.csv", "a2.csv")
        street.small_drops(20)
        assert street.started() == {"a1.csv": 1, "a2.csv": 1, "a3.csv": 0}
        street.boxes.may_end |= {"a1.csv"}
        street.runs("a2.csv")
        street.small_drops(20)
        street.boxes.may_end |= {"a2.csv"}
        until(lambda: street.job("a2.csv").state is State.SUCCEEDED)
        street.runs("a3.csv")
    assert street.started() == {"a1.csv": 1, "a2.csv": 2, "a3.csv": 1}


def test_a_long_second_job_ends_though_others_come_back_after_every_pause(street):
    """However often it was given back: once the first has ended, it is its tenant's oldest and stays."""
    with street.at_work():
        for times in range(1, 5):
            street.runs("a1.csv", "a2.csv")
            assert street.started() == {"a1.csv": 1, "a2.csv": times, "a3.csv": 0}
            street.small_drops(1)
            street.world.clock.move(QUIET)
        street.runs("a1.csv", "a2.csv")
        street.boxes.may_end |= {"a1.csv"}
        street.runs("a2.csv", "a3.csv")
        street.small_drops(3)
        street.runs("a2.csv")
        street.boxes.may_end |= {"a2.csv"}
        until(lambda: street.job("a2.csv").state is State.SUCCEEDED)
        assert street.job("a2.csv").attempt == 1


def test_a_job_that_waits_for_a_slot_is_given_back_when_the_fleet_stops(street):
    street.boxes.stubborn = True
    with street.at_work() as fleet:
        street.runs("a1.csv", "a2.csv")
        street.drop("globex", "small.csv")
        until(lambda: street.job("small.csv").state is State.RUNNING)
        fleet.stop()
        until(lambda: street.job("small.csv").state is State.QUEUED)
        street.boxes.stubborn = False
    assert {(job.state, job.attempt) for job in street.world.jobs()} == {(State.QUEUED, 0)}
    assert street.world.queue.stats().ready == 4
    assert street.boxes.most == 2
    assert street.job("small.csv").error.verdict is Verdict.RELEASED
