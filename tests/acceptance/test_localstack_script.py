"""The start-up script of the local cloud, run as LocalStack runs it, on a server of the same API."""

import contextlib
import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from infra.aws.provision import Step
from infra.deploy.local_cloud import Server, free_port, running
from tests.acceptance.ade import Ade
from tests.contract import servers
from tests.support.clients import clients
from tests.support.strict_cloud import Account

SCRIPT = Path(__file__).parents[2] / "localstack" / "ready.d" / "10-ade.sh"

TRUSTED = {"ADE_SANDBOX": "process", "ADE_SANDBOX_MIN_LEVEL": "limits"}

pytestmark = pytest.mark.slow


def redrive(account: Account, name: str) -> dict[str, Any]:
    sqs = account("sqs")
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    told = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["RedrivePolicy", "MessageRetentionPeriod"])
    return {**told["Attributes"], "RedrivePolicy": json.loads(told["Attributes"]["RedrivePolicy"])}


def script(server: Server) -> None:
    environment = {
        **os.environ,
        **server.environment,
        "AWS_ENDPOINT_URL": server.endpoint,
        "PATH": f"{clients()}:{os.environ['PATH']}",
    }
    done = subprocess.run([SCRIPT], env=environment, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stderr


def urls_of(server: Server) -> dict[str, str]:
    at = f"?endpoint={server.endpoint}"
    return {
        "ADE_TABLE_URL": f"dynamodb://ade-jobs{at}",
        "ADE_QUEUE_URL": f"sqs://ade-work{at}",
        "ADE_EVENTS_URL": f"sqs://ade-events{at}",
    }


@pytest.fixture
def server() -> Iterator[Server]:
    """One that holds nothing yet."""
    with servers.own("ministack") as made:
        yield made


def test_after_infra_init_it_changes_nothing(server: Server, tmp_path: Path):
    Ade(tmp_path, urls_of(server) | server.environment)("infra", "init")
    account = Account(server.endpoint, server.environment)
    before = {name: redrive(account, name) for name in ("ade-work", "ade-events")}
    script(server)
    assert {name: redrive(account, name) for name in before} == before
    account.close()


@pytest.mark.long
def test_a_cloud_that_lost_its_state_gets_every_drop_again(server: Server, tmp_path: Path):
    """What the free LocalStack does when its container ends: queue and table are gone, the bucket is elsewhere."""
    script(server)
    ade = Ade(tmp_path, urls_of(server) | server.environment | TRUSTED)
    job_id = ade.dropped()
    ade("run", "--drain")
    account = Account(server.endpoint, server.environment)
    account("dynamodb").delete_table(TableName="ade-jobs")
    for name in ("ade-work", "ade-work-dead", "ade-events", "ade-events-dead"):
        sqs = account("sqs")
        sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=name)["QueueUrl"])
    account.close()
    script(server)
    assert ade("jobs", "--json").json == []
    ade("janitor", "run-once")
    ade("run", "--drain")
    assert ade.state(job_id) == "SUCCEEDED"


def test_it_makes_what_infra_init_makes_and_can_be_repeated(server: Server, tmp_path: Path):
    for _ in range(2):
        script(server)
    urls = urls_of(server)
    steps = [Step(**step) for step in Ade(tmp_path, urls | server.environment)("infra", "init", "--json").json]
    assert {step.action for step in steps} == {"keep", "works"}
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


@contextlib.contextmanager
def localstack(python: str, folder: Path) -> Iterator[Server]:
    """LocalStack itself, without DynamoDB, which it would have to download; the script lies where it looks for it."""
    shutil.copytree(SCRIPT.parent, folder / "etc/localstack/init/ready.d")
    endpoint = f"http://127.0.0.1:{free_port()}"
    environment = {
        "SERVICES": "s3,sqs",
        "GATEWAY_LISTEN": endpoint.removeprefix("http://"),
        "FILESYSTEM_ROOT": str(folder),
        "OVERRIDE_IN_DOCKER": "0",
        "DISABLE_EVENTS": "1",
        "SKIP_SSL_CERT_DOWNLOAD": "1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_ENDPOINT_URL": endpoint,
        "PATH": f"{clients()}:{os.environ['PATH']}",
    }
    command = [python, "-m", "localstack.runtime.main"]
    health = f"{endpoint}/_localstack/health"
    with running("localstack", command, folder, health=health, environment=environment) as pid:
        yield Server("LocalStack", endpoint, "test", "test", pid)


@pytest.mark.skipif(
    "ADE_TEST_LOCALSTACK" not in os.environ, reason="ADE_TEST_LOCALSTACK names no Python with LocalStack"
)
@pytest.mark.timeout(900)
def test_localstack_runs_it_and_infra_init_finds_nothing_left_to_do(tmp_path: Path):
    with localstack(os.environ["ADE_TEST_LOCALSTACK"], tmp_path) as server:
        told: dict[str, Any] = {}
        for _ in range(240):  # each question waits a little, the script takes seconds
            with urllib.request.urlopen(f"{server.endpoint}/_localstack/init/ready", timeout=30) as answer:
                told = json.loads(answer.read())
            if told["completed"]:
                break
            Event().wait(0.5)
        assert [(one["name"], one["state"]) for one in told["scripts"] if one["name"].endswith(".sh")] == [
            ("10-ade.sh", "SUCCESSFUL")
        ]
        urls = urls_of(server)
        del urls["ADE_TABLE_URL"]
        environment = urls | server.environment
        steps = Ade(tmp_path, environment)("infra", "init", "--json").json
        assert {step["action"] for step in steps} == {"keep"}
