"""One budget for everything that a tenant wrote: bytes, values, depth and mistakes.

Manifests, memories, decisions, events and the bodies of requests are read by processes that serve everybody. A text is
measured before it is parsed, and its validation ends with the twentieth mistake, so it costs what it weighs: at most a
second and 50 MiB for each MB (docs/explanation/cost.md). What is wrong with it is given as a few short lines; no error
of a parser outlives `read`, since such errors hold on to the whole text.

Theory of operation. pydantic collects every mistake of a document, several hundred bytes for each, and has no limit.
So a document of many values, or of many mistakes, is validated by another validator, made of the same schema: whatever
a list or an object may hold any number of is counted, and left out unread once there are enough mistakes; of the
unknown keys of an object only the first ones are reported.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, islice
from typing import Any, Final, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticOmit, SchemaValidator, core_schema

from core.errors import Problem
from core.wording import no_constant, no_duplicates, problem_of, shown

MAX_MISTAKES: Final = 20
_SOME: Final = 1000  # lists and objects that any text may hold
_APART: Final = 8  # bytes of a text for each further one
_FEW: Final = 2000  # values of a text whose mistakes may be collected first and counted later
# A text in JSON, also one that does not end: nothing is ever tried twice.
_TEXT: Final = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_STEPS: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}

Model = TypeVar("Model", bound=BaseModel)
Wording = Callable[[ErrorDetails], Problem]  # words one mistake
# Looks at a document before it is validated: what is wrong with it as a whole.
Check = Callable[[dict[str, object]], list[Problem]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """What a text may have."""

    bytes: int
    values: int  # of all its lists and objects
    depth: int = 50


class Weight(NamedTuple):
    values: int
    depth: int
    containers: int  # lists and objects among the values


class _Mistakes:
    """Those of the document that is being validated."""

    __slots__ = ("found", "more")

    def __init__(self) -> None:
        self.found = 0
        self.more = False  # whether something was left out unread


def weigh(body: bytes) -> Weight:
    """How much a text holds if it is JSON, in one pass and without parsing it; never less than it does."""
    bare = _TEXT.sub("", body.decode("latin-1")).encode("latin-1")  # as text: joining bytes takes 80 for each piece
    opened = bare.count(b"[") + bare.count(b"{")
    depth = max(accumulate(map(_STEPS.__getitem__, bare.translate(None, _NO_BRACKETS))), default=0)
    return Weight(bare.count(b",") + opened, depth, opened)


def read(
    body: bytes, kind: type[Model], budget: Budget, *, check: Check | None = None, twins: bool = False
) -> Model | list[Problem]:
    """A document of a kind, or what is wrong with it. `twins`: whether an object may have a key twice."""
    found = parse(body, budget, twins=twins)
    if isinstance(found, list):
        return found
    if check is not None and (wrong := check(found.raw)):
        return wrong
    return validate(kind, found.raw, values=found.values)


class Parsed(NamedTuple):
    raw: dict[str, object]
    values: int


def within(body: bytes, budget: Budget) -> Weight | Problem:
    """The weight of a text within its budget, or what it has too much of."""
    if len(body) > budget.bytes:
        return Problem("$", f"is {len(body)} bytes", f"at most {budget.bytes} bytes")
    weight = weigh(body)
    if weight.depth > budget.depth:
        return Problem("$", "is nested too deeply", f"at most {budget.depth} levels")
    if weight.values > budget.values:
        return Problem("$", "holds too many values", f"at most {budget.values} in all")
    most = _SOME + len(body) // _APART  # one of two bytes takes a hundred of memory
    if weight.containers > most:
        return Problem("$", f"holds {weight.containers} lists and objects", f"at most {most} in a text of this length")
    return weight


def plain(body: bytes, budget: Budget) -> Any:
    """Any JSON within its budget, as forgiving as `json.loads`; raises ValueError."""
    over = within(body, budget)
    if isinstance(over, Problem):
        raise ValueError(f"it {over.problem}; {over.allowed}")  # noqa: TRY004 - as of text that is not JSON
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        why = str(error)
    raise ValueError(f"it is not JSON: {why}")


def parse(body: bytes, budget: Budget, *, twins: bool = False) -> Parsed | list[Problem]:
    """A JSON object within its budget, or what is wrong with it."""
    weight = within(body, budget)
    if isinstance(weight, Problem):
        return [weight]
    try:
        pairs = None if twins else no_duplicates
        raw = json.loads(body.decode("utf-8-sig"), parse_constant=no_constant, object_pairs_hook=pairs)
    except UnicodeDecodeError as error:
        return [Problem("$", f"is not UTF-8 (byte {error.start})", "a JSON object in UTF-8")]
    except (ValueError, RecursionError) as error:
        long = "integer string conversion" in str(error)
        problem = "holds a number of thousands of digits" if long else f"is not JSON: {error}"
        return [Problem("$", problem, "a JSON object, each key once")]
    if b"\\u" in body and (half := _half_character(raw)) is not None:
        return [Problem("$", f"holds {half}, which is half a character", "text that can be written as UTF-8")]
    if not isinstance(raw, dict):
        return [Problem("$", f"is {shown(raw)}", "a JSON object: { ... }")]
    return Parsed(raw, weight.values)


def validate(
    kind: type[Model], raw: dict[str, object], *, values: int, wording: Wording | None = None
) -> Model | list[Problem]:
    """A model of a document, or the first mistakes in it. `values`: how many it holds."""
    try:
        if values <= _FEW:
            return kind.model_validate(raw)
    except ValidationError as error:
        if error.error_count() <= MAX_MISTAKES:
            return mistakes(error, kind, wording=wording)
    counted = _Mistakes()
    try:
        made: Model = _counting(kind).validate_python(raw, context=counted)
    except ValidationError as error:
        return mistakes(error, kind, wording=wording, more=counted.more)
    # Nothing is left out of a document without enough mistakes to refuse it: this is to be sure.
    return kind.model_validate(raw) if counted.more else made


def mistakes(
    error: ValidationError,
    kind: type[BaseModel],
    *,
    wording: Wording | None = None,
    more: bool = False,
) -> list[Problem]:
    """The first mistakes that an error names, and whether there are more."""
    found = error.errors(include_url=False)
    problems = _joined([problem_of(one, kind) if wording is None else wording(one) for one in found[:MAX_MISTAKES]])
    if more or len(found) > MAX_MISTAKES:
        problems.append(Problem("$", "has more problems", f"none; these are the first {MAX_MISTAKES}"))
    return problems


def _joined(problems: Iterable[Problem]) -> list[Problem]:
    """Problems with one line for a value that may be of several kinds and is of none."""
    allowed: dict[tuple[str, str], list[str]] = {}
    for one in problems:
        allowed.setdefault((one.path, one.problem), []).append(one.allowed)
    return [Problem(path, what, " or ".join(dict.fromkeys(words))) for (path, what), words in allowed.items()]


def _half_character(raw: object) -> str | None:
    """A lone escaped surrogate, as written: valid in JSON, but not in UTF-8."""
    try:
        json.dumps(raw, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        return f"\\u{ord(error.object[error.start]):04x}"
    return None


@cache
def _counting(kind: type[BaseModel]) -> SchemaValidator:
    """A validator that stops after so many mistakes; slower than the model's own."""
    # Without prebuilt parts: those of the models inside count nothing.
    return SchemaValidator(_counted(kind.__pydantic_core_schema__), _use_prebuilt=False)


def _counted(node: Any) -> Any:
    """A schema whose items are counted: those of lists and tuples of any length, and the values of dictionaries."""
    if isinstance(node, list | tuple):
        return type(node)(map(_counted, node))
    if not isinstance(node, dict):
        return node
    made = {key: value if key in _NO_SCHEMA else _counted(value) for key, value in node.items()}
    match node.get("type"):
        case "list" | "set" | "frozenset" if "items_schema" in node:
            made["items_schema"] = _item(made["items_schema"])
        case "tuple" if (n := node.get("variadic_item_index")) is not None:
            made["items_schema"][n] = _item(made["items_schema"][n])
        case "dict" if "values_schema" in node:
            made["values_schema"] = _item(made["values_schema"])
        case "model" if node["schema"].get("type") == "model-fields":
            made = _object(made)
        case "union":
            both = zip(node["choices"], made["choices"], strict=True)
            made["choices"] = [new if new == old else _choice(new) for old, new in both]
    return made


_NO_SCHEMA: Final = frozenset({"metadata", "serialization", "config", "default", "expected", "function", "cls"})


def _item(schema: Any) -> Any:
    def item(value: Any, handler: Callable[[Any], Any], info: Any) -> Any:
        if info.context.found >= MAX_MISTAKES:
            info.context.more = True
            raise PydanticOmit
        return _counting_mistakes(value, handler, info.context)

    return core_schema.with_info_wrap_validator_function(item, schema)


def _choice(schema: Any) -> Any:
    """One of a union's: its mistakes are none if another one fits, so they are counted by themselves."""
    if isinstance(schema, tuple):
        return (_choice(schema[0]), schema[1])

    def choice(value: Any, handler: Callable[[Any], Any], info: Any) -> Any:
        before, info.context.found = info.context.found, 0
        try:
            return handler(value)
        finally:
            info.context.found = before

    return core_schema.with_info_wrap_validator_function(choice, schema)


def _object(schema: Any) -> Any:
    known = frozenset(schema["schema"]["fields"])
    ref = schema.pop("ref", None)

    def model(value: Any, handler: Callable[[Any], Any], info: Any) -> Any:
        if isinstance(value, dict) and len(value) > len(known) + MAX_MISTAKES:
            unknown = islice((key for key in value if key not in known), MAX_MISTAKES)
            value = {key: value[key] for key in (*(key for key in known if key in value), *unknown)}
            info.context.more = True
        return _counting_mistakes(value, handler, info.context)

    return core_schema.with_info_wrap_validator_function(model, schema, ref=ref)


def _counting_mistakes(value: Any, handler: Callable[[Any], Any], mistakes: _Mistakes) -> Any:
    before = mistakes.found
    try:
        return handler(value)
    except ValidationError as error:
        mistakes.found = before + error.error_count()
        raise


def weight_of(body: bytes, *, each: int = 2000) -> int:
    """About how many bytes of memory a text takes once it is read, rather too many. `each`: a model; a dict is 300."""
    return 1000 + 2 * len(body) + 64 * (body.count(b",") + body.count(b"[")) + each * body.count(b"{")


def weight_of_problems(problems: Iterable[Problem]) -> int:
    return 1000 + 4 * sum(200 + len(p.path) + len(p.problem) + len(p.allowed) for p in problems)
