"""Heartbeats: they survive what breaks, wait for nobody, and a lease that was not renewed in time ends its box."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.errors import StoreUnavailable
from core.jobs import Job, State, start
from core.ports import Caps
from core.verdicts import Verdict
from infra.aws.calls import Caller, timeouts
from infra.aws.dynamodb import DynamoJobTable
from infra.aws.sqs import SqsWorkQueue
from infra.local.sqlite import Database
from infra.wiring import open_stack
from runner.leases import Beats, Held
from tests.support.places import PLACES
from tests.support.world import World

WAIT = 60.0  # more than anything here takes; only a failing test sits it out


def make_beats(world: World, table: Any = None, *, beat_seconds: float = 10.0) -> Beats:
    return Beats(
        table or world.table, world.queue, world.clock, world.log, lease_seconds=30.0, beat_seconds=beat_seconds
    )


def held_jobs(world: World, beats: Beats, n: int = 1) -> list[Held]:
    """Jobs that run, each under a lease that these beats keep."""
    for i in range(n):
        world.intake.changed(world.drop(name=f"{i}.csv", body=f"id\n{i}\n".encode()))
    found = []
    for delivery in world.queue.receive(most=n, wait=0, visibility=beats.visibility):
        job = world.table.get(delivery.message.job_id)
        assert job is not None
        begun = start(job, owner="me", now=world.clock.now(), lease_seconds=30.0)
        running = world.table.admit(job, begun, Caps(tenant=0, workflow=0))
        assert isinstance(running, Job)
        found.append(beats.hold(running, delivery.receipt))
    assert len(found) == n
    return found


def expires(world: World, held: Held) -> float:
    job = world.table.get(held.job.job_id)
    assert job is not None
    assert job.lease is not None
    return job.lease.expires


class Table:
    """The world's table, with calls that a test replaces."""

    def __init__(self, world: World, **calls: Any) -> None:
        self._table = world.table
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        return self._calls.get(name) or getattr(self._table, name)


class Once:
    """Raises the first time it is called, then does what it stands for."""

    def __init__(self, error: BaseException, then: Any) -> None:
        self.error: BaseException | None = error
        self.then = then
        self.raised = threading.Event()
        self.recovered = threading.Event()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        error, self.error = self.error, None
        if error is not None:
            self.raised.set()
            raise error
        result = self.then(*args, **kwargs)
        self.recovered.set()
        return result


@pytest.mark.parametrize(
    "error", [sqlite3.OperationalError("database or disk is full"), KeyError("bug"), StoreUnavailable("down")]
)
@pytest.mark.parametrize("call", ["replace", "get", "wait"])
def test_no_error_ends_the_beats(world: World, call: str, error: Exception):
    broken = Once(error, getattr(world.table, call) if call != "wait" else lambda _: None)
    table = Table(world, **({"wait": lambda _: None} | {call: broken}))
    beats = make_beats(world, table, beat_seconds=0.1)
    beats.start()
    (held,) = held_jobs(world, beats)
    if call == "replace":
        world.clock.move(1)
    assert broken.raised.wait(WAIT)
    assert broken.recovered.wait(WAIT), "the thread that beats has ended"
    beats.let_go(held)
    beats.stop()
    assert type(error).__name__ in world.log._stream.getvalue()  # type: ignore[union-attr]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_beat_thread_that_died_all_the_same_is_noticed_and_started_again(world: World):
    broken = Once(SystemExit(), lambda _: None)
    beats = make_beats(world, Table(world, wait=broken), beat_seconds=0.1)
    beats.start()
    (held,) = held_jobs(world, beats)
    assert broken.raised.wait(WAIT)
    thread = beats._thread
    assert thread is not None
    thread.join(WAIT)
    beats.revive()
    assert broken.recovered.wait(WAIT)
    beats.let_go(held)
    beats.stop()
    assert "beats_revived" in world.log._stream.getvalue()  # type: ignore[union-attr]


def test_the_fleet_revives_beats_that_died(world: World):
    runner = world.runner()
    seen: list[str] = []
    runner.beats.revive = lambda: seen.append("asked")  # type: ignore[method-assign]
    world.intake.changed(world.drop())
    runner.fleet.run(drain=lambda: not world.queue.stats().ready)
    assert seen


def test_a_renewal_that_hangs_keeps_no_other_lease_waiting(world: World):
    hanging, let_on, renewed = threading.Event(), threading.Event(), threading.Event()
    stuck: list[str] = []
    write = world.table.replace

    def slow(old: Job, new: Job) -> Job | None:
        if not stuck:
            stuck.append(old.job_id)
            hanging.set()
            assert let_on.wait(WAIT)
        done = write(old, new)
        if old.job_id not in stuck:
            renewed.set()
        return done

    beats = make_beats(world, Table(world, replace=slow, wait=lambda _: None))
    both = held_jobs(world, beats, 2)
    before = {held.job.job_id: expires(world, held) for held in both}
    world.clock.move(11)
    beats.start()
    assert hanging.wait(WAIT)
    assert renewed.wait(WAIT), "a slow call holds up the renewal of another job"
    third = threading.Thread(target=lambda: beats.kill_all(Verdict.RELEASED))
    third.start()
    third.join(WAIT)
    assert not third.is_alive(), "the lock is held during a call"
    (other,) = [held for held in both if held.job.job_id not in stuck]
    assert expires(world, other) > before[other.job.job_id]
    let_on.set()
    for held in both:
        beats.let_go(held)
    beats.stop()


def test_a_lease_that_was_not_renewed_in_time_ends_its_box_before_the_lease_ends(world: World):
    def down(*_: Any) -> Any:
        raise StoreUnavailable("down")

    beats = make_beats(world, Table(world, replace=down, get=down))
    (held,) = held_jobs(world, beats)
    for _ in range(5):
        world.clock.move(5)
        beats.round()
    assert held.lost(world.clock) is None
    world.clock.move(4)
    beats.round()
    assert world.clock.now() < expires(world, held)
    assert held.lost(world.clock) is Verdict.LEASE_LOST
    assert held.missed, "the table did not answer: that is not the job's doing"


def test_a_wall_clock_that_is_put_back_prolongs_no_lease(world: World):
    beats = make_beats(world)
    (held,) = held_jobs(world, beats)
    steady = world.clock.steady()
    world.clock.move(-3600)
    world.clock.steady = lambda: steady + 31  # type: ignore[method-assign]
    assert held.lost(world.clock) is Verdict.LEASE_LOST


def test_a_beat_under_way_is_waited_for_and_hides_nothing_afterwards(world: World):
    """Else a late beat would undo the delay before the next try."""
    hanging, let_on, gone = threading.Event(), threading.Event(), threading.Event()
    write = world.table.replace

    def slow(old: Job, new: Job) -> Job | None:
        hanging.set()
        assert let_on.wait(WAIT)
        return write(old, new)

    beats = make_beats(world, Table(world, replace=slow, wait=lambda _: None))
    (held,) = held_jobs(world, beats)
    hidden: list[float] = []
    world.queue.hide = lambda _receipt, seconds: hidden.append(seconds) or True  # type: ignore[func-returns-value, method-assign, assignment]
    world.clock.move(11)
    beats.start()
    assert hanging.wait(WAIT)
    slot = threading.Thread(target=lambda: (beats.let_go(held), gone.set()))
    slot.start()
    let_on.set()
    assert gone.wait(WAIT)
    slot.join()
    assert hidden == []
    beats.stop()
    job = world.table.get(held.job.job_id)
    assert job is not None
    assert job.state is State.RUNNING


@pytest.fixture(params=["embedded", pytest.param("cloud", marks=pytest.mark.slow)])
def placed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, PLACES[request.param])
    yield made
    made.close()


@pytest.mark.parametrize("lease", [12.0, 30.0, 300.0])
def test_both_calls_of_a_beat_end_within_a_third_of_the_lease(lease: float):
    """A try that hangs is given up and repeated; a server that is silent does not use up the lease."""
    seconds = lease / 6
    caller, limits = Caller("x").within(seconds), timeouts(seconds)
    a_try = limits["connect_timeout"] + limits["read_timeout"]
    assert 2 * (caller._policy.deadline + caller._policy.longest_wait + a_try) <= lease / 3 + 1e-9
    assert caller._policy.deadline >= a_try, "there is time for a second try"


def test_the_clients_of_the_beats_have_short_timeouts_and_know_the_receipts(placed: World):
    placed.intake.changed(placed.drop())
    (delivery,) = placed.queue.receive(most=1, wait=0, visibility=35)
    if not isinstance(placed.queue, SqsWorkQueue):
        settings = replace(placed.settings, lease_seconds=12.0)
        with open_stack(settings, placed.clock) as stack:
            table, queue = stack.for_leases()
            assert table._db.read().execute("PRAGMA busy_timeout").fetchone()[0] == 2000  # type: ignore[attr-defined]
            assert queue.hide(delivery.receipt, 60.0)
        return
    assert isinstance(placed.table, DynamoJobTable)
    with closing(placed.queue.within(3.0)) as hasty, closing(placed.table.within(3.0)) as table:
        for client in (hasty._sqs, table._db, table._reads._db):
            assert (client.meta.config.connect_timeout, client.meta.config.read_timeout) == (0.5, 0.75)
        assert hasty.hide(delivery.receipt, 60.0)
        assert table.get(delivery.message.job_id) == placed.table.get(delivery.message.job_id)


def test_a_full_disk_is_reported_as_what_it_is_and_leaves_no_transaction_open(tmp_path: Path):
    with closing(Database(tmp_path / "x.sqlite")) as database:
        db = database.read()
        db.execute(f"PRAGMA max_page_count = {db.execute('PRAGMA page_count').fetchone()[0]}")
        much = [(f"{n:0100}",) for n in range(10_000)]
        with pytest.raises(StoreUnavailable, match="full"), database.write() as writing:
            writing.executemany("INSERT INTO generations (name, n) VALUES (?, 1)", much)
        db.execute("PRAGMA max_page_count = 1000000")
        with database.write() as writing:
            writing.execute("INSERT INTO generations (name, n) VALUES ('a', 1)")
