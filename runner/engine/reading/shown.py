"""What a cell shows where its number format says more than its number: ``00501``, ``000-00-0000``, ``INV-0042``.

Such a number is an identifier as often as not, and a text field wants what a person sees. Only whole numbers are shown
here, and only by formats of digits and fixed characters: signs that group, point, scale or name a currency belong to
amounts, whose digits count and not their looks.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import Final, NamedTuple

from runner.engine.reading.values import Shown, Value

Shower = Callable[[int], str | None]

MOST: Final = 255  # characters of a format; Excel takes no more
_TOKEN = re.compile(
    r"""(?P<section>;)|"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|_(?P<width>.)|\*.|\[(?P<bracket>[^\]]*)\]"""
    r"""|(?P<general>general)|(?P<digit>[0#?])|(?P<amount>[.,%/@]|e[+-])|(?P<other>.)""",
    re.IGNORECASE | re.DOTALL,
)
_CONDITION = re.compile(r"(<=|>=|<>|<|>|=)\s*(-?[0-9]{1,15}(?:\.0*)?)")
_PROBES: Final = (7, 12_345, 123_456_789, -7)
_COMPARE: Final[dict[str, Callable[[int, float], bool]]] = {
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "=": lambda a, b: a == b,
}


class _Digit(NamedTuple):
    """A place for a digit: what it shows where the number has none left."""

    fill: str


class _Section:
    def __init__(self) -> None:
        self.parts: list[str | _Digit | None] = []  # literal text, a digit's place, or all digits
        self.condition: Callable[[int], bool] | None = None

    def show(self, number: int) -> str:
        """The digits of a number that is not negative, put in their places from the right."""
        digits = str(number) if number else ""
        places = sum(isinstance(part, _Digit) for part in self.parts)
        digits, extra = digits[max(len(digits) - places, 0) :], digits[: max(len(digits) - places, 0)]
        missing = places - len(digits)
        out: list[str] = []
        at = 0
        for part in self.parts:
            if part is None:
                out.append(str(number))
            elif isinstance(part, str):
                out.append(part)
            else:
                out.append(extra if at == 0 else "")
                out.append(part.fill if at < missing else digits[at - missing])
                at += 1
        return "".join(out).strip()


def shower_of(code: str) -> Shower | None:
    """How a number format shows whole numbers; None where it shows the digits alone, or an amount."""
    if len(code) > MOST or (sections := _sections(code)) is None:
        return None

    def show(number: int) -> str | None:
        return _show(sections, number)

    return show if any(show(one) not in (None, str(one)) for one in _PROBES) else None


def shown(show: Shower, number: Value) -> Value:
    """The number with what it shows."""
    if type(number) is not int:
        return number
    text = show(number)
    return number if text is None else Shown(number, text)


def _sections(code: str) -> list[_Section] | None:
    sections = [_Section()]
    for token in _TOKEN.finditer(code):
        kind, text = token.lastgroup, token[0]
        if kind == "section":
            sections.append(_Section())
            continue
        if len(sections) > 3:
            continue  # the fourth is for texts
        if kind == "amount" or (kind == "bracket" and not _bracket(sections[-1], token["bracket"])):
            return None
        if kind == "digit":
            sections[-1].parts.append(_Digit({"0": "0", "#": "", "?": " "}[text]))
        elif kind == "general":
            sections[-1].parts.append(None)
        elif kind in ("quoted", "escaped", "width", "other"):
            literal = " " if kind == "width" else token[kind]
            if any(unicodedata.category(character) == "Sc" for character in literal):
                return None
            sections[-1].parts.append(literal)
    return sections[:3]


def _bracket(section: _Section, inside: str) -> bool:
    """Take a bracket in; False where it names a currency."""
    if found := _CONDITION.fullmatch(inside.strip()):
        compare, bound = _COMPARE[found[1]], float(found[2])
        section.condition = lambda number: compare(number, bound)
    return not inside.startswith("$") or inside.startswith("$-")


def _show(sections: list[_Section], number: int) -> str | None:
    sign = ""
    if any(section.condition for section in sections):
        if number < 0:
            return None
        section = next((one for one in sections if one.condition is None or one.condition(number)), None)
    elif number < 0:
        section = sections[min(1, len(sections) - 1)]
        sign = "-" if len(sections) == 1 else ""
    else:
        section = sections[2 if number == 0 and len(sections) > 2 else 0]
    if section is None:
        return None
    text = section.show(abs(number))
    return sign + text if text else None  # a format that hides a number does not take it away
