"""A call that took effect though its answer was lost: the retry must not take its own work for another's."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from secrets import token_hex
from types import SimpleNamespace

import pytest

from core.errors import ObjectMissing, PreconditionFailed, StoreUnavailable
from core.jobs import Job, State, move, start
from core.ports import Caps, JobQuery, Message, Refused
from infra.addresses import parse_address
from infra.aws.calls import Caller, client
from infra.aws.dynamodb import DynamoJobTable
from infra.aws.dynamodb_items import job_key, table_definition
from infra.aws.s3 import S3Store
from infra.aws.sqs import SqsWorkQueue
from infra.clocks import HandClock
from tests.contract import servers
from tests.contract.embedded import job_wake_at
from tests.contract.jobs import NOW, a_job, with_reason
from tests.support.fault_proxy import Faults, Saying, fault_proxy

ONE = Caps(tenant=1, workflow=1)
TRANSACTION, PUT = "DynamoDB TransactWriteItems", "DynamoDB PutItem"


@pytest.fixture
def cloud() -> Iterator[SimpleNamespace]:
    """Ports behind a proxy that loses what its script says."""
    server, name, faults = servers.ministack(), f"lost-{token_hex(4)}", Faults()
    with ExitStack() as opened:
        opened.enter_context(servers.credentials(server))
        for service in ("s3", "dynamodb", "sqs"):
            admin = opened.enter_context(
                closing(client(parse_address(f"{service}://{name}?endpoint={server.endpoint}")))
            )
            match service:
                case "s3":
                    admin.create_bucket(Bucket=name)
                case "dynamodb":
                    admin.create_table(**table_definition(name))
                case _:
                    admin.create_queue(QueueName=name)
                    admin.create_queue(QueueName=f"{name}-dead")
        proxy = opened.enter_context(fault_proxy(server.endpoint, faults))
        address = lambda service: parse_address(f"{service}://{name}?endpoint={proxy}")  # noqa: E731
        store = opened.enter_context(closing(S3Store(address("s3"))))
        table = opened.enter_context(closing(DynamoJobTable(address("dynamodb"), HandClock(), job_wake_at)))
        queue = opened.enter_context(closing(SqsWorkQueue(address("sqs"), HandClock(), longest_poll=2)))
        yield SimpleNamespace(store=store, table=table, queue=queue, faults=faults, address=address, name=name)


def starting(job: Job) -> Job:
    return start(job, owner="r1", now=NOW, lease_seconds=30)


class TestStore:
    def test_a_conditional_put_knows_its_own_work(self, cloud: SimpleNamespace):
        cloud.store.conditional()
        cloud.faults.script["S3 PUT"] = ["lost"]
        cloud.store.put("outputs/acme/latest.json", b"mine", if_absent=True)
        assert cloud.store.read("outputs/acme/latest.json", limit=10) == b"mine"

    def test_another_writers_work_is_not_taken_for_ones_own(self, cloud: SimpleNamespace):
        cloud.store.put("outputs/acme/latest.json", b"theirs")
        cloud.faults.script["S3 PUT"] = ["cut"]
        with pytest.raises(PreconditionFailed):
            cloud.store.put("outputs/acme/latest.json", b"mine", if_absent=True)

    def test_a_put_over_a_version_knows_its_own_work(self, cloud: SimpleNamespace):
        first = cloud.store.put("outputs/acme/latest.json", b"first")
        cloud.store.conditional()
        cloud.faults.script["S3 PUT"] = ["lost"]
        second = cloud.store.put("outputs/acme/latest.json", b"second", if_version=first.version)
        assert cloud.store.read("outputs/acme/latest.json", version=second.version, limit=10) == b"second"

    def test_a_read_that_breaks_off_is_read_again(self, cloud: SimpleNamespace):
        cloud.store.put("inbox/acme/a.csv", b"x" * 1000)
        cloud.faults.script["S3 GET"] = ["cut", "busy", "lost"]
        assert cloud.store.read("inbox/acme/a.csv", limit=1000) == b"x" * 1000

    def test_a_definite_no_is_not_tried_again(self, cloud: SimpleNamespace):
        with pytest.raises(ObjectMissing):
            cloud.store.read("inbox/acme/a.csv", limit=10)
        assert cloud.faults.counted["S3 GET"] == 1


class TestTable:
    def test_an_added_job_was_made_by_this_call(self, cloud: SimpleNamespace):
        cloud.faults.script[TRANSACTION] = ["lost"]
        job, made = cloud.table.add(a_job("a"))
        assert made
        assert cloud.table.line(job.line) == (job,)

    def test_a_replaced_row_was_written_by_this_call(self, cloud: SimpleNamespace):
        old, _ = cloud.table.add(a_job("a"))
        cloud.faults.script[PUT] = ["lost"]
        new = cloud.table.replace(old, with_reason(old, "new"))
        assert new is not None
        assert cloud.table.get(old.job_id) == new

    def test_a_start_takes_one_slot_and_is_not_refused_by_it(self, cloud: SimpleNamespace):
        old, _ = cloud.table.add(a_job("a"))
        cloud.faults.script[TRANSACTION] = ["lost"]
        assert isinstance(cloud.table.admit(old, starting(old), ONE), Job)
        other, _ = cloud.table.add(a_job("b"))
        answer = cloud.table.admit(other, starting(other), ONE)
        assert answer == Refused(reason="waiting: tenant acme 1/1 running", scope="tenant")

    def test_a_slot_is_freed_once(self, cloud: SimpleNamespace):
        old, _ = cloud.table.add(a_job("a"))
        running = cloud.table.admit(old, starting(old), ONE)
        cloud.faults.script[TRANSACTION] = ["lost"]
        assert cloud.table.replace(running, move(running, State.FAILED, now=NOW)) is not None
        for name in "bc":
            cloud.table.add(a_job(name))
        second, third = cloud.table.get("acme-members-b"), cloud.table.get("acme-members-c")
        assert isinstance(cloud.table.admit(second, starting(second), ONE), Job)
        assert isinstance(cloud.table.admit(third, starting(third), ONE), Refused)

    def test_a_removed_row_was_removed_by_this_call(self, cloud: SimpleNamespace):
        old, _ = cloud.table.add(a_job("a"))
        cloud.faults.script[TRANSACTION] = ["lost"]
        assert cloud.table.remove(old)
        assert cloud.table.get(old.job_id) is None


def unread(name: str, *job_ids: str) -> Saying:
    """What DynamoDB answers where it had no capacity left for these rows."""
    keys = [job_key(job_id) for job_id in job_ids]
    return Saying(200, json.dumps({"Responses": {name: []}, "UnprocessedKeys": {name: {"Keys": keys}}}).encode())


def test_rows_that_a_busy_table_left_unread_are_asked_for_again_after_a_while(cloud: SimpleNamespace):
    jobs = [cloud.table.add(a_job(name))[0] for name in "ab"]
    told: list[str] = []
    caller = Caller("dynamodb://jobs", longest_wait=0.05, on_retry=lambda _what, why: told.append(why))
    ids = [job.job_id for job in jobs]
    cloud.faults.script["DynamoDB BatchGetItem"] = [unread(cloud.name, *ids), unread(cloud.name, ids[1])]
    with closing(DynamoJobTable(cloud.address("dynamodb"), HandClock(), job_wake_at, caller=caller)) as table:
        assert {job.job_id for job in table.page(JobQuery()).jobs} == {ids[1]}
    assert len(told) == 2, "it did not wait before it asked again"


def test_a_sent_message_is_delivered_at_least_once(cloud: SimpleNamespace):
    cloud.faults.script["SQS SendMessage"] = ["busy", "lost"]
    cloud.queue.send(Message(job_id="a", tenant="acme"))
    got = cloud.queue.receive(most=10, wait=2, visibility=30)
    assert {delivery.message.job_id for delivery in got} == {"a"}


def test_a_service_that_stays_silent_is_reported_with_its_name(cloud: SimpleNamespace):
    told: list[str] = []
    caller = Caller("s3://drops", deadline=2, longest_wait=0.05, on_retry=lambda what, _why: told.append(what))
    cloud.faults.outage(60)
    with (
        closing(S3Store(cloud.address("s3"), caller=caller)) as store,
        pytest.raises(StoreUnavailable, match="s3://drops"),
    ):
        store.head("inbox/acme/a.csv")
    assert told, "it was not tried again"
