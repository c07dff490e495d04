"""What a sweep multiplies is counted first: rows, the files that they name, and how many are planned at once."""

import pytest

from core.drops import MAX_SWEPT_REFS
from core.errors import ManifestInvalid
from core.jobs import State
from handlers import planning
from infra.parsing import read_manifest
from tests.support.world import MANIFEST, World

MANY = {"rate": list(range(300))}


def test_parameters_are_counted_before_they_are_multiplied():
    body = b'{"manifest": 1, "name": "m", "fields": [{"name": "a"}], "sweep": {"x": [%s]}, "params": {%s}}' % (
        b",".join(b"%d" % n for n in range(300)),
        b",".join(b'"k%d": 0' % n for n in range(50_000)),
    )
    with pytest.raises(ManifestInvalid, match=r"\$\.params: has \d+ bytes"):
        read_manifest(body)


def test_so_many_jobs_are_planned_at_once(world: World, monkeypatch):
    monkeypatch.setattr(planning, "_AT_ONCE", 700)
    planned = []
    real = planning.Recorder.record

    def record(self, sets, **more):
        planned.append(sum(len(one.jobs) for one in sets))
        return real(self, sets, **more)

    monkeypatch.setattr(planning.Recorder, "record", record)
    world.put("inbox/acme/d/manifest.json", MANIFEST | {"sweep": MANY})
    for n in range(5):
        world.put(f"inbox/acme/d/{n}.csv", b"id\n1\n")
    world.intake.changed(["inbox/acme/d/manifest.json"])
    assert planned == [600, 600, 300]
    assert len(world.jobs()) == 1500


def test_a_sweep_whose_rows_would_name_too_many_files_waits_with_the_reason(world: World):
    size = MAX_SWEPT_REFS // 300 + 1
    for n in range(size):
        world.put(f"inbox/acme/d/config/columns/c{n}.py", b"")
    world.put("inbox/acme/d/a.csv", b"id\n1\n")
    manifest = world.put("inbox/acme/d/manifest.json", MANIFEST | {"sweep": MANY})
    world.intake.changed([manifest])
    (job,) = world.jobs()
    assert (job.state, "too many for each of 300 jobs" in job.reason) == (State.AWAITING, True)
    world.put("inbox/acme/d/manifest.json", MANIFEST | {"sweep": {"rate": [1, 2]}})
    world.intake.changed([manifest])
    assert [job.state for job in world.jobs()] == [State.QUEUED] * 2
