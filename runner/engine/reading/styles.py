"""Cell styles, as far as reading needs them: which numbers are dates, and which cells stand out."""

import re
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from runner.engine.reading.shown import Shower, shower_of


class Kind(IntEnum):
    """How a number is meant."""

    NUMBER = 0
    DATE = 1
    DATETIME = 2
    TIME = 3
    DURATION = 4
    SHOWN = 6  # a number whose format shows more than its digits
    ANY = 5  # built-in formats whose meaning depends on the language: decided by the value


BUILT_IN = {
    **dict.fromkeys((14, 15, 16, 17), Kind.DATE),
    **dict.fromkeys((18, 19, 20, 21), Kind.TIME),
    22: Kind.DATETIME,
    45: Kind.TIME,
    46: Kind.DURATION,
    47: Kind.TIME,
    **dict.fromkeys((*range(27, 37), *range(50, 59)), Kind.ANY),  # East Asian
}
_LITERAL = re.compile(r'"[^"]*"?|\\.|_.|\*.')
_ELAPSED = re.compile(r"\[(?:h+|m+|s+)\]", re.IGNORECASE)
_BRACKET = re.compile(r"\[[^\]]*\]")


def kind_of_format(code: str) -> Kind:
    """Read a number format code: only its first section counts, and no quoted text."""
    bare = _LITERAL.sub("", code[:1024]).split(";")[0]
    if _ELAPSED.search(bare):
        return Kind.DURATION
    bare = _BRACKET.sub("", bare).lower()
    if "general" in bare or "#" in bare or "?" in bare or "@" in bare:
        return Kind.NUMBER
    bare = bare.replace("am/pm", "h").replace("a/p", "h")
    has_time = "h" in bare or "s" in bare
    has_date = "y" in bare or "d" in bare or "g" in bare or "e" in bare.replace("e+", "").replace("e-", "")
    if has_date or ("m" in bare and not has_time) or "b" in bare:
        return Kind.DATETIME if has_time else Kind.DATE
    return Kind.TIME if has_time else Kind.NUMBER


class Format(NamedTuple):
    """What a number format says."""

    kind: Kind
    shows: Shower | None = None


def format_of(code: str) -> Format:
    kind = kind_of_format(code)
    shows = shower_of(code) if kind is Kind.NUMBER else None
    return Format(Kind.SHOWN, shows) if shows else Format(kind)


@dataclass(kw_only=True, slots=True)
class Look:
    """What makes a cell stand out."""

    bold: bool = False
    italic: bool = False
    filled: bool = False
    border_top: bool = False
    border_bottom: bool = False
    centred: bool = False
    indented: bool = False

    @property
    def plain(self) -> bool:
        return self == _PLAIN


_PLAIN = Look()


@dataclass(kw_only=True)
class Styles:
    """By the style index of a cell; an index out of range is a plain number."""

    kinds: list[Kind] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    shows: dict[int, Shower] = field(default_factory=dict)  # of the styles of kind SHOWN

    def add(self, number: int, formats: dict[int, Format], look: Look) -> None:
        """The next style: the number of its format, which is one of the file's own or a built-in one."""
        kind, shows = formats.get(number) or Format(BUILT_IN.get(number, Kind.NUMBER))
        if shows:
            self.shows[len(self.kinds)] = shows
        self.kinds.append(kind)
        self.looks.append(look)

    def kind(self, index: int) -> Kind:
        return self.kinds[index] if 0 <= index < len(self.kinds) else Kind.NUMBER
