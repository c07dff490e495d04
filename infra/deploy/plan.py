"""What a deployment would create, as the CloudFormation template describes itself.

The template describes each resource: its purpose, when it is created, and its cost (`Metadata`). That text is shown;
no function or condition is evaluated. For the exact changes of a stack, use a change set of AWS.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from core.errors import UsageError
from infra.deploy.handler_zip import PACKAGE_NAME

TEMPLATE = Path(__file__).parent / "template.yaml"
ALWAYS = "always"
_NAME = re.compile(r'^      (?:BucketName|QueueName|TableName|LogGroupName|Family|Name): !Sub "(.*)"$', re.MULTILINE)
_STATEMENT = re.compile(r"- Sid: (\w+)\n +Effect: Allow\n +Action: (.*)\n +Resource: (.*)\n")


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


def make_plan(stack: str, given: Mapping[str, str]) -> DeployPlan:
    """Raises UsageError if the stack name or parameters do not fit the template."""
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,30}", stack):
        # The bucket is named after the stack, and bucket names are lower case.
        raise UsageError(f"stack name {stack!r}: lower-case letters, digits and hyphens, a letter first, at most 31")
    text = TEMPLATE.read_text()
    known, resources = _entries(text, "Parameters"), _entries(text, "Resources")
    when = dict(re.findall(r"^    (\w+): (.*)$", _entries(text, "Metadata")["When"], re.MULTILINE))
    create = _command(stack, given)
    return DeployPlan(
        stack=stack,
        about=_field("\n" + text, "Description"),
        parameters=_checked(known, given),
        resources=[_resource(name, body, stack, when) for name, body in resources.items()],
        rights={name: list(_rights(body)) for name, body in resources.items() if "Type: AWS::IAM::Role\n" in body},
        outputs={name: _field(body, "Description") for name, body in _entries(text, "Outputs").items()},
        review=f"{create} --no-execute-changeset",
        command=create,
    )


def _entries(text: str, section: str) -> dict[str, str]:
    """The entries of a top-level section as text; the template has a fixed layout, so no YAML is parsed."""
    found = re.search(rf"^{section}:\n((?:[ ].*\n|\n)*)", text, re.MULTILINE)
    parts = re.split(r"^  (\w+):\n", found[1] if found else "", flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _field(body: str, names: str) -> str:
    """The value of the first of some keys near the top of an entry, as written; empty if there is none."""
    found = re.search(rf"^( {{0,6}})(?:{names}): (>-\n(?:\1 +.*\n)+|.*)", body, re.MULTILINE)
    value = " ".join(found[2].removeprefix(">-").split()) if found else ""
    return _plain(value)


def _plain(value: str) -> str:
    return re.sub(r"^!\w+ ", "", value).strip('"')


def _listed(value: str) -> list[str]:
    return [_plain(one) for one in value.removeprefix("[").removesuffix("]").split(", ")]


def _resource(name: str, body: str, stack: str, when: Mapping[str, str]) -> Resource:
    condition = _field(body.partition("    Properties:")[0], "Condition")
    named = _NAME.search(body)
    return Resource(
        id=name,
        type=_field(body, "Type"),
        when=when[condition] if condition else ALWAYS,
        name=named[1].replace("${AWS::StackName}", stack) if named else "",
        about=_field(body, "About|AlarmDescription|Description"),
        cost=_field(body, "Cost"),
    )


def _rights(role: str) -> Iterator[Right]:
    for sid, actions, on in _STATEMENT.findall(role):
        yield Right(sid=sid, actions=_listed(actions), on=_listed(on))
    for arn in _listed(_field(role, "ManagedPolicyArns")):
        if arn:
            yield Right(sid="managed", actions=[f"those of AWS's policy {arn.rsplit('/', 1)[-1]}"], on=["*"])


def _checked(known: Mapping[str, str], given: Mapping[str, str]) -> list[Parameter]:
    wrong = [f"{name}: no such parameter; the template has {', '.join(known)}" for name in given if name not in known]
    values = {name: given.get(name, _field(body, "Default")) for name, body in known.items()}
    for name, value in values.items():
        problem = _problem(value, known[name])
        if problem:
            wrong.append(f"{name}={value!r}: must be {problem}")
    wrong += _mismatches(values, given)
    if wrong:
        raise UsageError("\n".join(wrong))
    return [
        Parameter(name=name, value=value, given=name in given, about=_field(known[name], "Description"))
        for name, value in values.items()
    ]


def _problem(value: str, spec: str) -> str | None:
    allowed = _field(spec, "AllowedValues")
    if allowed and value not in _listed(allowed):
        return f"one of {', '.join(_listed(allowed))}"
    if _field(spec, "Type") == "Number":
        least, most = int(_field(spec, "MinValue") or 0), _field(spec, "MaxValue")
        if not re.fullmatch(r"[0-9]{1,9}", value) or int(value) < least or (most and int(value) > int(most)):
            return f"a whole number from {least} {f'to {most}' if most else 'up'}"
    return None


def _mismatches(values: Mapping[str, str], given: Mapping[str, str]) -> Iterator[str]:
    """Parameters that are valid alone but not together."""
    machine, runtime, key = values["Machine"], values["HandlerRuntime"], values["HandlerKey"]
    if values["RunnerImage"]:
        yield from (f"{name}: needed with RunnerImage" for name in ("Vpc", "Subnets") if not given.get(name))
    if key and not given.get("HandlerBucket"):
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


def _command(stack: str, given: Mapping[str, str]) -> str:
    words = [
        *("aws", "cloudformation", "deploy", "--template-file", "template.yaml", "--stack-name", stack),
        *("--capabilities", "CAPABILITY_IAM"),
    ]
    overrides = ["--parameter-overrides", *(f"{name}={value}" for name, value in given.items())] if given else []
    return shlex.join([*words, *overrides])
