"""Looks at the bucket that few drops need: shared packages, packages of no use, stamps that lie, settling."""

from dataclasses import replace

import pytest

from core import drops
from core.jobs import State
from tests.support.world import MANIFEST, World

SHARED = MANIFEST | {"config": "configs/_shared/p"}


def test_whoever_waits_for_a_shared_package_starts_when_it_comes(world):
    world.intake.changed([world.put("inbox/acme/lone.csv", b"id\n9\n")])
    for tenant in ("acme", "other"):
        world.intake.changed(
            [world.put(f"inbox/{tenant}/d/a.csv", b"id\n1\n"), world.put(f"inbox/{tenant}/d/manifest.json", SHARED)]
        )
    assert {job.state for job in world.jobs()} == {State.AWAITING}
    page = world.table.page
    world.table.page = lambda query, *, limit=1, cursor=None: page(query, limit=1, cursor=cursor)
    report = world.intake.changed([world.put("configs/_shared/p/columns/id.py", b"")])
    world.table.page = page
    assert report.failed == []
    states = {job.subject: job.state for job in world.jobs() if job.subject == "d/a.csv"}
    assert states == {"d/a.csv": State.QUEUED}
    assert sorted(job.tenant for job in world.jobs() if job.state is State.QUEUED) == ["acme", "other"]
    assert [job.subject for job in world.jobs() if job.state is State.AWAITING] == ["lone.csv"]


def test_a_package_of_no_use_makes_no_job_and_no_failure(world, monkeypatch):
    monkeypatch.setattr(drops, "MAX_PACKAGE_FILES", 1)
    for name in ("a.py", "b.py"):
        world.put(f"inbox/acme/d/config/columns/{name}", b"")
    report = world.intake.changed(world.drop())
    assert report.failed == []
    assert [job for job in world.jobs() if job.state is State.QUEUED] == []


def test_a_version_that_stands_is_worked_on_though_the_one_before_it_has_a_later_stamp(world):
    world.intake.changed(world.drop(body=b"id\n1\n"))
    (first,) = world.jobs()
    first = world.table.replace(first, replace(first, stamp=first.stamp + 100))
    report = world.intake.changed(world.drop(body=b"id\n2\n"))
    assert report.failed == []
    assert [job.job_id for job in report.recorded.superseded] == [first.job_id]
    (second,) = report.recorded.created
    assert second.state is State.QUEUED
    assert second.stamp > first.stamp


@pytest.mark.parametrize(("per", "delayed"), [("drop", 1), ("file", 0)])
def test_a_drop_of_many_files_starts_when_it_has_been_quiet_for_a_moment(tmp_path, per, delayed):
    world = World(tmp_path / "w", settle_seconds=5.0)
    world.intake.changed(world.drop(inputs={"per": per, "primary": ["*.csv"]}))
    assert (world.queue.stats().delayed, world.queue.stats().ready) == (delayed, 1 - delayed)
    world.clock.move(5)
    assert world.queue.stats().ready == 1
    world.close()


def test_a_package_of_many_files_settles_too(tmp_path):
    world = World(tmp_path / "w", settle_seconds=5.0)
    for name in ("a.py", "b.py"):
        world.put(f"inbox/acme/d/config/columns/{name}", b"")
    world.intake.changed(world.drop())
    assert world.queue.stats().delayed == 1
    world.close()
