"""Makes real servers tell of changes and prints the bodies: how the captured golden files were made.

python -m tests.events.capture ministack|moto|seaweedfs|others

One line of JSON per body: what was done, and what the server sent. Ids, times and hosts differ from run to run.
"""

import json
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from infra.addresses import Address
from infra.aws.calls import client
from infra.deploy.local_cloud import Hook, free_port, ministack
from infra.deploy.local_cloud import seaweedfs as start_seaweedfs
from tests.contract import servers
from tests.support import keeper
from tests.support.keeper import VENVS

KEY = "inbox/acme/two words+é%.csv"
PART = b"x" * 5 * 1024 * 1024


def acts(s3: Any, bucket: str, key: str = KEY) -> dict[str, Callable[[], object]]:
    """What a sender may do to an object."""

    def multipart() -> None:
        to = {"Bucket": bucket, "Key": key}
        upload = s3.create_multipart_upload(**to)["UploadId"]
        parts = [
            {"PartNumber": n, "ETag": s3.upload_part(**to, UploadId=upload, PartNumber=n, Body=body)["ETag"]}
            for n, body in ((1, PART), (2, b"end"))
        ]
        s3.complete_multipart_upload(**to, UploadId=upload, MultipartUpload={"Parts": parts})

    return {
        "put": lambda: s3.put_object(Bucket=bucket, Key=key, Body=b"id\n1\n"),
        "copy": lambda: s3.copy_object(Bucket=bucket, Key=f"{key}2", CopySource={"Bucket": bucket, "Key": key}),
        "multipart": multipart,
        "delete": lambda: s3.delete_object(Bucket=bucket, Key=key),
    }


def over_sqs(endpoint: str) -> Iterator[tuple[str, str]]:
    """S3 → SQS, on a bucket without and on one with versions."""
    with closing(client(_at("s3", endpoint))) as s3, closing(client(_at("sqs", endpoint))) as sqs:
        url = sqs.create_queue(QueueName="told")["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        told = {"QueueArn": arn, "Events": ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]}
        for bucket in ("plain", "versioned"):
            s3.create_bucket(Bucket=bucket)
            if bucket == "versioned":
                s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
            s3.put_bucket_notification_configuration(
                Bucket=bucket, NotificationConfiguration={"QueueConfigurations": [told]}
            )
            yield from ((f"{bucket} test event", body) for body in _received(sqs, url))
            for what, act in acts(s3, bucket).items():
                act()
                yield from ((f"{bucket} {what}", body) for body in _received(sqs, url))


def over_others(endpoint: str) -> Iterator[tuple[str, str]]:
    """S3 → EventBridge → SQS, and S3 → SNS → SQS."""
    with ExitStack() as opened:
        s3, sqs, sns, bridge = (
            opened.enter_context(closing(client(_at(service, endpoint)))) for service in ("s3", "sqs", "sns", "events")
        )
        url = sqs.create_queue(QueueName="others")["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        bridge.put_rule(Name="told", EventPattern=json.dumps({"source": ["aws.s3"]}))
        bridge.put_targets(Rule="told", Targets=[{"Id": "queue", "Arn": arn}])
        topic = sns.create_topic(Name="told")["TopicArn"]
        sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
        ways: dict[str, dict[str, Any]] = {
            "eventbridge": {"EventBridgeConfiguration": {}},
            "sns": {"TopicConfigurations": [{"TopicArn": topic, "Events": ["s3:ObjectCreated:*"]}]},
        }
        for bucket, told in ways.items():
            s3.create_bucket(Bucket=bucket)
            s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration=told)
            for what, act in acts(s3, bucket).items():
                act()
                yield from ((f"{bucket} {what}", body) for body in _received(sqs, url))


def _received(sqs: Any, url: str) -> list[str]:
    found = []
    while messages := sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1, MaxNumberOfMessages=10).get("Messages"):
        for message in messages:
            found.append(message["Body"])
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return found


def over_webhook() -> Iterator[tuple[str, str]]:
    """SeaweedFS's filer → a webhook."""
    bodies: SimpleQueue[str] = SimpleQueue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.put(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    web = ThreadingHTTPServer(("127.0.0.1", free_port()), Handler)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    hook = Hook(f"http://127.0.0.1:{web.server_address[1]}/", "a token of some length")
    with ExitStack() as opened:
        opened.callback(web.shutdown)
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        server = opened.enter_context(start_seaweedfs(VENVS, folder, hook=hook))
        opened.enter_context(servers.credentials(server))
        s3 = opened.enter_context(closing(client(_at("s3", server.endpoint))))
        s3.create_bucket(Bucket="drops")
        for what, act in acts(s3, "drops").items():
            act()
            yield from ((what, body) for body in _drained(bodies))


def _drained(bodies: "SimpleQueue[str]") -> Iterator[str]:
    try:
        while True:
            yield bodies.get(timeout=4)
    except Empty:
        return


def _at(service: str, endpoint: str) -> Address:
    return Address(service=service, name="any", endpoint=endpoint, region="us-east-1", options={})


def main(name: str) -> None:
    if name == "seaweedfs":
        found = over_webhook()
        for what, body in found:
            print(json.dumps({"did": what, "body": json.loads(body)}, ensure_ascii=False))
        return
    services = "s3,sqs,sns,events"
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        start = keeper.STARTS["moto"](here) if name == "moto" else ministack(VENVS, here, services=services)
        with start as server, servers.credentials(server):
            for what, body in (over_others if name == "others" else over_sqs)(server.endpoint):
                print(json.dumps({"did": what, "body": json.loads(body)}, ensure_ascii=False))


if __name__ == "__main__":
    main(sys.argv[1])
