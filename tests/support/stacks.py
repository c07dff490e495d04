"""The CloudFormation template under given parameters, as CloudFormation would fill it in before it knows any names.

Only tests need this: they prove facts of every variant of the template. `ade deploy plan` shows the template's own words.
"""

import functools
import re
from collections.abc import Mapping
from typing import Any

import yaml

from infra.deploy.plan import TEMPLATE

PSEUDO = {
    "AWS::StackName": "ade",
    "AWS::AccountId": "<account>",
    "AWS::Region": "<region>",
    "AWS::Partition": "aws",
    "AWS::URLSuffix": "amazonaws.com",
}


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short forms, as their long ones."""


def _short(loader: yaml.SafeLoader, tag: str, node: yaml.Node) -> dict[str, Any]:
    name = tag if tag in ("Ref", "Condition") else f"Fn::{tag}"
    if isinstance(node, yaml.ScalarNode):
        return {name: loader.construct_scalar(node)}
    return {name: loader.construct_sequence(node, deep=True)}


_Loader.add_multi_constructor("!", _short)


@functools.cache
def template() -> dict[str, Any]:
    """The template as it is; read once, so nobody may change it."""
    return yaml.load(TEMPLATE.read_text(), _Loader)


def resources(given: Mapping[str, str], stack: str = "ade") -> dict[str, dict[str, Any]]:
    """Logical id → type and properties of what the stack has; a resource is referred to as <its id>."""
    return _Stack(given, stack).resources()


class _Stack:
    def __init__(self, given: Mapping[str, str], stack: str) -> None:
        self._body = template()
        self._values = {name: str(spec["Default"]) for name, spec in self._body["Parameters"].items()} | dict(given)
        self._pseudo = PSEUDO | {"AWS::StackName": stack}

    def resources(self) -> dict[str, dict[str, Any]]:
        return {
            name: {"Type": one["Type"], "Properties": self.resolve(one.get("Properties", {}))}
            for name, one in self._body["Resources"].items()
            if "Condition" not in one or self._decided(one)
        }

    def resolve(self, value: Any) -> Any:
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
            case {"Fn::Join": [str(between), parts]}:
                return between.join(map(str, self.resolve(parts)))
            case {"Fn::If": [str(condition), yes, no]}:
                return self.resolve(yes if self._decided({"Condition": condition}) else no)
            case dict():
                found = {key: self.resolve(one) for key, one in value.items()}
                return {key: one for key, one in found.items() if one is not None}
            case list():
                return [one for one in map(self.resolve, value) if one is not None]
            case _:
                return value

    def _named(self, name: str) -> Any:
        if name in self._values:
            listed = self._body["Parameters"][name]["Type"] == "CommaDelimitedList"
            return self._values[name].split(",") if listed else self._values[name]
        return self._pseudo.get(name, f"<{name.removesuffix('.QueueName').removesuffix('.Name')}>")

    def _decided(self, rule: Any) -> bool:
        match rule:
            case {"Condition": str(name)}:
                return self._decided(self._body["Conditions"][name])
            case {"Fn::Equals": [one, other]}:
                return str(self.resolve(one)) == str(self.resolve(other))
            case {"Fn::Not": [one]}:
                return not self._decided(one)
            case {"Fn::And": rules}:
                return all(map(self._decided, rules))
            case {"Fn::Or": rules}:
                return any(map(self._decided, rules))
            case _:
                raise ValueError(f"a condition of a kind that is not evaluated here: {rule}")
