"""Events that come together are looked at together; one that fails keeps no other back."""

import io
import threading

import pytest

from core.errors import StoreUnavailable
from handlers.events import Change, ChangeKind
from handlers.planning import Report
from handlers.sources.arrivals import Arrivals, Batcher
from infra.logs import Log
from infra.queueing import Lanes

LOG = Log(stream=io.StringIO())


class Looks:
    """An intake that notes each look, may be held in one, and cannot look at what is sick."""

    def __init__(self) -> None:
        self.seen: list[list[str]] = []
        self.entered, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    def changed(self, keys: list[str]) -> Report:
        self.seen.append(sorted(keys))
        self.entered.set()
        assert self.go_on.wait(20)
        if any("sick" in key for key in keys):
            raise StoreUnavailable("table does not answer")
        return Report()


class Line(list):
    """Tells when somebody has joined it."""

    def __init__(self) -> None:
        super().__init__()
        self.joined = threading.Semaphore(0)

    def append(self, one: object) -> None:
        super().append(one)
        self.joined.release()


def told(name: str) -> list[Change]:
    return [Change(bucket="drops", key=f"inbox/acme/{name}.csv", kind=ChangeKind.CREATED)]


@pytest.fixture
def looks() -> Looks:
    return Looks()


@pytest.fixture
def batcher(looks: Looks) -> Batcher:
    return Batcher(Arrivals(looks, "drops"), LOG)


def test_what_comes_during_a_look_is_scanned_together_by_the_next(looks: Looks, batcher: Batcher):
    looks.go_on.clear()
    answers: dict[str, bool] = {}
    callers = [threading.Thread(target=lambda n=n: answers.update({n: batcher.receive(told(n))})) for n in "abcd"]
    callers[0].start()
    assert looks.entered.wait(20)
    batcher._waiting = Line()
    for caller in callers[1:]:
        caller.start()
    for _ in callers[1:]:
        assert batcher._waiting.joined.acquire(timeout=20)
    looks.go_on.set()
    for caller in callers:
        caller.join(20)
    assert answers == dict.fromkeys("abcd", True)
    assert looks.seen == [["inbox/acme/a.csv"], [f"inbox/acme/{n}.csv" for n in "bcd"]]


def test_a_notice_that_fails_has_to_be_reported_again(batcher: Batcher):
    assert not batcher.receive(told("sick"))
    assert batcher.receive(told("well"))


def test_of_notices_taken_together_only_the_sick_ones_come_back(looks: Looks):
    notices = [("a", told("a")), ("sick", told("sick")), ("b", told("b"))]
    assert Arrivals(looks, "drops").receive_all(notices, LOG) == ["a", "b"]


def test_a_look_that_breaks_down_lets_the_next_one_in(looks: Looks, batcher: Batcher, monkeypatch):
    monkeypatch.setattr(looks, "changed", lambda _keys: 1 / 0)
    assert not batcher.receive(told("a")), "it has to be told again"
    monkeypatch.undo()
    assert batcher.receive(told("a"))


class TestLanes:
    def test_results_keep_the_order_of_the_things(self):
        assert Lanes(4).each(lambda n: n * n, range(20)) == [n * n for n in range(20)]

    def test_things_are_side_by_side(self):
        together = threading.Barrier(3, timeout=20)
        Lanes(3).each(lambda _: together.wait(), range(3))

    def test_an_error_is_raised_once_the_others_are_done(self):
        done = []

        def act(n: int) -> None:
            if n == 0:
                raise StoreUnavailable("no")
            done.append(n)

        with pytest.raises(StoreUnavailable):
            Lanes(2).each(act, range(6))
        assert sorted(done) == [1, 2, 3, 4, 5]

    def test_one_lane_works_in_the_callers_thread(self):
        assert set(Lanes(1).each(lambda _: threading.get_ident(), range(3))) == {threading.get_ident()}
