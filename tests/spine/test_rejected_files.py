"""What nobody will ever read is told to its sender: beside where outputs would go, and in `ade sweep`."""

import json
import os

import pytest

from tests.support.world import MANIFEST

REPORT = "outputs/acme/d/rejected.json"


@pytest.fixture
def world(world_in_each_place):
    return world_in_each_place


def rejected(world, key=REPORT):
    """File names and what is said of them; nothing where there is no report."""
    if world.store.head(key) is None:
        return {}
    told = json.loads(world.store.read(key, limit=1 << 20))
    return {p.get("file", p.get("manifest")).rpartition("/")[2]: p["problem"] for p in told["problems"]}


def looked_at(world, how, keys):
    return world.intake.sweep() if how == "sweep" else world.intake.changed(keys)


@pytest.mark.parametrize("how", ["event", "sweep"])
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("a.xslx", "did you mean a.xlsx?"),
        ("a.xlxs", "did you mean a.xlsx?"),
        ("a.cvs", "did you mean a.csv?"),
        ("a.xlsx.txt", "did you mean a.xlsx?"),
        ("a.txt", "files ending in .txt are not spreadsheets"),
        ("members", "files without an ending"),
        ("notes.docx", "is not read"),
        ("Manifest.json", "did you mean manifest.json?"),
    ],
)
def test_a_file_beside_a_manifest_that_nobody_reads_is_reported(world, how, name, hint):
    world.intake.changed(world.drop())
    report = looked_at(world, how, [world.put(f"inbox/acme/d/{name}", b"x")])
    assert hint in rejected(world)[name]
    assert any(name in line and hint in line for line in report.refused)
    assert [j.subject for j in world.jobs()] == ["d/a.csv"], "the others are none the worse for it"


@pytest.mark.parametrize("how", ["event", "sweep"])
def test_the_report_goes_away_with_the_file(world, how):
    world.intake.changed(world.drop())
    key = world.put("inbox/acme/d/a.xslx", b"x")
    looked_at(world, how, [key])
    world.store.delete(key)
    looked_at(world, how, [key])
    assert world.store.head(REPORT) is None


def test_the_report_goes_away_with_its_whole_folder(world):
    keys = [*world.drop(), world.put("inbox/acme/d/a.xslx", b"x")]
    world.intake.sweep()
    assert rejected(world)
    for key in keys:
        world.store.delete(key)
    world.intake.sweep()
    assert world.store.head(REPORT) is None


def test_the_report_names_what_is_still_there(world):
    world.intake.changed(world.drop())
    keys = [world.put(f"inbox/acme/d/{name}", b"x") for name in ("a.xslx", "b.txt")]
    world.intake.changed(keys)
    assert set(rejected(world)) == {"a.xslx", "b.txt"}
    world.store.delete(keys[0])
    world.intake.changed(keys[:1])
    assert set(rejected(world)) == {"b.txt"}


def test_manifests_and_files_share_one_report(world):
    world.put("inbox/acme/d/a.csv", b"id\n")
    world.put("inbox/acme/d/other.manifest.json", MANIFEST | {"extra": 1})
    put_strange(world, "inbox/acme/d/a\tb.csv")
    world.intake.changed(world.drop())
    world.intake.sweep()
    assert set(rejected(world)) == {"other.manifest.json", "a\tb.csv"}


def test_the_same_report_is_not_written_again(world):
    world.drop()
    world.put("inbox/acme/d/a.xslx", b"x")
    world.intake.sweep()
    before = world.store.head(REPORT).modified
    put, written = world.store.put, []
    world.store.put = lambda key, *a, **k: (written.append(key), put(key, *a, **k))[1]
    for _ in range(3):
        world.intake.sweep()
    assert REPORT not in written
    assert world.store.head(REPORT).modified == before


@pytest.mark.parametrize(
    "name",
    [
        "~$a.xlsx",
        ".DS_Store",
        "a.xlsx.part",
        "Thumbs.db",
        "desktop.ini",
        "config/columns/id.py",
        "config/lib/codes.txt",
        "config.zip",
        "requirements.txt",
    ],
)
def test_what_is_nobodys_message_is_not_reported(world, name):
    world.drop()
    world.put(f"inbox/acme/d/{name}", b"x" if name != "config.zip" else b"PK\5\6" + bytes(18))
    report = world.intake.sweep()
    assert rejected(world) == {}
    assert rejected(world, f"outputs/acme/d/{name.rpartition('/')[0]}/rejected.json") == {}
    assert report.refused == []


@pytest.mark.parametrize("manifest_first", [False, True])
def test_a_file_that_a_manifest_names_is_not_reported(world, manifest_first):
    inputs = {"primary": ["*.dat"], "auxiliary": [{"name": "plans", "path": "lookups/plans.txt"}]}
    keys = [world.put("inbox/acme/d/a.dat", b"id\n1\n"), world.put("inbox/acme/d/lookups/plans.txt", b"code\n")]
    if not manifest_first:
        world.intake.changed(keys)
        world.intake.sweep()
        assert "a.dat" in rejected(world)
    world.intake.changed([world.put("inbox/acme/d/manifest.json", MANIFEST | {"inputs": inputs})])
    world.intake.changed(keys)
    assert rejected(world) == {}
    assert world.store.head("outputs/acme/d/lookups/rejected.json") is None


def test_a_file_may_come_before_the_manifest_that_selects_it(world):
    report = world.intake.changed([world.put("inbox/acme/d/a.dat", b"id\n1\n")])
    assert (rejected(world), report.refused) == ({}, [])


def test_a_manifest_that_does_not_validate_may_have_meant_the_file(world):
    bad = MANIFEST | {"inputs": {"primary": ["*.dat"]}, "extra": 1}
    world.put("inbox/acme/d/manifest.json", bad)
    world.intake.changed([world.put("inbox/acme/d/a.dat", b"id\n1\n"), "inbox/acme/d/manifest.json"])
    world.intake.sweep()
    assert set(rejected(world)) == {"manifest.json"}


def test_a_file_outside_every_tenant_is_named_by_the_sweep(world):
    world.drop()
    world.put("inbox/loose.xlsx", b"x")
    report = world.intake.sweep()
    assert any("inbox/loose.xlsx" in line and "put it there" in line for line in report.refused)
    assert len(world.jobs()) == 1
    assert any("loose.xlsx" in line for line in world.intake.changed(["inbox/loose.xlsx"]).refused)


STRANGE = ["a\tb.csv", "a\nb.xlsx", "a\\b.csv"]


def put_strange(world, key):
    """As a client that checks nothing does."""
    if hasattr(world.store, "root"):
        (world.store.root / key).write_bytes(b"id\n1\n")
    else:
        world.store._s3.put_object(Bucket=world.store._bucket, Key=key, Body=b"id\n1\n")
    return key


def remove_strange(world, key):
    if hasattr(world.store, "root"):
        (world.store.root / key).unlink()
    else:
        world.store._s3.delete_object(Bucket=world.store._bucket, Key=key)


@pytest.mark.parametrize("how", ["event", "sweep"])
@pytest.mark.parametrize("name", STRANGE)
def test_a_name_that_reads_differently_elsewhere_is_reported(world, how, name):
    world.intake.changed(world.drop())
    key = put_strange(world, f"inbox/acme/d/{name}")
    report = looked_at(world, how, [key])
    assert "rename the object" in rejected(world)[name]
    assert any("rename the object" in line for line in report.refused)
    remove_strange(world, key)
    looked_at(world, how, [key])
    assert rejected(world) == {}


@pytest.mark.parametrize("how", ["event", "sweep"])
def test_a_name_that_is_not_utf_8_keeps_nobody_from_their_jobs(embedded, how):
    world = embedded
    world.drop()
    world.drop(tenant="globex")
    key = os.fsdecode(b"inbox/acme/d/caf\xe9.csv")
    (world.store.root / key).write_bytes(b"id\n1\n")
    report = looked_at(world, how, [key, "inbox/acme/d/a.csv", "inbox/globex/d/a.csv"])
    assert any("not UTF-8" in line for line in report.refused)
    assert sorted(j.tenant for j in world.jobs()) == ["acme", "globex"]
    assert any("not UTF-8" in said for said in rejected(world).values())


def test_a_thousand_such_files_make_one_report(world):
    world.intake.changed(world.drop())
    puts, put = [], world.store.put
    world.store.put = lambda key, *a, **k: (puts.append(key), put(key, *a, **k))[1]
    keys = [world.put(f"inbox/acme/d/{n}.txt", b"x") for n in range(50)]
    world.intake.changed(keys)
    assert puts.count(REPORT) == 1
    assert len(rejected(world)) == 50
