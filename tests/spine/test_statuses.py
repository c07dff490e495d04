"""status.json tells a sender what a job waits for, and is gone with its result."""

import json
from contextlib import suppress

import pytest

from core.jobs import State, stamp_text
from core.ports import Pause
from core.verdicts import Verdict
from tests.support.world import MANIFEST, Crash, World

AUX = {"primary": ["*.csv"], "auxiliary": [{"name": "plans", "path": "lookups/plans.csv"}]}
STATUS = "outputs/acme/d/a.csv/members/status.json"


@pytest.fixture
def world(world_in_each_place):
    return world_in_each_place


def status(world, key=STATUS):
    return json.loads(world.store.read(key, limit=1 << 20)) if world.store.head(key) else None


def statuses(world):
    return [key for key in world.store.keys("outputs/") if key.endswith("/status.json")]


def watched(world):
    """Every status.json that is written from now on."""
    put, written = world.store.put, []

    def watching(key, body, **more):
        if key.endswith("/status.json"):
            written.append(json.loads(body))
        return put(key, body, **more)

    world.store.put = watching
    return written


def test_a_job_that_never_waits_costs_no_status(world):
    touched = []
    for name in ("put", "read", "delete", "head"):
        call = getattr(world.store, name)

        def counted(key, *args, _call=call, **more):
            touched.extend([key] if key.endswith("status.json") else [])
            return _call(key, *args, **more)

        setattr(world.store, name, counted)
    world.intake.changed(world.drop())
    world.work_off(world.runner())
    assert touched == []


def test_a_job_that_waits_says_for_what_until_it_comes(world):
    world.intake.changed(world.drop(inputs=AUX))
    (job,) = world.jobs()
    told = status(world)
    assert (told["state"], told["job_id"]) == ("AWAITING", job.job_id)
    assert told["waiting_for"] == ["inbox/acme/d/lookups/plans.csv"]
    world.intake.changed([world.put("inbox/acme/d/lookups/plans.csv", b"code\n")])
    assert statuses(world) == []
    world.work_off(world.runner())
    assert statuses(world) == []


def test_a_file_without_a_manifest_has_a_status_and_gives_it_up(world):
    world.intake.changed([world.put("inbox/acme/d/a.csv", b"id\n1\n")])
    told = status(world, "outputs/acme/d/a.csv/status.json")
    assert (told["state"], told["reason"]) == ("AWAITING", "no manifest selects inbox/acme/d/a.csv")
    world.intake.changed([world.put("inbox/acme/d/manifest.json", MANIFEST)])
    assert statuses(world) == []


def test_a_manifest_without_files_has_a_status_and_gives_it_up(world):
    world.intake.changed([world.put("inbox/acme/d/manifest.json", MANIFEST)])
    assert status(world, "outputs/acme/d/members/status.json")["waiting_for"] == [
        "inbox/acme/d/*.xlsx",
        "inbox/acme/d/*.csv",
    ]
    world.intake.changed([world.put("inbox/acme/d/a.csv", b"id\n1\n")])
    assert statuses(world) == []


@pytest.mark.parametrize("how", ["event", "sweep"])
def test_the_status_goes_away_with_the_file(world, how):
    key = world.put("inbox/acme/d/a.csv", b"id\n1\n")
    world.intake.changed([key])
    world.store.delete(key)
    world.intake.sweep() if how == "sweep" else world.intake.changed([key])
    assert (statuses(world), world.jobs()) == ([], [])


def test_a_newer_version_speaks_for_itself(world):
    world.intake.changed(world.drop(inputs=AUX, body=b"id\n1\n"))
    world.intake.changed(world.drop(inputs=AUX, body=b"id\n2\n"))
    world.work_off(world.runner())  # publishes that the first was skipped
    waiting = next(j for j in world.jobs() if j.state is State.AWAITING)
    assert status(world)["job_id"] == waiting.job_id


def test_a_scheduled_job_says_when(world):
    tomorrow = stamp_text(int(world.clock.now()) + 86400)
    world.intake.changed(world.drop(not_before=tomorrow))
    told = status(world)
    assert (told["state"], told["due_at"]) == ("SCHEDULED", tomorrow)
    world.clock.move(2 * 86400)
    world.work_off(world.runner())
    assert statuses(world) == []


def test_a_held_job_says_so_after_a_while_and_then_that_it_runs(world):
    world.table.pause(Pause(tenant="acme", workflow=None, since=0.0, by="test"))
    world.intake.changed(world.drop())
    runner = world.runner()
    world.handle_one(runner)
    assert statuses(world) == [], "a moment's wait is not worth a word"
    written = watched(world)
    for _ in range(40):
        world.clock.move(2)
        world.handle_one(runner)
    assert [(told["state"], told["reason"]) for told in written] == [("QUEUED", "waiting: paused, tenant acme")]
    world.table.resume("acme", None)
    world.work_off(runner)
    assert [told["state"] for told in written] == ["QUEUED", "RUNNING"]
    assert statuses(world) == []


def test_a_cancelled_job_has_no_status(world):
    world.intake.changed(world.drop(inputs=AUX))
    world.control.cancel(world.jobs()[0].job_id)
    assert statuses(world) == []


def test_a_removed_job_has_no_status(world):
    world.intake.changed(world.drop(inputs=AUX))
    world.control.remove(world.jobs()[0].job_id)
    assert statuses(world) == []


def test_a_long_wait_for_another_try_is_reported(tmp_path):
    world = World(tmp_path, retry_backoff_seconds=200.0)
    world.intake.changed(world.drop())
    runner = world.runner()
    world.sandbox.verdict = Verdict.BOX_FAILED
    world.handle_one(runner)
    assert status(world)["reason"].startswith("to be tried again")
    world.work_off(runner)
    assert statuses(world) == []
    world.close()


def test_a_sweep_of_parameters_writes_one_status(world):
    written = watched(world)
    world.intake.changed(world.drop(inputs=AUX, sweep={"rate": list(range(10))}))
    assert len(written) == 1
    world.intake.changed([world.put("inbox/acme/d/lookups/plans.csv", b"code\n")])
    assert statuses(world) == []


def test_a_second_sweep_writes_nothing(world):
    world.intake.changed(world.drop(inputs=AUX))
    world.intake.sweep()
    written = watched(world)
    world.intake.sweep()
    assert written == []


def waits(world):
    world.intake.changed(world.drop(inputs=AUX))


def completes(world):
    world.intake.changed([world.put("inbox/acme/d/lookups/plans.csv", b"code\n")])


def is_taken_back(world):
    world.store.delete("inbox/acme/d/a.csv")
    world.intake.changed(["inbox/acme/d/a.csv"])


def runs(world):
    world.clock.move(40)
    world.handle_one(world.runner())
    world.table.resume("acme", None)
    world.clock.move(2)
    world.handle_one(world.runner())


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("dies", [waits, completes, is_taken_back, runs])
def test_a_death_at_any_step_leaves_the_status_that_is_true(tmp_path, dies, after):
    for step in range(60):
        world = World(tmp_path / str(step))
        if dies is runs:
            world.table.pause(Pause(tenant="acme", workflow=None, since=0.0, by="test"))
            world.intake.changed(world.drop())
        elif dies is not waits:
            waits(world)
        world.crasher.arm(step, after=after)
        with suppress(Crash):
            dies(world)
        struck = world.crasher.left is None
        world.crasher.arm(None)
        world.intake = world.new_intake()
        world.table.resume("acme", None)
        world.sweep()
        world.clock.move(31)
        world.work_off(world.runner())
        waiting = [j.state for j in world.jobs() if j.state is State.AWAITING]
        told = [status(world, key)["state"] for key in statuses(world)]
        assert told == waiting, f"{dies.__name__} died {'after' if after else 'before'} step {step}"
        world.close()
        if not struck:
            return
    raise AssertionError("the path has more steps than this test knows")
