"""The template deployed where policies are enforced: each part works with its own role's rights, and with no more.

The rights are those of the deployed stack. The server evaluates them for every call (identity policies, the queue's
and the bucket's own policies, conditions), speaks TLS, and runs the handler's zip as a Lambda function.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
from botocore.exceptions import ClientError

from core.keys import rejected_key
from infra.deploy import handler_zip
from infra.deploy.plan import ALWAYS, make_plan
from tests.acceptance.ade import CSV, MEMBERS, Ade
from tests.contract import servers
from tests.support.keeper import made_once
from tests.support.stacks import resources
from tests.support.strict_cloud import Account, Deployed, strict_ministack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

TRUSTED = {"ADE_SANDBOX": "process", "ADE_SANDBOX_MIN_LEVEL": "limits", "ADE_SWEEP_SECONDS": "3600"}
PYTHON = f"3.{sys.version_info.minor}"  # MiniStack runs functions with the interpreter that runs itself
ROLES = ("HandlerRole", "RunnerRole", "JanitorRole")


@pytest.fixture(scope="module")
def root() -> Iterator[Account]:
    with tempfile.TemporaryDirectory(prefix="ade-strict-") as data, strict_server(Path(data)) as server:
        account = Account(server.endpoint, server.environment)
        yield account
        account.close()


def strict_server(data: Path) -> Any:
    servers.ministack()  # it is installed, or this is skipped at a desk
    return strict_ministack(servers.VENVS, data)


@pytest.fixture(scope="module")
def code(root: Account) -> dict[str, str]:
    """The parameters that name the handler's zip, made by our own packaging."""
    path = made_once("handler.zip", lambda path: handler_zip.build(path, python=PYTHON))
    s3 = root("s3")
    s3.create_bucket(Bucket="code")
    s3.upload_file(str(path), "code", "handler.zip")
    return {"HandlerBucket": "code", "HandlerKey": "handler.zip", "HandlerRuntime": f"python{PYTHON}"}


def deployed(root: Account, code: dict[str, str], **more: str) -> Deployed:
    ec2 = root("ec2")
    network = {
        "Vpc": ec2.describe_vpcs()["Vpcs"][0]["VpcId"],
        "Subnets": ",".join(subnet["SubnetId"] for subnet in ec2.describe_subnets()["Subnets"]),
    }
    parameters = {"RunnerImage": "ade-drop:1", "MaxRunners": "1", **network, **code, **more}
    return Deployed(root, f"ade-{token_hex(4)}", parameters)


@pytest.fixture(scope="module")
def stack(root: Account, code: dict[str, str]) -> Deployed:
    return deployed(root, code)


@pytest.fixture(scope="module")
def roles(stack: Deployed) -> Iterator[dict[str, Account]]:
    held = {name: stack.role(name) for name in ROLES}
    yield held
    for account in held.values():
        account.close()


def drop(stack: Deployed, tenant: str, csv: str) -> None:
    s3 = stack.root("s3")
    for name, body in {"members.csv": csv, "manifest.json": json.dumps(MEMBERS)}.items():
        s3.put_object(Bucket=stack.bucket, Key=f"inbox/{tenant}/two words+é%/{name}", Body=body.encode())


def carried(stack: Deployed, tmp_path: Path, tenant: str, csv: str = CSV, **env: str) -> dict[str, Any]:
    """Drop, and run a runner under its role until the drop that the Lambda handler recorded is published."""
    runner = stack.role("RunnerRole")
    tmp_path.mkdir(exist_ok=True)
    ade = Ade(tmp_path, {**TRUSTED, **stack.environment("Store", "Table", "Queue"), **runner.keys})
    with ade.up("run", "--json", **env) as up:
        drop(stack, tenant, csv)
        ended = up.ended(tenant)
        assert up.end() == 0
    result = stack.root("s3").get_object(Bucket=stack.bucket, Key=f"{ended['outputs']}result.json")
    return json.loads(result["Body"].read())


def test_the_plan_names_what_the_stack_has_as_it_is_named_there(stack: Deployed):
    plan = make_plan(stack.name, stack.parameters)
    assert set(resources(stack.parameters, stack.name)) == set(stack.resources) <= {one.id for one in plan.resources}
    assert {one.id for one in plan.resources if one.when == ALWAYS} <= set(stack.resources)
    named = {one.id: one.name.replace("${AWS::AccountId}", "000000000000") for one in plan.resources}
    for kind in ("Bucket", "Table"):
        assert named[kind] == stack.resources[kind]


def test_an_upload_reaches_its_result_by_notification_lambda_and_a_runner(stack: Deployed, tmp_path: Path):
    assert carried(stack, tmp_path, "acme")["status"] == "SUCCEEDED"


def test_a_second_version_of_a_file_replaces_what_latest_points_to(stack: Deployed, tmp_path: Path):
    """latest.json is written over the version that was read, which takes a right of its own in a versioned bucket."""
    first, second = (carried(stack, tmp_path / str(n), "twice", csv=f"{CSV}M00000{n},1\n") for n in (3, 4))
    assert first["job_id"] != second["job_id"]
    s3 = stack.root("s3")
    found = s3.list_objects_v2(Bucket=stack.bucket, Prefix="outputs/twice/")["Contents"]
    (latest,) = [one["Key"] for one in found if one["Key"].endswith("/latest.json")]
    told = json.loads(s3.get_object(Bucket=stack.bucket, Key=latest)["Body"].read())
    assert told["job_id"] == second["job_id"]


def test_an_upload_reaches_its_result_by_eventbridge_too(root: Account, code: dict[str, str], tmp_path: Path):
    assert carried(deployed(root, code, EventsBy="eventbridge"), tmp_path, "acme")["status"] == "SUCCEEDED"


def test_the_janitor_sweeps_expires_and_tidies_with_its_own_rights(
    stack: Deployed, roles: dict[str, Account], tmp_path: Path
):
    short = {"ADE_RETENTION_HOURS": "0.0001", "ADE_KEEP_LATEST_DAYS": "0"}
    assert carried(stack, tmp_path / "runner", "old", **short)["status"] == "SUCCEEDED"
    environment = stack.environment("Store", "Table", "Queue") | roles["JanitorRole"].keys
    ade = Ade(tmp_path, TRUSTED | environment | short)
    done = ade("janitor", "run-once", "--json").json
    assert "chores_failed" not in done
    assert done["sweeps"] == 1
    found = stack.root("s3").list_objects_v2(Bucket=stack.bucket, Prefix="outputs/old/")["Contents"]
    assert not [one["Key"] for one in found if one["Key"].endswith("/normalized.xlsx")]


def test_an_event_that_nobody_knows_is_buried_by_the_handler_with_its_reason(stack: Deployed):
    sqs = stack.root("sqs")
    events, dead = (
        sqs.get_queue_url(QueueName=f"{stack.name}-{name}")["QueueUrl"] for name in ("events", "events-dead")
    )
    sqs.send_message(QueueUrl=events, MessageBody='{"surprise": 1}')
    (letter,) = sqs.receive_message(QueueUrl=dead, WaitTimeSeconds=20)["Messages"]
    assert "surprise" in json.loads(letter["Body"])["reason"]


def test_a_manifest_that_does_not_validate_is_rejected_by_the_handler(stack: Deployed):
    """`rejected.json` is all that the handler may write into outputs/."""
    s3 = stack.root("s3")
    manifest = "inbox/wrong/manifest.json"
    s3.put_object(Bucket=stack.bucket, Key=manifest, Body=b'{"manifest": 1}')
    wait = {"Delay": 1, "MaxAttempts": 60}
    s3.get_waiter("object_exists").wait(Bucket=stack.bucket, Key=rejected_key(manifest), WaiterConfig=wait)
    told = json.loads(s3.get_object(Bucket=stack.bucket, Key=rejected_key(manifest))["Body"].read())
    assert {problem["manifest"] for problem in told["problems"]} == {manifest}


def calls(stack: Deployed) -> dict[str, Any]:
    """What could be tried, as calls on an account. None of them is needed by everybody."""
    bucket = stack.bucket

    def put(key: str) -> Any:
        return lambda account: account("s3").put_object(Bucket=bucket, Key=key, Body=b"x")

    def get(key: str) -> Any:
        return lambda account: account("s3").get_object(Bucket=bucket, Key=key)

    def delete(key: str) -> Any:
        return lambda account: account("s3").delete_object(Bucket=bucket, Key=key)

    def queue(name: str, act: str, **more: Any) -> Any:
        url = stack.root("sqs").get_queue_url(QueueName=f"{stack.name}-{name}")["QueueUrl"]
        return lambda account: getattr(account("sqs"), act)(QueueUrl=url, **more)

    table = f"{stack.name}-jobs"
    return {
        "put inbox": put("inbox/acme/x.csv"),
        "put configs": put("configs/acme/x/manifest.json"),
        "put outputs": put("outputs/acme/probe/normalized.xlsx"),
        "put rejected": put("outputs/acme/probe/rejected.json"),
        "put work": put("work/job/1/x"),
        "put elsewhere": put("elsewhere/x"),
        "delete inbox": delete("inbox/acme/x.csv"),
        "delete outputs": delete("outputs/acme/probe/normalized.xlsx"),
        "get inbox": get("inbox/probe.csv"),
        "get outputs": get("outputs/probe.csv"),
        "get work": get("work/probe.csv"),
        "get elsewhere": get("elsewhere/probe.csv"),
        "get other bucket": lambda account: account("s3").get_object(Bucket="code", Key="handler.zip"),
        "change bucket policy": lambda account: account("s3").delete_bucket_policy(Bucket=bucket),
        "stop versions": lambda account: account("s3").put_bucket_versioning(
            Bucket=bucket, VersioningConfiguration={"Status": "Enabled"}
        ),
        "receive work": queue("work", "receive_message", MaxNumberOfMessages=1),
        "send work": queue("work", "send_message", MessageBody="{}"),
        "receive events": queue("events", "receive_message", MaxNumberOfMessages=1),
        "send events": queue("events", "send_message", MessageBody='{"Event": "s3:TestEvent"}'),
        "purge work": queue("work-dead", "purge_queue"),
        "query jobs": lambda account: account("dynamodb").get_item(
            TableName=table, Key={"pk": {"S": "x"}, "sk": {"S": "x"}}
        ),
        "scan jobs": lambda account: account("dynamodb").scan(TableName=table, Limit=1),
        "change table": lambda account: account("dynamodb").update_table(
            TableName=table, BillingMode="PAY_PER_REQUEST"
        ),
        "list roles": lambda account: account("iam").list_roles(),
        "change own role": lambda account: account("iam").put_role_policy(
            RoleName=stack.resources["ExecutionRole"], PolicyName="more", PolicyDocument=_EVERYTHING
        ),
        "invoke handler": lambda account: account("lambda").get_function(
            FunctionName=stack.resources["HandlerFunction"]
        ),
        "protect tasks": lambda account: account("ecs").update_task_protection(
            cluster=stack.resources["Cluster"], tasks=["0" * 32], protectionEnabled=True
        ),
        "stop tasks": lambda account: account("ecs").list_tasks(cluster=stack.resources["Cluster"]),
    }


_EVERYTHING = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]})
_COMMON = {"get inbox", "send work", "query jobs"}
MAY = {
    "HandlerRole": _COMMON | {"put rejected", "receive events"},
    "RunnerRole": _COMMON
    | {
        "put outputs",
        "put rejected",
        "put work",
        "delete outputs",
        "get outputs",
        "get work",
        "receive work",
    },
    "JanitorRole": _COMMON | {"put outputs", "put rejected", "put work", "delete outputs", "get outputs", "get work"},
}
# AWS looks for this right on the task, MiniStack on the cluster; tests/unit/infra/test_deploy.py reads the policy instead.
UNDECIDED = {"protect tasks"}


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_do_exactly_what_its_part_needs(stack: Deployed, roles: dict[str, Account], role: str):
    for key in ("inbox/probe.csv", "outputs/probe.csv", "work/probe.csv", "elsewhere/probe.csv"):
        stack.root("s3").put_object(Bucket=stack.bucket, Key=key, Body=b"x")
    told = {name: not refused(call, roles[role]) for name, call in calls(stack).items()}
    assert {name for name, allowed in told.items() if allowed} - UNDECIDED == MAY[role]


def test_nothing_of_what_was_tried_is_refused_to_an_administrator(stack: Deployed):
    """Else a refusal above might mean anything."""
    assert [name for name, call in calls(stack).items() if refused(call, stack.root)] == []


def test_nobody_but_the_platform_may_take_a_role(stack: Deployed, roles: dict[str, Account]):
    """Not even an administrator: the trust names services only."""
    iam = stack.root("iam")
    iam.create_user(UserName="boss")
    iam.put_user_policy(UserName="boss", PolicyName="all", PolicyDocument=_EVERYTHING)
    key = iam.create_access_key(UserName="boss")["AccessKey"]
    keys = {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
    boss = Account(stack.root.endpoint, keys)
    arns = [iam.get_role(RoleName=stack.resources[name])["Role"]["Arn"] for name in (*ROLES, "ExecutionRole")]
    take = [lambda account, arn=arn: account("sts").assume_role(RoleArn=arn, RoleSessionName="test") for arn in arns]
    assert [refused(one, boss) for one in take] == [True] * len(arns)
    boss.close()


def refused(call: Any, account: Account) -> bool:
    try:
        call(account)
    except ClientError as error:
        code = error.response["Error"]["Code"]
        return "AccessDenied" in code or code in {"403", "Forbidden", "UnauthorizedOperation"}
    return False
