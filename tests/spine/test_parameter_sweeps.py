"""A manifest with a sweep makes many jobs of one line: what that costs grows with their number, not with its square."""

import functools

import pytest

from core.jobs import State
from core.verdicts import Verdict
from tests.support.places import PLACES
from tests.support.world import World


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path / "data")
    yield made
    made.close()


class Reads:
    """Counts the rows that a table hands out."""

    def __init__(self, world: World) -> None:
        self.rows = 0
        for name in ("line", "get", "get_all", "add", "replace"):
            setattr(world.table, name, self._counted(getattr(world.table, name)))

    def _counted(self, ask):
        def counted(*args, **more):
            answer = ask(*args, **more)
            self.rows += len(answer) if ask.__name__ in ("line", "get_all") else 1
            return answer

        return counted


def sweep_of(n: int) -> dict[str, list[int]]:
    return {"rate": list(range(n))}


def cost(world: World, act) -> int:
    reads = Reads(world)
    act()
    for name in ("line", "get", "get_all", "add", "replace"):
        delattr(world.table, name)
    return reads.rows


@pytest.mark.parametrize("how", ["new", "again", "swept", "superseded"])
def test_rows_read_grow_with_the_number_of_jobs(world, how):
    spent = []
    for tenant, n in (("small", 10), ("large", 80)):
        keys = world.drop(tenant=tenant, sweep=sweep_of(n))
        if how != "new":
            world.intake.changed(keys)
        if how == "superseded":
            world.clock.move(5)
            world.put(keys[0], b"id\n2\n")
        act = world.sweep if how == "swept" else functools.partial(world.intake.changed, keys)
        spent.append(cost(world, act) / n)
    few, many = spent
    assert many <= few * 1.5, f"rows for each job: {few:.1f} of 10, {many:.1f} of 80"


@pytest.mark.slow
@pytest.mark.parametrize("verdict", [Verdict.OK, Verdict.RULE_ERROR])
def test_rows_read_when_jobs_expire_grow_with_their_number(tmp_path, verdict):
    spent = []
    for n in (10, 80):
        world = World(tmp_path / str(n), workflow_concurrency=0, tenant_concurrency=0)
        runner = world.runner()
        world.intake.changed(world.drop(sweep=sweep_of(n)))
        for _ in range(n):
            world.sandbox.verdict = verdict
            assert world.handle_one(runner)
            world.clock.move(1)
        world.clock.move(49 * 3600)
        spent.append(cost(world, runner.janitor.tidy) / n)
        assert world.table.counts() == {State.EXPIRED: n}
        world.close()
    few, many = spent
    assert many <= few * 1.5, f"rows for each job: {few:.1f} of 10, {many:.1f} of 80"


@pytest.mark.parametrize("place", ["embedded", "cloud"])
def test_every_combination_has_its_job_and_a_new_version_takes_the_place_of_all(tmp_path, place):
    world = World(tmp_path / "data", PLACES[place])
    keys = world.drop(sweep=sweep_of(7))
    world.intake.changed(keys)
    assert sorted(job.params["rate"] for job in world.jobs()) == list(range(7))
    world.clock.move(5)
    world.put(keys[0], b"id\n2\n")
    world.intake.changed(keys)
    world.intake.sweep()
    assert world.table.counts() == {State.QUEUED: 7, State.SKIPPED: 7}
    assert len({job.stamp for job in world.jobs() if job.state is State.QUEUED}) == 1
    world.work_off(world.runner())
    assert world.table.counts() == {State.SUCCEEDED: 7, State.SKIPPED: 7}
    world.close()
