"""What people want to know of a resource of the template, in a few words, by its type."""

from collections.abc import Callable, Mapping
from typing import Any

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
