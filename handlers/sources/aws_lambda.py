"""In: a Lambda invocation by S3, EventBridge, SNS or SQS. Out: intake scans, and for SQS the messages that failed.

The entry point is `handlers.sources.aws_lambda.handler`. For SQS it returns the failed messages, so that only those are
redelivered; an unknown shape goes with its reason to the dead letters of the queue in ADE_EVENTS_URL, and fails if that
is not set. For the other callers it raises, and Lambda's own retries and on-failure destination take over.

With ADE_METRICS_NAMESPACE, each invocation writes its metrics as one line to the log, in CloudWatch's embedded metric
format; CloudWatch makes metrics of it without a call.
"""

import functools
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, TextIO

from core.settings import Settings
from handlers.events import Change, decode
from handlers.intake import Intake
from handlers.sources.arrivals import Arrivals
from infra.addresses import parse_address
from infra.aws.sqs_events import EventsQueue
from infra.logs import Log
from infra.telemetry import Telemetry, exporting
from infra.wiring import open_stack


class LambdaHandler:
    def __init__(self, arrivals: Arrivals, log: Log, refuse: EventsQueue | None = None) -> None:
        self._arrivals = arrivals
        self._log = log
        self._refuse = refuse

    def __call__(self, event: Mapping[str, Any]) -> dict[str, object]:
        records = event.get("Records")
        if isinstance(records, list) and any(_from_sqs(record) for record in records):
            failed = self._failed(records)
            return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}
        return {"keys": self._arrivals.receive(event)}

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
                self._arrivals.count_refused()
                if not self._refused(str(body), str(error)):
                    failed.append(message_id)
        done = set(self._arrivals.receive_all(read, self._log)) if read else set()
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


# By the name in CloudWatch, the counter and its label.
EMBEDDED: Mapping[str, tuple[str, ...]] = {
    "Scans": ("ade.scans", "ok"),
    "ScansFailed": ("ade.scans", "failed"),
    "EventsRefused": ("ade.events.refused",),
    "JobsCreated": ("ade.jobs.recorded", "created"),
    "JobsQueued": ("ade.jobs.recorded", "queued"),
    "JobsSuperseded": ("ade.jobs.recorded", "superseded"),
}


class EmbeddedMetrics:
    """Writes what each invocation counted as a line of CloudWatch's embedded metric format."""

    def __init__(self, telemetry: Telemetry, namespace: str, stream: TextIO | None = None) -> None:
        self._telemetry = telemetry
        self._namespace = namespace
        self._stream = stream

    @contextmanager
    def invocation(self) -> Iterator[None]:
        before, began = self._telemetry.meters.counters(), self._telemetry.now()
        try:
            yield
        finally:
            if self._namespace:
                print(self._line(before, began), file=self._stream or sys.stdout, flush=True)
            self._telemetry.flush()  # Lambda freezes the process as soon as it has answered

    def _line(self, before: Mapping[tuple[str, ...], float], began: float) -> str:
        after, now = self._telemetry.meters.counters(), self._telemetry.now()
        values = {name: after.get(series, 0) - before.get(series, 0) for name, series in EMBEDDED.items()}
        units = dict.fromkeys(values, "Count") | {"InvocationSeconds": "Seconds"}
        metrics = [{"Name": name, "Unit": unit} for name, unit in units.items()]
        about = {"Namespace": self._namespace, "Dimensions": [[]], "Metrics": metrics}
        line = {"_aws": {"Timestamp": int(now * 1000), "CloudWatchMetrics": [about]}}
        return json.dumps(line | values | {"InvocationSeconds": round(now - began, 3)})


_OPEN = ExitStack()  # never closed: Lambda ends the environment without notice


@functools.cache
def _assembled() -> tuple[LambdaHandler, EmbeddedMetrics]:
    """Built at the first call and kept while the environment lives."""
    settings = Settings.from_env(os.environ)
    log = Log(level=settings.log_level, role="lambda")
    telemetry = _OPEN.enter_context(exporting(on=settings.telemetry, role="lambda"))
    stack = _OPEN.enter_context(open_stack(settings, log=log, telemetry=telemetry))
    intake = Intake.over(stack)
    refuse = EventsQueue(parse_address(settings.events_url)) if settings.events_url else None
    made = LambdaHandler(Arrivals(intake, parse_address(settings.store_url).name), log, refuse)
    return made, EmbeddedMetrics(telemetry, settings.metrics_namespace)


def handler(event: Mapping[str, Any], _context: object = None) -> dict[str, object]:
    handle, metrics = _assembled()
    with metrics.invocation():
        return handle(event)
