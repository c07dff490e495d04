"""What operators and functions take and give; checks a parsed expression against the fields of a manifest.

Every value has one of six kinds, known before a row is read: text, number, boolean, date, datetime and time. `blank`
goes with all of them. A checked expression names the operation of each of its calls, which `operations` carries out.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Final, NamedTuple

from runner.engine.expressions.grammar import (
    ExpressionError,
    FieldName,
    FunctionCall,
    Literal,
    Node,
    parse,
)

TEXT, NUMBER, BOOLEAN, DATE, DATETIME, TIME = "text", "number", "boolean", "date", "datetime", "time"
BLANK: Final = "blank"
KINDS: Final = (TEXT, NUMBER, BOOLEAN, DATE, DATETIME, TIME)
_SAME_KIND: Final = "same"  # one kind for all that say so
_ANY_KIND: Final = "any"
# The kind of a declared field's values, by its type.
KIND_OF_TYPE: Final = {
    **dict.fromkeys(("text", "email", "phone", "url", "enum"), TEXT),
    **dict.fromkeys(("integer", "decimal", "money", "percent"), NUMBER),
    "boolean": BOOLEAN, "date": DATE, "datetime": DATETIME, "time": TIME,
}  # fmt: skip
_KIND_IN_WORDS: Final = {
    TEXT: "a text", NUMBER: "a number", BOOLEAN: "true or false", DATE: "a date", DATETIME: "a date and time",
    TIME: "a time of day", BLANK: "blank",
}  # fmt: skip
# How to make one kind of another.
_CONVERSIONS: Final = {
    (TEXT, NUMBER): "number(…) reads a number in a text",
    (TEXT, DATE): "write a date as date('2026-01-31')",
    (DATETIME, DATE): "date(…) is the date of a date and time",
    **{(kind, TEXT): "text(…) makes a text of it" for kind in KINDS if kind != TEXT},
}


class Signature(NamedTuple):
    """One way to call a function or an operator."""

    parameters: tuple[str, ...]
    result: str
    operation: str  # its name in `operations`
    optional: int = 0  # of the last arguments
    repeats: bool = False  # the last argument, once or more


def _for_each_kind(kinds: Sequence[str], result: str, operation: str) -> list[Signature]:
    """List the signatures of a function of one argument that may be of several kinds."""
    return [Signature((kind,), result, operation) for kind in kinds]


_DAY_KINDS: Final = (DATE, DATETIME)
_ORDERED_KINDS: Final = (NUMBER, DATE, DATETIME, TIME, TEXT)


def _comparing(operation: str, kinds: Sequence[str]) -> list[Signature]:
    """List the signatures of a comparison of two values of one of these kinds."""
    return [Signature((kind, kind), BOOLEAN, operation) for kind in kinds]


OPERATORS: Final[dict[str, list[Signature]]] = {
    "+": [
        Signature((NUMBER, NUMBER), NUMBER, "add"),
        Signature((DATE, NUMBER), DATE, "add_days"),
        Signature((DATETIME, NUMBER), DATETIME, "add_days"),
    ],
    "-": [
        Signature((NUMBER, NUMBER), NUMBER, "subtract"),
        Signature((DATE, NUMBER), DATE, "subtract_days"),
        Signature((DATETIME, NUMBER), DATETIME, "subtract_days"),
        Signature((DATE, DATE), NUMBER, "days_from"),
    ],
    "*": [Signature((NUMBER, NUMBER), NUMBER, "multiply")],
    "/": [Signature((NUMBER, NUMBER), NUMBER, "divide")],
    "negative": [Signature((NUMBER,), NUMBER, "negative")],
    "&": [Signature((_ANY_KIND, _ANY_KIND), TEXT, "append")],
    "==": _comparing("equal", KINDS),
    "!=": _comparing("unequal", KINDS),
    "<": _comparing("less", _ORDERED_KINDS),
    "<=": _comparing("at_most", _ORDERED_KINDS),
    ">": _comparing("greater", _ORDERED_KINDS),
    ">=": _comparing("at_least", _ORDERED_KINDS),
    "in": [Signature((_SAME_KIND, _SAME_KIND), BOOLEAN, "is_in", repeats=True)],
    "not in": [Signature((_SAME_KIND, _SAME_KIND), BOOLEAN, "is_not_in", repeats=True)],
    "is blank": [Signature((_ANY_KIND,), BOOLEAN, "is_blank")],
    "is not blank": [Signature((_ANY_KIND,), BOOLEAN, "is_not_blank")],
    "and": [Signature((BOOLEAN, BOOLEAN), BOOLEAN, "both")],
    "or": [Signature((BOOLEAN, BOOLEAN), BOOLEAN, "either")],
    "not": [Signature((BOOLEAN,), BOOLEAN, "invert")],
}
FUNCTIONS: Final[dict[str, list[Signature]]] = {
    "if": [Signature((BOOLEAN, _SAME_KIND, _SAME_KIND), _SAME_KIND, "choose", repeats=True)],
    "coalesce": [Signature((_SAME_KIND, _SAME_KIND), _SAME_KIND, "coalesce", repeats=True)],
    "concat": [Signature((_ANY_KIND, _ANY_KIND), TEXT, "concat", repeats=True)],
    "join": [Signature((TEXT, _ANY_KIND, _ANY_KIND), TEXT, "join", repeats=True)],
    "split": [Signature((TEXT, TEXT, NUMBER), TEXT, "split")],
    "upper": [Signature((TEXT,), TEXT, "upper")],
    "lower": [Signature((TEXT,), TEXT, "lower")],
    "title": [Signature((TEXT,), TEXT, "title")],
    "trim": [Signature((TEXT,), TEXT, "trim")],
    "length": [Signature((TEXT,), NUMBER, "length")],
    "left": [Signature((TEXT, NUMBER), TEXT, "left")],
    "right": [Signature((TEXT, NUMBER), TEXT, "right")],
    "substring": [Signature((TEXT, NUMBER, NUMBER), TEXT, "substring", optional=1)],
    "replace": [Signature((TEXT, TEXT, TEXT), TEXT, "replace")],
    "pad": [Signature((TEXT, NUMBER, TEXT), TEXT, "pad")],
    "contains": [Signature((TEXT, TEXT), BOOLEAN, "contains")],
    "starts_with": [Signature((TEXT, TEXT), BOOLEAN, "starts_with")],
    "ends_with": [Signature((TEXT, TEXT), BOOLEAN, "ends_with")],
    "text": [Signature((_ANY_KIND,), TEXT, "text")],
    "number": [Signature((TEXT,), NUMBER, "number")],
    "round": [Signature((NUMBER, NUMBER), NUMBER, "round", optional=1)],
    "floor": [Signature((NUMBER,), NUMBER, "floor")],
    "ceiling": [Signature((NUMBER,), NUMBER, "ceiling")],
    "abs": [Signature((NUMBER,), NUMBER, "absolute")],
    "mod": [Signature((NUMBER, NUMBER), NUMBER, "modulo")],
    "min": [Signature((kind, kind), kind, "least", repeats=True) for kind in (NUMBER, DATE, DATETIME, TIME)],
    "max": [Signature((kind, kind), kind, "greatest", repeats=True) for kind in (NUMBER, DATE, DATETIME, TIME)],
    "date": [
        Signature((TEXT,), DATE, "date_of_text"),
        Signature((DATETIME,), DATE, "date_of_datetime"),
        Signature((NUMBER, NUMBER, NUMBER), DATE, "date_of_parts"),
    ],
    "year": _for_each_kind(_DAY_KINDS, NUMBER, "year"),
    "quarter": _for_each_kind(_DAY_KINDS, NUMBER, "quarter"),
    "month": _for_each_kind(_DAY_KINDS, NUMBER, "month"),
    "week": _for_each_kind(_DAY_KINDS, NUMBER, "week"),
    "day": _for_each_kind(_DAY_KINDS, NUMBER, "day"),
    "weekday": _for_each_kind(_DAY_KINDS, NUMBER, "weekday"),
    "hour": _for_each_kind((DATETIME, TIME), NUMBER, "hour"),
    "minute": _for_each_kind((DATETIME, TIME), NUMBER, "minute"),
    "add_months": [Signature((kind, NUMBER), kind, "add_months") for kind in _DAY_KINDS],
    "month_end": [Signature((kind,), DATE, "month_end") for kind in _DAY_KINDS],
    "days_between": [Signature((kind, kind), NUMBER, "days_between") for kind in _DAY_KINDS],
    "months_between": [Signature((kind, kind), NUMBER, "months_between") for kind in _DAY_KINDS],
    "years_between": [Signature((kind, kind), NUMBER, "years_between") for kind in _DAY_KINDS],
    "hours_between": [Signature((DATETIME, DATETIME), NUMBER, "hours_between")],
}
# What other systems call our functions.
_NAMES_ELSEWHERE: Final = {
    "iif": "if", "case": "if", "ifnull": "coalesce", "nvl": "coalesce", "len": "length", "mid": "substring",
    "substr": "substring", "strip": "trim", "concatenate": "concat", "textjoin": "join", "ucase": "upper",
    "lcase": "lower", "proper": "title", "ceil": "ceiling", "value": "number", "str": "text", "lpad": "pad",
    "datediff": "days_between", "datedif": "days_between", "edate": "add_months", "eomonth": "month_end",
    "isblank": "is blank", "isnull": "is blank", "substitute": "replace", "includes": "contains",
}  # fmt: skip
_CLOCK_FUNCTIONS: Final = frozenset({"today", "now", "rand", "random"})


class Value(NamedTuple):
    """A literal."""

    value: str | Decimal | bool | None
    kind: str


class FieldValue(NamedTuple):
    """The value that a field has in a row."""

    name: str
    kind: str


class CheckedCall(NamedTuple):
    """The result of an operation."""

    name: str  # in `operations`
    kind: str
    arguments: "tuple[Checked, ...]"


Checked = Value | FieldValue | CheckedCall


class Expression(NamedTuple):
    """A checked expression."""

    text: str
    tree: Checked
    fields: tuple[str, ...]  # that it uses, each once, in their order

    @property
    def kind(self) -> str:
        """The kind of its results, one of KINDS or BLANK."""
        return self.tree.kind


def compile_expression(text: str, fields: Mapping[str, str]) -> Expression:
    """Parse and check an expression; `fields`: those of the manifest, with their types. Raises ExpressionError."""
    checker = _Checker(fields)
    tree = checker.check_node(parse(text))
    return Expression(text, tree, tuple(checker.used))


def sort_computed(uses: Mapping[str, Sequence[str]]) -> list[str]:
    """Sort computed fields so that each comes after those that it uses; raises CircularFields. `uses`: computed field
    -> fields."""
    done: list[str] = []
    ready: set[str] = set()
    for start in uses:
        path = [(start, iter(uses[start]))]
        on_path = [start]
        while path and start not in ready:
            name, others = path[-1]
            other = next((o for o in others if o in uses and o not in ready), None)
            if other is None:
                path.pop()
                on_path.pop()
                ready.add(name)
                done.append(name)
            elif other in on_path:
                raise CircularFields([*on_path[on_path.index(other) :], other])
            else:
                path.append((other, iter(uses[other])))
                on_path.append(other)
    return done


class CircularFields(Exception):
    """Fields that are computed from each other: the way from one back to itself."""

    def __init__(self, path: list[str]) -> None:
        super().__init__(" → ".join(path))
        self.path = path


class _Checker:
    """Checks the tree of an expression against the fields, and notes which it uses."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        """Check against the fields, given with their types."""
        self._fields = fields
        self.used: dict[str, None] = {}  # fields, in their order

    def check_node(self, node: Node) -> Checked:
        """Check a node and return it with its kind; raises ExpressionError if its parts do not fit."""
        match node:
            case Literal():
                return Value(node.value, _kind_of(node))
            case FieldName():
                return FieldValue(node.name, self._kind_of_field(node))
            case FunctionCall():
                return self._check_call(node)

    def _kind_of_field(self, node: FieldName) -> str:
        """Return the kind of a field's values, and note the field as used; raises ExpressionError for an unknown
        field."""
        declared = self._fields.get(node.name)
        if declared is not None:
            self.used[node.name] = None
            return KIND_OF_TYPE[declared]
        near = _find_nearest(node.name, self._fields)
        known = ", ".join(list(self._fields)[:20]) or "none"
        if near is None and node.name in FUNCTIONS:
            raise ExpressionError(f"has the function {node.name} without its (…)", node.at, f"{node.name}(…)")
        meant = f"; did you mean {_field_text(near)}?" if near else ""
        raise ExpressionError(f"names {node.name[:60]}, which is not a field{meant}", node.at, f"a field: {known}")

    def _check_call(self, node: FunctionCall) -> Checked:
        """Find the operation of a call that fits its arguments; raises ExpressionError if none does."""
        signatures = OPERATORS.get(node.name) or FUNCTIONS.get(node.name)
        if signatures is None:
            raise _unknown_function(node)
        arguments = [self.check_node(argument) for argument in node.arguments]
        kinds = tuple(argument.kind for argument in arguments)
        match = _match_call(node.name, kinds) if len(kinds) <= 2 else _match_signatures(signatures, kinds)
        if match is None:
            raise _explain_misfit(node, signatures, kinds)
        operation, kind = match
        if operation in ("equal", "unequal") and Value("", TEXT) in arguments:
            raise ExpressionError("compares with an empty text, which no cell has", node.at, "is blank, is not blank")
        if operation == "date_of_text" and isinstance(arguments[0], Value):
            _check_date(node, arguments[0].value)
        return CheckedCall(operation, kind, tuple(arguments))


@lru_cache(maxsize=2048)  # at most as many as there are operators and pairs of kinds
def _match_call(name: str, kinds: tuple[str, ...]) -> "_MatchedCall | None":
    """Find what an operator or a function does with one or two arguments of these kinds; None if it takes others."""
    return _match_signatures(OPERATORS.get(name) or FUNCTIONS[name], kinds)


class _MatchedCall(NamedTuple):
    """What a call does."""

    operation: str  # its name in `operations`
    kind: str  # of its result


def _match_signatures(signatures: Sequence[Signature], kinds: Sequence[str]) -> _MatchedCall | None:
    """Return the first signature that fits arguments of these kinds, as a call; None if none does."""
    return next((match for signature in signatures if (match := _match_signature(signature, kinds)) is not None), None)


def _kind_of(literal: Literal) -> str:
    """Return the kind of a value that is written in the expression."""
    if literal.value is None:
        return BLANK
    if isinstance(literal.value, bool):
        return BOOLEAN
    return TEXT if isinstance(literal.value, str) else NUMBER


def _check_date(node: FunctionCall, value: object) -> None:
    """Raise ExpressionError unless a text is a date that exists."""
    try:
        date.fromisoformat(value if isinstance(value, str) and len(value) == 10 else "")
    except ValueError:
        raise ExpressionError("has a date that does not exist", node.at, "a date such as date('2026-01-31')") from None


def _match_signature(signature: Signature, kinds: Sequence[str]) -> _MatchedCall | None:
    """Return what a call of this signature does with arguments of these kinds; None if it takes others."""
    if signature.operation == "choose":
        return _match_choice(signature, kinds)
    least = len(signature.parameters) - signature.optional
    if len(kinds) < least or (len(kinds) > len(signature.parameters) and not signature.repeats):
        return None
    wanted = [*signature.parameters, *[signature.parameters[-1]] * (len(kinds) - len(signature.parameters))][
        : len(kinds)
    ]
    shared = _shared_kind([kind for kind, want in zip(kinds, wanted, strict=True) if want == _SAME_KIND])
    if shared is None:
        return None
    fits = all(want in (_ANY_KIND, _SAME_KIND, kind) or kind == BLANK for kind, want in zip(kinds, wanted, strict=True))
    result = shared if signature.result == _SAME_KIND else signature.result
    return _MatchedCall(signature.operation, result) if fits else None


def _match_choice(signature: Signature, kinds: Sequence[str]) -> _MatchedCall | None:
    """As `_match_signature`, for if(condition, value, condition, value, …, other value): all values must be of one
    kind."""
    if len(kinds) < 3 or len(kinds) % 2 == 0:
        return None
    conditions, values = kinds[:-1:2], [*kinds[1:-1:2], kinds[-1]]
    shared = _shared_kind(values)
    if shared is None or not all(kind in (BOOLEAN, BLANK) for kind in conditions):
        return None
    return _MatchedCall(signature.operation, shared)


def _shared_kind(kinds: Sequence[str]) -> str | None:
    """Return the one kind that several values have, blanks apart; BLANK if all are blank, None if they differ."""
    distinct = {kind for kind in kinds if kind != BLANK}
    return None if len(distinct) > 1 else next(iter(distinct), BLANK)


def _explain_misfit(node: FunctionCall, signatures: Sequence[Signature], kinds: Sequence[str]) -> ExpressionError:
    """Explain why no signature fits these arguments: their number, else the first one that is wrong."""
    name = node.name
    shown = {"negative": "-"}.get(name, name)
    if name in FUNCTIONS and all(not _allows_count(way, len(kinds)) for way in signatures):
        allowed = " or ".join(dict.fromkeys(_write_usage(name, way) for way in signatures))
        return ExpressionError(f"gives {shown} {len(kinds)} arguments", node.at, allowed)
    kinds_shown = ", ".join(_KIND_IN_WORDS[kind] for kind in kinds)
    allowed = " or ".join(dict.fromkeys(_write_usage(name, way) for way in signatures))
    wanted = [*kinds, *(want for way in signatures for want in way.parameters)]
    texts_first = sorted(kinds, key=lambda kind: kind != TEXT)
    turns = next((turn for kind in texts_first for want in wanted if (turn := _CONVERSIONS.get((kind, want)))), None)
    verb = "has" if name in FUNCTIONS else "puts"
    problem = f"{verb} {shown} {'with' if name in FUNCTIONS else 'between'} {kinds_shown}"
    if len(kinds) == 1:
        problem = f"has {shown} with {kinds_shown}"
    return ExpressionError(problem, node.at, f"{allowed}; {turns}" if turns else allowed)


def _allows_count(signature: Signature, count: int) -> bool:
    """Whether a signature takes so many arguments."""
    if signature.operation == "choose":
        return count >= 3 and count % 2 == 1
    least = len(signature.parameters) - signature.optional
    return count >= least and (signature.repeats or count <= len(signature.parameters))


def _write_usage(name: str, signature: Signature) -> str:
    """Write how a function or an operator is used, for an error's message."""
    kinds = [{_ANY_KIND: "any", _SAME_KIND: "value"}.get(kind, kind) for kind in signature.parameters]
    if signature.operation == "choose":
        return "if(condition, value, other value), with values of one kind"
    if name in OPERATORS:
        if name in ("not", "negative"):
            return f"{'not' if name == 'not' else '-'} {kinds[0]}"
        if len(kinds) == 1:
            return f"{kinds[0]} {name}"
        return f"{kinds[0]} {name} ({kinds[1]}, …)" if signature.repeats else f"{kinds[0]} {name} {kinds[1]}"
    optional = [f"[{kind}]" if n >= len(kinds) - signature.optional else kind for n, kind in enumerate(kinds)]
    return f"{name}({', '.join(optional)}{', …' if signature.repeats else ''})"


def _unknown_function(node: FunctionCall) -> ExpressionError:
    """Make the error for a function that does not exist, with a guess at what is meant."""
    name = node.name
    if name in _CLOCK_FUNCTIONS:
        allowed = "what is in the file: the same file gives the same result whenever it runs"
        return ExpressionError(f"calls {name}", node.at, allowed)
    meant = _NAMES_ELSEWHERE.get(name.casefold()) or _find_nearest(name.casefold(), FUNCTIONS)
    guess = f"; did you mean {meant}?" if meant else ""
    return ExpressionError(f"calls {name[:60]}, which is not a function{guess}", node.at, ", ".join(FUNCTIONS))


def _find_nearest(name: str, known: Mapping[str, object]) -> str | None:
    """Return the known name that is spelled most like this one; None if none is close."""
    if len(name) > 60:
        return None
    folded = {known_name.casefold(): known_name for known_name in list(known)[:200]}
    from difflib import get_close_matches  # noqa: PLC0415  # only for mistakes

    near = get_close_matches(name.casefold(), folded, n=1, cutoff=0.66)
    return folded[near[0]] if near else None


def _field_text(name: str) -> str:
    """Write a field as an expression names it."""
    return name if name.isidentifier() else f"[{name}]"
