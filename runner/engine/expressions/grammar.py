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
_WRITTEN_HERE: Final = {
    "=": "==", "<>": "!=", "&&": "and", "||": "or", "!": "not", "^": "a product", "**": "a product", "%": "mod(a, b)",
    ";": "a comma", "|": "or",
}  # fmt: skip


class ExpressionError(Exception):
    """An expression cannot be used: what is wrong, at which character (from 1), and what is allowed instead."""

    def __init__(self, problem: str, at: int, allowed: str) -> None:
        """Say what is wrong as a predicate (`is nested too deeply`), and at which character."""
        super().__init__(problem)
        self.problem = problem
        self.at = at
        self.allowed = allowed


class Literal(NamedTuple):
    """A value that is written in the expression."""

    at: int  # its first character, from 1
    value: str | Decimal | bool | None


class FieldName(NamedTuple):
    """A field by its name."""

    at: int
    name: str


class FunctionCall(NamedTuple):
    """A function or an operator with its arguments."""

    at: int
    name: str
    arguments: "tuple[Node, ...]"


Node = Literal | FieldName | FunctionCall


def parse(text: str) -> Node:
    """Parse an expression to its tree; raises ExpressionError."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"has {len(text)} characters", MAX_LENGTH + 1, f"at most {MAX_LENGTH}")
    parser = _Parser(text)
    tree = parser.parse_or()
    parser.end()
    return tree


class _Word(NamedTuple):
    """A word of an expression, with its place."""

    kind: str  # number, text, field, name, sign or end
    text: str
    at: int


def _split_words(text: str) -> list[_Word]:
    """Split an expression into its words, from the last to the first; raises ExpressionError for a sign that is
    none."""
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
    """Reads words from left to right; a method for each precedence, the weakest first.

    Each method returns the tree of what it read and leaves the word behind it at hand; ExpressionError if it cannot.
    """

    def __init__(self, text: str) -> None:
        """Split the text into words; raises ExpressionError for a sign that no expression has."""
        self._rest = _split_words(text)  # the next one last
        self._word = self._rest.pop()  # the one at hand
        self._nodes = 0  # made so far
        self._depth = 0  # of parentheses and signs

    def end(self) -> None:
        """Raise ExpressionError unless all words were read."""
        if self._word.kind != "end":
            brackets = "; a field's name with blanks is in brackets: [first name]" if self._word.kind == "name" else ""
            raise self._unexpected_word(f"an operator such as +, == or and, or the end{brackets}")

    def parse_or(self) -> Node:
        """Parse `a or b`: the whole of an expression, or what is in parentheses."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ExpressionError("is nested too deeply", self._word.at, f"at most {MAX_DEPTH} levels")
        tree = self._parse_and()
        while self._is_at_name("or"):
            tree = self._parse_operator("or", tree, self._parse_and)
        self._depth -= 1
        return tree

    def _parse_and(self) -> Node:
        """Parse `a and b`, or what binds more."""
        tree = self._parse_negation()
        while self._is_at_name("and"):
            tree = self._parse_operator("and", tree, self._parse_negation)
        return tree

    def _parse_negation(self) -> Node:
        """Parse `not a`, or what binds more."""
        if not self._is_at_name("not"):
            return self._parse_comparison()
        at = self._advance().at
        return self._make_call(at, "not", self._parse_nested(self._parse_negation))

    def _parse_comparison(self) -> Node:
        """Parse a comparison, `is blank` or `in (…)`; any of them binds less than a sum."""
        left = self._parse_sum()
        word = self._word
        if word.kind == "sign" and word.text in _COMPARISONS:
            comparison = self._parse_operator(word.text, left, self._parse_sum)
            if self._word.kind == "sign" and self._word.text in _COMPARISONS:
                raise self._unexpected_word("one comparison at a time: join two with and")
            return comparison
        if self._is_at_name("is"):
            self._advance()
            name = "is blank"
            if self._is_at_name("not"):
                self._advance()
                name = "is not blank"
            if not self._is_at_name("blank"):
                raise self._unexpected_word("blank: is blank, is not blank")
            self._advance()
            return self._make_call(word.at, name, left)
        if self._is_at_name("in"):
            self._advance()
            return self._make_call(word.at, "in", left, *self._parse_list())
        if self._is_at_name("not"):
            self._advance()
            if not self._is_at_name("in"):
                raise self._unexpected_word("in: not in (…)")
            self._advance()
            return self._make_call(word.at, "not in", left, *self._parse_list())
        return left

    def _parse_sum(self) -> Node:
        """Parse `a + b`, `a - b` and `a & b`, or what binds more."""
        tree = self._parse_product()
        while self._word.kind == "sign" and self._word.text in ("+", "-", "&"):
            tree = self._parse_operator(self._word.text, tree, self._parse_product)
        return tree

    def _parse_product(self) -> Node:
        """Parse `a * b` and `a / b`, or what binds more."""
        tree = self._parse_signed()
        while self._word.kind == "sign" and self._word.text in ("*", "/"):
            tree = self._parse_operator(self._word.text, tree, self._parse_signed)
        return tree

    def _parse_signed(self) -> Node:
        """Parse `-a`, or what binds more."""
        if self._word.kind == "sign" and self._word.text == "-":
            at = self._advance().at
            return self._make_call(at, "negative", self._parse_nested(self._parse_signed))
        return self._parse_primary()

    def _parse_primary(self) -> Node:
        """Parse a number, a text, a field, a function call, or an expression in parentheses."""
        word = self._word
        match word.kind:
            case "number":
                if len(word.text) > MAX_DIGITS:
                    raise ExpressionError("has a number that is too long", word.at, f"at most {MAX_DIGITS} digits")
                return self._count_node(Literal(self._advance().at, Decimal(word.text)))
            case "text":
                quote = word.text[0]
                return self._count_node(Literal(self._advance().at, word.text[1:-1].replace(quote * 2, quote)))
            case "field":
                self._advance()
                return self._count_node(FieldName(word.at, word.text.strip()))
            case "name":
                return self._parse_name()
            case "sign" if word.text == "(":
                self._advance()
                inner = self.parse_or()
                self._expect(")")
                return inner
        raise self._unexpected_word("a field, a number, a text in quotes or a function")

    def _parse_name(self) -> Node:
        """Parse what begins with a name: a constant, a function call or a field."""
        word = self._word
        if word.text in ("true", "false"):
            return self._count_node(Literal(self._advance().at, word.text == "true"))
        if word.text == "blank":
            return self._count_node(Literal(self._advance().at, None))
        if word.text in _RESERVED:
            raise self._unexpected_word("a field, a number, a text in quotes or a function")
        self._advance()
        if self._word.kind == "sign" and self._word.text == "(":
            return self._make_call(word.at, word.text, *self._parse_list(least=0))
        return self._count_node(FieldName(word.at, word.text))

    def _parse_list(self, least: int = 1) -> list[Node]:
        """Parse arguments or values in parentheses, separated by commas; `least`: how many there must be."""
        self._expect("(")
        arguments: list[Node] = []
        while not (self._word.kind == "sign" and self._word.text == ")" and len(arguments) >= least):
            arguments.append(self.parse_or())
            if self._word.kind == "sign" and self._word.text == ",":
                self._advance()
                least = len(arguments) + 1
            elif not (self._word.kind == "sign" and self._word.text == ")"):
                raise self._unexpected_word("a comma or )")
        self._advance()
        return arguments

    def _parse_nested(self, parse_operand: Callable[[], Node]) -> Node:
        """Parse what a sign before it applies to, by this method; it may begin with such a sign again."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ExpressionError("is nested too deeply", self._word.at, f"at most {MAX_DEPTH} levels")
        node = parse_operand()
        self._depth -= 1
        return node

    def _parse_operator(self, name: str, left: Node, parse_operand: Callable[[], Node]) -> Node:
        """Parse the operator at hand and, by this method, its right side; return its call."""
        at = self._advance().at
        return self._make_call(at, name, left, parse_operand())

    def _make_call(self, at: int, name: str, *arguments: Node) -> Node:
        """Make the call of an operator or a function, and count it."""
        return self._count_node(FunctionCall(at, name, arguments))

    def _count_node(self, node: Node) -> Node:
        """Count a node and return it; raises ExpressionError once there are too many."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise ExpressionError("has too many parts", node.at, f"at most {MAX_NODES} fields, values and operators")
        return node

    def _is_at_name(self, name: str) -> bool:
        """Whether the word at hand is this name, such as `and`."""
        return self._word.kind == "name" and self._word.text == name

    def _advance(self) -> _Word:
        """Return the word at hand, and put the next one at hand."""
        word = self._word
        self._word = self._rest.pop() if self._rest else word  # nothing comes after the end
        return word

    def _expect(self, sign: str) -> None:
        """Go past a sign; raises ExpressionError if another word is at hand."""
        if not (self._word.kind == "sign" and self._word.text == sign):
            raise self._unexpected_word(sign)
        self._advance()

    def _unexpected_word(self, allowed: str) -> ExpressionError:
        """Make the error for the word at hand, with what may be there instead."""
        word = self._word
        if word.kind == "end":
            return ExpressionError("ends too early", word.at, allowed)
        if word.text in ("'", '"'):
            return ExpressionError("has a text without its second quote", word.at, f"{word.text} at its end")
        instead = _WRITTEN_HERE.get(word.text) if word.kind == "sign" else None
        return ExpressionError(
            f"has {word.text[:40]!r} where it cannot be", word.at, f"{instead} instead" if instead else allowed
        )
