"""What all contracts of other tools have in common."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from core.errors import AdeError
from core.fields import FIELD_NAME, MAX_EXPRESSION, FieldSpec, FieldType, Lookup, fits, problem_with

Spec = dict[str, Any]  # a field as a manifest writes it; validated with the manifest
Foreign = dict[str, Any]  # a part of another tool's document
MOST_EXAMPLES: Final = 20
# Keys of a field that other tools have no word for: own as an extension, so that nothing is lost on the way back.
OWN: Final = ("synonyms", "clean", "formats", "day_first", "decimal", "unit", "optional", "default", "number_format")
# Keys that other tools would enforce: only a note where a finding is a warning.
RULES: Final = ("required", "unique", "pattern", "min", "max", "min_length", "max_length", "allowed")
TEXTS: Final = frozenset({FieldType.TEXT, FieldType.EMAIL, FieldType.PHONE, FieldType.URL, FieldType.ENUM})


class ContractRefused(AdeError):
    """A contract of another tool cannot be used."""


def field_name(name: str) -> str:
    """A name that a manifest takes for a field."""
    if re.fullmatch(FIELD_NAME, name):
        return name
    made = re.sub(r"[^A-Za-z0-9_ .-]+", "_", name).strip("_ ")[:90]
    return made if re.fullmatch(FIELD_NAME, made) else f"column_{made}".strip("_")


def texts(value: object, most: int = 2000) -> str | None:
    """A text of a foreign document, if it is one."""
    return value[:most] if isinstance(value, str) and value.strip() else None


def listed(value: object) -> list[Any]:
    """The plain values of a list."""
    return (
        [one for one in value if isinstance(one, str | int | float) and is_finite(one)]
        if isinstance(value, list)
        else []
    )


def parts_of(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def named_parts(value: object) -> list[Mapping[str, Any]]:
    """The fields of a list, each of which needs a name: none is left out without notice."""
    parts = [part for part in parts_of(value) if texts(part.get("name"))]
    if isinstance(value, list) and len(parts) < len(value):
        raise ContractRefused(f"has {len(value)} fields, and only {len(parts)} of them have a name")
    return parts


def is_finite(value: object) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def whole_pattern(pattern: object) -> str | None:
    """A pattern that is searched for, as one that the whole value matches; None if Python cannot read it."""
    if not isinstance(pattern, str) or len(pattern) > MAX_EXPRESSION - 10 or problem_with(pattern) is not None:
        return None
    start, end = pattern.startswith("^"), pattern.endswith("$") and not pattern.endswith("\\$")
    bare = pattern[1 if start else 0 : -1 if end else None]
    if start and end and (inside := unwrapped(bare)) != bare:
        return inside
    if "|" in bare and (start or end):
        return f".*(?:{pattern}).*"
    return f"{'' if start else '.*'}{bare}{'' if end else '.*'}"


def unwrapped(pattern: str) -> str:
    """A pattern without the one group around it; as it is if there is none."""
    group = re.fullmatch(r"\((?:\?:)?(?P<inside>[^()\\]*(?:\\.[^()\\]*|\([^()\\]*\)[^()\\]*)*)\)", pattern, re.DOTALL)
    return pattern if group is None or group["inside"].startswith("?") else group["inside"]


def bounds(kind: FieldType, low: object, high: object) -> Spec:
    """Bounds that go with a type; others are left out."""
    found = {"min": low, "max": high}
    comparable = {
        name: value
        for name, value in found.items()
        if isinstance(value, str | int | float)
        and not isinstance(value, bool)
        and is_finite(value)
        and fits(kind, value) is None
    }
    return comparable if kind not in TEXTS | {FieldType.BOOLEAN} else {}


def without_none(spec: Mapping[str, Any]) -> Spec:
    return {key: value for key, value in spec.items() if value is not None and value != [] and value is not False}


_LOST: Final = frozenset({FieldType.MONEY, FieldType.PERCENT, FieldType.PHONE})  # types that no other tool has


def extension(spec: FieldSpec, lost: frozenset[FieldType] = _LOST) -> Foreign:
    """What another tool has no word for; `lost`: types that it does not have."""
    raw = spec.model_dump(mode="json", exclude_defaults=True)
    own: Foreign = {key: value for key, value in raw.items() if key in OWN}
    if spec.type in lost and is_hard(spec):
        own["type"] = str(spec.type)
    if spec.severity == "warning":
        own["warning"] = {key: raw[key] for key in (*RULES, "type") if key in raw}
    elif isinstance(spec.allowed, Lookup):
        own["allowed"] = raw["allowed"]
    return own


def own_keys(extended: object) -> Spec:
    """The keys of an extension that this product wrote, for a field that is read back."""
    if not isinstance(extended, Mapping):
        return {}
    known = (*OWN, *RULES, "type")
    own: Spec = {key: extended[key] for key in known if key in extended}
    if isinstance(warned := extended.get("warning"), Mapping):
        own |= {key: warned[key] for key in known if key in warned} | {"severity": "warning"}
    return own


def is_hard(spec: FieldSpec) -> bool:
    """Whether other tools may enforce a field's rules: a finding of it is an error."""
    return spec.severity == "error"


def values_of(spec: FieldSpec) -> list[str | int | float | bool]:
    """The allowed values that are listed; those of a lookup are not known here."""
    return list(spec.allowed) if isinstance(spec.allowed, tuple) and is_hard(spec) else []


def first(values: Iterable[Any], most: int = MOST_EXAMPLES) -> list[Any]:
    return list(values)[:most]
