"""What a proxy, a cache or a gateway answers in the store's place is not believed: the next answer counts."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from secrets import token_hex
from types import SimpleNamespace

import pytest

from core.errors import AnswerDoubted, StoreUnavailable
from infra.addresses import parse_address
from infra.aws.calls import Caller
from infra.aws.s3 import S3Store
from tests.contract import servers
from tests.support.fault_proxy import Faults, Headers, Lie, Saying, fault_proxy

MB = 1024 * 1024
KEY = "inbox/acme/a.csv"
BODY = b"id,name\n1,Ann\n2,Bob\n3,Cy\n"
PAGE = b"<html><body>Signed in</body></html>"
ERROR = b"<?xml version='1.0'?><Error><Code>InternalError</Code><Message>no</Message></Error>"

short = Lie(lambda headers, content: (headers, content[: len(content) // 3]))
swapped = Lie(lambda headers, content: (headers, content[::-1]))
nothing = Lie(
    lambda headers, _: ([(k, v) for k, v in headers if k != "Content-Length"] + [("Content-Length", "0")], b"")
)
page = Lie(lambda _headers, _content: ([("Content-Type", "text/html")], PAGE))
error = Lie(lambda _headers, _content: ([("Content-Type", "text/xml")], ERROR))
unsent = {"page": Saying(200, PAGE), "error": Saying(200, ERROR), "empty": Saying(200, b"")}


def third(headers: Headers, content: bytes) -> tuple[Headers, bytes]:
    """A HEAD that says a third of the length."""
    length = int(dict(headers)["Content-Length"]) // 3
    return [(k, v) for k, v in headers if k != "Content-Length"] + [("Content-Length", str(length))], content


@pytest.fixture(params=["md5", "opaque"])
def cloud(request: pytest.FixtureRequest) -> Iterator[SimpleNamespace]:
    """A bucket behind a proxy that lies as its script says; its ETags are digests, or taken for none."""
    server, name, faults = servers.ministack(), f"lies-{token_hex(4)}", Faults(seen=[])
    option = "&etag=opaque" if request.param == "opaque" else ""
    with ExitStack() as opened:
        opened.enter_context(servers.credentials(server))
        servers.admin("s3", server.endpoint).create_bucket(Bucket=name)
        proxy = opened.enter_context(fault_proxy(server.endpoint, faults))
        address = parse_address(f"s3://{name}?endpoint={proxy}{option}")
        store = opened.enter_context(closing(S3Store(address, part_bytes=5 * MB)))
        hasty = opened.enter_context(closing(S3Store(address, caller=Caller("store", deadline=0.5))))
        store.conditional()
        yield SimpleNamespace(store=store, hasty=hasty, faults=faults, opaque=request.param == "opaque")


class TestReads:
    @pytest.mark.parametrize("lie", [short, page, error, nothing], ids=["short", "page", "error", "nothing"])
    @pytest.mark.parametrize("pinned", [True, False], ids=["pinned", "newest"])
    def test_content_that_is_not_the_objects_is_asked_for_again(self, cloud: SimpleNamespace, lie: Lie, pinned: bool):
        version = cloud.store.put(KEY, BODY).version if pinned else (cloud.store.put(KEY, BODY), None)[1]
        cloud.faults.script["S3 GET"] = [lie]
        assert cloud.store.read(KEY, version=version, limit=1000) == BODY
        assert not cloud.faults.script["S3 GET"]

    def test_other_bytes_of_the_same_length_too(self, cloud: SimpleNamespace):
        if cloud.opaque:
            pytest.skip("nothing says what the bytes are")
        info = cloud.store.put(KEY, BODY)
        cloud.faults.script["S3 GET"] = [swapped]
        assert cloud.store.read(KEY, version=info.version, limit=1000) == BODY

    def test_a_file_holds_nothing_of_the_doubted_answer(self, cloud: SimpleNamespace, tmp_path: Path):
        info = cloud.store.put(KEY, BODY)
        cloud.faults.script["S3 GET"] = [short, page]
        fetched = cloud.store.fetch(KEY, tmp_path / "a", version=info.version, limit=1000)
        assert (tmp_path / "a").read_bytes() == BODY
        assert fetched.size == len(BODY)

    def test_a_store_that_never_proves_itself_is_unavailable(self, cloud: SimpleNamespace, tmp_path: Path):
        info = cloud.store.put(KEY, BODY)
        cloud.faults.script["S3 GET"] = [short] * 1000
        with pytest.raises(AnswerDoubted, match=KEY):
            cloud.hasty.fetch(KEY, tmp_path / "a", version=info.version, limit=1000)
        assert not (tmp_path / "a").exists()

    def test_an_object_of_parts_is_compared_with_its_description(self, cloud: SimpleNamespace, tmp_path: Path):
        (tmp_path / "large").write_bytes(b"x" * (6 * MB))
        info = cloud.store.put(KEY, tmp_path / "large")
        cloud.faults.script["S3 GET"] = [short]
        assert len(cloud.store.read(KEY, version=info.version, limit=6 * MB)) == 6 * MB


class TestDescriptions:
    @pytest.mark.parametrize("lie", [nothing, page], ids=["nothing", "page"])
    def test_a_description_without_length_or_etag_is_asked_for_again(self, cloud: SimpleNamespace, lie: Lie):
        info = cloud.store.put(KEY, BODY)
        cloud.faults.script["S3 HEAD"] = [lie]
        found = cloud.store.head(KEY)
        if not (cloud.opaque and lie is nothing):  # without a digest a length may be anything
            assert (found.size, found.digest) == (info.size, info.digest)

    def test_a_listed_object_has_the_length_that_the_listing_says(self, cloud: SimpleNamespace):
        info = cloud.store.put(KEY, BODY)
        for lie in (nothing, Lie(third)):
            cloud.faults.script["S3 HEAD"] = [lie]
            another = S3Store(cloud.store._address)
            with closing(another):
                (found,) = another.objects("inbox/")
            assert (found.size, found.digest) == (info.size, info.digest)

    def test_an_empty_object_is_described_as_such(self, cloud: SimpleNamespace):
        cloud.store.put(KEY, b"")
        assert cloud.store.head(KEY).size == 0
        assert cloud.store.read(KEY, limit=10) == b""

    @pytest.mark.parametrize("answer", unsent)
    def test_a_listing_is_a_listing(self, cloud: SimpleNamespace, answer: str):
        cloud.store.put(KEY, BODY)
        cloud.faults.script["S3 LIST"] = [unsent[answer]]
        assert list(cloud.store.keys("inbox/")) == [KEY]


class TestWrites:
    @pytest.mark.parametrize("answer", unsent)
    def test_what_was_never_written_is_written_again(self, cloud: SimpleNamespace, answer: str):
        cloud.faults.script["S3 PUT"] = [unsent[answer]]
        cloud.store.put(KEY, BODY)
        assert cloud.store.read(KEY, limit=1000) == BODY

    @pytest.mark.parametrize("answer", unsent)
    def test_a_conditional_one_too(self, cloud: SimpleNamespace, answer: str):
        cloud.faults.script["S3 PUT"] = [unsent[answer]]
        first = cloud.store.put(KEY, b"one", if_absent=True)
        cloud.faults.script["S3 PUT"] = [unsent[answer]]
        cloud.store.put(KEY, BODY, if_version=first.version)
        assert cloud.store.read(KEY, limit=1000) == BODY

    def test_one_that_was_written_and_answered_by_a_page_is_known_again(self, cloud: SimpleNamespace):
        cloud.faults.script["S3 PUT"] = [page]
        cloud.store.put(KEY, BODY, if_absent=True)
        assert cloud.store.read(KEY, limit=1000) == BODY

    @pytest.mark.parametrize("answer", unsent)
    def test_a_copy_is_made(self, cloud: SimpleNamespace, answer: str):
        cloud.store.put("work/j/1/a", BODY)
        cloud.faults.script["S3 PUT"] = [unsent[answer]]
        cloud.store.copy("work/j/1/a", "outputs/acme/a")
        assert cloud.store.read("outputs/acme/a", limit=1000) == BODY

    @pytest.mark.parametrize("answer", ["page", "empty"])
    def test_parts_arrive_and_are_put_together(self, cloud: SimpleNamespace, answer: str, tmp_path: Path):
        (tmp_path / "large").write_bytes(b"x" * (6 * MB))
        cloud.faults.script["S3 PUT"] = [unsent[answer]]
        cloud.faults.script["S3 POST"] = [unsent[answer], unsent[answer], "", unsent[answer]]
        cloud.store.put(KEY, tmp_path / "large")
        assert cloud.store.head(KEY).size == 6 * MB

    def test_a_store_that_never_proves_a_write_is_unavailable(self, cloud: SimpleNamespace):
        cloud.faults.script["S3 PUT"] = [unsent["page"]] * 1000
        with pytest.raises(StoreUnavailable, match=KEY):
            cloud.hasty.put(KEY, BODY)


class TestDeletes:
    @pytest.mark.parametrize("answer", unsent)
    def test_what_was_never_deleted_is_deleted_again(self, cloud: SimpleNamespace, answer: str):
        cloud.store.put(KEY, BODY)
        cloud.faults.script["S3 DELETE"] = [unsent[answer]]
        cloud.store.delete(KEY)
        assert cloud.store.head(KEY) is None

    @pytest.mark.parametrize("answer", unsent)
    def test_several_at_once_too(self, cloud: SimpleNamespace, answer: str):
        keys = [KEY, "work/j/1/a b&c.csv"]
        for key in keys:
            cloud.store.put(key, BODY)
        cloud.faults.script["S3 POST"] = [unsent[answer]]
        cloud.store.delete_all([*keys, "work/never"])
        assert [cloud.store.head(key) for key in keys] == [None, None]
        assert not cloud.faults.script["S3 POST"]
