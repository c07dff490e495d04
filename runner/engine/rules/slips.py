"""Names in a config package that nothing would ever look at: a slip of the pen must not silently do nothing."""

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final

from runner.engine.errors import EngineStop
from runner.engine.mapping.headers import distance, joined

_DIGITS: Final = re.compile(r"\d+")
_LONG: Final = 8  # letters from which on two slips are likely to be slips
_MOST_FILES: Final = 200
_MOST_BYTES: Final = 256 * 1024


def meant(name: str, known: Iterable[str]) -> str | None:
    """The known name that this one is a slip of, if it is one; names that differ in a number are two names."""
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
    """EngineStop where rule files stand in a place that is not looked at; `parts` are folders with their functions."""
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
            raise _misplaced(entry.name, f"{entry.name} stands outside columns/", f"columns/{entry.name}")


def check_field(stem: str, file: str, fields: Collection[str]) -> None:
    """EngineStop where a file in columns/ is all but named after a declared field."""
    if stem not in fields and (near := meant(stem, fields)):
        raise EngineStop(
            "rule_error",
            f"{file} is named after no declared field; did you mean {near}?",
            file=file,
            line=1,
            remedy=f"name it columns/{near}.py, or declare a field {stem} in the manifest",
        )


def check_functions(module: Mapping[str, Any], file: str, used: Collection[str], known: Collection[str]) -> None:
    """EngineStop where a function is all but named after a rule, or a rule is something that is never called."""
    functions = [f for f in module.values() if isinstance(f, FunctionType) and f.__code__.co_filename == file]
    called = {name for f in functions for name in _names(f.__code__)}
    for name, item in module.items():
        if name in used or name in called or name.startswith("_") or not callable(item) or isinstance(item, type):
            continue
        own = isinstance(item, FunctionType) and item.__code__.co_filename == file
        line = item.__code__.co_firstlineno if own else 1
        head, _, rest = name.partition("_")
        if not own and (name in known or ("detect" in known and name.startswith("detect_"))):
            what = f"{name} in {file} is not a function of this file, so it would never be called"
            raise _wrong(file, line, what, f"define it here: def {name}(*, …), and call the other one from it")
        near = None
        if own and "detect" in known and distance(head, "detect") == 1:
            near = f"detect_{rest}" if rest else "detect"
        elif own and not any(name.startswith(rule) for rule in known):
            near = meant(name, known)
        if near is not None:
            what = f"{name} in {file} is no rule; did you mean {near}?"
            raise _wrong(file, line, what, f"name it {near}, or start its name with _ if it only helps others")


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
    return EngineStop("rule_error", what, file=file, line=line, remedy=remedy)
