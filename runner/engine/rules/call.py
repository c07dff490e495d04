"""Call a rule with the arguments it names, and say where it broke without saying on what."""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from types import CodeType, TracebackType
from typing import Any, Final

_VARARGS: Final = 0x04
_VARKEYS: Final = 0x08
LOGGED_KINDS: Final = 5  # different failures of one rule that the log shows
FRAMES: Final = 20
LONGEST: Final = 4000  # characters of one traceback
SOURCES: Final[dict[str, bytes]] = {}  # rule file -> what it says, for tracebacks


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
        self.raised = 0
        self._logged: set[tuple[str, int | None]] = set()
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
            self._log(error, line, given)
        # Raised outside the handler: the rule's own exception may hold a cell's value and must not travel on.
        raise RuleFailed(self, f"raised {kind}", line, "correct the rule at this line; try it with `ade try`")

    def _log(self, error: BaseException, line: int | None, given: Mapping[str, Any]) -> None:
        """The traceback goes to the job's log, which is its owner's and may hold data; each kind of failure once."""
        self.raised += 1
        kind = (type(error).__name__, line)
        if kind in self._logged or len(self._logged) >= LOGGED_KINDS:
            return
        self._logged.add(kind)
        log_traceback(error, f"{self.name} raised{_place(given)}")

    def summary(self) -> str | None:
        """A closing line for the log where not every failure is in it."""
        if self.raised <= len(self._logged):
            return None
        return f"{self.name} raised in {self.raised} calls; the log shows the first of each kind ({len(self._logged)})"

    def said(self, text: Any) -> str | None:
        """A message of the rule if it stands as such in its source; one made at run time may hold data."""
        return text if isinstance(text, str) and text in self.literals else None


def _place(given: Mapping[str, Any]) -> str:
    words = [str(given[key]) for key in ("input", "sheet") if given.get(key) is not None]
    if given.get("column") is not None:
        words.append(f"column {given['column']}")
    row, rows = given.get("row") or given.get("row_index"), given.get("rows")
    if row is not None:
        words.append(f"row {row}")
    elif rows:
        words.append(f"row {rows[0]}" if len(rows) == 1 else f"rows {rows[0]} to {rows[-1]}")
    return f" on {', '.join(words)}" if words else ""


def log_traceback(error: BaseException, what: str) -> None:
    """Print what happened and where, as Python does, without our own frames and with a bound on its length."""
    import linecache  # noqa: PLC0415  # most jobs have no rule that raises
    import traceback  # noqa: PLC0415

    for file, source in SOURCES.items():
        linecache.cache[file] = (len(source), None, source.decode("utf-8", "replace").splitlines(keepends=True), file)
    whole = trace = error.__traceback__
    while trace is not None and str(trace.tb_frame.f_globals.get("__name__")).startswith("runner.engine."):
        trace = trace.tb_next
    try:
        said = "".join(traceback.format_exception(error.with_traceback(trace), limit=-FRAMES))
    except MemoryError:
        raise
    except BaseException:  # noqa: BLE001  # the exception is the author's own and may do anything when it is shown
        said = f"{type(error).__name__} (its text cannot be shown)\n"
    finally:
        error.__traceback__ = whole
    if len(said) > LONGEST:
        said = f"{said[: LONGEST // 2]}\n[…]\n{said[-LONGEST // 2 :]}"
    with contextlib.suppress(OSError, ValueError):  # a rule may have closed the log
        print(f"{what}\n{said}".encode(errors="backslashreplace").decode(), end="", flush=True)  # noqa: T201


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
