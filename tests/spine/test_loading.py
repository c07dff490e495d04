"""A result goes into a table once, whatever happens on the way."""

import io
import itertools
import json
import sqlite3

import openpyxl
import pytest

from core.jobs import State
from core.keys import job_folder
from infra.loads import Loads
from runner.attempt import Boxes
from runner.sandbox.process import ProcessSandbox
from tests.support.world import Crash, World

LOADED = {"output": {"formats": ["xlsx", "csv"], "load": {"table": "members"}}}


@pytest.fixture
def world(tmp_path):
    """A world whose boxes run the engine."""
    made = World(tmp_path / "data")
    made.boxes = Boxes(ProcessSandbox(run_dir=tmp_path / "run"), made.boxes.layers)
    yield made
    made.close()


@pytest.fixture
def runner(world):
    return world.runner()


def finish(world, runner):
    world.work_off(runner)
    for _ in range(3):
        runner.janitor.chores()


def rows(world):
    file = world.settings.storage_data_dir / "loaded.sqlite"
    if not file.exists():
        return []
    with sqlite3.connect(file) as database:
        return list(database.execute('SELECT _ade_job, id, source_file, source_row FROM "ade_acme.members" ORDER BY 2'))


def noted(world, job):
    return json.loads(world.store.read(job_folder(job) + "load.json", limit=10_000))


def test_a_result_is_loaded_after_it_was_published_and_names_its_source(world, runner):
    world.intake.changed(world.drop(**LOADED))
    finish(world, runner)
    (job,) = world.jobs()
    assert job.state is State.SUCCEEDED
    assert rows(world) == [(job.job_id, "1", "a.csv", 2)]
    assert (noted(world, job)["status"], noted(world, job)["rows"]) == ("loaded", 1)
    assert not job.notices


def test_a_database_that_is_away_takes_it_later_without_another_run(world, runner):
    file = world.settings.storage_data_dir / "loaded.sqlite"
    file.mkdir()  # nothing can be opened there
    world.intake.changed(world.drop(**LOADED))
    finish(world, runner)
    (job,) = world.jobs()
    assert (job.state, job.attempts_total, len(job.notices)) == (State.SUCCEEDED, 1, 1)
    file.rmdir()
    world.clock.move(60)
    finish(world, runner)
    (job,) = world.jobs()
    assert (len(rows(world)), job.attempts_total, job.notices) == (1, 1, ())


def test_a_result_of_corrected_rejects_takes_the_place_of_the_rows_of_the_first(world, runner):
    checked = {"fields": [{"name": "id"}, {"name": "n", "type": "integer"}], "on_error": "split"}
    output = {**LOADED["output"], "rejects": True}
    world.intake.changed(world.drop(body=b"id,n\n1,1\n2,x\n3,3\n", **checked, output=output))
    finish(world, runner)
    (first,) = world.jobs()
    assert [row[:2] for row in rows(world)] == [(first.job_id, "1"), (first.job_id, "3")]
    book = openpyxl.load_workbook(io.BytesIO(world.store.read(job_folder(first) + "rejects.xlsx", limit=1 << 20)))
    book.worksheets[0]["B2"] = 2
    fixed = io.BytesIO()
    book.save(fixed)
    world.intake.changed([world.put("inbox/acme/d/fixed.xlsx", fixed.getvalue())])
    finish(world, runner)
    (second,) = [job for job in world.jobs() if job.job_id != first.job_id]
    assert second.state is State.SUCCEEDED, second.error
    assert [row[:2] for row in rows(world)] == [(second.job_id, "1"), (second.job_id, "2"), (second.job_id, "3")]


def test_a_load_that_fails_as_nobody_expected_is_tried_less_and_less_and_keeps_no_notice_back(world, runner):
    world.intake.changed(world.drop(notify=[{"to": "https://hooks.example.com/"}], **LOADED))
    world.handle_one(runner)
    (job,) = world.jobs()
    unwritable = world.settings.storage_data_dir / "bucket" / job_folder(job) / "load.json"
    unwritable.mkdir(parents=True)
    runner.janitor.chores()
    (job,) = world.jobs()
    assert [(one.to.partition(":")[0], one.tries) for one in job.notices] == [("load", 1)]
    assert job.notices[0].next_at > world.clock.now()
    for _ in range(40):
        world.clock.move(3600)
        runner.janitor.chores()
    assert (len(rows(world)), world.jobs()[0].notices) == (1, ())


def test_a_load_says_how_many_characters_it_replaced(world, runner):
    world.intake.changed(world.drop(body=b"id,name\n1,a\0b\n2,c\n", **LOADED))
    finish(world, runner)
    (job,) = world.jobs()
    assert (noted(world, job)["status"], noted(world, job)["rows"], noted(world, job)["replaced"]) == ("loaded", 2, 1)


def test_a_connection_that_the_operator_does_not_offer_is_refused_and_says_so(world, runner):
    load = {"table": "members", "connection": "warehouse"}
    world.intake.changed(world.drop(output={"formats": ["csv"], "load": load}))
    finish(world, runner)
    (job,) = world.jobs()
    assert job.state is State.SUCCEEDED
    assert noted(world, job)["status"] == "refused"
    assert "warehouse" in noted(world, job)["error"]
    assert "local" in noted(world, job)["error"]


def test_unloading_a_job_takes_its_rows_out(world, runner):
    world.intake.changed(world.drop(**LOADED))
    finish(world, runner)
    (job,) = world.jobs()
    loads = Loads(world.settings, world.store, world.clock)
    assert loads.unload(job) == 1
    assert rows(world) == []
    assert noted(world, job)["status"] == "unloaded"


def test_a_load_that_waits_for_its_database_is_given_up_when_its_job_is_unloaded(world, runner):
    file = world.settings.storage_data_dir / "loaded.sqlite"
    file.mkdir()  # nothing can be opened there
    world.intake.changed(world.drop(notify=[{"to": "https://hooks.example.com/"}], **LOADED))
    finish(world, runner)
    (job,) = world.jobs()
    others = [notice for notice in job.notices if not notice.to.startswith("load:")]
    assert world.control.withdraw_loads(job.job_id)
    assert world.jobs()[0].notices == tuple(others)
    assert not world.control.withdraw_loads(job.job_id), "there is none any more"
    file.rmdir()
    world.clock.move(60)
    finish(world, runner)
    assert rows(world) == []


def test_a_job_that_is_reset_loads_its_rows_anew_and_not_twice(world, runner):
    world.intake.changed(world.drop(**LOADED))
    finish(world, runner)
    (job,) = world.jobs()
    world.control.reset(job.job_id)
    finish(world, runner)
    assert len(rows(world)) == 1


@pytest.mark.long
def test_a_process_that_dies_at_any_step_of_a_load_loads_it_once(world):
    for n in itertools.count():
        runner = world.runner()
        world.intake.changed(world.drop(name=f"a{n}.csv", body=b"id\n%d\n" % n, **LOADED))
        world.handle_one(runner)
        world.crasher.arm(n // 2, after=bool(n % 2))
        try:
            runner.janitor.chores()
            break
        except Crash:
            world.crasher.arm(None)
            finish(world, world.runner())
    world.crasher.arm(None)
    finish(world, world.runner())
    assert n > 10, "steps of a load"
    assert [row[1] for row in rows(world)] == sorted(map(str, range(n + 1)))


def test_tenants_load_into_tables_of_their_own(world, runner):
    world.intake.changed(world.drop(**LOADED))
    world.intake.changed(world.drop(tenant="other", **LOADED))
    finish(world, runner)
    assert len(rows(world)) == 1
