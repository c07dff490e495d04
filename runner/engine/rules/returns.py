"""Whether a function returns something on every way through it: without a `return` it yields None, like a blank."""

import ast
from collections.abc import Iterable, Iterator
from typing import Literal

Returns = Literal["never", "sometimes", "always"]
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def returns_of(source: bytes, name: str, line: int) -> Returns:
    """Return how the function of this name that starts at this line ends; `always` if it cannot be found."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name == name and _first_line(node) == line:
            if not any(isinstance(inner, ast.Return) and inner.value is not None for inner in _inside(node.body)):
                return "never"
            return "always" if _never_falls_through(node.body) else "sometimes"
    return "always"


def _first_line(node: ast.FunctionDef) -> int:
    """Return the line at which a function starts, decorators included."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _inside(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of functions within it."""
    for node in nodes:
        yield node
        if not isinstance(node, _SCOPES):
            yield from _inside(ast.iter_child_nodes(node))


def _never_falls_through(body: list[ast.stmt]) -> bool:
    """Whether no way through these statements leads past their end."""
    last = body[-1]
    if isinstance(last, ast.Return):
        return last.value is not None
    if isinstance(last, ast.If):
        return bool(last.orelse) and _never_falls_through(last.body) and _never_falls_through(last.orelse)
    if isinstance(last, ast.With):
        return _never_falls_through(last.body)
    if isinstance(last, ast.Try):
        return _try_ends(last)
    if isinstance(last, ast.Match):
        return _is_exhaustive(last) and all(_never_falls_through(case.body) for case in last.cases)
    if isinstance(last, ast.While):
        return _is_endless(last)
    return isinstance(last, ast.Raise)


def _try_ends(node: ast.Try) -> bool:
    """Whether no way through a `try` leads past its end."""
    if node.finalbody and _never_falls_through(node.finalbody):
        return True
    return _never_falls_through(node.orelse or node.body) and all(
        _never_falls_through(handler.body) for handler in node.handlers
    )


def _is_exhaustive(node: ast.Match) -> bool:
    """Whether the last case matches anything."""
    case = node.cases[-1]
    return isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None


def _is_endless(node: ast.While) -> bool:
    """Whether the condition is always true, and nothing breaks out."""
    is_always = isinstance(node.test, ast.Constant) and bool(node.test.value)
    return is_always and not any(isinstance(inner, ast.Break) for inner in _inside(node.body))
