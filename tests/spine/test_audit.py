"""Rows and outputs are compared: what a bucket lost is put back, run again or named."""

import pytest

from core.jobs import Job, State
from core.keys import job_folder, latest_key, result_key, staging_folder
from core.verdicts import Verdict
from runner.audit import RESTORED, RUN_AGAIN, UNEXPLAINED
from runner.janitor import Janitor
from tests.support.world import World


@pytest.fixture
def janitor(world: World) -> Janitor:
    return world.runner().janitor


def succeeded(world: World, **drop: object) -> Job:
    world.intake.changed(world.drop(**drop))
    world.work_off(world.runners[0])
    world.clock.move(100)
    (job,) = [job for job in world.jobs() if job.state is State.SUCCEEDED]
    return job


def lose_all(world: World, job: Job) -> None:
    """As a bucket that was copied before the job was published."""
    world.store.delete_prefix(job_folder(job))
    world.store.delete(latest_key(job))


def test_outputs_that_are_there_are_looked_at_once(world: World, janitor: Janitor):
    job = succeeded(world)
    assert janitor.audit.round() == {"results_audited": 1}
    assert janitor.audit.round() == {}
    assert world.table.get(job.job_id) == job


def test_a_job_whose_outputs_the_bucket_has_never_heard_of_runs_again(world: World, janitor: Janitor):
    job = succeeded(world)
    lose_all(world, job)
    assert janitor.audit.round()[RUN_AGAIN] == 1
    world.work_off(world.runners[0])
    assert world.table.get(job.job_id).state is State.SUCCEEDED
    assert world.result(job)["status"] == "SUCCEEDED"
    assert world.store.head(latest_key(job)) is not None


def test_it_runs_again_once(world: World, janitor: Janitor):
    """Whoever deletes everything, each time, does not get it for ever."""
    job = succeeded(world)
    lose_all(world, job)
    janitor.audit.round()
    world.work_off(world.runners[0])
    lose_all(world, job)
    world.clock.move(100)
    assert janitor.audit.round()[UNEXPLAINED] == 1
    assert world.table.get(job.job_id).state is State.SUCCEEDED


def test_outputs_that_somebody_took_away_are_named_and_not_made_again(world: World, janitor: Janitor):
    job = succeeded(world)
    world.store.delete_prefix(job_folder(job))
    assert janitor.audit.round()[UNEXPLAINED] == 1
    assert world.table.get(job.job_id) == job
    assert job.job_id in world.log._stream.getvalue()


def test_a_lost_result_json_is_written_again(world: World, janitor: Janitor):
    job = succeeded(world)
    world.store.delete(result_key(job))
    assert janitor.audit.round()[RESTORED] == 1
    world.work_off(world.runners[0])
    assert world.result(job)["status"] == "SUCCEEDED"
    assert len(world.sandbox.orders) == 1, "nothing ran again"


def test_what_is_still_staged_is_put_back(world: World, janitor: Janitor):
    job = succeeded(world)
    for file in job.files:
        world.store.copy(job_folder(job) + file.name, staging_folder(job.job_id, job.fence) + file.name)
    lose_all(world, job)
    assert janitor.audit.round()[RESTORED] == 1
    world.work_off(world.runners[0])
    assert janitor.audit.missing(world.table.get(job.job_id)) == set()
    assert world.store.head(latest_key(job)) is not None
    assert len(world.sandbox.orders) == 1, "nothing ran again"


def test_without_its_input_it_is_named(world: World, janitor: Janitor):
    job = succeeded(world)
    lose_all(world, job)
    world.store.delete(job.inputs[0].ref.key)
    assert janitor.audit.round()[UNEXPLAINED] == 1


def test_a_failure_without_its_result_is_told_again(world: World, janitor: Janitor):
    world.sandbox.verdict = Verdict.RULE_ERROR
    world.intake.changed(world.drop())
    world.work_off(world.runners[0])
    (job,) = world.jobs()
    world.clock.move(100)
    world.store.delete_prefix(job_folder(job))
    assert janitor.audit.check(job) == RESTORED
    world.work_off(world.runners[0])
    assert world.result(job)["status"] == "FAILED"


def test_a_round_costs_the_same_however_many_jobs_there_are(world: World, janitor: Janitor):
    for n in range(130):
        world.intake.changed(world.drop(tenant=f"t{n}"))
    world.work_off(world.runners[0], rounds=2000)
    world.clock.move(100)
    assert janitor.audit.round()["results_audited"] == 130
    assert janitor.audit.round()["results_audited"] <= 50
