"""Whoever deletes may be slow: stopped right before a step, and going on when the same drop has been worked off anew."""

import contextlib
import json
import os

import pytest

from core.errors import IllegalTransition
from core.jobs import State, move
from core.keys import job_folder, latest_key
from core.verdicts import Verdict
from runner.control import Control
from tests.support.world import Crash, World


def whole(world):
    """Every job that succeeded has all that its result.json names, and latest.json names one that is there."""
    for job in world.jobs():
        if job.state is not State.SUCCEEDED:
            continue
        told = world.result(job)
        assert told is not None, f"{job.job_id} has no result.json"
        assert told["status"] == "SUCCEEDED"
        for file in told["files"]:
            assert world.store.head(job_folder(job) + file["name"]) is not None, file["name"]
        assert json.loads(world.store.read(latest_key(job), limit=1 << 20))["job_id"] == job.job_id


def steps(world, act):
    world.crasher.arm(None)
    act()
    return world.crasher.seen


def drop_and_work(world):
    keys = world.drop()
    world.new_intake().changed(keys)
    world.work_off(world.runner())


def forgetting(world):
    """A job whose row is about to be forgotten: expired, its input gone."""
    drop_and_work(world)
    world.clock.move(50 * 3600)
    janitor = world.runner().janitor
    janitor.tidy()
    world.store.delete("inbox/acme/d/a.csv")
    world.store.delete("inbox/acme/d/manifest.json")
    world.clock.move(50 * 3600)
    return janitor


def test_a_janitor_that_stops_while_it_forgets_takes_nothing_from_who_comes_after(tmp_path):
    probe = World(tmp_path / "probe")
    count = steps(probe, forgetting(probe).tidy)
    probe.close()
    for at in range(count):
        world = World(tmp_path / str(at))
        janitor = forgetting(world)
        assert [str(job.state) for job in world.jobs()] == ["EXPIRED"]
        world.crasher.arm(at, after=True, meanwhile=lambda w=world: drop_and_work(w))
        janitor.tidy()
        world.crasher.arm(None)
        world.work_off(world.runner())
        world.intake.sweep()
        world.work_off(world.runner())
        assert [str(job.state) for job in world.jobs()] == ["SUCCEEDED"], at
        whole(world)
        world.close()


def test_a_reset_that_another_overtook_takes_nothing_from_the_run_that_followed(world, monkeypatch):
    world.sandbox.verdict = Verdict.RULE_ERROR
    drop_and_work(world)
    (job,) = world.jobs()
    slow = Control(world.store, world.table, world.queue, world.clock)
    retract = slow._publisher.latest.retract

    def overtaken(*args):
        """The row is marked; before anything is deleted, another reset and a runner that has copied its outputs."""
        retract(*args)
        world.control.reset(job.job_id)
        put = world.store.put

        def dying(key, *args, **more):
            if key.endswith("/result.json"):
                raise Crash
            return put(key, *args, **more)

        monkeypatch.setattr(world.store, "put", dying)
        with pytest.raises(Crash):
            world.handle_one(world.runner())
        monkeypatch.setattr(world.store, "put", put)

    monkeypatch.setattr(slow._publisher.latest, "retract", overtaken)
    with pytest.raises(IllegalTransition):
        slow.reset(job.job_id)
    (job,) = world.jobs()
    assert job.state is State.PUBLISHING
    assert all(world.store.head(job_folder(job) + file.name) for file in job.files)
    world.work_off(world.runner())
    whole(world)


@pytest.mark.parametrize(
    "order",
    [
        pytest.param("1" + "0" * 400, id="a number that no float holds"),
        pytest.param("1e999", id="later than everything"),
        pytest.param("NaN", id="no time at all"),
        pytest.param("[" * 5_000 + "]" * 5_000, id="deeper than anybody reads"),
    ],
)
def test_a_latest_that_somebody_edited_by_hand_is_written_anew(world, order):
    drop_and_work(world)
    (job,) = world.jobs()
    edited = '{"latest": 1, "order": [%s, 1.0, "zzz"]}' % order  # noqa: UP031 - braces
    world.store.put(latest_key(job), edited.encode())
    world.control.reset(job.job_id)
    world.work_off(world.runner())
    assert [str(job.state) for job in world.jobs()] == ["SUCCEEDED"]
    whole(world)


def test_a_finisher_that_slept_points_latest_to_no_job_that_was_removed_meanwhile(world, monkeypatch):
    world.intake.changed(world.drop())
    runner = world.runner()
    put_new = world.store.put_new

    def slow(bodies):
        """Stopped right before its files have their names; others publish, and an operator removes the job."""
        if world.clock.now() == began:
            world.clock.move(100.0)
            world.work_off(world.runner())
            (job,) = world.jobs()
            assert job.state is State.SUCCEEDED
            world.control.remove(job.job_id)
        return put_new(bodies)

    began = world.clock.now()
    monkeypatch.setattr(world.store, "put_new", slow)
    world.handle_one(runner)
    assert world.jobs() == []
    assert [key for key in world.store.keys("outputs/") if key.endswith(("latest.json", "result.json"))] == []


def test_a_remove_during_which_somebody_publishes_the_end_removes_all_or_nothing(tmp_path):
    """A janitor that is at the job's result.json comes between any two steps of the operator."""
    for at in range(40):
        world = World(tmp_path / str(at))
        world.intake.changed(world.drop())
        (job,) = world.jobs()
        world.table.replace(job, move(job, State.SKIPPED, now=world.clock.now(), reason="superseded by another"))
        operator = Control(world.fragile.store, world.fragile.table, world.fragile.queue, world.clock)
        janitor = world.runner().janitor
        world.crasher.arm(at, after=True, meanwhile=janitor.urgent)
        operator.remove(job.job_id)
        struck, world.crasher.left = world.crasher.left is None, None
        assert world.jobs() == []
        assert list(world.store.keys("inbox/acme/d/a")) == []
        assert [key for key in world.store.keys("outputs/") if job.job_id in key] == []
        world.close()
        if not struck:
            return
    raise AssertionError("more steps than were tried")


@pytest.mark.parametrize("names", range(7))
def test_a_finisher_that_dies_between_two_names_leaves_the_rest_to_others(world, monkeypatch, names):
    """It publishes four outputs, latest.json and the profile of the sender together."""
    world.intake.changed(world.drop())
    runner, link, left = world.runner(), os.link, [names]

    def dying(*args, **more):
        if not left[0]:
            raise Crash
        left[0] -= 1
        link(*args, **more)

    with monkeypatch.context() as patched, contextlib.suppress(Crash):
        patched.setattr("os.link", dying)
        world.handle_one(runner)
    runner.close()
    world.clock.move(3600.0)
    world.work_off(world.runner())
    world.runner().janitor.chores()
    (job,) = world.jobs()
    assert job.state is State.SUCCEEDED
    whole(world)
    assert list(world.store.keys("work/")) == []
