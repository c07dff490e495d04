"""Delivers notices: signed webhooks, SNS topics, EventBridge buses. In: a receiver that is allowed. Out: taken or not.

A webhook goes to an address that was checked a moment before: the name is resolved once and the connection made to that
very address, so a name that answers otherwise the next time gains nothing. Redirects are not followed, answers are read
up to a few bytes, and the whole exchange has one deadline.
"""

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from typing import Any

from core.notices import (
    CONTENT_TYPE,
    NOTICE_ID,
    SIGNATURE,
    TIMESTAMP,
    Allowed,
    Receiver,
    Refusal,
    check_addresses,
    key_of,
    signature,
)

DELIVERY_SECONDS = 10.0
_CONNECT_SECONDS = 5.0
_READ_BYTES = 4096
_SOURCE = "ade-drop"

Resolve = Callable[[str, int], list[str]]


class NotDelivered(Exception):
    """The receiver did not take a notice; the text says why, and it is tried again."""


def resolve(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise NotDelivered(f"{host} cannot be resolved: {error.strerror or error}") from error
    return list(dict.fromkeys(str(info[4][0]) for info in found))


class Deliveries:
    """Sends to what the operator allows. Safe to share between threads."""

    def __init__(
        self,
        allow: str,
        secret: str,
        *,
        now: Callable[[], float],
        resolve: Resolve = resolve,
        clients: Callable[[str, str], Any] | None = None,
        context: ssl.SSLContext | None = None,
        seconds: float = DELIVERY_SECONDS,
    ) -> None:
        """`clients`: makes the boto3 client of a service and region."""
        self._allowed = Allowed(allow)
        self._secret = secret
        self._now = now
        self._resolve = resolve
        self._clients = clients or _client
        self._context = context
        self._seconds = seconds

    def send(self, to: str, notice_id: str, kind: str, body: bytes) -> Refusal | None:
        """Deliver a notice; raises NotDelivered if it has to be tried again. A Refusal will never be taken."""
        receiver = self._allowed.receiver(to)
        if isinstance(receiver, Refusal):
            return receiver
        match receiver.kind:
            case "webhook":
                return self._post(receiver, notice_id, body)
            case "sns":
                self._call(receiver, "sns", "publish", TopicArn=to, Message=body.decode(), **_about(notice_id, kind))
            case _:
                entry = {"Source": _SOURCE, "DetailType": f"notice {kind}", "Detail": body.decode(), "EventBusName": to}
                answer = self._call(receiver, "events", "put_events", Entries=[entry])
                if answer.get("FailedEntryCount"):
                    raise NotDelivered(f"the bus refused it: {answer['Entries'][0].get('ErrorCode')}")
        return None

    def _post(self, receiver: Receiver, notice_id: str, body: bytes) -> Refusal | None:
        if not self._secret:
            return Refusal("ADE_NOTIFY_SECRET is not set, and a webhook without a signature proves nothing")
        address = check_addresses(self._resolve(receiver.host, receiver.port), private=receiver.private)
        if isinstance(address, Refusal):
            return address
        timestamp = str(int(self._now()))
        headers = {
            "Content-Type": CONTENT_TYPE,
            "User-Agent": _SOURCE,
            NOTICE_ID: notice_id,
            TIMESTAMP: timestamp,
            SIGNATURE: signature(key_of(self._secret, receiver.host), timestamp, body),
        }
        status = self._exchange(receiver, address, headers, body)
        if not 200 <= status < 300:
            raise NotDelivered(f"it answered {status}")
        return None

    def _exchange(self, receiver: Receiver, address: str, headers: Mapping[str, str], body: bytes) -> int:
        import http.client  # noqa: PLC0415 - a runner starts faster without it

        connection = http.client.HTTPConnection(receiver.host, receiver.port, timeout=_CONNECT_SECONDS)
        try:
            plain = socket.create_connection((address, receiver.port), timeout=_CONNECT_SECONDS)
            open_, late = self._secured(plain, receiver), threading.Event()
            # Silence ends each step; the timer ends an answer that trickles.
            timer = threading.Timer(self._seconds, _cut, args=(open_, late))
            timer.daemon = True
            timer.start()
            try:
                if isinstance(open_, ssl.SSLSocket):
                    open_.do_handshake()
                connection.sock = open_
                connection.request("POST", receiver.path, body=body, headers=dict(headers))
                answer = connection.getresponse()
                answer.read(_READ_BYTES)
                if late.is_set():
                    raise TimeoutError
                return answer.status
            finally:
                timer.cancel()
                open_.close()
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NotDelivered(f"{type(error).__name__} while it was sent") from error
        finally:
            connection.close()

    def _secured(self, plain: socket.socket, receiver: Receiver) -> socket.socket:
        if not receiver.secure:
            return plain
        context = self._context or ssl.create_default_context()
        return context.wrap_socket(plain, server_hostname=receiver.host, do_handshake_on_connect=False)

    def _call(self, receiver: Receiver, service: str, act: str, **parameters: Any) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = getattr(self._clients(service, receiver.to.split(":")[3]), act)(**parameters)
        except Exception as error:
            raise NotDelivered(f"{service} refused it: {type(error).__name__}") from error
        return answer


def _about(notice_id: str, kind: str) -> dict[str, object]:
    values = {"id": notice_id, "kind": kind}
    attributes = {name: {"DataType": "String", "StringValue": value} for name, value in values.items()}
    return {"MessageAttributes": attributes, "Subject": json.dumps(f"ade-drop: {kind}").strip('"')}


def _cut(connection: socket.socket, late: threading.Event) -> None:
    late.set()
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _client(service: str, region: str) -> Any:
    import boto3  # noqa: PLC0415 - slow to import, and most notices are webhooks
    from botocore.config import Config  # noqa: PLC0415 - as above

    config = Config(connect_timeout=_CONNECT_SECONDS, read_timeout=_CONNECT_SECONDS, retries={"max_attempts": 0})
    return boto3.client(service, region_name=region or None, config=config)
