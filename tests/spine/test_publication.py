"""Publication when something is lost, in the way or already done."""

from dataclasses import replace

import pytest

from core.jobs import State
from core.verdicts import Verdict
from infra.queueing import Lanes
from runner.publish import Publisher
from tests.support.world import Crash

LATEST = "outputs/acme/d/a.csv/members/latest.json"


@pytest.fixture
def publisher(world):
    return Publisher(world.store, world.table, world.clock, Lanes(1))


def unpublished(world, verdict=Verdict.OK):
    """A job whose attempt was written to its row and whose runner died before it published anything."""
    world.intake.changed(world.drop())
    world.sandbox.verdict = verdict
    runner = world.runner()

    def dies(*_):
        raise Crash

    runner.worker.finish = dies
    with pytest.raises(Crash):
        world.handle_one(runner)
    (job,) = world.jobs()
    return job


def test_a_job_whose_staged_files_are_lost_is_run_again(world, publisher):
    job = unpublished(world)
    assert job.state is State.PUBLISHING
    world.store.delete_prefix("work/")
    back = publisher.finish(job)
    assert (back.state, back.files) == (State.QUEUED, ())
    assert back.reason == "its staged files were lost before they were published"
    assert world.result(job) is None
    world.work_off(world.runner())
    (job,) = world.jobs()
    assert (job.state, job.attempts_total) == (State.SUCCEEDED, 2)


def test_a_failure_whose_staged_log_is_lost_is_reported_without_it(world, publisher):
    job = unpublished(world, Verdict.RULE_ERROR)
    assert [file.name for file in job.files] == ["report.html", "logs.txt"]
    world.store.delete_prefix("work/")
    told = publisher.finish(job)
    assert (told.state, told.unpublished, told.files) == (State.FAILED, False, ())
    assert world.result(job)["files"] == []


def test_a_job_that_somebody_moved_on_is_left_alone_when_its_staged_files_are_lost(world, publisher):
    job = unpublished(world)
    world.store.delete_prefix("work/")
    world.table.replace(job, replace(job, reason="moved on"))
    assert publisher.finish(job) is None
    assert world.table.get(job.job_id).state is State.PUBLISHING


@pytest.mark.parametrize("verdict", [Verdict.OK, Verdict.RULE_ERROR])
def test_a_publication_that_is_finished_twice_writes_nothing_the_second_time(world, publisher, verdict):
    job = unpublished(world, verdict)
    first = publisher.finish(job)
    assert first.ended
    before = {o.key: (o.version, o.modified) for o in world.store.objects("outputs/")}
    assert publisher.finish(first) is None, "nothing is left to publish"
    assert publisher.finish(job) is None, "the row has moved on"
    assert {o.key: (o.version, o.modified) for o in world.store.objects("outputs/")} == before
    assert world.table.get(job.job_id) == first


def test_what_has_no_end_is_not_published(world, publisher):
    world.intake.changed(world.drop())
    (job,) = world.jobs()
    assert publisher.finish(job) is None
    assert list(world.store.keys("outputs/")) == []


def test_a_latest_that_names_another_job_is_never_deleted(world, publisher):
    runner = world.runner()
    for body in (b"id\n1\n", b"id\n2\n"):
        world.intake.changed(world.drop(body=body))
        world.work_off(runner)
    old, new = sorted(world.jobs(), key=lambda j: j.stamp)
    deleted = []
    world.store.delete = deleted.append
    publisher.latest.retract(old)
    assert deleted == []
    publisher.latest.retract(new)
    assert deleted == [LATEST]


def test_a_retracted_latest_is_not_pointed_at_an_older_version(world, publisher):
    runner = world.runner()
    for body in (b"id\n1\n", b"id\n2\n"):
        world.intake.changed(world.drop(body=body))
        world.work_off(runner)
    publisher.latest.retract(max(world.jobs(), key=lambda j: j.stamp))
    assert world.store.head(LATEST) is None


def test_a_latest_that_cannot_be_read_is_replaced(world):
    for text in (b"", b"[]", b'{"order": 1}', b'{"order": ["x", 1, "y"]}', b"{}"):
        world.put(LATEST, text)
        world.intake.changed(world.drop(body=b"id\n" + text.hex().encode() + b"\n"))
        world.work_off(world.runner())
        assert b'"latest": 1' in world.store.read(LATEST, limit=9999)


def test_outputs_that_can_never_be_written_leave_no_files_in_the_row(world):
    world.intake.changed(world.drop())
    (world.store.root / "outputs/acme/d").mkdir(parents=True)
    (world.store.root / "outputs/acme/d/a.csv").write_text("in the way")
    world.work_off(world.runner())
    (job,) = world.jobs()
    assert (job.state, job.files, job.unpublished) == (State.FAILED, (), False)
    assert job.error.verdict is Verdict.INPUT_UNREADABLE
