"""Over a real MinIO server: its bucket notifies our webhook, and an upload becomes a job."""

import io
import threading
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from handlers.sources.arrivals import Arrivals
from handlers.sources.webhook import Webhook
from infra.addresses import parse_address
from infra.aws.calls import client
from infra.aws.s3 import S3Store
from infra.deploy.local_cloud import Hook, free_port
from infra.logs import Log
from infra.minio import MinioEvents
from tests.contract import servers
from tests.contract.test_event_paths import KEY, TOKEN, intake_of, only_job
from tests.support.minio_gateway import minio_gateway

ARN = "arn:minio:sqs::ADE:webhook"


@pytest.mark.slow
@pytest.mark.parametrize("token", [TOKEN, f"Bearer {TOKEN}"], ids=["bare", "with a Bearer of our own"])
def test_minio_reports_an_upload_by_its_webhook(tmp_path: Path, token: str):
    with ExitStack() as opened:
        port, reached = free_port(), threading.Event()

        def reported(report) -> None:
            if report.recorded.created:
                reached.set()

        with servers.or_skip():
            hook = Hook(f"http://127.0.0.1:{port}/events", token)
            server = opened.enter_context(minio_gateway(servers.VENVS, tmp_path / "minio", hook=hook))
        opened.enter_context(servers.credentials(server))
        address = parse_address(f"s3://drops?endpoint={server.endpoint}")
        s3 = opened.enter_context(closing(client(address)))
        s3.create_bucket(Bucket="drops")
        store = opened.enter_context(closing(S3Store(address)))
        intake, table = opened.enter_context(intake_of(store, tmp_path))
        webhook = Webhook(f"127.0.0.1:{port}", TOKEN, Arrivals(intake, "drops", reported), Log(stream=io.StringIO()))
        thread = threading.Thread(target=webhook.serve)
        thread.start()
        opened.callback(thread.join)
        opened.callback(webhook.stop)
        # The gateway keeps notifications, and has no admin API by which `ade infra init` finds the target.
        notifications = opened.enter_context(closing(MinioEvents(address)))
        assert not notifications.is_notifying(ARN)
        notifications.notify(ARN)
        assert notifications.is_notifying(ARN)
        s3.put_object(Bucket="drops", Key=KEY, Body=b"id\n1\n")
        assert reached.wait(60), "no event came"
        assert only_job(table).inputs[0].ref.key == KEY
        assert store.read(KEY, limit=100) == b"id\n1\n"
