"""The start-up script of the local cloud, run as LocalStack runs it, on a server of the same API."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.aws.provision import Step
from tests.acceptance.ade import Ade
from tests.contract import servers
from tests.support.clients import clients
from tests.support.strict_cloud import Account

SCRIPT = Path(__file__).parents[2] / "localstack" / "ready.d" / "10-ade.sh"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _servers() -> Iterator[None]:
    yield
    servers.stop_all()


def redrive(account: Account, name: str) -> dict[str, Any]:
    sqs = account("sqs")
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    told = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["RedrivePolicy", "MessageRetentionPeriod"])
    return {**told["Attributes"], "RedrivePolicy": json.loads(told["Attributes"]["RedrivePolicy"])}


def test_it_makes_what_infra_init_makes_and_can_be_repeated(tmp_path: Path):
    server = servers.ministack()
    at = f"?endpoint={server.endpoint}"
    environment = {
        **os.environ,
        **server.environment,
        "AWS_ENDPOINT_URL": server.endpoint,
        "PATH": f"{clients()}:{os.environ['PATH']}",
    }
    for _ in range(2):
        done = subprocess.run([SCRIPT], env=environment, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
    urls = {
        "ADE_TABLE_URL": f"dynamodb://ade-jobs{at}",
        "ADE_QUEUE_URL": f"sqs://ade-work{at}",
        "ADE_EVENTS_URL": f"sqs://ade-events{at}",
    }
    steps = [Step(**step) for step in Ade(tmp_path, urls | server.environment)("infra", "init", "--json").json]
    assert {step.action for step in steps} == {"keep"}
    account = Account(server.endpoint, server.environment)
    by_script = {name: redrive(account, name) for name in ("ade-work", "ade-events")}
    own = {name: url.replace("ade-", "own-") for name, url in urls.items()}
    Ade(tmp_path, own | server.environment)("infra", "init")
    for name, told in by_script.items():
        same = redrive(account, name.replace("ade-", "own-"))
        assert str(told["RedrivePolicy"]["maxReceiveCount"]) == str(same["RedrivePolicy"]["maxReceiveCount"])
        assert told["RedrivePolicy"]["deadLetterTargetArn"].endswith(f":{name}-dead")
        assert told["MessageRetentionPeriod"] == same["MessageRetentionPeriod"]
    account.close()
