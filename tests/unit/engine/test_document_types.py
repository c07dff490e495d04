"""The types of artifact.json and review.json say what their schemas say."""

import json
from pathlib import Path
from types import NoneType, UnionType
from typing import NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest

from runner.engine import document_types as documents

FOLDER = Path(documents.__file__).parent
KINDS = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    NoneType: "null",
    list: "array",
    dict: "object",
}
SCHEMAS = {
    "artifact.schema.json": documents.ArtifactDocument,
    "review.schema.json": documents.ReviewDocument,
}


def kinds(part, schema):
    """The JSON types that a part of a schema allows."""
    part = resolved(part, schema)
    if "oneOf" in part:
        return {kind for one in part["oneOf"] for kind in kinds(one, schema)}
    words = [part.get("const"), *part.get("enum", ())]
    if "type" not in part:
        return {KINDS[type(word)] for word in words if word is not None or None in part.get("enum", ())}
    return {part["type"]} if isinstance(part["type"], str) else set(part["type"])


def resolved(part, schema):
    while "$ref" in part:
        part = schema["$defs"][part["$ref"].rpartition("/")[2]]
    return part


def differences(hint, part, schema, at):
    part = resolved(part, schema)
    if is_typeddict(hint):
        named = get_type_hints(hint, include_extras=True)
        needed = {name for name, one in named.items() if get_origin(one) is not NotRequired} & hint.__required_keys__
        if set(named) != set(part["properties"]):
            yield f"{at}: {sorted(set(named) ^ set(part['properties']))}"
            return
        if needed != set(part.get("required", ())):
            yield f"{at}: required {sorted(needed ^ set(part.get('required', ())))}"
        for name, one in named.items():
            yield from differences(one, part["properties"][name], schema, f"{at}/{name}")
        return
    if get_origin(hint) is NotRequired:
        yield from differences(*get_args(hint), part, schema, at)
    elif get_origin(hint) in (Union, UnionType):
        told = {KINDS[get_origin(one) or one] for one in get_args(hint) if not is_typeddict(one)}
        if not kinds(part, schema) <= told | ({"integer"} if "number" in told else set()):
            yield f"{at}: {told} and {kinds(part, schema)}"
    elif get_origin(hint) is list:
        yield from differences(*get_args(hint), part["items"], schema, f"{at}[]")
    elif (kind := KINDS[get_origin(hint) or hint]) not in kinds(part, schema) and kind != "number":
        yield f"{at}: {kind} and {kinds(part, schema)}"


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_document_is_typed_as_its_schema_says(name):
    schema = json.loads((FOLDER / name).read_text())
    assert list(differences(SCHEMAS[name], schema, schema, name)) == []
