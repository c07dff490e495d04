"""A wall clock that is set back, by a person or at the start of a machine: nothing waits until it has caught up."""

import time
from itertools import pairwise
from types import SimpleNamespace

import pytest

from infra import clocks
from infra.clocks import SystemClock
from infra.local.sqlite import Database
from infra.local.sqlite_table import SqliteJobTable

DAY = 86_400.0


@pytest.fixture
def clock(monkeypatch):
    """A machine's clocks, moved by hand."""
    hands = SimpleNamespace(wall=1_800_000_000.0, steady=5_000.0)
    monkeypatch.setattr(clocks, "time", SimpleNamespace(time=lambda: hands.wall, monotonic=lambda: hands.steady))
    return hands


def test_the_clock_never_goes_back_and_never_stops(clock):
    ours = SystemClock()
    before = ours.now()
    clock.wall -= DAY
    told = [before]
    for _ in range(100):
        clock.wall += 1.0
        clock.steady += 1.0
        told.append(ours.now())
    assert all(later > earlier for earlier, later in pairwise(told))
    assert told[-1] - before >= 45.0  # what waits for a minute waits for two, not for a day


def test_the_clock_comes_back_to_the_wall_clock(clock):
    ours = SystemClock()
    ours.now()
    clock.wall -= 100.0
    for _ in range(300):
        clock.wall += 1.0
        clock.steady += 1.0
        ours.now()
    assert ours.now() == clock.wall


def test_a_clock_that_was_not_set_says_the_wall_clock(clock):
    ours = SystemClock()
    for step in (0.5, 3.0, 1000.0):
        clock.wall += step
        clock.steady += step
        assert ours.now() == clock.wall
    assert SystemClock().now() == clock.wall


def test_a_leader_that_died_before_the_clock_was_set_back_does_not_lead_for_as_long(tmp_path):
    at = SimpleNamespace(now=lambda: time.time() + DAY)
    database = Database(tmp_path / "ade.sqlite")
    assert SqliteJobTable(database, at, lambda _: None).hold("janitor", "dead", 30.0)
    table = SqliteJobTable(database, SimpleNamespace(now=time.time), lambda _: None)
    assert table.hold("janitor", "alive", 30.0)
    assert not table.hold("janitor", "another", 30.0)
    database.close()
