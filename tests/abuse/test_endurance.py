"""Many jobs in a row through one sandbox: nothing grows. A thousand of them run in the benchmark."""

import pytest

from runner.sandbox.cgroups import Cgroups
from tests.bench.bench_sandbox import endurance

JOBS = 150
pytestmark = pytest.mark.slow


@pytest.mark.long
def test_nothing_grows_over_many_jobs(tmp_path):
    before, after = endurance(tmp_path, JOBS)
    for what in ("descriptors", "processes", "zombies", "mounts"):
        assert after[what] == before[what], f"{what} grew from {before[what]} to {after[what]}"
    assert after["rss_mb"] - before["rss_mb"] < 4
    assert after["zygote_rss_mb"] - before["zygote_rss_mb"] < 4
    assert [path.name for path in (tmp_path / "run" / "boxes").iterdir()] == []
    groups = Cgroups.find()
    assert groups is None or not any(groups.holds(path.name) for path in tmp_path.iterdir())
