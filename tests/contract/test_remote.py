"""Calls over a network that fails: what is tried again, what is not, and what the callers get to see."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, FlexibleChecksumError
from botocore.parsers import ResponseParserError

from console.cli import checks
from core.errors import StoreFull, StoreUnavailable
from core.settings import Settings
from infra.addresses import parse_address
from infra.aws.calls import Answered, Caller, client
from infra.wiring import open_stack
from tests.contract import servers


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def call(told: list[str]) -> Caller:
    return Caller("s3://drops", longest_wait=0.02, on_retry=lambda what, why: told.append(f"{what}: {why}"))


@pytest.fixture
def impatient() -> Caller:
    return Caller("s3://drops", deadline=0.3, longest_wait=0.02)


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of a server that is not there: every connection is refused."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with socket.socket() as held:  # it does not listen, and nobody else gets its port
        held.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{held.getsockname()[1]}"
        with closing(client(parse_address(f"s3://drops?endpoint={endpoint}"))) as s3:
            yield s3


def refusal(code: str, status: int = 400, message: str = "no") -> ClientError:
    answer = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "Any")


def failing(*errors: Exception) -> Callable[[], str]:
    left = list(errors)

    def act() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return act


def test_a_refused_connection_is_tried_again(call: Caller, told: list[str], nobody: Any):
    assert call("head", lambda: "up again" if len(told) > 1 else nobody.head_object(Bucket="drops", Key="x"))


def test_a_server_that_stays_away_is_named(impatient: Caller, nobody: Any):
    with pytest.raises(StoreUnavailable, match="s3://drops did not answer head"):
        impatient("head", lambda: nobody.head_object(Bucket="drops", Key="x"))


@pytest.mark.parametrize(
    "error",
    [
        refusal("SlowDown", 503),
        refusal("503", 503),
        refusal("RequestTimeout", 400),
        refusal("KMS.ThrottlingException", 400),
        refusal("OverLimit", 403),
        refusal("408", 408),
        FlexibleChecksumError(error_msg="Expected checksum a did not match calculated checksum: b"),
        ResponseParserError("Unable to parse response (no element found), invalid XML received"),
    ],
    ids=str,
)
def test_what_may_pass_is_tried_again(call: Caller, error: Exception):
    assert call("put", failing(error, error)) == "done"


@pytest.mark.parametrize("error", [ResponseParserError("x"), FlexibleChecksumError(error_msg="x")], ids=str)
def test_what_never_passes_is_an_error_of_the_product(impatient: Caller, error: Exception):
    with pytest.raises(StoreUnavailable, match="s3://drops"):
        impatient("put", failing(*[error] * 1000))


def test_a_refusal_is_not_tried_again(call: Caller, told: list[str]):
    with pytest.raises(StoreUnavailable, match="refused put: AccessDenied"):
        call("put", failing(refusal("AccessDenied", 403)))
    assert told == []


@pytest.mark.parametrize(
    "error",
    [
        refusal("QuotaExceeded", 403),
        refusal("XMinioStorageFull", 507),
        refusal("XMinioAdminBucketQuotaExceeded", 400),
        refusal("InsufficientStorage", 500),
        refusal("507", 507),
    ],
    ids=str,
)
def test_a_store_without_room_says_so(impatient: Caller, error: Exception):
    with pytest.raises(StoreFull, match="s3://drops refused put"):
        impatient("put", failing(*[error] * 1000))


def test_an_expected_answer_is_reported_to_the_caller(call: Caller):
    with pytest.raises(Answered, match="NoSuchKey"):
        call("get", failing(refusal("NoSuchKey", 404)), expect=("NoSuchKey",))


class TestClocks:
    """A service's answers say what time it is there."""

    @pytest.mark.parametrize("skew", [-3600, -10, 10, 60])
    def test_a_clock_that_differs_is_reported_to_about_a_second(self, call: Caller, skew: int):
        date = formatdate(time.time() - skew, usegmt=True)
        call("get", lambda: {"ResponseMetadata": {"HTTPHeaders": {"date": date}}})
        assert call.ahead == pytest.approx(skew, abs=2)

    @pytest.mark.parametrize("answer", [None, {}, {"ResponseMetadata": {"HTTPHeaders": {"date": "soon"}}}])
    def test_an_answer_that_says_nothing_of_it_is_as_good_as_any(self, call: Caller, answer: object):
        assert call("get", lambda: answer) is answer
        assert call.ahead is None

    def test_a_server_on_this_machine_agrees_with_us(self, tmp_path: Path):
        server, name = servers.moto(), f"clocks-{os.getpid()}"
        with servers.credentials(server):
            settings = Settings(storage_data_dir=tmp_path, store_url=servers.url("s3", name, server))
            servers.admin("s3", server.endpoint).create_bucket(Bucket=name)
            with open_stack(settings) as stack:
                assert [check.level for check in checks.check_store(stack)] == ["ok"]
                (caller,) = stack.callers
                assert caller.ahead == pytest.approx(0, abs=2)
                assert list(checks.check_clocks(stack)) == []
                caller.ahead = 63.0
                (check,) = checks.check_clocks(stack)
        assert check.level == "warning"
        assert check.message.startswith(f"clock at least 63 s ahead of that of s3://{name}")
        assert "set-ntp" in check.remedy
