"""Checks what a manifest computes: its expressions, the fields that they name, and the order of what is computed.

The language is the engine's own (`runner/engine/expressions`): the same parser reads an expression here, where nothing
is evaluated, and in the box. Parsing is bounded by `MAX_CHARACTERS` for all expressions of a manifest together.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from pydantic_core import PydanticCustomError

from core.wording import nearest, wrong
from runner.engine.expressions.grammar import MAX_LENGTH, ExpressionError, parse
from runner.engine.expressions.signatures import (
    BLANK,
    KIND_OF_TYPE,
    KINDS,
    CircularFields,
    Expression,
    compile_expression,
    sort_computed,
)

MAX_CHARACTERS: Final = 20_000  # of all expressions of a manifest
__all__ = ["KINDS", "MAX_CHARACTERS", "MAX_LENGTH", "check_field", "check_order", "check_syntax", "kind_of", "typed"]


def check_syntax(text: str) -> str:
    """The expression itself, if it can be parsed; its fields and kinds are checked with the whole manifest."""
    try:
        parse(text)
    except ExpressionError as error:
        raise _wrong(error) from None
    return text


def typed(text: str, types: Mapping[str, str], kinds: Sequence[str], *at: str | int) -> Expression:
    """An expression over declared fields that gives one of some kinds; `at`: where the manifest has it."""
    try:
        found = compile_expression(text, types)
    except ExpressionError as error:
        raise _wrong(error, *at) from None
    if found.kind == BLANK or found.kind not in kinds:
        result = "nothing but blanks" if found.kind == BLANK else f"a {found.kind}"
        raise wrong(f"gives {result}", f"an expression that gives a {' or a '.join(kinds)}", *at)
    return found


def kind_of(field_type: str) -> str:
    """The kind of a field's values in expressions."""
    return KIND_OF_TYPE[field_type]


def check_field(name: str, known: Mapping[str, object], *at: str | int) -> None:
    """Refuse a name that no field has."""
    if name not in known:
        raise wrong(f"is {name}{nearest(name, known)}", f"a declared field: {', '.join(list(known)[:20])}", *at)


def check_order(uses: Mapping[str, Sequence[str]], places: Mapping[str, int]) -> None:
    """Refuse fields that are computed from each other. `places`: the number of each computed field."""
    try:
        sort_computed(uses)
    except CircularFields as error:
        what = f"computes {error.path[0]} from itself: {' → '.join(error.path[:10])}"
        raise wrong(what, "fields that are computed from others", "fields", places[error.path[0]], "from") from None


def _wrong(error: ExpressionError, *at: str | int) -> PydanticCustomError:
    return wrong(f"{error.problem} (at character {error.at})", error.allowed, *at)
