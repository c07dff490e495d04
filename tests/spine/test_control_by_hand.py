"""Commands of an operator that meet others: what they return, and what is left to point to."""

import json
from dataclasses import replace

from core.jobs import State
from runner.documents import result_body

LATEST = "outputs/acme/d/a.csv/members/latest.json"


def worked_off(world, body):
    world.intake.changed(world.drop(body=body))
    world.work_off(world.runner())
    world.clock.move(5)
    return max(world.jobs(), key=lambda job: job.stamp)


def test_a_cancel_that_others_keep_from_being_written_returns_the_job_as_it_is(world):
    world.intake.changed(world.drop())
    (job,) = world.jobs()
    world.table.replace = lambda *_: None
    assert world.control.cancel(job.job_id) == job


def test_a_cancel_that_somebody_else_publishes_returns_the_cancelled_job(world):
    world.intake.changed(world.drop())
    (job,) = world.jobs()
    world.control._publisher.finish = lambda *_, **__: None
    assert world.control.cancel(job.job_id).state is State.CANCELLED


def test_a_removed_version_leaves_latest_to_the_one_before_it(world):
    old = worked_off(world, b"id\n1\n")
    new = worked_off(world, b"id\n2\n")
    assert json.loads(world.store.read(LATEST, limit=9999))["job_id"] == new.job_id
    world.control.remove(new.job_id)
    assert json.loads(world.store.read(LATEST, limit=9999))["job_id"] == old.job_id
    assert [job.job_id for job in world.jobs()] == [old.job_id]


def test_the_time_a_run_took_is_reported_in_milliseconds(world):
    job = worked_off(world, b"id\n1\n")
    row = replace(job, started_at=100.0, history=(("PUBLISHING", 100.12345), ("SUCCEEDED", 101.0)))
    assert json.loads(result_body(row))["timings"]["run_seconds"] == 0.123
