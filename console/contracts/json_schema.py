"""JSON Schema: of a row, which is an object, or of a list of them."""

from collections.abc import Mapping
from typing import Any, Final

from console.contracts.foreign import (
    ContractRefused,
    Foreign,
    Spec,
    bounds,
    extension,
    first,
    is_hard,
    listed,
    own_keys,
    texts,
    values_of,
    whole_pattern,
    without_none,
)
from core.fields import NUMERIC, FieldSpec, FieldType
from core.manifests import Manifest

_DEPTH: Final = 20  # references that lead to others
_OWN: Final = "x-ade"
_FORMATS: Final = {
    "date": FieldType.DATE,
    "date-time": FieldType.DATETIME,
    "time": FieldType.TIME,
    "email": FieldType.EMAIL,
    "idn-email": FieldType.EMAIL,
    "uri": FieldType.URL,
    "url": FieldType.URL,
}
_TYPES: Final = {"integer": FieldType.INTEGER, "number": FieldType.DECIMAL, "boolean": FieldType.BOOLEAN}
_WRITTEN: Final[Mapping[FieldType, Foreign]] = {
    FieldType.INTEGER: {"type": "integer"},
    FieldType.DECIMAL: {"type": "number"},
    FieldType.MONEY: {"type": "number"},
    FieldType.PERCENT: {"type": "number"},
    FieldType.BOOLEAN: {"type": "boolean"},
    FieldType.DATE: {"type": "string", "format": "date"},
    FieldType.DATETIME: {"type": "string"},  # without a zone, which the format date-time asks for
    FieldType.TIME: {"type": "string"},
    FieldType.EMAIL: {"type": "string", "format": "email"},
    FieldType.URL: {"type": "string", "format": "uri"},
}

_LOST: Final = frozenset({FieldType.MONEY, FieldType.PERCENT, FieldType.PHONE, FieldType.DATETIME, FieldType.TIME})


def is_one(document: Mapping[str, Any]) -> bool:
    return any(key in document for key in ("properties", "items", "$ref", "$defs", "definitions"))


def fields_of(document: Mapping[str, Any]) -> list[Spec]:
    """The fields of the object that a schema describes."""
    schema = _resolved(document, document)
    for _ in range(2):
        if "properties" not in schema and isinstance(items := schema.get("items"), Mapping):
            schema = _resolved(items, document)
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        raise ContractRefused("describes neither an object with properties nor a list of such objects")
    required = set(listed(schema.get("required")))
    fields = []
    for name, declared in properties.items():
        part = {} if declared is True else declared  # any value
        if part is not False:  # none
            if not isinstance(part, Mapping):
                raise ContractRefused(f"has a property {str(name)[:60]!r} that is no schema")
            alone = _resolved(_without_null(_resolved(part, document)), document)
            fields.append(_field(str(name), alone, required=name in required))
    return fields


def _resolved(part: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    """A part behind its references, which are followed inside the document only."""
    for _ in range(_DEPTH):
        ref = part.get("$ref")
        if ref is None:
            return part
        if not isinstance(ref, str) or not ref.startswith("#"):
            raise ContractRefused("has a $ref to another document, which is not fetched; put that part under $defs")
        found: Any = document
        for step in ref.removeprefix("#").strip("/").split("/") if ref.strip("#/") else ():
            key = step.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping):
            raise ContractRefused("has a $ref to a part that it does not contain")
        part = {**found, **{key: value for key, value in part.items() if key != "$ref"}}
    raise ContractRefused("has references that lead in a circle")


def _field(name: str, part: Mapping[str, Any], *, required: bool) -> Spec:
    """One property as a field."""
    kind = _type(part)
    values = listed(part.get("enum")) or listed([part["const"]] if "const" in part else [])
    if values and kind is FieldType.TEXT:
        kind = FieldType.ENUM
    spec = {
        "name": name,
        "label": texts(part.get("title"), 200),
        "type": str(kind),
        "required": required,
        "description": texts(part.get("description")),
        "examples": first(listed(part.get("examples"))),
        "allowed": values if kind is not FieldType.BOOLEAN else None,
        "pattern": whole_pattern(part.get("pattern")),
        "min_length": part.get("minLength"),
        "max_length": part.get("maxLength"),
        **bounds(kind, part.get("minimum"), part.get("maximum")),
    }
    return without_none({**spec, **own_keys(part.get(_OWN))})


def _without_null(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """A part that is one of several, the others of which are null."""
    for key in ("anyOf", "oneOf"):
        options = part.get(key)
        if isinstance(options, list):
            real = [one for one in options if isinstance(one, Mapping) and one.get("type") != "null"]
            if len(real) == 1:
                return {**{k: v for k, v in part.items() if k != key}, **real[0]}
    return part


def _type(part: Mapping[str, Any]) -> FieldType:
    type_names = part.get("type")
    names = [one for one in (type_names if isinstance(type_names, list) else [type_names]) if one not in (None, "null")]
    if len(names) == 1 and isinstance(names[0], str) and names[0] in _TYPES:
        return _TYPES[names[0]]
    return _FORMATS.get(str(part.get("format")), FieldType.TEXT)


def exported(manifest: Manifest) -> Foreign:
    """The schema of one row of the output."""
    hard = [spec for spec in manifest.fields if is_hard(spec)]
    return without_none(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": manifest.name,
            "description": manifest.description,
            "type": "object",
            "properties": {spec.name: _property(spec) for spec in manifest.fields},
            "required": [spec.name for spec in hard if spec.required],
        }
    )


def _property(spec: FieldSpec) -> Foreign:
    own = extension(spec, _LOST)
    hard = is_hard(spec)
    if hard and spec.unique:
        own["unique"] = True
    if hard and spec.type not in NUMERIC:  # only numbers can be bounded
        own |= without_none({"min": spec.min, "max": spec.max})
    about = {
        "title": spec.label,
        "description": spec.description,
        "examples": list(spec.examples),
        _OWN: own or None,
    }
    return without_none({**(_rules(spec) if hard else {}), **about})


def _rules(spec: FieldSpec) -> Foreign:
    """What a value must be."""
    written = dict(_WRITTEN.get(spec.type, {"type": "string"}))
    if spec.pattern is not None and written["type"] == "string":
        written["pattern"] = f"^(?:{spec.pattern})$"
    if spec.type in NUMERIC:
        written |= {"minimum": spec.min, "maximum": spec.max}
    values = values_of(spec)
    if spec.required:
        written |= {"enum": values} if values else {}
    else:
        written |= {"type": [written["type"], "null"]} | ({"enum": [*values, None]} if values else {})
    return written | {"minLength": spec.min_length, "maxLength": spec.max_length}
