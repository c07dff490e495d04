"""Clients of AWS share what takes long to make, and nothing that the environment has changed since."""

from contextlib import closing

import pytest

from infra.addresses import parse_address
from infra.aws.calls import client


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "one")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def made_for(address: str) -> tuple[str, str]:
    """Whose key signs requests to an address, and for which region."""
    with closing(client(parse_address(address))) as made:
        return made._request_signer._credentials.access_key, made.meta.region_name


def test_credentials_are_fetched_once_for_all_clients_and_services():
    with (
        closing(client(parse_address("s3://a?region=eu-west-1"))) as first,
        closing(client(parse_address("sqs://b?region=eu-west-1"))) as second,
    ):
        assert first._request_signer._credentials is second._request_signer._credentials


def test_an_environment_that_has_changed_is_read_again(monkeypatch: pytest.MonkeyPatch):
    assert made_for("s3://a?region=eu-west-1") == ("one", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "two")
    assert made_for("s3://a?region=eu-west-1") == ("two", "eu-west-1")


def test_the_region_of_one_address_is_none_of_anothers(monkeypatch: pytest.MonkeyPatch):
    own_server = "s3://a?endpoint=http://127.0.0.1:1"
    assert made_for("s3://a?region=eu-west-1") == ("one", "eu-west-1")
    assert made_for(own_server) == ("one", "us-east-1")
    assert made_for(f"{own_server}&region=eu-west-1") == ("one", "eu-west-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    assert made_for(own_server) == ("one", "eu-central-1")


def test_the_name_that_calls_carry_is_made_once():
    with closing(client(parse_address("s3://a?region=eu-west-1"))) as made:
        assert made.meta.config.user_agent.startswith("ade-drop Botocore/")
