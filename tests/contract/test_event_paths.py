"""From a client's upload to a row in the table, over every way that events can take; real servers, real bodies."""

import http.client
import io
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from secrets import token_hex
from types import SimpleNamespace

import pytest

from core.errors import SettingsError, StoreUnavailable
from core.jobs import Job
from core.ports import JobQuery, JobTable
from handlers.intake import Intake
from handlers.sources import aws_lambda
from handlers.sources.arrivals import Arrivals
from handlers.sources.aws_lambda import LambdaHandler
from handlers.sources.event_queue import Poller
from handlers.sources.webhook import Webhook
from infra.addresses import parse_address
from infra.aws.calls import client
from infra.aws.s3 import S3Store
from infra.aws.sqs_events import EventsQueue
from infra.clocks import SystemClock
from infra.deploy.local_cloud import Hook, Server, free_port
from infra.deploy.local_cloud import seaweedfs as start_seaweedfs
from infra.local.folder import FolderStore
from infra.logs import Log
from tests.contract import servers
from tests.contract.embedded import sqlite_queue, sqlite_table

KEY = "inbox/acme/two words+é%.csv"
MANIFEST = json.dumps({"manifest": 1, "name": "members", "fields": [{"name": "id"}]}).encode()
TOKEN = "a token of some length"


@pytest.fixture
def log() -> Log:
    return Log(stream=io.StringIO())


@contextmanager
def intake_of(store, where: Path) -> Iterator[tuple[Intake, JobTable]]:
    clock = SystemClock()
    with sqlite_table(where, clock) as table, sqlite_queue(where, clock) as queue:
        yield Intake(store, table, queue, clock, settle_seconds=0), table


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[SimpleNamespace]:
    """An intake over a folder, for paths whose events are made by hand."""
    with closing(FolderStore(tmp_path / "data")) as store, intake_of(store, tmp_path / "data") as (intake, table):
        yield SimpleNamespace(store=store, intake=intake, table=table)


def only_job(table: JobTable) -> Job:
    (job,) = table.page(JobQuery()).jobs
    return job


def s3_body(key: str, bucket: str = "drops") -> str:
    record = {"eventVersion": "2.1", "eventSource": "aws:s3", "eventName": "ObjectCreated:Put"}
    return json.dumps({"Records": [record | {"s3": {"bucket": {"name": bucket}, "object": {"key": key}}}]})


class TestPollerOverS3AndSqs:
    @pytest.fixture
    def cloud(self, tmp_path: Path, log: Log) -> Iterator[SimpleNamespace]:
        server: Server = servers.ministack()
        name = f"events-{token_hex(4)}"
        with ExitStack() as opened:
            opened.enter_context(servers.credentials(server))
            s3 = opened.enter_context(closing(client(parse_address(f"s3://{name}?endpoint={server.endpoint}"))))
            sqs = opened.enter_context(closing(client(parse_address(f"sqs://{name}?endpoint={server.endpoint}"))))
            s3.create_bucket(Bucket=name)
            urls = {n: sqs.create_queue(QueueName=n)["QueueUrl"] for n in (name, f"{name}-dead")}
            arn = sqs.get_queue_attributes(QueueUrl=urls[name], AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
            told = {"QueueArn": arn, "Events": ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]}
            s3.put_bucket_notification_configuration(
                Bucket=name, NotificationConfiguration={"QueueConfigurations": [told]}
            )
            store = opened.enter_context(closing(S3Store(parse_address(f"s3://{name}?endpoint={server.endpoint}"))))
            intake, table = opened.enter_context(intake_of(store, tmp_path))
            events = opened.enter_context(
                closing(EventsQueue(parse_address(f"sqs://{name}?endpoint={server.endpoint}"), poll_seconds=1))
            )
            poller = Poller(events, Arrivals(intake, name), log)
            yield SimpleNamespace(
                s3=s3, sqs=sqs, name=name, urls=urls, table=table, events=events, poller=poller, intake=intake, log=log
            )

    def drain(self, cloud: SimpleNamespace) -> int:
        done = 0
        while n := cloud.poller.once():
            done += n
        return done

    def left(self, cloud: SimpleNamespace, name: str) -> int:
        counts = cloud.sqs.get_queue_attributes(QueueUrl=cloud.urls[name], AttributeNames=["All"])["Attributes"]
        return int(counts["ApproximateNumberOfMessages"]) + int(counts["ApproximateNumberOfMessagesNotVisible"])

    def test_an_upload_becomes_a_job(self, cloud: SimpleNamespace):
        cloud.s3.put_object(Bucket=cloud.name, Key=KEY, Body=b"id\n1\n")
        cloud.s3.put_object(Bucket=cloud.name, Key="inbox/acme/manifest.json", Body=MANIFEST)
        assert self.drain(cloud) >= 2
        job = only_job(cloud.table)
        assert (job.workflow, job.inputs[0].ref.key) == ("members", KEY)
        assert self.left(cloud, cloud.name) == 0

    def test_a_shape_that_nobody_knows_goes_to_the_dead_letters_with_its_reason(self, cloud: SimpleNamespace):
        cloud.sqs.send_message(QueueUrl=cloud.urls[cloud.name], MessageBody='{"action": "opened"}')
        cloud.poller.once()
        cloud.poller.once()
        (letter,) = cloud.sqs.receive_message(QueueUrl=cloud.urls[f"{cloud.name}-dead"])["Messages"]
        assert json.loads(letter["Body"]) == {
            "reason": "an object with the keys action",
            "body": '{"action": "opened"}',
        }
        assert self.left(cloud, cloud.name) == 0

    def test_what_cannot_be_scanned_stays_and_does_not_block_the_others(self, cloud: SimpleNamespace):
        class Sick(Arrivals):
            def scan(self, changes) -> int:
                changes = list(changes)
                if any("sick" in change.key for change in changes):
                    raise StoreUnavailable("table does not answer")
                return super().scan(changes)

        self.drain(cloud)
        poller = Poller(cloud.events, Sick(cloud.intake, cloud.name), cloud.log)
        for key in ("inbox/acme/sick.csv", "inbox/acme/well.csv"):
            cloud.s3.put_object(Bucket=cloud.name, Key=key, Body=b"id\n1\n")
        while self.left(cloud, cloud.name) > 1:
            poller.once()
        assert only_job(cloud.table).subject == "well.csv"
        assert self.left(cloud, cloud.name) == 1

    def test_a_poller_that_is_stopped_returns(self, cloud: SimpleNamespace):
        cloud.poller.stop()
        cloud.poller.run()


class TestLambda:
    def records(self, *bodies: str) -> dict:
        found = [{"messageId": f"m{n}", "eventSource": "aws:sqs", "body": body} for n, body in enumerate(bodies)]
        return {"Records": found}

    def test_a_direct_s3_event_becomes_a_job(self, folder: SimpleNamespace, log: Log):
        folder.store.put(KEY, b"id\n1\n")
        LambdaHandler(Arrivals(folder.intake, "drops"), log)(
            json.loads(s3_body("inbox/acme/two+words%2B%C3%A9%25.csv"))
        )
        assert only_job(folder.table).inputs[0].ref.key == KEY

    def test_of_a_batch_only_what_failed_comes_back(self, folder: SimpleNamespace, log: Log):
        folder.store.put("inbox/acme/a.csv", b"id\n1\n")
        handle = LambdaHandler(Arrivals(folder.intake, "drops"), log)
        answer = handle(self.records(s3_body("inbox/acme/a.csv"), "no event", s3_body("inbox/acme/b.csv")))
        assert answer == {"batchItemFailures": [{"itemIdentifier": "m1"}]}

    def test_events_of_another_bucket_are_ignored(self, folder: SimpleNamespace, log: Log):
        folder.store.put("inbox/acme/a.csv", b"id\n1\n")
        handle = LambdaHandler(Arrivals(folder.intake, "drops"), log)
        assert handle(json.loads(s3_body("inbox/acme/a.csv", bucket="theirs"))) == {"keys": 0}
        assert folder.table.page(JobQuery()).jobs == ()

    def test_our_own_outputs_make_no_work(self, folder: SimpleNamespace, log: Log):
        handle = LambdaHandler(Arrivals(folder.intake, "drops"), log)
        assert handle(json.loads(s3_body("outputs/acme/a.csv/members/x/result.json"))) == {"keys": 0}

    def test_the_entry_reads_its_settings_and_takes_events(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        server, bucket = servers.ministack(), f"lambda-{token_hex(4)}"
        with servers.credentials(server):
            url = f"s3://{bucket}?endpoint={server.endpoint}"
            with closing(client(parse_address(url))) as s3:
                s3.create_bucket(Bucket=bucket)
                s3.put_object(Bucket=bucket, Key="inbox/acme/a.csv", Body=b"id\n1\n")
            monkeypatch.setenv("ADE_STORE_URL", url)
            monkeypatch.setenv("ADE_STORAGE_DATA_DIR", str(tmp_path))
            aws_lambda._assembled.cache_clear()
            assert aws_lambda.handler(json.loads(s3_body("inbox/acme/a.csv", bucket))) == {"keys": 1}
            aws_lambda._assembled.cache_clear()
            aws_lambda._OPEN.close()


class TestWebhook:
    @pytest.fixture
    def hook(self, folder: SimpleNamespace, log: Log) -> Iterator[str]:
        webhook = Webhook("127.0.0.1:0", TOKEN, Arrivals(folder.intake, "drops"), log)
        thread = threading.Thread(target=webhook.serve)
        thread.start()
        yield webhook.address
        webhook.stop()
        thread.join()

    def post(self, url: str, body: str, token: str | None = TOKEN) -> int:
        request = urllib.request.Request(url, data=body.encode(), method="POST")
        if token is not None:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            error.close()
            return error.code

    def test_a_token_that_minio_put_its_own_bearer_before_is_known(self, hook: str):
        said = s3_body("inbox%2Facme%2Fa.csv")
        assert self.post(f"{hook}/events", said, token=f"Bearer {TOKEN}") == 204
        assert self.post(f"{hook}/events", said, token=f"Bearer {TOKEN}x") == 401

    def test_success_means_that_the_row_is_there(self, folder: SimpleNamespace, hook: str):
        folder.store.put("inbox/acme/a.csv", b"id\n1\n")
        assert self.post(f"{hook}/events", s3_body("inbox%2Facme%2Fa.csv")) == 204
        assert only_job(folder.table).subject == "a.csv"

    @pytest.mark.parametrize("token", [None, "", "wrong", TOKEN + "x"])
    def test_without_the_token_nothing_is_taken(self, folder: SimpleNamespace, hook: str, token: str | None):
        folder.store.put("inbox/acme/a.csv", b"id\n1\n")
        assert self.post(f"{hook}/events", s3_body("inbox/acme/a.csv"), token) == 401
        assert folder.table.page(JobQuery()).jobs == ()

    def test_a_shape_that_nobody_knows_is_distinguished(self, hook: str):
        assert self.post(f"{hook}/events", '{"action": "opened"}') == 400

    def test_an_empty_body_only_asks_whether_somebody_listens(self, hook: str):
        assert self.post(f"{hook}/events", "") == 204
        assert self.post(f"{hook}/events", "", token="wrong") == 401

    def test_a_head_request_asks_the_same(self, hook: str):
        with closing(http.client.HTTPConnection(hook.removeprefix("http://"), timeout=20)) as connection:
            for path, status in (("/events", 204), ("/elsewhere", 404)):
                connection.request("HEAD", path)
                answer = connection.getresponse()
                answer.read()
                assert answer.status == status

    def test_another_path_is_not_there(self, hook: str):
        assert self.post(f"{hook}/", "{}") == 404

    def test_a_body_that_is_too_large_is_not_read(self, hook: str):
        with closing(http.client.HTTPConnection(hook.removeprefix("http://"), timeout=20)) as connection:
            connection.putrequest("POST", "/events")
            connection.putheader("Authorization", f"Bearer {TOKEN}")
            connection.putheader("Content-Length", str(1024 * 1024 + 1))
            connection.endheaders()
            assert connection.getresponse().status == 413

    def test_a_table_that_does_not_answer_means_try_again(
        self, folder: SimpleNamespace, hook: str, monkeypatch: pytest.MonkeyPatch
    ):
        def sick(_keys) -> None:
            raise StoreUnavailable("table does not answer")

        monkeypatch.setattr(folder.intake, "changed", sick)
        assert self.post(f"{hook}/events", s3_body("inbox/acme/a.csv")) == 503

    def test_health_needs_no_token(self, hook: str):
        with urllib.request.urlopen(f"{hook}/healthz", timeout=20) as answer:
            assert answer.status == 204

    def test_no_token_no_webhook(self, folder: SimpleNamespace, log: Log):
        with pytest.raises(SettingsError, match="ADE_WEBHOOK_TOKEN"):
            Webhook("127.0.0.1:0", "", Arrivals(folder.intake, "drops"), log)


def test_seaweedfs_reports_an_upload_by_its_webhook(tmp_path: Path, log: Log):
    servers.seaweedfs()  # installed, or this test is skipped at a desk
    with ExitStack() as opened:
        reached = threading.Event()
        port = free_port()
        hook = Hook(f"http://127.0.0.1:{port}/events", TOKEN)
        server = opened.enter_context(start_seaweedfs(servers.VENVS, tmp_path / "weed", hook=hook))
        opened.enter_context(servers.credentials(server))
        address = parse_address(f"s3://drops?endpoint={server.endpoint}")
        s3 = opened.enter_context(closing(client(address)))
        s3.create_bucket(Bucket="drops")
        store = opened.enter_context(closing(S3Store(address)))
        intake, table = opened.enter_context(intake_of(store, tmp_path))

        def reported(report) -> None:
            if report.recorded.created:
                reached.set()

        webhook = Webhook(f"127.0.0.1:{port}", TOKEN, Arrivals(intake, "drops", reported), log)
        thread = threading.Thread(target=webhook.serve)
        thread.start()
        s3.put_object(Bucket="drops", Key=KEY, Body=b"id\n1\n")
        assert reached.wait(60), "no event came"
        webhook.stop()
        thread.join()
        assert only_job(table).inputs[0].ref.key == KEY
