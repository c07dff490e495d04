"""Manifests that are read once and remembered above a drop: for how long, and what makes them be asked for anew."""

from dataclasses import replace

import pytest

from core.drops import Workflow
from core.errors import ManifestInvalid
from core.manifests import MAX_MANIFEST_BYTES
from handlers.workflows import ListedView, LiveView, Workflows
from tests.support.world import MANIFEST

AT = "inbox/acme/d/"


@pytest.fixture
def flows(world):
    return Workflows(world.store, world.clock)


def put(world, key, body=MANIFEST):
    return world.store.head(world.put(key, body))


class Known:
    """Generations that are all the same."""

    def __init__(self, generation):
        self._generation = generation

    def of(self, _name):
        return self._generation


def above(world, flows, *places, generation=1, rejected=None, concerned=lambda _: True):
    """Keys of the manifests that are found, and whether a folder was listed for them."""
    listed, level = [], world.store.level
    world.store.level = lambda prefix: listed.append(prefix) or level(prefix)
    rejected = [] if rejected is None else rejected
    view = LiveView(world.store)
    generations = None if generation is None else Known(generation)
    found = flows.above(view, places or (AT,), "acme", concerned, generations=generations, rejected=rejected)
    world.store.level = level
    return [w.info.key for w in found], bool(listed)


def test_manifests_that_do_not_validate_are_named_once_and_those_that_went_not_at_all(world, flows):
    good = put(world, f"{AT}manifest.json")
    bad = put(world, "inbox/acme/e/manifest.json", {"manifest": 1})
    gone = put(world, "inbox/acme/f/manifest.json", {"manifest": 1, "name": "gone", "fields": [{"name": "id"}]})
    world.store.delete(gone.key)
    rejected = ["another"]
    for _ in range(2):
        assert [w.info for w in flows.valid([good, bad, gone], rejected)] == [good]
        assert rejected == ["another", bad.key]
    assert flows.load(gone) is None
    assert isinstance(flows.load(bad), ManifestInvalid)


def test_a_manifest_that_is_too_large_is_rejected_as_a_whole(world, flows):
    info = put(world, f"{AT}manifest.json", b" " * (MAX_MANIFEST_BYTES + 1))
    (problem,) = flows.load(info).problems
    assert problem.path == "$"


def test_a_version_is_read_once_and_reported_with_what_is_known_of_it_now(world, flows):
    info = put(world, f"{AT}manifest.json")
    first = flows.load(info)
    world.store.read = None
    assert flows.load(info) is first
    later = replace(info, modified=info.modified + 5)
    again = flows.load(later)
    assert isinstance(again, Workflow)
    assert (again.info, again.manifest, again.tenant, again.folder) == (later, first.manifest, "acme", AT)
    assert again.standing is first.standing


def test_what_is_above_is_remembered_for_less_than_a_minute(world, flows):
    key = put(world, f"{AT}manifest.json").key
    assert above(world, flows) == ([key], True)
    world.clock.move(59.9)
    assert above(world, flows) == ([key], False)
    world.clock.move(0.1)
    assert above(world, flows) == ([key], True)
    world.clock.move(30)
    assert above(world, flows) == ([key], False), "counted from the last listing"


def test_another_generation_or_none_trusts_no_memory(world, flows):
    key = put(world, f"{AT}manifest.json").key
    above(world, flows, generation=None)
    assert above(world, flows, generation=1) == ([key], True), "what was asked without a generation is not remembered"
    assert above(world, flows, generation=2) == ([key], True)
    assert above(world, flows, generation=2) == ([key], False)
    assert above(world, flows, generation=1) == ([key], True)
    assert above(world, flows, generation=None) == ([key], True)


def test_an_empty_folder_is_remembered_too(world, flows):
    assert above(world, flows) == ([], True)
    assert above(world, flows) == ([], False)


@pytest.mark.parametrize("change", ["another version", "gone"])
def test_a_remembered_manifest_that_concerns_a_file_is_asked_for_once_more(world, flows, change):
    key = put(world, f"{AT}manifest.json").key
    above(world, flows)
    if change == "gone":
        world.store.delete(key)
        assert above(world, flows) == ([], True)
    else:
        newer = put(world, key, MANIFEST | {"name": "other"})
        view = LiveView(world.store)
        (found,) = flows.above(view, (AT,), "acme", lambda _: True, generations=Known(1), rejected=[])
        assert (found.info, found.manifest.name) == (newer, "other")


def test_a_remembered_manifest_that_does_not_concern_it_is_not_asked_for(world, flows):
    put(world, f"{AT}manifest.json")
    above(world, flows)
    world.store.head = None
    assert above(world, flows, concerned=lambda _: False) == ([], False)


def test_all_places_are_scanned_in_their_order_and_configs_with_all_below(world, flows):
    own = put(world, f"{AT}manifest.json").key
    top = put(world, "inbox/acme/manifest.json").key
    standing = put(world, "configs/acme/a/b/manifest.json", MANIFEST | {"subscribe": ["*.csv"]}).key
    put(world, "inbox/acme/d/below/manifest.json")
    world.put("configs/acme/a/b/rules.py", b"")
    found, _ = above(world, flows, AT, "inbox/acme/", "configs/acme/")
    assert found == [own, top, standing]
    again, listed = above(world, flows, AT, "inbox/acme/", "configs/acme/")
    assert (again, listed) == (found, False)


def test_a_manifest_above_that_does_not_validate_is_reported_from_memory_too(world, flows):
    key = put(world, f"{AT}manifest.json", {"manifest": 1}).key
    for _ in range(2):
        rejected: list[str] = []
        above(world, flows, rejected=rejected)
        assert rejected == [key]


def test_the_oldest_is_forgotten_where_too_many_are_kept(world, monkeypatch):
    monkeypatch.setattr("handlers.workflows._CACHED", 2)
    flows = Workflows(world.store, world.clock)
    places = [f"inbox/acme/{name}/" for name in "abc"]
    for at in places:
        above(world, flows, at)
    assert above(world, flows, places[2])[1] is False
    assert above(world, flows, places[0])[1] is True


def test_the_manifests_of_a_listed_folder_are_found_without_another_pass_over_its_names(world, monkeypatch):
    put(world, f"{AT}manifest.json")
    for n in range(3):
        put(world, f"{AT}{n}.csv", b"id\n1\n")
    view, passes = ListedView(list(world.store.objects("inbox/"))), []
    monkeypatch.setattr("handlers.workflows.is_manifest", passes.append)
    assert view.manifests(AT) == (f"{AT}manifest.json",)
    assert passes == [], "a sweep asks once for each decision, so thousands of them would cost their square"
