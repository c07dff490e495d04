"""The janitor under a backlog: what cannot be done steps back, and what somebody waits for comes first."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from console.cli.service import log_chores
from core.jobs import Job, Lease, State
from core.ports import Message, Pause
from runner.janitor import ALIVE
from tests.contract.jobs import a_job
from tests.support.places import PLACES
from tests.support.world import World


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path / "data")
    yield made
    made.close()


def add(world: World, name: str, **more) -> Job:
    job, _ = world.table.add(a_job(name, created_at=world.clock.now(), updated_at=world.clock.now(), **more))
    return job


def undoable(world: World, n: int) -> Counter[str]:
    """Publications that the store refuses for good; how often each was tried."""
    tried: Counter[str] = Counter()
    for number in range(n):
        add(world, f"u{number}", tenant="bad", state=State.PUBLISHING)
    head = world.store.head

    def refusing(key):
        if "/bad/" in key:
            tried[key] += 1
            raise PermissionError(key)
        return head(key)

    world.store.head = refusing
    return tried


def lost(world: World, name: str = "lost") -> Job:
    return add(world, name, state=State.RUNNING, fence=1, lease=Lease(owner="gone", expires=world.clock.now() + 30))


def ended(world: World, n: int) -> list[Job]:
    return [add(world, f"e{number}", state=State.SUCCEEDED, ended_at=world.clock.now()) for number in range(n)]


def state(world: World, job: Job) -> State:
    found = world.table.get(job.job_id)
    assert found is not None
    return found.state


def entries(runner) -> dict[str, Callable[[], None]]:
    """What the scheduler runs, each in a thread of its own."""
    return {job.name: job.func for job in runner.janitor.scheduler().get_jobs()}


def test_chores_that_cannot_be_done_do_not_stand_before_a_rescue(world):
    undoable(world, 450)
    world.clock.move(1)
    job = lost(world)
    world.clock.move(31)
    world.runner().janitor.chores()
    assert state(world, job) is State.QUEUED


def test_a_chore_that_cannot_be_done_steps_back_further_each_time_whoever_leads(world):
    tried = undoable(world, 1)
    world.clock.move(31)
    for _ in range(6):
        leader = world.runner()
        for _ in range(300):
            leader.janitor.chores()
            world.clock.move(2)
    times = max(tried.values())
    assert 10 <= times <= 25, "an hour, five minutes apart in the end"


def test_a_chore_that_stepped_back_is_done_once_it_can_be(world):
    undoable(world, 3)
    world.clock.move(31)
    runner = world.runner()
    runner.janitor.chores()
    del world.store.head
    runner.janitor.chores()
    assert world.table.counts() == {State.PUBLISHING: 3}
    world.clock.move(300)
    runner.janitor.chores()
    assert State.PUBLISHING not in world.table.counts()


def slow(world: World) -> None:
    """Time passes with each chore: a tenth of a second for every object that is looked at, or message sent."""
    head, send = world.store.head, world.queue.send

    def slow_head(key):
        world.clock.move(0.1)
        return head(key)

    def slow_send(message, **more):
        world.clock.move(0.1)
        send(message, **more)

    world.store.head, world.queue.send = slow_head, slow_send


def test_a_rescue_does_not_wait_for_what_expires(world):
    expiring = ended(world, 300)
    world.clock.move(48 * 3600 - 20)
    job = lost(world)
    world.clock.move(31)
    slow(world)
    runner = world.runner()
    before = world.clock.now()
    runner.janitor.urgent(2.0)
    assert state(world, job) is State.QUEUED
    assert world.clock.now() - before < 2
    runner.janitor.tidy(2.0)
    assert world.clock.now() - before < 6, "a round is bounded, however much is due"
    counts = Counter(state(world, job) for job in expiring)
    assert counts[State.EXPIRED]
    assert counts[State.SUCCEEDED] > 200


def test_a_rescue_does_not_wait_for_all_that_starts_at_midnight(world):
    midnight = world.clock.now() + 100
    for n in range(600):
        add(world, f"s{n}", state=State.SCHEDULED, due_at=midnight)
    world.clock.move(71)
    job = lost(world)
    world.clock.move(31)
    slow(world)
    world.runner().janitor.urgent(2.0)
    assert state(world, job) is State.QUEUED
    assert world.table.counts()[State.SCHEDULED] > 500


def test_a_sweep_does_not_hold_the_chores_up(world):
    runner = world.runner()
    going_on, end = threading.Event(), threading.Event()
    runner.janitor.scan_inbox = lambda: (going_on.set(), end.wait(30))
    job = lost(world)
    world.clock.move(31)
    sweeping = threading.Thread(target=entries(runner)["sweep"])
    sweeping.start()
    assert going_on.wait(30)
    chores = threading.Thread(target=entries(runner)["urgent"])
    chores.start()
    chores.join(20)
    rescued = state(world, job)
    end.set()
    sweeping.join()
    chores.join()
    assert rescued is State.QUEUED


def test_every_entry_of_the_scheduler_is_led(world):
    """Of two janitors one works, whichever entry comes first."""
    one, two = world.runner(), world.runner()
    for name in entries(one):
        entries(one)[name]()
    job = lost(world)
    world.clock.move(29)
    for name in entries(one):
        entries(one)[name]()
    world.clock.move(2)
    for name in entries(two):
        entries(two)[name]()
    assert state(world, job) is State.RUNNING
    entries(one)["urgent"]()
    assert state(world, job) is State.QUEUED


def test_only_the_urgent_round_shows_that_a_janitor_lives(world):
    """A round that hangs is noticed, whatever else still succeeds beside it."""
    runner = world.runner()
    pulses: list[str] = []
    runner.janitor.pulse = lambda: pulses.append("pulse")
    others = entries(runner)
    urgent = others.pop("urgent")
    for entry in others.values():
        entry()
    assert not pulses
    assert ALIVE not in world.log._stream.getvalue()
    urgent()
    assert pulses == ["pulse"]
    assert ALIVE in world.log._stream.getvalue()


def test_a_runner_that_starts_does_not_wait_for_what_expires(world):
    expiring = ended(world, 20)
    world.clock.move(49 * 3600)
    log_chores(world.log, world.runner())
    assert {state(world, job) for job in expiring} == {State.SUCCEEDED}


def test_a_dead_owner_is_buried_though_one_of_its_jobs_cannot_be_rescued(world):
    runner, dead = world.runner(), world.runner()
    jobs = [lost(world, name) for name in ("a", "b")]
    for job in jobs:
        world.table.replace(job, replace(job, lease=replace(job.lease, owner=dead.presence.owner)))
    dead.presence._lock.close()  # what the kernel does
    write = world.table.replace

    def broken(old, new):
        if old.job_id == jobs[1].job_id:
            raise ValueError("something nobody thought of")
        return write(old, new)

    world.table.replace = broken
    runner.janitor.chores()
    assert [state(world, job) for job in jobs] == [State.QUEUED, State.RUNNING]
    world.table.replace = write
    runner.janitor.chores()
    assert [state(world, job) for job in jobs] == [State.QUEUED, State.QUEUED]


@contextmanager
def sent(world: World) -> Iterator[Counter[str]]:
    """How often a message of each job was sent."""
    found: Counter[str] = Counter()
    send, send_all = world.queue.send, world.queue.send_all

    def counted(message, **more):
        found[message.job_id] += 1
        send(message, **more)

    def all_counted(messages):
        world.queue.send = send  # which an adapter may use for one of them
        found.update(message.job_id for message, _ in messages)
        send_all(messages)
        world.queue.send = counted

    world.queue.send, world.queue.send_all = counted, all_counted
    yield found
    world.queue.send, world.queue.send_all = send, send_all


class TestLostMessages:
    @pytest.fixture(params=["embedded", "cloud"])
    def world(self, tmp_path, request):
        made = World(tmp_path / "data", PLACES[request.param])
        yield made
        made.close()

    @pytest.fixture
    def queued(self, world) -> list[Job]:
        for n in range(12):
            world.intake.changed(world.drop(tenant=f"t{n}"))
        return world.jobs()

    def wait(self, world, janitor, minutes: int) -> None:
        for _ in range(minutes // 5):
            world.clock.move(300)
            janitor.chores()

    def test_a_message_that_is_there_is_not_sent_again(self, world, queued):
        janitor = world.runner().janitor
        with sent(world) as found:
            self.wait(world, janitor, 75)
        assert not found

    def test_a_message_that_is_lost_is_sent_again(self, world, queued):
        janitor = world.runner().janitor
        (delivery,) = world.queue.receive(most=1, wait=0, visibility=30)
        world.queue.ack(delivery.receipt)
        with sent(world) as found:
            self.wait(world, janitor, 20)
        assert sum(found.values()) == 1
        with sent(world) as found:
            self.wait(world, janitor, 40)
        assert not found

    def test_every_job_is_worked_on_though_the_queue_was_emptied(self, world, queued):
        runner = world.runner()
        while got := world.queue.receive(most=10, wait=0, visibility=30):
            for delivery in got:
                world.queue.ack(delivery.receipt)
        with sent(world) as found:
            self.wait(world, runner.janitor, 20)
        assert found == Counter(job.job_id for job in queued)
        while world.handle_one(runner):
            pass
        assert world.table.counts() == {State.SUCCEEDED: len(queued)}

    def test_spare_messages_hide_a_lost_one_for_hours_only(self, world, queued):
        """Of a paused tenant there may be spare ones; a queue that only counts takes them for what is lost."""
        runner = world.runner()
        world.table.pause(Pause(tenant="t0", workflow=None, since=world.clock.now(), by="test"))
        kept = next(job for job in queued if job.tenant == "t0")
        while got := world.queue.receive(most=10, wait=0, visibility=30):
            for delivery in got:
                world.queue.ack(delivery.receipt)
        for _ in range(20):
            world.queue.send(Message(job_id=kept.job_id, tenant="t0"))
        with sent(world) as found:
            for _ in range(15):
                world.clock.move(3600)
                runner.janitor.chores()
        assert set(found) >= {job.job_id for job in queued} - {kept.job_id}
        assert max(found.values()) <= 3, "where it is known to be lost, and after 6 and 12 hours"


class TestPurgedQueue:
    """Table and queue are one database, and somebody deletes messages from it: one query finds whose."""

    @pytest.fixture(params=["embedded", "postgres"])
    def world(self, tmp_path, request):
        made = World(tmp_path / "data", PLACES[request.param])
        yield made
        made.close()

    def purge(self, world: World) -> None:
        while got := world.queue.receive(most=10, wait=0, visibility=30):
            for delivery in got:
                world.queue.ack(delivery.receipt)

    def test_the_next_look_sends_again_what_is_missing_and_nothing_else(self, world):
        for n in range(8):
            world.intake.changed(world.drop(tenant=f"t{n}"))
        self.purge(world)
        purged = Counter(job.job_id for job in world.jobs())
        for n in range(8, 12):
            world.intake.changed(world.drop(tenant=f"t{n}"))
        runner = world.runner()
        with sent(world) as found:
            entries(runner)["replenish"]()
            assert found == purged
            entries(runner)["replenish"]()
        assert found == purged
        while world.handle_one(runner):
            pass
        assert world.table.counts() == {State.SUCCEEDED: 12}

    def test_a_job_that_waits_for_its_retry_keeps_its_delay(self, world):
        world.intake.changed(world.drop())
        (job,) = world.jobs()
        world.table.replace(job, replace(job, due_at=world.clock.now() + 60))
        self.purge(world)
        entries(world.runner())["replenish"]()
        assert world.queue.stats().delayed == 1

    def test_more_than_one_batch_is_sent_again_in_one_round(self, world, monkeypatch):
        for table in ("infra.postgres.pg_table", "infra.local.sqlite_table"):
            monkeypatch.setattr(f"{table}._MOST_CHECKED", 3)
        for n in range(8):
            world.intake.changed(world.drop(tenant=f"t{n}"))
        self.purge(world)
        entries(world.runner())["replenish"]()
        assert world.queue.stats().ready == 8
