"""What a deployment would create, as the CloudFormation template describes itself.

The template describes each resource: its purpose, when it is created, and its cost (`Metadata`). That text is shown;
no function or condition is evaluated. For the exact changes of a stack, use a change set of AWS.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from core.errors import UsageError
from infra.deploy.handler_zip import PACKAGE_NAME

TEMPLATE = Path(__file__).parent / "template.yaml"
ALWAYS = "always"
_NAMES = ("BucketName", "QueueName", "TableName", "LogGroupName", "Family", "Name")


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    name: str
    value: str
    given: bool  # otherwise the value is the template's default
    about: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Resource:
    id: str
    type: str
    when: str  # "always", or the condition in words
    name: str  # with ${…} for what only AWS knows; empty if AWS chooses
    about: str
    cost: str  # empty: nothing


@dataclass(frozen=True, kw_only=True, slots=True)
class Right:
    """One statement of a role: these actions on these resources, and no others."""

    sid: str
    actions: list[str]
    on: list[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class DeployPlan:
    stack: str
    about: str
    parameters: list[Parameter]
    resources: list[Resource]
    rights: dict[str, list[Right]]
    outputs: dict[str, str]
    review: str  # the command that makes AWS list the exact changes without making them
    command: str


class _Template(NamedTuple):
    """The sections of the template that a plan shows, under CloudFormation's names."""

    Description: str
    Parameters: Mapping[str, Mapping[str, Any]]
    Metadata: Mapping[str, Mapping[str, str]]
    Resources: Mapping[str, Mapping[str, Any]]
    Outputs: Mapping[str, Mapping[str, Any]]


def make_plan(stack: str, chosen: Mapping[str, str]) -> DeployPlan:
    """Raises UsageError if the stack name or parameters do not fit the template."""
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,30}", stack):
        # The bucket is named after the stack, and bucket names are lower case.
        raise UsageError(f"stack name {stack!r}: lower-case letters, digits and hyphens, a letter first, at most 31")
    template = _read_template()
    resources = template.Resources
    create = _command(stack, chosen)
    return DeployPlan(
        stack=stack,
        about=template.Description,
        parameters=_checked(template.Parameters, chosen),
        resources=[_resource(name, one, stack, template.Metadata["When"]) for name, one in resources.items()],
        rights={name: list(_rights(one)) for name, one in resources.items() if one["Type"] == "AWS::IAM::Role"},
        outputs={name: one["Description"] for name, one in template.Outputs.items()},
        review=f"{create} --no-execute-changeset",
        command=create,
    )


def _read_template() -> _Template:
    # All values are texts as they are written, also of CloudFormation's short forms such as !Ref.
    parsed = yaml.load(TEMPLATE.read_text(), yaml.BaseLoader)  # noqa: S506 - makes only texts, lists and dicts
    return _Template(**{name: parsed[name] for name in _Template._fields})


def _texts(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _resource(name: str, one: Mapping[str, Any], stack: str, when: Mapping[str, str]) -> Resource:
    metadata, properties = one.get("Metadata", {}), one["Properties"]
    # A name that is not made of the stack's is that of another resource.
    named = next((properties[key] for key in _NAMES if "${AWS::StackName}" in properties.get(key, "")), "")
    return Resource(
        id=name,
        type=one["Type"],
        when=when[one["Condition"]] if "Condition" in one else ALWAYS,
        name=named.replace("${AWS::StackName}", stack),
        about=metadata.get("About") or properties.get("AlarmDescription") or properties.get("Description", ""),
        cost=metadata.get("Cost", ""),
    )


def _rights(role: Mapping[str, Any]) -> Iterator[Right]:
    properties = role["Properties"]
    for one in _statements(properties.get("Policies", [])):
        yield Right(sid=one["Sid"], actions=_texts(one["Action"]), on=_texts(one["Resource"]))
    for arn in properties.get("ManagedPolicyArns", []):
        yield Right(sid="managed", actions=[f"those of AWS's policy {arn.rsplit('/', 1)[-1]}"], on=["*"])


def _statements(part: object) -> Iterator[Mapping[str, Any]]:
    """Every statement that allows something, also those under a condition."""
    if isinstance(part, dict) and part.get("Effect") == "Allow":
        yield part
    elif isinstance(part, dict | list):
        for inner in part.values() if isinstance(part, dict) else part:
            yield from _statements(inner)


def _checked(known: Mapping[str, Mapping[str, Any]], chosen: Mapping[str, str]) -> list[Parameter]:
    wrong = [f"{name}: no such parameter; the template has {', '.join(known)}" for name in chosen if name not in known]
    values = {name: chosen.get(name, str(spec["Default"])) for name, spec in known.items()}
    for name, value in values.items():
        problem = _problem(value, known[name])
        if problem:
            wrong.append(f"{name}={value!r}: must be {problem}")
    wrong += _mismatches(values, chosen)
    if wrong:
        raise UsageError("\n".join(wrong))
    return [
        Parameter(name=name, value=value, given=name in chosen, about=known[name]["Description"])
        for name, value in values.items()
    ]


def _problem(value: str, spec: Mapping[str, Any]) -> str | None:
    allowed = spec.get("AllowedValues", [])
    if allowed and value not in allowed:
        return f"one of {', '.join(allowed)}"
    if spec["Type"] == "Number":
        least, most = int(spec.get("MinValue", 0)), spec.get("MaxValue")
        if not re.fullmatch(r"[0-9]{1,9}", value) or int(value) < least or (most and int(value) > int(most)):
            return f"a whole number from {least} {f'to {most}' if most else 'up'}"
    return None


def _mismatches(values: Mapping[str, str], chosen: Mapping[str, str]) -> Iterator[str]:
    """Parameters that are valid alone but not together."""
    machine, runtime, key = values["Machine"], values["HandlerRuntime"], values["HandlerKey"]
    if values["RunnerImage"]:
        yield from (f"{name}: needed with RunnerImage" for name in ("Vpc", "Subnets") if not chosen.get(name))
    if key and not chosen.get("HandlerBucket"):
        yield "HandlerBucket: needed with HandlerKey"
    if key and values["HandlerImage"]:
        yield "HandlerImage, HandlerKey: give one of the two"
    if values["SandboxLevel"] == "isolated" and values["Capacity"] != "ec2":
        yield "SandboxLevel=isolated: Fargate gives a task no namespaces; set Capacity=ec2"
    family = "m7g" if machine == "arm64" else "m7i"
    if values["Capacity"] == "ec2" and not values["InstanceType"].startswith(family):
        yield f"InstanceType={values['InstanceType']!r}: must be one of {family} with Machine={machine}"
    named = PACKAGE_NAME.search(key)
    if named and named["machine"] != machine:
        yield f"HandlerKey={key!r}: a zip for {named['machine']}, but Machine={machine}"
    if named and f"python{named['python']}" != runtime:
        yield f"HandlerKey={key!r}: a zip for Python {named['python']}, but HandlerRuntime={runtime}"


def _command(stack: str, chosen: Mapping[str, str]) -> str:
    words = [
        *("aws", "cloudformation", "deploy", "--template-file", "template.yaml", "--stack-name", stack),
        *("--capabilities", "CAPABILITY_IAM"),
    ]
    overrides = ["--parameter-overrides", *(f"{name}={value}" for name, value in chosen.items())] if chosen else []
    return shlex.join([*words, *overrides])
