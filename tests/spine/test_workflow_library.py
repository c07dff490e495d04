"""Drafts are promoted and promotions reverted, by whole versions only; no drop is processed with half of one."""

import io
import json
import zipfile

import pytest

from console.library import DRAFTED, LIVE, Library, WorkflowChanged, differences
from core.errors import UsageError
from core.jobs import State
from core.versions import version_id
from tests.support.places import PLACES
from tests.support.world import MANIFEST, Crash, World

FOLDER = "configs/_shared/members/"
WORKFLOW = MANIFEST | {"tenants": ["*"], "subscribe": ["*.csv"]}
RULE = "config/columns/id.py"


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


def manifest(field, **more):
    return json.dumps(WORKFLOW | {"fields": [{"name": field}]} | more).encode()


def standing(world, field="old", rule=b""):
    if rule:
        world.put(f"{FOLDER}{RULE}", rule)
    world.put(f"{FOLDER}manifest.json", manifest(field))
    return found(world)


def found(world):
    library = Library(world.store)
    return library, library.find("members")


def drop(world, body):
    world.intake.changed([world.put("inbox/acme/a.csv", body)])
    world.work_off(world.runner())
    return world.sandbox.orders[-1]


def fields(world):
    return [o.manifest["fields"][0]["name"] for o in world.sandbox.orders]


def test_a_draft_is_promoted_and_reverted(world):
    library, live = standing(world)
    drop(world, b"id\n1\n")
    first = library.load(live, LIVE)
    draft = library.put_draft(live, {"manifest.json": manifest("new")})
    drop(world, b"id\n2\n")
    assert fields(world) == ["old", "old"], "no drop is processed with a draft"
    assert library.promote(live, library.load(live, DRAFTED)) == first.id
    library, live = found(world)
    assert library.load(live, LIVE).id == draft.id
    drop(world, b"id\n3\n")
    library.promote(live, library.load(live, library.before_live(live)))
    drop(world, b"id\n4\n")
    assert fields(world) == ["old", "old", "new", "old"]
    library, live = found(world)
    assert {one.id for one in library.versions(live)} == {first.id, draft.id}


def test_the_id_of_a_version_is_that_of_the_jobs_that_ran_with_it(world):
    library, live = standing(world, rule=b"x = 1\n")
    drop(world, b"id\n1\n")
    (job,) = world.jobs()
    (kept,) = library.versions(live)
    assert library.load(live, LIVE).id == kept.id == version_id(job.workflow_version)
    assert dict(kept.package) == {"columns/id.py": b"x = 1\n"}


def test_a_promotion_brings_the_config_and_a_revert_takes_it_back(local):
    library, live = standing(local, rule=b"x = 1\n")
    drop(local, b"id\n1\n")
    library.put_draft(live, {"manifest.json": manifest("new"), "config/columns/number.py": b"x = 2\n"})
    library.promote(live, library.load(live, DRAFTED))
    drop(local, b"id\n2\n")
    assert [ref.key for ref in max(local.jobs(), key=lambda j: j.stamp).config] == [f"{FOLDER}config/columns/number.py"]
    library, live = found(local)
    library.promote(live, library.load(live, library.before_live(live)))
    assert local.store.read(f"{FOLDER}{RULE}", limit=100) == b"x = 1\n"
    assert local.store.head(f"{FOLDER}config/columns/number.py") is None


def test_a_zip_is_promoted_as_one(local):
    library, live = standing(local, rule=b"x = 1\n")
    drop(local, b"id\n1\n")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("columns/id.py", "x = 2\n")
    library.put_draft(live, {"manifest.json": manifest("new"), "config.zip": packed.getvalue()})
    library.promote(live, library.load(live, DRAFTED))
    assert local.store.head(f"{FOLDER}{RULE}") is None
    drop(local, b"id\n2\n")
    assert [ref.key for ref in max(local.jobs(), key=lambda j: j.stamp).config] == [f"{FOLDER}config.zip"]
    library, live = found(local)
    library.promote(live, library.load(live, library.before_live(live)))
    assert local.store.head(f"{FOLDER}config.zip") is None


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_wherever_a_promotion_dies_no_file_is_processed_with_half_of_it(tmp_path, after):
    whole = {("old", b"x = 1\n"), ("new", b"x = 2\n")}
    for step in range(100):
        world = World(tmp_path / f"{step}")
        standing(world, rule=b"x = 1\n")
        drop(world, b"id\n0\n")
        library = Library(world.fragile.store)
        live = library.find("members")
        library.put_draft(live, {"manifest.json": manifest("new"), RULE: b"x = 2\n"})
        draft = library.load(live, DRAFTED)
        world.crasher.arm(step, after=after)
        done = False
        try:
            library.promote(live, draft)
            done = True
        except Crash:
            pass
        world.crasher.arm(None)
        world.put("inbox/acme/a.csv", b"id\n1\n")
        world.sweep()
        world.work_off(world.runner())
        rules = {job.config_digest: job for job in world.jobs() if job.state is State.SUCCEEDED}
        for job in rules.values():
            ref = job.config[0]
            seen = {(o.manifest["fields"][0]["name"]) for o in world.sandbox.orders if o.job.job_id == job.job_id}
            body = next(b for b in (b"x = 1\n", b"x = 2\n") if world.store.put("configs/x", b).digest == ref.digest)
            assert {(name, body) for name in seen} <= whole, step
        world.close()
        if done:
            return
    raise AssertionError("it never ends")


def test_a_manifest_that_somebody_changed_meanwhile_is_not_overwritten(local):
    library, live = standing(local)
    library.put_draft(live, {"manifest.json": manifest("new")})
    draft = library.load(live, DRAFTED)
    local.put(f"{FOLDER}manifest.json", manifest("theirs"))
    with pytest.raises(UsageError):
        library.promote(live, draft)
    assert local.store.read(f"{FOLDER}manifest.json", limit=1000) == manifest("theirs")


@pytest.mark.parametrize("rule", [b"RULE = 1\n", b""])
def test_a_draft_has_the_shared_config_that_it_names_and_is_not_promoted_without_it(local, rule):
    if rule:
        local.put("configs/_shared/rules/columns/id.py", rule)
    library, live = standing(local)
    library.put_draft(live, {"manifest.json": manifest("new", config="configs/_shared/rules")})
    draft = library.load(live, DRAFTED)
    assert dict(draft.package) == ({"columns/id.py": rule} if rule else {})
    if rule:
        library.promote(live, draft)
        assert library.load(found(local)[1], LIVE).id == draft.id
    else:
        with pytest.raises(UsageError, match="lacks its config: its manifest names configs/_shared/rules"):
            library.promote(live, draft)


@pytest.mark.parametrize("which", ["0000", "draft"])
def test_a_version_that_is_not_there_is_an_error_in_words(local, which):
    library, live = standing(local)
    with pytest.raises(UsageError, match="members"):
        library.load(live, which)


def test_what_differs_is_named_by_field_and_file(local):
    library, live = standing(local, rule=b"x = 1\n")
    before = library.load(live, LIVE)
    changed = WORKFLOW | {"fields": [{"name": "old", "required": True}, {"name": "more"}], "min_rows": 2}
    files = {"manifest.json": json.dumps(changed).encode(), RULE: b"x = 2\n"}
    found = {path: (a, b) for path, a, b in differences(before, library.put_draft(live, files))}
    assert found.keys() == {
        "fields.old.required", "fields.more.name", "fields[order]", "min_rows", "config/columns/id.py",
    }  # fmt: skip
    assert found["fields.old.required"] == ("", "true")
    assert differences(before, before) == []


def promoted(world, field, rule=b"x = 1\n"):
    library, live = found(world)
    files = {"manifest.json": manifest(field), RULE: rule}
    return library.promote(live, library.put_draft(live, files))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("rule", [b"x = 1\n", b"x = 2\n"], ids=["manifest", "config"])
def test_wherever_a_promotion_dies_it_is_found_and_goes_on(tmp_path, after, rule):
    for step in range(100):
        world = World(tmp_path / f"{step}")
        standing(world, rule=b"x = 1\n")
        library = Library(world.fragile.store)
        first = library.find("members")
        before, draft = (
            library.load(first, LIVE),
            library.put_draft(first, {"manifest.json": manifest("new"), RULE: rule}),
        )
        world.crasher.arm(step, after=after)
        died = False
        try:
            library.promote(first, draft)
        except Crash:
            died = True
        world.crasher.arm(None)
        library, live = found(world)
        library.promote(live, library.load(live, DRAFTED))
        library, live = found(world)
        assert library.load(live, LIVE).id == draft.id, step
        assert library.before_live(live) == before.id, "repeated, it is still the last version that is before"
        library.promote(live, library.load(live, before.id))
        assert library.load(found(world)[1], LIVE).id == before.id
        world.close()
        if not died:
            return
    raise AssertionError("it never ends")


def test_a_promotion_that_died_is_told_with_both_ways_out(local):
    library, live = standing(local, rule=b"x = 1\n")
    first = library.load(live, LIVE).id
    library.put_draft(live, {"manifest.json": manifest("new"), RULE: b"x = 2\n"})
    fragile = Library(local.fragile.store)
    draft = fragile.load(live, DRAFTED)
    for step in range(100):
        if local.store.head(f"{FOLDER}manifest.json") is None:
            break
        local.crasher.arm(step)
        with pytest.raises(Crash):
            fragile.promote(live, draft)
    local.crasher.arm(None)
    library, live = found(local)
    for ask in (lambda: library.before_live(live), lambda: library.load(live, LIVE)):
        with pytest.raises(UsageError, match=f"promote members {draft.id}.*{first}"):
            ask()
    library.promote(live, library.load(live, first))
    assert local.store.read(f"{FOLDER}{RULE}", limit=100) == b"x = 1\n"


def test_a_promotion_made_twice_is_reverted_to_what_was_before_both(local):
    library, live = standing(local, rule=b"x = 1\n")
    first = library.load(live, LIVE).id
    promoted(local, "new")
    promoted(local, "new")
    library, live = found(local)
    assert library.before_live(live) == first


@pytest.mark.parametrize("at", [".versions/members.before.json", "manifest.json", RULE])
def test_of_two_promotions_at_once_one_is_told_and_the_other_is_whole(local, at):
    library, live = standing(local, rule=b"x = 1\n")
    draft = library.put_draft(live, {"manifest.json": manifest("mine"), RULE: b"x = 2\n"})
    library._store = Watched(library._store, f"{FOLDER}{at}", lambda: promoted(local, "theirs", b"x = 3\n"))
    with pytest.raises(UsageError, match="changed by somebody else"):
        library.promote(live, draft)
    library, live = found(local)
    whole = library.load(live, LIVE)
    assert (whole.read.fields[0].name, dict(whole.package)) == ("theirs", {"columns/id.py": b"x = 3\n"})


class Watched:
    """A store in which something else happens before an object is described or written for the first time."""

    def __init__(self, store, key, act):
        self._store, self._key, self._act = store, key, act

    def head(self, key):
        self._meanwhile(key)
        return self._store.head(key)

    def put(self, key, *args, **more):
        self._meanwhile(key)
        return self._store.put(key, *args, **more)

    def _meanwhile(self, key):
        if key == self._key:
            self._key = None
            self._act()

    def __getattr__(self, name):
        return getattr(self._store, name)


@pytest.mark.parametrize("rule", [b"x = 1\n", b"x = 2\n"], ids=["same", "other"])
@pytest.mark.parametrize("before", [False, True], ids=["first", "again"])
def test_of_two_drafts_at_once_the_later_is_told_and_the_earlier_stays_whole(tmp_path, before, rule):
    """Whatever the other author has just done, at any moment of mine: nobody's draft is replaced without notice."""
    theirs = {"manifest.json": manifest("theirs"), RULE: b"x = 3\n"}
    mine = {"manifest.json": manifest("mine"), RULE: rule}
    for step in range(40):
        world = World(tmp_path / f"{step}")
        library, live = standing(world)
        if before:
            library.put_draft(live, {"manifest.json": manifest("first"), RULE: b"x = 1\n"})
            live = library.find("members")
        said = []
        library._store = Between(world.store, step, lambda world=world, said=said: said.append(drafted(world, theirs)))
        mine_is_told = False
        try:
            library.put_draft(live, mine)
        except WorkflowChanged:
            mine_is_told = True
        _, live = found(world)
        draft = Library(world.store).load(live, DRAFTED)
        name, files = draft.read.fields[0].name, {f"config/{name}": body for name, body in draft.package.items()}
        if said and said[0]:
            assert (name, mine_is_told) != ("mine", False), f"theirs was replaced without notice, at {step}"
        assert {**files, "manifest.json": draft.manifest} == (theirs if name == "theirs" else mine), step
        assert name == "mine" or mine_is_told, step
        world.close()
        if not said:
            return
    raise AssertionError("it never ends")


def drafted(world, files):
    """Whether another author's draft was taken."""
    library = Library(world.store)
    try:
        library.put_draft(library.find("members"), files)
    except WorkflowChanged:
        return False
    return True


class Between:
    """A store in which something else happens before its nth call."""

    def __init__(self, store, step, act):
        self._store, self._left, self._act = store, step, act

    def __getattr__(self, name):
        def call(*args, **more):
            if self._left == 0:
                self._act()
            self._left -= 1
            return getattr(self._store, name)(*args, **more)

        return call


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_wherever_the_writing_of_a_draft_dies_it_is_whole_or_told_and_can_be_repeated(tmp_path, after):
    whole = [{"columns/id.py": b"x = 1\n"}, {"columns/id.py": b"x = 2\n"}]
    for step in range(40):
        world = World(tmp_path / f"{step}")
        library, live = standing(world)
        library.put_draft(live, {"manifest.json": manifest("first"), RULE: b"x = 1\n"})
        fragile = Library(world.fragile.store)
        live, files = fragile.find("members"), {"manifest.json": manifest("new"), RULE: b"x = 2\n"}
        world.crasher.arm(step, after=after)
        died = False
        try:
            fragile.put_draft(live, files)
        except Crash:
            died = True
        world.crasher.arm(None)
        live = library.find("members")
        if library.has_draft(live):
            draft = library.load(live, DRAFTED)
            assert dict(draft.package) == whole[draft.read.fields[0].name == "new"], step
        else:
            with pytest.raises(UsageError, match="died doing so"):
                library.load(live, DRAFTED)
        assert library.put_draft(live, files).package == whole[1]
        world.close()
        if not died:
            return
    raise AssertionError("it never ends")


def test_a_manifest_that_does_not_validate_is_in_nobodys_way(local):
    standing(local, rule=b"x = 1\n")
    local.put("configs/_shared/broken/manifest.json", b'{"manifest": 1, "name": 7}')
    assert found(local)[1].name == "members"


@pytest.mark.parametrize(
    "body", [b"nonsense", b'{"manifest": 1, "name": 7}', b'{"draft": "is being written", "by": "x"}']
)
def test_a_draft_that_cannot_be_used_is_in_nobodys_way(local, body):
    standing(local)
    local.put(f"{FOLDER}.draft/manifest.json", body)
    library, live = found(local)
    assert library.draft(live) is None
    assert library.load(live, LIVE).read.name == "members"
    assert library.put_draft(live, {"manifest.json": manifest("new")}).read.fields[0].name == "new"
    assert library.draft(live) is not None


def test_a_live_manifest_that_was_overwritten_with_nonsense_can_be_reverted(local):
    standing(local, rule=b"x = 1\n")
    first = promoted(local, "new", b"x = 2\n")
    local.put(f"{FOLDER}manifest.json", b"nonsense")
    library, live = found(local)
    library.promote(live, library.load(live, first))
    library, live = found(local)
    assert (library.load(live, LIVE).id, local.store.read(f"{FOLDER}{RULE}", limit=100)) == (first, b"x = 1\n")
