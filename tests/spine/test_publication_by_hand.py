"""Finishers that meet: result.json is written once, whoever comes first, and nobody touches what has moved on."""

import json
from dataclasses import replace

import pytest

from core.errors import RecordNewer
from core.jobs import InputRef, JobError, ObjectRef, OutputFile, State
from core.keys import latest_key, result_key, staging_folder
from core.verdicts import Verdict
from runner.documents import read_order, result_body
from tests.contract.jobs import NOW, a_job

FILE = OutputFile(name="artifact.json", size=1, sha256="0" * 64)


def committed(world, **more):
    """A job whose one file is staged and has to be published."""
    facts = {
        "state": State.PUBLISHING, "fence": 1, "attempts_total": 1, "files": (FILE,), "subject": "a.csv",
        "history": (("QUEUED", NOW), ("PUBLISHING", NOW)),
    }  # fmt: skip
    job, _ = world.table.add(a_job("p", **(facts | more)))
    world.put(f"{staging_folder(job.job_id, job.fence)}artifact.json", b"x")
    return job


def puts(world) -> list[str]:
    """Keys that are written from now on."""
    seen, put = [], world.store.put
    world.store.put = lambda key, *args, **more: seen.append(key) or put(key, *args, **more)
    return seen


def meanwhile(world, port, name, act):
    """Somebody acts right after the first call of a method."""
    call = getattr(port, name)

    def once(*args, **more):
        setattr(port, name, call)
        done = call(*args, **more)
        act()
        return done

    setattr(port, name, once)


def test_a_result_that_another_finisher_wrote_over_an_older_one_is_not_written_twice(world):
    job = committed(world)
    key = world.put(result_key(job), b"of an earlier run")
    meanwhile(world, world.store, "copy", lambda: world.put(key, result_body(job)))
    seen = puts(world)
    done = world.runner().publisher.finish(job)
    assert done.state is State.SUCCEEDED
    assert seen.count(key) == 1, "the other's; a second would trigger those who wait for it again"


@pytest.mark.parametrize("same", [True, False])
def test_a_result_that_another_finisher_wrote_first_counts_only_where_it_is_the_same(world, same):
    job = committed(world)
    body = result_body(job) if same else b"of somebody else"
    meanwhile(world, world.table, "get", lambda: world.put(result_key(job), body))
    done = world.runner().publisher.finish(job)
    assert (done is not None) is same
    assert world.store.read(result_key(job), limit=9999) == body


def test_a_job_that_has_moved_on_gets_no_result(world):
    job = committed(world)
    meanwhile(world, world.store, "copy", lambda: world.table.replace(job, replace(job, reason="moved")))
    assert world.runner().publisher.finish(job) is None
    assert world.store.head(result_key(job)) is None


def failed(world, **more):
    error = JobError(verdict=Verdict.BOX_FAILED, message="no box")
    return committed(world, state=State.FAILED, unpublished=True, error=error, **more)


@pytest.mark.parametrize("moved", [True, False])
def test_an_end_whose_staged_files_are_lost_is_reported_without_them(world, moved):
    job = failed(world)
    world.store.delete_prefix(staging_folder(job.job_id))
    if moved:
        world.table.replace(job, replace(job, reason="moved"))
    told = []
    done = world.runner().publisher.finish(job, on_written=lambda: told.append("told"))
    if moved:
        assert done is None
        assert told == []
    else:
        assert (done.files, done.unpublished, told) == ((), False, ["told"])
        assert world.result(job)["files"] == []


@pytest.mark.parametrize("attempts", [1, 2])
def test_what_an_earlier_attempt_left_is_looked_for_only_where_there_was_one(world, attempts):
    job = failed(world, attempts_total=attempts, files=())
    stale = world.put(result_key(job).replace("result.json", "artifact.json"), b"x")
    world.runner().publisher.finish(job)
    assert (world.store.head(stale) is None) is (attempts > 1)


def test_nobody_is_notified_of_a_job_that_has_moved_on(world):
    job = failed(world, files=())
    told = []
    newer = world.table.replace(job, replace(job, reason="moved"))
    assert world.runner().publisher.finish(job, on_written=lambda: told.append("told")) is None
    assert told == []
    assert world.table.get(job.job_id) == newer


def latest(world, order, name) -> bytes:
    return json.dumps({"latest": 1, "job_id": name, "order": [*order, name]}).encode()


def test_a_newer_version_that_was_published_meanwhile_keeps_its_latest(world):
    job = committed(world, stamp=10.0)
    key = world.put(latest_key(job), latest(world, (1.0, 1.0), "older"))
    newer = latest(world, (99.0, 1.0), "newer")
    point(world, job, key, lambda: world.put(key, newer))
    assert world.store.read(key, limit=9999) == newer


def test_a_job_that_has_moved_on_does_not_point_to_itself_in_a_second_try(world):
    job = committed(world, stamp=10.0)
    key, older = latest_key(job), latest(world, (2.0, 1.0), "another")

    def act():
        world.put(key, older)
        world.table.replace(job, replace(job, reason="moved"))

    point(world, job, key, act)
    assert world.store.read(key, limit=9999) == older


def point(world, job, key, act):
    """Let latest.json follow a job while somebody acts between the look at it and the write."""
    head = world.store.head

    def looked(asked):
        found = head(asked)
        if asked == key:
            world.store.head = head
            act()
        return found

    world.store.head = looked
    world.runner().publisher.latest.point(job)


def test_what_latest_says_of_its_age_is_read_unless_a_newer_program_wrote_it():
    assert read_order(b'{"latest": 1, "order": [1, 2, "a"]}') == (1.0, 2.0, "a")
    assert read_order(b'{"latest": 1.5, "order": [1, 2, "a"]}') == (1.0, 2.0, "a"), "no number of a version"
    assert read_order(b'{"latest": "x", "order": [1, 2, "a"]}') == (1.0, 2.0, "a")
    for odd in (None, b"", b"[]", b"{}", b'{"latest": 1}', b'{"latest": 1, "order": [1]}', b"\xff"):
        assert read_order(odd) is None
    with pytest.raises(RecordNewer):
        read_order(b'{"latest": 2, "order": [1, 2, "a"]}')


def test_an_older_version_that_was_published_meanwhile_gives_way_in_a_second_try(world):
    job = committed(world, stamp=10.0)
    key = latest_key(job)
    point(world, job, key, lambda: world.put(key, latest(world, (2.0, 1.0), "older")))
    assert json.loads(world.store.read(key, limit=9999))["job_id"] == job.job_id


def published(world, **more):
    """A success that latest.json names."""
    job = committed(world, stamp=10.0)
    done = world.runner().publisher.finish(job)
    assert json.loads(world.store.read(latest_key(job), limit=9999))["job_id"] == job.job_id
    return world.table.replace(done, replace(done, **more)) if more else done


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.QUEUED, State.CANCELLED, State.EXPIRED, None])
def test_latest_is_taken_back_from_a_job_that_ended_otherwise_or_is_gone(world, state):
    job = published(world, **({"state": state} if state else {}))
    if state is None:
        world.table.remove(job)
    world.runner().publisher.latest.retract_if_lost(job)
    kept = state in (State.SUCCEEDED, State.QUEUED)
    assert (world.store.head(latest_key(job)) is not None) is kept


def test_latest_falls_back_to_nothing_that_has_not_succeeded(world):
    job = published(world)
    for n, state in enumerate((State.FAILED, State.QUEUED, State.RUNNING, State.CANCELLED)):
        world.table.add(a_job(f"o{n}", state=state, subject="a.csv", stamp=20.0))
    world.runner().publisher.latest.retract(job, fall_back=True)
    assert world.store.head(latest_key(job)) is None


def test_a_very_long_result_is_known_again(world):
    inputs = tuple(
        InputRef(role="primary", name=f"{n}", ref=ObjectRef(key="k" * 200, version="v", digest="d", size=1))
        for n in range(5000)
    )
    job = a_job("p", state=State.FAILED, inputs=inputs)
    body = result_body(job)
    assert len(body) > 1 << 20
    world.put(result_key(job), body)
    assert world.runner().publisher._is_written(job, body)
