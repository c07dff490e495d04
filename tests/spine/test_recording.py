"""Plans that meet rows: taken ids, changed placeholders, and others who are at the same rows."""

import json

import pytest

from core.drops import is_placeholder
from core.jobs import LENGTHS, Job, State, job_id
from tests.support.world import MANIFEST, World

LOOK_UP = {"primary": ["*.csv"], "auxiliary": [{"name": "plans", "path": "lookups/plans.csv"}]}


def only(world):
    (job,) = world.jobs()
    return job


def taken(world, lengths):
    """Rows of other jobs that happen to have the ids that a drop's job would get."""
    world.intake.changed(world.drop())
    job = only(world)
    world.table.remove(job)
    for length in lengths:
        name = job_id("acme", "members", job.identity, length)
        world.table.add(
            Job(job_id=name, identity=f"other-{length}", tenant="acme", workflow="members", subject=f"{length}.csv")
        )
    return job


def test_a_job_whose_id_is_taken_by_another_gets_a_longer_one(world):
    job = taken(world, LENGTHS[:1])
    report = world.intake.changed(["inbox/acme/d/a.csv"])
    (made,) = report.recorded.created
    assert made.job_id == job_id("acme", "members", job.identity, LENGTHS[1])
    assert made.identity == job.identity


def test_a_job_whose_id_is_taken_at_every_length_is_named(world):
    taken(world, LENGTHS)
    report = world.intake.changed(["inbox/acme/d/a.csv"])
    assert report.recorded.created == []
    assert any("is taken by another job at every length" in line for line in report.failed)


def test_a_file_without_a_manifest_says_anew_what_it_waits_for(world):
    world.intake.changed([world.put("inbox/acme/d/a.csv", b"id\n1\n")])
    first = only(world)
    world.clock.move(5)
    world.put("inbox/acme/d/manifest.json", {"manifest": 1})
    world.sweep()
    job = only(world)
    assert "does not validate" in job.reason
    assert (job.job_id, job.fence, job.created_at, job.history) == (
        first.job_id, first.fence, first.created_at, first.history,
    )  # fmt: skip
    told = json.loads(world.store.read("outputs/acme/d/a.csv/status.json", limit=9999))
    assert told["reason"] == job.reason
    world.sweep()
    assert only(world).rev == job.rev, "what is the same is not written again"


def test_the_newest_content_again_costs_no_write_though_an_older_version_is_there(world):
    runner = world.runner()
    for body in (b"id\n1\n", b"id\n2\n"):
        world.intake.changed(world.drop(body=body))
        world.work_off(runner)
    before = {job.job_id: job.rev for job in world.jobs()}
    world.clock.move(5)
    world.intake.changed(world.drop(body=b"id\n2\n"))
    assert {job.job_id: job.rev for job in world.jobs()} == before
    assert world.queue.stats().ready == 0


def steps(world_at, keys_of, meanwhile):
    """A look at keys, with somebody else acting before each of its external steps in turn."""
    n = 0
    while True:
        world = world_at(n)
        keys = keys_of(world)
        world.crasher.arm(n, meanwhile=lambda world=world: meanwhile(world))
        report = world.intake.changed(keys)
        over = world.crasher.left is not None
        world.crasher.arm(None)
        yield world, report
        if over:
            return
        n += 1


def remove(world):
    for job in world.jobs():
        world.table.remove(job)


def run(world):
    world.handle_one(world.runner())


@pytest.mark.parametrize("act", [remove, run])
def test_a_row_that_goes_or_starts_while_it_is_superseded_keeps_nobody_waiting(tmp_path, act):
    def first(n):
        world = World(tmp_path / f"{n}")
        world.intake.changed(world.drop())
        return world

    for world, report in steps(first, lambda world: world.drop(body=b"id\n2\n"), act):
        assert report.failed == []
        assert None not in report.recorded.superseded
        world.sweep()
        world.work_off(world.runner())
        assert max(world.jobs(), key=lambda j: j.stamp).state is State.SUCCEEDED
        world.close()


def test_a_waiting_row_that_is_removed_while_it_is_completed_is_made_anew(tmp_path):
    def waiting(n):
        world = World(tmp_path / f"{n}")
        world.intake.changed(world.drop(inputs=LOOK_UP))
        return world

    for world, report in steps(waiting, lambda w: [w.put("inbox/acme/d/lookups/plans.csv", b"code\nA\n")], remove):
        assert report.failed == []
        world.sweep()
        world.work_off(world.runner())
        assert [job.state for job in world.jobs()] == [State.SUCCEEDED]
        world.close()


def test_a_placeholder_is_not_counted_as_a_version(world):
    """A row that only says what is missing neither outdates the job nor is superseded as one."""
    world.put("inbox/acme/d/manifest.json", MANIFEST | {"config": "./rules"})
    world.intake.changed([world.put("inbox/acme/d/a.csv", b"id\n1\n"), "inbox/acme/d/manifest.json"])
    assert is_placeholder(only(world))
    world.clock.move(-10)
    report = world.intake.changed([world.put("inbox/acme/d/rules/columns/id.py", b"")])
    job = only(world)
    assert job.state is State.QUEUED
    assert report.recorded.superseded == []
