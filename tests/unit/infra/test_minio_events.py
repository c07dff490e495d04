"""`ade infra init` on a MinIO server: its client finds the webhook target and has the bucket notify it."""

from collections.abc import Iterator
from xml.etree import ElementTree as ET

import pytest

from core.settings import Settings
from infra.aws.provision import Step, provision
from tests.support.minio_server import EMPTY, MinioServer, minio_server

ARN = "arn:minio:sqs::ADE:webhook"
OTHERS = """<NotificationConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
<QueueConfiguration><Id>theirs</Id><Queue>arn:minio:sqs::THEIRS:kafka</Queue><Event>s3:ObjectCreated:Put</Event>
<Filter><S3Key><FilterRule><Name>prefix</Name><Value>inbox/</Value></FilterRule></S3Key></Filter></QueueConfiguration>
</NotificationConfiguration>"""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[MinioServer]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ade-local")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "ade-local-secret")
    with minio_server() as playing:
        yield playing


def notification(server: MinioServer, *, apply: bool = True, token: str = "a token of some length") -> Step | None:
    settings = Settings(store_url=f"s3://drops?endpoint={server.endpoint}", webhook_token=token)
    return next((step for step in provision(settings, apply=apply) if step.kind == "notification"), None)


def told(server: MinioServer) -> list[tuple[str, str, tuple[str, ...]]]:
    """Queue, prefix and events of every entry."""
    entries = ET.fromstring(server.notification).findall("{*}QueueConfiguration")
    return sorted(
        (
            entry.findtext("{*}Queue") or "",
            entry.findtext("{*}Filter/{*}S3Key/{*}FilterRule/{*}Value") or "",
            tuple(event.text or "" for event in entry.findall("{*}Event")),
        )
        for entry in entries
    )


def test_the_bucket_says_the_webhook_of_inbox_and_configs_and_of_nothing_else(server: MinioServer):
    step = notification(server)
    assert step == Step(kind="notification", name=f"drops → {ARN}", action="create")
    events = ("s3:ObjectCreated:*", "s3:ObjectRemoved:*")
    assert told(server) == [(ARN, "configs/", events), (ARN, "inbox/", events)]


def test_a_second_time_changes_nothing(server: MinioServer):
    notification(server)
    puts = [r for r in server.requests if r[0] == "PUT"]
    step = notification(server)
    assert step is not None
    assert step.action == "keep"
    assert [r for r in server.requests if r[0] == "PUT"] == puts


def test_a_dry_run_puts_nothing(server: MinioServer):
    step = notification(server, apply=False)
    assert step is not None
    assert step.action == "create"
    assert (server.notification, server.buckets) == (EMPTY, set())


def test_what_others_have_set_stays(server: MinioServer):
    server.notification = OTHERS
    notification(server)
    assert ("arn:minio:sqs::THEIRS:kafka", "inbox/", ("s3:ObjectCreated:Put",)) in told(server)
    assert len(told(server)) == 3


def test_half_of_a_notification_is_made_whole(server: MinioServer):
    notification(server)
    root = ET.fromstring(server.notification)
    root.remove(root.findall("{*}QueueConfiguration")[0])
    server.notification = ET.tostring(root, encoding="unicode")
    step = notification(server)
    assert step is not None
    assert step.action == "create"
    assert len(told(server)) == 2


def test_our_name_is_chosen_among_several_targets(server: MinioServer):
    server.arns = ["arn:minio:sqs::AUDIT:webhook", ARN, "arn:minio:sqs::Q:kafka"]
    notification(server)
    assert {queue for queue, _, _ in told(server)} == {ARN}


def test_several_targets_of_which_none_has_our_name_are_left_alone(server: MinioServer):
    server.arns = ["arn:minio:sqs::A:webhook", "arn:minio:sqs::B:webhook"]
    step = notification(server)
    assert step is not None
    assert step.action == "unsupported"
    assert "A:webhook" in step.detail
    assert server.notification == EMPTY


@pytest.mark.parametrize("arns", [[], ["arn:minio:sqs::Q:kafka"], None])
def test_a_server_without_a_webhook_says_how_to_get_one(server: MinioServer, arns: list[str] | None):
    server.arns = arns  # type: ignore[assignment]
    step = notification(server)
    assert step is not None
    assert step.action == "unsupported"
    assert "MINIO_NOTIFY_WEBHOOK_ENDPOINT_ADE" in step.detail


def test_without_a_webhook_of_the_product_nothing_is_asked(server: MinioServer):
    assert notification(server, token="") is None
    assert "/minio/admin/v3/info" not in {path for _, path in server.requests}


def test_a_user_who_may_not_ask_gets_the_rest(server: MinioServer):
    server.admin_status = 403
    step = notification(server)
    assert step is not None
    assert step.action == "unsupported"
    assert server.buckets == {"drops"}
