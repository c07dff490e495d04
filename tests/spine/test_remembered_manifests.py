"""What an intake remembers of the manifests above a drop never makes it miss one."""

import pytest

from core.drops import is_placeholder
from tests.support.world import MANIFEST

DEEP = MANIFEST | {"name": "deep", "inputs": {"primary": ["**/*.csv"]}}


def listings(world, prefix):
    """How often a folder is listed from now on."""
    seen, level = [], world.store.level

    def counted(asked):
        seen.extend([asked] if asked == prefix else [])
        return level(asked)

    world.store.level = counted
    return seen


def workflows(world):
    return sorted(f"{j.subject} {j.workflow}" for j in world.jobs() if not is_placeholder(j))


def put_and_tell(world, intake, key, body):
    intake.changed([world.put(key, body)])


def test_the_folders_above_are_listed_once_for_many_drops(world):
    seen = listings(world, "inbox/acme/")
    for n in range(5):
        world.put(f"inbox/acme/d{n}/manifest.json", MANIFEST)
        put_and_tell(world, world.intake, f"inbox/acme/d{n}/a.csv", b"id\n1\n")
    assert len(seen) == 1
    assert len(workflows(world)) == 5


def test_a_manifest_above_that_another_process_learnt_of_selects_the_next_file(world):
    other = world.new_intake()
    world.put("inbox/acme/d/manifest.json", MANIFEST)
    put_and_tell(world, world.intake, "inbox/acme/d/a.csv", b"id\n1\n")
    put_and_tell(world, other, "inbox/acme/manifest.json", DEEP)
    put_and_tell(world, world.intake, "inbox/acme/d/b.csv", b"id\n2\n")
    assert workflows(world) == ["d/a.csv deep", "d/a.csv members", "d/b.csv deep", "d/b.csv members"]


def test_a_standing_manifest_that_another_process_learnt_of_selects_the_next_file(world):
    other = world.new_intake()
    world.put("inbox/acme/d/manifest.json", MANIFEST)
    put_and_tell(world, world.intake, "inbox/acme/d/a.csv", b"id\n1\n")
    standing = {"manifest": 1, "name": "standing", "fields": [{"name": "id"}], "subscribe": ["d/b.csv"]}
    put_and_tell(world, other, "configs/acme/s/manifest.json", standing)
    put_and_tell(world, world.intake, "inbox/acme/d/b.csv", b"id\n2\n")
    assert workflows(world) == ["d/a.csv members", "d/b.csv members", "d/b.csv standing"]


def test_a_manifest_above_whose_event_is_lost_is_seen_a_minute_later(world):
    world.put("inbox/acme/d/manifest.json", MANIFEST)
    put_and_tell(world, world.intake, "inbox/acme/d/a.csv", b"id\n1\n")
    world.put("inbox/acme/manifest.json", DEEP)
    world.clock.move(61)
    put_and_tell(world, world.intake, "inbox/acme/d/b.csv", b"id\n2\n")
    assert "d/b.csv deep" in workflows(world)


def test_memory_never_says_that_no_manifest_selects_a_file(world):
    put_and_tell(world, world.intake, "inbox/acme/e/a.csv", b"id\n1\n")
    world.put("inbox/acme/manifest.json", DEEP)
    put_and_tell(world, world.intake, "inbox/acme/d/b.csv", b"id\n2\n")
    assert workflows(world) == ["d/b.csv deep"]


def test_a_remembered_manifest_that_was_changed_counts_as_it_is_now(world):
    world.put("inbox/acme/manifest.json", DEEP)
    put_and_tell(world, world.intake, "inbox/acme/d/a.csv", b"id\n1\n")
    world.put("inbox/acme/manifest.json", DEEP | {"name": "newer"})
    put_and_tell(world, world.intake, "inbox/acme/d/b.csv", b"id\n2\n")
    assert workflows(world) == ["d/a.csv deep", "d/b.csv newer"]


def test_a_remembered_manifest_that_is_gone_selects_nothing(world):
    world.put("inbox/acme/manifest.json", DEEP)
    put_and_tell(world, world.intake, "inbox/acme/d/a.csv", b"id\n1\n")
    world.store.delete("inbox/acme/manifest.json")
    put_and_tell(world, world.intake, "inbox/acme/d/b.csv", b"id\n2\n")
    assert workflows(world) == ["d/a.csv deep"]


@pytest.mark.parametrize("piece", ["lookups/plans.csv", "config/columns/id.py", "config/lib/codes.csv"])
def test_a_piece_of_a_manifest_above_is_seen_whatever_is_remembered(world, piece):
    aux = {"primary": ["*.csv"], "auxiliary": [{"name": "plans", "path": "lookups/plans.csv", "required": True}]}
    manifest = MANIFEST | ({"inputs": aux} if piece.startswith("lookups") else {})
    other = world.new_intake()
    put_and_tell(world, world.intake, f"inbox/acme/d/{'/'.join(piece.split('/')[:-1])}/other.csv", b"x\n")
    put_and_tell(world, other, "inbox/acme/d/a.csv", b"id\n1\n")
    put_and_tell(world, other, "inbox/acme/d/manifest.json", manifest)
    before = {j.job_id for j in world.jobs() if j.workflow == "members"}
    put_and_tell(world, world.intake, f"inbox/acme/d/{piece}", b"code\n")
    after = {j.job_id: j for j in world.jobs() if j.workflow == "members"}
    changed = after.keys() != before or any(not j.waiting_for for j in after.values())
    assert changed, "the job does not know of its new piece"
