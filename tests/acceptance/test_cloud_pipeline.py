"""The whole path over S3, SQS and DynamoDB: the real command, real servers, events and no sweep to help."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from secrets import token_hex
from types import SimpleNamespace

import boto3
import pytest

from infra.addresses import parse_address
from infra.aws.calls import client
from infra.minio import MinioEvents
from tests.acceptance.ade import CSV, MEMBERS, Ade, Up
from tests.contract import servers
from tests.support.clients import clients

QUIET = {"ADE_SANDBOX": "process", "ADE_SANDBOX_MIN_LEVEL": "limits", "ADE_SWEEP_SECONDS": "3600"}


@pytest.fixture(scope="session", autouse=True)
def _servers() -> Iterator[None]:
    yield
    servers.stop_all()


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[SimpleNamespace]:
    """A bucket, queues and a table of this test's own on one server, made by `ade infra init`."""
    server = servers.ministack()
    name = f"drops-{token_hex(4)}"
    env = {
        **QUIET,
        **server.environment,
        "ADE_STORE_URL": f"s3://{name}?endpoint={server.endpoint}",
        "ADE_TABLE_URL": f"dynamodb://{name}?endpoint={server.endpoint}",
        "ADE_QUEUE_URL": f"sqs://{name}-work?endpoint={server.endpoint}",
        "ADE_EVENTS_URL": f"sqs://{name}-events?endpoint={server.endpoint}",
    }
    ade = Ade(tmp_path, env)
    with servers.credentials(server), closing(client(parse_address(env["ADE_STORE_URL"]))) as s3:
        ade("infra", "init")
        yield SimpleNamespace(ade=ade, s3=s3, bucket=name, env=env)


def keys(cloud: SimpleNamespace, prefix: str) -> list[str]:
    return [o["Key"] for o in cloud.s3.list_objects_v2(Bucket=cloud.bucket, Prefix=prefix).get("Contents", [])]


def result(cloud: SimpleNamespace, tenant: str) -> dict:
    (key,) = [k for k in keys(cloud, f"outputs/{tenant}/") if k.endswith("/result.json")]
    return json.loads(cloud.s3.get_object(Bucket=cloud.bucket, Key=key)["Body"].read())


class TestInfra:
    def test_a_second_init_changes_nothing(self, cloud: SimpleNamespace):
        again = cloud.ade("infra", "init", "--json").json
        assert {step["action"] for step in again} == {"keep", "works"}

    def test_a_dry_run_makes_nothing(self, cloud: SimpleNamespace):
        other = {"ADE_STORE_URL": cloud.env["ADE_STORE_URL"].replace("drops-", "others-")}
        steps = cloud.ade("infra", "init", "--dry-run", "--json", **other).json
        assert ("bucket", "create") in {(step["kind"], step["action"]) for step in steps}
        steps = cloud.ade("infra", "init", "--dry-run", "--json", **other).json
        assert ("bucket", "create") in {(step["kind"], step["action"]) for step in steps}

    def test_the_embedded_mode_needs_none(self, tmp_path: Path):
        assert "embedded" in Ade(tmp_path)("infra", "init", expect=2).err


def test_minios_client_makes_a_notification_that_sends(cloud: SimpleNamespace):
    """MinIO's own part on a server that runs here: the same document, with a queue in the webhook's place."""
    events, store = parse_address(cloud.env["ADE_EVENTS_URL"]), parse_address(cloud.env["ADE_STORE_URL"])
    cloud.s3.put_bucket_notification_configuration(Bucket=cloud.bucket, NotificationConfiguration={})
    with closing(client(events)) as sqs, closing(MinioEvents(store)) as minio:
        url = sqs.get_queue_url(QueueName=events.name)["QueueUrl"]
        sqs.purge_queue(QueueUrl=url)
        found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        arn = found["Attributes"]["QueueArn"]
        assert not minio.is_notifying(arn)
        minio.notify(arn)
        assert minio.is_notifying(arn)
        for key in ("inbox/acme/x.csv", "outputs/acme/x.csv"):
            cloud.s3.put_object(Bucket=cloud.bucket, Key=key, Body=b"x")
        bodies = [
            m["Body"] for m in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=5)["Messages"]
        ]
    told = [r["s3"]["object"]["key"] for body in bodies for r in json.loads(body).get("Records", [])]
    assert told == ["inbox/acme/x.csv"]


def test_an_upload_becomes_a_published_result(cloud: SimpleNamespace):
    with cloud.ade.up() as up:
        folder = "inbox/acme/two words+é%"
        cloud.s3.put_object(Bucket=cloud.bucket, Key=f"{folder}/members.csv", Body=CSV.encode())
        cloud.s3.put_object(Bucket=cloud.bucket, Key=f"{folder}/manifest.json", Body=json.dumps(MEMBERS).encode())
        ended = up.ended("acme")
        assert up.end() == 0
    assert ended["state"] == "SUCCEEDED"
    told = result(cloud, "acme")
    assert told["status"] == "SUCCEEDED"
    assert keys(cloud, "work/") == []
    assert cloud.ade("queue", "stats", "--json").json["ready"] == 0


def test_a_drop_whose_event_was_lost_is_found_by_the_sweep(cloud: SimpleNamespace):
    cloud.s3.put_object(Bucket=cloud.bucket, Key="inbox/acme/x/members.csv", Body=CSV.encode())
    cloud.s3.put_object(Bucket=cloud.bucket, Key="inbox/acme/x/manifest.json", Body=json.dumps(MEMBERS).encode())
    assert len(cloud.ade("sweep", "--json").json["created"]) == 1
    cloud.ade("run", "--drain")
    assert result(cloud, "acme")["status"] == "SUCCEEDED"


def test_the_command_line_works_on_cloud_ports(cloud: SimpleNamespace):
    job_id = cloud.ade.dropped()
    cloud.ade("run", "--drain")
    assert cloud.ade.state(job_id) == "SUCCEEDED"
    assert [job["job_id"] for job in cloud.ade("jobs", "--json").json] == [job_id]
    cloud.ade("outputs", job_id, "--to", "got")


def test_the_template_deployed_by_its_api_carries_a_drop_to_its_result(tmp_path: Path):
    server, stack = servers.ministack_with_templates(), f"ade-{token_hex(4)}"
    with servers.credentials(server), ExitStack() as opened:
        session = boto3.session.Session(region_name="us-east-1")
        make = opened.enter_context(closing(session.client("cloudformation", endpoint_url=server.endpoint)))
        body = (Path(__file__).parents[2] / "infra/deploy/template.yaml").read_text()
        make.create_stack(StackName=stack, TemplateBody=body, Capabilities=["CAPABILITY_IAM"])
        make.get_waiter("stack_create_complete").wait(StackName=stack, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
        told = {o["OutputKey"]: o["OutputValue"] for o in make.describe_stacks(StackName=stack)["Stacks"][0]["Outputs"]}
        urls = {
            f"ADE_{name.upper()}_URL": f"{url}{'&' if '?' in url else '?'}endpoint={server.endpoint}"
            for name in ("Store", "Table", "Queue", "Events")
            for url in [told[f"{name}Url"]]
        }
        ade = Ade(tmp_path, {**QUIET, **server.environment, **urls})
        kept = {(step["kind"], step["action"]) for step in ade("infra", "init", "--dry-run", "--json").json}
        assert {action for _, action in kept} == {"keep"}, kept
        bucket = parse_address(urls["ADE_STORE_URL"])
        s3 = opened.enter_context(closing(client(bucket)))
        cloud = SimpleNamespace(s3=s3, bucket=bucket.name)
        with ade.up() as up:
            s3.put_object(Bucket=bucket.name, Key="inbox/acme/x/members.csv", Body=CSV.encode())
            s3.put_object(Bucket=bucket.name, Key="inbox/acme/x/manifest.json", Body=json.dumps(MEMBERS).encode())
            assert up.ended("acme")["state"] == "SUCCEEDED"
        assert result(cloud, "acme")["status"] == "SUCCEEDED"


def test_a_bucket_on_a_server_mixes_with_the_embedded_table(cloud: SimpleNamespace):
    mixed = {"ADE_TABLE_URL": "", "ADE_QUEUE_URL": "", "ADE_EVENTS_URL": ""}
    ade = Ade(cloud.ade.home, {**cloud.env, **mixed})
    job_id = ade.dropped()
    ade("run", "--drain")
    assert ade.state(job_id) == "SUCCEEDED"
    assert (cloud.ade.home / "data" / "ade.sqlite").exists()


@pytest.fixture
def local(tmp_path: Path) -> Ade:
    """A data folder whose local cloud is installed already."""
    servers.seaweedfs()  # both are installed, or this is skipped at a desk
    servers.ministack()
    (tmp_path / "data" / "local-cloud").mkdir(parents=True)
    (tmp_path / "data" / "local-cloud" / "venvs").symlink_to(servers.VENVS)
    return Ade(tmp_path, QUIET)


def printed(up: Up) -> str:
    return "".join(iter(up.process.stderr.readline, "  ade jobs\n"))


@pytest.mark.long
def test_a_restart_prints_the_same_and_what_it_prints_uploads_one_folder(local: Ade):
    with local.up("up", "--local-cloud") as up:
        first = printed(up)
        assert up.end() == 0
    local.write("private.txt", "not for the bucket")
    local.write("drop/members.csv", CSV)
    local.write("drop/manifest.json", MEMBERS)
    with local.up("up", "--local-cloud") as up:
        said = printed(up)
        assert said == first
        script = "\n".join(re.findall(r"^  ((?:export|mkdir|aws) .*)$", said, re.MULTILINE))
        environment = local.environment()
        environment["PATH"] = f"{clients()}:{environment['PATH']}"
        listing = re.sub("s3 cp .*", "s3 ls s3://drops/ --recursive", script.splitlines()[-1])
        done = subprocess.run(
            ["sh", "-euc", f"{script}\n{listing}"],
            cwd=local.home,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert up.ended("acme")["state"] == "SUCCEEDED"
        assert "inbox/acme/members.csv" in done.stdout
        assert "private" not in done.stdout
        assert up.end() == 0


def test_a_cloud_on_this_machine_takes_a_drop_and_says_how(local: Ade):
    with local.up("up", "--local-cloud") as up:
        said = printed(up)
        told = dict(re.findall(r"export (\w+)='(.*)'", said))
        assert "aws --endpoint-url" in said
        address = parse_address(told["ADE_STORE_URL"])
        with pytest.MonkeyPatch.context() as patch:
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
                patch.setenv(name, told[name])
            with closing(client(address)) as s3:
                s3.put_object(Bucket="drops", Key="inbox/acme/x/members.csv", Body=CSV.encode())
                s3.put_object(Bucket="drops", Key="inbox/acme/x/manifest.json", Body=json.dumps(MEMBERS).encode())
                assert up.ended("acme")["state"] == "SUCCEEDED"
                assert result(SimpleNamespace(s3=s3, bucket="drops"), "acme")["status"] == "SUCCEEDED"
        assert up.end() == 0
