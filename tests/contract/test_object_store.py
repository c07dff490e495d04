"""What every bucket promises, whatever it is made of."""

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from core.errors import ObjectChanged, ObjectMissing, ObjectTooLarge, PreconditionFailed
from core.ports import ObjectStore, Purges
from tests.contract import contenders
from tests.contract.rigs import Rig

LIMIT = 64 * 1024 * 1024
KEY = "inbox/acme/members.xlsx"

ODD_NAMES = {
    "spaces": "two  words .xlsx",
    "plus": "a+b+c.xlsx",
    "percent": "100%25 done%2F.csv",
    "ampersand": "a&b=c;d?e#f.csv",
    "quotes": 'it\'s "quoted".csv',
    "brackets": "[x]{y}(z)<w>.csv",
    "unicode": "Löhne-été-日本語-😀.xlsx",
    "trailing dot": "report.",
    "leading dash": "-rf.csv",
    "tilde star": "a~b*c.csv",
    "long name": "n" * 200 + ".csv",
    "long path": "/".join(["p" * 100] * 9) + "/x.csv",
}


def test_head_of_nothing_is_none(store: ObjectStore):
    assert store.head(KEY) is None


def test_put_says_what_head_tells(store: ObjectStore):
    put = store.put(KEY, b"one")
    head = store.head(KEY)
    assert head is not None
    assert (head.key, head.version, head.digest, head.size) == (KEY, put.version, put.digest, 3)


def test_read_gives_the_content(store: ObjectStore):
    store.put(KEY, b"one")
    assert store.read(KEY, limit=3) == b"one"


def test_a_purge_leaves_no_version_of_what_is_below_a_prefix(store: ObjectStore):
    if not isinstance(store, Purges):
        pytest.skip("this store cannot delete more than it lists")
    neighbour = "inbox/acme-2/members.xlsx"
    former = store.put(KEY, b"one").version
    for key in (KEY, "inbox/acme/deep/er/x.csv", neighbour):
        store.put(key, b"two")
    store.delete("inbox/acme/deep/er/x.csv")
    assert store.purge("inbox/acme/") >= 1
    assert store.purge("inbox/acme/") == 0
    assert list(store.keys("inbox/")) == [neighbour]
    with pytest.raises((ObjectMissing, ObjectChanged)):
        store.read(KEY, version=former, limit=LIMIT)
    store.put(KEY, b"again")
    assert store.read(KEY, limit=LIMIT) == b"again"


def test_folders_of_former_versions_are_found_and_purged(store: ObjectStore):
    if not isinstance(store, Purges):
        pytest.skip("this store cannot delete more than it lists")
    for key in ("work/a/1/x", "work/b/1/x"):
        store.put(key, b"one")
    store.delete("work/a/1/x")
    found = set(store.purgeable_folders("work/"))
    assert {"work/b/"} <= found <= {"work/a/", "work/b/"}
    assert sum(map(store.purge, found)) >= 1
    assert sum(map(store.purge, store.purgeable_folders("work/"))) == 0  # SeaweedFS keeps the empty folders


def test_former_versions_go_and_the_present_one_stays(store: ObjectStore):
    if not isinstance(store, Purges):
        pytest.skip("this store cannot delete more than it lists")
    former, neighbour = store.put(KEY, b"one").version, f"{KEY}x"
    for key in (neighbour, KEY):
        store.put(key, b"two")
    store.purge_former(KEY)
    assert store.purge_former(KEY) == 0
    assert (store.read(KEY, limit=LIMIT), store.read(neighbour, limit=LIMIT)) == (b"two", b"two")
    with pytest.raises((ObjectMissing, ObjectChanged)):
        store.read(KEY, version=former, limit=LIMIT)


def test_an_empty_object_is_an_object(store: ObjectStore):
    store.put(KEY, b"")
    head = store.head(KEY)
    assert head is not None
    assert head.size == 0
    assert store.read(KEY, limit=0) == b""


def test_a_second_put_replaces_the_object_and_its_version(store: ObjectStore):
    first = store.put(KEY, b"one")
    second = store.put(KEY, b"two")
    assert store.read(KEY, limit=LIMIT) == b"two"
    assert first.version != second.version
    assert first.digest != second.digest


def test_the_same_body_again_does_no_harm(store: ObjectStore):
    first = store.put(KEY, b"one")
    again = store.put(KEY, b"one")
    assert again.digest == first.digest
    assert store.read(KEY, version=again.version, limit=LIMIT) == b"one"


def test_equal_content_under_two_keys_has_one_digest(store: ObjectStore):
    assert store.put("inbox/acme/a.csv", b"same").digest == store.put("inbox/acme/b.csv", b"same").digest


def test_equal_length_does_not_mean_equal_digest(store: ObjectStore):
    assert store.put("inbox/acme/a.csv", b"same").digest != store.put("inbox/acme/b.csv", b"diff").digest


def test_listings_and_head_agree_on_version_and_digest(store: ObjectStore):
    store.put(KEY, b"one")
    head = store.head(KEY)
    assert head is not None
    listed = next(iter(store.objects(KEY)))
    (level,) = store.folder("inbox/acme/").objects
    assert head.ref == listed.ref == level.ref


def test_metadata_of_an_inbox_object_is_kept(store_rig: Rig[ObjectStore]):
    if not store_rig.keeps_metadata:
        pytest.skip("this file system keeps no extended attributes")
    store_rig.port.put(KEY, b"one", metadata={"data-time": "2026-01-01T00:00:00Z"})
    head = store_rig.port.head(KEY)
    assert head is not None
    assert head.metadata["data-time"] == "2026-01-01T00:00:00Z"


def test_modified_does_not_go_back(store: ObjectStore):
    first = store.put(KEY, b"one")
    store.put(KEY, b"two")
    head = store.head(KEY)
    assert head is not None
    assert head.modified >= int(first.modified)


def check_one_writer_wins(rig: Rig[ObjectStore], kind: str, condition: dict[str, Any]) -> None:
    key, bodies = "outputs/acme/latest.json", [f"writer {n}".encode() for n in range(8)]
    won = contenders.race(
        rig.race_in(kind), 4, contenders.put_if, [rig.another] * 8, [key] * 8, [condition] * 8, bodies
    )
    assert won.count(True) == 1
    assert rig.port.read(key, limit=LIMIT) == bodies[won.index(True)]


class TestPinnedVersions:
    def test_a_version_that_is_there_is_read(self, store: ObjectStore):
        put = store.put(KEY, b"one")
        assert store.read(KEY, version=put.version, limit=LIMIT) == b"one"

    def test_a_replaced_version_is_read_exactly_or_reported_as_changed(self, store: ObjectStore):
        old = store.put(KEY, b"one")
        store.put(KEY, b"two")
        with suppress(ObjectChanged):
            assert store.read(KEY, version=old.version, limit=LIMIT) == b"one"

    def test_a_replaced_version_is_fetched_exactly_or_leaves_no_file(self, store: ObjectStore, tmp_path: Path):
        old = store.put(KEY, b"one")
        store.put(KEY, b"two")
        to = tmp_path / "out"
        try:
            store.fetch(KEY, to, version=old.version, limit=LIMIT)
        except ObjectChanged:
            assert not to.exists()
        else:
            assert to.read_bytes() == b"one"

    def test_a_version_of_a_deleted_object_is_never_other_content(self, store: ObjectStore):
        old = store.put(KEY, b"one")
        store.delete(KEY)
        with suppress(ObjectMissing, ObjectChanged):
            assert store.read(KEY, version=old.version, limit=LIMIT) == b"one"


class TestReading:
    def test_nothing_there(self, store: ObjectStore):
        with pytest.raises(ObjectMissing, match="members"):
            store.read(KEY, limit=LIMIT)

    def test_over_the_limit(self, store: ObjectStore):
        store.put(KEY, b"12345")
        with pytest.raises(ObjectTooLarge, match="members"):
            store.read(KEY, limit=4)

    def test_fetch_writes_the_file_and_says_its_hash(self, store: ObjectStore, tmp_path: Path):
        store.put(KEY, b"one")
        got = store.fetch(KEY, tmp_path / "out", limit=LIMIT)
        assert (tmp_path / "out").read_bytes() == b"one"
        assert (got.size, got.sha256) == (3, hashlib.sha256(b"one").hexdigest())

    def test_fetch_of_nothing_leaves_no_file(self, store: ObjectStore, tmp_path: Path):
        with pytest.raises(ObjectMissing):
            store.fetch(KEY, tmp_path / "out", limit=LIMIT)
        assert not (tmp_path / "out").exists()

    def test_fetch_over_the_limit_leaves_no_file(self, store: ObjectStore, tmp_path: Path):
        store.put(KEY, b"12345")
        with pytest.raises(ObjectTooLarge):
            store.fetch(KEY, tmp_path / "out", limit=4)
        assert not (tmp_path / "out").exists()

    def test_fetch_never_touches_a_file_that_is_there(self, store: ObjectStore, tmp_path: Path):
        store.put(KEY, b"one")
        (tmp_path / "out").write_bytes(b"mine")
        with pytest.raises(FileExistsError):
            store.fetch(KEY, tmp_path / "out", limit=LIMIT)
        assert (tmp_path / "out").read_bytes() == b"mine"


class TestConditionalPuts:
    def test_if_absent_writes_where_there_is_nothing(self, store: ObjectStore):
        store.put(KEY, b"one", if_absent=True)
        assert store.read(KEY, limit=LIMIT) == b"one"

    def test_if_absent_loses_to_what_is_there(self, store: ObjectStore):
        store.put(KEY, b"one")
        with pytest.raises(PreconditionFailed, match="members"):
            store.put(KEY, b"two", if_absent=True)
        assert store.read(KEY, limit=LIMIT) == b"one"

    def test_if_absent_works_again_after_a_delete(self, store: ObjectStore):
        store.put(KEY, b"one", if_absent=True)
        store.delete(KEY)
        store.put(KEY, b"two", if_absent=True)
        assert store.read(KEY, limit=LIMIT) == b"two"

    def test_if_version_writes_over_that_version(self, store: ObjectStore):
        first = store.put(KEY, b"one")
        store.put(KEY, b"two", if_version=first.version)
        assert store.read(KEY, limit=LIMIT) == b"two"

    def test_if_version_loses_to_a_newer_one(self, store: ObjectStore):
        first = store.put(KEY, b"one")
        store.put(KEY, b"two")
        with pytest.raises(PreconditionFailed, match="members"):
            store.put(KEY, b"three", if_version=first.version)
        assert store.read(KEY, limit=LIMIT) == b"two"

    def test_if_version_loses_to_nothing(self, store: ObjectStore):
        first = store.put(KEY, b"one")
        store.delete(KEY)
        with pytest.raises(PreconditionFailed, match="members"):
            store.put(KEY, b"two", if_version=first.version)
        assert store.head(KEY) is None

    @pytest.mark.parametrize("kind", ["threads", "processes"])
    def test_of_many_creators_one_wins(self, store_rig: Rig[ObjectStore], kind: str):
        check_one_writer_wins(store_rig, kind, {"if_absent": True})

    @pytest.mark.parametrize("kind", ["threads", "processes"])
    def test_of_many_replacers_one_wins(self, store_rig: Rig[ObjectStore], kind: str):
        first = store_rig.port.put("outputs/acme/latest.json", b"first")
        check_one_writer_wins(store_rig, kind, {"if_version": first.version})


def test_a_reader_sees_the_old_object_or_the_new_one_never_a_mixture(store_rig: Rig[ObjectStore]):
    size, rounds = 300_000, 8

    def write(letters: str) -> list[str]:
        with store_rig.another() as store:
            for n in range(rounds):
                store.put(KEY, letters[n % 2].encode() * size)
        return []

    def read(_: str) -> list[str]:
        with store_rig.another() as store:
            return [_shape(store.read(KEY, limit=LIMIT)) for _ in range(rounds)]

    store_rig.port.put(KEY, b"a" * size)
    with contenders.ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, letters) for letters in ("ab", "cd")]
        seen = [shape for reader in [pool.submit(read, "") for _ in range(2)] for shape in reader.result()]
        for writer in writers:
            writer.result()
    assert {shape for shape in seen if shape != "whole"} == set()


def _shape(body: bytes) -> str:
    return "whole" if len(body) == 300_000 and len(set(body)) == 1 else f"{len(body)} bytes of {sorted(set(body))}"


class TestListing:
    """Below a folder of its own: SeaweedFS lists a folder for a while after its last object was deleted."""

    KEYS = (
        "inbox/listed/acme/a-b.csv",
        "inbox/listed/acme/a.csv",
        "inbox/listed/acme/a/1.csv",
        "inbox/listed/acme/a/b/2.csv",
        "inbox/listed/acme/a0.csv",
        "inbox/listed/acme/B.csv",
        "inbox/listed/acme/é.csv",
        "inbox/listed/acme2/x.csv",
    )

    @pytest.fixture(autouse=True)
    def _fill(self, store: ObjectStore):
        for key in reversed(self.KEYS):
            store.put(key, key.encode())

    def test_objects_come_by_key(self, store: ObjectStore):
        assert [o.key for o in store.objects("inbox/listed/")] == sorted(self.KEYS)

    def test_keys_are_the_objects_names(self, store: ObjectStore):
        assert list(store.keys("inbox/listed/")) == sorted(self.KEYS)

    def test_a_folder_prefix_stops_at_its_slash(self, store: ObjectStore):
        assert list(store.keys("inbox/listed/acme2/")) == ["inbox/listed/acme2/x.csv"]

    def test_a_prefix_may_end_within_a_name(self, store: ObjectStore):
        assert list(store.keys("inbox/listed/acme/a0")) == ["inbox/listed/acme/a0.csv"]
        assert list(store.keys("inbox/listed/acme")) == sorted(self.KEYS)

    def test_a_prefix_is_no_pattern(self, store: ObjectStore):
        assert list(store.keys("inbox/listed/acme/*")) == []

    def test_a_whole_key_is_a_prefix(self, store: ObjectStore):
        assert list(store.keys("inbox/listed/acme/a.csv")) == ["inbox/listed/acme/a.csv"]

    def test_an_unknown_prefix_yields_nothing(self, store: ObjectStore):
        assert list(store.objects("inbox/nobody/")) == []
        assert list(store.keys("inbox/nobody/at/all/")) == []

    def test_a_folder_is_one_level(self, store: ObjectStore):
        level = store.folder("inbox/listed/acme/")
        assert [o.key for o in level.objects] == sorted(k for k in self.KEYS if k.count("/") == 3 and "acme/" in k)
        assert level.folders == ("inbox/listed/acme/a/",)

    def test_folders_come_by_name(self, store: ObjectStore):
        assert store.folder("inbox/listed/").folders == ("inbox/listed/acme/", "inbox/listed/acme2/")

    def test_a_folder_of_nothing_is_empty(self, store: ObjectStore):
        level = store.folder("inbox/nobody/")
        assert (level.objects, level.folders) == ((), ())

    def test_delete_prefix_counts_and_spares_neighbours(self, store: ObjectStore):
        assert store.delete_prefix("inbox/listed/acme/a/") == 2
        assert list(store.keys("inbox/listed/")) == sorted(k for k in self.KEYS if "/a/" not in k)

    def test_delete_prefix_again_finds_nothing(self, store: ObjectStore):
        store.delete_prefix("inbox/listed/acme/")
        assert store.delete_prefix("inbox/listed/acme/") == 0


class TestCopyAndDelete:
    def test_copy_gives_the_target_the_content(self, store: ObjectStore):
        store.put("work/j/1/normalized.xlsx", b"one")
        store.copy("work/j/1/normalized.xlsx", "outputs/acme/normalized.xlsx")
        assert store.read("outputs/acme/normalized.xlsx", limit=LIMIT) == b"one"
        assert store.read("work/j/1/normalized.xlsx", limit=LIMIT) == b"one"

    def test_copy_replaces_the_target(self, store: ObjectStore):
        store.put("outputs/acme/x", b"old")
        store.put("work/j/1/x", b"new")
        store.copy("work/j/1/x", "outputs/acme/x")
        assert store.read("outputs/acme/x", limit=LIMIT) == b"new"

    def test_copy_again_changes_nothing(self, store: ObjectStore):
        store.put("work/j/1/x", b"new")
        store.copy("work/j/1/x", "outputs/acme/x")
        store.copy("work/j/1/x", "outputs/acme/x")
        assert store.read("outputs/acme/x", limit=LIMIT) == b"new"
        assert list(store.keys("outputs/acme/")) == ["outputs/acme/x"]

    def test_a_copy_lives_without_its_source(self, store: ObjectStore):
        store.put("work/j/1/x", b"new")
        store.copy("work/j/1/x", "outputs/acme/x")
        store.put("work/j/1/x", b"another")
        store.delete("work/j/1/x")
        assert store.read("outputs/acme/x", limit=LIMIT) == b"new"

    def test_copy_of_nothing_leaves_the_target(self, store: ObjectStore):
        store.put("outputs/acme/x", b"old")
        with pytest.raises(ObjectMissing, match="work/j/1/x"):
            store.copy("work/j/1/x", "outputs/acme/x")
        assert store.read("outputs/acme/x", limit=LIMIT) == b"old"

    def test_copy_of_nothing_below_an_object_is_missing_too(self, store: ObjectStore):
        store.put("work/j/1", b"an object, no folder")
        with pytest.raises(ObjectMissing):
            store.copy("work/j/1/x", "outputs/acme/x")

    def test_delete_removes(self, store: ObjectStore):
        store.put(KEY, b"one")
        store.delete(KEY)
        assert store.head(KEY) is None
        assert list(store.keys("inbox/")) == []

    def test_delete_of_nothing_is_fine(self, store: ObjectStore):
        store.delete(KEY)
        store.delete("inbox/no/such/folder/x.csv")


@pytest.mark.parametrize("name", ODD_NAMES.values(), ids=ODD_NAMES)
def test_an_odd_name_is_kept_to_the_letter(store: ObjectStore, name: str):
    key = f"inbox/acme/{name}"
    put = store.put(key, name.encode())
    head = store.head(key)
    assert head is not None
    assert head.ref == put.ref
    assert list(store.keys("inbox/acme/")) == [key]
    assert [o.key for o in store.objects(key)] == [key]
    assert store.read(key, version=put.version, limit=LIMIT) == name.encode()
    store.copy(key, f"work/{name}")
    assert store.read(f"work/{name}", limit=LIMIT) == name.encode()
    store.delete(key)
    assert store.head(key) is None


def test_names_that_only_look_alike_are_two_objects(store: ObjectStore):
    composed, decomposed, upper = "inbox/acme/\u00e9.csv", "inbox/acme/e\u0301.csv", "inbox/acme/\u00c9.csv"
    for key in (composed, decomposed, upper):
        store.put(key, key.encode())
    assert set(store.keys("inbox/acme/")) == {composed, decomposed, upper}
    assert store.read(composed, limit=LIMIT) == composed.encode()


def test_a_large_file_goes_in_and_out_unharmed(store: ObjectStore, tmp_path: Path):
    source = tmp_path / "large.bin"
    block = bytes(range(256)) * 4096
    with source.open("wb") as out:
        for n in range(21):
            out.write(n.to_bytes(4, "big") + block)
    expected = hashlib.sha256(source.read_bytes()).hexdigest()
    put = store.put("inbox/acme/large.bin", source)
    assert put.size == source.stat().st_size
    got = store.fetch("inbox/acme/large.bin", tmp_path / "back.bin", version=put.version, limit=LIMIT)
    assert (got.size, got.sha256) == (put.size, expected)
    store.copy("inbox/acme/large.bin", "outputs/acme/large.bin")
    assert store.fetch("outputs/acme/large.bin", tmp_path / "copy.bin", limit=LIMIT).sha256 == expected


def test_more_keys_than_one_answer_holds_are_all_listed(store: ObjectStore):
    expected = [f"work/j/{n:05d}" for n in range(45)]
    with contenders.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: store.put(key, b""), expected))
    assert list(store.keys("work/")) == expected
    assert store.delete_prefix("work/") == 45
    assert list(store.keys("work/")) == []


@pytest.mark.parametrize("name", ["plain.csv", ODD_NAMES["unicode"], ODD_NAMES["ampersand"]])
def test_a_link_reads_and_writes_for_whoever_has_it(store: ObjectStore, name: str):
    key = f"inbox/acme/{name}"
    given = store.link(key, seconds=60, write=True)
    if given is None:
        assert store.link(key, seconds=60) is None  # nobody serves it but the API
        return
    httpx.put(given, content=b"by link").raise_for_status()
    assert store.read(key, limit=100) == b"by link"
    asked = store.link(key, seconds=60, save_as=name)
    assert asked is not None
    assert httpx.get(asked).raise_for_status().content == b"by link"
