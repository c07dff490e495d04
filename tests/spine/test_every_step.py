"""Death and company at every single external step of a drop's path, one after the other, none left out.

On the embedded adapters every step is tried each time. On PostgreSQL and over S3, SQS and DynamoDB a step costs a hundred times as
much, so each test tries every ADE_TEST_CLOUD_STRIDE-th of them, not the same ones in all tests; 1 tries them all.
"""

import hashlib
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from core.jobs import State
from core.keys import job_folder
from core.verdicts import Verdict
from tests.support.effort import FULL
from tests.support.places import PLACES
from tests.support.world import Crash, World

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
STEPS = 60  # more than any of the paths below has
STRIDE = int(os.environ.get("ADE_TEST_CLOUD_STRIDE", "10"))


class Worlds:
    """Makes worlds in one place; thousands of syncs are not the point here, so they stand in memory if they can."""

    def __init__(self, place: str, test: str) -> None:
        self.place = place
        self.first = zlib.crc32(test.encode()) % STRIDE
        self.world: World | None = None
        self.folder = Path(tempfile.mkdtemp(dir=MEMORY))

    def steps(self) -> Iterator[int]:
        """The steps to strike at, one after the other; the test stops when its path has no more."""
        yield from range(STEPS) if self.place == "embedded" else range(self.first, STEPS, STRIDE)
        raise AssertionError(f"the path has more than {STEPS} steps")

    def __call__(self, **settings) -> World:
        self.close()
        self.folder.mkdir()
        self.world = World(self.folder, PLACES[self.place], **settings)
        return self.world

    def close(self) -> None:
        if self.world is not None:
            self.world.close()
        shutil.rmtree(self.folder)
        self.world = None


@pytest.fixture(params=["embedded", "postgres", "cloud"])
def fresh(request):
    made = Worlds(request.param, request.node.name)
    yield made
    made.close()


def intake(world):
    world.intake.changed(world.drop())


def run(world):
    world.handle_one(world.runner())


def commit_and_die(world):
    """A runner that dies right after its commit leaves the whole publication to the janitor."""
    replace = world.table.replace

    def dying(old, new):
        if (done := replace(old, new)) is not None and done.state is State.PUBLISHING:
            raise Crash
        return done

    world.table.replace = dying
    with suppress(Crash):
        run(world)
    world.table.replace = replace
    assert [job.state for job in world.jobs()] == [State.PUBLISHING]


def expire(world):
    world.clock.move(49 * 3600)
    world.runner().janitor.chores()


def tidy(world):
    world.clock.move(31)
    world.runner().janitor.chores()
    world.runner().janitor.collect()


def published(world):
    """Bodies of result.json that said SUCCEEDED, as they were written."""
    bodies, put = [], world.store.put

    def watched(key, body, **conditions):
        info = put(key, body, **conditions)
        if key.endswith("/result.json") and json.loads(body)["status"] == "SUCCEEDED":
            bodies.append(body)
        return info

    world.store.put = watched
    return bodies


def come_to_rest(world):
    world.crasher.arm(None)
    world.intake = world.new_intake()
    world.sweep()
    world.clock.move(31)
    world.work_off(world.runner())
    world.runner().janitor.collect()


def check(world, bodies, at):
    (job,) = world.jobs()
    told = world.result(job)
    assert told is not None, f"{at}: {job.state} without result.json"
    assert told["status"] == job.state, f"{at}: {job.state}, result.json says {told['status']}"
    assert told["attempts"] == job.attempts_total, f"{at}: an earlier attempt overwrote the result of a later one"
    assert len(bodies) <= 1, f"{at}: published {len(bodies)} times"
    assert not list(world.store.keys("work/")), f"{at}: staged files left"
    assert not list(world.settings.storage_data_dir.glob("tmp/*")), f"{at}: temporary files left"
    for file in told["files"]:
        body = world.store.read(job_folder(job) + file["name"], limit=1 << 20)
        assert hashlib.sha256(body).hexdigest() == file["sha256"], f"{at}: {file['name']} differs from its hash"
    return job


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("dies", [intake, run])
def test_a_death_at_any_step_loses_nothing_and_publishes_once(fresh, dies, after):
    for step in fresh.steps():
        world = fresh()
        bodies = published(world)
        if dies is run:
            intake(world)
        struck = dies_at(world, step, dies, after=after)
        job = check(world, bodies, f"{dies.__name__} died {'after' if after else 'before'} step {step}")
        assert job.state is State.SUCCEEDED
        if not struck:
            assert step > 3, "the path has no steps: this test tests nothing"
            return


def dies_at(world, step, act, *, after) -> bool:
    """Whether the act came to that step, and died there; the others then do the rest."""
    world.crasher.arm(step, after=after)
    with suppress(Crash):
        act(world)
    struck = world.crasher.left is None
    come_to_rest(world)
    return struck


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_job_that_failed_through_our_fault_reaches_people_whatever_dies(fresh, after):
    for step in fresh.steps():
        world = fresh(max_attempts=1)
        intake(world)
        world.sandbox.verdict = Verdict.BOX_FAILED
        struck = dies_at(world, step, run, after=after)
        job = check(world, [], f"run died {'after' if after else 'before'} step {step}")
        buried = [letter.message.job_id for letter in world.queue.dead()]
        assert buried == ([job.job_id] if job.state is State.FAILED else []), f"step {step}: {job.state}, {buried}"
        if not struck:
            return


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_death_at_any_step_of_expiry_ends_expired(fresh, after):
    for step in fresh.steps():
        world = fresh()
        intake(world)
        world.work_off(world.runner())
        struck = dies_at(world, step, expire, after=after)
        job = check(world, [], f"expiry died {'after' if after else 'before'} step {step}")
        assert job.state is State.EXPIRED
        if not struck:
            return


@pytest.mark.parametrize("company", [run, tidy, intake, expire])
@pytest.mark.parametrize("actor", [run, tidy])
def test_company_at_any_step_changes_nothing(fresh, actor, company):
    for step in fresh.steps():
        world = fresh()
        bodies = published(world)
        intake(world)
        if actor is tidy:
            commit_and_die(world)
        world.crasher.arm(step, meanwhile=lambda world=world: company(world))
        actor(world)
        struck = world.crasher.left is None
        come_to_rest(world)
        job = check(world, bodies, f"{company.__name__} came at step {step} of {actor.__name__}")
        assert job.state in (State.SUCCEEDED, State.EXPIRED)
        if not struck:
            return


@pytest.mark.slow
@pytest.mark.parametrize("actor", [run, tidy])
def test_company_that_dies_at_any_of_its_own_steps_changes_nothing(fresh, actor):
    """The janitor comes to a publication under way and dies, after each of its steps, at each step of the other.

    CI tries every third pair, and with them each step of either; ADE_TEST_FULL=1 tries all.
    """
    struck = lasted = True
    for step in fresh.steps():
        for death in fresh.steps():
            if (step + death) % 3 and fresh.place == "embedded" and not FULL:
                continue
            world = fresh()
            bodies = published(world)
            intake(world)
            if actor is tidy:
                commit_and_die(world)
            came = []

            def company(world=world, death=death, came=came):
                world.crasher.arm(death, after=True)
                came.append(death)
                with suppress(Crash):
                    tidy(world)
                    came.append("lasted")
                world.crasher.arm(None)

            world.crasher.arm(step, meanwhile=company)
            actor(world)
            struck, lasted = bool(came), "lasted" in came
            come_to_rest(world)
            check(world, bodies, f"the janitor came at step {step} of {actor.__name__} and died after its step {death}")
            if lasted or not struck:
                break
        if not struck:
            return


def taken_by_one_that_dies(world, runner):
    """The rows after a runner took the job and died while its box ran."""

    def die():
        raise Crash

    world.sandbox.during = die
    with suppress(Crash):
        world.handle_one(runner)
    return world.jobs()


def overtaken(world, meanwhile):
    """A late runner, another that takes the job `meanwhile(other)` prepares, and the rows that it leaves."""
    intake(world)
    late, other = world.runner(), world.runner()
    seen = []

    def during():
        meanwhile(other)
        seen.extend(taken_by_one_that_dies(world, other))

    world.sandbox.during = during
    return late, seen


def test_a_late_runner_cannot_commit_while_another_runs_the_job(fresh):
    world = fresh()

    def meanwhile(other):
        world.clock.move(31)
        other.janitor.chores()
        world.clock.move(5)

    late, seen = overtaken(world, meanwhile)
    world.handle_one(late)
    assert (seen[0].state, seen[0].fence) == (State.RUNNING, 2)
    assert world.jobs() == seen, "the late runner changed a row that another holds"


def test_a_runner_of_a_row_that_was_forgotten_cannot_commit_into_the_one_that_came_back(fresh):
    """The same content again, after its row was forgotten, has the same id: another life, with other fences."""
    world = fresh()

    def meanwhile(other):
        world.work_off(other)
        world.store.delete("inbox/acme/d/a.csv")
        for _ in range(2):
            world.clock.move(49 * 3600)
            world.work_off(other)
        assert world.jobs() == [], "the row should be forgotten"
        intake(world)

    late, seen = overtaken(world, meanwhile)
    held = []
    run_attempt = late.worker.attempts.run

    def watched(job, **more):
        held.append(job)
        return run_attempt(job, **more)

    late.worker.attempts.run = watched
    world.handle_one(late)
    assert (seen[0].job_id, seen[0].state) == (held[0].job_id, State.RUNNING)
    assert seen[0].fence > held[0].fence
    assert world.jobs() == seen, "the late runner changed a row that another holds"
    come_to_rest(world)
    check(world, [], "after a life before")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_reset_during_a_slow_publication_ends_with_the_new_one(fresh, after):
    for step in fresh.steps():
        world = fresh()
        intake(world)
        runner = world.runner()

        def again(world=world):
            world.runner().janitor.chores()
            for job in world.jobs():
                if job.state is State.PUBLISHING:
                    world.runner().publisher.finish(job)
            for job in world.jobs():
                if job.ended:
                    world.control.reset(job.job_id)
            world.work_off(world.runner())

        world.crasher.arm(step, after=after, meanwhile=again)
        world.handle_one(runner)
        struck = world.crasher.left is None
        come_to_rest(world)
        check(world, [], f"reset at step {step}")
        if not struck:
            return


def test_a_verdict_that_is_ours_keeps_its_place_in_the_queue(fresh):
    world = fresh()
    intake(world)
    runner = world.runner()
    world.sandbox.verdict = Verdict.BOX_FAILED
    world.handle_one(runner)
    (job,) = world.jobs()
    assert (job.state, job.attempt) == (State.QUEUED, 1)
    assert job.reason.startswith("to be tried again")
    assert world.queue.stats().in_flight + world.queue.stats().delayed == 1
