"""Call a rule with the arguments it names, and say where it broke without saying on what."""

from collections.abc import Callable, Iterable
from types import CodeType, TracebackType
from typing import Any, Final

_VARARGS: Final = 0x04
_VARKEYS: Final = 0x08


class RuleFailed(Exception):
    """A rule raised or returned a wrong shape. Holds the place and the kind of error, never a value."""

    def __init__(self, rule: "Rule", what: str, line: int | None, remedy: str) -> None:
        super().__init__(what)
        self.rule = rule
        self.what = what
        self.line = line if line is not None else rule.line
        self.remedy = remedy

    @property
    def message(self) -> str:
        return f"{self.rule.name} {self.what} ({self.rule.file}, line {self.line})"


class Rule:
    """One function of a config package."""

    def __init__(self, function: Callable[..., Any], file: str, literals: frozenset[str]) -> None:
        self.function = function
        self.file = file
        self.literals = literals
        code: CodeType = function.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        self.wants = frozenset(code.co_varnames[:count])
        self.sees_others = not self.wants.isdisjoint(("columns", "record"))  # asks for other fields of the row
        self.takes_all = bool(code.co_flags & _VARKEYS)
        self.line = code.co_firstlineno
        self.name = f"{file.removesuffix('.py').replace('/', '.')}.{function.__name__}"
        defaults = len(function.__defaults__ or ())
        positional = code.co_varnames[: code.co_argcount]
        self.needs = frozenset(positional[: len(positional) - defaults]) | (
            frozenset(code.co_varnames[code.co_argcount : count]) - set(function.__kwdefaults__ or {})
        )

    def problem(self, known: Iterable[str]) -> str | None:
        """What is wrong with the function's signature, if anything."""
        code: CodeType = self.function.__code__
        if code.co_posonlyargcount or code.co_flags & _VARARGS:
            return "takes positional arguments; rules are called with keyword arguments only"
        if strange := sorted(self.needs - set(known)):
            return f"asks for {', '.join(strange)}, which no rule of this kind is given"
        return None

    def call(self, **given: Any) -> Any:
        """Call the function with the arguments it names; RuleFailed for whatever it raises."""
        arguments = given if self.takes_all else {k: v for k, v in given.items() if k in self.wants}
        try:
            return self.function(**arguments)
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:  # noqa: BLE001  # a rule may raise anything, SystemExit included
            kind, line = type(error).__name__, _line_in(error.__traceback__, self.file)
        # Raised outside the handler: the rule's own exception may hold a cell's value and must not travel on.
        raise RuleFailed(self, f"raised {kind}", line, "correct the rule at this line; try it with `ade try`")

    def said(self, text: Any) -> str | None:
        """A message of the rule if it stands as such in its source; one made at run time may hold data."""
        return text if isinstance(text, str) and text in self.literals else None


def literals_of(code: CodeType) -> frozenset[str]:
    """Every text that stands literally in a module's source."""
    found: set[str] = set()
    todo: list[Any] = [code]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            found.add(item)
        elif isinstance(item, CodeType):
            todo += item.co_consts
        elif isinstance(item, (tuple, frozenset)):
            todo += item
    return frozenset(found)


def _line_in(trace: TracebackType | None, file: str) -> int | None:
    """The innermost line of the rule's own file on the way to the error."""
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
