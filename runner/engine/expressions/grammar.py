"""Parses an expression: its text to a tree of literals, fields and calls. An operator is a call of its sign.

Theory of operation. One regular expression splits the text into words; a parser of one function per precedence reads
them once, left to right. Length, nodes and depth are bounded while parsing, so an expression costs what it is long,
whoever wrote it: processes that serve every tenant parse expressions, within `core/budget.py`.
"""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Final, NamedTuple

MAX_LENGTH: Final = 1000  # characters of an expression
MAX_NODES: Final = 200
MAX_DEPTH: Final = 20
MAX_DIGITS: Final = 30  # of a number
_COMPARISONS: Final = ("==", "!=", "<=", ">=", "<", ">")
_WORD = re.compile(
    r"""\s*(?:
        (?P<number>[0-9]+(?:\.[0-9]+)?)
      | (?P<text>'(?:[^']|'')*+' | "(?:[^"]|"")*+")
      | \[(?P<field>[^\[\]]*+)\]
      | (?P<name>[^\W\d]\w*+)
      | (?P<sign>==|!=|<=|>=|<>|&&|\|\||\*\*|[-+*/&<>(),=!^%|;:.{}\[\]'"])
    )""",
    re.VERBOSE,
)
_RESERVED: Final = frozenset({"and", "or", "not", "in", "is", "true", "false", "blank"})
# What other languages write, and what this one has instead.
_INSTEAD: Final = {
    "=": "==", "<>": "!=", "&&": "and", "||": "or", "!": "not", "^": "a product", "**": "a product", "%": "mod(a, b)",
    ";": "a comma", "|": "or",
}  # fmt: skip


class ExpressionError(Exception):
    """An expression cannot be used: what is wrong, at which character (from 1), and what is allowed instead."""

    def __init__(self, problem: str, at: int, allowed: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.at = at
        self.allowed = allowed


class Literal(NamedTuple):
    at: int
    value: str | Decimal | bool | None


class FieldName(NamedTuple):
    at: int
    name: str


class FunctionCall(NamedTuple):
    """A function or an operator with its arguments."""

    at: int
    name: str
    arguments: "tuple[Node, ...]"


Node = Literal | FieldName | FunctionCall


def parse(text: str) -> Node:
    """The tree of an expression; raises ExpressionError."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"has {len(text)} characters", MAX_LENGTH + 1, f"at most {MAX_LENGTH}")
    parser = _Parser(text)
    tree = parser.either()
    parser.end()
    return tree


class _Word(NamedTuple):
    kind: str  # number, text, field, name, sign or end
    text: str
    at: int


def _words(text: str) -> list[_Word]:
    """The words of an expression, from the last to the first."""
    words, end = [], 0
    for word in _WORD.finditer(text):
        if word.start() != end:
            break
        kind, end = str(word.lastgroup), word.end()
        start = word.start(kind)
        words.append(_Word(kind, word[kind], start + (kind != "field")))  # a field's bracket is the character before
    rest = text[end:].lstrip()
    if rest:
        raise ExpressionError("has a character that it cannot have", len(text) - len(rest) + 1, "words, numbers, signs")
    words.append(_Word("end", "", len(text.rstrip()) + 1))
    words.reverse()
    return words


class _Parser:
    """Reads words from left to right; a method for each precedence, the weakest first."""

    def __init__(self, text: str) -> None:
        self._rest = _words(text)
        self._word = self._rest.pop()
        self._nodes = 0
        self._depth = 0

    def end(self) -> None:
        if self._word.kind != "end":
            brackets = "; a field's name with blanks is in brackets: [first name]" if self._word.kind == "name" else ""
            raise self._unexpected(f"an operator such as +, == or and, or the end{brackets}")

    def either(self) -> Node:
        """Parse `a or b`: the whole of an expression, or what is in parentheses."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ExpressionError("is nested too deeply", self._word.at, f"at most {MAX_DEPTH} levels")
        left = self._both()
        while self._is("or"):
            left = self._call("or", left, self._both)
        self._depth -= 1
        return left

    def _both(self) -> Node:
        """Parse `a and b`."""
        left = self._negated()
        while self._is("and"):
            left = self._call("and", left, self._negated)
        return left

    def _negated(self) -> Node:
        """Parse `not a`."""
        if not self._is("not"):
            return self._compared()
        at = self._next().at
        return self._made(at, "not", self._nested(self._negated))

    def _compared(self) -> Node:
        """Parse a comparison, `is blank` or `in (…)`; any of them binds less than a sum."""
        left = self._sum()
        word = self._word
        if word.kind == "sign" and word.text in _COMPARISONS:
            comparison = self._call(word.text, left, self._sum)
            if self._word.kind == "sign" and self._word.text in _COMPARISONS:
                raise self._unexpected("one comparison at a time: join two with and")
            return comparison
        if self._is("is"):
            self._next()
            name = "is blank"
            if self._is("not"):
                self._next()
                name = "is not blank"
            if not self._is("blank"):
                raise self._unexpected("blank: is blank, is not blank")
            self._next()
            return self._made(word.at, name, left)
        if self._is("in"):
            self._next()
            return self._made(word.at, "in", left, *self._listed())
        if self._is("not"):
            self._next()
            if not self._is("in"):
                raise self._unexpected("in: not in (…)")
            self._next()
            return self._made(word.at, "not in", left, *self._listed())
        return left

    def _sum(self) -> Node:
        """Parse `a + b`, `a - b` and `a & b`."""
        left = self._product()
        while self._word.kind == "sign" and self._word.text in ("+", "-", "&"):
            left = self._call(self._word.text, left, self._product)
        return left

    def _product(self) -> Node:
        """Parse `a * b` and `a / b`."""
        left = self._signed()
        while self._word.kind == "sign" and self._word.text in ("*", "/"):
            left = self._call(self._word.text, left, self._signed)
        return left

    def _signed(self) -> Node:
        """Parse `-a`."""
        if self._word.kind == "sign" and self._word.text == "-":
            at = self._next().at
            return self._made(at, "negative", self._nested(self._signed))
        return self._primary()

    def _primary(self) -> Node:
        """Parse a number, a text, a field, a function call, or an expression in parentheses."""
        word = self._word
        match word.kind:
            case "number":
                if len(word.text) > MAX_DIGITS:
                    raise ExpressionError("has a number that is too long", word.at, f"at most {MAX_DIGITS} digits")
                return self._counted(Literal(self._next().at, Decimal(word.text)))
            case "text":
                quote = word.text[0]
                return self._counted(Literal(self._next().at, word.text[1:-1].replace(quote * 2, quote)))
            case "field":
                self._next()
                return self._counted(FieldName(word.at, word.text.strip()))
            case "name":
                return self._named()
            case "sign" if word.text == "(":
                self._next()
                inner = self.either()
                self._expect(")")
                return inner
        raise self._unexpected("a field, a number, a text in quotes or a function")

    def _named(self) -> Node:
        """Parse what begins with a name: a constant, a function call or a field."""
        word = self._word
        if word.text in ("true", "false"):
            return self._counted(Literal(self._next().at, word.text == "true"))
        if word.text == "blank":
            return self._counted(Literal(self._next().at, None))
        if word.text in _RESERVED:
            raise self._unexpected("a field, a number, a text in quotes or a function")
        self._next()
        if self._word.kind == "sign" and self._word.text == "(":
            return self._made(word.at, word.text, *self._listed(least=0))
        return self._counted(FieldName(word.at, word.text))

    def _listed(self, least: int = 1) -> list[Node]:
        """Arguments or values in parentheses, separated by commas."""
        self._expect("(")
        arguments: list[Node] = []
        while not (self._word.kind == "sign" and self._word.text == ")" and len(arguments) >= least):
            arguments.append(self.either())
            if self._word.kind == "sign" and self._word.text == ",":
                self._next()
                least = len(arguments) + 1
            elif not (self._word.kind == "sign" and self._word.text == ")"):
                raise self._unexpected("a comma or )")
        self._next()
        return arguments

    def _nested(self, read: Callable[[], Node]) -> Node:
        """What a sign before it applies to, which may begin with such a sign again."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ExpressionError("is nested too deeply", self._word.at, f"at most {MAX_DEPTH} levels")
        node = read()
        self._depth -= 1
        return node

    def _call(self, name: str, left: Node, read: Callable[[], Node]) -> Node:
        at = self._next().at
        return self._made(at, name, left, read())

    def _made(self, at: int, name: str, *arguments: Node) -> Node:
        return self._counted(FunctionCall(at, name, arguments))

    def _counted(self, node: Node) -> Node:
        """The node itself; raises ExpressionError once there are too many."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise ExpressionError("has too many parts", node.at, f"at most {MAX_NODES} fields, values and operators")
        return node

    def _is(self, name: str) -> bool:
        return self._word.kind == "name" and self._word.text == name

    def _next(self) -> _Word:
        word = self._word
        self._word = self._rest.pop() if self._rest else word  # nothing comes after the end
        return word

    def _expect(self, sign: str) -> None:
        if not (self._word.kind == "sign" and self._word.text == sign):
            raise self._unexpected(sign)
        self._next()

    def _unexpected(self, allowed: str) -> ExpressionError:
        """The error for the word at hand, with what may be there instead."""
        word = self._word
        if word.kind == "end":
            return ExpressionError("ends too early", word.at, allowed)
        if word.text in ("'", '"'):
            return ExpressionError("has a text without its second quote", word.at, f"{word.text} at its end")
        instead = _INSTEAD.get(word.text) if word.kind == "sign" else None
        return ExpressionError(
            f"has {word.text[:40]!r} where it cannot be", word.at, f"{instead} instead" if instead else allowed
        )
