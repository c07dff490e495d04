"""Cell styles, as far as reading needs them: which numbers are dates, and which cells stand out."""

import re
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeVar

from runner.engine.reading.xlsx.markup import Attributes, Event

_T = TypeVar("_T")


class Kind(IntEnum):
    """How a number is meant."""

    NUMBER = 0
    DATE = 1
    DATETIME = 2
    TIME = 3
    DURATION = 4
    ANY = 5  # built-in formats whose meaning depends on the language: decided by the value


_BUILT_IN = {
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

    def kind(self, index: int) -> Kind:
        return self.kinds[index] if 0 <= index < len(self.kinds) else Kind.NUMBER


class StylesReader:
    """Fed with the events of a styles part."""

    def __init__(self) -> None:
        self._formats: dict[int, Kind] = {}
        self._fonts: list[tuple[bool, bool]] = []
        self._fills: list[bool] = []
        self._borders: list[tuple[bool, bool]] = []
        self._section = ""
        self._path: list[str] = []
        self.styles = Styles()

    def read(self, events: list[Event]) -> Styles:
        for event in events:
            if event[0] == "start":
                self._path.append(event[1])
                self._start(event[1], event[2])
            else:
                self._path.pop()
                if len(self._path) == 1:
                    self._section = ""
        return self.styles

    def _start(self, name: str, attributes: Attributes) -> None:
        depth = len(self._path)
        if depth == 2:
            self._section = name
        elif self._section == "numFmts" and name == "numFmt":
            self._formats[number(attributes, "numFmtId")] = kind_of_format(attributes.get("formatCode", ""))
        elif self._section == "fonts":
            self._font(name, attributes, depth)
        elif self._section == "fills":
            self._fill(name, attributes, depth)
        elif self._section == "borders":
            self._border(name, attributes, depth)
        elif self._section == "cellXfs":
            self._format(name, attributes)

    def _font(self, name: str, attributes: Attributes, depth: int) -> None:
        if depth == 3:
            self._fonts.append((False, False))
        elif name in ("b", "i") and self._fonts and attributes.get("val", "1") not in ("0", "false"):
            bold, italic = self._fonts[-1]
            self._fonts[-1] = (bold or name == "b", italic or name == "i")

    def _fill(self, name: str, attributes: Attributes, depth: int) -> None:
        if depth == 3:
            self._fills.append(False)
        elif name == "patternFill" and self._fills:
            self._fills[-1] = attributes.get("patternType", "none") not in ("none", "gray125")
        elif name == "gradientFill" and self._fills:
            self._fills[-1] = True

    def _border(self, name: str, attributes: Attributes, depth: int) -> None:
        if depth == 3:
            self._borders.append((False, False))
        elif self._borders and attributes.get("style", "none") != "none":
            top, bottom = self._borders[-1]
            self._borders[-1] = (top or name == "top", bottom or name == "bottom")

    def _format(self, name: str, attributes: Attributes) -> None:
        if name == "xf":
            identity = number(attributes, "numFmtId")
            kind = self._formats.get(identity, _BUILT_IN.get(identity, Kind.NUMBER))
            bold, italic = _at(self._fonts, number(attributes, "fontId"), (False, False))
            top, bottom = _at(self._borders, number(attributes, "borderId"), (False, False))
            self.styles.kinds.append(kind)
            self.styles.looks.append(
                Look(
                    bold=bold,
                    italic=italic,
                    filled=_at(self._fills, number(attributes, "fillId"), False),
                    border_top=top,
                    border_bottom=bottom,
                )
            )
        elif name == "alignment" and self.styles.looks:
            look = self.styles.looks[-1]
            look.centred = attributes.get("horizontal") in ("center", "centerContinuous")
            look.indented = number(attributes, "indent") > 0


def number(attributes: Attributes, name: str) -> int:
    """A whole number in an attribute; 0 where it is absent or is none."""
    text = attributes.get(name, "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0


def _at(items: list[_T], index: int, otherwise: _T) -> _T:
    return items[index] if index < len(items) else otherwise
