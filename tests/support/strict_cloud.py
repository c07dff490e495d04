"""MiniStack as strict as it can be: it asks for credentials, evaluates every policy, speaks TLS, and runs Lambda.

Lambda runs code of whoever may create functions, as the server's user; with credentials asked for and on loopback
that is the tests' own code. Two things of the template it cannot make: Application Auto Scaling (so stacks are
deployed with MaxRunners=1) and tasks (there is no container engine; the tests play the task, under its role).
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import botocore.loaders
import botocore.session
import pytest
from botocore.config import Config

from infra.deploy import local_cloud
from infra.deploy.local_cloud import Server
from tests.support.certificates import certificate_in

SERVICES = "s3,sqs,dynamodb,cloudformation,cloudwatch,iam,logs,sts,lambda,ecs,ec2,events"

TEMPLATE = Path(__file__).parents[2] / "infra" / "deploy" / "template.yaml"
_MODELS = botocore.loaders.create_loader()  # parsing the models of twelve services takes seconds


@contextlib.contextmanager
def strict_ministack(venvs: Path, data: Path) -> Iterator[Server]:
    certificate, key = certificate_in(data)
    port = local_cloud.free_port()
    endpoint = f"https://127.0.0.1:{port}"
    environment = {
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "SERVICES": SERVICES,
        "AUTH": "true",
        "USE_SSL": "1",
        "MINISTACK_SSL_CERT": str(certificate),
        "MINISTACK_SSL_KEY": str(key),
        "AWS_CA_BUNDLE": str(certificate),  # its Lambda functions inherit this
    }
    command = [str(local_cloud.install(venvs, "ministack", local_cloud.MINISTACK) / "ministack")]
    health = f"{endpoint}/_ministack/health"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(certificate))
        patch.setenv("AWS_CA_BUNDLE", str(certificate))
        with local_cloud.running("ministack", command, data, health=health, environment=environment, grace=2) as pid:
            yield Server("MiniStack", endpoint, "test", "test", pid)


class Account:
    """One set of credentials on a server."""

    def __init__(self, endpoint: str, keys: Mapping[str, str]) -> None:
        self.endpoint = endpoint
        self.keys = dict(keys)
        self._clients: dict[str, Any] = {}

    def __call__(self, service: str) -> Any:
        """A client of a service, made once."""
        if service not in self._clients:
            core = botocore.session.get_session()
            core.register_component("data_loader", _MODELS)
            self._clients[service] = boto3.session.Session(botocore_session=core, region_name="us-east-1").client(
                service,
                endpoint_url=self.endpoint,
                config=Config(retries={"total_max_attempts": 1}),
                aws_access_key_id=self.keys["AWS_ACCESS_KEY_ID"],
                aws_secret_access_key=self.keys["AWS_SECRET_ACCESS_KEY"],
                aws_session_token=self.keys.get("AWS_SESSION_TOKEN"),
            )
        return self._clients[service]

    def close(self) -> None:
        for made in self._clients.values():
            made.close()


class Deployed:
    """A stack of our template, and the roles that it made."""

    def __init__(self, root: Account, name: str, parameters: Mapping[str, str]) -> None:
        self.root, self.name, self.parameters = root, name, dict(parameters)
        formation = root("cloudformation")
        given = [{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()]
        formation.create_stack(
            StackName=name, TemplateBody=TEMPLATE.read_text(), Parameters=given, Capabilities=["CAPABILITY_IAM"]
        )
        formation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
        outputs = formation.describe_stacks(StackName=name)["Stacks"][0]["Outputs"]
        self.urls = {o["OutputKey"]: o["OutputValue"] for o in outputs}
        found = formation.list_stack_resources(StackName=name)["StackResourceSummaries"]
        self.resources = {r["LogicalResourceId"]: r["PhysicalResourceId"] for r in found}

    @property
    def bucket(self) -> str:
        return self.resources["Bucket"]

    def environment(self, *names: str) -> dict[str, str]:
        """The ADE_*_URL settings, as the template's tasks get them, for this server."""
        at = f"endpoint={self.root.endpoint}"
        urls = {name: self.urls[f"{name}Url"] for name in names}
        return {f"ADE_{name.upper()}_URL": f"{url}{'&' if '?' in url else '?'}{at}" for name, url in urls.items()} | {
            "AWS_CA_BUNDLE": os.environ["AWS_CA_BUNDLE"],
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def role(self, logical: str) -> Account:
        """A session under a role; the server lets its root play the service that a role trusts."""
        arn = self.root("iam").get_role(RoleName=self.resources[logical])["Role"]["Arn"]
        given = self.root("sts").assume_role(RoleArn=arn, RoleSessionName="test")["Credentials"]
        keys = {
            "AWS_ACCESS_KEY_ID": given["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": given["SecretAccessKey"],
            "AWS_SESSION_TOKEN": given["SessionToken"],
        }
        return Account(self.root.endpoint, keys)
