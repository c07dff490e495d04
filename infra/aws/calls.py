"""Clients of AWS services and calls to them: what is retried, for how long, and what callers see.

A call ends in one of three ways. It returns. It raises Answered: the service gave a definite answer that the caller
expects (no such key, condition failed). Or it raises StoreUnavailable: the service did not answer before the deadline,
gave no answer that proves itself (core/proofs.py), or refused permanently. botocore's own retries are off, so this is
the only place that waits: exponential, fully jittered, never a hot loop.
"""

import contextlib
import functools
import os
import threading
import time
from collections.abc import Callable, Collection
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import boto3
import botocore.loaders
import botocore.session
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    FlexibleChecksumError,
    HTTPClientError,
    IncompleteReadError,
)
from botocore.exceptions import ConnectionError as NotConnected
from botocore.parsers import ResponseParserError

from core.errors import AnswerDoubted, CallRefused, StoreFull, StoreUnavailable
from infra.addresses import Address
from infra.retrying import CallPolicy

_LOCK = threading.Lock()
_MODELS = botocore.loaders.create_loader()  # parsing a service's model takes longer than most calls
_READ_BY_BOTO = ("AWS_", "BOTO_", "HOME")


def client(address: Address, *, read_timeout: float = 30.0, connect_timeout: float = 5.0) -> Any:
    """A boto3 client, safe to share between threads; `Caller` does all the waiting and retrying."""
    return _client(address, read_timeout, connect_timeout, for_links=False)


def link_client(address: Address) -> Any:
    """A client that signs URLs for others to use, and so asks for no checksum of a body that it does not know."""
    return _client(address, 30.0, 5.0, for_links=True)


def _client(address: Address, read_timeout: float, connect_timeout: float, *, for_links: bool) -> Any:
    own_server = address.endpoint is not None
    config = Config(
        user_agent=f"ade-drop Botocore/{botocore.__version__}",  # otherwise put together again for each call
        connect_timeout=connect_timeout,
        read_timeout=read_timeout,
        retries={"total_max_attempts": 1},
        max_pool_connections=32,
        # Older S3 clones only support Content-MD5, which we send ourselves.
        request_checksum_calculation="when_required" if own_server or for_links else "when_supported",
        response_checksum_validation="when_required" if own_server else "when_supported",
        signature_version="s3v4" if for_links else None,
        s3={"addressing_style": address.options.get("addressing", "path" if own_server else "auto")},
    )
    with _LOCK:
        environment = frozenset(item for item in os.environ.items() if item[0].startswith(_READ_BY_BOTO))
        session = _session(address.region, environment)
        region = address.region or session.region_name or ("us-east-1" if own_server else None)
        return session.client(address.service, endpoint_url=address.endpoint, region_name=region, config=config)


@functools.lru_cache(maxsize=8)
def _session(region: str | None, _environment: frozenset[tuple[str, str]]) -> boto3.session.Session:
    """The session of all clients of a region, for as long as the environment says the same.

    They fetch and renew their credentials together, and a session takes longer to make than a client.
    """
    core = botocore.session.get_session()
    core.register_component("data_loader", _MODELS)
    return boto3.session.Session(botocore_session=core, region_name=region)


T = TypeVar("T")

# The service is up and busy. Other codes are transient by their HTTP status alone.
_BUSY = frozenset(
    {
        "BandwidthLimitExceeded",
        "ConditionalRequestConflict",  # S3: another conditional write to the key is in progress
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "KMS.ThrottlingException",
        "KmsThrottled",
        "LimitExceededException",
        "OperationAborted",
        "OverLimit",  # SQS: too many messages in flight
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceUnavailable",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
_BUSY_REASONS = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})
# No room or no quota left. Tried again by whoever waits for room, not by this call.
_FULL = frozenset({"InsufficientStorage", "QuotaExceeded", "XMinioAdminBucketQuotaExceeded", "XMinioStorageFull"})
_FULL_STATUS = 507
_BUSY_STATUS = frozenset({408, 429, 500, 502, 503, 504})
# Refused, broken and silent connections, and answers that were cut short or damaged in transit.
_BROKEN = (
    HTTPClientError,
    NotConnected,  # botocore's own, not an HTTPClientError
    IncompleteReadError,
    FlexibleChecksumError,
    ResponseParserError,  # not even a BotoCoreError
    ConnectionError,
    TimeoutError,
)


class Answered(Exception):
    """A definite answer that the caller expects: an error code of `expect`."""

    def __init__(self, code: str, response: dict[str, Any]) -> None:
        super().__init__(code)
        self.code = code
        self.response = response


def timeouts(seconds: float) -> dict[str, float]:
    """A client's timeouts for one try, so that a call by `Caller.within(seconds)` ends in that time."""
    return {"connect_timeout": seconds / 6, "read_timeout": seconds / 4}


class Caller:
    """Makes calls to one service under one policy."""

    def __init__(
        self,
        service: str,
        *,
        deadline: float = 30.0,
        longest_wait: float = 4.0,
        on_retry: Callable[[str, str], None] = lambda _what, _why: None,
    ) -> None:
        self.service = service
        self.ahead: float | None = None  # at least how far our clock was ahead of the service's in the last answer
        self.longest_try = min(deadline, 30.0)  # for the client: no try need be longer than all of them may take
        self._policy = CallPolicy(deadline=deadline, longest_wait=longest_wait)
        self._on_retry = on_retry

    def within(self, seconds: float) -> "Caller":
        """A caller whose calls end within `seconds`, including retries, if the client has matching timeouts."""
        policy = self._policy.within(seconds)
        return Caller(self.service, deadline=policy.deadline, longest_wait=policy.longest_wait, on_retry=self._on_retry)

    def __call__(self, what: str, act: Callable[[], T], *, expect: Collection[str] = ()) -> T:
        """Run `act` until it returns, answers with a code of `expect`, or the deadline passes.

        `act` may run several times; an earlier run may have taken effect although its answer was lost.
        """
        began = time.time()

        def timed() -> T:
            nonlocal began
            began = time.time()
            return act()

        try:
            answer = self._policy.run(
                timed, is_transient=transient, on_retry=lambda error: self._on_retry(what, _why(error))
            )
            self._compare_clocks(answer, began, time.time())
            return answer
        except ClientError as error:
            code = _code(error)
            if code in expect or _cancelled(error) in expect:
                raise Answered(code, error.response) from error
            raise _kind(error)(f"{self.service} refused {what}: {_describe(error)}") from error
        except AnswerDoubted as error:
            raise AnswerDoubted(f"{self.service} answered {what} with what cannot be: {error}") from error
        except (BotoCoreError, *_BROKEN) as error:
            raise StoreUnavailable(f"{self.service} did not answer {what}: {error}; check that it is up") from error

    def _compare_clocks(self, answer: object, began: float, ended: float) -> None:
        """The service's time, in whole seconds, is from a moment between `began` and `ended`."""
        headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}) if isinstance(answer, dict) else {}
        with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError):
            theirs = parsedate_to_datetime(headers["date"]).timestamp()
            self.ahead = max(began - (theirs + 1), 0.0) or min(ended - theirs, 0.0)


def transient(error: BaseException) -> bool:
    """Whether the same call may succeed a moment later."""
    if isinstance(error, ClientError):
        if _code(error) == "TransactionCanceledException":
            reasons = {reason.get("Code") for reason in error.response.get("CancellationReasons", [])}
            return bool(reasons & _BUSY_REASONS) and "ConditionalCheckFailed" not in reasons
        return _code(error) in _BUSY or _status(error) in _BUSY_STATUS
    return isinstance(error, (*_BROKEN, AnswerDoubted))


def _kind(error: ClientError) -> type[StoreUnavailable]:
    if _code(error) in _FULL or _status(error) == _FULL_STATUS:
        return StoreFull
    return StoreUnavailable if transient(error) else CallRefused


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _cancelled(error: ClientError) -> str | None:
    """The deciding reason of a cancelled transaction."""
    reasons = {reason.get("Code") for reason in error.response.get("CancellationReasons", [])}
    return "ConditionalCheckFailed" if "ConditionalCheckFailed" in reasons else None


def _describe(error: ClientError) -> str:
    message = error.response.get("Error", {}).get("Message", "")
    return f"{_code(error)} ({_status(error)}) {message}".strip()


def _why(error: BaseException) -> str:
    return _code(error) if isinstance(error, ClientError) else type(error).__name__
