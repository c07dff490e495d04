"""Bucket notifications of a MinIO server, by its own client.

MinIO sends to targets that its operator configured (MINIO_NOTIFY_WEBHOOK_…_ADE). Only its admin API lists them, and
only its own client speaks that; the bucket is then set to notify the webhook for `inbox/` and `configs/`.
"""

import json
import os
import re
from typing import Any
from urllib.parse import urlsplit

import botocore.session
import urllib3
from minio import Minio, MinioAdmin
from minio.credentials.providers import StaticProvider
from minio.error import MinioAdminException, MinioException
from minio.notificationconfig import NotificationConfig, PrefixFilterRule, QueueConfig

from core.errors import StoreUnavailable
from core.keys import CONFIGS, INBOX
from infra.addresses import Address

TARGET = "ADE"  # the name of our webhook where a server has several
EVENTS = ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]
_WEBHOOK = re.compile(r"arn:minio:sqs:[^:]*:(?P<name>[^:]+):webhook")


class NoTarget(Exception):
    """The server has no webhook target for ade-drop."""


class MinioEvents:
    """The notifications of one bucket of a MinIO server. Raises StoreUnavailable if the server refuses."""

    def __init__(self, bucket: Address) -> None:
        parts = urlsplit(bucket.endpoint or "")
        found = botocore.session.get_session().get_credentials()
        keys = found.get_frozen_credentials() if found else None
        if keys is None:
            raise StoreUnavailable(f"no credentials for {bucket}; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
        provider = StaticProvider(keys.access_key, keys.secret_key, keys.token)
        secure, region = parts.scheme == "https", bucket.region or "us-east-1"
        # The client's own pool retries five times with growing pauses, too long for a person who waits.
        http = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=5, read=30),
            retries=urllib3.Retry(1),
            ca_certs=os.environ.get("AWS_CA_BUNDLE"),  # as boto3 does
        )
        self._bucket = bucket.name
        self._at = str(bucket)
        self._http = http
        self._client = Minio(
            endpoint=parts.netloc, credentials=provider, secure=secure, region=region, http_client=http
        )
        self._admin = MinioAdmin(
            endpoint=parts.netloc, credentials=provider, secure=secure, region=region, http_client=http
        )

    def target(self) -> str:
        """The ARN of our webhook on the server. Raises NoTarget with the remedy."""
        info = json.loads(self._ask(self._admin.info))
        arns = [arn for arn in info.get("sqsARN") or [] if _WEBHOOK.fullmatch(arn)]
        ours = [arn for arn in arns if _name(arn).upper() == TARGET] or arns
        if not ours:
            raise NoTarget(
                f"the server has no webhook target; start it with MINIO_NOTIFY_WEBHOOK_ENABLE_{TARGET}=on, "
                f"MINIO_NOTIFY_WEBHOOK_ENDPOINT_{TARGET}=<url of ade listen>/events and "
                f"MINIO_NOTIFY_WEBHOOK_AUTH_TOKEN_{TARGET}=<ADE_WEBHOOK_TOKEN>"
            )
        if len(ours) > 1:
            raise NoTarget(f"the server has the webhook targets {', '.join(ours)}; name the one of ade-drop {TARGET}")
        return str(ours[0])

    def is_notifying(self, arn: str) -> bool:
        """Whether the bucket notifies the target of both prefixes."""
        entries = self._configured().queue_config_list
        return {INBOX, CONFIGS} <= {_prefix(entry) for entry in entries if entry.queue == arn}

    def notify(self, arn: str) -> None:
        """Notify the target from now on; other notifications stay. Safe to repeat."""
        config = self._configured()
        others = [entry for entry in config.queue_config_list if not (entry.queue == arn and _ours(entry))]
        wanted = NotificationConfig(
            cloud_func_config_list=config.cloud_func_config_list,
            queue_config_list=[*others, *(_entry(arn, prefix) for prefix in (INBOX, CONFIGS))],
            topic_config_list=config.topic_config_list,
        )
        self._ask(lambda: self._client.set_bucket_notification(self._bucket, wanted))

    def close(self) -> None:
        self._http.clear()

    def _configured(self) -> NotificationConfig:
        found: NotificationConfig = self._ask(lambda: self._client.get_bucket_notification(self._bucket))
        return found

    def _ask(self, ask: Any) -> Any:
        try:
            return ask()
        except (MinioException, MinioAdminException, urllib3.exceptions.HTTPError, ValueError) as error:
            raise StoreUnavailable(f"{self._at} did not answer about notifications: {error}") from error


def _name(arn: str) -> str:
    found = _WEBHOOK.fullmatch(arn)
    return found["name"] if found else ""


def _prefix(entry: QueueConfig) -> str:
    return entry.prefix_filter_rule.value if entry.prefix_filter_rule else ""


def _ours(entry: QueueConfig) -> bool:
    return _prefix(entry) in (INBOX, CONFIGS)


def _entry(arn: str, prefix: str) -> QueueConfig:
    return QueueConfig(
        queue=arn, events=EVENTS, config_id=f"ade-{prefix.rstrip('/')}", prefix_filter_rule=PrefixFilterRule(prefix)
    )
