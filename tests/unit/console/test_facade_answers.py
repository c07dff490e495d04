"""Answers that the console keeps: when they are asked for again, and who waits for it."""

import threading
from collections.abc import Callable

import pytest

from console.facade import Fresh
from core.errors import StoreUnavailable


class Table:
    """Counts how often it is asked; an answer takes as long as it is told, by a clock that is moved by hand."""

    def __init__(self, seconds: float) -> None:
        self.now = 0.0
        self.seconds = seconds
        self.asked = 0
        self.asking, self.may_answer = threading.Event(), threading.Event()
        self.may_answer.set()

    def ask(self) -> int:
        self.asked += 1
        self.asking.set()
        assert self.may_answer.wait(20)
        self.now += self.seconds
        return self.asked

    def steady(self) -> float:
        return self.now


def until(true: Callable[[], bool]) -> None:
    for thread in threading.enumerate():
        if thread.name == "count":
            thread.join(20)
    assert true()


def test_an_answer_is_kept_for_twenty_times_as_long_as_it_took():
    table = Table(seconds=0.1)
    fresh = Fresh(table.ask, table.steady)
    assert fresh.get() == 1
    table.now += 1.9
    assert fresh.get() == 1
    table.now += 0.2
    assert fresh.get() == 2


def test_a_long_count_is_repeated_aside_while_pages_get_the_last_one():
    table = Table(seconds=1.0)
    fresh = Fresh(table.ask, table.steady, aside=True)
    assert fresh.get() == 1
    table.now += 3600
    table.may_answer.clear()
    table.asking.clear()
    assert [fresh.get() for _ in range(3)] == [1, 1, 1]
    assert table.asking.wait(20)
    assert fresh.age() == pytest.approx(3600)
    table.may_answer.set()
    until(lambda: fresh.get() == 2)
    assert (table.asked, fresh.age()) == (2, 0)


def test_a_short_count_is_never_old():
    table = Table(seconds=0.01)
    fresh = Fresh(table.ask, table.steady, aside=True)
    assert fresh.get() == 1
    table.now += 3600
    assert fresh.get() == 2


def test_a_count_that_fails_aside_is_tried_again():
    table = Table(seconds=1.0)
    fails: list[OSError] = []

    def ask() -> int:
        if fails:
            raise fails.pop()
        return table.ask()

    fresh = Fresh(ask, table.steady, aside=True)
    assert fresh.get() == 1
    table.now += 3600
    fails.append(OSError("no answer"))
    assert fresh.get() == 1
    until(lambda: not fails)
    assert fresh.get() == 1
    until(lambda: fresh.get() == 2)


class Service(Table):
    """One that does not answer, which it takes its time to find out, until it is up."""

    up = False

    def ask(self) -> int:
        answer = super().ask()
        if not self.up:
            raise StoreUnavailable("no answer")
        return answer


def test_while_a_service_is_down_one_waits_and_the_others_are_told_at_once():
    service = Service(seconds=8.0)
    fresh = Fresh(service.ask, service.steady)
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            fresh.get()
    assert service.asked == 1
    service.now += 9.0  # the error is too old to be believed
    service.may_answer.clear()
    service.asking.clear()
    patient = threading.Thread(target=fresh.get)
    patient.start()
    assert service.asking.wait(20)
    with pytest.raises(StoreUnavailable):
        fresh.get()
    service.up = True
    service.may_answer.set()
    patient.join(20)
    assert (fresh.get(), service.asked) == (2, 2)
