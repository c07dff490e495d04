"""Plans and creates bucket, queues, table and notifications on any endpoint. Safe to repeat.

If a server does not support a refinement (encryption, access block, point-in-time recovery), that step says
`unsupported` and the rest goes on. Existing resources are never replaced or emptied.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from core.errors import AdeError, StoreUnavailable
from core.keys import CONFIGS, INBOX, WORK
from core.settings import Settings
from infra.addresses import Address, parse_address
from infra.aws.calls import client
from infra.aws.dynamodb import DynamoJobTable
from infra.aws.dynamodb_items import table_definition
from infra.aws.s3 import S3Store
from infra.aws.sqs import SqsWorkQueue
from infra.clocks import SystemClock
from infra.probes import probe_queue, probe_store, probe_table

_FOURTEEN_DAYS = str(14 * 86400)
_WORK_RECEIVES = 50  # a job over its cap is received and put back many times; that is normal
_EVENT_RECEIVES = 5
_EVENTS = ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One resource that exists, is missing, or is not supported by this server."""

    kind: str
    name: str
    action: str  # "keep", "create" or "unsupported"; of a probe "works" or "fails"
    detail: str = ""


def provision(settings: Settings, *, apply: bool) -> list[Step]:
    """Everything that the ADE_*_URL settings name. `apply`: create what is missing; otherwise only list it."""
    steps: list[Step] = []
    for url in (settings.queue_url, settings.events_url):
        if url.startswith("sqs:"):
            steps += _queue(parse_address(url), events=url == settings.events_url, apply=apply)
    if settings.table_url.startswith("dynamodb:"):
        steps += _table(parse_address(settings.table_url), apply=apply)
    if settings.store_url:
        bucket = parse_address(settings.store_url)
        steps += _bucket(bucket, apply=apply)
        if settings.events_url:
            steps += _notification(bucket, parse_address(settings.events_url), apply=apply)
        if settings.webhook_token and _is_minio(bucket):
            steps.append(_minio_notification(bucket, apply=apply))
    return steps


def _queue(address: Address, *, events: bool, apply: bool) -> Iterator[Step]:
    dead = address.options.get("dead", f"{address.name}-dead")
    with closing(client(address)) as sqs:
        yield _step(
            "dead-letter queue",
            dead,
            there=lambda: _queue_url(sqs, dead),
            make=lambda: sqs.create_queue(QueueName=dead, Attributes={"MessageRetentionPeriod": _FOURTEEN_DAYS}),
            apply=apply,
        )

        def make() -> None:
            arn = _queue_arn(sqs, dead)
            redrive = {"deadLetterTargetArn": arn, "maxReceiveCount": _EVENT_RECEIVES if events else _WORK_RECEIVES}
            # Shorter than the dead-letter queue's: a letter keeps the time it was first sent.
            attributes = {"MessageRetentionPeriod": str(7 * 86400), "RedrivePolicy": json.dumps(redrive)}
            sqs.create_queue(QueueName=address.name, Attributes=attributes)

        kind = "events queue" if events else "work queue"
        yield _step(kind, address.name, there=lambda: _queue_url(sqs, address.name), make=make, apply=apply)


def _table(address: Address, *, apply: bool) -> Iterator[Step]:
    with closing(client(address)) as db:

        def make() -> None:
            db.create_table(**table_definition(address.name))
            db.get_waiter("table_exists").wait(TableName=address.name, WaiterConfig={"Delay": 1, "MaxAttempts": 120})

        step = _step(
            "table",
            address.name,
            there=lambda: db.describe_table(TableName=address.name),
            make=make,
            apply=apply,
        )
        yield step
        if step.action == "create" and apply:
            yield _refined(
                "point-in-time recovery",
                address.name,
                lambda: db.update_continuous_backups(
                    TableName=address.name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
                ),
            )


def _bucket(address: Address, *, apply: bool) -> Iterator[Step]:
    name = address.name
    with closing(client(address)) as s3:
        region = s3.meta.region_name
        where = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        step = _step(
            "bucket",
            name,
            there=lambda: s3.head_bucket(Bucket=name),
            make=lambda: s3.create_bucket(Bucket=name, **where),
            apply=apply,
        )
        yield step
        if step.action != "create" or not apply:
            return  # an existing bucket keeps its own rules
        versions = {"Status": "Enabled"}
        yield _refined(
            "versions", name, lambda: s3.put_bucket_versioning(Bucket=name, VersioningConfiguration=versions)
        )
        if address.endpoint is None:  # SeaweedFS accepts this and then refuses every write
            yield _refined("encryption", name, lambda: s3.put_bucket_encryption(Bucket=name, **_ENCRYPTION))
        yield _no_public_access(s3, name)
        yield _refined(
            "lifecycle of work/", name, lambda: s3.put_bucket_lifecycle_configuration(Bucket=name, **_LIFECYCLE)
        )


def _no_public_access(s3: Any, name: str) -> Step:
    """Blocks public access as far as writes still work: Ceph 16 takes every put for one with a public ACL."""
    kind, key, tried = "no public access", f"{WORK}.probe/access", Step(kind="", name="", action="")
    for blocks in (_PRIVATE, _PRIVATE_POLICIES):
        step = _refined(kind, name, lambda: s3.put_public_access_block(Bucket=name, **blocks))  # noqa: B023 - called at once
        if step.action == "unsupported":
            return step
        tried = _refined(kind, name, lambda: s3.put_object(Bucket=name, Key=key, Body=b"1"))
        if tried.action == "create":
            _refined(kind, name, lambda: s3.delete_object(Bucket=name, Key=key))
            return (
                step
                if blocks is _PRIVATE
                else replace(step, detail="policies only: with ACLs blocked, it refuses every write")
            )
    _refined(kind, name, lambda: s3.delete_public_access_block(Bucket=name))
    return replace(tried, detail=f"taken back, since it then refuses every write: {tried.detail}")


def verify(settings: Settings) -> list[Step]:
    """Does with what was created what jobs do; a step that `fails` means that no job can work with it."""
    steps, clock = [], SystemClock()
    with ExitStack() as opened:
        if settings.store_url:
            store = opened.enter_context(closing(S3Store(parse_address(settings.store_url))))
            steps.append(_tried("bucket", settings.store_url, lambda: probe_store(store)))
        if settings.table_url.startswith("dynamodb:"):
            table = opened.enter_context(
                closing(DynamoJobTable(parse_address(settings.table_url), clock, lambda _: None))
            )
            steps.append(_tried("table", settings.table_url, lambda: probe_table(table, clock)))
        if settings.queue_url.startswith("sqs:"):
            queue = opened.enter_context(closing(SqsWorkQueue(parse_address(settings.queue_url), clock)))
            steps.append(_tried("work queue", settings.queue_url, lambda: probe_queue(queue)))
    return steps


def _tried(kind: str, url: str, probe: Callable[[], None]) -> Step:
    name = parse_address(url).name
    try:
        probe()
    except AdeError as error:
        return Step(kind=kind, name=name, action="fails", detail=f"no job can work with it: {error}")
    return Step(kind=kind, name=name, action="works")


def _notification(bucket: Address, events: Address, *, apply: bool) -> Iterator[Step]:
    with closing(client(bucket)) as s3, closing(client(events)) as sqs:
        name = f"{bucket.name} → {events.name}"

        def there() -> None:
            arn = _queue_arn(sqs, events.name)
            queues = s3.get_bucket_notification_configuration(Bucket=bucket.name).get("QueueConfigurations", [])
            if not any(entry["QueueArn"] == arn for entry in queues):
                raise _Missing

        def make() -> None:
            arn, url = _queue_arn(sqs, events.name), _queue_url(sqs, events.name)
            policy = json.dumps(events_policy(arn, bucket.name))
            sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
            configuration = s3.get_bucket_notification_configuration(Bucket=bucket.name)
            configuration.pop("ResponseMetadata", None)
            configuration["QueueConfigurations"] = [*configuration.get("QueueConfigurations", []), *_notified(arn)]
            s3.put_bucket_notification_configuration(Bucket=bucket.name, NotificationConfiguration=configuration)

        step = _step("notification", name, there=there, make=make, apply=False)
        if step.action == "create" and apply:
            made = _refined("notification", name, make)
            detail = "use ADE_WEBHOOK_TOKEN and the store's own webhook; until then the sweep finds drops"
            step = made if made.action == "create" else replace(made, detail=f"{made.detail}; {detail}")
        yield step


def _is_minio(bucket: Address) -> bool:
    if bucket.endpoint is None:
        return False
    with closing(client(bucket)) as s3:
        try:
            answer = s3.head_bucket(Bucket=bucket.name)
        except ClientError as error:
            answer = error.response
        except BotoCoreError:
            return False  # reported by the step before
    return str(answer["ResponseMetadata"].get("HTTPHeaders", {}).get("server", "")).startswith("MinIO")


def _minio_notification(bucket: Address, *, apply: bool) -> Step:
    """MinIO does not send to SQS, only to a webhook that its operator configured."""
    from infra.minio import MinioEvents, NoTarget  # noqa: PLC0415 - its client is slow to import

    with closing(MinioEvents(bucket)) as events:
        try:
            arn = events.target()
        except (NoTarget, StoreUnavailable) as error:  # perhaps a user without admin:ServerInfo
            return Step(kind="notification", name=bucket.name, action="unsupported", detail=str(error))
        name = f"{bucket.name} → {arn}"
        if not _bucket_there(bucket):  # only a plan gets here
            return Step(kind="notification", name=name, action="create")
        if events.is_notifying(arn):
            return Step(kind="notification", name=name, action="keep")
        if apply:
            events.notify(arn)
        return Step(kind="notification", name=name, action="create")


def _bucket_there(bucket: Address) -> bool:
    with closing(client(bucket)) as s3:
        try:
            s3.head_bucket(Bucket=bucket.name)
        except ClientError as error:
            if _status(error) == HTTPStatus.NOT_FOUND:
                return False
            raise StoreUnavailable(f"cannot inspect bucket {bucket.name}: {error}") from error
    return True


def events_policy(queue_arn: str, bucket: str) -> dict[str, Any]:
    """S3 may send to the queue, for this bucket only."""
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "BucketTellsOfChanges",
                "Effect": "Allow",
                "Principal": {"Service": "s3.amazonaws.com"},
                "Action": "sqs:SendMessage",
                "Resource": queue_arn,
                "Condition": {"ArnEquals": {"aws:SourceArn": f"arn:aws:s3:::{bucket}"}},
            }
        ],
    }


class _Missing(Exception):
    """The resource does not exist."""


def _step(kind: str, name: str, *, there: Callable[[], Any], make: Callable[[], Any], apply: bool) -> Step:
    try:
        there()
    except _Missing:
        pass
    except ClientError as error:
        if _status(error) not in {400, 404}:  # SQS and DynamoDB answer 400 for a missing resource
            raise StoreUnavailable(f"cannot inspect {kind} {name}: {error}") from error
    except BotoCoreError as error:
        raise StoreUnavailable(f"cannot inspect {kind} {name}: {error}; check that the endpoint is up") from error
    else:
        return Step(kind=kind, name=name, action="keep")
    if apply:
        try:
            make()
        except (ClientError, BotoCoreError) as error:
            raise StoreUnavailable(f"cannot create {kind} {name}: {error}") from error
    return Step(kind=kind, name=name, action="create")


def _refined(kind: str, name: str, make: Callable[[], Any]) -> Step:
    try:
        make()
    except (ClientError, BotoCoreError) as error:
        return Step(kind=kind, name=name, action="unsupported", detail=str(error)[:200])
    return Step(kind=kind, name=name, action="create")


def _notified(arn: str) -> list[dict[str, Any]]:
    """One entry per prefix: outputs must not cause events, and S3 takes one prefix per entry."""
    return [
        {
            "Id": f"ade-{prefix.rstrip('/')}",
            "QueueArn": arn,
            "Events": _EVENTS,
            "Filter": {"Key": {"FilterRules": [{"Name": "prefix", "Value": prefix}]}},
        }
        for prefix in (INBOX, CONFIGS)
    ]


def _queue_url(sqs: Any, name: str) -> str:
    return str(sqs.get_queue_url(QueueName=name)["QueueUrl"])


def _queue_arn(sqs: Any, name: str) -> str:
    url = _queue_url(sqs, name)
    return str(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"])


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


_ENCRYPTION: dict[str, Any] = {
    "ServerSideEncryptionConfiguration": {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]}
}
_PRIVATE: dict[str, Any] = {
    "PublicAccessBlockConfiguration": {
        "BlockPublicAcls": True,
        "IgnorePublicAcls": True,
        "BlockPublicPolicy": True,
        "RestrictPublicBuckets": True,
    }
}
_PRIVATE_POLICIES: dict[str, Any] = {
    "PublicAccessBlockConfiguration": {"BlockPublicPolicy": True, "RestrictPublicBuckets": True}
}
_LIFECYCLE: dict[str, Any] = {
    "LifecycleConfiguration": {
        "Rules": [
            {
                "ID": "staging",
                "Status": "Enabled",
                "Filter": {"Prefix": WORK},
                "Expiration": {"Days": 7},
                "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
                "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
            }
        ]
    }
}


def warm_up(store_url: str) -> None:
    """Write to a new bucket until it accepts: some stores refuse the first writes, which senders should not see."""
    with closing(S3Store(parse_address(store_url))) as bucket:
        bucket.conditional()
