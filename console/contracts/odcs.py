"""ODCS, the Open Data Contract Standard of Bitol: version 3, written as 3.1."""

from collections.abc import Iterator, Mapping
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
    parts_of,
    texts,
    values_of,
    whole_pattern,
    without_none,
)
from core.fields import NUMERIC, FieldSpec, FieldType
from core.manifests import Manifest

_OWN: Final = "ade"
_TYPES: Final = {
    "integer": FieldType.INTEGER,
    "number": FieldType.DECIMAL,
    "boolean": FieldType.BOOLEAN,
    "date": FieldType.DATE,
    "timestamp": FieldType.DATETIME,
    "time": FieldType.TIME,
}
_FORMATS: Final = {"email": FieldType.EMAIL, "uri": FieldType.URL}
_WRITTEN: Final = {
    FieldType.INTEGER: "integer",
    FieldType.DECIMAL: "number",
    FieldType.MONEY: "number",
    FieldType.PERCENT: "number",
    FieldType.BOOLEAN: "boolean",
    FieldType.DATE: "date",
    FieldType.DATETIME: "timestamp",
    FieldType.TIME: "time",
}
_NAMED_FORMATS: Final = {FieldType.EMAIL: "email", FieldType.URL: "uri"}


def is_one(document: Mapping[str, Any]) -> bool:
    return document.get("kind") == "DataContract" or str(document.get("apiVersion", "")).startswith("v3")


def fields_of(document: Mapping[str, Any]) -> list[Spec]:
    objects = parts_of(document.get("schema"))
    if len(objects) != 1:
        names = ", ".join(str(one.get("name"))[:60] for one in objects[:10]) or "none"
        raise ContractRefused(f"has {len(objects)} objects in its schema ({names}); give a contract with one")
    parts = named_parts(objects[0].get("properties"))
    keys = [part["name"] for part in parts if part.get("primaryKey") is True]
    return [_field(part, is_key=keys == [part["name"]]) for part in parts]


def _field(part: Mapping[str, Any], *, is_key: bool) -> Spec:
    options = part.get("logicalTypeOptions")
    options = options if isinstance(options, Mapping) else {}
    kind = _TYPES.get(str(part.get("logicalType")), _FORMATS.get(str(options.get("format")), FieldType.TEXT))
    values = _valid_values(part)
    if values and kind is FieldType.TEXT:
        kind = FieldType.ENUM
    spec = {
        "name": part["name"],
        "label": texts(part.get("businessName"), 200),
        "type": str(kind),
        "required": part.get("required") is True or part.get("primaryKey") is True,
        "unique": part.get("unique") is True or is_key,
        "description": texts(part.get("description")),
        "examples": first(listed(part.get("examples"))),
        "allowed": values if kind is not FieldType.BOOLEAN else None,
        "pattern": whole_pattern(options.get("pattern")) if kind in TEXTS else None,
        "min_length": options.get("minLength"),
        "max_length": options.get("maxLength"),
        **bounds(kind, options.get("minimum"), options.get("maximum")),
    }
    return without_none({**spec, **own_keys(_custom(part))})


def _valid_values(part: Mapping[str, Any]) -> list[Any]:
    """The values that a quality check of the library lists as the only valid ones."""
    for check in parts_of(part.get("quality")):
        if "invalidValues" in (check.get("metric"), check.get("rule")):
            arguments = check.get("arguments")
            listing = arguments if isinstance(arguments, Mapping) else check
            if check.get("mustBe") == 0 and (values := listed(listing.get("validValues"))):
                return values
    return []


def _custom(part: Mapping[str, Any]) -> object:
    custom = parts_of(part.get("customProperties"))
    return next((one.get("value") for one in custom if one.get("property") == _OWN), None)


def exported(manifest: Manifest) -> Foreign:
    """A draft of a contract for the output's table."""
    table = {
        "name": manifest.name,
        "logicalType": "object",
        "physicalType": "table",
        "description": manifest.description,
        "properties": [_property(spec) for spec in manifest.fields],
    }
    return {
        "apiVersion": "v3.1.0",
        "kind": "DataContract",
        "id": manifest.name,
        "name": manifest.name,
        "version": "1.0.0",
        "status": "draft",
        "schema": [without_none(table)],
    }


def _property(spec: FieldSpec) -> Foreign:
    own = extension(spec)
    about = {
        "name": spec.name,
        "businessName": spec.label,
        "description": spec.description,
        "logicalType": _WRITTEN.get(spec.type, "string") if is_hard(spec) else "string",
        "examples": list(spec.examples),
        "customProperties": [{"property": _OWN, "value": own}] if own else None,
    }
    if not is_hard(spec):
        return without_none(about)
    rules = {
        "required": spec.required,
        "unique": spec.unique,
        "logicalTypeOptions": dict(_options(spec)) or None,
        "quality": list(_checks(spec)),
    }
    return without_none({**about, **rules})


def _options(spec: FieldSpec) -> Iterator[tuple[str, object]]:
    if spec.type in TEXTS:
        if spec.pattern is not None:
            yield "pattern", f"^(?:{spec.pattern})$"
        if spec.type in _NAMED_FORMATS:
            yield "format", _NAMED_FORMATS[spec.type]
        lengths = (("minLength", spec.min_length), ("maxLength", spec.max_length))
        yield from ((name, value) for name, value in lengths if value is not None)
    elif spec.type is not FieldType.BOOLEAN:
        as_is = spec.type in NUMERIC
        for name, value in (("minimum", spec.min), ("maximum", spec.max)):
            if value is not None:
                yield name, value if as_is else str(value)


def _checks(spec: FieldSpec) -> Iterator[Foreign]:
    if values := values_of(spec):
        yield {"type": "library", "metric": "invalidValues", "arguments": {"validValues": values}, "mustBe": 0}
