"""Probes write where jobs do, leave nothing behind, and find services that answer and refuse every job."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from secrets import token_hex
from types import SimpleNamespace

import pytest

from core.errors import StoreUnavailable
from core.ports import JobQuery, JobTable, Message, ObjectStore, WorkQueue
from core.settings import Settings
from infra.addresses import parse_address
from infra.aws.calls import client
from infra.aws.provision import Step, provision, verify
from infra.clocks import HandClock
from infra.probes import probe_queue, probe_store, probe_table
from tests.contract import servers
from tests.support.fault_proxy import Faults, Saying, fault_proxy

DENIED = Saying(403, b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>no</Message></Error>")
NO_TRANSACTIONS = Saying(400, json.dumps({"__type": "UnknownOperationException"}).encode())


def test_a_store_that_works_is_left_as_it_was(store: ObjectStore):
    probe_store(store)
    assert list(store.keys("")) == []


def test_a_table_that_works_is_left_as_it_was(table: JobTable, clock: HandClock):
    probe_table(table, clock)
    assert table.page(JobQuery()).jobs == ()


def test_a_queue_that_works_keeps_the_messages_of_jobs(queue: WorkQueue):
    probe_queue(queue)
    assert queue.receive(most=10, wait=0, visibility=5) == ()
    queue.send(Message(job_id="acme-members-1", tenant="acme"))
    probe_queue(queue)
    names = {d.message.job_id for _ in range(3) for d in queue.receive(most=10, wait=0.5, visibility=5)}
    assert {name for name in names if not name.startswith("probe-")} == {"acme-members-1"}


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[SimpleNamespace]:
    server, name, faults = servers.ministack(), f"probes-{token_hex(4)}", Faults(seen=[])
    with ExitStack() as opened:
        opened.enter_context(servers.credentials(server))
        proxy = opened.enter_context(fault_proxy(server.endpoint, faults))
        settings = Settings(
            storage_data_dir=tmp_path,
            store_url=f"s3://{name}?endpoint={proxy}",
            table_url=f"dynamodb://{name}?endpoint={proxy}",
            queue_url=f"sqs://{name}?endpoint={proxy}",
        )
        admin = opened.enter_context(closing(client(parse_address(settings.store_url))))
        yield SimpleNamespace(settings=settings, faults=faults, admin=admin, name=name)


def actions(steps: list[Step]) -> dict[str, str]:
    return {step.kind: step.action for step in steps}


def test_what_was_created_works(cloud: SimpleNamespace):
    provision(cloud.settings, apply=True)
    assert actions(verify(cloud.settings)) == {"bucket": "works", "table": "works", "work queue": "works"}


def test_a_table_without_transactions_is_named(cloud: SimpleNamespace):
    provision(cloud.settings, apply=True)
    cloud.faults.script["DynamoDB TransactWriteItems"] = [NO_TRANSACTIONS] * 9
    assert actions(verify(cloud.settings)) == {"bucket": "works", "table": "fails", "work queue": "works"}


def test_a_queue_that_takes_no_message_is_named(cloud: SimpleNamespace):
    """As a FIFO queue, which wants to know how to tell messages apart."""
    provision(cloud.settings, apply=True)
    refusal = {"__type": "com.amazonaws.sqs#InvalidParameterValue", "message": "MessageDeduplicationId"}
    cloud.faults.script["SQS SendMessage"] = [Saying(400, json.dumps(refusal).encode())] * 9
    assert actions(verify(cloud.settings)) == {"bucket": "works", "table": "works", "work queue": "fails"}


def test_a_bucket_that_can_only_be_read_is_named(cloud: SimpleNamespace):
    provision(cloud.settings, apply=True)
    cloud.faults.script["S3 PUT"] = [DENIED] * 9
    (bucket,) = [step for step in verify(cloud.settings) if step.kind == "bucket"]
    assert bucket.action == "fails"
    assert "AccessDenied" in bucket.detail


class TestNoPublicAccess:
    """Ceph 16 answers 403 to every put once public ACLs are blocked."""

    BEFORE = ("", "", "")  # the bucket, its versions, the block

    def test_acls_are_left_alone_where_blocking_them_stops_writes(self, cloud: SimpleNamespace):
        cloud.faults.script["S3 PUT"] = [*self.BEFORE, DENIED]
        (step,) = [s for s in provision(cloud.settings, apply=True) if s.kind == "no public access"]
        assert step.action == "create"
        assert "policies only" in step.detail
        blocks = cloud.admin.get_public_access_block(Bucket=cloud.name)["PublicAccessBlockConfiguration"]
        assert not blocks.get("BlockPublicAcls")
        assert blocks["BlockPublicPolicy"]

    def test_nothing_is_blocked_where_that_stops_writes_too(self, cloud: SimpleNamespace):
        cloud.faults.script["S3 PUT"] = [*self.BEFORE, DENIED, "", DENIED]
        (step,) = [s for s in provision(cloud.settings, apply=True) if s.kind == "no public access"]
        assert (step.action, "taken back" in step.detail) == ("unsupported", True)
        with pytest.raises(cloud.admin.exceptions.ClientError):
            cloud.admin.get_public_access_block(Bucket=cloud.name)

    def test_everything_is_blocked_where_writes_go_on(self, cloud: SimpleNamespace):
        (step,) = [s for s in provision(cloud.settings, apply=True) if s.kind == "no public access"]
        assert (step.action, step.detail) == ("create", "")
        blocks = cloud.admin.get_public_access_block(Bucket=cloud.name)["PublicAccessBlockConfiguration"]
        assert all(blocks.values())


def test_a_store_that_keeps_nothing_is_named(store: ObjectStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(store, "copy", lambda _source, _target: None, raising=False)
    with pytest.raises(StoreUnavailable):
        probe_store(store)
