"""Faults of the surroundings: they use up no attempt, bury nobody and end no work, whenever they begin."""

import errno
import os
import shutil
import sqlite3
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.errors import CallRefused, ObjectRefused, SandboxUnavailable, StoreFull, StoreUnavailable
from core.jobs import State
from core.verdicts import Verdict
from runner.assembly import Runner
from runner.boxes import BoxReport
from tests.support.effort import QUICK
from tests.support.places import PLACES
from tests.support.world import World

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
PARTS = ("store", "table", "queue")
JOBS = 2
# Not the same steps for all parts and errors; 1: every step.
STRIDE = int(os.environ.get("ADE_TEST_OUTAGE_STRIDE", "15" if QUICK else "5"))


def unavailable() -> Exception:
    return StoreUnavailable("s3://b did not answer; is it up?")


def full() -> Exception:
    return OSError(errno.ENOSPC, "No space left on device")


def raw() -> Exception:
    return sqlite3.OperationalError("database or disk is full")


class Outage:
    """Refuses every call of some parts until its time is over."""

    def __init__(self, world: World, parts: tuple[str, ...], error: Callable[[], Exception]) -> None:
        self._clock = world.clock
        self._error = error
        self._until = 0.0
        self.letters: Counter[str] = Counter()
        for part in PARTS:
            fragile = getattr(world.fragile, part)
            fragile._port = _Refusing(fragile._port, self, part in parts)

    def begin(self, seconds: float) -> None:
        self._until = self._clock.now() + seconds

    @property
    def on(self) -> bool:
        return self._clock.now() < self._until

    def check(self) -> None:
        if self.on:
            raise self._error()


class _Refusing:
    def __init__(self, port: Any, outage: Outage, hit: bool) -> None:
        self._port = port
        self._outage = outage
        self._hit = hit

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not callable(found) or name == "wake":
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            if self._hit:
                self._outage.check()
            done = found(*args, **kwargs)
            if name == "bury":
                self._outage.letters[args[0].job_id] += 1
            return done

        return call


@pytest.fixture
def fresh() -> Iterator[Callable[..., World]]:
    """Makes worlds, one after the other, in memory where that can be had."""
    made: list[World] = []
    folders: list[Path] = []

    def make(**settings: Any) -> World:
        close()
        folders.append(Path(tempfile.mkdtemp(dir=MEMORY)))
        made.append(World(folders[-1], **settings))
        return made[-1]

    def close() -> None:
        while made:
            made.pop().close()
            shutil.rmtree(folders.pop())

    yield make
    close()


def dropped(world: World, jobs: int = JOBS) -> None:
    for n in range(jobs):
        world.intake.changed(world.drop(tenant=f"t{n}", body=f"id\n{n}\n".encode()))


def turn(world: World, runner: Runner) -> None:
    """What a fleet of one slot and a janitor do in a second."""
    around = runner.worker.surroundings
    if around.failed is None or (around.rest() == 0 and around.probe()):
        try:
            runner.worker.write_results()
            got = world.fragile.queue.receive(most=1, wait=0, visibility=runner.beats.visibility)
        except (StoreUnavailable, OSError, sqlite3.Error):
            around.to_blame()
            got = ()
        for delivery in got:
            runner.worker.serve(delivery)
    runner.janitor._led(runner.janitor.chores)
    world.clock.move(1)


def worked_off(world: World, runner: Runner, outage: Outage | None = None, turns: int = 700) -> None:
    for _ in range(turns):
        turn(world, runner)
        if (outage is None or not outage.on) and all(job.ended and not job.unpublished for job in world.jobs()):
            return
    raise AssertionError(f"not done: {[(j.state, j.reason) for j in world.jobs()]}\n{said(world)[-3000:]}")


def said(world: World) -> str:
    return str(world.log._stream.getvalue())  # type: ignore[union-attr]


@pytest.mark.parametrize("seconds", [20, 200])
@pytest.mark.parametrize("error", [unavailable, full, raw])
@pytest.mark.parametrize("parts", [("store",), ("table",), ("queue",), PARTS], ids="+".join)
def test_an_outage_that_begins_at_any_step_costs_nothing(fresh, parts, error, seconds):
    """One attempt is all that a job has here, so that an attempt that counts would end it."""
    first = zlib.crc32(f"{parts} {error.__name__} {seconds}".encode()) % STRIDE
    for step in range(first, 60, STRIDE):
        world = fresh(max_attempts=1)
        outage = Outage(world, parts, error)
        dropped(world)
        world.crasher.arm(step, meanwhile=lambda: outage.begin(seconds))  # noqa: B023 - called in this round
        runner = world.runner()
        worked_off(world, runner, outage)
        struck = world.crasher.left is None
        at = f"outage of {parts} at step {step}"
        assert {str(job.state) for job in world.jobs()} == {"SUCCEEDED"}, f"{at}: {said(world)[-2000:]}"
        assert len(world.jobs()) == JOBS
        assert not outage.letters, f"{at}: {outage.letters}"
        assert world.queue.dead() == ()
        if not struck:
            assert step > 10, "the path has no steps: this test tests nothing"
            return


@pytest.mark.parametrize("seconds", [10, 40, 200])
@pytest.mark.parametrize("parts", [("store",), ("table",), ("queue",), PARTS], ids="+".join)
def test_an_outage_while_the_box_runs_uses_up_no_attempt(fresh, parts, seconds):
    world = fresh(max_attempts=2)
    outage = Outage(world, parts, unavailable)
    dropped(world)
    runner = world.runner()

    def during() -> None:
        outage.begin(seconds)
        for _ in range(50):
            world.clock.move(1)
            runner.beats.round()

    world.sandbox.during = during
    worked_off(world, runner, outage)
    assert [(str(job.state), job.attempt) for job in world.jobs()] == [("SUCCEEDED", 1)] * JOBS
    assert not outage.letters


def test_a_result_that_could_not_be_written_is_written_when_the_table_is_back(fresh):
    world = fresh()
    outage = Outage(world, ("table",), unavailable)
    dropped(world, 1)
    world.sandbox.during = lambda: outage.begin(20)
    runner = world.runner()
    worked_off(world, runner, outage)
    (job,) = world.jobs()
    assert (job.state, job.attempts_total) == (State.SUCCEEDED, 1)


def test_a_start_whose_answer_was_lost_uses_up_no_attempt(fresh):
    world = fresh(max_attempts=1)
    dropped(world, 1)
    admit = world.table.admit

    def losing(*args: Any) -> Any:
        world.table.admit = admit
        admit(*args)
        raise StoreUnavailable("the answer was lost")

    world.table.admit = losing
    worked_off(world, world.runner())
    (job,) = world.jobs()
    assert (job.state, job.attempt, job.attempts_total) == (State.SUCCEEDED, 1, 2)


def test_a_job_that_others_took_for_lost_gets_its_attempt_back(fresh):
    world = fresh(max_attempts=2)
    outage = Outage(world, ("table",), unavailable)
    dropped(world, 1)
    world.sandbox.during = lambda: outage.begin(60)
    runner, other = world.runner(), world.runner()
    (delivery,) = world.queue.receive(most=1, wait=0, visibility=35)
    runner.worker.serve(delivery)
    world.clock.move(61)
    other.janitor.chores()
    assert [job.attempt for job in world.jobs()] == [1]
    runner.worker.write_results()
    assert [job.attempt for job in world.jobs()] == [0]
    worked_off(world, other)
    (job,) = world.jobs()
    assert (job.state, job.attempt, job.attempts_total) == (State.SUCCEEDED, 1, 2)


def test_a_backlog_waits_while_no_box_can_start(fresh):
    world = fresh(max_attempts=1)
    outage = Outage(world, (), unavailable)
    dropped(world, 6)
    run = world.sandbox.run

    def refusing(*args: Any, **kwargs: Any) -> Any:
        if outage.on:
            raise SandboxUnavailable("no box can be had")
        return run(*args, **kwargs)

    world.sandbox.run = refusing
    outage.begin(60)
    worked_off(world, world.runner(), outage)
    assert [str(job.state) for job in world.jobs()] == ["SUCCEEDED"] * 6
    assert max(job.attempts_total for job in world.jobs()) <= 2
    assert said(world).count("surroundings_recovered") == 1
    assert not outage.letters


@pytest.mark.parametrize("refusal", [ObjectRefused, CallRefused, StoreUnavailable])
def test_a_job_whose_object_the_store_refuses_for_ever_ends_alone_with_one_letter(fresh, refusal):
    world = fresh()
    outage = Outage(world, (), unavailable)
    dropped(world, 3)
    fetch = world.store.fetch

    def refusing(key: str, *args: Any, **kwargs: Any) -> Any:
        if key.startswith("inbox/t1/"):
            raise refusal(f"{key}: AccessDenied (403)")
        return fetch(key, *args, **kwargs)

    world.store.fetch = refusing
    worked_off(world, world.runner())
    states = {job.tenant: (str(job.state), job.attempt) for job in world.jobs()}
    assert states == {"t0": ("SUCCEEDED", 1), "t1": ("FAILED", 3), "t2": ("SUCCEEDED", 1)}
    assert list(outage.letters.values()) == [1]
    assert "surroundings_failed" not in said(world), "one job's trouble keeps others waiting"


def test_a_job_that_cannot_be_published_for_ever_reaches_people_once_and_stops_nobody(fresh):
    world = fresh()
    outage = Outage(world, (), unavailable)
    dropped(world, 3)
    put_new = world.store.put_new

    def refusing(bodies: dict[str, bytes]) -> Any:
        if any(key.startswith("outputs/t1/") for key in bodies):
            raise CallRefused("outputs/t1/: AccessDenied (403)")
        return put_new(bodies)

    world.store.put_new = refusing
    runner = world.runner()
    for _ in range(700):
        turn(world, runner)
    assert {job.tenant: str(job.state) for job in world.jobs()} == {
        "t0": "SUCCEEDED",
        "t1": "PUBLISHING",
        "t2": "SUCCEEDED",
    }
    assert list(outage.letters.values()) == [1]
    world.store.put_new = put_new
    worked_off(world, runner)
    assert {str(job.state) for job in world.jobs()} == {"SUCCEEDED"}


@pytest.mark.parametrize("step", ["put", "put_new"])
def test_a_bucket_over_its_quota_costs_nothing_though_a_probe_still_fits(fresh, step):
    world = fresh(max_attempts=1)
    outage = Outage(world, (), unavailable)
    dropped(world, 1)
    write, left = getattr(world.store, step), [20]

    def refusing(*args: Any, **kwargs: Any) -> Any:
        if left[0] and not str(args[0]).endswith("/probe"):
            left[0] -= 1
            raise StoreFull("s3://b refused put: QuotaExceeded (403)")
        return write(*args, **kwargs)

    setattr(world.store, step, refusing)
    worked_off(world, world.runner(), turns=3000)
    (job,) = world.jobs()
    assert (str(job.state), job.attempt) == ("SUCCEEDED", 1)
    assert left == [0]
    assert not outage.letters


@pytest.mark.parametrize(("kills", "state"), [(8, "SUCCEEDED"), (100, "FAILED")])
def test_a_box_that_the_host_killed_is_built_again_many_times_but_not_for_ever(fresh, kills, state):
    world = fresh(max_attempts=1)
    dropped(world, 1)
    run, left = world.sandbox.run, [kills]

    def killed(order: Any, **more: Any) -> Any:
        if left[0] and order.tenant != "_probe":
            left[0] -= 1
            return BoxReport(verdict=Verdict.BOX_FAILED, message="killed by the kernel", by_host=True)
        return run(order, **more)

    world.sandbox.run = killed
    worked_off(world, world.runner(), turns=10_000)
    (job,) = world.jobs()
    assert str(job.state) == state


def test_a_failed_job_whose_result_cannot_be_written_yet_has_one_letter_in_the_end(fresh):
    world = fresh(max_attempts=1)
    outage = Outage(world, ("store",), unavailable)
    dropped(world, 6)
    runner = world.runner()
    put = world.store.put

    def begin_at_results(key: str, *args: Any, **kwargs: Any) -> Any:
        if key.endswith("/result.json") and not outage.letters and not begun:
            begun.append(key)
            outage.begin(20)
            outage.check()
        return put(key, *args, **kwargs)

    begun: list[str] = []
    world.store.put = begin_at_results
    for _ in range(60):
        world.sandbox.verdict = Verdict.BOX_FAILED
        turn(world, runner)
    worked_off(world, runner, outage)
    assert begun
    assert {str(job.state) for job in world.jobs()} == {"FAILED"}
    assert sorted(outage.letters.values()) == [1] * 6


@pytest.mark.parametrize("place", ["embedded", "cloud"])
@pytest.mark.parametrize("parts", [("store",), ("table",)], ids="+".join)
def test_an_outage_of_many_rounds_makes_no_message_a_dead_one(tmp_path, place, parts):
    """The queue of a deployment calls a message dead after 50 receives, whatever they were for."""
    world = World(tmp_path, PLACES[place])
    outage = Outage(world, parts, unavailable)
    dropped(world, 1)
    runner = world.runner()
    outage.begin(1000)
    for _ in range(60):
        for delivery in world.queue.receive(most=1, wait=0, visibility=35):
            runner.worker.serve(delivery)
        world.clock.move(5)
    assert world.queue.dead() == ()
    assert world.queue.stats().dead == 0
    world.clock.move(1000)
    worked_off(world, runner)
    (job,) = world.jobs()
    assert (job.state, job.attempt) == (State.SUCCEEDED, 1)
    world.close()


def test_refusals_at_a_cap_and_a_hiccup_bury_nobody(fresh):
    world = fresh(tenant_concurrency=1)
    dropped(world, 1)
    world.intake.changed(world.drop(tenant="t0", name="b.csv", body=b"id\n7\n"))
    runner, seen = world.runner(), []

    def during() -> None:
        for _ in range(60):
            world.clock.move(2)
            runner.beats.round()
            for delivery in world.queue.receive(most=1, wait=0, visibility=35):
                seen.append(runner.worker.serve(delivery))

    world.sandbox.during = during
    world.handle_one(runner)
    assert len([refused for refused in seen if refused is not None]) > 20
    world.clock.move(5)
    (delivery,) = world.queue.receive(most=1, wait=0, visibility=35)
    get, world.table.get = world.table.get, None
    runner.worker.serve(delivery)
    world.table.get = get
    assert "job_not_handled" in said(world)
    assert world.queue.dead() == ()
    worked_off(world, runner)
    assert {str(job.state) for job in world.jobs()} == {"SUCCEEDED"}


def test_a_message_that_breaks_its_handler_every_time_goes_to_people(fresh):
    world = fresh()
    outage = Outage(world, (), unavailable)
    dropped(world, 2)
    runner = world.runner()
    get = world.table.get

    def broken(job_id: str) -> Any:
        if job_id.startswith("t0"):
            raise KeyError("something nobody thought of")
        return get(job_id)

    world.table.get = broken
    for _ in range(400):
        turn(world, runner)
    world.table.get = get
    assert {job.tenant: str(job.state) for job in world.jobs()} == {"t0": "QUEUED", "t1": "SUCCEEDED"}
    assert list(outage.letters.values()) == [1]
