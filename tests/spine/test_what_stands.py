"""Of several versions of one file the one that stands in the inbox decides, whatever the clocks say."""

import json
import os

import pytest

from core.jobs import State
from core.ports import PutsTogether
from core.verdicts import Verdict
from tests.support.places import PLACES
from tests.support.stamps import stamped
from tests.support.world import MANIFEST, World, planned

KEY = "inbox/acme/d/a.csv"
A, B = b"id\n1\n", b"id\n2\n"


@pytest.fixture(params=["embedded", "versioned cloud", "cloud"])
def world(request, tmp_path):
    made = World(tmp_path, PLACES[request.param])
    made.put("inbox/acme/d/manifest.json", MANIFEST)
    yield made
    made.close()


@pytest.fixture
def equal_stamps(world):
    """A store whose times have whole seconds, and a sender who is quicker than that."""
    return stamped(world, lambda info: 1_000_000_000.0)


def drop(world, body):
    world.intake.changed([world.put(KEY, body)])


def job_of(world, body):
    """The job that was made of this content."""
    digests = {b: world.store.put(f"configs/acme/{n}", b).digest for n, b in enumerate((A, B))}
    (found,) = [j for j in world.jobs() if j.inputs and j.inputs[0].ref.digest == digests[body]]
    return found


def latest(world):
    return json.loads(world.store.read("outputs/acme/d/a.csv/members/latest.json", limit=10_000))["job_id"]


def test_latest_follows_a_file_that_is_put_back(world):
    runner = world.runner()
    for body in (A, B, A):
        drop(world, body)
        world.work_off(runner)
        assert latest(world) == job_of(world, body).job_id
    assert job_of(world, A).attempts_total == 1, "the same content is not run again"


def test_latest_follows_a_file_that_is_put_back_and_found_by_the_sweep(world):
    runner = world.runner()
    for body in (A, B, A, B, A):
        world.put(KEY, body)
        world.sweep()
        world.work_off(runner)
        assert latest(world) == job_of(world, body).job_id


def test_result_json_of_what_is_put_back_stays_as_it_is(world):
    runner = world.runner()
    for body in (A, B):
        drop(world, body)
        world.work_off(runner)
    before = world.result(job_of(world, A))
    drop(world, A)
    world.work_off(runner)
    assert world.result(job_of(world, A)) == before


def test_what_is_put_back_is_kept_as_long_as_what_is_new(world):
    runner = world.runner()
    for body in (A, B):
        drop(world, body)
        world.work_off(runner)
    world.clock.move(47 * 3600)
    drop(world, A)
    world.work_off(runner)
    world.clock.move(2 * 3600)
    world.work_off(runner)
    assert [job_of(world, body).state for body in (A, B)] == [State.SUCCEEDED, State.EXPIRED]
    assert latest(world) == job_of(world, A).job_id


def test_the_same_content_again_costs_no_write(world):
    drop(world, A)
    world.work_off(world.runner())
    before = job_of(world, A).rev
    drop(world, A)
    world.sweep()
    assert job_of(world, A).rev == before


@pytest.mark.parametrize("when", ["running", "queued again"])
def test_a_file_put_back_while_its_first_job_is_under_way_is_the_newest(world, when):
    first, second = world.runner(), world.runner()

    def meanwhile():
        drop(world, B)
        world.handle_one(second)
        drop(world, A)

    drop(world, A)
    world.sandbox.during = meanwhile
    world.sandbox.verdict = Verdict.BOX_FAILED if when == "queued again" else Verdict.OK
    world.handle_one(first)
    world.work_off(first)
    assert [job_of(world, body).state for body in (A, B)] == [State.SUCCEEDED, State.SUCCEEDED]
    assert latest(world) == job_of(world, A).job_id


def test_a_file_put_back_while_its_result_is_being_published_is_found_by_the_sweep(world):
    first, second = world.runner(), world.runner()
    drop(world, A)
    name = "put_new" if isinstance(world.store, PutsTogether) else "put"
    write = getattr(world.store, name)

    def slow(*args, **more):
        if name == "put" and not args[0].startswith("outputs/"):
            return write(*args, **more)
        setattr(world.store, name, write)
        drop(world, B)
        world.handle_one(second)
        drop(world, A)
        return write(*args, **more)

    setattr(world.store, name, slow)
    world.handle_one(first)
    world.sweep()
    world.work_off(first)
    assert latest(world) == job_of(world, A).job_id


def test_a_slow_finisher_does_not_take_latest_back(world):
    runner = world.runner()
    for body in (A, B, A):
        drop(world, body)
        if body is A and len(world.jobs()) == 2:
            break
        world.work_off(runner)
    old = job_of(world, A)
    assert old.unpublished
    drop(world, B)
    world.work_off(runner)
    world.runner().publisher.finish(old)
    assert latest(world) == job_of(world, B).job_id


def test_a_put_back_file_that_waits_for_its_look_up_table_says_so(world):
    needs = MANIFEST | {"inputs": {"primary": ["*.csv"], "auxiliary": [{"name": "p", "path": "lookups/p.csv"}]}}
    world.put("inbox/acme/d/manifest.json", needs)
    for body in (A, B, A):
        drop(world, body)
    assert [job_of(world, body).state for body in (A, B)] == [State.AWAITING, State.SKIPPED]
    world.intake.changed([world.put("inbox/acme/d/lookups/p.csv", b"code\n")])
    world.work_off(world.runner())
    assert [job_of(world, body).state for body in (A, B)] == [State.SUCCEEDED, State.SKIPPED]


def test_a_changed_standing_workflow_takes_what_is_put_back(world):
    world.store.delete("inbox/acme/d/manifest.json")
    standing = MANIFEST | {"subscribe": ["**/*.csv"]}
    runner = world.runner()
    world.put("configs/acme/s/manifest.json", standing)
    drop(world, A)
    world.work_off(runner)
    world.intake.changed([world.put("configs/acme/s/manifest.json", standing | {"description": "second"})])
    for body in (B, A):
        drop(world, body)
        world.work_off(runner)
    newest = world.table.get(latest(world))
    assert newest.inputs[0].ref.digest == world.store.head(KEY).digest


# Equal stamps


def two_handlers_that_overtake_each_other(world, *bodies):
    """Each looks at its own version and has yet to record it: as two Lambdas do whose events came a moment apart."""
    return [planned(world.new_intake(), world.put(KEY, body)) for body in bodies]


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 1, 0), (1, 0, 1)])
def test_two_versions_of_one_second_are_never_both_superseded(world, equal_stamps, order):
    plans = two_handlers_that_overtake_each_other(world, A, B)
    for n in order:
        plans[n]()
    runner = world.runner()
    world.clock.move(5)
    world.work_off(runner)
    world.sweep()
    world.work_off(runner)
    assert job_of(world, B).state is State.SUCCEEDED, "what stands in the inbox was not worked on"
    assert latest(world) == job_of(world, B).job_id


def test_latest_follows_what_is_there_where_stamps_are_equal(world, equal_stamps):
    runner = world.runner()
    for body in (A, B, A, B):
        drop(world, body)
        world.work_off(runner)
        assert latest(world) == job_of(world, body).job_id


def test_a_clock_that_went_back_loses_no_version(world):
    runner, stamps = world.runner(), {}
    stamped(world, lambda info: stamps.setdefault(info.version, 1_000_000_000.0 - 60 * len(stamps)))
    for body in (A, B):
        drop(world, body)
        world.work_off(runner)
        assert job_of(world, body).state is State.SUCCEEDED
        assert latest(world) == job_of(world, body).job_id


def test_a_drop_of_several_files_of_one_second_ends_with_all_of_them(world, equal_stamps):
    world.put("inbox/acme/d/manifest.json", MANIFEST | {"inputs": {"primary": ["*.csv"], "per": "drop"}})
    world.intake.changed([world.put("inbox/acme/d/a.csv", A)])
    late = planned(world.new_intake(), "inbox/acme/d/a.csv")  # saw one file, and is slow
    world.intake.changed([world.put("inbox/acme/d/b.csv", B)])
    late()
    runner = world.runner()
    world.clock.move(5)
    world.work_off(runner)
    done = {len(j.inputs): j.state for j in world.jobs()}
    assert done[2] is State.SUCCEEDED


def test_a_job_that_lost_its_look_up_table_to_a_newer_one_is_taken_up_again(world):
    """Its input still stands, so nothing has superseded it."""
    if isinstance(getattr(world.store, "root", None), os.PathLike):
        aux = {"primary": ["*.csv"], "auxiliary": [{"name": "p", "path": "lookups/p.csv"}]}
        world.put("inbox/acme/d/lookups/p.csv", b"code\nA\n")
        world.intake.changed(world.drop(inputs=aux))
        world.put("inbox/acme/d/lookups/p.csv", b"code\nB\n")
        runner = world.runner()
        world.work_off(runner)
        world.sweep()
        world.work_off(runner)
        assert [j.state for j in world.jobs()] == [State.SUCCEEDED]
