"""What a listing costs, in requests: what a sweep asks for depends on what changed, not on what is there."""

from collections import Counter
from itertools import count
from typing import Any

import pytest
from botocore.exceptions import ClientError

from core.ports import ObjectStore
from infra.aws.s3 import S3Store
from tests.contract.cloud_adapters import PAGE
from tests.contract.rigs import Rig

pytestmark = pytest.mark.slow

OBJECTS = 4 * PAGE + 3
NUMBERS = count()


def counted(store: S3Store) -> Counter[str]:
    asked: Counter[str] = Counter()

    def note(model: Any, **_: Any) -> None:
        asked[model.name] += 1

    store._s3.meta.events.register("before-call.s3", note)
    return asked


@pytest.fixture
def remote(store_rig: Rig[ObjectStore]) -> Rig[ObjectStore]:
    if not isinstance(store_rig.port, S3Store):
        pytest.skip("not over a network")
    return store_rig


@pytest.fixture
def inbox() -> str:
    """Of a tenant of its own: a bucket with versions remembers what earlier tests deleted."""
    return f"inbox/t{next(NUMBERS)}/"


@pytest.fixture
def filled(remote: Rig[ObjectStore], inbox: str) -> Rig[ObjectStore]:
    for n in range(OBJECTS):
        remote.port.put(f"{inbox}d{n // 5}/{n:03}.csv", f"{n}".encode())
    return remote


def lists(asked: Counter[str]) -> int:
    return asked["ListObjectsV2"] + asked["ListObjectVersions"]


class TestASweep:
    def test_by_a_fresh_process_does_not_request_each_object_by_itself(self, filled: Rig[ObjectStore], inbox: str):
        with filled.another() as fresh:
            asked = counted(fresh)
            infos = list(fresh.objects(inbox))
        assert len(infos) == OBJECTS
        pages = OBJECTS // PAGE + 1
        assert lists(asked) <= 3 * pages
        assert asked["HeadObject"] <= pages, "moto leaves out the first of each page of versions"

    def test_tells_of_each_object_what_a_request_for_it_tells(self, filled: Rig[ObjectStore], inbox: str):
        with filled.another() as fresh:
            for info in fresh.objects(inbox):
                head = filled.port.head(info.key)
                assert head is not None
                assert (info.ref, info.modified) == (head.ref, head.modified)

    def test_finds_what_was_replaced_by_as_many_bytes_in_the_same_second(self, filled: Rig[ObjectStore], inbox: str):
        with filled.another() as fresh:
            before = {info.key: info.ref for info in fresh.objects(inbox)}
            filled.port.put(f"{inbox}d0/003.csv", b"x")
            after = {info.key: info.ref for info in fresh.objects(inbox)}
        assert [key for key in after if after[key].digest != before[key].digest] == [f"{inbox}d0/003.csv"]

    def test_does_not_find_what_was_deleted(self, filled: Rig[ObjectStore], inbox: str):
        filled.port.delete(f"{inbox}d1/007.csv")
        with filled.another() as fresh:
            found = {info.key for info in fresh.objects(inbox)}
        assert len(found) == OBJECTS - 1
        assert f"{inbox}d1/007.csv" not in found

    def test_of_objects_that_were_replaced_again_and_again_finds_the_newest(self, remote: Rig[ObjectStore], inbox: str):
        for n in range(3 * PAGE):
            remote.port.put(f"{inbox}a.csv", f"{n}".encode())
        for name in "bcdefg":
            remote.port.put(f"{inbox}{name}.csv", name.encode())
        with remote.another() as fresh:
            found = {info.key: info.ref for info in fresh.objects(inbox)}
        heads = [remote.port.head(key) for key in found]
        assert [found[head.key] for head in heads if head is not None] == [head.ref for head in heads if head]
        assert len(found) == 7

    def test_again_costs_the_listing(self, filled: Rig[ObjectStore], inbox: str):
        with filled.another() as fresh:
            list(fresh.objects(inbox))
            asked = counted(fresh)
            list(fresh.objects(inbox))
        assert asked.keys() <= {"ListObjectsV2"}


class TestAFolder:
    def test_costs_one_request_once_versions_were_tried_out(self, filled: Rig[ObjectStore], inbox: str):
        with filled.another() as fresh:
            level = fresh.level(f"{inbox}d0/")
            level.infos(level.keys)
            asked = counted(fresh)
            level = fresh.level(f"{inbox}d1/")
            assert len(level.infos(level.keys)) == 5
        assert sum(asked.values()) == 1

    def test_that_holds_only_deleted_objects_is_no_folder(self, filled: Rig[ObjectStore], inbox: str):
        with filled.another() as fresh, filled.another() as plain:
            plain._listings._refused, plain._listings._agreed = True, False
            fresh.level(f"{inbox}d0/")
            assert f"{inbox}d1/" in fresh.level(inbox).folders
            filled.port.delete_prefix(f"{inbox}d1/")
            assert fresh.level(inbox).folders == plain.level(inbox).folders


def test_a_store_that_does_not_list_versions_is_asked_for_each_object_once(filled: Rig[ObjectStore], inbox: str):
    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied"}, "ResponseMetadata": {"HTTPStatusCode": 403}}, "List")

    with filled.another() as fresh:
        fresh._s3.meta.events.register("before-call.s3.ListObjectVersions", refuse)
        asked = counted(fresh)
        assert len(list(fresh.objects(inbox))) == OBJECTS
        assert len(list(fresh.objects(inbox))) == OBJECTS
    assert asked["HeadObject"] == OBJECTS


def test_listings_that_disagree_are_not_believed(filled: Rig[ObjectStore], inbox: str):
    """A server whose versions are others than its objects: each object is requested."""

    def other(parsed: dict[str, Any], **_: Any) -> None:
        for version in parsed.get("Versions", ()):
            version["ETag"] = '"0123456789abcdef0123456789abcdef"'

    with filled.another() as fresh:
        fresh._s3.meta.events.register("after-call.s3.ListObjectVersions", other)
        for info in fresh.objects(inbox):
            head = filled.port.head(info.key)
            assert head is not None
            assert info.ref == head.ref
        for n in (0, 1, 2, 3):
            level = fresh.level(f"{inbox}d{n}/")
            assert [i.ref for i in level.infos(level.keys)] == [
                head.ref for key in level.keys if (head := filled.port.head(key)) is not None
            ]
        assert fresh._listings._agreed is False
