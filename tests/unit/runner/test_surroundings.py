"""The circuit breaker: what opens and closes it, and what a fleet does while it is open."""

import sys
import threading
from typing import Any

import pytest

from console.cli import checks
from core.errors import SandboxUnavailable, StoreUnavailable
from core.fairness import Offer
from core.jobs import State
from core.ports import Delivery, Message, Refused
from core.verdicts import Verdict
from infra.clocks import HandClock
from runner.assembly import Runner
from runner.surroundings import BOX, Surroundings
from tests.support.world import World

WAIT = 60.0  # more than anything here takes; only a failing test sits it out


class Parts:
    """Checks that fail when they are told to, and count how often they were made."""

    def __init__(self, world: World, *, draw: float = 0.5) -> None:
        self.clock: HandClock = world.clock
        self.down: set[str] = set()
        self.made: list[str] = []
        self.heard: list[str] = []
        checks = {name: self.check(name) for name in ("table", "store", BOX)}
        self.breaker = Surroundings(checks, self.clock, world.log, on_change=self.heard.append, draw=lambda: draw)

    def check(self, name: str) -> Any:
        def made() -> None:
            self.made.append(name)
            if name in self.down:
                raise StoreUnavailable(f"{name} is down")

        return made


def test_a_fault_while_all_is_well_is_the_jobs_own(world: World):
    parts = Parts(world)
    assert not parts.breaker.to_blame()
    assert parts.made == ["table", "store"]
    assert parts.breaker.failed is None
    assert parts.heard == []


def test_a_fault_while_a_part_is_down_is_not(world: World):
    parts = Parts(world)
    parts.down = {"store"}
    assert parts.breaker.to_blame()
    assert parts.breaker.failed == "store"
    assert parts.heard == ["store: StoreUnavailable: store is down"]


def test_while_it_is_open_nobody_asks_again_for_each_fault(world: World):
    parts = Parts(world)
    parts.down = {"store"}
    assert all(parts.breaker.to_blame() for _ in range(10))
    assert parts.made == ["table", "store"]


def test_boxes_are_tried_only_where_one_has_failed(world: World):
    parts = Parts(world)
    parts.down = {BOX}
    assert not parts.breaker.to_blame()
    assert parts.breaker.to_blame(box=True)
    assert not parts.breaker.probe()
    parts.down = set()
    assert parts.breaker.probe()
    assert parts.made.count(BOX) == 3


@pytest.mark.parametrize("draw", [0.0, 0.5, 0.999])
def test_probes_come_at_growing_jittered_intervals_with_an_end(world: World, draw: float):
    parts = Parts(world, draw=draw)
    parts.down = {"store"}
    parts.breaker.to_blame()
    rests = []
    for _ in range(8):
        rests.append(parts.breaker.rest())
        parts.clock.move(rests[-1])
        assert parts.breaker.rest() == 0
        parts.breaker.probe()
    assert rests == pytest.approx([(0.5 + draw) * n for n in (1, 2, 4, 8, 16, 30, 30, 30)])


def test_one_that_opens_again_at_once_goes_on_where_it_was_and_after_a_calm_while_starts_anew(world: World):
    parts = Parts(world)
    rests = []
    for calm in (0, 1, 100):
        parts.clock.move(calm)
        parts.down = {"store"}
        parts.breaker.to_blame()
        rests.append(parts.breaker.rest())
        parts.down = set()
        assert parts.breaker.probe()
    assert rests == pytest.approx([1, 2, 1])
    assert parts.heard.count("") == 3


def test_a_probe_that_began_after_a_fault_speaks_for_it(world: World):
    """Of several slots that fail at once, one probes and the others hear what it found."""
    parts = Parts(world)

    class AfterAnother:
        """The turn comes when another slot's probe has ended."""

        def __enter__(self) -> None:
            parts.breaker._probe(box=False)

        def __exit__(self, *_: object) -> None:
            pass

    parts.breaker._turn = AfterAnother()  # type: ignore[assignment]
    assert not parts.breaker.to_blame()
    assert parts.made == ["table", "store"]


def test_the_probe_does_what_jobs_need_and_leaves_nothing(world: World):
    around = world.runner().worker.surroundings
    assert not around.to_blame(box=True)
    assert list(world.store.keys("")) == []
    assert world.fragile.table._port.hold(f"probe-{world.runners[0].presence.owner}", "another", 1)


@pytest.mark.parametrize(
    ("port", "call"), [("store", "put"), ("store", "read"), ("store", "delete"), ("table", "hold"), ("queue", "stats")]
)
def test_the_probe_meets_a_part_that_is_down(world: World, port: str, call: str):
    def refused(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("down")

    around = world.runner().worker.surroundings
    setattr(getattr(world, port), call, refused)
    assert around.to_blame()
    assert around.failed == port


def test_the_probe_meets_a_host_on_which_no_box_starts(world: World):
    around = world.runner().worker.surroundings
    world.sandbox.verdict = Verdict.BOX_FAILED
    assert around.to_blame(box=True)
    assert around.failed == BOX
    assert around.probe()


def down(world: World) -> threading.Event:
    """A store that refuses every write; the event is set when it was asked."""
    asked = threading.Event()

    def refused(*_: Any, **__: Any) -> Any:
        asked.set()
        raise StoreUnavailable("down")

    world.store.put = refused  # type: ignore[method-assign]
    return asked


def running(runner: Runner, **how: Any) -> threading.Thread:
    thread = threading.Thread(target=lambda: runner.fleet.run(**how), daemon=True)
    thread.start()
    return thread


def until(condition: Any) -> None:
    for _ in range(int(WAIT / 0.01)):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it did not come to that")


def test_a_drain_waits_for_the_store_without_a_hot_loop_and_then_does_the_work(world: World):
    world.intake.changed(world.drop())
    put = world.store.put
    asked, runner, receives, looks = down(world), world.runner(), [], []
    receive = world.queue.receive
    world.queue.receive = lambda **how: receives.append(1) or receive(**how)  # type: ignore[method-assign, func-returns-value]

    def drained() -> bool:
        looks.append(1)
        return all(job.ended for job in world.jobs())

    fleet = running(runner, drain=drained)
    assert asked.wait(WAIT)
    until(lambda: runner.worker.surroundings.failed)
    seen = len(receives), len(looks)
    threading.Event().wait(0.1)  # the clock stands, so no probe is due: nothing happens however long it takes
    assert (len(receives), len(looks)) == seen
    assert fleet.is_alive(), "it claims to have drained"
    assert [(job.state, job.attempt) for job in world.jobs()] == [(State.QUEUED, 0)]
    assert any(check.level == "wrong" and "takes no jobs: store" in check.message for check in doctor(world))
    world.store.put = put  # type: ignore[method-assign]
    world.clock.move(60)
    until(lambda: runner.worker.surroundings.failed is None)
    # Its message is shown again some seconds after whenever it was put back.
    until(lambda: world.clock.move(1) or not fleet.is_alive())
    assert not fleet.is_alive()
    assert [job.state for job in world.jobs()] == [State.SUCCEEDED]
    assert not any("takes no jobs" in check.message for check in doctor(world))


def doctor(world: World) -> list[Any]:
    return list(checks.check_queue(world.fragile))


def test_a_stop_waits_for_no_probe(world: World):
    world.intake.changed(world.drop())
    asked, runner, hangs, let_on = down(world), world.runner(), threading.Event(), threading.Event()
    fleet = running(runner)
    assert asked.wait(WAIT)
    until(lambda: runner.worker.surroundings.failed)

    def hanging(*_: Any, **__: Any) -> Any:
        hangs.set()
        let_on.wait(WAIT)

    world.store.put = hanging  # type: ignore[method-assign]
    world.clock.move(60)
    assert hangs.wait(WAIT)
    runner.fleet.stop()
    fleet.join(WAIT / 2)
    assert not fleet.is_alive()
    let_on.set()


def test_a_drain_that_cannot_look_has_not_drained(world: World):
    runner, answers = world.runner(), iter([StoreUnavailable("down"), OSError("down"), True])

    def drained() -> bool:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return bool(answer)

    runner.fleet._draw = lambda: 0.0
    fleet = running(runner, drain=drained)
    fleet.join(WAIT)
    assert not fleet.is_alive()
    assert list(answers) == []


def test_a_queue_that_fails_in_a_way_nobody_thought_of_ends_no_fleet(world: World):
    world.intake.changed(world.drop())
    runner, receive, broken = world.runner(), world.queue.receive, [1, 1]

    def breaking(**how: Any) -> Any:
        if broken:
            broken.pop()
            raise KeyError("something nobody thought of")
        return receive(**how)

    world.queue.receive = breaking  # type: ignore[method-assign]
    runner.fleet._draw = lambda: 0.0
    runner.fleet.run(drain=lambda: all(job.ended for job in world.jobs()))
    assert [job.state for job in world.jobs()] == [State.SUCCEEDED]


def test_tenants_to_avoid_may_change_while_the_next_messages_are_asked_for(world: World):
    runner = world.runner()
    runner.worker.serve = lambda *_: Refused(reason="", scope="tenant")  # type: ignore[method-assign]
    failed: list[Exception] = []
    done = threading.Event()
    offer = Offer(most=1, avoid=frozenset(), last=frozenset())

    def slot(n: int) -> None:
        try:
            for i in range(300):
                message = Message(job_id="j", tenant=f"{n}-{i}")
                runner.fleet._slot(Delivery(message=message, receipt="", receives=1, sent_at=0.0))
        except Exception as error:  # noqa: BLE001
            failed.append(error)

    def receiver() -> None:
        try:
            while not done.is_set():
                world.clock.move(0.01)
                runner.fleet._receive(offer, 0.0)
        except Exception as error:  # noqa: BLE001
            failed.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        asks = threading.Thread(target=receiver)
        slots = [threading.Thread(target=slot, args=(n,)) for n in range(4)]
        for thread in (asks, *slots):
            thread.start()
        for thread in slots:
            thread.join(WAIT)
        done.set()
        asks.join(WAIT)
    finally:
        sys.setswitchinterval(interval)
    assert failed == []


def test_a_box_that_cannot_be_had_at_all_is_a_fault_of_the_surroundings(world: World):
    run, refusals = world.sandbox.run, [1, 1]

    def refusing(*args: Any, **kwargs: Any) -> Any:
        if refusals:
            refusals.pop()
            raise SandboxUnavailable("none")
        return run(*args, **kwargs)

    world.sandbox.run = refusing  # type: ignore[method-assign]
    world.intake.changed(world.drop())
    runner = world.runner()
    world.handle_one(runner)
    (job,) = world.jobs()
    assert (job.state, job.attempt, job.error.verdict) == (State.QUEUED, 0, Verdict.BOX_FAILED)  # type: ignore[union-attr]
    assert runner.worker.surroundings.failed == BOX
