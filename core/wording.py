"""Words a manifest's problems: each names the place and what is allowed there."""

import json
from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails, PydanticCustomError

from core.errors import Problem

_SHOWN: Final = 60
_OURS: Final = "ade"
KIND_OF: Final = "kind:"  # begins the tags of what a value may be; pydantic puts them into its paths
# Patterns in words.
_PATTERNS: Final = {
    r"^[A-Za-z_][A-Za-z0-9_ .-]{0,99}$": "a letter or _ first, then letters, digits, blanks and _ . - (at most 100)",
    r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$": "a letter or _ first, then letters, digits, _ and - (at most 64)",
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$": "a letter or digit first, then letters, digits and . _ - (at most 64)",
    r"^[1-9][0-9]{0,4}[smhd]$": "a number and a unit: s, m, h or d, such as 7d",
    r"^[A-Z]{1,3}[1-9][0-9]{0,6}:[A-Z]{1,3}[1-9][0-9]{0,6}$": "a range such as A3:C94",
    r"^[A-Z]{1,3}$": "a column's letters, such as C or AA",
    r"^[^\[\]:*?/\\]+$": "1 to 31 characters, none of [ ] : * ? / \\",
}
_KINDS: Final = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "string_type": "a text in quotes",
    "tuple_type": "a list: [ ... ]",
    "list_type": "a list: [ ... ]",
    "dict_type": "an object: { ... }",
    "model_type": "an object: { ... }",
    "model_attributes_type": "an object: { ... }",
    "datetime_parsing": "an ISO 8601 time such as 2026-01-31T00:00:00Z",
    "datetime_from_date_parsing": "an ISO 8601 time such as 2026-01-31T00:00:00Z",
    "datetime_type": "an ISO 8601 time such as 2026-01-31T00:00:00Z",
    "finite_number": "a finite number",
}
_BOUNDS: Final = {
    "greater_than_equal": ("ge", "at least {}"),
    "greater_than": ("gt", "more than {}"),
    "less_than_equal": ("le", "at most {}"),
    "less_than": ("lt", "less than {}"),
    "string_too_short": ("min_length", "at least {} character(s)"),
    "string_too_long": ("max_length", "at most {} characters"),
    "too_short": ("min_length", "at least {} item(s)"),
    "too_long": ("max_length", "at most {} items"),
}


# What other systems call a type, an operator or a key.
_ELSEWHERE: Final = {
    **dict.fromkeys(("string", "str", "varchar", "nvarchar", "char", "any", "object"), ("text",)),
    **dict.fromkeys(("number", "numeric", "float", "double", "real", "num"), ("decimal",)),
    **dict.fromkeys(("int", "int64", "long", "bigint", "smallint", "serial", "whole"), ("integer",)),
    **dict.fromkeys(("currency", "amount", "price"), ("money",)),
    **dict.fromkeys(("bool", "flag", "yes/no", "logical"), ("boolean",)),
    **dict.fromkeys(("timestamp", "date-time", "date_time"), ("datetime",)),
    **dict.fromkeys(("percentage", "%", "share"), ("percent",)),
    **dict.fromkeys(("tel", "telephone", "mobile"), ("phone",)),
    **dict.fromkeys(("link", "uri", "website"), ("url",)),
    **dict.fromkeys(("mail", "e-mail"), ("email",)),
    **dict.fromkeys(("category", "list", "select"), ("enum",)),
    **dict.fromkeys(("choice", "choices", "enum", "options", "values"), ("enum", "allowed")),
    **dict.fromkeys(("alias", "aliases", "headers", "alternatives"), ("synonyms",)),
    **dict.fromkeys(("title", "header", "heading", "caption"), ("label",)),
    **dict.fromkeys(("mandatory", "notnull", "not_null"), ("required",)),
    **dict.fromkeys(("nullable",), ("optional",)),
    **dict.fromkeys(("format", "date_format", "dateformat"), ("formats",)),
    **dict.fromkeys(("regex", "regexp", "mask"), ("pattern",)),
    **dict.fromkeys(("minimum", "min_value"), ("min",)),
    **dict.fromkeys(("maximum", "max_value"), ("max",)),
    **dict.fromkeys(("formula", "expression", "source", "computed"), ("from",)),
    **dict.fromkeys(("fixed", "const"), ("constant",)),
    **dict.fromkeys(("columns",), ("fields",)),
    **dict.fromkeys(("=", "===", "eq", "is", "equals"), ("==",)),
    **dict.fromkeys(("<>", "ne", "is not", "\u2260"), ("!=",)),
    **dict.fromkeys(("=>", "gte", "ge", "\u2265"), (">=",)),
    **dict.fromkeys(("=<", "lte", "le", "\u2264"), ("<=",)),
    **dict.fromkeys(("gt",), (">",)),
    **dict.fromkeys(("lt",), ("<",)),
    **dict.fromkeys(("not_in", "notin", "nin"), ("not in",)),
    **dict.fromkeys(("blank", "null", "missing", "none", "is null"), ("empty",)),
    **dict.fromkeys(("filled", "exists", "not empty", "not null", "is not null"), ("present",)),
}


def wrong(problem: str, allowed: str, *at: str | int) -> PydanticCustomError:
    """An error for a validator to raise; `at` is the path below the validated value."""
    return PydanticCustomError(_OURS, "{problem}", {"problem": problem, "allowed": allowed, "at": list(at)})


def shown(value: object) -> str:
    """A value of the manifest, shortened for a message; costs as much as what is shown."""
    if isinstance(value, list | tuple | dict) and len(value) > _SHOWN:
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    text = json.dumps(_short(value), ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _short(value: object, depth: int = 3) -> object:
    """A value without what no message has room for."""
    if isinstance(value, str):
        return value[:_SHOWN]
    if isinstance(value, list | tuple):
        return [_short(one, depth - 1) for one in value[: _SHOWN if depth else 0]]
    if isinstance(value, dict):
        first = islice(value.items(), _SHOWN if depth else 0)
        return {str(key)[:_SHOWN]: _short(one, depth - 1) for key, one in first}
    return value


def problem_of(error: ErrorDetails, model: type[BaseModel]) -> Problem:
    """A pydantic error as one line of a rejection."""
    loc = _place(error["loc"])
    kind, context = error["type"], error.get("ctx", {})
    if kind == _OURS:
        return Problem(_path([*loc, *context["at"]]), context["problem"], context["allowed"])
    path = _path(loc)
    if kind == "missing":
        return Problem(path, "is missing", "this key is required")
    if kind == "extra_forbidden":
        return _unknown(path, str(loc[-1]), _keys(model, loc[:-1]))
    problem = f"is {shown(error['input'])}"
    if kind in ("literal_error", "enum"):
        expected = str(context.get("expected", "")).replace("'", "").replace("True", "true")
        return Problem(path, problem + nearest(error["input"], expected.replace(" or ", ", ").split(", ")), expected)
    if kind == "string_pattern_mismatch":
        pattern = str(context.get("pattern"))
        return Problem(path, problem, _PATTERNS.get(pattern, pattern))
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return Problem(path, problem, words.format(context.get(key)))
    if kind == "value_error":
        return Problem(path, str(context.get("error", error["msg"])), "see docs/reference/manifest.md")
    return Problem(path, problem, _KINDS.get(kind, error["msg"]))


def _unknown(path: str, key: str, known: list[str]) -> Problem:
    return Problem(path, "is not a known key" + nearest(key, known), f"known keys here: {', '.join(known)}")


def nearest(key: object, known: Iterable[str]) -> str:
    """Words that name the known key, type or operator that was probably meant; empty if none is close."""
    if len(str(key)) > _SHOWN:
        return ""
    known, word = list(known), str(key).strip().casefold()
    word = word.partition("(")[0].rstrip() or word  # varchar(20)
    meant = [name for name in _ELSEWHERE.get(word, ()) if name in known]
    near = meant or get_close_matches(word, known, n=1, cutoff=0.66)
    return f"; did you mean {near[0]}?" if near else ""


def _place(loc: tuple[int | str, ...]) -> list[int | str]:
    """The path without the type names that pydantic inserts."""
    return [p for p in loc if not (isinstance(p, str) and p.startswith(("tuple[", "function-", "list[", KIND_OF)))]


def _path(loc: Iterable[int | str]) -> str:
    return "$" + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in loc)


def _keys(model: type[BaseModel], loc: Iterable[int | str]) -> list[str]:
    """The keys that are allowed at a place."""
    here: Any = model
    for part in loc:
        if get_origin(here) is dict:
            here = get_args(here)[1]  # by names that are not ours
        elif isinstance(part, str):
            if not (isinstance(here, type) and issubclass(here, BaseModel)) or part not in here.model_fields:
                return []
            here = here.model_fields[part].annotation
        here = _model_in(here)
    return keys_of(here) if isinstance(here, type) and issubclass(here, BaseModel) else []


def keys_of(model: type[BaseModel]) -> list[str]:
    """The keys of a model as a manifest spells them."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> Any:
    """The model inside a container or a union."""
    if get_origin(annotation) in (Annotated, tuple, list, Union, UnionType):
        inside = (_model_in(a) for a in get_args(annotation))
        return next((m for m in inside if isinstance(m, type) and issubclass(m, BaseModel)), annotation)
    return annotation


def no_constant(name: str) -> None:
    """For `json.loads`: NaN and Infinity are refused."""
    raise ValueError(f"{name} is not a JSON number")


def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, object]:
    """For `json.loads`: a key that an object has twice is refused."""
    seen = dict(pairs)
    if len(seen) != len(pairs):
        counts = Counter(k for k, _ in pairs)
        raise ValueError(f"duplicate key: {next(n for n, count in counts.items() if count > 1)}")
    return seen
