"""A store that does not answer for some objects: others go on, and a runner that has to stop does."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from core.errors import StoreUnavailable
from core.jobs import State
from core.verdicts import Verdict
from runner import patience
from runner.fleet import Fleet
from runner.patience import CallLeft, PatientCalls
from tests.support.world import World

LONG = 60.0


def until(condition: Callable[[], bool]) -> None:
    late = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < late, "it never came to that"
        time.sleep(0.005)


class Street:
    """A world whose store does not answer for the inputs or outputs of `acme` until the test's end."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.world = World(folder, lease_seconds=3600.0, max_attempts=1, **settings)
        self.hanging = 0
        self.answers = threading.Event()

    def hang(self, name: str) -> None:
        act = getattr(self.world.store, name)

        def hanging(key: str, *args: Any, **more: Any) -> Any:
            if "acme" in key and threading.current_thread().name == "patient-call":
                self.hanging += 1
                assert self.answers.wait(LONG)
            return act(key, *args, **more)

        setattr(self.world.store, name, hanging)

    def drop(self, tenant: str, name: str) -> None:
        self.world.intake.changed(self.world.drop(tenant=tenant, name=name, body=f"id\n{name}\n".encode()))
        self.world.clock.move(0.01)

    def states(self, tenant: str) -> list[tuple[State, int]]:
        return [(job.state, job.attempt) for job in self.world.jobs() if job.tenant == tenant]

    @contextmanager
    def at_work(self) -> Iterator[Fleet]:
        runner = self.world.runner()
        runner.worker.attempts._patient = PatientCalls()  # as over a network
        w = self.world
        fleet = Fleet(runner.worker, w.queue, runner.beats, w.log, slots=2, clock=w.clock, patience=0.0)
        thread = threading.Thread(target=fleet.run, kwargs={"grace_seconds": 0.0}, daemon=True)
        thread.start()
        try:
            yield fleet
        finally:
            fleet.stop()
            thread.join(LONG)
            assert not thread.is_alive(), "the fleet waits for the store"


@pytest.fixture
def street(tmp_path: Path) -> Iterator[Street]:
    made = Street(tmp_path / "data")
    yield made
    made.answers.set()
    made.world.close()


def test_inputs_that_never_answer_keep_no_other_tenant_waiting(street: Street):
    street.hang("fetch")
    for name in ("a.csv", "b.csv"):
        street.drop("acme", name)
    with street.at_work():
        until(lambda: street.hanging == 2)
        street.drop("globex", "small.csv")
        until(lambda: street.states("globex") == [(State.SUCCEEDED, 1)])


@pytest.mark.parametrize("call", ["fetch", "put"])
def test_a_stop_does_not_wait_for_the_store_and_costs_no_attempt(
    street: Street, call: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("runner.attempt._LAST_SECONDS", 0.0)
    street.drop("acme", "a.csv")
    street.hang(call)
    with street.at_work():
        until(lambda: street.hanging > 0)
    assert street.states("acme") == [(State.QUEUED, 0)]
    (run,) = (street.world.settings.storage_data_dir / "run").glob("runner-*/")
    street.answers.set()
    until(lambda: not list(run.glob("acme-*")))


def test_inputs_that_take_longer_than_a_job_may_are_the_stores_fault(tmp_path: Path):
    street = Street(tmp_path / "data", job_timeout_seconds=1)
    street.hang("fetch")
    street.drop("acme", "a.csv")
    with street.at_work():
        until(lambda: street.states("acme") == [(State.FAILED, 1)])
    (job,) = street.world.jobs()
    assert job.error is not None
    assert job.error.verdict is Verdict.STORE_FAILED
    assert "deliver the inputs within 1 s" in job.error.message
    street.answers.set()
    street.world.close()


class TestPatientCalls:
    def call(self, act: Callable[[], Any], **more: Any) -> Any:
        given: dict[str, Any] = {"killed": lambda: None, "seconds": LONG, "tidy": lambda: None}
        return PatientCalls()("answer", act, **(given | more))

    def test_the_call_returns_or_raises_what_it_would_anyway(self):
        assert self.call(lambda: 7) == 7
        with pytest.raises(ZeroDivisionError):
            self.call(lambda: 1 // 0)

    def test_a_killed_job_leaves_its_call_and_what_that_makes_is_removed(self):
        end, tidied = threading.Event(), threading.Event()
        with pytest.raises(CallLeft) as left:
            self.call(lambda: end.wait(LONG), killed=lambda: Verdict.RELEASED, tidy=tidied.set)
        assert left.value.verdict is Verdict.RELEASED
        assert not tidied.is_set()
        end.set()
        assert tidied.wait(LONG)

    def test_a_call_that_is_about_to_end_has_its_last_seconds(self):
        end = threading.Event()

        def killed() -> Verdict:
            end.set()
            return Verdict.RELEASED

        assert self.call(lambda: end.wait(LONG), killed=killed, last_seconds=LONG)

    def test_only_so_many_calls_are_left(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(patience, "_MOST_LEFT", 2)
        calls, end = PatientCalls(), threading.Event()
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match=r"did not answer within 0\.1 s"):
                calls("answer", lambda: end.wait(LONG), killed=lambda: None, seconds=0.1, tidy=lambda: None)
        with pytest.raises(StoreUnavailable, match="2 earlier calls"):
            calls("answer", lambda: 7, killed=lambda: None, seconds=1.0, tidy=lambda: None)
        end.set()
        until(lambda: not calls._left)
        assert calls("answer", lambda: 7, killed=lambda: None, seconds=1.0, tidy=lambda: None) == 7
