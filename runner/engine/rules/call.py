"""Calls a rule with the arguments it names, reports where it failed without the value, and finds misspelt names."""

import contextlib
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType, TracebackType
from typing import Any, Final, TypeGuard

from runner.engine.common.spelling import distance, joined
from runner.engine.contract import EndCode
from runner.engine.protocol import EngineStop
from runner.engine.rules.returns import Returns

_DIGITS: Final = re.compile(r"\d+")
_LONG: Final = 8  # letters from which two differences still count as a typo
_MOST_FILES: Final = 200
_MOST_BYTES: Final = 256 * 1024


def meant(name: str, known: Iterable[str]) -> str | None:
    """The known name that this one is a typo of, if any; names that differ in a number are different."""
    plain = name.casefold()
    for other in known:
        there = other.casefold()
        if name == other or (plain != there and _DIGITS.sub("", plain) == _DIGITS.sub("", there)):
            continue
        if joined(name) == joined(other):
            return other
        if min(len(plain), len(there)) < 4 or abs(len(plain) - len(there)) > 2:
            continue
        if distance(plain, there) <= (1 if min(len(plain), len(there)) < _LONG else 2):
            return other
    return None


def check_folders(folder: Path, parts: Mapping[str, Collection[str]], fields: Collection[str]) -> None:
    """Raise EngineStop for rule files in a folder that is not loaded; `parts`: folders and their functions."""
    inside = sorted(folder.iterdir())
    for entry in inside:
        part = meant(entry.name, parts) if entry.is_dir() and entry.name not in parts else None
        if part is not None and (file := _with_rules(entry, parts[part])):
            where = f"{entry.name}/{file}"
            raise _misplaced(where, f"{entry.name}/ is not a folder of rules; did you mean {part}/?", f"{part}/{file}")
    for part, functions in parts.items():
        for entry in sorted((folder / part).iterdir()) if (folder / part).is_dir() else ():
            nested = entry.is_dir() and not entry.name.startswith(("_", ".")) and _with_rules(entry, functions)
            if nested:
                where = f"{part}/{entry.name}/{nested}"
                raise _misplaced(where, f"{where} is one folder too deep", f"{part}/{nested}")
    for entry in inside:
        stray = entry.suffix == ".py" and entry.stem in fields and not (folder / "columns" / entry.name).exists()
        if stray and "columns" in parts and _defines(entry, parts["columns"]):
            raise _misplaced(entry.name, f"{entry.name} is outside columns/", f"columns/{entry.name}")


def check_field(stem: str, file: str, fields: Collection[str]) -> None:
    """Raise EngineStop if the name of a file in columns/ is a typo of a declared field."""
    if stem not in fields and (near := meant(stem, fields)):
        raise EngineStop(
            EndCode.RULE_ERROR,
            f"{file} does not name a declared field; did you mean {near}?",
            file=file,
            line=1,
            remedy=f"name it columns/{near}.py, or declare a field {stem} in the manifest",
        )


def check_functions(module: Mapping[str, Any], file: str, used: Collection[str], known: Collection[str]) -> None:
    """Raise EngineStop if a function's name is a typo of a rule, or if a rule would never be called."""
    functions = [f for f in module.values() if _is_defined_in(f, file)]
    called = {name for f in functions for name in _names(f.__code__)}
    for name, item in module.items():
        if name in used or name in called or name.startswith("_") or not callable(item) or isinstance(item, type):
            continue
        if _is_defined_in(item, file):
            _check_name(item, name, file, known)
        elif name in known or ("detect" in known and name.startswith("detect_")):
            what = f"{name} in {file} is not a function of this file, so it would never be called"
            raise _wrong(file, 1, what, f"define it here: def {name}(*, …), and call the other one from it")


def _is_defined_in(item: object, file: str) -> TypeGuard[FunctionType]:
    """Whether an item of a module is a function that its file defines."""
    return isinstance(item, FunctionType) and item.__code__.co_filename == file


def _check_name(function: FunctionType, name: str, file: str, known: Collection[str]) -> None:
    """Raise EngineStop if the name of a function that nothing calls is a typo of a rule."""
    head, _, rest = name.partition("_")
    near = None
    if "detect" in known and distance(head, "detect") == 1:
        near = f"detect_{rest}" if rest else "detect"
    elif not any(name.startswith(rule) for rule in known):
        near = meant(name, known)
    if near is not None:
        what = f"{name} in {file} is not a rule; did you mean {near}?"
        remedy = f"name it {near}, or start its name with _ if it is a helper"
        raise _wrong(file, function.__code__.co_firstlineno, what, remedy)


def _with_rules(folder: Path, functions: Collection[str]) -> str | None:
    files = sorted(folder.glob("*.py"))[:_MOST_FILES]
    return next((f.name for f in files if not f.name.startswith("_") and _defines(f, functions)), None)


def _defines(file: Path, functions: Collection[str]) -> bool:
    names = "|".join(rf"{name}\w*" if name == "detect" else name for name in functions)
    with file.open("rb") as source:
        text = source.read(_MOST_BYTES).decode("utf-8", "replace")
    return re.search(rf"^def (?:{names})\s*\(\s*\*", text, re.MULTILINE) is not None


def _names(code: CodeType) -> set[str]:
    found = set(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= _names(inner)
    return found


def _misplaced(file: str, what: str, right: str) -> EngineStop:
    return _wrong(file, 1, f"{what} ({file} would never be called)", f"move it to {right}")


def _wrong(file: str, line: int, what: str, remedy: str) -> EngineStop:
    return EngineStop(EndCode.RULE_ERROR, what, file=file, line=line, remedy=remedy)


_NETWORK: Final = frozenset(
    {"URLError", "gaierror", "ConnectionError", "ConnectError", "ConnectTimeout", "NewConnectionError", "MaxRetryError"}
)
_NO_NETWORK: Final = (
    ": the box of a rule has no network, unless the manifest asks for runtime_network_access and the operator allows "
    "it; put what it looks up into an auxiliary input"
)
_MOST_LINKS: Final = 10  # exceptions in a chain
_VARARGS: Final = 0x04
_VARKEYS: Final = 0x08
LOGGED_KINDS: Final = 5  # distinct failures of one rule in the log
FRAMES: Final = 20
LONGEST: Final = 4000  # characters of one traceback
SOURCES: Final[dict[str, bytes]] = {}  # rule file -> its source, for tracebacks


class RuleFailed(Exception):
    """A rule raised an exception or returned the wrong shape. Holds the place and the kind of error, never a value."""

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
        self.returns: Returns = "always"
        code: CodeType = function.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        self.wants = frozenset(code.co_varnames[:count])
        self.sees_others = not self.wants.isdisjoint(("columns", "record"))  # uses other fields of the row
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
            return f"asks for {', '.join(strange)}, which rules of this kind do not get"
        return None

    def call(self, **given: Any) -> Any:
        """Call the function with the arguments it names; raises RuleFailed for any exception."""
        arguments = given if self.takes_all else {k: v for k, v in given.items() if k in self.wants}
        try:
            return self.function(**arguments)
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:  # noqa: BLE001  # a rule may raise anything, SystemExit included
            kind, line = self.class_of(error) + network_hint(error), _line_in(error.__traceback__, self.file)
            self._log(error, line, given)
        # Raised outside the handler: the rule's own exception may contain a cell's value and must not be chained.
        raise RuleFailed(self, f"raised {kind}", line, "correct the rule at this line; try it with `ade try`")

    def _log(self, error: BaseException, line: int | None, given: Mapping[str, Any]) -> None:
        """Write the traceback to the job's log, which belongs to its owner and may contain data; each kind once."""
        self.raised += 1
        kind = (type(error).__name__, line)
        if kind in self._logged or len(self._logged) >= LOGGED_KINDS:
            return
        self._logged.add(kind)
        log_traceback(error, f"{self.name} raised{_place(given)}")

    def summary(self) -> str | None:
        """A final line for the log if it does not show every failure."""
        if self.raised <= len(self._logged):
            return None
        return f"{self.name} raised in {self.raised} calls; the log shows the first of each kind ({len(self._logged)})"

    def literal(self, text: Any) -> str | None:
        """A rule's message if it is a literal in its source; one built at run time may contain data."""
        return text if isinstance(text, str) and text in self.literals else None

    def class_of(self, value: Any) -> str:
        """Its nearest class that is written down somewhere; one made at run time may be named after a cell."""
        for kind in type(value).__mro__:
            home = sys.modules.get(str(kind.__module__))
            if self.literal(kind.__name__) or getattr(home, kind.__name__, None) is kind:
                return kind.__name__
        return "object"


def network_hint(error: BaseException) -> str:
    """What to tell an author whose rule wanted the network; empty if nothing speaks for that."""
    return _NO_NETWORK if any(_wants_network(one) for one in _chain(error)) else ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and those that it was raised from, or while handling."""
    one: BaseException | None = error
    for _ in range(_MOST_LINKS):
        if one is None:
            return
        yield one
        one = one.__context__ if one.__cause__ is None else one.__cause__


def _wants_network(error: BaseException) -> bool:
    """Whether an exception has the name of a failed connection, or is of the system and came from the socket module."""
    if any(kind.__name__ in _NETWORK for kind in type(error).__mro__):
        return True
    trace = error.__traceback__ if isinstance(error, OSError) else None
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__") == "socket":
            return True
        trace = trace.tb_next
    return False


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
    """Print a traceback without the engine's own frames, limited in length."""
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
    """Every string literal of a module."""
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
    """The innermost line of the rule's own file in a traceback."""
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
