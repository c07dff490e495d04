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
_SHORTEST_NAME: Final = 4  # names with fewer letters are alike by chance
_LONG_NAME: Final = 8  # letters from which two differences still count as a typo
_MOST_FILES: Final = 200
_MOST_BYTES: Final = 256 * 1024


def closest_name(name: str, candidates: Iterable[str]) -> str | None:
    """Return the known name that this one is a typo of; None if of none. Names that differ in a number are
    different."""
    plain = name.casefold()
    for other in candidates:
        other_plain = other.casefold()
        if name == other or (plain != other_plain and _DIGITS.sub("", plain) == _DIGITS.sub("", other_plain)):
            continue
        if joined(name) == joined(other):
            return other
        shorter = min(len(plain), len(other_plain))
        if shorter < _SHORTEST_NAME or abs(len(plain) - len(other_plain)) > 2:
            continue
        if distance(plain, other_plain) <= (1 if shorter < _LONG_NAME else 2):
            return other
    return None


def check_folders(folder: Path, parts: Mapping[str, Collection[str]], fields: Collection[str]) -> None:
    """Raise EngineStop for rule files in a folder that is not loaded; `parts`: folders and their functions, `fields`:
    names of the declared ones."""
    _check_folder_names(folder, parts)
    _check_depth(folder, parts)
    for entry in sorted(folder.iterdir()):
        stray = entry.suffix == ".py" and entry.stem in fields and not (folder / "columns" / entry.name).exists()
        if stray and "columns" in parts and _defines(entry, parts["columns"]):
            raise _misplaced_file(entry.name, f"{entry.name} is outside columns/", f"columns/{entry.name}")


def _check_folder_names(folder: Path, parts: Mapping[str, Collection[str]]) -> None:
    """Raise EngineStop for a folder with rules whose name is nearly that of a part."""
    for entry in sorted(folder.iterdir()):
        part = closest_name(entry.name, parts) if entry.is_dir() and entry.name not in parts else None
        if part is not None and (file := _file_with_rules(entry, parts[part])):
            where = f"{entry.name}/{file}"
            raise _misplaced_file(
                where, f"{entry.name}/ is not a folder of rules; did you mean {part}/?", f"{part}/{file}"
            )


def _check_depth(folder: Path, parts: Mapping[str, Collection[str]]) -> None:
    """Raise EngineStop for a file with rules in a folder below that of a part."""
    for part, functions in parts.items():
        for entry in sorted((folder / part).iterdir()) if (folder / part).is_dir() else ():
            nested = entry.is_dir() and not entry.name.startswith(("_", ".")) and _file_with_rules(entry, functions)
            if nested:
                where = f"{part}/{entry.name}/{nested}"
                raise _misplaced_file(where, f"{where} is one folder too deep", f"{part}/{nested}")


def check_field(stem: str, file: str, fields: Collection[str]) -> None:
    """Raise EngineStop if the name of a file in columns/ is a typo of a declared field."""
    if stem not in fields and (near := closest_name(stem, fields)):
        raise EngineStop(
            EndCode.RULE_ERROR,
            f"{file} does not name a declared field; did you mean {near}?",
            file=file,
            line=1,
            remedy=f"name it columns/{near}.py, or declare a field {stem} in the manifest",
        )


def check_functions(module: Mapping[str, Any], file: str, used: Collection[str], known: Collection[str]) -> None:
    """Raise EngineStop if a function's name is a typo of a rule, or if a rule would never be called.

    `module`: what the file defines, by name. `used`: its rules. `known`: names that rules of this kind may have.
    """
    functions = [function for function in module.values() if _is_defined_in(function, file)]
    names_used = {name for function in functions for name in _names_used_in(function.__code__)}
    for name, item in module.items():
        if name in used or name in names_used or name.startswith("_") or not callable(item) or isinstance(item, type):
            continue
        if _is_defined_in(item, file):
            _check_name(item, name, file, known)
        elif name in known or ("detect" in known and name.startswith("detect_")):
            what = f"{name} in {file} is not a function of this file, so it would never be called"
            raise _unusable_file(file, 1, what, f"define it here: def {name}(*, …), and call the other one from it")


def _is_defined_in(item: object, file: str) -> TypeGuard[FunctionType]:
    """Whether an item of a module is a function that this file defines."""
    return isinstance(item, FunctionType) and item.__code__.co_filename == file


def _check_name(function: FunctionType, name: str, file: str, rules: Collection[str]) -> None:
    """Raise EngineStop if the name of a function that nothing calls is a typo of a rule."""
    head, _, suffix = name.partition("_")
    near = None
    if "detect" in rules and distance(head, "detect") == 1:
        near = f"detect_{suffix}" if suffix else "detect"
    elif not any(name.startswith(rule) for rule in rules):
        near = closest_name(name, rules)
    if near is not None:
        what = f"{name} in {file} is not a rule; did you mean {near}?"
        remedy = f"name it {near}, or start its name with _ if it is a helper"
        raise _unusable_file(file, function.__code__.co_firstlineno, what, remedy)


def _file_with_rules(folder: Path, functions: Collection[str]) -> str | None:
    """Return the first file of a folder that defines one of these functions; None if there is none."""
    files = sorted(folder.glob("*.py"))[:_MOST_FILES]
    return next((file.name for file in files if not file.name.startswith("_") and _defines(file, functions)), None)


def _defines(file: Path, functions: Collection[str]) -> bool:
    """Whether a file defines one of these functions as a rule, with keyword arguments."""
    names = "|".join(rf"{name}\w*" if name == "detect" else name for name in functions)
    with file.open("rb") as source:
        text = source.read(_MOST_BYTES).decode("utf-8", "replace")
    return re.search(rf"^def (?:{names})\s*\(\s*\*", text, re.MULTILINE) is not None


def _names_used_in(code: CodeType) -> set[str]:
    """Collect the names that code and the functions within it use."""
    names = set(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names |= _names_used_in(inner)
    return names


def _misplaced_file(file: str, what: str, right: str) -> EngineStop:
    """Return the error that ends a job whose config has a rule where it would never be called."""
    return _unusable_file(file, 1, f"{what} ({file} would never be called)", f"move it to {right}")


def _unusable_file(file: str, line: int, what: str, remedy: str) -> EngineStop:
    """Return the error that ends a job whose config has a file that cannot be right; line 1 stands for all of it."""
    return EngineStop(EndCode.RULE_ERROR, what, file=file, line=line, remedy=remedy)


_NETWORK_ERRORS: Final = frozenset(
    {"URLError", "gaierror", "ConnectionError", "ConnectError", "ConnectTimeout", "NewConnectionError", "MaxRetryError"}
)
_NO_NETWORK_HINT: Final = (
    ": the box of a rule has no network, unless the manifest asks for runtime_network_access and the operator allows "
    "it; put what it looks up into an auxiliary input"
)
_MOST_LINKS: Final = 10  # exceptions in a chain
_HAS_VARARGS: Final = 0x04  # bits of a code object's flags, as the module inspect has them
_HAS_VARKEYS: Final = 0x08
LOGGED_KINDS: Final = 5  # distinct failures of one rule in the log
MOST_FRAMES: Final = 20
LONGEST_TRACEBACK: Final = 4000  # characters of one traceback
SOURCES: Final[dict[str, bytes]] = {}  # rule file -> its source, for tracebacks


class RuleFailed(Exception):
    """A rule raised an exception or returned the wrong shape. Holds the place and the kind of error, never a value."""

    def __init__(self, rule: "Rule", what: str, line: int | None, remedy: str) -> None:
        """Say what a rule did (`raised ValueError`); `line`: where, None for the line at which the rule begins."""
        super().__init__(what)
        self.rule = rule
        self.what = what
        self.line = line if line is not None else rule.line
        self.remedy = remedy

    @property
    def message(self) -> str:
        """The rule, what it did, and where, in words."""
        return f"{self.rule.name} {self.what} ({self.rule.file}, line {self.line})"


class Rule:
    """One function of a config package, called by keyword; counts and logs what it raises."""

    def __init__(self, function: Callable[..., Any], file: str, literals: frozenset[str]) -> None:
        """Learn from the function's signature how to call it. `literals`: the texts in its source, which are no cell's
        value."""
        self.function = function
        self.file = file
        self.literals = literals
        self.raised = 0  # calls that failed
        self._logged: set[tuple[str, int | None]] = set()  # kinds of failures in the log: exception and line
        self.returns: Returns = "always"  # whether it ends without a return
        code: CodeType = function.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        self.wants = frozenset(code.co_varnames[:count])  # the arguments that it names
        self.sees_others = not self.wants.isdisjoint(("columns", "record"))  # uses other fields of the row
        self.accepts_all = bool(code.co_flags & _HAS_VARKEYS)
        self.line = code.co_firstlineno
        self.name = f"{file.removesuffix('.py').replace('/', '.')}.{function.__name__}"
        defaults = len(function.__defaults__ or ())
        positional = code.co_varnames[: code.co_argcount]
        # Arguments without a default.
        self.needs = frozenset(positional[: len(positional) - defaults]) | (
            frozenset(code.co_varnames[code.co_argcount : count]) - set(function.__kwdefaults__ or {})
        )

    def find_problem(self, available: Iterable[str]) -> str | None:
        """Describe what is wrong with the function's signature; None if nothing is. `available`: the arguments it may
        name."""
        code: CodeType = self.function.__code__
        if code.co_posonlyargcount or code.co_flags & _HAS_VARARGS:
            return "takes positional arguments; rules are called with keyword arguments only"
        if unknown := sorted(self.needs - set(available)):
            return f"asks for {', '.join(unknown)}, which rules of this kind do not get"
        return None

    def call(self, **available: Any) -> Any:
        """Call the function with the available arguments that it names; raises RuleFailed for any exception."""
        if self.accepts_all:
            arguments = available
        else:
            arguments = {name: value for name, value in available.items() if name in self.wants}
        try:
            return self.function(**arguments)
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:  # noqa: BLE001  # a rule may raise anything, SystemExit included
            kind, line = self.class_of(error) + network_hint(error), line_in(error.__traceback__, self.file)
            self._log(error, line, available)
        # Raised outside the handler: the rule's own exception may contain a cell's value and must not be chained.
        raise RuleFailed(self, f"raised {kind}", line, "correct the rule at this line; try it with `ade try`")

    def _log(self, error: BaseException, line: int | None, arguments: Mapping[str, Any]) -> None:
        """Write the traceback to the job's log, which belongs to its owner and may contain data; each kind once."""
        self.raised += 1
        kind = (type(error).__name__, line)
        if kind in self._logged or len(self._logged) >= LOGGED_KINDS:
            return
        self._logged.add(kind)
        log_traceback(error, f"{self.name} raised{_describe_place(arguments)}")

    def summary(self) -> str | None:
        """Write a final line for the log if it does not show every failure; None if it does."""
        if self.raised <= len(self._logged):
            return None
        return f"{self.name} raised in {self.raised} calls; the log shows the first of each kind ({len(self._logged)})"

    def literal_only(self, text: Any) -> str | None:
        """Return a rule's message if it is a literal in its source; None for one built at run time, which may contain
        data."""
        return text if isinstance(text, str) and text in self.literals else None

    def class_of(self, value: Any) -> str:
        """Name the nearest class of a value that is written down somewhere; one made at run time may be named after a
        cell."""
        for kind in type(value).__mro__:
            home = sys.modules.get(str(kind.__module__))
            if self.literal_only(kind.__name__) or getattr(home, kind.__name__, None) is kind:
                return kind.__name__
        return "object"


def network_hint(error: BaseException) -> str:
    """Return what to tell an author whose rule wanted the network; empty if nothing speaks for that."""
    return _NO_NETWORK_HINT if any(_wants_network(link) for link in _exception_chain(error)) else ""


def _exception_chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those that it was raised from, or while handling."""
    link: BaseException | None = error
    for _ in range(_MOST_LINKS):
        if link is None:
            return
        yield link
        link = link.__context__ if link.__cause__ is None else link.__cause__


def _wants_network(error: BaseException) -> bool:
    """Whether an exception has the name of a failed connection, or is of the system and came from the socket module."""
    if any(kind.__name__ in _NETWORK_ERRORS for kind in type(error).__mro__):
        return True
    trace = error.__traceback__ if isinstance(error, OSError) else None
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__") == "socket":
            return True
        trace = trace.tb_next
    return False


def _describe_place(arguments: Mapping[str, Any]) -> str:
    """Describe where a rule was called, by its arguments, for the log."""
    words = [str(arguments[key]) for key in ("input", "sheet") if arguments.get(key) is not None]
    if arguments.get("column") is not None:
        words.append(f"column {arguments['column']}")
    row, rows = arguments.get("row") or arguments.get("row_index"), arguments.get("rows")
    if row is not None:
        words.append(f"row {row}")
    elif rows:
        words.append(f"row {rows[0]}" if len(rows) == 1 else f"rows {rows[0]} to {rows[-1]}")
    return f" on {', '.join(words)}" if words else ""


def log_traceback(error: BaseException, what: str) -> None:
    """Print a traceback below the line `what`, without the engine's own frames and limited in length; a log that is
    closed gets none."""
    import linecache  # noqa: PLC0415  # most jobs have no rule that raises
    import traceback  # noqa: PLC0415

    for file, source in SOURCES.items():
        linecache.cache[file] = (len(source), None, source.decode("utf-8", "replace").splitlines(keepends=True), file)
    whole = trace = error.__traceback__
    while trace is not None and str(trace.tb_frame.f_globals.get("__name__")).startswith("runner.engine."):
        trace = trace.tb_next
    try:
        text = "".join(traceback.format_exception(error.with_traceback(trace), limit=-MOST_FRAMES))
    except MemoryError:
        raise
    except BaseException:  # noqa: BLE001  # the exception is the author's own and may do anything when it is shown
        text = f"{type(error).__name__} (its text cannot be shown)\n"
    finally:
        error.__traceback__ = whole
    if len(text) > LONGEST_TRACEBACK:
        text = f"{text[: LONGEST_TRACEBACK // 2]}\n[…]\n{text[-LONGEST_TRACEBACK // 2 :]}"
    with contextlib.suppress(OSError, ValueError):  # a rule may have closed the log
        print(f"{what}\n{text}".encode(errors="backslashreplace").decode(), end="", flush=True)  # noqa: T201


def literals_of(code: CodeType) -> frozenset[str]:
    """Collect every string literal of a module."""
    literals: set[str] = set()
    pending: list[Any] = [code]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            literals.add(item)
        elif isinstance(item, CodeType):
            pending += item.co_consts
        elif isinstance(item, (tuple, frozenset)):
            pending += item
    return frozenset(literals)


def line_in(trace: TracebackType | None, file: str) -> int | None:
    """Return the innermost line of the rule's own file in a traceback; None if it has none."""
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
