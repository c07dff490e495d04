"""What the adapters send, byte by byte, where a service or an older server would care."""

import base64
import hashlib
import json
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from secrets import token_hex
from types import SimpleNamespace

import pytest

from core.errors import StoreUnavailable
from core.ports import Message
from infra.addresses import parse_address
from infra.aws.s3 import S3Store
from infra.aws.sqs import SqsWorkQueue
from infra.clocks import HandClock
from infra.deploy.local_cloud import Server
from tests.contract import servers
from tests.support.certificates import certificate_in
from tests.support.fault_proxy import Faults, Saying, Seen, fault_proxy

MB = 1024 * 1024


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certificate_in(tmp_path_factory.mktemp("tls"))


@pytest.fixture(params=["http", "https"])
def store(
    request: pytest.FixtureRequest, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[SimpleNamespace]:
    """A bucket on SeaweedFS behind a proxy, over http and over https, where boto3 sends checksums differently."""
    server: Server = servers.seaweedfs()
    name, faults, tls = f"wire-{token_hex(4)}", Faults(seen=[]), None
    with ExitStack() as opened:
        opened.enter_context(servers.credentials(server))
        servers.admin("s3", server.endpoint).create_bucket(Bucket=name)
        if request.param == "https":
            tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            tls.load_cert_chain(*certificate)
            monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate[0]))
        proxy = opened.enter_context(fault_proxy(server.endpoint, faults, tls=tls))
        made = opened.enter_context(
            closing(S3Store(parse_address(f"s3://{name}?endpoint={proxy}"), part_bytes=5 * MB, page_size=10))
        )
        yield SimpleNamespace(port=made, faults=faults, seen=faults.seen)


def md5(body: bytes) -> str:
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()


def check_plain(seen: Seen) -> None:
    """As every S3 server since the first understands it: the body as it is, vouched for by Content-MD5."""
    assert seen.headers["content-md5"] == md5(seen.body), seen.what
    odd = [h for h in seen.headers if h.startswith(("x-amz-checksum", "x-amz-trailer", "x-amz-sdk-checksum"))]
    assert not odd, f"{seen.what} {seen.path}: {odd}"
    assert "aws-chunked" not in seen.headers.get("content-encoding", "")


class TestChecksums:
    def test_an_object_is_sent_as_it_is(self, store: SimpleNamespace):
        store.port.put("inbox/acme/a.csv", b"one")
        (put,) = [seen for seen in store.seen if seen.what == "S3 PUT"]
        check_plain(put)
        assert store.port.read("inbox/acme/a.csv", limit=10) == b"one"

    def test_a_conditional_object_too(self, store: SimpleNamespace):
        first = store.port.put("inbox/acme/a.csv", b"one", if_absent=True)
        store.port.put("inbox/acme/a.csv", b"two", if_version=first.version)
        for seen in store.seen:
            if seen.what == "S3 PUT" and "work/.probe" not in seen.path:
                check_plain(seen)

    def test_parts_too(self, store: SimpleNamespace, tmp_path: Path):
        (tmp_path / "large").write_bytes(b"x" * (6 * MB))
        store.port.put("inbox/acme/a.csv", tmp_path / "large")
        parts = [seen for seen in store.seen if seen.what == "S3 PUT" and "partNumber" in seen.path]
        assert len(parts) == 2
        for part in parts:
            check_plain(part)
        assert len(store.port.read("inbox/acme/a.csv", limit=6 * MB)) == 6 * MB

    def test_a_list_of_what_is_to_be_deleted_too(self, store: SimpleNamespace):
        for n in range(12):
            store.port.put(f"work/j/{n}", b"")
        assert store.port.delete_prefix("work/j/") == 12
        deletes = [seen for seen in store.seen if seen.what == "S3 POST"]
        assert deletes
        for seen in deletes:
            check_plain(seen)
        assert list(store.port.keys("work/")) == []


def partly(code: str) -> Saying:
    """What S3 answers where one of the keys could not be deleted."""
    said = f"<Error><Key>work/j/1</Key><Code>{code}</Code><Message>no</Message></Error>"
    return Saying(200, f"<?xml version='1.0'?><DeleteResult>{said}</DeleteResult>".encode())


class TestDeletingMany:
    def test_keys_that_the_store_was_too_busy_for_are_tried_again(self, store: SimpleNamespace):
        for n in range(3):
            store.port.put(f"work/j/{n}", b"")
        store.faults.script["S3 POST"] = [partly("InternalError")]
        assert store.port.delete_prefix("work/j/") == 3
        first, second = [seen.body for seen in store.seen if seen.what == "S3 POST"]
        assert b"work/j/0" in first
        assert b"work/j/1" in second
        assert b"work/j/0" not in second

    def test_a_key_that_may_not_be_deleted_is_reported(self, store: SimpleNamespace):
        store.port.put("work/j/1", b"")
        store.faults.script["S3 POST"] = [partly("AccessDenied")]
        with pytest.raises(StoreUnavailable, match="AccessDenied"):
            store.port.delete_prefix("work/j/")

    def test_no_more_than_a_page_of_keys_is_held(self, store: SimpleNamespace):
        for n in range(25):
            store.port.put(f"work/j/{n:02}", b"")
        store.seen.clear()
        store.port.delete_prefix("work/j/")
        assert [seen.what for seen in store.seen[:3]] == ["S3 LIST", "S3 POST", "S3 LIST"]


@pytest.fixture
def queue() -> Iterator[SimpleNamespace]:
    server, name, faults = servers.ministack(), f"wire-{token_hex(4)}", Faults(seen=[])
    with ExitStack() as opened:
        opened.enter_context(servers.credentials(server))
        admin = servers.admin("sqs", server.endpoint)
        urls = [admin.create_queue(QueueName=n)["QueueUrl"] for n in (name, f"{name}-dead")]
        proxy = opened.enter_context(fault_proxy(server.endpoint, faults))
        clock = HandClock()
        port = opened.enter_context(
            closing(SqsWorkQueue(parse_address(f"sqs://{name}?endpoint={proxy}"), clock, longest_poll=2))
        )
        yield SimpleNamespace(port=port, faults=faults, admin=admin, url=urls[0], dead_url=urls[1], clock=clock)


def sent(queue: SimpleNamespace) -> list[dict[str, str]]:
    return [json.loads(seen.body) for seen in queue.faults.seen if seen.what == "SQS SendMessage"]


class TestFairQueues:
    def test_a_message_names_its_tenant_as_its_group(self, queue: SimpleNamespace):
        for tenant in ("acme", "globex"):
            queue.port.send(Message(job_id=f"{tenant}-members-1", tenant=tenant))
        assert [body["MessageGroupId"] for body in sent(queue)] == ["acme", "globex"]

    def test_a_delayed_message_and_a_dead_letter_too(self, queue: SimpleNamespace):
        message = Message(job_id="acme-members-1", tenant="acme")
        queue.port.send(message, delay=30)
        queue.port.bury(message, "tries used up")
        assert [body["MessageGroupId"] for body in sent(queue)] == ["acme", "acme"]

    def test_a_group_has_only_characters_that_sqs_allows(self, queue: SimpleNamespace):
        queue.port.send(Message(job_id="j", tenant="Acme & Söhne"))
        assert sent(queue)[0]["MessageGroupId"] == "Acme___S_hne"


class TestForeignMessages:
    """The queue is open to whoever has the rights; what is not ours must stop nobody."""

    @pytest.mark.parametrize("body", ["no json", "[]", "{}", '{"job_id": 7, "tenant": "acme"}', '"s3:TestEvent"'])
    def test_it_goes_to_the_dead_letters_and_the_others_go_on(self, queue: SimpleNamespace, body: str):
        queue.admin.send_message(QueueUrl=queue.url, MessageBody=body)
        queue.port.send(Message(job_id="acme-members-1", tenant="acme"))
        got = [d.message.job_id for _ in range(2) for d in queue.port.receive(most=10, wait=1, visibility=30)]
        assert got == ["acme-members-1"]
        (letter,) = queue.port.dead()
        assert "not a message of ade-drop" in letter.reason

    def test_a_foreign_dead_letter_is_shown_and_can_be_taken_off(self, queue: SimpleNamespace):
        queue.admin.send_message(QueueUrl=queue.dead_url, MessageBody="no json")
        (letter,) = queue.port.dead()
        assert "not a message of ade-drop" in letter.reason
        assert queue.port.redrive(letter.message.job_id) == 1
        assert queue.port.dead() == ()


def test_a_message_of_a_newer_program_is_sent_on_as_it_is(queue: SimpleNamespace):
    body = json.dumps({"v": 2, "job": "acme-members-1", "hints": [1]})
    queue.admin.send_message(QueueUrl=queue.url, MessageBody=body)
    queue.port.send(Message(job_id="acme-members-2", tenant="acme"))
    got = [d.message.job_id for _ in range(2) for d in queue.port.receive(most=10, wait=1, visibility=30)]
    assert (got, queue.port.dead()) == (["acme-members-2"], ())
    again = [one for one in sent(queue) if one["MessageBody"] == body]
    assert [int(one["DelaySeconds"]) for one in again] == [60]


def test_the_dead_letters_are_asked_for_on_all_servers(queue: SimpleNamespace):
    queue.port.bury(Message(job_id="j", tenant="acme"), "x")
    queue.port.dead(limit=1)
    (asked,) = [json.loads(seen.body) for seen in queue.faults.seen if seen.what == "SQS ReceiveMessage"]
    assert asked["WaitTimeSeconds"] > 0, "a short poll asks only some of the servers"


def test_a_poll_that_breaks_down_is_reported_to_the_caller(queue: SimpleNamespace, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object) -> list[dict[str, str]]:
        raise ZeroDivisionError

    monkeypatch.setattr(queue.port, "_receive", broken)
    with pytest.raises(ZeroDivisionError):
        queue.port.receive(most=1, wait=1, visibility=30)


def test_a_long_delay_is_sent_on_whatever_the_network_does(queue: SimpleNamespace):
    queue.port.send(Message(job_id="acme-members-1", tenant="acme"), delay=3600)
    queue.admin.send_message(
        QueueUrl=queue.url,
        MessageBody=json.dumps({"job_id": "j", "tenant": "acme", "not_before": queue.clock.now() + 3600}),
    )
    queue.faults.script["SQS DeleteMessage"] = ["busy", "cut"]
    assert queue.port.receive(most=10, wait=0, visibility=30) == ()
    assert queue.faults.injected["busy"] == 1


def test_receipts_of_messages_that_nobody_gave_back_are_forgotten(queue: SimpleNamespace):
    for n in range(3):
        queue.port.send(Message(job_id=f"j{n}", tenant="acme"))
        assert queue.port.receive(most=1, wait=0, visibility=30)
        queue.clock.move(31)
    assert len(queue.port._held) <= 1
