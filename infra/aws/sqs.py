"""WorkQueue on SQS standard queues: bodies, the long poll, and the queue itself.

The tenant is the MessageGroupId, which makes SQS deliver fairly between tenants under a backlog; caps in the table
do the rest. SQS has no priority: urgent messages come first within one response, and no more is promised. A delay
beyond 15 minutes is kept in the message and sent on in stages. A long poll cannot be interrupted, so it runs in its own
thread: `wake` releases the caller at once, and the messages of the poll go to the next caller or, without one, back to
the queue.
"""

import contextlib
import copy
import json
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from botocore.exceptions import ClientError

from core.errors import AdeError
from core.ports import Clock, DeadLetter, Delivery, Message, QueueStats
from infra.addresses import Address
from infra.aws.calls import Answered, Caller, client, timeouts

N = TypeVar("N", int, float)

VERSION = 1  # of the body; docs/guides/upgrading.md
FOREIGN = "not a message of ade-drop"
_MOVED = "received too often without being handled; moved here by SQS"
_SHOWN = 2000  # characters of a foreign body that are shown


@dataclass(frozen=True, slots=True)
class Body:
    message: Message
    not_before: float = 0.0  # if SQS cannot delay for so long


def encode(message: Message, **more: str | float) -> str:
    body = {"v": VERSION, "job_id": message.job_id, "tenant": message.tenant, "priority": message.priority}
    return json.dumps(body | ({"trace": message.trace} if message.trace else {}) | more)


def decode(text: str) -> Body | None:
    match _loaded(text):
        case {"job_id": str(job_id), "tenant": str(tenant), **rest}:
            trace = rest.get("trace", "")
            message = Message(
                job_id=job_id,
                tenant=tenant,
                priority=_number(rest, "priority", int),
                trace=trace if isinstance(trace, str) else "",
            )
            return Body(message, _number(rest, "not_before", float))
        case _:
            return None


def newer(text: str) -> bool:
    """Whether a newer program wrote this body."""
    match _loaded(text):
        case {"v": int(version)}:
            return version > VERSION
        case _:
            return False


def letter(raw: dict[str, Any]) -> DeadLetter:
    """Our letters have a reason; those that SQS moved do not; foreign ones are listed under their own id."""
    sent = int(raw["Attributes"]["SentTimestamp"]) / 1000
    found = decode(raw["Body"])
    if found is None:
        return DeadLetter(message=stranger(raw), reason=f"{FOREIGN}; see it in the queue", at=sent)
    body = _loaded(raw["Body"])
    return DeadLetter(
        message=found.message, reason=str(body.get("reason", _MOVED)), at=_number(body, "at", float) or sent
    )


def stranger(raw: dict[str, Any]) -> Message:
    """A placeholder for a message without a job."""
    return Message(job_id=f"message-{raw['MessageId']}", tenant="-")


def foreign(raw: dict[str, Any], at: float) -> str:
    """The dead letter of a foreign message."""
    return encode(stranger(raw), reason=FOREIGN, at=at, body=raw["Body"][:_SHOWN])


def group(tenant: str) -> str:
    """A MessageGroupId: at most 128 of the characters that SQS allows; unusual names may share a group."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in tenant)[:128] or "_"


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _number(values: Mapping[Any, Any], name: str, kind: Callable[[float], N]) -> N:
    value = values.get(name, 0)
    return kind(value if isinstance(value, int | float) and math.isfinite(value) else 0)


Raw = list[dict[str, Any]]
_ANSWER_SECONDS = 60.0  # beyond the poll's own time; the call's deadline comes long before


class Poll:
    """Runs one poll at a time; other callers wait for their turn."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._state = threading.Condition()
        self._running = False
        self._brought: Raw = []
        self._failed: Exception | None = None
        self._woken = False
        self._closed = False

    def poll(self, receive: Callable[[float], Raw], seconds: float) -> Raw:
        """The messages of a poll of up to `seconds`; none if `wake` came first."""
        with self._turn, self._state:
            if self._closed or self._woken:
                return self._collect()
            if not self._running and not self._brought:
                self._running = True
                threading.Thread(target=self._run, args=(receive, seconds), daemon=True, name="sqs-poll").start()
                mine = seconds + _ANSWER_SECONDS
            else:
                mine = seconds
            self._state.wait_for(lambda: not self._running or self._woken, timeout=mine)
            return self._collect()

    def left_over(self) -> Raw:
        """Messages of an earlier poll that no caller took."""
        with self._state:
            return self._collect()

    def woken(self) -> bool:
        """Whether `wake` was called since the last call of this."""
        with self._state:
            woken, self._woken = self._woken, False
            return woken or self._closed

    def wake(self) -> None:
        with self._state:
            self._woken = True
            self._state.notify_all()

    def close(self, seconds: float) -> Raw:
        """Start no more polls, wait for the current one, and return messages that no caller took."""
        with self._state:
            self._closed = self._woken = True
            self._state.notify_all()
            self._state.wait_for(lambda: not self._running, timeout=seconds)
            left, self._brought = self._brought, []
            return left

    def _run(self, receive: Callable[[float], Raw], seconds: float) -> None:
        brought: Raw = []
        failed: Exception | None = None
        try:
            brought = receive(seconds)
        except Exception as error:  # noqa: BLE001 - passed to the caller, who would otherwise poll again at once
            failed = error
        finally:
            with self._state:
                self._running = False
                self._brought += brought
                self._failed = failed
                self._state.notify_all()

    def _collect(self) -> Raw:
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed
        brought, self._brought = self._brought, []
        return brought


_LONGEST_DELAY = 900
_NEWER_DELAY = 60
_LONGEST_POLL = 10  # SQS allows 20; a runner that ends has to wait for the current poll
_LONGEST_HIDE = 12 * 3600
_MOST_AT_ONCE = 10
_READING_SECONDS = 30  # how long reading dead letters hides them from others
_LONGEST_REASON = 4000
_COUNTED_SECONDS = 120.0  # until a sent message is certainly in the approximate counts
_STALE = (
    "ReceiptHandleIsInvalid",
    "InvalidParameterValue",
    "AWS.SimpleQueueService.MessageNotInflight",
    "MessageNotInflight",
    "InvalidReceiptHandle",
)


class SqsWorkQueue:
    """A queue and its dead-letter queue. Safe to share between threads."""

    chooses_tenants = False

    def __init__(
        self,
        address: Address,
        clock: Clock,
        *,
        caller: Caller | None = None,
        longest_poll: int = _LONGEST_POLL,
        dead_poll: int = 1,  # 0 would query only some of the servers of SQS and may find none
    ) -> None:
        self._address = address
        self._clock = clock
        self._connect(client(address, read_timeout=_LONGEST_POLL + 10), caller or Caller(str(address)))
        self._url = self._url_of(address.name)
        self._dead_url = self._url_of(address.options.get("dead", f"{address.name}-dead"))
        self._longest_poll = longest_poll
        self._dead_poll = dead_poll
        self._held: dict[str, float] = {}  # receipt → end of its visibility
        self._held_lock = threading.Lock()
        self._reported_missing: list[tuple[float, int]] = []  # when, and how many

    def within(self, seconds: float) -> "SqsWorkQueue":
        """The same queue and receipts with calls that end within `seconds`, for heartbeats; use only `hide`."""
        hasty = copy.copy(self)
        hasty._connect(client(self._address, **timeouts(seconds)), self._call.within(seconds))  # noqa: SLF001 - same class
        return hasty

    def _connect(self, sqs: Any, call: Caller) -> None:
        self._sqs, self._call, self._poll = sqs, call, Poll()

    def send(self, message: Message, *, delay: float = 0.0) -> None:
        self._send(message, not_before=self._clock.now() + delay if delay > 0 else None)

    def send_all(self, messages: Sequence[tuple[Message, float]]) -> None:
        if len(messages) == 1:
            ((message, delay),) = messages
            self.send(message, delay=delay)
            return
        now = self._clock.now()
        entries = [self._entry(m, not_before=now + delay if delay > 0 else None) for m, delay in messages]
        for at in range(0, len(entries), _MOST_AT_ONCE):
            self._send_batch([entry | {"Id": str(n)} for n, entry in enumerate(entries[at : at + _MOST_AT_ONCE])])

    def receive(
        self, *, most: int, wait: float, visibility: float, avoid: frozenset[str] = frozenset()
    ) -> tuple[Delivery, ...]:
        """SQS cannot choose: messages of tenants to `avoid` come with the others."""
        del avoid
        until = time.monotonic() + wait
        while True:
            asked = min(max(0.0, until - time.monotonic()), self._longest_poll)
            if wait <= 0:
                got = self._poll.left_over() or self._receive(most, 0, visibility)
            else:
                got = self._poll.poll(lambda seconds: self._receive(most, seconds, visibility), asked)
            ready = self._ready(got)
            if ready or self._poll.woken() or time.monotonic() >= until:
                return tuple(sorted(ready, key=lambda delivery: -delivery.message.priority))

    def hide(self, receipt: str, seconds: float) -> bool:
        now = self._clock.now()
        with self._held_lock:
            if self._held.get(receipt, now) <= now:
                return False  # its visibility ended; some servers would extend it anyway
        try:
            self._call("hide", lambda: self._change(receipt, seconds), expect=_STALE)
        except Answered:
            return False
        with self._held_lock:
            if seconds > 0:
                self._held[receipt] = now + seconds
            else:
                self._held.pop(receipt, None)
        return True

    def ack(self, receipt: str) -> None:
        with self._held_lock:
            expires = self._held.pop(receipt, 0.0)
        if expires <= self._clock.now():
            return  # another runner may have it by now; the table handles a second delivery
        self._delete(self._url, receipt)

    def missing(self, job_ids: Sequence[str], expected: Callable[[], int]) -> tuple[str, ...]:
        """SQS cannot search for a message, so messages are counted, before and after reading the jobs."""
        before = self._depth()
        wanted = expected()
        now = self._clock.now()
        self._reported_missing = [(at, n) for at, n in self._reported_missing if at > now - _COUNTED_SECONDS]
        here = max(before, self._depth()) + sum(n for _, n in self._reported_missing)
        short = tuple(job_ids[: max(0, wanted - here)])
        if short:
            self._reported_missing.append((now, len(short)))
        return short

    def bury(self, message: Message, reason: str) -> None:
        self._bury(message, encode(message, reason=reason[:_LONGEST_REASON], at=self._clock.now()))

    def dead(self, *, limit: int = 100) -> tuple[DeadLetter, ...]:
        found = self._read_dead(limit)
        self._show_again([handle for handle, _ in found])
        letters = sorted((letter for _, letter in found), key=lambda letter: letter.at)
        # A process that died right after burying a job may be followed by one that buries it again.
        last = {letter.message.job_id: letter for letter in letters}
        return tuple(sorted(last.values(), key=lambda letter: letter.at))

    def redrive(self, job_id: str | None = None) -> int:
        found = self._read_dead(None)
        wanted = {handle: letter for handle, letter in found if job_id in (None, letter.message.job_id)}
        for handle in wanted:
            self._delete(self._dead_url, handle)
        self._show_again([handle for handle, _ in found if handle not in wanted])
        return len({letter.message.job_id for letter in wanted.values()})

    def stats(self) -> QueueStats:
        """Approximate, like the counts of SQS; only CloudWatch knows the age of the oldest message."""
        work, dead = self._counts(self._url), self._counts(self._dead_url)
        return QueueStats(
            ready=work["ApproximateNumberOfMessages"],
            in_flight=work["ApproximateNumberOfMessagesNotVisible"],
            delayed=work["ApproximateNumberOfMessagesDelayed"],
            dead=dead["ApproximateNumberOfMessages"] + dead["ApproximateNumberOfMessagesNotVisible"],
            oldest_seconds=None,
        )

    def wake(self) -> None:
        self._poll.wake()

    def close(self) -> None:
        """End the current poll and give its messages back."""
        for raw in self._poll.close(self._longest_poll + 10):
            with contextlib.suppress(AdeError, Answered):
                self._call("give back", lambda: self._change(raw["ReceiptHandle"], 0), expect=_STALE)  # noqa: B023 - called at once
        self._sqs.close()

    def _url_of(self, name: str) -> str:
        answer = self._call(f"find queue {name}", lambda: self._sqs.get_queue_url(QueueName=name))
        return str(answer["QueueUrl"])

    def _send(self, message: Message, *, not_before: float | None) -> None:
        entry = self._entry(message, not_before=not_before)
        self._call(f"send {message.job_id}", lambda: self._sqs.send_message(QueueUrl=self._url, **entry))

    def _send_batch(self, entries: list[dict[str, Any]]) -> None:
        """One request; retries the entries that the service did not accept."""
        left = entries

        def act() -> None:
            nonlocal left
            answer = self._sqs.send_message_batch(QueueUrl=self._url, Entries=left)
            failed = {entry["Id"]: entry for entry in answer.get("Failed", ())}
            left = [entry for entry in left if entry["Id"] in failed]
            if left:
                first = failed[left[0]["Id"]]
                code = first.get("Code", "") if first.get("SenderFault") else "ServiceUnavailable"
                raise ClientError({"Error": {"Code": code, "Message": first.get("Message", "")}}, "SendMessageBatch")

        self._call(f"send {len(entries)} messages", act)

    def _entry(self, message: Message, *, not_before: float | None) -> dict[str, Any]:
        body = encode(message)
        delay = 0
        if not_before is not None:
            # Rounded up: a message that is early would have to be sent once more.
            left = max(0, -int(-(not_before - self._clock.now()) // 1))
            delay = min(left, _LONGEST_DELAY)
            if left > _LONGEST_DELAY:
                body = encode(message, not_before=not_before)
        return {"MessageBody": body, "DelaySeconds": delay, "MessageGroupId": group(message.tenant)}

    def _receive(self, most: int, seconds: float, visibility: float) -> list[dict[str, Any]]:
        answer = self._call(
            "receive",
            lambda: self._sqs.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=max(1, min(most, _MOST_AT_ONCE)),
                WaitTimeSeconds=int(-(-seconds // 1)),
                VisibilityTimeout=max(1, round(visibility)),
                MessageSystemAttributeNames=["ApproximateReceiveCount", "SentTimestamp"],
            ),
        )
        expires = self._clock.now() + max(1, round(visibility))
        return [raw | {"expires": expires} for raw in answer.get("Messages", ())]

    def _ready(self, got: list[dict[str, Any]]) -> list[Delivery]:
        ready = []
        for raw in got:
            body, expires, receipt = decode(raw["Body"]), raw["expires"], raw["ReceiptHandle"]
            if newer(raw["Body"]):
                self._leave(raw["Body"])
                self._delete(self._url, receipt)
                continue
            if body is None:
                self._bury(stranger(raw), foreign(raw, self._clock.now()))
                self._delete(self._url, receipt)
                continue
            if body.not_before > self._clock.now():
                self._send(body.message, not_before=body.not_before)
                self._delete(self._url, receipt)
                continue
            if expires <= self._clock.now():
                continue  # it waited for a caller too long and is visible to others again
            self._hold(receipt, expires)
            ready.append(
                Delivery(
                    message=body.message,
                    receipt=receipt,
                    receives=int(raw["Attributes"]["ApproximateReceiveCount"]),
                    sent_at=int(raw["Attributes"]["SentTimestamp"]) / 1000,
                )
            )
        return ready

    def _leave(self, body: str) -> None:
        """Send a newer program's message again unchanged: a fresh message never becomes a dead letter."""
        entry = {"MessageBody": body, "DelaySeconds": _NEWER_DELAY, "MessageGroupId": "newer"}
        self._call("send on", lambda: self._sqs.send_message(QueueUrl=self._url, **entry))

    def _hold(self, receipt: str, expires: float) -> None:
        now = self._clock.now()
        with self._held_lock:
            # Messages of lost runners were never given back.
            for old in [held for held, at in self._held.items() if at <= now]:
                del self._held[old]
            self._held[receipt] = expires

    def _bury(self, message: Message, body: str) -> None:
        self._call(
            f"bury {message.job_id}",
            lambda: self._sqs.send_message(
                QueueUrl=self._dead_url, MessageBody=body, MessageGroupId=group(message.tenant)
            ),
        )

    def _delete(self, url: str, receipt: str) -> None:
        """A stale receipt deletes nothing: AWS ignores it, other servers raise."""
        with contextlib.suppress(Answered):
            self._call("delete", lambda: self._sqs.delete_message(QueueUrl=url, ReceiptHandle=receipt), expect=_STALE)

    def _change(self, receipt: str, seconds: float) -> None:
        self._sqs.change_message_visibility(
            QueueUrl=self._url, ReceiptHandle=receipt, VisibilityTimeout=int(min(_LONGEST_HIDE, -(-seconds // 1)))
        )

    def _read_dead(self, limit: int | None) -> list[tuple[str, DeadLetter]]:
        """Dead letters with their handles, hidden from others for a moment."""
        found: dict[str, tuple[str, DeadLetter]] = {}
        while limit is None or len(found) < limit:
            most = _MOST_AT_ONCE if limit is None else min(_MOST_AT_ONCE, limit - len(found))
            answer = self._call(
                "read dead letters",
                lambda: self._sqs.receive_message(
                    QueueUrl=self._dead_url,
                    MaxNumberOfMessages=most,  # noqa: B023 - called at once
                    WaitTimeSeconds=self._dead_poll,
                    VisibilityTimeout=_READING_SECONDS,
                    MessageSystemAttributeNames=["SentTimestamp"],
                ),
            )
            fresh = [raw for raw in answer.get("Messages", ()) if raw["MessageId"] not in found]
            if not fresh:
                break
            found |= {raw["MessageId"]: (raw["ReceiptHandle"], letter(raw)) for raw in fresh}
        return list(found.values())

    def _show_again(self, handles: list[str]) -> None:
        for handle in handles:
            with contextlib.suppress(Answered):
                self._call(
                    "show again",
                    lambda: self._sqs.change_message_visibility(
                        QueueUrl=self._dead_url,
                        ReceiptHandle=handle,  # noqa: B023 - called at once
                        VisibilityTimeout=0,
                    ),
                    expect=_STALE,
                )

    def _depth(self) -> int:
        return sum(self._counts(self._url).values())

    def _counts(self, url: str) -> dict[str, int]:
        names = [f"ApproximateNumberOfMessages{which}" for which in ("", "NotVisible", "Delayed")]
        answer = self._call("count", lambda: self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names))
        return {name: int(answer["Attributes"].get(name, 0)) for name in names}
