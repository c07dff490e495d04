"""What a deployment of the template would create: resources, rights of each role, alarms, cost at rest."""

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from infra.deploy.template import Template

_DAY = 86400
_Properties = Mapping[str, Any]


def about(kind: str, properties: _Properties) -> str:
    """Nothing where the type says it all."""
    tell = _ABOUT.get(kind)
    return tell(properties) if tell is not None else ""


def _bucket(p: _Properties) -> str:
    by = "EventBridge" if "EventBridgeConfiguration" in p["NotificationConfiguration"] else "SQS"
    return f"versioned, encrypted, private, kept when the stack goes; tells of inbox/ and configs/ by {by}"


def _queue(p: _Properties) -> str:
    days = f"keeps {p['MessageRetentionPeriod'] // _DAY} days"
    redrive = p.get("RedrivePolicy")
    if redrive is None:
        return days
    return f"{days}; after {redrive['maxReceiveCount']} receives to {redrive['deadLetterTargetArn']}"


def _table(p: _Properties) -> str:
    indexes = len(p["GlobalSecondaryIndexes"])
    return f"on demand, point-in-time recovery, {indexes} indexes, kept when the stack goes"


def _function(p: _Properties) -> str:
    code = p["Code"].get("ImageUri") or f"s3://{p['Code']['S3Bucket']}/{p['Code']['S3Key']}"
    return f"{code}, {p['MemorySize']} MB, {p['Timeout']} s"


def _mapping(p: _Properties) -> str:
    calls = p["ScalingConfig"]["MaximumConcurrency"]
    return f"up to {p['BatchSize']} events a call, partial failures, {calls} calls at once"


def _task(p: _Properties) -> str:
    (container,) = p["ContainerDefinitions"]
    size = f"{int(p['Cpu']) / 1024:g} vCPU, {int(p['Memory']) / 1024:g} GB"
    where = "on instances" if p["RequiresCompatibilities"] == ["EC2"] else "on Fargate"
    level = [one["Value"] for one in container["Environment"] if one["Name"] == "ADE_SANDBOX_MIN_LEVEL"]
    boxes = f", boxes at least {level[0]}" if level else ""
    return f"{container['Image']}: ade {' '.join(container['Command'])}; {size} {where}{boxes}"


def _service(p: _Properties) -> str:
    count = f"{p['DesiredCount']} of" if "DesiredCount" in p else "as many as scaling has made, one at first, of"
    return f"{count} {p['TaskDefinition']}, no public address"


def _instances(p: _Properties) -> str:
    return f"{p['MinSize']} to {p['MaxSize']} instances, as runners need them; each lives a week at most"


def _policy(p: _Properties) -> str:
    target = p["TargetTrackingScalingPolicyConfiguration"]["TargetValue"]
    return f"{target} waiting jobs per runner; a runner that works is protected from scale-in"


_ABOUT: dict[str, Callable[[_Properties], str]] = {
    "AWS::S3::Bucket": _bucket,
    "AWS::S3::BucketPolicy": lambda _: "TLS only",
    "AWS::SQS::Queue": _queue,
    "AWS::DynamoDB::Table": _table,
    "AWS::Lambda::Function": _function,
    "AWS::Lambda::EventSourceMapping": _mapping,
    "AWS::ECS::TaskDefinition": _task,
    "AWS::ECS::Service": _service,
    "AWS::AutoScaling::AutoScalingGroup": _instances,
    "AWS::EC2::LaunchTemplate": lambda p: f"{p['LaunchTemplateData']['InstanceType']}, IMDSv2 only, not for tasks",
    "AWS::ECS::CapacityProvider": lambda _: "starts instances for runners; drains one before it goes",
    "AWS::ApplicationAutoScaling::ScalableTarget": lambda p: f"{p['MinCapacity']} to {p['MaxCapacity']} runners",
    "AWS::ApplicationAutoScaling::ScalingPolicy": _policy,
    "AWS::Logs::LogGroup": lambda p: f"keeps {p['RetentionInDays']} days",
    "AWS::EC2::SecurityGroup": lambda _: "nothing comes in, port 443 goes out",
    "AWS::CloudWatch::Alarm": lambda p: str(p["AlarmDescription"]),
    "AWS::Events::Rule": lambda p: str(p["Description"]),
}


# List prices of us-east-1 in dollars, November 2026; a guide, not an offer.
_VCPU_HOUR, _GB_HOUR, _ALARM_MONTH, _HOURS = 0.04048, 0.004445, 0.10, 730
_INSTANCE_HOUR = {"m7i.large": 0.1008, "m7i.xlarge": 0.2016, "m7g.large": 0.0816, "m7g.xlarge": 0.1632}


@dataclass(frozen=True, kw_only=True, slots=True)
class Resource:
    id: str
    type: str
    name: str  # as AWS will show it; empty where AWS chooses
    about: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Right:
    """One statement of a role: these actions on these resources, and no others."""

    sid: str
    actions: list[str]
    on: list[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Alarm:
    id: str
    about: str
    tells: list[str]  # where it is told; empty: it shows in the console only


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What is paid while nothing happens. Requests, storage and traffic come on top (docs/cloud.md)."""

    what: str
    dollars_a_month: float


@dataclass(frozen=True, kw_only=True, slots=True)
class DeployPlan:
    stack: str
    parameters: dict[str, str]
    resources: list[Resource]
    left_out: list[str]  # resources that the parameters leave out
    rights: dict[str, list[Right]]
    alarms: list[Alarm]
    monthly: list[Cost]
    command: str


def make_plan(stack: str, given: Mapping[str, str]) -> DeployPlan:
    """UsageError where stack name or parameters do not fit the template."""
    template = Template(stack, given)
    made = template.resources()
    return DeployPlan(
        stack=stack,
        parameters=template.parameters,
        resources=[_resource(name, one) for name, one in made.items()],
        left_out=sorted(template.resources(kept=False)),
        rights={n: list(_rights(one["Properties"])) for n, one in made.items() if one["Type"] == "AWS::IAM::Role"},
        alarms=[_alarm(n, one["Properties"]) for n, one in made.items() if one["Type"] == "AWS::CloudWatch::Alarm"],
        monthly=list(_costs(made)),
        command=_command(stack, given),
    )


def _resource(name: str, one: Mapping[str, Any]) -> Resource:
    properties = one["Properties"]
    names = ("BucketName", "QueueName", "TableName", "LogGroupName", "Family", "Name", "PolicyName")
    shown = next((str(properties[key]) for key in names if key in properties), "")
    return Resource(id=name, type=one["Type"], name=shown, about=about(one["Type"], properties))


def _rights(role: Mapping[str, Any]) -> Iterator[Right]:
    for policy in role.get("Policies", []):
        for statement in policy["PolicyDocument"]["Statement"]:
            yield Right(sid=statement["Sid"], actions=_listed(statement["Action"]), on=_listed(statement["Resource"]))
    for arn in role.get("ManagedPolicyArns", []):
        yield Right(sid="managed", actions=[f"as {arn.rsplit('/', 1)[-1]} of AWS says"], on=["*"])


def _alarm(name: str, p: Mapping[str, Any]) -> Alarm:
    return Alarm(id=name, about=str(p["AlarmDescription"]), tells=_listed(p["AlarmActions"]))


def _costs(made: Mapping[str, Mapping[str, Any]]) -> Iterator[Cost]:
    if "InstanceTemplate" in made:
        kind = made["InstanceTemplate"]["Properties"]["LaunchTemplateData"]["InstanceType"]
        dollars = round(_INSTANCE_HOUR[kind] * _HOURS, 2)
        yield Cost(what=f"EC2 {kind}, each, of which one always runs", dollars_a_month=dollars)
    for name in ("RunnerTask", "JanitorTask"):
        if name in made and made[name]["Properties"]["RequiresCompatibilities"] == ["FARGATE"]:
            p = made[name]["Properties"]
            hour = int(p["Cpu"]) / 1024 * _VCPU_HOUR + int(p["Memory"]) / 1024 * _GB_HOUR
            more = ", each, of which one always runs" if name == "RunnerTask" and "RunnerScaling" in made else ""
            yield Cost(what=f"Fargate, {name}{more}", dollars_a_month=round(hour * _HOURS, 2))
    alarms = sum(one["Type"] == "AWS::CloudWatch::Alarm" for one in made.values())
    yield Cost(what=f"{alarms} alarms", dollars_a_month=round(alarms * _ALARM_MONTH, 2))


def _command(stack: str, given: Mapping[str, str]) -> str:
    words = [
        *("aws", "cloudformation", "deploy", "--template-file", "template.yaml", "--stack-name", stack),
        *("--capabilities", "CAPABILITY_IAM"),
    ]
    overrides = ["--parameter-overrides", *(f"{name}={value}" for name, value in given.items())] if given else []
    return shlex.join([*words, *overrides])


def _listed(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]
