"""Every version of a standing workflow that ran is kept, whole, until no job names it."""

import json

import pytest

from console.library import Library
from core.jobs import State
from core.keys import DRAFT
from core.versions import version_id
from tests.support.world import MANIFEST, Crash, World

FOLDER = "configs/_shared/members/"
WORKFLOW = MANIFEST | {"tenants": ["*"], "subscribe": ["*.csv"], "config": "config"}


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path, retention_hours=1)
    yield made
    made.close()


def process(world, body=b"id\n1\n", rule=b"x = 1\n", **manifest):
    world.put(f"{FOLDER}config/columns/id.py", rule)
    world.intake.changed([world.put(f"{FOLDER}manifest.json", WORKFLOW | manifest)])
    world.intake.changed([world.put("inbox/acme/a.csv", body)])
    world.work_off(world.runner())
    return max(world.jobs(), key=lambda job: job.stamp)


def kept(world):
    """The keys of each version."""
    found = {}
    for key in world.store.keys("configs/"):
        if "/.versions/" in key:
            version, _, name = key.partition("/.versions/")[2].partition("/")
            found.setdefault(version, set()).add(name)
    return found


def test_a_version_is_kept_with_its_config(world):
    job = process(world)
    assert kept(world) == {version_id(job.config_digest): {"manifest.json", "config/columns/id.py"}}
    folder = f"{FOLDER}.versions/{version_id(job.config_digest)}/"
    assert json.loads(world.store.read(f"{folder}manifest.json", limit=10_000)) == WORKFLOW
    assert world.store.read(f"{folder}config/columns/id.py", limit=100) == b"x = 1\n"


def test_each_version_is_kept_once(world):
    first = process(world)
    second = process(world, b"id\n2\n", b"x = 2\n")
    process(world, b"id\n3\n", b"x = 2\n")
    assert kept(world).keys() == {version_id(first.config_digest), version_id(second.config_digest)}


def test_an_overlay_is_kept_beside_itself_and_is_no_other_version_of_the_workflow(world):
    world.put("configs/acme/members.overlay.json", {"overlay": 1, "reading": {"delimiter": ";"}})
    job = process(world)
    assert version_id(job.workflow_version) in kept(world)
    (key,) = list(world.store.keys("configs/acme/.versions/"))
    world.store.delete("configs/acme/members.overlay.json")
    world.control.reset(job.job_id)
    world.work_off(world.runner())
    assert world.sandbox.orders[-1].manifest["reading"]["delimiter"] == ";"
    assert key.endswith(".overlay.json")


def test_a_manifest_beside_its_file_is_not_kept(world):
    world.intake.changed(world.drop())
    world.work_off(world.runner())
    assert not kept(world)


def test_a_job_runs_again_as_it_was_after_its_package_changed(world):
    job = process(world)
    world.put(f"{FOLDER}config/columns/id.py", b"x = 2\n")
    seen = []
    world.control.reset(job.job_id)
    world.sandbox.during = lambda: seen.append(world.table.get(job.job_id).config)
    world.work_off(world.runner())
    assert world.table.get(job.job_id).state is State.SUCCEEDED
    assert seen == [job.config]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_whatever_dies_while_a_version_is_kept_it_is_whole_or_not_there(tmp_path, after):
    for step in range(200):
        world = World(tmp_path / f"{step}-{after}")
        world.put(f"{FOLDER}config/columns/id.py", b"x = 1\n")
        world.intake.changed([world.put(f"{FOLDER}manifest.json", WORKFLOW)])
        world.intake.changed([world.put("inbox/acme/a.csv", b"id\n1\n")])
        runner = world.runner()
        world.crasher.arm(step, after=after)
        try:
            world.handle_one(runner)
        except Crash:
            pass
        else:
            world.close()
            break
        for names in kept(world).values():
            assert "manifest.json" not in names or names == {"manifest.json", "config/columns/id.py"}, step
        world.crasher.arm(None)
        world.clock.move(100)
        world.work_off(world.runner())
        assert list(kept(world).values()) == [{"manifest.json", "config/columns/id.py"}], step
        assert [job.state for job in world.jobs()] == [State.SUCCEEDED]
        world.close()
    assert step > 5


def test_a_store_that_refuses_to_keep_costs_no_job_anything(world):
    put = world.store.put

    def refusing(key, *args, **more):
        if "/.versions/" in key:
            raise PermissionError(key)
        return put(key, *args, **more)

    world.store.put = refusing
    assert process(world).state is State.SUCCEEDED
    assert "version_not_kept" in world.log._stream.getvalue()


def test_a_version_goes_with_the_last_job_that_names_it(world):
    first = process(world)
    second = process(world, b"id\n2\n", b"x = 2\n")
    janitor = world.runner().janitor
    forget = janitor.versions.forget
    later = world.clock.now() + 10 * 365 * 86400  # whenever they were kept
    assert forget(world.table, later, frozenset()) == 0, "both are named"
    world.control.remove(first.job_id, keep_input=True)
    folder = f"{FOLDER}.versions/{version_id(first.config_digest)}/"
    assert forget(world.table, later, frozenset({folder})) == 0
    assert forget(world.table, 0.0, frozenset()) == 0, "one that was kept just now stays"
    assert forget(world.table, later, frozenset()) == 2
    assert kept(world).keys() == {version_id(second.config_digest)}
    process(world, b"id\n4\n")
    assert version_id(first.config_digest) in kept(world), "it is kept again when it runs again"


def test_expired_jobs_name_no_version(world):
    process(world)
    world.clock.move(2 * 3600)
    world.work_off(world.runner())
    assert [job.state for job in world.jobs()] == [State.EXPIRED]
    assert world.runner().janitor.versions.forget(world.table, world.clock.now() + 1e9, frozenset()) == 2
    assert not kept(world)


def test_a_draft_is_not_kept(world):
    world.put(f"{FOLDER}{DRAFT}manifest.json", WORKFLOW)
    world.sweep()
    assert not kept(world)


def test_the_version_before_the_last_promotion_stays_after_its_last_job(world):
    first = process(world)
    library = Library(world.store)
    live = library.find("members")
    draft = {"manifest.json": json.dumps(WORKFLOW).encode(), "config/columns/id.py": b"RULE = 2\n"}
    library.promote(live, library.put_draft(live, draft))
    world.control.remove(first.job_id)
    later = world.clock.now() + 10 * 365 * 86400
    world.runner().janitor.versions.forget(world.table, later, frozenset())
    live = library.find("members")
    assert library.load(live, library.before_live(live)).id == version_id(first.config_digest)
