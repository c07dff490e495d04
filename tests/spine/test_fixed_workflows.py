"""A standing manifest that was corrected is used by whoever runs a file again; what was good stays until then."""

import json

import pytest

from console.again import run_again
from core.errors import IllegalTransition
from core.jobs import State
from core.keys import job_folder
from core.verdicts import Verdict
from tests.support.places import PLACES
from tests.support.stamps import stamped
from tests.support.world import MANIFEST, World

STANDING = "configs/acme/members/manifest.json"
SHARED = "configs/_shared/members/manifest.json"
INPUT = "inbox/acme/a.csv"
LATEST = "outputs/acme/a.csv/members/latest.json"


def manifest(field, key=STANDING):
    made = MANIFEST | {"subscribe": ["*.csv"], "fields": [{"name": field}]}
    return made | {"tenants": ["*"]} if key == SHARED else made


@pytest.fixture(params=["embedded", "versioned cloud", "cloud"])
def world(request, tmp_path):
    made = World(tmp_path, PLACES[request.param])
    yield made
    made.close()


@pytest.fixture
def local(tmp_path):
    made = World(tmp_path)
    yield made
    made.close()


def processed(world, verdict=Verdict.OK, key=STANDING, review="never"):
    world.intake.changed([world.put(key, manifest("old", key) | {"mapping": {"review": review}})])
    world.sandbox.verdict = verdict
    world.intake.changed([world.put(INPUT, b"id\n1\n")])
    world.work_off(world.runner())
    (job,) = world.jobs()
    return job


def corrected(world, key=STANDING):
    world.clock.move(5)
    world.intake.changed([world.put(key, manifest("new", key))])


def fields(world):
    return [o.manifest["fields"][0]["name"] for o in world.sandbox.orders]


def latest(world):
    return json.loads(world.store.read(LATEST, limit=10_000))["job_id"]


@pytest.mark.parametrize("key", [STANDING, SHARED])
def test_a_retry_uses_the_corrected_manifest(world, key):
    job = processed(world, Verdict.RULE_ERROR, key)
    corrected(world, key)
    again = run_again(world.intake, world.control, "retry", job.job_id)
    assert (again.state, again.job_id != job.job_id) == (State.QUEUED, True)
    assert world.table.get(job.job_id).reason == f"run again as {again.job_id}, with the workflow as it is now"
    world.work_off(world.runner())
    assert fields(world) == ["old", "new"]
    assert world.table.get(again.job_id).state is State.SUCCEEDED
    assert latest(world) == again.job_id


@pytest.mark.parametrize("again", ["retry", "event", "sweep"])
def test_a_corrected_manifest_alone_runs_nothing_again(local, again):
    processed(local, Verdict.RULE_ERROR)
    corrected(local)
    local.sweep()
    assert [j.state for j in local.jobs()] == [State.FAILED]


@pytest.mark.parametrize("way", ["event", "sweep"])
def test_a_failed_file_that_is_dropped_again_uses_the_corrected_manifest(world, way):
    first = processed(world, Verdict.RULE_ERROR)
    corrected(world)
    world.put(INPUT, b"id\n1\n")
    if world.store.head(INPUT).version == first.inputs[0].ref.version:
        # Without versions the time tells, and that of S3 has whole seconds.
        stamped(world, lambda info: info.modified + (10 if info.key == INPUT else 0))
    if way == "event":
        world.intake.changed([INPUT])
    world.sweep()
    world.work_off(world.runner())
    world.sweep()
    assert fields(world) == ["old", "new"]
    assert sorted(j.state for j in world.jobs()) == [State.FAILED, State.SUCCEEDED]


def test_a_good_file_that_is_dropped_again_is_not_processed_again(local):
    processed(local)
    corrected(local)
    local.intake.changed([local.put(INPUT, b"id\n1\n")])
    assert [j.state for j in local.jobs()] == [State.SUCCEEDED]


def test_a_second_retry_meets_the_job_of_the_first(local):
    job = processed(local, Verdict.RULE_ERROR)
    corrected(local)
    first = run_again(local.intake, local.control, "retry", job.job_id)
    assert run_again(local.intake, local.control, "retry", job.job_id).job_id == first.job_id
    local.sandbox.verdict = Verdict.RULE_ERROR
    local.work_off(local.runner())
    third = run_again(local.intake, local.control, "retry", job.job_id)
    assert (third.job_id, third.state, third.reason) == (first.job_id, State.QUEUED, "retried by an operator")


def test_a_retry_without_a_correction_is_that_of_the_same_job(local):
    job = processed(local, Verdict.RULE_ERROR)
    again = run_again(local.intake, local.control, "retry", job.job_id)
    assert (again.job_id, again.reason) == (job.job_id, "retried by an operator")


def test_a_retry_of_a_job_whose_manifest_is_gone_runs_the_version_that_ran(local):
    job = processed(local, Verdict.RULE_ERROR)
    local.store.delete(STANDING)
    assert run_again(local.intake, local.control, "retry", job.job_id).job_id == job.job_id
    local.work_off(local.runner())
    assert fields(local) == ["old", "old"]
    assert local.table.get(job.job_id).state is State.SUCCEEDED


LACKING = {
    "its config": (manifest("id") | {"config": "./config"}, "configs/acme/members/config/row_types/a.py", b"A = 1\n"),
    "a lookup table": (
        manifest("id") | {"inputs": {"auxiliary": [{"name": "plans", "path": "lookups/plans.csv", "required": True}]}},
        "configs/acme/members/lookups/plans.csv",
        b"code\n1\n",
    ),
    "any manifest": (None, STANDING, json.dumps(manifest("id")).encode()),
}


@pytest.mark.parametrize("lacking", LACKING)
@pytest.mark.parametrize("act", ["retry", "reset"])
def test_a_job_that_was_cancelled_while_it_waited_waits_again(local, lacking, act):
    """It never had all its parts: run as it is, it would come out without its rules or its lookup table."""
    body, part, content = LACKING[lacking]
    if body is not None:
        local.put(STANDING, body)
    local.intake.changed([local.put(INPUT, b"id\n1\n")])
    (job,) = local.jobs()
    waiting_for = job.waiting_for
    local.control.cancel(job.job_id)
    again = run_again(local.intake, local.control, act, job.job_id)
    assert (again.state, again.waiting_for) == (State.AWAITING, waiting_for)
    local.work_off(local.runner())
    assert not local.sandbox.orders
    local.clock.move(5)
    local.intake.changed([local.put(part, content)])
    local.work_off(local.runner())
    (done,) = [job for job in local.jobs() if job.state is State.SUCCEEDED]
    assert done.workflow == "members"
    assert len(local.sandbox.orders) == 1


@pytest.mark.parametrize("act", ["retry", "reset"])
def test_a_job_that_is_not_ended_is_refused_and_nothing_is_planned(local, act):
    local.intake.changed([local.put(STANDING, manifest("old"))])
    local.intake.changed([local.put(INPUT, b"id\n1\n")])
    (job,) = local.jobs()
    local.put(STANDING, manifest("new"))
    with pytest.raises(IllegalTransition, match="is QUEUED"):
        run_again(local.intake, local.control, act, job.job_id)
    assert len(local.jobs()) == 1


def test_a_good_result_stays_until_a_reset_with_the_corrected_manifest_has_published(world):
    job = processed(world)
    before = {key: world.store.read(key, limit=1_000_000) for key in world.store.keys(job_folder(job))}
    corrected(world)
    again = run_again(world.intake, world.control, "reset", job.job_id)
    assert latest(world) == job.job_id
    world.work_off(world.runner())
    assert latest(world) == again.job_id != job.job_id
    assert {key: world.store.read(key, limit=1_000_000) for key in before} == before


class TestReset:
    """A reset with the same version of the workflow."""

    def test_the_result_stays_until_the_next_one_is_published(self, world):
        job = processed(world)
        keys = sorted(world.store.keys("outputs/"))
        assert run_again(world.intake, world.control, "reset", job.job_id).state is State.QUEUED
        assert sorted(world.store.keys("outputs/")) == keys
        assert latest(world) == job.job_id
        world.work_off(world.runner())
        now = world.table.get(job.job_id)
        assert (now.state, now.attempts_total, now.earlier) == (State.SUCCEEDED, 2, None)
        assert world.result(now)["attempts"] == 2

    @pytest.mark.parametrize("verdict", [Verdict.RULE_ERROR, Verdict.WALL_CLOCK, Verdict.CPU])
    def test_one_that_fails_leaves_the_result_as_it_was(self, world, verdict):
        job = processed(world)
        before = {key: world.store.read(key, limit=1_000_000) for key in world.store.keys("outputs/")}
        staged = set(world.store.keys("work/"))  # over a network the bundle of the first run may stay for a while
        world.control.reset(job.job_id)
        world.sandbox.verdict = verdict
        world.work_off(world.runner())
        now = world.table.get(job.job_id)
        assert (now.state, now.files, now.summary, now.ended_at) == (job.state, job.files, job.summary, job.ended_at)
        assert "the result from before stays" in now.reason
        assert {key: world.store.read(key, limit=1_000_000) for key in world.store.keys("outputs/")} == before
        assert not now.unpublished
        assert set(world.store.keys("work/")) <= staged

    def test_one_that_is_cancelled_leaves_the_result_as_it_was(self, local):
        job = processed(local)
        local.control.reset(job.job_id)
        assert local.control.cancel(job.job_id).state is State.SUCCEEDED
        local.work_off(local.runner())
        assert local.table.get(job.job_id).state is State.SUCCEEDED
        assert local.result(job)["status"] == "SUCCEEDED"

    def test_one_that_is_superseded_leaves_the_result_as_it_was(self, local):
        job = processed(local)
        local.control.reset(job.job_id)
        local.clock.move(5)
        local.intake.changed([local.put(INPUT, b"id\n2\n")])
        assert local.table.get(job.job_id).state is State.SUCCEEDED
        local.work_off(local.runner())
        assert sorted(j.state for j in local.jobs()) == [State.SUCCEEDED] * 2
        assert latest(local) != job.job_id

    def test_one_that_asks_and_is_cancelled_leaves_no_question(self, local):
        local.put("configs/acme/members.overlay.json", {"overlay": 1})
        job = processed(local, review="unsure")
        local.control.reset(job.job_id)
        local.sandbox.asks = True
        local.work_off(local.runner())
        assert local.table.get(job.job_id).state is State.REVIEW
        local.control.cancel(job.job_id)
        local.work_off(local.runner())
        names = {key.rpartition("/")[2] for key in local.store.keys("outputs/")}
        assert local.table.get(job.job_id).state is State.SUCCEEDED
        assert not names & {"review.json", "review.html", "status.json"}

    def test_a_failed_job_leaves_nothing_of_its_failure(self, local):
        job = processed(local, Verdict.RULE_ERROR)
        local.control.reset(job.job_id)
        assert not list(local.store.keys("outputs/"))
