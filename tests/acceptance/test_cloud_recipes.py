"""The policies of infra/deploy/policies, for people: each may do what docs/guides/roles.md says, on a server that enforces it."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra.aws.dynamodb_items import table_definition
from tests.acceptance.ade import CSV, MEMBERS, Ade
from tests.contract import servers
from tests.support.strict_cloud import Account, strict_ministack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

POLICIES = Path(__file__).parents[2] / "infra" / "deploy" / "policies"
NAMES = {
    "BUCKET": "drops",
    "TENANT": "acme",
    "TABLE": "ade-jobs",
    "QUEUE": "ade-work",
    "REGION": "us-east-1",
    "ACCOUNT": "000000000000",
}
KEYS = (
    "inbox/acme/x.csv",
    "inbox/acme2/x.csv",
    "configs/acme/m/manifest.json",
    "configs/globex/m/manifest.json",
    "outputs/acme/x.csv/members/status.json",
    "outputs/acme/rejected.json",
    "outputs/acme/x.csv/members/j/normalized.xlsx",
    "outputs/globex/rejected.json",
    "outputs/globex/x.csv/members/j/normalized.xlsx",
    "work/j/1/normalized.xlsx",
    "elsewhere/x",
)


@pytest.fixture(scope="module")
def root() -> Iterator[Account]:
    servers.ministack()  # it is installed, or this is skipped at a desk
    with tempfile.TemporaryDirectory(prefix="ade-strict-") as data, strict_ministack(servers.VENVS, Path(data)) as one:
        account = Account(one.endpoint, one.environment)
        account("s3").create_bucket(Bucket=NAMES["BUCKET"])
        account("dynamodb").create_table(**table_definition(NAMES["TABLE"]))
        for name in (NAMES["QUEUE"], f"{NAMES['QUEUE']}-dead"):
            account("sqs").create_queue(QueueName=name)
        yield account
        account.close()


@pytest.fixture(autouse=True)
def _objects(root: Account) -> None:
    """Whatever the test before has deleted."""
    for key in KEYS:
        root("s3").put_object(Bucket=NAMES["BUCKET"], Key=key, Body=b"x")


def holder(root: Account, role: str) -> Account:
    """Somebody who has this policy and no other."""
    iam = root("iam")
    iam.create_user(UserName=role)
    policy = Template((POLICIES / f"{role}.json").read_text()).substitute(NAMES)
    iam.put_user_policy(UserName=role, PolicyName=role, PolicyDocument=policy)
    key = iam.create_access_key(UserName=role)["AccessKey"]
    return Account(
        root.endpoint, {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
    )


@pytest.fixture(scope="module")
def people(root: Account) -> Iterator[dict[str, Account]]:
    made = {path.stem: holder(root, path.stem) for path in sorted(POLICIES.glob("*.json"))}
    yield made
    for account in made.values():
        account.close()


def calls(root: Account) -> dict[str, Any]:
    bucket, table = NAMES["BUCKET"], NAMES["TABLE"]
    url = root("sqs").get_queue_url(QueueName=NAMES["QUEUE"])["QueueUrl"]
    key = {"pk": {"S": "J#probe"}, "sk": {"S": "-"}}
    tried: dict[str, Any] = {}
    for name in KEYS:
        tried[f"get {name}"] = lambda a, k=name: a("s3").get_object(Bucket=bucket, Key=k)
        tried[f"put {name}"] = lambda a, k=name: a("s3").put_object(Bucket=bucket, Key=k, Body=b"x")
    for prefix in ("", "inbox/", "inbox/acme/", "inbox/acme2/", "configs/acme/", "outputs/acme/", "outputs/globex/"):
        tried[f"list {prefix}"] = lambda a, p=prefix: a("s3").list_objects_v2(Bucket=bucket, Prefix=p)
    for name in ("inbox/acme/gone", "inbox/globex/gone", "outputs/acme/gone", "configs/acme/gone"):
        tried[f"delete {name}"] = lambda a, k=name: a("s3").delete_object(Bucket=bucket, Key=k)
    return tried | {
        "change bucket": lambda a: a("s3").put_bucket_versioning(
            Bucket=bucket, VersioningConfiguration={"Status": "Suspended"}
        ),
        "read a job": lambda a: a("dynamodb").get_item(TableName=table, Key=key),
        "scan jobs": lambda a: a("dynamodb").scan(TableName=table, Limit=1),
        "write a job": lambda a: a("dynamodb").put_item(TableName=table, Item=key),
        "change table": lambda a: a("dynamodb").update_table(TableName=table, BillingMode="PAY_PER_REQUEST"),
        "count messages": lambda a: a("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"]),
        "send a message": lambda a: a("sqs").send_message(QueueUrl=url, MessageBody="{}"),
        "empty the queue": lambda a: a("sqs").purge_queue(QueueUrl=url),
        "get more rights": lambda a: a("iam").put_user_policy(
            UserName="sender", PolicyName="more", PolicyDocument=(POLICIES / "operator.json").read_text()
        ),
    }


_TOLD = {"get outputs/acme/x.csv/members/status.json", "get outputs/acme/rejected.json"}
_OURS = [key for key in KEYS if not key.startswith("elsewhere")]
_OBJECTS = {f"{act} {key}" for act in ("get", "put") for key in _OURS} | {
    *(f"list {p}" for p in ("", "inbox/", "inbox/acme/", "inbox/acme2/")),
    *(f"list {p}" for p in ("configs/acme/", "outputs/acme/", "outputs/globex/")),
    *(f"delete {k}" for k in ("inbox/acme/gone", "inbox/globex/gone", "outputs/acme/gone", "configs/acme/gone")),
}
MAY: dict[str, set[str]] = {
    "sender": _TOLD | {"put inbox/acme/x.csv", "delete inbox/acme/gone", "list inbox/acme/", "list outputs/acme/"},
    "author": _TOLD
    | {"get configs/acme/m/manifest.json", "put configs/acme/m/manifest.json", "delete configs/acme/gone"}
    | {"list configs/acme/", "list outputs/acme/"},
    "reader": _TOLD | {"get outputs/acme/x.csv/members/j/normalized.xlsx", "list outputs/acme/"},
    "viewer": {one for one in _OBJECTS if one.startswith("list")} | {"read a job", "scan jobs", "count messages"},
    "operator": _OBJECTS | {"read a job", "write a job", "count messages", "send a message"},
    "operator-minio": _OBJECTS,
}


def refused(call: Any, account: Account) -> bool:
    try:
        call(account)
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if "AccessDenied" in code or code in {"403", "Forbidden"}:
            return True
        raise
    return False


def test_every_recipe_is_tried(people: dict[str, Account]):
    assert people.keys() == MAY.keys()


@pytest.mark.parametrize("role", MAY)
def test_a_recipe_gives_exactly_its_rights(root: Account, people: dict[str, Account], role: str):
    told = {name for name, call in calls(root).items() if not refused(call, people[role])}
    assert told == MAY[role]


def test_nothing_of_what_was_tried_is_refused_to_an_administrator(root: Account, people: dict[str, Account]):
    """Else a refusal above might mean anything."""
    assert [name for name, call in calls(root).items() if refused(call, root)] == []


def test_a_drop_goes_its_way_with_the_rights_of_sender_operator_viewer_and_reader(
    root: Account, people: dict[str, Account], tmp_path: Path
):
    at = f"endpoint={root.endpoint}&region=us-east-1"
    urls = {
        "ADE_STORE_URL": f"s3://{NAMES['BUCKET']}?{at}",
        "ADE_TABLE_URL": f"dynamodb://{NAMES['TABLE']}?{at}",
        "ADE_QUEUE_URL": f"sqs://{NAMES['QUEUE']}?{at}",
        "ADE_SANDBOX": "process",
        "ADE_SANDBOX_MIN_LEVEL": "limits",
    }
    for name, body in {"members.csv": CSV, "manifest.json": json.dumps(MEMBERS)}.items():
        people["sender"]("s3").put_object(Bucket=NAMES["BUCKET"], Key=f"inbox/acme/april/{name}", Body=body.encode())
    operator = Ade(tmp_path, urls | people["operator"].keys)
    operator("sweep")
    operator("run", "--drain")
    viewer = Ade(tmp_path, urls | people["viewer"].keys)
    (job,) = [one for one in viewer("jobs", "--json").json if one["subject"] == "april/members.csv"]
    assert job["state"] == "SUCCEEDED"
    viewer("status", job["job_id"])
    viewer("pause", "all", expect=5)
    book = f"{job['outputs']}normalized.xlsx"
    people["reader"]("s3").get_object(Bucket=NAMES["BUCKET"], Key=book)
    assert refused(lambda a: a("s3").get_object(Bucket=NAMES["BUCKET"], Key=book), people["sender"])
    for words in (("logs", job["job_id"]), ("reset", job["job_id"]), ("pause", "all"), ("resume", "all")):
        operator(*words)
    operator("run", "--drain")
    operator("queue", "dead")
    operator("doctor", expect=None)
    operator("remove", job["job_id"], "--yes")
    assert root("s3").list_objects_v2(Bucket=NAMES["BUCKET"], Prefix="outputs/acme/april/")["KeyCount"] == 0
