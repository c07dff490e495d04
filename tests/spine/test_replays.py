"""History once more with another version: in a place of its own, as ordinary jobs that give way, from wherever it stopped."""

import json
from pathlib import Path

import pytest

from console.library import DRAFTED, LIVE, Library
from console.replays import DIFFERS, SAME, Replayer
from core.errors import UsageError
from core.jobs import ENDED, State
from core.keys import job_folder
from core.replays import PRIORITY
from core.verdicts import Verdict
from tests.support.places import PLACES
from tests.support.world import MANIFEST, Crash, World

SHARED = "configs/_shared/members/manifest.json"
WORKFLOW = MANIFEST | {"tenants": ["*"], "subscribe": ["*.csv"]}
HOOK = "https://example.org/hook"


@pytest.fixture(params=["embedded", "cloud"])
def world(request, tmp_path):
    made = World(tmp_path, PLACES[request.param])
    yield made
    made.close()


@pytest.fixture
def local(tmp_path):
    made = World(tmp_path)
    yield made
    made.close()


def past(world, count=3, **manifest):
    """Files that were processed, and a draft of the next version."""
    world.intake.changed([world.put(SHARED, WORKFLOW | manifest)])
    for n in range(count):
        world.intake.changed([world.put(f"inbox/{'north' if n % 2 else 'acme'}/{n}.csv", b"id\n%d\n" % n)])
    world.work_off(world.runner(), rounds=100 * count)
    library = Library(world.store)
    library.put_draft(library.find("members"), {"manifest.json": draft(**manifest)})


def draft(**more):
    return json.dumps(WORKFLOW | {"fields": [{"name": "number"}]} | more).encode()


def replayer(world, stack=None, which=DRAFTED, **scope):
    stack = stack or world.fragile
    library = Library(stack.store)
    standing = library.find("members")
    scope = {"tenant": None, "since": None} | scope
    return Replayer(stack, standing, library.load(standing, which), **scope)


def feed(world, made, pairs, *, at_once=2, most=100_000):
    """Let the replay and a runner take turns; ends after `most` looks at it."""
    runner, looks = world.runner(), [0]
    world.table.wait = lambda seconds: None

    def seen(_ended):
        looks[0] += 1
        open_ = [j for j in world.jobs() if j.replay and j.state not in ENDED]
        assert len(open_) <= at_once, "its own cap"
        world.handle_one(runner)

    return made.feed(pairs, at_once=at_once, stopped=lambda: looks[0] >= most, seen=seen)


def replays(world):
    return [j for j in world.jobs() if j.replay]


def outside(world):
    """All that is not the replay's own."""
    keys = [k for k in world.store.keys("") if not k.startswith(("replays/", "work/")) and "/.versions/" not in k]
    return {key: world.store.read(key, limit=10_000_000) for key in keys}


class NoBoxes:
    """Compares results by their size, in place of the engine."""

    def compare(self, before, after):
        same = before.rows.stat().st_size == after.rows.stat().st_size
        return {"same": same, "changes": [] if same else [{"what": "rows", "count": 1, "breaking": True}]}


def test_it_publishes_to_a_place_of_its_own_and_nowhere_else(world):
    past(world, notify=[{"to": HOOK}])
    before, rows = outside(world), {j.job_id: j for j in world.jobs()}
    made = replayer(world)
    pairs = made.pairs()
    assert feed(world, made, pairs)
    world.work_off(world.runner())
    world.sweep()
    assert outside(world) == before
    assert {j.job_id: j for j in world.jobs() if not j.replay} == rows, "no other row was written"
    assert len(replays(world)) == 3
    for job in replays(world):
        assert (job.state, job.priority, job.notify, job.notices) == (State.SUCCEEDED, PRIORITY, (), ())
        assert job_folder(job).startswith(f"replays/{made.replay.id}/")
        assert world.store.head(f"{job_folder(job)}result.json") is not None
    fields = [o.manifest["fields"][0]["name"] for o in world.sandbox.orders]
    assert (fields.count("id"), fields.count("number")) == (3, 3)


def test_nothing_is_learnt_or_asked_or_compared_with_what_came_later(local):
    past(local, mapping={"review": "unsure"})
    local.sandbox.asks = True
    made = replayer(local)
    feed(local, made, made.pairs())
    assert {j.state for j in replays(local)} == {State.SUCCEEDED}
    again = [o for o in local.sandbox.orders if o.job.workflow != "members"]
    assert all(o.accept and o.previous is None for o in again)
    assert not [k for k in local.store.keys("configs/") if k.endswith(".memory.json")]


@pytest.mark.parametrize(("scope", "count"), [({"tenant": "acme"}, 2), ({"tenant": "north"}, 1), ({"since": 9e9}, 0)])
def test_only_what_is_asked_for_is_replayed(local, scope, count):
    past(local)
    assert len(replayer(local, **scope).pairs()) == count


def test_nothing_is_replayed_with_a_version_whose_config_is_not_there(local):
    past(local, config="./config")
    with pytest.raises(UsageError, match="lacks its config"):
        replayer(local)


def test_failed_jobs_are_replayed_and_corrections_placeholders_and_replays_are_not(local):
    local.sandbox.verdict = Verdict.RULE_ERROR
    past(local, 2)
    local.intake.changed([local.put("inbox/acme/other/x.xlsx", b"x")])
    made = replayer(local)
    feed(local, made, made.pairs())
    assert len(replayer(local).pairs()) == 2


def test_a_second_replay_of_the_same_meets_its_jobs(local):
    past(local)
    made = replayer(local)
    feed(local, made, made.pairs())
    rows = replays(local)
    again = replayer(local)
    assert again.replay == made.replay
    assert feed(local, again, again.pairs())
    assert replays(local) == rows
    other = replayer(local, which=LIVE)
    assert other.replay.id != made.replay.id


def test_neither_its_own_jobs_nor_other_workflows_of_its_name_count_against_its_bound(local):
    past(local)
    own = MANIFEST | {"subscribe": ["own/*.csv"]}
    local.intake.changed([local.put("configs/globex/members/manifest.json", own)])
    local.intake.changed([local.put(f"inbox/globex/own/{n}.csv", b"id\n%d\n" % n) for n in range(4)])
    local.work_off(local.runner(), rounds=400)
    made = replayer(local)
    assert feed(local, made, made.pairs(most=3))
    assert len(replayer(local).pairs(most=3)) == 3
    with pytest.raises(UsageError, match="more than 2 jobs"):
        replayer(local).pairs(most=2)


@pytest.mark.slow
@pytest.mark.parametrize("count", [8, pytest.param(500, marks=pytest.mark.long)])
def test_a_replay_that_is_killed_again_and_again_goes_on(tmp_path, count):
    """Every process dies at some step, the feeder's or a runner's; each job is replayed once in the end."""
    world = World(tmp_path)
    past(world, count)
    before, kills, step = outside(world), 0, 7
    while True:
        world.crasher.arm(step)
        try:
            made = replayer(world)
            done = feed(world, made, made.pairs())
        except Crash:
            kills, step = kills + 1, step + 13 * (1 + count // 50)
            world.crasher.arm(None)
            world.clock.move(40)
            continue
        break
    world.crasher.arm(None)
    world.work_off(world.runner(), rounds=100 * count)
    assert done
    assert kills >= 5
    assert sorted(j.state for j in replays(world)) == [State.SUCCEEDED] * count
    assert outside(world) == before
    world.close()


def test_a_feeder_that_stops_leaves_the_rest_to_the_next(local):
    past(local, 6)
    made = replayer(local)
    assert not feed(local, made, made.pairs(), most=3)
    assert 0 < len(replays(local)) < 6
    assert feed(local, replayer(local), replayer(local).pairs())
    assert len(replays(local)) == 6


def test_the_report_names_what_differs_by_job(local, tmp_path):
    past(local)
    made = replayer(local)
    pairs = made.pairs()
    feed(local, made, pairs)
    report = made.report(pairs, NoBoxes(), tmp_path / "scratch")
    assert (report.count(SAME), report.count(DIFFERS)) == (3, 0)
    document = json.loads(local.store.read(f"{made.replay.folder}report.json", limit=100_000))
    assert (document["jobs"], document["same"], document["differences"]) == (3, 3, [])


def test_a_job_that_fails_with_the_new_version_is_breaking(local, tmp_path):
    past(local, 2)
    made = replayer(local)
    pairs = made.pairs()
    local.sandbox.verdict = Verdict.RULE_ERROR
    feed(local, made, pairs)
    report = made.report(pairs, NoBoxes(), tmp_path / "scratch")
    (one,) = report.differences
    assert (one.result, one.breaking) == (DIFFERS, True)
    assert one.document()["after"] == "FAILED (rule_error)"


def test_comparisons_are_not_made_twice(local, tmp_path):
    past(local)
    made = replayer(local)
    pairs = made.pairs()
    feed(local, made, pairs)
    first = made.report(pairs, NoBoxes(), tmp_path / "scratch")
    again = made.report(pairs, None, tmp_path / "scratch")
    assert again.document() == first.document()


def test_a_replay_does_not_stop_the_next_drop_nor_count_as_one(local):
    past(local)
    made = replayer(local)
    feed(local, made, made.pairs())
    local.sweep()
    local.intake.changed([local.put("inbox/acme/0.csv", b"id\n9\n")])
    local.work_off(local.runner())
    live = [j for j in local.jobs() if not j.replay]
    assert {j.workflow for j in live} == {"members"}
    assert sorted(j.state for j in live) == [State.SUCCEEDED] * 4


def test_a_replay_goes_with_its_retention_and_its_version_with_its_report(local):
    past(local)
    made = replayer(local)
    feed(local, made, made.pairs())
    runner = local.runner()
    folder = made.replay.version_folder
    runner.janitor.collect()
    assert local.store.head(f"{folder}manifest.json") is not None
    for _ in range(4):
        local.clock.move(60 * 3600)
        runner.janitor.chores()
    assert not replays(local), "their rows do not wait for the inputs to go"
    assert not [k for k in local.store.keys("replays/") if k.endswith("result.json")]
    assert not list(Path(local.settings.storage_data_dir).glob("work/*"))


def test_removing_a_job_of_a_replay_leaves_the_senders_file(local):
    past(local, 1)
    made = replayer(local)
    feed(local, made, made.pairs())
    (again,) = replays(local)
    local.control.remove(again.job_id)
    assert local.store.head("inbox/acme/0.csv") is not None
    assert not replays(local)
