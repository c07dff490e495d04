"""Makes mutants: copies of a module with one small change each that some test should notice.

Left alone: log calls, docstrings, annotations, decorators, f-strings, the text of messages, and the assignments of
`__init__` that only keep an argument, for a mutant that every test notices measures nothing.
"""

import ast
import copy
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType

_COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_COMPUTED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.LShift: ast.RShift, ast.Mod: ast.Mult,
}  # fmt: skip
_NAMES = {"max": "min", "min": "max", "any": "all", "all": "any", "sorted": "list"}
_TEXT_ARGUMENTS = {"reason", "message", "missing"}  # texts for people
_THREAD_ARGUMENTS = {"name", "daemon", "timezone", "job_defaults"}  # of threads and schedulers


@dataclass(frozen=True, kw_only=True)
class Mutant:
    module: str  # path of its file below the project
    line: int
    function: str  # qualified name of the outermost function it is in, after its classes; "": outside of every one
    before: str
    after: str
    start: int  # the bytes of the file that it replaces
    end: int
    text: str  # what it replaces them with
    number: int = 1  # tells equal changes of one function apart

    @property
    def mutation(self) -> str:
        twin = f" (#{self.number})" if self.number > 1 else ""
        return f"{self.before} → {self.after}{twin}"

    @property
    def key(self) -> str:
        """The same as long as neither its function's name nor the changed text changes, wherever its line is."""
        return hashlib.sha256(f"{self.module}\0{self.function}\0{self.mutation}".encode()).hexdigest()[:16]

    def source(self, original: bytes) -> bytes:
        return original[: self.start] + self.text.encode() + original[self.end :]

    def compiles(self, original: bytes) -> bool:
        try:
            self.code(original, Path(self.module))
        except SyntaxError:
            return False
        return True

    def code(self, original: bytes, path: Path) -> CodeType:
        return compile(self.source(original), str(path), "exec", dont_inherit=True)


def mutants_of(module: str, source: bytes) -> list[Mutant]:
    """All mutants of a module in the order of its lines."""
    found: dict[tuple[int, int, str], Mutant] = {}
    for one in _Maker(module, source).made():
        found.setdefault((one.start, one.end, one.text), one)
    numbers: dict[tuple[str, str], int] = {}
    numbered = []
    for one in sorted(found.values(), key=lambda m: (m.start, m.end, m.text)):
        twin = (one.function, one.mutation)
        numbers[twin] = numbers.get(twin, 0) + 1
        numbered.append(replace(one, number=numbers[twin]))
    return numbered


class _Maker:
    def __init__(self, module: str, source: bytes) -> None:
        self._module = module
        self._lines = source.splitlines(keepends=True)
        self._tree = ast.parse(source)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def made(self) -> Iterator[Mutant]:
        yield from self._body(self._tree, classes="", function="")

    def _body(self, node: ast.AST, *, classes: str, function: str) -> Iterator[Mutant]:
        for child in ast.iter_child_nodes(node):
            if _is_left_alone(child, node):
                continue
            if isinstance(child, ast.ClassDef):
                inner = f"{classes}{child.name}."
                for statement in child.body:
                    if not _is_left_alone(statement, child):
                        yield from self._node(statement, child, classes=inner, function=function)
                continue
            yield from self._node(child, node, classes=classes, function=function)

    def _node(self, node: ast.AST, parent: ast.AST, *, classes: str, function: str) -> Iterator[Mutant]:
        if isinstance(node, ast.FunctionDef):
            inside = function or f"{classes}{node.name}"
            for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
                yield from self._node(default, node.args, classes=classes, function=function)
            for statement in node.body:
                if not _is_left_alone(statement, node):
                    yield from self._node(statement, node, classes=classes, function=inside)
            return
        if isinstance(node, ast.ClassDef):
            yield from self._body(ast.Module([node], []), classes=classes, function=function)
            return
        for new in _changes(node, parent):
            yield self._mutant(node, new, function)
        yield from self._conditions(node, function)
        if isinstance(node, ast.ExceptHandler) and not isinstance(node.body[0], ast.Raise):
            yield self._span(node.body[0], node.body[-1], "raise", function, before=f"except {_said(node.type)}: …")
        yield from self._body(node, classes=classes, function=function)

    def _conditions(self, node: ast.AST, function: str) -> Iterator[Mutant]:
        """A condition that always holds, and one that never does."""
        match node:
            case ast.If():
                test, values = node.test, (True, False)
            case ast.While():
                test, values = node.test, (False,)
            case ast.match_case(guard=ast.expr() as guard):
                test, values = guard, (True, False)
            case _:
                return
        if not isinstance(test, ast.Constant):
            for value in values:
                yield self._mutant(test, ast.Constant(value), function)

    def _mutant(self, node: ast.AST, new: "ast.AST | str | _Less", function: str) -> Mutant:
        if isinstance(new, str):
            return self._span(node, node, new, function)
        if isinstance(new, _Less):
            less = self._mutant(node, new.rest, function)
            return replace(less, before=_short(new.where.format(new.part)), after=_short(new.where.format("")))
        text = after = ast.unparse(new)
        if isinstance(node, ast.expr) and not isinstance(new, ast.Constant | ast.Name | ast.Call | ast.Attribute):
            text = f"({text})"
        return self._span(node, node, text, function, after=after)

    def _span(
        self, first: ast.AST, last: ast.AST, text: str, function: str, *, before: str = "", after: str = ""
    ) -> Mutant:
        return Mutant(
            module=self._module,
            line=first.lineno,
            function=function,
            before=_short(before or ast.unparse(first)),
            after=_short(after or text),
            start=self._starts[first.lineno - 1] + first.col_offset,
            end=self._starts[last.end_lineno - 1] + last.end_col_offset,
            text=text,
        )


@dataclass(frozen=True)
class _Less:
    """A node without one of its parts."""

    rest: ast.AST
    part: str
    where: str  # the part's surroundings, with a place for it


def _is_left_alone(node: ast.AST, parent: ast.AST) -> bool:
    """Texts for people, types, and what only the reader of the code sees."""
    match node:
        case ast.JoinedStr() | ast.arguments() | ast.Import() | ast.ImportFrom():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call() as call) if _is_log(call):
            return True
        case ast.Call() if _is_log(node) or _said(node.func) in ("TypeVar", "cast", "re.compile", "threading.Thread"):
            return True
        case ast.keyword(arg=arg) if arg in _THREAD_ARGUMENTS | _TEXT_ARGUMENTS:
            return isinstance(node.value, ast.Constant | ast.Dict)
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"))], value=ast.Name()) if isinstance(
            parent, ast.FunctionDef
        ):
            return parent.name == "__init__"
    match parent:
        case ast.AnnAssign(annotation=annotation) if node is annotation:
            return True
        case ast.Raise() | ast.Assert():
            return True
        case ast.Call(func=func) if node is func and not isinstance(func, ast.Attribute | ast.Name):
            return True
        case ast.Subscript(slice=inside) if node is inside and isinstance(node, ast.Name | ast.Tuple):
            return isinstance(parent.value, ast.Name) and parent.value.id in ("list", "dict", "set", "tuple", "Counter")
        case ast.FunctionDef() | ast.ClassDef():
            return node in parent.decorator_list or node in getattr(parent, "bases", ())
    return False


def _is_log(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and _said(call.func.value) in ("self._log", "self.log", "log", "_LOG")


def _changes(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST | str | _Less]:
    """What may take the place of a node; a text takes the place of a statement."""
    if not _is_covered(node, parent):
        yield from _changed_expression(node)
    yield from _changed_statement(node)


def _is_covered(node: ast.AST, parent: ast.AST) -> bool:
    """What another mutant of the same place does already: the opposite of a condition, a key that is missing."""
    match node:
        case ast.Compare(ops=[ast.Eq() | ast.NotEq() | ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]):
            return isinstance(parent, ast.If | ast.IfExp)
        case ast.UnaryOp(op=ast.Not()):
            return isinstance(parent, ast.If | ast.IfExp)
        case ast.Constant():
            return isinstance(parent, ast.Dict) and node in parent.keys
    return False


def _changed_expression(node: ast.AST) -> Iterator[ast.AST | _Less]:
    match node:
        case ast.Compare():
            for n, op in enumerate(node.ops):
                yield _with(node, ops=[*node.ops[:n], _COMPARED[type(op)](), *node.ops[n + 1 :]])
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield _with(node, op=other)
            for n in range(len(node.values)):
                rest = [*node.values[:n], *node.values[n + 1 :]]
                yield rest[0] if len(rest) == 1 else _with(node, values=rest)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.BinOp() if type(node.op) in _COMPUTED and not _is_type(node):
            yield _with(node, op=_COMPUTED[type(node.op)]())
        case ast.Constant():
            yield from _changed_constant(node.value)
        case ast.IfExp():
            yield node.body
            yield node.orelse
        case ast.Dict() if len(node.keys) == len(node.values):
            for n in range(len(node.keys)):
                keys, values = [*node.keys[:n], *node.keys[n + 1 :]], [*node.values[:n], *node.values[n + 1 :]]
                part = f"{_said(node.keys[n]) or '**'}: {_said(node.values[n])}"
                yield _Less(_with(node, keys=keys, values=values), part, "{{{}}}")
        case ast.Set() if len(node.elts) > 1:
            for n in range(len(node.elts)):
                yield _Less(_with(node, elts=[*node.elts[:n], *node.elts[n + 1 :]]), _said(node.elts[n]), "{{{}}}")
        case ast.Call():
            yield from _changed_call(node)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            for n, part in enumerate(node.generators):
                for i in range(len(part.ifs)):
                    less = _with(part, ifs=[*part.ifs[:i], *part.ifs[i + 1 :]])
                    rest = _with(node, generators=[*node.generators[:n], less, *node.generators[n + 1 :]])
                    yield _Less(rest, f"if {_said(part.ifs[i])}", f"for {_braced(_said(part.target))} in … {{}}")


def _changed_constant(value: object) -> Iterator[ast.AST]:
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int | float):
        yield ast.Constant(value + 1)
        if value > 1:
            yield ast.Constant(value - 1)
    elif isinstance(value, str) and not any(c.isspace() for c in value):
        yield ast.Constant(value + "X" if value else "X")


def _changed_call(node: ast.Call) -> Iterator[ast.AST | _Less]:
    if isinstance(node.func, ast.Name) and node.func.id in _NAMES:
        known = node.keywords if _NAMES[node.func.id] != "list" else []
        yield _with(node, func=ast.Name(_NAMES[node.func.id]), keywords=known)
    ordered = len(node.args) > 1 and _said(node.func) not in ("min", "max")
    if ordered and not any(isinstance(a, ast.Starred) for a in node.args[:2]):
        yield _with(node, args=[node.args[1], node.args[0], *node.args[2:]])
    for n, word in enumerate(node.keywords):
        if word.arg is None or word.arg in _THREAD_ARGUMENTS or _said(node.func).endswith(("Error", "Problem")):
            continue
        rest = _with(node, keywords=[*node.keywords[:n], *node.keywords[n + 1 :]])
        yield _Less(rest, _said(word), f"{_braced(_said(node.func))}({{}})")


def _changed_statement(node: ast.AST) -> Iterator[ast.AST | str]:
    match node:
        case ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom()) | ast.AugAssign() | ast.Delete() | ast.Raise():
            if not isinstance(getattr(node, "value", None), ast.Yield):
                yield "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "pass"
        case ast.Continue():
            yield "break"
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield "return None"
    if isinstance(node, ast.AugAssign) and type(node.op) in _COMPUTED:
        yield _with(node, op=_COMPUTED[type(node.op)]())


def _with(node: ast.AST, **changes: object) -> ast.AST:
    made = copy.copy(node)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def _is_type(node: ast.BinOp) -> bool:
    """`A | B` of names with capitals: a type, not a value."""
    return isinstance(node.op, ast.BitOr) and all(
        isinstance(side, ast.Name) and side.id[:1].isupper() and not side.id.isupper()
        for side in (node.left, node.right)
    )


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _said(node: ast.AST | None) -> str:
    return ast.unparse(node) if node is not None else ""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 110 else f"{line[:70]}…{line[-39:]}"
