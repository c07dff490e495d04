"""Regular expressions of manifests: checked here, compiled only in a box.

Compiling costs what the expression asks for: a class of 65,000 characters without regard to case takes a millisecond,
and a short manifest has room for thousands. Parsing costs its length, and finds all but one of the mistakes; that one,
a look-behind of no fixed width, is looked for here.
"""

import re
from re import _constants, _parser  # type: ignore[attr-defined] # the parser behind re.compile has no other name
from typing import Any

MAX_LENGTH = 1000


def problem_with(pattern: str) -> str | None:
    """What keeps a pattern from being compiled; None: nothing."""
    try:
        parsed = _parser.parse(pattern)
        return "look-behind requires fixed-width pattern" if _loose_look_behind(parsed) else None
    except (re.error, RecursionError, OverflowError) as error:
        return str(error) or type(error).__name__


def _loose_look_behind(parsed: Any) -> bool:
    for op, argument in parsed:
        if op in (_constants.ASSERT, _constants.ASSERT_NOT) and argument[0] < 0:
            low, high = argument[1].getwidth()
            if low != high:
                return True
        if any(_loose_look_behind(inner) for inner in _inside(argument)):
            return True
    return False


def _inside(argument: Any) -> list[Any]:
    """The patterns that a part of a pattern holds."""
    if isinstance(argument, _parser.SubPattern):
        return [argument]
    if isinstance(argument, tuple | list):
        return [inner for one in argument for inner in _inside(one)]
    return []
