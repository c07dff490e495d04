"""The files of a split are published, downloaded and collected like any other file of a result."""

import json

import pytest

from core.jobs import State
from core.keys import job_folder, result_key
from runner.attempt import Boxes
from runner.sandbox.process import ProcessSandbox
from tests.support.world import World

SPLIT = {
    "fields": [{"name": "id", "allowed": ["1", "2"]}],
    "output": {"formats": ["csv", "jsonl", "parquet"], "split_by": "id"},
}
KINDS = SPLIT["output"]["formats"]


@pytest.fixture
def world(tmp_path):
    """A world whose boxes run the engine."""
    made = World(tmp_path / "data")
    made.boxes = Boxes(ProcessSandbox(run_dir=tmp_path / "run"), made.boxes.layers)
    yield made
    made.close()


def published(world, job):
    return {key.removeprefix(job_folder(job)) for key in world.store.keys(job_folder(job))}


def test_parts_are_published_and_collected_with_their_result(world):
    world.intake.changed(world.drop(keep_days=1, **SPLIT))
    runner = world.runner()
    world.work_off(runner)
    (job,) = world.jobs()
    assert job.state is State.SUCCEEDED
    result = json.loads(world.store.read(result_key(job), limit=1 << 20))
    parts = {file["name"]: (file["value"], file["rows"]) for file in result["files"] if "rows" in file}
    rows = {"1": ("1", 1), "2": ("2", 0), "_other": (None, 0)}
    assert parts == {f"normalized-{label}.{kind}": facts for label, facts in rows.items() for kind in KINDS}
    assert published(world, job) >= {"normalized.jsonl", *parts}
    world.clock.move(23 * 3600)
    world.work_off(runner)
    assert published(world, job) >= parts.keys()
    world.intake.changed(world.drop(body=b"id\n2\n", keep_days=1, **SPLIT))  # the newest result of a file stays longer
    world.work_off(runner)
    world.clock.move(49 * 3600)
    world.work_off(runner)
    assert published(world, world.table.get(job.job_id)) == {"result.json"}
