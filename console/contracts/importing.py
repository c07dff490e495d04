"""Reads a contract of another tool, whichever it is, as the fields of a manifest."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from console.contracts import frictionless, json_schema, odcs, sql_tables
from console.contracts.foreign import ContractRefused, Spec, field_name
from core.budget import Budget, plain
from core.errors import UsageError
from core.manifests import MAX_FIELDS

_BUDGET: Final = Budget(bytes=2 * 1024 * 1024, values=100_000)
_KNOWN: Final = "JSON Schema, ODCS, Frictionless Table Schema or CREATE TABLE"


def read_contract(path: Path) -> list[Spec]:
    """The fields that a contract asks for; raises ContractRefused if it is none, or cannot be used."""
    try:
        with path.open("rb") as source:
            body = source.read(_BUDGET.bytes + 1)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    if len(body) > _BUDGET.bytes:
        raise ContractRefused(f"{path}: a contract has at most {_BUDGET.bytes} bytes")
    try:
        fields = _fields(body)
    except ContractRefused as error:
        raise ContractRefused(f"{path}: {error}") from None
    if not 0 < len(fields) <= MAX_FIELDS:
        raise ContractRefused(f"{path}: has {len(fields)} fields; a manifest has 1 to {MAX_FIELDS}")
    return _named(fields)


def _fields(body: bytes) -> list[Spec]:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ContractRefused(f"is not UTF-8 (byte {error.start})") from None
    if sql_tables.is_sql(text):
        return sql_tables.fields_of(text)
    document = _parsed(body, text)
    if not isinstance(document, Mapping):
        raise ContractRefused(f"is not {_KNOWN}")
    if odcs.is_one(document):
        return odcs.fields_of(document)
    if frictionless.is_one(document):
        return frictionless.fields_of(document)
    if json_schema.is_one(document):
        return json_schema.fields_of(document)
    raise ContractRefused(f"is not {_KNOWN}")


def _parsed(body: bytes, text: str) -> Any:
    """A JSON or YAML document within its budget."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            return plain(body.removeprefix(b"\xef\xbb\xbf"), _BUDGET)
        except ValueError as error:
            raise ContractRefused(str(error)) from None
    try:
        # Events first: an alias lets a short text stand for an endless document.
        depth = 0
        for count, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent):
                raise ContractRefused(f"line {event.start_mark.line + 1}: aliases are not read; write the part out")
            if depth > _BUDGET.depth or count > _BUDGET.values:
                raise ContractRefused(f"holds over {_BUDGET.values} values, or is nested over {_BUDGET.depth} levels")
        return json.loads(json.dumps(yaml.safe_load(text), default=str))  # dates become texts
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ContractRefused(f"is neither JSON nor YAML: {str(error).splitlines()[0]}") from None


def _named(fields: list[Spec]) -> list[Spec]:
    """The fields with names that a manifest takes, each once."""
    names_so_far: set[str] = set()
    named = []
    for spec in fields:
        name, n = field_name(spec["name"]), 1
        free = name
        while free.casefold() in names_so_far:
            n += 1
            free = f"{name}_{n}"
        names_so_far.add(free.casefold())
        label = {} if free == spec["name"] or "label" in spec else {"label": spec["name"][:200]}
        named.append({**spec, "name": free, **label})
    return named
