"""The CloudFormation template, read: parameters checked, conditions decided, names filled in. AWS is not asked."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from core.errors import UsageError

# As `ade deploy package` names a zip (infra/deploy/handler_zip.py).
PACKAGE_NAME = re.compile(r"ade-handler-(?P<version>.+)-python(?P<python>[0-9.]+)-(?P<machine>x86_64|arm64)\.zip$")
TEMPLATE = Path(__file__).parent / "template.yaml"


class Template:
    """The template for one stack name and one set of parameters; UsageError where they do not fit."""

    def __init__(self, stack: str, given: Mapping[str, str], text: str | None = None) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,30}", stack):
            # The bucket is named after the stack, and a bucket's name is all lower case.
            raise UsageError(f"stack name {stack!r}: small letters, digits and hyphens, a letter first, 31 at most")
        self._body: dict[str, Any] = yaml.load(text or TEMPLATE.read_text(), _Loader)  # noqa: S506 - a SafeLoader
        self.stack = stack
        self.parameters = self._checked(given)
        self._pseudo = {
            "AWS::StackName": stack,
            "AWS::AccountId": "<account>",
            "AWS::Region": "<region>",
            "AWS::Partition": "aws",
            "AWS::URLSuffix": "amazonaws.com",
        }

    def resources(self, *, kept: bool = True) -> dict[str, dict[str, Any]]:
        """Logical id → type and properties, resolved; `kept=False`: those that a condition leaves out."""
        found = self._body["Resources"]
        return {
            name: {"Type": one["Type"], "Properties": self.resolve(one.get("Properties", {}))}
            for name, one in found.items()
            if self._holds(one.get("Condition")) is kept
        }

    def resolve(self, value: Any) -> Any:
        """Functions carried out as far as they can be before there is a stack; a resource stands as <its name>."""
        match value:
            case {"Ref": "AWS::NoValue"}:
                return None
            case {"Ref": str(name)}:
                return self._named(name)
            case {"Fn::GetAtt": str(path)}:
                name, attribute = path.split(".", 1)
                return self._named(name) if attribute in ("Arn", "QueueName", "Name") else f"<{path}>"
            case {"Fn::Sub": str(text)}:
                return re.sub(r"\$\{([^}]+)\}", lambda m: str(self._named(m[1].removesuffix(".Arn"))), text)
            case {"Fn::If": [str(condition), yes, no]}:
                return self.resolve(yes if self._holds(condition) else no)
            case dict():
                found = {key: self.resolve(one) for key, one in value.items()}
                return {key: one for key, one in found.items() if one is not None}
            case list():
                return [one for one in map(self.resolve, value) if one is not None]
            case _:
                return value

    def _named(self, name: str) -> Any:
        if name in self.parameters:
            value = self.parameters[name]
            return value.split(",") if self._body["Parameters"][name]["Type"] == "CommaDelimitedList" else value
        return self._pseudo.get(name, f"<{name.removesuffix('.QueueName').removesuffix('.Name')}>")

    def _holds(self, condition: str | None) -> bool:
        return condition is None or self._decided(self._body["Conditions"][condition])

    def _decided(self, rule: Any) -> bool:
        match rule:
            case {"Condition": str(name)}:
                return self._holds(name)
            case {"Fn::Equals": [one, other]}:
                return str(self.resolve(one)) == str(self.resolve(other))
            case {"Fn::Not": [one]}:
                return not self._decided(one)
            case {"Fn::And": rules}:
                return all(map(self._decided, rules))
            case {"Fn::Or": rules}:
                return any(map(self._decided, rules))
            case _:
                raise ValueError(f"a condition that we cannot decide: {rule}")

    def _checked(self, given: Mapping[str, str]) -> dict[str, str]:
        known = self._body["Parameters"]
        wrong = [f"{name}: no such parameter; known are {', '.join(known)}" for name in given if name not in known]
        values = {name: str(given.get(name, spec["Default"])) for name, spec in known.items()}
        for name, value in values.items():
            problem = _problem(value, known[name])
            if problem:
                wrong.append(f"{name}={value!r}: must be {problem}")
        if values["RunnerImage"]:
            wrong += [f"{name}: needed with RunnerImage" for name in ("Vpc", "Subnets") if not given.get(name)]
        if values["HandlerKey"] and not given.get("HandlerBucket"):
            wrong.append("HandlerBucket: needed with HandlerKey")
        if values["HandlerKey"] and values["HandlerImage"]:
            wrong.append("HandlerImage, HandlerKey: give one of the two")
        wrong += _mismatches(values)
        if wrong:
            raise UsageError("\n".join(wrong))
        return values


def _mismatches(values: Mapping[str, str]) -> Iterator[str]:
    """Parameters that are fine alone and not together."""
    machine, runtime, key = values["Machine"], values["HandlerRuntime"], values["HandlerKey"]
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


def _problem(value: str, spec: Mapping[str, Any]) -> str | None:
    if "AllowedValues" in spec and value not in map(str, spec["AllowedValues"]):
        return f"one of {', '.join(map(str, spec['AllowedValues']))}"
    if spec["Type"] == "Number":
        least = spec.get("MinValue", 0)
        if not re.fullmatch(r"\d+", value) or int(value) < least:
            return f"a whole number from {least} up"
    return None


class _Loader(yaml.SafeLoader):  # type: ignore[misc] # yaml ships no types
    """YAML with CloudFormation's short forms, as their long ones."""


def _short(loader: yaml.SafeLoader, tag: str, node: yaml.Node) -> dict[str, Any]:
    name = tag if tag in ("Ref", "Condition") else f"Fn::{tag}"
    if isinstance(node, yaml.ScalarNode):
        return {name: loader.construct_scalar(node)}
    build: Callable[..., Any] = loader.construct_sequence
    return {name: build(node, deep=True)}


_Loader.add_multi_constructor("!", _short)
