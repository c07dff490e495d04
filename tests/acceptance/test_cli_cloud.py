"""`ade up` on a bucket in the cloud hears of drops by queue and by webhook, and publishes there."""

import json
import urllib.request
from secrets import token_hex

import pytest

from infra.addresses import parse_address
from infra.aws.calls import client
from infra.deploy.local_cloud import free_port
from tests.acceptance.ade import CSV, MEMBERS
from tests.contract import servers

TOKEN = "a token of some length"


@pytest.fixture(scope="module", autouse=True)
def _servers():
    yield
    servers.stop_all()


@pytest.fixture
def cloud(ade):
    """A bucket and a queue of its events; table and work queue stay embedded. Swept only at the start."""
    server = servers.moto()
    name = f"drops-{token_hex(4)}"
    with servers.credentials(server):
        at = f"?endpoint={server.endpoint}"
        urls = {"ADE_STORE_URL": f"s3://{name}{at}", "ADE_EVENTS_URL": f"sqs://{name}{at}"}
        s3, sqs = (client(parse_address(url)) for url in urls.values())
        s3.create_bucket(Bucket=name)
        queue = sqs.create_queue(QueueName=name)["QueueUrl"]
        sqs.create_queue(QueueName=f"{name}-dead")
        listen = f"127.0.0.1:{free_port()}"
        ade.env |= urls | {"ADE_WEBHOOK_TOKEN": TOKEN, "ADE_WEBHOOK_LISTEN": listen, **server.environment}
        try:
            yield Cloud(ade, name, s3, sqs, queue, listen)
        finally:
            s3.close()
            sqs.close()


class Cloud:
    def __init__(self, ade, name, s3, sqs, queue, listen):
        self.ade, self.name, self.s3, self._sqs, self._queue, self._listen = ade, name, s3, sqs, queue, listen

    def put(self):
        """A drop, and the event that the store would send for its last object."""
        for key, body in {"m.csv": CSV, "manifest.json": json.dumps(MEMBERS)}.items():
            self.s3.put_object(Bucket=self.name, Key=f"inbox/acme/{key}", Body=body.encode())
        entity = {"bucket": {"name": self.name}, "object": {"key": "inbox/acme/manifest.json", "sequencer": "01"}}
        record = {"eventVersion": "2.1", "eventSource": "aws:s3", "eventName": "ObjectCreated:Put", "s3": entity}
        return json.dumps({"Records": [record]})

    def by_queue(self, body):
        self._sqs.send_message(QueueUrl=self._queue, MessageBody=body)

    def by_webhook(self, body):
        request = urllib.request.Request(
            f"http://{self._listen}/events", body.encode(), {"Authorization": f"Bearer {TOKEN}"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 204


@pytest.mark.parametrize("way", ["by_queue", "by_webhook"])
def test_a_drop_that_is_reported_is_published_in_the_bucket(cloud, way):
    with cloud.ade.up() as up:
        getattr(cloud, way)(cloud.put())
        ended = up.ended("acme")
    result = cloud.s3.get_object(Bucket=cloud.name, Key=f"{ended['outputs']}result.json")["Body"].read()
    assert json.loads(result)["status"] == "SUCCEEDED"


def test_the_doctor_names_a_bucket_that_does_not_answer(cloud):
    done = cloud.ade("doctor", "--json", expect=1, ADE_STORE_URL="s3://nothing?endpoint=http://127.0.0.1:1")
    wrong = [check for check in done.json["checks"] if check["level"] == "wrong"]
    assert any("nothing" in check["said"] for check in wrong), wrong
