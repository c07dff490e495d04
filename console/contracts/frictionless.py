"""Frictionless Table Schema, alone or inside a data package or resource."""

from collections.abc import Mapping
from typing import Any, Final

from console.contracts.foreign import (
    TEXTS,
    ContractRefused,
    Foreign,
    Spec,
    bounds,
    extension,
    first,
    is_hard,
    listed,
    named_parts,
    own_keys,
    texts,
    unwrapped,
    values_of,
    without_none,
)
from core.fields import MAX_EXPRESSION, FieldSpec, FieldType, problem_with
from core.manifests import Manifest

_OWN: Final = "ade"
_TYPES: Final = {
    "integer": FieldType.INTEGER,
    "number": FieldType.DECIMAL,
    "boolean": FieldType.BOOLEAN,
    "date": FieldType.DATE,
    "datetime": FieldType.DATETIME,
    "time": FieldType.TIME,
    "year": FieldType.INTEGER,
}
_FORMATS: Final = {"email": FieldType.EMAIL, "uri": FieldType.URL}
_WRITTEN: Final[Mapping[FieldType, Foreign]] = {
    FieldType.INTEGER: {"type": "integer"},
    FieldType.DECIMAL: {"type": "number"},
    FieldType.MONEY: {"type": "number"},
    FieldType.PERCENT: {"type": "number"},
    FieldType.BOOLEAN: {"type": "boolean"},
    FieldType.DATE: {"type": "date"},
    FieldType.DATETIME: {"type": "datetime"},
    FieldType.TIME: {"type": "time"},
    FieldType.EMAIL: {"type": "string", "format": "email"},
    FieldType.URL: {"type": "string", "format": "uri"},
}


def is_one(document: Mapping[str, Any]) -> bool:
    return _fields(document) is not None


def _fields(document: Mapping[str, Any]) -> list[Any] | None:
    """The list of fields: of the schema itself, or of the only resource of a package."""
    resources = document.get("resources")
    if isinstance(resources, list):
        if len(resources) != 1:
            raise ContractRefused(f"has {len(resources)} resources; give a package with one, or the schema of one")
        document = resources[0] if isinstance(resources[0], Mapping) else {}
    schema = document.get("schema", document)
    fields = schema.get("fields") if isinstance(schema, Mapping) else None
    return fields if isinstance(fields, list) else None


def fields_of(document: Mapping[str, Any]) -> list[Spec]:
    schema = document.get("schema", document)
    key_names = schema.get("primaryKey") if isinstance(schema, Mapping) else None
    key = [key_names] if isinstance(key_names, str) else listed(key_names)
    parts = named_parts(_fields(document))
    return [_field(part, is_key=key == [part["name"]]) for part in parts]


def _field(part: Mapping[str, Any], *, is_key: bool) -> Spec:
    rules = part.get("constraints")
    rules = rules if isinstance(rules, Mapping) else {}
    kind = _TYPES.get(str(part.get("type")), _FORMATS.get(str(part.get("format")), FieldType.TEXT))
    values = listed(rules.get("enum"))
    if values and kind is FieldType.TEXT:
        kind = FieldType.ENUM
    pattern = texts(rules.get("pattern"), MAX_EXPRESSION)
    form = texts(part.get("format"), 60)
    spec = {
        "name": part["name"],
        "label": texts(part.get("title"), 200),
        "type": str(kind),
        "required": rules.get("required") is True or is_key,
        "unique": rules.get("unique") is True or is_key,
        "description": texts(part.get("description")),
        "examples": first(listed([part["example"]] if "example" in part else part.get("examples"))),
        "formats": [form]
        if form and "%" in form and kind in (FieldType.DATE, FieldType.DATETIME, FieldType.TIME)
        else None,
        "allowed": values if kind is not FieldType.BOOLEAN else None,
        "pattern": unwrapped(pattern) if pattern and problem_with(pattern) is None and kind in TEXTS else None,
        "min_length": rules.get("minLength"),
        "max_length": rules.get("maxLength"),
        **bounds(kind, rules.get("minimum"), rules.get("maximum")),
    }
    return without_none({**spec, **own_keys(part.get(_OWN))})


def exported(manifest: Manifest) -> Foreign:
    """The schema of the output's table."""
    return {"fields": [_written(spec) for spec in manifest.fields]}


def _written(spec: FieldSpec) -> Foreign:
    about = {
        "title": spec.label,
        "description": spec.description,
        "example": spec.examples[0] if spec.examples else None,
        _OWN: extension(spec) or None,
    }
    if not is_hard(spec):
        return without_none({"name": spec.name, "type": "any", **about})
    kind = dict(_WRITTEN.get(spec.type, {"type": "string"}))
    is_text = kind["type"] == "string"
    rules = {
        "required": spec.required,
        "unique": spec.unique,
        "enum": values_of(spec) or None,
        "pattern": (f"({spec.pattern})" if spec.pattern and "|" in spec.pattern else spec.pattern) if is_text else None,
        "minLength": spec.min_length if is_text else None,
        "maxLength": spec.max_length if is_text else None,
        "minimum": spec.min,
        "maximum": spec.max,
    }
    return without_none({"name": spec.name, **kind, "constraints": without_none(rules) or None, **about})
