"""Loads a config package: columns/, row_types/ and hooks/, each file once."""

import contextlib
import sys
from collections.abc import Collection
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final, NamedTuple

from runner.engine.contract import EndCode
from runner.engine.imports import leave_names_to_rules
from runner.engine.protocol import EngineStop
from runner.engine.rules.call import (
    SOURCES,
    Rule,
    check_field,
    check_folders,
    check_functions,
    closest_name,
    line_in,
    literals_of,
    log_traceback,
    network_hint,
)
from runner.engine.rules.returns import returns_of

_ALWAYS: Final = ("params", "state", "lookups", "log", "job")
_PER_TABLE: Final = ("input", "sheet", "table")
_PER_COLUMN: Final = (*_ALWAYS, *_PER_TABLE, "field", "header", "column", "column_index")
_PER_CHUNK: Final = (*_ALWAYS, *_PER_TABLE, "columns", "rows")
# The arguments that each kind of function may name.
ARGUMENTS: Final[dict[str, tuple[str, ...]]] = {
    "columns.detect": (*_PER_COLUMN, "values_sample"),
    "columns.transform": (*_PER_COLUMN, "values", "value", "rows", "row", "columns", "record"),
    "columns.validate": (*_PER_COLUMN, "values", "value", "rows", "row", "columns", "record"),
    "row_types.detect": (*_ALWAYS, "input", "sheet", "row_index", "row_values_sample"),
    "hooks.on_job_start": (*_ALWAYS, "inputs", "fields"),
    "hooks.after_structure": (*_ALWAYS, "tables"),
    "hooks.after_mapping": (*_ALWAYS, *_PER_TABLE, "mapping", "headers"),
    "hooks.after_transform": _PER_CHUNK,
    "hooks.after_validate": _PER_CHUNK,
    "hooks.accumulate": _PER_CHUNK,
    "hooks.finalize": _ALWAYS,
    "hooks.on_job_end": (*_ALWAYS, "summary"),
}
ROW_LABELS: Final = ("header", "data", "total", "group", "title", "note")
HOOKS: Final = tuple(k.partition(".")[2] for k in ARGUMENTS if k.startswith("hooks."))
FUNCTIONS: Final[dict[str, tuple[str, ...]]] = {
    "columns": ("detect", "transform", "validate"),
    "row_types": ("detect",),
    "hooks": HOOKS,
}  # folder -> functions that are called


class RulePackage(NamedTuple):
    """The rules of a config package."""

    detectors: list[Rule]
    transforms: dict[str, Rule]
    validators: dict[str, Rule]
    row_types: dict[str, list[Rule]]
    hooks: dict[str, list[Rule]]
    files: list[dict[str, Any]]  # path, sha256 and the rules in it, for the artifact
    field_names: list[str]  # of columns/, in order

    def log_failures(self) -> None:
        """Write to the job's log how often rules raised, if it does not show every failure."""
        of_fields = [*self.transforms.values(), *self.validators.values()]
        in_lists = [*self.row_types.values(), *self.hooks.values()]
        for rule in [*self.detectors, *of_fields, *(rule for rules in in_lists for rule in rules)]:
            if line := rule.summary():
                with contextlib.suppress(OSError, ValueError):
                    print(line, flush=True)  # noqa: T201


def load(folder: Path | None, fields: Collection[str] = ()) -> RulePackage:
    """Load every rule of a folder, none without one, and put the folder in front of Python's path; raises EngineStop
    with file and line for a rule that cannot be loaded or would never be called."""
    package = RulePackage([], {}, {}, {}, {name: [] for name in HOOKS}, [], [])
    if folder is None:
        return package
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(folder))
    leave_names_to_rules()
    check_folders(folder, FUNCTIONS, fields)
    for part in FUNCTIONS:
        place = folder / part
        if not place.is_dir():
            continue
        for path in sorted(place.glob("*.py")):
            if not path.name.startswith("_"):
                _load_file(package, part, path)
                if part == "columns":
                    check_field(path.stem, f"columns/{path.name}", fields)
    return package


def _add_rule(package: RulePackage, rule: Rule, part: str, name: str, stem: str) -> None:
    """Add a rule to its place in the package; `stem`: its file's name, which is that of a field or a row type."""
    if part == "hooks":
        package.hooks[name].append(rule)
    elif part == "row_types":
        package.row_types.setdefault(stem, []).append(rule)
    elif name.startswith("detect"):
        package.detectors.append(rule)
    elif name == "transform":
        package.transforms[stem] = rule
    else:
        package.validators[stem] = rule


def _unknown_row_type(file: str, stem: str) -> EngineStop:
    """Make the end of a job with a file in row_types/ that no row type is called like."""
    near = closest_name(stem, ROW_LABELS)
    return EngineStop(
        EndCode.RULE_ERROR,
        f"{file} does not name a row type" + (f"; did you mean {near}?" if near else ""),
        file=file,
        line=1,
        remedy=f"name it after one of {', '.join(ROW_LABELS)}",
    )


def _load_file(package: RulePackage, part: str, path: Path) -> None:
    """Add the rules of a file to the package; raises EngineStop if it has none or one that would never be called."""
    file = f"{part}/{path.name}"
    module, rules = _rules_in(path, file)
    functions = FUNCTIONS[part]
    rule_names = []
    for name, rule in rules.items():
        kind = "detect" if name.startswith("detect") and part != "hooks" else name
        if name.startswith("_") or kind not in functions:
            continue
        _check_arguments(rule, f"{part}.{kind}")
        rule_names.append(name)
        if kind == "transform":
            rule.returns = returns_of(SOURCES[file], name, rule.line)
        _add_rule(package, rule, part, name, path.stem)
    if part == "row_types" and path.stem not in ROW_LABELS:
        raise _unknown_row_type(file, path.stem)
    check_functions(module, file, rule_names, functions)
    if not rule_names:
        raise EngineStop(
            EndCode.RULE_ERROR,
            f"{file} defines no rule",
            file=file,
            line=1,
            remedy=f"define one of {', '.join('detect_*' if k == 'detect' else k for k in functions)}, "
            "or start the file's name with _ if it is a helper",
        )
    if part == "columns":
        package.field_names.append(path.stem)
    import hashlib  # noqa: PLC0415  # most jobs have no Python, and it takes milliseconds to load

    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    package.files.append({"path": file, "sha256": digest, "rules": rule_names})


def _rules_in(path: Path, file: str) -> tuple[dict[str, Any], dict[str, Rule]]:
    """Run a file, and return what it defines and its own functions, which may be rules, both by name; raises EngineStop
    if it is not valid Python or raises. `file`: its path in the config."""
    SOURCES[file] = path.read_bytes()
    try:
        code = compile(SOURCES[file], file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise EngineStop(
            EndCode.RULE_ERROR,
            f"{file} is not valid Python: {getattr(error, 'msg', 'it contains zero bytes')} (line {line})",
            file=file,
            line=line,
            remedy="correct this line; `python -m py_compile` shows it too",
        ) from None
    module = ModuleType(file.removesuffix(".py").replace("/", "."))
    module.__file__ = file
    sys.modules[module.__name__] = module
    literals = literals_of(code)

    def body() -> None:
        """Run the file."""
        exec(code, module.__dict__)  # noqa: S102  # running the author's rules is what the box is for

    loader = Rule(body, file, literals)
    try:
        loader.function()
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # noqa: BLE001  # a module may raise anything
        log_traceback(error, f"{file} cannot be loaded")
        kind, line = type(error).__name__, line_in(error.__traceback__, file)
        what = f" ({error})" if isinstance(error, ImportError) else network_hint(error)
        remedy = "correct this line"
        if isinstance(error, ImportError):
            remedy = "add the package to requirements.txt of the config, or the module to the config folder"
        raise EngineStop(
            EndCode.RULE_ERROR,
            f"{file} cannot be loaded: {kind}{what} (line {line})",
            file=file,
            line=line,
            remedy=remedy,
        ) from None
    defined = vars(module)
    return defined, {
        name: Rule(item, file, literals)
        for name, item in defined.items()
        if isinstance(item, FunctionType) and item.__code__.co_filename == file
    }


def _check_arguments(rule: Rule, kind: str) -> None:
    """Raise EngineStop if a rule asks for arguments that rules of its kind do not get."""
    problem = rule.find_problem(ARGUMENTS[kind])
    if problem is None and kind in ("columns.transform", "columns.validate"):
        value_arguments = rule.wants & {"value", "values"}
        if len(value_arguments) != 1 and not rule.accepts_all:
            problem = "must ask for `value` (called per cell) or `values` (called per chunk of a column)"
        else:
            others = {"rows", "columns"} if "value" in value_arguments else {"row", "record"}
            if misplaced := sorted(rule.needs & others):
                rows = "`row` and `record` go with `value`, `rows` and `columns` with `values`"
                problem = f"asks for {', '.join(misplaced)}: {rows}"
    if problem is not None:
        raise EngineStop(
            EndCode.RULE_ERROR,
            f"{rule.name} {problem} ({rule.file}, line {rule.line})",
            rule=rule.name,
            file=rule.file,
            line=rule.line,
            remedy=f"it may ask by keyword for: {', '.join(ARGUMENTS[kind])}",
        )
