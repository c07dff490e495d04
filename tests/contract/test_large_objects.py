"""Objects that take many requests: what breaks in the middle goes on from there, and is never a mixture."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from secrets import token_hex
from types import SimpleNamespace

import pytest

from core.errors import ObjectChanged, ObjectMissing, PreconditionFailed, StoreUnavailable
from infra.addresses import parse_address
from infra.aws.s3 import S3Store
from infra.deploy.local_cloud import Server
from tests.contract import servers
from tests.support.fault_proxy import Faults, Saying, fault_proxy

MB = 1024 * 1024
KEY = "inbox/acme/large.csv"
LIMIT = 64 * MB
TOO_LARGE = Saying(
    400,
    b"<?xml version='1.0'?><Error><Code>InvalidRequest</Code><Message>The specified copy source is larger than "
    b"the maximum allowable size for a copy source: 5368709120</Message></Error>",
)
GONE = Saying(404, b"<?xml version='1.0'?><Error><Code>NoSuchUpload</Code><Message>No such upload.</Message></Error>")


@pytest.fixture(params=["ministack", "versioned ministack", "seaweedfs"])
def bucket(request: pytest.FixtureRequest) -> Iterator[SimpleNamespace]:
    """A store behind a proxy, with parts as small as S3 allows."""
    server: Server = servers.seaweedfs() if request.param == "seaweedfs" else servers.ministack()
    name, faults = f"large-{token_hex(4)}", Faults(seen=[])
    with ExitStack() as opened:
        opened.enter_context(servers.credentials(server))
        admin = servers.admin("s3", server.endpoint)
        admin.create_bucket(Bucket=name)
        if request.param == "versioned ministack":
            admin.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        proxy = opened.enter_context(fault_proxy(server.endpoint, faults))
        address = parse_address(f"s3://{name}?endpoint={proxy}")
        store = opened.enter_context(closing(S3Store(address, part_bytes=5 * MB, copied_at_once=5 * MB)))
        direct = opened.enter_context(closing(S3Store(parse_address(f"s3://{name}?endpoint={server.endpoint}"))))
        # MiniStack answers a range of a version with the whole of it, so that one is begun anew.
        ranges = request.param != "versioned ministack"
        yield SimpleNamespace(store=store, direct=direct, faults=faults, admin=admin, name=name, ranges=ranges)


def asked(bucket: SimpleNamespace) -> list[str]:
    """The ranges that were asked for, in order; "" where it was the whole."""
    return [seen.headers.get("range", "") for seen in bucket.faults.seen if seen.what == "S3 GET"]


class TestReading:
    @pytest.mark.parametrize("pinned", [False, True], ids=["newest", "pinned"])
    def test_a_fetch_that_breaks_off_goes_on_where_it_stopped(
        self, bucket: SimpleNamespace, tmp_path: Path, pinned: bool
    ):
        body = os.urandom(6 * MB)
        put = bucket.direct.put(KEY, body)
        bucket.faults.script["S3 GET"] = ["torn", "torn"]
        got = bucket.store.fetch(KEY, tmp_path / "out", version=put.version if pinned else None, limit=LIMIT)
        assert (got.size, got.sha256) == (len(body), hashlib.sha256(body).hexdigest())
        assert (tmp_path / "out").read_bytes() == body
        starts = [int(r.removeprefix("bytes=").rstrip("-")) if r else 0 for r in asked(bucket)]
        assert starts[0] == 0 < starts[1] <= starts[2] < len(body)
        assert starts[1] < starts[2] or not bucket.ranges, "what had come was thrown away"

    def test_a_read_that_breaks_off_goes_on_where_it_stopped(self, bucket: SimpleNamespace):
        body = os.urandom(3 * MB)
        bucket.direct.put(KEY, body)
        bucket.faults.script["S3 GET"] = ["torn"]
        assert bucket.store.read(KEY, limit=LIMIT) == body
        assert len([r for r in asked(bucket) if r]) == 1

    @pytest.mark.parametrize("size", [1, 3 * MB])  # of one byte, half is none
    def test_it_goes_on_with_the_same_content_or_begins_anew_with_the_new_one(
        self, bucket: SimpleNamespace, tmp_path: Path, size: int
    ):
        old, new = b"o" * size, b"n" * size
        bucket.direct.put(KEY, old)
        self.replaced_after_a_break(bucket, new)
        bucket.store.fetch(KEY, tmp_path / "out", limit=LIMIT)
        assert (tmp_path / "out").read_bytes() in (old, new), "two versions were mixed"

    def replaced_after_a_break(self, bucket: SimpleNamespace, new: bytes) -> None:
        """The first answer breaks off, and before the next try comes through there is another object."""
        bucket.faults.script["S3 GET"] = ["torn", "busy"]
        count = bucket.faults.next

        def replacing(what: str, *more: object) -> object:
            fault = count(what, *more)
            if fault == "busy":
                bucket.direct.put(KEY, new)
            return fault

        bucket.faults.next = replacing

    def test_a_pinned_version_that_is_replaced_meanwhile_is_reported_or_read_to_its_end(self, bucket: SimpleNamespace):
        old = b"o" * (3 * MB)
        put = bucket.direct.put(KEY, old)
        self.replaced_after_a_break(bucket, b"n" * (3 * MB))
        try:
            assert bucket.store.read(KEY, version=put.version, limit=LIMIT) == old
        except ObjectChanged:
            assert put.version.startswith("etag:"), "a kept version was given up"

    def test_a_read_that_makes_no_headway_ends(self, bucket: SimpleNamespace, tmp_path: Path):
        bucket.direct.put(KEY, b"x" * MB)
        bucket.faults.script["S3 GET"] = [Saying(403, b"")]
        with pytest.raises(StoreUnavailable):
            bucket.store.fetch(KEY, tmp_path / "out", limit=LIMIT)
        assert not (tmp_path / "out").exists()


class TestCopying:
    def test_what_is_too_large_for_one_copy_is_copied_in_parts(self, bucket: SimpleNamespace, tmp_path: Path):
        body = os.urandom(12 * MB)
        bucket.direct.put("work/j/1/normalized.xlsx", body)
        bucket.faults.script["S3 PUT"] = [TOO_LARGE]
        bucket.store.copy("work/j/1/normalized.xlsx", "outputs/acme/normalized.xlsx")
        assert bucket.direct.read("outputs/acme/normalized.xlsx", limit=LIMIT) == body
        ranges = [seen.headers.get("x-amz-copy-source-range") for seen in bucket.faults.seen]
        assert {r for r in ranges if r} == {"bytes=0-5242879", "bytes=5242880-10485759", "bytes=10485760-12582911"}

    def test_a_copy_in_parts_survives_lost_answers(self, bucket: SimpleNamespace):
        body = os.urandom(6 * MB)
        bucket.direct.put("work/j/1/normalized.xlsx", body)
        bucket.faults.script["S3 PUT"] = [TOO_LARGE, "lost", "busy"]
        bucket.faults.script["S3 POST"] = ["", "lost"]
        bucket.store.copy("work/j/1/normalized.xlsx", "outputs/acme/normalized.xlsx")
        assert bucket.direct.read("outputs/acme/normalized.xlsx", limit=LIMIT) == body

    def test_a_small_copy_takes_one_request(self, bucket: SimpleNamespace):
        bucket.direct.put("work/j/1/a", b"x")
        bucket.store.copy("work/j/1/a", "outputs/acme/a")
        assert len(bucket.faults.seen) == 1

    def test_a_refused_copy_of_something_small_is_reported(self, bucket: SimpleNamespace):
        bucket.direct.put("work/j/1/a", b"x")
        bucket.faults.script["S3 PUT"] = [TOO_LARGE]
        with pytest.raises(StoreUnavailable, match="InvalidRequest"):
            bucket.store.copy("work/j/1/a", "outputs/acme/a")

    def test_a_large_copy_whose_source_went_is_missing(self, bucket: SimpleNamespace):
        bucket.faults.script["S3 PUT"] = [TOO_LARGE]
        with pytest.raises(ObjectMissing):
            bucket.store.copy("work/j/1/a", "outputs/acme/a")


class TestUploading:
    def large(self, tmp_path: Path) -> Path:
        path = tmp_path / "large"
        path.write_bytes(os.urandom(11 * MB))
        return path

    def test_a_completion_whose_answer_was_lost_is_ones_own(self, bucket: SimpleNamespace, tmp_path: Path):
        bucket.store.conditional()
        bucket.faults.script["S3 POST"] = ["", "lost"]
        path = self.large(tmp_path)
        put = bucket.store.put(KEY, path, if_absent=True)
        assert bucket.direct.read(KEY, version=put.version, limit=LIMIT) == path.read_bytes()

    def test_an_upload_that_somebody_ended_is_no_success(self, bucket: SimpleNamespace, tmp_path: Path):
        bucket.direct.put(KEY, b"older")
        bucket.faults.script["S3 POST"] = ["", GONE]
        with pytest.raises(StoreUnavailable):
            bucket.store.put(KEY, self.large(tmp_path))
        assert bucket.direct.read(KEY, limit=LIMIT) == b"older"

    def test_another_writers_object_is_not_taken_for_ones_own(self, bucket: SimpleNamespace, tmp_path: Path):
        bucket.store.conditional()
        bucket.direct.put(KEY, b"theirs")
        bucket.faults.script["S3 POST"] = ["", "busy"]
        with pytest.raises(PreconditionFailed):
            bucket.store.put(KEY, self.large(tmp_path), if_absent=True)

    def test_no_parts_are_left_behind(self, bucket: SimpleNamespace, tmp_path: Path):
        bucket.faults.script["S3 POST"] = ["", GONE]
        with pytest.raises(StoreUnavailable):
            bucket.store.put(KEY, self.large(tmp_path))
        assert bucket.admin.list_multipart_uploads(Bucket=bucket.name).get("Uploads", []) == []
