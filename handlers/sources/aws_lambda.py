"""In: a Lambda invocation by S3, EventBridge, SNS or SQS. Out: intake scans, and for SQS the messages that failed.

The entry point is `handlers.sources.aws_lambda.handler`. For SQS it returns the failed messages, so that only those are
redelivered; an unknown shape goes with its reason to the dead letters of the queue in ADE_EVENTS_URL, and fails if that
is not set. For the other callers it raises, and Lambda's own retries and on-failure destination take over.
"""

import functools
import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from core.settings import Settings
from handlers.events import Change, decode
from handlers.intake import Intake
from handlers.sources.arrivals import Arrivals
from infra.addresses import parse_address
from infra.aws.sqs_events import EventsQueue
from infra.logs import Log
from infra.wiring import open_stack


class LambdaHandler:
    def __init__(self, arrivals: Arrivals, log: Log, refuse: EventsQueue | None = None) -> None:
        self._arrivals = arrivals
        self._log = log
        self._refuse = refuse

    def __call__(self, event: Mapping[str, Any]) -> dict[str, Any]:
        records = event.get("Records")
        if isinstance(records, list) and any(_from_sqs(record) for record in records):
            failed = self._failed(records)
            return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}
        return {"keys": self._arrivals.take(event)}

    def _failed(self, records: list[Mapping[str, Any]]) -> list[str]:
        """Which messages of a batch have to be redelivered."""
        read, failed = list[tuple[str, list[Change]]](), list[str]()
        for record in records:
            if not _from_sqs(record):
                self._log.warning("event_refused", reason="a record of an SQS batch that is not a message")
                continue
            message_id, body = str(record["messageId"]), record.get("body")
            try:
                read.append((message_id, decode(body if isinstance(body, str) else "")))
            except Exception as error:  # noqa: BLE001 - one unreadable message must not block the others
                self._log.warning("event_refused", reason=str(error), message=message_id)
                if not self._refused(str(body), str(error)):
                    failed.append(message_id)
        done = set(self._arrivals.take_all(read, self._log)) if read else set()
        return failed + [message_id for message_id, _ in read if message_id not in done]

    def _refused(self, body: str, reason: str) -> bool:
        """Whether the body was moved to the dead letters."""
        if self._refuse is None:
            return False
        try:
            self._refuse.refuse(body, reason)
        except Exception as error:  # noqa: BLE001 - then SQS redelivers it, up to its own limit
            self._log.error("refusal_failed", error=f"{type(error).__name__}: {error}")
            return False
        return True


def _from_sqs(record: object) -> bool:
    return isinstance(record, Mapping) and record.get("eventSource") == "aws:sqs" and "messageId" in record


_OPEN = ExitStack()  # never closed: Lambda ends the environment without notice


@functools.cache
def _assembled() -> LambdaHandler:
    """Built at the first call and kept while the environment lives."""
    settings = Settings.from_env(os.environ)
    log = Log(level=settings.log_level, role="lambda")
    stack = _OPEN.enter_context(open_stack(settings, log=log))
    intake = Intake.over(stack)
    refuse = EventsQueue(parse_address(settings.events_url)) if settings.events_url else None
    return LambdaHandler(Arrivals(intake, parse_address(settings.store_url).name), log, refuse)


def handler(event: Mapping[str, Any], _context: object = None) -> dict[str, Any]:
    return _assembled()(event)
