"""Old code meets new rows: what a newer program wrote is left alone and named; nothing is lost, nothing crashes."""

import json

import pytest

from console.cli import checks
from console.cli.commands.jobs import rows
from core.errors import RecordNewer
from core.jobs import RECORD_VERSION, State
from core.keys import latest_key
from core.ports import JobQuery, NewerRow
from tests.support.newer import raw, record, rewrite

NEXT = RECORD_VERSION + 1


@pytest.fixture
def world(world_in_each_place):
    return world_in_each_place


def recorded(world, **drop):
    world.intake.changed(world.drop(**drop))
    return next(job for job in world.jobs() if job.tenant == drop.get("tenant", "acme"))


def rounds(world, runner, *, n=6, seconds=61):
    """The whole fleet at work for a while: messages, chores, collection, sweeps and events."""
    for _ in range(n):
        world.clock.move(seconds)
        while world.handle_one(runner):
            pass
        runner.janitor.chores()
        runner.janitor.collect()
        world.intake.sweep()


# A state that this program knows is no less foreign in a record that it does not.
@pytest.mark.parametrize("state", ["PARKED", "QUEUED", "RUNNING", "PUBLISHING", "SUCCEEDED", "AWAITING"])
def test_a_newer_row_is_left_alone_and_finishes_once_it_is_written_back(world, state):
    job = recorded(world)
    world.intake.changed(world.drop(tenant="globex"))
    rewrite(world, job.job_id, version=NEXT, state=state, parked={"until": 5}, lane="slow")
    before = raw(world, job.job_id)
    runner = world.runner()
    rounds(world, runner, n=4)
    assert [(j.tenant, j.state) for j in world.jobs()] == [("globex", State.SUCCEEDED)]
    rounds(world, runner, n=2, seconds=3 * 86400)  # nothing expires it either
    assert raw(world, job.job_id) == before
    assert world.queue.dead() == ()
    with pytest.raises(RecordNewer, match=rf"{job.job_id} .*version {NEXT}; .*up to {RECORD_VERSION}.*upgrade"):
        world.table.get(job.job_id)

    rewrite(world, job.job_id, state="QUEUED")
    world.intake.sweep()
    world.work_off(runner)
    done = world.table.get(job.job_id)
    assert (done.state, done.attempts_total) == (State.SUCCEEDED, 1)
    assert world.result(done)["status"] == "SUCCEEDED"
    assert record(world, job.job_id)["lane"] == "slow"


def test_a_message_of_a_newer_row_comes_again_and_again_and_never_dies(world):
    job = recorded(world)
    rewrite(world, job.job_id, version=NEXT)
    runner, seen = world.runner(), 0
    for _ in range(30):  # more often than a queue delivers before it calls a message dead
        world.clock.move(100)
        seen += world.handle_one(runner)
    assert seen >= 25
    assert world.queue.dead() == ()
    rewrite(world, job.job_id)
    world.work_off(runner)
    assert world.table.get(job.job_id).state is State.SUCCEEDED


def test_a_newer_row_is_shown_again_with_a_delay(world):
    rewrite(world, recorded(world).job_id, version=NEXT)
    runner = world.runner()
    assert world.handle_one(runner)
    world.clock.move(30)
    assert not world.handle_one(runner)
    assert world.log._stream.getvalue().count("job_left_alone") == 1


@pytest.mark.parametrize("state", ["PARKED", "QUEUED"])
def test_jobs_lists_a_newer_row_with_a_note(world, state):
    for n in range(3):
        world.clock.move(1)
        recorded(world, name=f"{n}.csv", body=f"{n}".encode())
    order = [job.job_id for job in world.jobs()]
    rewrite(world, order[1], version=NEXT, state=state)
    found = list(rows(world.table, JobQuery()))
    assert [row.job_id for row in found] == order
    assert isinstance(found[1], NewerRow)
    assert (found[1].state, found[1].tenant, found[1].why.version) == (state, "acme", NEXT)
    queued = list(rows(world.table, JobQuery(states=frozenset({State.QUEUED}))))
    assert len(queued) == (3 if state == "QUEUED" else 2)
    assert list(rows(world.table, JobQuery(tenant="globex"))) == []


def test_doctor_warns_of_a_newer_row_and_says_what_to_do(world):
    job = recorded(world)
    rewrite(world, job.job_id, version=NEXT, state="PARKED")
    (check,) = checks.check_rows(world.fragile)
    assert (check.level, job.job_id in check.message) == ("warning", True)
    assert "upgrade" in check.remedy


def test_many_newer_rows_hide_no_other_and_are_seldom_scanned(world):
    for n in range(7):
        world.intake.changed(world.drop(name=f"{n}.csv", body=f"{n}".encode()))
    *ahead, last = sorted(world.jobs(), key=lambda j: (j.created_at, j.job_id))
    for job in ahead:
        rewrite(world, job.job_id, version=NEXT)
    world.clock.move(2000)
    assert [job.job_id for job in world.table.attention(world.clock.now(), limit=2)] == [last.job_id]
    if hasattr(world.table, "_reads"):
        asked, batch = [], world.table._reads._batch
        world.table._reads._batch = lambda keys: asked.extend(keys) or batch(keys)
        assert [job.job_id for job in world.table.attention(world.clock.now(), limit=2)] == [last.job_id]
        assert len(asked) == 1
    for job in ahead:
        rewrite(world, job.job_id)
    runner = world.runner()
    world.work_off(runner)
    assert {job.state for job in world.jobs()} == {State.SUCCEEDED}


def test_a_row_that_becomes_newer_while_it_runs_is_not_committed(world):
    job = recorded(world)
    runner = world.runner()

    def upgraded():
        rewrite(world, job.job_id, version=NEXT, lane="slow")
        world.clock.move(11)
        runner.beats.round()

    world.sandbox.during = upgraded
    assert world.handle_one(runner)
    assert record(world, job.job_id)["lane"] == "slow"
    assert world.result(job) is None
    assert world.queue.dead() == ()
    rewrite(world, job.job_id)
    world.clock.move(100)
    world.work_off(runner)
    assert world.table.get(job.job_id).state is State.SUCCEEDED


def test_what_a_program_ahead_added_to_a_row_is_kept_through_every_state(world):
    job = recorded(world)
    rewrite(world, job.job_id, lane={"name": "slow", "n": [1, None]})
    runner = world.runner()
    world.work_off(runner)
    world.control.reset(job.job_id)
    world.work_off(runner)
    assert world.table.get(job.job_id).state is State.SUCCEEDED
    assert record(world, job.job_id)["lane"] == {"name": "slow", "n": [1, None]}


def test_another_version_of_the_same_file_is_worked_on_beside_a_newer_row(world):
    first = recorded(world)
    rewrite(world, first.job_id, version=NEXT, state="PARKED")
    before = raw(world, first.job_id)
    world.clock.move(5)
    world.intake.changed(world.drop(body=b"id\n2\n"))
    runner = world.runner()
    rounds(world, runner, n=2)
    (second,) = world.jobs()
    assert (second.state, raw(world, first.job_id)) == (State.SUCCEEDED, before)


def test_latest_json_is_pointed_again_by_a_program_that_can_read_the_whole_line(world):
    world.intake.changed(world.drop(sweep={"rate": [1, 2]}))
    runner = world.runner()
    world.work_off(runner)
    older, newest = sorted(world.jobs(), key=lambda j: (j.stamp, j.created_at, j.job_id))
    rewrite(world, older.job_id, version=NEXT)
    with pytest.raises(RecordNewer, match=older.job_id):
        world.table.line(older.line, whole=True)
    assert [job.job_id for job in world.table.line(older.line)] == [newest.job_id]
    with pytest.raises(RecordNewer, match=older.job_id):
        world.control.remove(newest.job_id)
    rewrite(world, older.job_id)
    world.control.remove(newest.job_id)
    told = json.loads(world.store.read(latest_key(older), limit=10_000))
    assert told["job_id"] == older.job_id


def test_a_latest_json_that_is_newer_is_not_overwritten(world):
    job = recorded(world)
    newer = json.dumps({"latest": 2, "job_id": "x", "pointers": []}).encode()
    world.store.put(latest_key(job), newer)
    runner = world.runner()
    rounds(world, runner, n=3)
    assert world.store.read(latest_key(job), limit=1000) == newer
    assert (world.table.get(job.job_id).state, world.queue.dead()) == (State.PUBLISHING, ())
    world.store.delete(latest_key(job))
    world.work_off(runner)
    assert world.table.get(job.job_id).state is State.SUCCEEDED
