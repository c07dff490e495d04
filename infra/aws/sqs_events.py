"""The queue of a bucket's notifications: raw bodies, deleted one by one."""

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from infra.addresses import Address
from infra.aws.calls import Answered, Caller, client

_POLL_SECONDS = 10
_MOST_AT_ONCE = 10
_HIDDEN_SECONDS = 60
_LONGEST_REASON = 1000
_LONGEST_BODY = 30_000  # escaping may make it six times as long, and messages have a limit


@dataclass(frozen=True, slots=True)
class RawEvent:
    body: str
    receipt: str
    receives: int


class EventsQueue:
    """An SQS queue and its dead-letter queue, `<name>-dead` unless `?dead=` says otherwise."""

    def __init__(self, address: Address, *, caller: Caller | None = None, poll_seconds: int = _POLL_SECONDS) -> None:
        self._poll_seconds = poll_seconds
        self._sqs = client(address, read_timeout=_POLL_SECONDS + 10)
        self._call = caller or Caller(str(address))
        self._url = self._url_of(address.name)
        self._dead_url = self._url_of(address.options.get("dead", f"{address.name}-dead"))

    def receive(self) -> list[RawEvent]:
        """Up to ten bodies, hidden from others for a minute."""
        answer = self._call(
            "receive events",
            lambda: self._sqs.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=_MOST_AT_ONCE,
                WaitTimeSeconds=self._poll_seconds,
                VisibilityTimeout=_HIDDEN_SECONDS,
                MessageSystemAttributeNames=["ApproximateReceiveCount"],
            ),
        )
        return [
            RawEvent(m["Body"], m["ReceiptHandle"], int(m["Attributes"]["ApproximateReceiveCount"]))
            for m in answer.get("Messages", ())
        ]

    def done_all(self, events: Sequence[RawEvent]) -> None:
        """Delete bodies, ten per request; one that is redelivered is scanned twice, which is harmless."""
        for at in range(0, len(events), _MOST_AT_ONCE):
            entries = [
                {"Id": str(n), "ReceiptHandle": event.receipt}
                for n, event in enumerate(events[at : at + _MOST_AT_ONCE])
            ]
            with contextlib.suppress(Answered):
                self._call(
                    "delete events",
                    lambda: self._sqs.delete_message_batch(QueueUrl=self._url, Entries=entries),  # noqa: B023 - called at once
                    expect=("ReceiptHandleIsInvalid", "InvalidParameterValue"),
                )

    def refuse(self, body: str, reason: str) -> None:
        """Put an unusable body on the dead-letter queue, with the reason."""
        self._call(
            "refuse event",
            lambda: self._sqs.send_message(
                QueueUrl=self._dead_url,
                MessageBody=json.dumps({"reason": reason[:_LONGEST_REASON], "body": body[:_LONGEST_BODY]}),
            ),
        )

    def close(self) -> None:
        self._sqs.close()

    def _url_of(self, name: str) -> str:
        answer = self._call(f"find queue {name}", lambda: self._sqs.get_queue_url(QueueName=name))
        return str(answer["QueueUrl"])
