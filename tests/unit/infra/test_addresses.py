"""Where cloud ports live, and how a wrong address is told."""

import pytest

from core.errors import SettingsError
from core.settings import Settings
from infra.addresses import parse_address


def test_a_bare_name_means_aws():
    address = parse_address("s3://drops")
    assert (address.service, address.name, address.endpoint) == ("s3", "drops", None)


def test_options_are_taken_apart():
    address = parse_address("dynamodb://jobs?endpoint=http://127.0.0.1:4566&region=eu-west-1&shards=4")
    assert (address.endpoint, address.region, address.options) == (
        "http://127.0.0.1:4566",
        "eu-west-1",
        {"shards": "4"},
    )


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("gs://drops", "unknown service"),
        ("s3://key:secret@drops", "credentials"),
        ("s3://", "name"),
        ("s3://drops/with/path", "name of one"),
        ("s3://drops?endpoint=127.0.0.1:9000", "http://"),
        ("s3://drops?shards=3", "unknown option shards"),
        ("s3://drops?endpoint=http://key:secret@127.0.0.1:9000", "credentials"),
        ("dynamodb://jobs?shards=many", "shards"),
        ("dynamodb://jobs?shards=0", "shards"),
        ("dynamodb://jobs?shards=100", "shards"),
    ],
)
def test_a_wrong_address_says_what_is_wrong(url: str, words: str):
    with pytest.raises(SettingsError, match=words):
        parse_address(url)


@pytest.mark.parametrize(
    "url",
    [
        "s3://key:hunter2@drops",
        "s3://drops?secret_key=hunter2",
        "s3://drops?endpoint=http://key:hunter2@127.0.0.1:9000",
        "s3://drops/x?secret_key=hunter2",
        "https://key:hunter2@127.0.0.1:9000/drops",
    ],
)
def test_a_secret_in_an_address_is_not_repeated(url: str):
    with pytest.raises(SettingsError) as told:
        parse_address(url)
    assert "hunter2" not in str(told.value)


def test_a_secret_in_a_url_of_the_settings_is_not_repeated():
    with pytest.raises(SettingsError, match="ADE_STORE_URL") as told:
        Settings.from_env({"ADE_STORE_URL": "https://key:hunter2@127.0.0.1:9000/drops"})
    assert "hunter2" not in str(told.value)


def test_a_url_of_another_service_is_refused_by_the_settings():
    with pytest.raises(SettingsError, match="ADE_STORE_URL"):
        Settings.from_env({"ADE_STORE_URL": "sqs://drops"})


def test_a_short_token_is_refused_and_not_repeated():
    with pytest.raises(SettingsError, match="ADE_WEBHOOK_TOKEN") as told:
        Settings.from_env({"ADE_WEBHOOK_TOKEN": "hunter2"})
    assert "hunter2" not in str(told.value)


def test_the_token_is_not_shown_with_the_settings():
    assert "a-long-enough-token" not in repr(Settings.from_env({"ADE_WEBHOOK_TOKEN": "a-long-enough-token"}))
