"""A sweep costs what changed: what it found in order is not planned again until the bucket or a row changes."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.jobs import State
from core.ports import LineMark
from handlers import planning
from tests.support.effort import QUICK
from tests.support.world import MANIFEST, Crash, World

DAY = 86400.0


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "data")
    yield made
    made.close()


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files for which jobs were planned, or which no manifest selects."""
    found: list[str] = []
    plan, unselected = planning.plan, planning.unselected

    def noted(workflow: Any, primaries: Any, **more: Any) -> Any:
        found.extend(info.key for info in primaries)
        return plan(workflow, primaries, **more)

    def noted_unselected(info: Any, *, reason: str, **more: Any) -> Any:
        if reason:
            found.append(info.key)
        return unselected(info, reason=reason, **more)

    monkeypatch.setattr(planning, "plan", noted)
    monkeypatch.setattr(planning, "unselected", noted_unselected)
    return found


@pytest.fixture
def calm(world: World, planned: list[str]) -> World:
    """Three files, one of which no manifest selects, swept until nothing was left to do."""
    world.drop(name="a.csv")
    world.drop(name="b.csv")
    world.put("inbox/acme/other/c.csv", b"id\n1\n")
    world.sweep()
    world.work_off(world.runner())
    for _ in range(2):
        world.sweep()
    planned.clear()
    return world


def test_what_is_in_order_is_not_planned_again(calm: World, planned: list[str]):
    calm.sweep()
    assert planned == []
    assert {job.state for job in calm.jobs()} == {State.SUCCEEDED, State.AWAITING}


def test_not_by_another_process_either(calm: World, planned: list[str]):
    calm.new_intake().sweep()
    assert planned == []


def test_a_new_file_is_planned_alone(calm: World, planned: list[str]):
    calm.put("inbox/acme/d/new.csv", b"id\n9\n")
    calm.sweep()
    assert planned == ["inbox/acme/d/new.csv"]


def test_a_changed_file_is_planned_alone(calm: World, planned: list[str]):
    calm.put("inbox/acme/d/a.csv", b"id\n9\n")
    calm.sweep()
    assert planned == ["inbox/acme/d/a.csv"]
    assert len([job for job in calm.jobs() if job.subject == "d/a.csv"]) == 2


def test_a_file_that_was_dropped_again_unchanged_retries_its_failed_job(calm: World, planned: list[str]):
    calm.put("inbox/acme/d/a.csv", b"id\n1\n")
    calm.sweep()
    assert planned == ["inbox/acme/d/a.csv"]


@pytest.mark.parametrize(
    ("key", "body"),
    [
        ("inbox/acme/d/manifest.json", MANIFEST | {"priority": 1}),
        ("inbox/acme/d/config/columns/id.py", b"def transform(*, values):\n    return {'values': values}\n"),
        ("configs/acme/members.memory.json", b"{}"),
        ("inbox/acme/d/a.csv.decision.json", b"{}"),
    ],
)
def test_whatever_else_jobs_are_planned_from_counts_too(calm: World, planned: list[str], key: str, body: Any):
    calm.put(key, body)
    calm.sweep()
    assert {"inbox/acme/d/a.csv", "inbox/acme/d/b.csv"} <= set(planned)


def test_a_manifest_for_a_file_that_none_selected(calm: World, planned: list[str]):
    calm.put("inbox/acme/other/manifest.json", MANIFEST)
    calm.sweep()
    assert planned == ["inbox/acme/other/c.csv"]
    (job,) = [job for job in calm.jobs() if job.subject == "other/c.csv"]
    assert (job.workflow, job.state) == ("members", State.QUEUED)


def test_a_row_that_is_gone_is_made_again(calm: World, planned: list[str]):
    (job,) = [job for job in calm.jobs() if job.subject == "d/a.csv"]
    assert calm.table.remove(job)
    calm.sweep()
    assert planned == ["inbox/acme/d/a.csv"]
    assert [job.state for job in calm.jobs() if job.subject == "d/a.csv"] == [State.QUEUED]


def test_a_row_that_was_written_is_looked_at_again(calm: World, planned: list[str]):
    for job in calm.jobs():
        if job.subject in ("d/a.csv", "other/c.csv"):
            calm.table.replace(job, replace(job, reason="by hand"))
    calm.sweep()
    assert sorted(planned) == ["inbox/acme/d/a.csv", "inbox/acme/other/c.csv"]


def test_a_row_that_somebody_wrote_with_a_sqlite_shell_too(calm: World, planned: list[str]):
    with calm.table._db.write() as db:
        db.execute("DELETE FROM jobs")
    calm.sweep()
    assert len(planned) == 3
    assert len(calm.jobs()) == 3


def test_everything_is_planned_again_within_a_day(calm: World, planned: list[str]):
    calm.clock.move(DAY / 2 - 60)
    calm.sweep()
    assert planned == []
    calm.clock.move(DAY / 2 + 60)
    calm.sweep()
    assert len(planned) == 3


def test_a_line_whose_rows_changed_meanwhile_is_not_marked(calm: World):
    (job,) = [job for job in calm.jobs() if job.subject == "d/a.csv"]
    rows = frozenset({(job.job_id, job.rev)})
    calm.table.mark({job.line: LineMark(b"x", rows)})
    assert calm.table.marked([job.line, "another"]) == {job.line: b"x"}
    calm.table.replace(job, replace(job, reason="changed"))
    assert calm.table.marked([job.line]) == {}
    calm.table.mark({job.line: LineMark(b"x", rows)})
    assert calm.table.marked([job.line]) == {}


def test_a_crash_at_any_step_of_a_sweep_leaves_no_mark_that_hides_work(world: World):
    """The next sweep by another process does what the first one had begun."""
    for steps in range(8 if QUICK else 40):
        world.put(f"inbox/acme/{steps}/a.csv", b"id\n1\n")
        world.put(f"inbox/acme/{steps}/manifest.json", MANIFEST)
        world.crasher.arm(steps)
        with contextlib.suppress(Crash):
            world.new_intake().sweep()
        world.crasher.arm(None)
        world.new_intake().sweep()
        job = next(job for job in world.jobs() if job.subject == f"{steps}/a.csv" and job.workflow == "members")
        assert job.state is State.QUEUED
        assert job.enqueued_at is not None
        assert not [job for job in world.jobs() if job.workflow == "-"]
